#include "broker/groups.hpp"
#include "broker/repairs.hpp"
#include "core/broker/broker_parts.hpp"
#include "model/names.hpp"
#include "support/idle_source.hpp"
#include "support/manual_workers.hpp"
#include "support/scripted_group_store.hpp"

#include <gmock/gmock.h>

namespace queen::broker {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

const std::string kTenant{kDefaultTenant};

/// What a source is told of cursors that moved, and what else happened, in order.
class GroupsTest : public BrokerParts {
protected:
    struct Listener final : test::IdleSource {
        explicit Listener(std::vector<std::string>& log) : log_(log) {}
        plugin::Readiness peek(const plugin::Scope&) override { return readiness; }
        void mark(const plugin::Queue& queue, std::string_view group, plugin::Origin,
                  std::span<const plugin::Mark> marks) override {
            EXPECT_EQ(queue.key, queue_key(kTenant, queue.name));
            log_.push_back("mark " + std::string(queue.name) + "/" +
                           std::string(marks[0].partition) + " for " + std::string(group));
            EXPECT_TRUE(marks[0].partition_id.known());
        }
        void released(const plugin::Queue& queue, std::string_view group, const Uuid& id,
                      bool covered) override {
            EXPECT_FALSE(covered);
            EXPECT_TRUE(id.known());
            log_.push_back("released " + std::string(queue.name) + " for " + std::string(group));
        }
        void forget(std::string_view tenant, std::string_view queue,
                    std::string_view group) override {
            EXPECT_EQ(tenant, kTenant);
            log_.push_back("forget " + std::string(queue) + " for " + std::string(group));
        }
        plugin::Readiness readiness;

    private:
        std::vector<std::string>& log_;
    };

    void park(const std::string& name, const WaitScope& scope) {
        BrokerParts::park(log_, "wake " + name, scope);
    }
    void park_everybody() {
        const auto queue = queue_key(kTenant, "q");
        park("wildcard", {.gate = queue, .group = "g", .partition = {}, .labels = {}});
        park("p", {.gate = queue, .group = "g", .partition = "p", .labels = {}});
        park("r", {.gate = queue, .group = "g", .partition = "r", .labels = {}});
        park("other group", {.gate = queue, .group = "h", .partition = {}, .labels = {}});
        park("other queue",
             {.gate = queue_key(kTenant, "s"), .group = "g", .partition = {}, .labels = {}});
        park("discovery", {.gate = discovery_gate(kTenant),
                           .group = "g",
                           .partition = {},
                           .labels = std::pair{"n", ""}});
        park("other discovery", {.gate = discovery_gate(kTenant),
                                 .group = "h",
                                 .partition = {},
                                 .labels = std::pair{"n", ""}});
    }

    /// What happened. Pinned scopes of a gate are woken in no order.
    std::vector<std::string> told() const {
        auto log = log_;
        for (std::size_t i = 0; i + 1 < log.size(); ++i) {
            if (log[i] == "wake r" && log[i + 1] == "wake p") {
                std::swap(log[i], log[i + 1]);
            }
        }
        return log;
    }

    std::vector<std::string> log_;
    std::shared_ptr<Listener> listener_ = std::make_shared<Listener>(log_);
    std::shared_ptr<Listener> other_ = std::make_shared<Listener>(log_);
    Sources both_{{{"ring", listener_}, {"other", other_}}, "ring"};
    Announcer announcer_{both_, parking_};
    test::ManualWorkers workers_;
    Pop pops_{store_, both_, announcer_, parking_, workers_, ticker_, clock_, {}};
    test::ScriptedGroupStore group_store_;
    MovedCursors moved_{pops_, announcer_};
    FigureReads figures_{clock_, 30s};
    Groups groups_{group_store_, moved_, figures_, clock_, 30s};

