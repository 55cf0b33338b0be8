#include "broker/reseed.hpp"
#include "model/names.hpp"
#include "support/idle_source.hpp"
#include "support/manual_clock.hpp"
#include "support/manual_workers.hpp"
#include "support/recording_source.hpp"
#include "support/scripted_store.hpp"

#include <gmock/gmock.h>

#include <map>

namespace queen::broker {
namespace {

using namespace std::chrono_literals;
using test::uuid_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::string_view kTenant = kDefaultTenant;

/// Writes down what it is told, in one list.
struct Listener final : test::IdleSource {
    void configured(const plugin::Queue& queue, const plugin::QueueConfig& config) override {
        EXPECT_EQ(queue.key, queue_key(queue.tenant, queue.name));
        say("delay=" + std::to_string(config.delay / 1s) +
            " window=" + std::to_string(config.window / 1s));
        read_at.push_back(config.read_at);
    }
    bool reseed_page(const plugin::Scope& scope, plugin::Ticket ticket,
                     std::span<const plugin::ReseedRow> rows) override {
        std::string line = name(scope, ticket);
        for (const auto& row : rows) {
            line +=
                " " + std::string(row.partition) + "#" + std::to_string(row.partition_id.bytes[15]);
        }
        say(line);
        return wants_more;
    }
    void reseed_done(const plugin::Scope& scope, plugin::Ticket ticket, bool complete) override {
        say(name(scope, ticket) + (complete ? " complete" : " incomplete"));
    }
    void say(const std::string& line) {
        EXPECT_FALSE(inside) << line << " came inside reseed()";
        told.push_back(line);
    }
    static std::string name(const plugin::Scope& scope, plugin::Ticket ticket) {
        return std::string(scope.queue.name) + "/" + std::string(scope.group) + "/" +
               std::to_string(ticket);
    }

    bool wants_more = true;
    bool inside = false; ///< the test is in the middle of reseed()
    std::vector<std::string> told;
    std::vector<SteadyTime> read_at;
};

class ReseederTest : public testing::Test {
protected:
    struct Asked {
        ReseedQuery query;
        Done<ReseedPage> done;
    };

    ReseederTest() {
        store_.on_reseed_page = [this](ReseedQuery query, Done<ReseedPage> done) {
            asked_.push_back({std::move(query), std::move(done)});
        };
    }
    Reseeder& reseeder() {
        if (!reseeder_) {
            reseeder_ = std::make_unique<Reseeder>(
                store_, workers_, clock_,
                [this](std::string_view name) {
                    const auto found = sources_.find(std::string(name));
                    return found == sources_.end() ? nullptr : found->second;
                },
                options_);
        }
        return *reseeder_;
    }
    void reseed(plugin::Ticket ticket, Nanoseconds window = 0s, const std::string& queue = "q",
                const std::string& source = "ring") {
        listener_->inside = true;
        const auto key = queue_key(kTenant, queue);
        reseeder().reseed(source, {{key, kTenant, queue}, "g"}, ticket, window);
        listener_->inside = false;
    }
    /// The oldest page that is under way is answered.
    void answer(Result<ReseedPage> page) {
        ASSERT_THAT(asked_, testing::Not(IsEmpty()));
        const auto asked = std::move(asked_.front());
        asked_.erase(asked_.begin());
        asked.done(std::move(page));
    }
    static ReseedPage page(std::vector<std::string> names, std::uint8_t next = 0) {
        ReseedPage page{.exists = true, .delay_seconds = 3, .window_seconds = 2};
        for (const auto& name : names) {
            page.rows.push_back({name, uuid_of(static_cast<std::uint8_t>(name.back()))});
        }
        if (next > 0) {
            page.next = ReseedKey{uuid_of(next), WallTime{1s}, WallTime{-1s}};
        }
        return page;
    }
    std::vector<std::string> told() { return std::exchange(listener_->told, {}); }