    void seek(std::optional<std::string> partition, SeekOutcome outcome) {
        group_store_.on_seek = [outcome](const Seek&, const auto& done) { done(outcome); };
        groups_.seek({.tenant = kTenant,
                      .queue = "q",
                      .group = "g",
                      .partition = std::move(partition),
                      .to = {}},
                     [this](const Result<SeekOutcome>& said) {
                         log_.push_back(said ? "done" : said.error().message);
                     });
    }
};

TEST_F(GroupsTest, ASeekOfAQueueVoidsWhatSourcesKnowAndWakesBeforeTheAnswer) {
    park_everybody();
    seek({}, {.moved = 3, .partition_id = {}});
    EXPECT_THAT(told(), ElementsAre("forget q for g", "forget q for g", "wake wildcard", "wake p",
                                    "wake r", "wake discovery", "done"));
}

TEST_F(GroupsTest, ASeekOfOnePartitionMarksItAndFreesWhatWaitsForItsLease) {
    park_everybody();
    seek("p", {.moved = 1, .partition_id = test::uuid_of(7)});
    EXPECT_THAT(told(), ElementsAre("mark q/p for g", "released q for g", "mark q/p for g",
                                    "released q for g", "wake wildcard", "wake p", "wake discovery",
                                    "done"));
}

// A mark there would wait for a delay that was over long ago.
TEST_F(GroupsTest, ASeekOfOnePartitionOfAQueueThatWaitsVoidsTheGroup) {
    park_everybody();
    seek("p", {.moved = 1, .partition_id = test::uuid_of(7), .waits = true});
    EXPECT_THAT(told(), ElementsAre("forget q for g", "forget q for g", "wake wildcard", "wake p",
                                    "wake r", "wake discovery", "done"));
}

TEST_F(GroupsTest, ASeekThatWasRefusedTellsNobody) {
    park_everybody();
    group_store_.on_seek = [](const Seek&, const auto& done) {
        done(fail(Errc::not_found, "Partition not found"));
    };
    groups_.seek({.tenant = kTenant, .queue = "q", .group = "g", .partition = "p", .to = {}},
                 [this](const Result<SeekOutcome>& said) { log_.push_back(said.error().message); });
    EXPECT_THAT(told(), ElementsAre("Partition not found"));
}

TEST_F(GroupsTest, ADeleteTellsEachQueueWhereThereWasSomething) {
    park_everybody();
    group_store_.on_remove = [](const std::string& group, const std::optional<std::string>& queue,
                                bool subscriptions, const auto& done) {
        EXPECT_EQ(group, "g");
        EXPECT_FALSE(queue || subscriptions);
        done(RemovedGroup{.cursors = 1, .subscription = false, .queues = {"q", "s"}});
    };
    groups_.remove(kTenant, "g", {}, false,
                   [this](const Result<RemovedGroup>&) { log_.push_back("done"); });
    EXPECT_THAT(told(), ElementsAre("forget q for g", "forget q for g", "wake wildcard", "wake p",
                                    "wake r", "wake discovery", "forget s for g", "forget s for g",
                                    "wake other queue", "done"));
}

// The pop after a delete registers the group again; that of another group does not.
TEST_F(GroupsTest, ThePopAfterADeleteMakesFirstContactAgain) {
    int contacts = 0;
    store_.on_pop_wildcard = [&](const PopArgs&, const auto& done) {
        ++contacts;
        done(PopResult{});
    };
    store_.on_has_pending = [](const PendingQuery&, const auto& done) { done(false); };
    group_store_.on_remove = [](const std::string&, const std::optional<std::string>&, bool,
                                const auto& done) {
        done(RemovedGroup{.cursors = 1, .subscription = true, .queues = {"q"}});
    };
    const auto pop = [&](const std::string& group) {
        PopRequest request;
        request.tenant = kTenant;
        request.queue = "q";
        request.group = group;
        const auto call = pops_.pop(request, [](const Result<PopBatch>&) {});
        workers_.run_all();
        return std::exchange(contacts, 0);
    };
    EXPECT_EQ(pop("g"), 1);
    EXPECT_EQ(pop("h"), 1);
    EXPECT_EQ(pop("g"), 0) << "the source says that there is nothing";
    groups_.remove(kTenant, "g", "q", true, [](const Result<RemovedGroup>&) {});
    EXPECT_EQ(pop("h"), 0);
    EXPECT_EQ(pop("g"), 1);
}

// K30
TEST_F(GroupsTest, EqualQuestionsThatWaitShareAnAnswer) {
    std::vector<Done<std::string>> asked;
    group_store_.on_list = [&](const std::string&, Done<std::string> done) {
        asked.push_back(std::move(done));
    };
    int answers = 0;
    for (int i = 0; i < 50; ++i) {
        groups_.list(kTenant, [&](const Result<std::optional<std::string>>& said) {
            answers += said && *said == "[]" ? 1 : 0;
        });
    }
    ASSERT_EQ(asked.size(), 1u);
    asked[0](std::string("[]"));
    ASSERT_EQ(asked.size(), 2u) << "those who came while it ran share one run";
    asked[1](std::string("[]"));
    EXPECT_EQ(answers, 50);
    EXPECT_EQ(asked.size(), 2u);
}

// ---- repairs of other brokers -----------------------------------------------------------------

class RepairsTest : public GroupsTest {
protected:
    void start() {
        group_store_.on_repairs = [this](const Done<std::vector<Repair>>& done) {
            ++reads_;
            if (broken_) {
                done(fail(Errc::unavailable, "no database"));
            } else {
                done(rows_);
            }
        };
        reader_ =
            RepairReader::make(group_store_, ticker_, workers_, clock_,
                               [this](const Repair& repair) {
                                   log_.push_back(repair.queue + "/" + repair.group + "/" +
                                                  repair.partition.value_or("*"));
                               },
                               {.interval = 4s, .wait = 1s, .jitter = [this] { return jitter_; }});
        reader_->start();
    }
    static Repair repair(const std::string& queue, const std::string& group, int at,
                         std::optional<std::string> partition = {}) {
        return {.tenant = kTenant,
                .queue = queue,
                .group = group,
                .partition = std::move(partition),
                .partition_id = {},
                .at = WallTime(std::chrono::seconds(at))};
    }
    void pass(Nanoseconds time) {
        ticker_.advance(time);
        workers_.run_all();
    }

    std::vector<Repair> rows_;
    bool broken_ = false;
    double jitter_ = 0.5;
    int reads_ = 0;
    std::shared_ptr<RepairReader> reader_;
};

TEST_F(RepairsTest, EachRowThatIsNotAsItWasIsToldOnce) {
    rows_ = {repair("q", "g", 10)};
    start();
    EXPECT_THAT(log_, ElementsAre("q/g/*")) << "from before this broker listened";
    log_.clear();
    pass(4s);
    EXPECT_THAT(log_, IsEmpty());
    rows_ = {repair("q", "g", 11, "p"), repair("q", "h", 1)};
    pass(4s);
    EXPECT_THAT(log_, ElementsAre("q/g/p", "q/h/*")) << "one of them is older than what was seen";
    log_.clear();
    rows_ = {repair("q", "h", 1)};
    pass(4s);
    EXPECT_THAT(log_, IsEmpty()) << "pruned";
    rows_ = {repair("q", "g", 11), repair("q", "h", 1)};
    pass(4s);
    EXPECT_THAT(log_, ElementsAre("q/g/*")) << "it came back";
}

TEST_F(RepairsTest, AReadThatFailsLosesNothing) {
    start();
    broken_ = true;
    rows_ = {repair("q", "g", 10)};
    pass(4s);
    pass(4s);
    EXPECT_THAT(log_, IsEmpty());
    EXPECT_EQ(reads_, 3);
    broken_ = false;
    pass(4s);
    EXPECT_THAT(log_, ElementsAre("q/g/*"));
    log_.clear();
    broken_ = true;
    pass(4s);
    broken_ = false;
    pass(4s);
    EXPECT_THAT(log_, IsEmpty()) << "what was seen before the failure stays seen";
}

TEST_F(RepairsTest, ReadsComeWithJitterAndNeverTwoAtOnce) {
    start();
    for (const double jitter : {0.0, 0.25, 0.999}) {
        jitter_ = jitter;
        const auto before = reads_;
        ASSERT_EQ(ticker_.pending(), 1u);
        pass(6s);
        EXPECT_EQ(reads_, before + 1);
        ASSERT_EQ(ticker_.pending(), 1u);
        const auto next = *ticker_.next() - clock_.now();
        EXPECT_GE(next, 0s);
        EXPECT_LE(next, 5s);
    }
    jitter_ = 0;
    while (*ticker_.next() > clock_.now() + 3s) {
        pass(1ms);
    }
    pass(*ticker_.next() - clock_.now());
    EXPECT_EQ(*ticker_.next() - clock_.now(), 3s);
}

TEST_F(RepairsTest, NothingIsReadAfterTheEnd) {
    start();
    reader_->stop();
    pass(60s);
    EXPECT_EQ(reads_, 1);
    EXPECT_EQ(ticker_.pending(), 0u);
    reader_.reset();
    pass(60s);
    EXPECT_EQ(reads_, 1);
}

// The whole way: a row of another broker, what this one believes, who waits.
TEST_F(RepairsTest, F43_ARepairOfAnotherBrokerIsMadeHereAsIfThisOneHadMoved) {
    group_store_.on_repairs = [this](const Done<std::vector<Repair>>& done) { done(rows_); };
    reader_ = RepairReader::make(group_store_, ticker_, workers_, clock_,
                                 [this](const Repair& repair) { moved_.tell(repair); },
                                 {.interval = 4s, .wait = 1s});
    reader_->start();
    park_everybody();
    auto one = repair("q", "g", 10, "p");
    one.partition_id = test::uuid_of(7);
    rows_ = {one};
    reader_->stop(); // by hand from here on: the parking has timers too
    reader_->start();
    EXPECT_THAT(log_, ElementsAre("mark q/p for g", "released q for g", "mark q/p for g",
                                  "released q for g", "wake wildcard", "wake p", "wake discovery"));
    log_.clear();
    rows_ = {repair("q", "g", 11, "p")}; // its partition is gone
    reader_->stop();
    reader_->start();
    EXPECT_THAT(log_, ElementsAre("forget q for g", "forget q for g", "wake r"));
    reader_->stop();
}

} // namespace
} // namespace queen::broker