    test::ManualClock clock_;
    test::ManualWorkers workers_;
    test::ScriptedStore store_;
    Reseeder::Options options_{.parallel = 2, .waiting = 3, .partitions = 10, .pages = 3};
    std::shared_ptr<Listener> listener_ = std::make_shared<Listener>();
    std::map<std::string, SourcePtr> sources_{{"ring", listener_}};
    std::vector<Asked> asked_;
    std::unique_ptr<Reseeder> reseeder_;
};

TEST_F(ReseederTest, TellsTheSettingsThenThePageThenThatItIsDone) {
    reseeder().open();
    reseed(7);
    EXPECT_THAT(asked_, IsEmpty()) << "the store is asked by a worker";
    workers_.run_all();
    ASSERT_THAT(asked_, SizeIs(1));
    const auto& query = asked_[0].query;
    EXPECT_EQ(query.tenant, kTenant);
    EXPECT_EQ(query.queue, "q");
    EXPECT_EQ(query.group, "g");
    EXPECT_EQ(query.window, 0ms);
    EXPECT_EQ(query.partitions, 10u);
    EXPECT_FALSE(query.after);
    answer(page({"a", "b"}));
    EXPECT_THAT(told(), ElementsAre("delay=3 window=2", "q/g/7 a#97 b#98", "q/g/7 complete"));
    EXPECT_EQ(workers_.run_all(), 0u);
    EXPECT_THAT(asked_, IsEmpty());
}

// A configuration that was read before a change must not pass for one read after it.
TEST_F(ReseederTest, TheReadTimeIsThatBeforeTheStatement) {
    reseeder().open();
    reseed(1);
    workers_.run_all();
    const auto first = clock_.now();
    clock_.advance(5s);
    answer(page({}, 1));
    const auto second = clock_.now();
    clock_.advance(5s);
    answer(page({}));
    EXPECT_THAT(listener_->read_at, ElementsAre(first, second));
}

TEST_F(ReseederTest, EachPageGoesOnWhereTheLastOneEnded) {
    reseeder().open();
    reseed(1, 10min);
    workers_.run_all();
    EXPECT_EQ(asked_[0].query.window, 10min);
    answer(page({"a"}, 9));
    ASSERT_THAT(asked_, SizeIs(1)) << "the next page is asked for when the last was told";
    const auto after = asked_[0].query.after;
    ASSERT_TRUE(after);
    EXPECT_EQ(after->partition_id, uuid_of(9));
    EXPECT_EQ(after->written, WallTime{1s});
    EXPECT_EQ(after->cutoff, WallTime{-1s});
    EXPECT_EQ(asked_[0].query.window, 10min);
    answer(page({}, 10));
    answer(page({"b"}));
    EXPECT_THAT(told(), ElementsAre("delay=3 window=2", "q/g/1 a#97", "delay=3 window=2", "q/g/1",
                                    "delay=3 window=2", "q/g/1 b#98", "q/g/1 complete"));
}

// An executor that has stopped answers in its caller.
TEST_F(ReseederTest, NothingIsToldInsideTheCallEvenIfTheStoreAnswersAtOnce) {
    store_.on_reseed_page = [](const ReseedQuery&, const Done<ReseedPage>& done) {
        done(fail(Errc::shutting_down, "gone"));
    };
    reseeder().open();
    reseed(1);
    EXPECT_THAT(told(), IsEmpty());
    workers_.run_all();
    EXPECT_THAT(told(), ElementsAre("q/g/1 incomplete"));
}

TEST_F(ReseederTest, ASourceThatNeedsNoMoreEndsTheWalkButNotAsIncompleteOnItsLastPage) {
    reseeder().open();
    listener_->wants_more = false;
    reseed(1);
    workers_.run_all();
    answer(page({"a"}, 5));
    EXPECT_THAT(asked_, IsEmpty());
    EXPECT_EQ(told().back(), "q/g/1 incomplete");
    reseed(2);
    workers_.run_all();
    answer(page({"a"}));
    EXPECT_EQ(told().back(), "q/g/2 complete");
}

TEST_F(ReseederTest, AFailedPageEndsTheWalkIncomplete) {
    reseeder().open();
    reseed(1);
    workers_.run_all();
    answer(page({"a"}, 5));
    told();
    answer(fail(Errc::timeout, "late"));
    EXPECT_THAT(told(), ElementsAre("q/g/1 incomplete"));
    EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(ReseederTest, AWalkHasSoManyPagesAndNoMore) {
    reseeder().open();
    reseed(1);
    workers_.run_all();
    answer(page({}, 1));
    answer(page({}, 2));
    answer(page({}, 3));
    EXPECT_THAT(asked_, IsEmpty());
    EXPECT_EQ(told().back(), "q/g/1 incomplete");
    reseed(2);
    workers_.run_all();
    answer(page({}, 1));
    answer(page({}, 2));
    answer(page({}));
    EXPECT_EQ(told().back(), "q/g/2 complete") << "the last page that it may have is the last one";
}

TEST_F(ReseederTest, AQueueThatDoesNotExistHasNoSettingsAndNothingPending) {
    reseeder().open();
    reseed(1);
    workers_.run_all();
    answer(ReseedPage{});
    EXPECT_THAT(told(), ElementsAre("q/g/1", "q/g/1 complete"));
}

TEST_F(ReseederTest, FewWalkAtATimeAndTheOthersInTheOrderOfAsking) {
    reseeder().open();
    for (plugin::Ticket ticket = 1; ticket <= 4; ++ticket) {
        reseed(ticket);
    }
    workers_.run_all();
    EXPECT_THAT(asked_, SizeIs(2));
    EXPECT_EQ(reseeder().stats().walking, 2u);
    EXPECT_EQ(reseeder().stats().waiting, 2u);
    answer(page({}));
    answer(page({}));
    EXPECT_EQ(told(), (std::vector<std::string>{"delay=3 window=2", "q/g/1", "q/g/1 complete",
                                                "delay=3 window=2", "q/g/2", "q/g/2 complete"}));
    workers_.run_all();
    EXPECT_THAT(asked_, SizeIs(2));
    answer(page({}));
    answer(page({}));
    EXPECT_THAT(told(), testing::Contains("q/g/4 complete"));
    EXPECT_EQ(reseeder().stats().walking, 0u);
}

TEST_F(ReseederTest, WhatComesWhenTooManyWaitIsToldAtOnce) {
    reseeder().open();
    for (plugin::Ticket ticket = 1; ticket <= 6; ++ticket) {
        reseed(ticket); // two walk, three wait
    }
    EXPECT_THAT(told(), IsEmpty());
    workers_.run_all();
    EXPECT_THAT(told(), ElementsAre("q/g/6 incomplete"));
    EXPECT_EQ(reseeder().stats().failed, 1u);
}

TEST_F(ReseederTest, ClosingEndsWhatWaitsAtOnceAndWhatWalksWithItsPage) {
    reseeder().open();
    for (plugin::Ticket ticket = 1; ticket <= 3; ++ticket) {
        reseed(ticket);
    }
    workers_.run_all();
    reseeder().close();
    EXPECT_THAT(told(), IsEmpty()) << "closing is the main thread's: sources hear on workers";
    workers_.run_all();
    EXPECT_THAT(told(), ElementsAre("q/g/3 incomplete"));
    answer(page({"a"}, 4));
    EXPECT_EQ(told().back(), "q/g/1 incomplete");
    answer(fail(Errc::shutting_down, "the broker stops"));
    EXPECT_EQ(told().back(), "q/g/2 incomplete");
    EXPECT_THAT(asked_, IsEmpty());
    reseed(9);
    workers_.run_all();
    EXPECT_THAT(told(), ElementsAre("q/g/9 incomplete"));
    EXPECT_THAT(asked_, IsEmpty());
    EXPECT_EQ(reseeder().stats().failed, 4u);
}

TEST_F(ReseederTest, AWalkThatHasASlotWhenItClosesEndsBeforeItsFirstPage) {
    reseeder().open();
    reseed(1);
    reseeder().close();
    workers_.run_all();
    EXPECT_THAT(asked_, IsEmpty());
    EXPECT_THAT(told(), ElementsAre("q/g/1 incomplete"));
}

// A plugin may ask while it is being made, when the host does not know it yet.
TEST_F(ReseederTest, WalksAskedForBeforeItOpensBeginThen) {
    sources_.clear();
    reseed(1);
    workers_.run_all();
    EXPECT_THAT(asked_, IsEmpty());
    sources_["ring"] = listener_;
    reseeder().open();
    workers_.run_all();
    answer(page({}));
    EXPECT_EQ(told().back(), "q/g/1 complete");
    reseed(2);
    reseeder().open(); // again: nothing changes
    EXPECT_EQ(reseeder().stats().walking, 1u);
}

TEST_F(ReseederTest, AClosedReseederTellsAlsoThoseWhoAskedBeforeItOpened) {
    sources_.clear();
    reseed(1);
    sources_["ring"] = listener_;
    reseeder().close();
    reseeder().open();
    workers_.run_all();
    EXPECT_THAT(told(), ElementsAre("q/g/1 incomplete"));
}

TEST_F(ReseederTest, ASourceThatIsUnloadedMeanwhileStillHearsOfItsWalks) {
    reseeder().open();
    reseed(1);
    reseed(2);
    reseed(3);
    workers_.run_all();
    const std::weak_ptr<Listener> life = listener_;
    const auto told = &listener_->told; // lives as long as the listener
    sources_.clear();
    sources_["ring"] = std::make_shared<Listener>(); // another instance of that name
    listener_.reset();
    answer(page({"a"}, 4));
    ASSERT_FALSE(life.expired());
    answer(page({}));
    answer(page({}));
    workers_.run_all();
    EXPECT_THAT(*told, testing::Contains("q/g/2 complete"));
    answer(page({}));
    EXPECT_TRUE(life.expired()) << "its last walk kept it";
    EXPECT_THAT(std::static_pointer_cast<Listener>(sources_["ring"])->told, IsEmpty());
}

TEST_F(ReseederTest, AWalkOfASourceNobodyKnowsIsCountedAndGivesItsSlotBack) {
    reseeder().open();
    for (plugin::Ticket ticket = 1; ticket <= 4; ++ticket) {
        reseed(ticket, 0s, "q", "unknown");
    }
    workers_.run_all();
    EXPECT_THAT(told(), IsEmpty());
    EXPECT_THAT(asked_, IsEmpty());
    EXPECT_EQ(reseeder().stats().failed, 4u);
    EXPECT_EQ(reseeder().stats().walking, 0u);
}

TEST_F(ReseederTest, WindowsAreRoundedUpAndNegativeOnesAreNone) {
    reseeder().open();
    reseed(1, Nanoseconds{1});
    reseed(2, Nanoseconds{-1});
    workers_.run_all();
    EXPECT_EQ(asked_[0].query.window, 1ms);
    EXPECT_EQ(asked_[1].query.window, 0ms);
    reseed(3, Nanoseconds::max());
    answer(page({}));
    workers_.run_all();
    EXPECT_GT(asked_.back().query.window, std::chrono::hours(24 * 365 * 290));
}

TEST_F(ReseederTest, CountsWhatItDid) {
    reseeder().open();
    reseed(1);
    reseed(2, 10min);
    workers_.run_all();
    answer(page({"a", "b"}));
    answer(page({"c"}, 3));
    answer(fail(Errc::timeout, "late"));
    reseed(3, 10min);
    workers_.run_all();
    answer(page({}));
    const auto stats = reseeder().stats();
    EXPECT_EQ(stats.full, 1u);
    EXPECT_EQ(stats.window, 1u);
    EXPECT_EQ(stats.failed, 1u);
    EXPECT_EQ(stats.pages, 3u);
    EXPECT_EQ(stats.rows, 3u);
    EXPECT_EQ(stats.walking, 0u);
    EXPECT_EQ(stats.waiting, 0u);
}

class ReseederGoneTest : public ReseederTest {
protected:
    ReseederGoneTest() {
        options_.gone = 100;
        options_.forgot = [this](std::string_view tenant, std::string_view queue) {
            EXPECT_EQ(tenant, kTenant);
            woken_.emplace_back(queue);
        };
        sources_["ring"] = source_;
        reseeder().open();
    }
    /// A whole walk of one page or more. @return how often the source was told to forget by now
    std::size_t walk(std::int64_t deleted, std::uint8_t queue_id = 1, int pages = 1,
                     Nanoseconds window = 0s) {
        reseeder().reseed("ring", {{queue_key(kTenant, "q"), kTenant, "q"}, "g"}, 1, window);
        workers_.run_all();
        for (int i = 1; i <= pages; ++i) {
            ReseedPage one = page({}, i < pages ? 9 : 0);
            one.queue_id = uuid_of(queue_id);
            one.deleted = deleted;
            answer(one);
        }
        EXPECT_EQ(source_->forgotten.size(), woken_.size());
        return source_->forgotten.size();
    }
    struct Walked final : test::IdleSource {
        bool reseed_page(const plugin::Scope&, plugin::Ticket,
                         std::span<const plugin::ReseedRow>) override {
            return true;
        }
        void forget(std::string_view, std::string_view queue, std::string_view) override {
            forgotten.emplace_back(queue);
        }
        std::vector<std::string> forgotten;
    };
    const std::shared_ptr<Walked> source_ = std::make_shared<Walked>();
    std::vector<std::string> woken_;
};

TEST_F(ReseederGoneTest, AQueueIsForgottenWhenManyOfItsPartitionsWent) {
    EXPECT_EQ(walk(5000), 0u) << "what went before the source knew the queue";
    EXPECT_EQ(walk(5099), 0u);
    EXPECT_EQ(walk(5100, 1, 1, 60s), 0u) << "only a full walk has found what there is";
    EXPECT_EQ(walk(5100), 1u);
    EXPECT_EQ(walk(5199), 1u);
    EXPECT_EQ(walk(5200), 2u);
    EXPECT_EQ(reseeder().stats().forgotten, 2u);
}

TEST_F(ReseederGoneTest, ALargeQueueIsForgottenForMore) {
    EXPECT_EQ(walk(0, 1, 3), 0u);
    EXPECT_EQ(walk(299, 1, 3), 0u);
    EXPECT_EQ(walk(300, 1, 3), 1u);
}

TEST_F(ReseederGoneTest, AQueueThatWasMadeAnewIsForgotten) {
    EXPECT_EQ(walk(7, 1), 0u);
    EXPECT_EQ(walk(0, 2), 1u);
    EXPECT_EQ(walk(0, 2), 1u);
}

} // namespace
} // namespace queen::broker
