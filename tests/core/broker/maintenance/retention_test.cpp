#include "broker/maintenance/retention.hpp"
#include "support/manual_clock.hpp"
#include "support/scripted_maintenance.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

namespace queen::broker {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

class FakeTurn final : public TaskTurn {
public:
    bool over() const noexcept override { return is_over; }
    void finish(Result<void> result) override { outcome = std::move(result); }
    std::string ended() const {
        return !outcome ? "no" : !*outcome ? outcome->error().message : "well";
    }
    bool is_over = false;
    std::optional<Result<void>> outcome;
};

Uuid id_of(int n) {
    Uuid id;
    id.bytes[15] = static_cast<std::uint8_t>(n);
    id.bytes[0] = 1;
    return id;
}
WallTime at(std::int64_t seconds) {
    return WallTime{std::chrono::seconds(seconds)};
}

class RetentionTaskTest : public testing::Test {
protected:
    RetentionTaskTest() {
        store_.on_due = [this](DueWork work, std::optional<DueKey> after, std::int32_t limit,
                               const auto& done) {
            asked_.push_back({work, after, limit});
            std::vector<DuePartition> page;
            for (const DuePartition& entry : due_[work]) {
                const bool behind = !after || entry.key.partition_id > after->partition_id;
                if (behind && page.size() < static_cast<std::size_t>(limit)) {
                    page.push_back(entry);
                }
            }
            done(page);
        };
        store_.on_retention = [this](const Uuid& id, auto, auto, std::int32_t rows, auto done) {
            EXPECT_EQ(rows, 7);
            stepped_.push_back(id.bytes[15]);
            steps_.push_back(std::move(done));
        };
    }

    /// n partitions with messages that are `age` old by the plain limit, or only by the other.
    void due(int n, bool aged = true) {
        due_[DueWork::retention].clear();
        for (int i = 1; i <= n; ++i) {
            due_[DueWork::retention].push_back({{id_of(99), at(100), id_of(i)},
                                                aged ? std::optional(at(200)) : std::nullopt,
                                                at(300)});
        }
    }
    Retention& make(std::size_t parallel = 1, std::size_t cap = 0) {
        retention_ = std::make_unique<Retention>(store_, clock_,
                                                 Retention::Options{.batch = 7,
                                                                    .parallel = parallel,
                                                                    .due_cap = cap,
                                                                    .cleanup = true,
                                                                    .idle = 720h,
                                                                    .history = 2160h,
                                                                    .wait = 30s});
        return *retention_;
    }
    std::shared_ptr<FakeTurn> run() {
        auto turn = std::make_shared<FakeTurn>();
        retention_->run(turn);
        return turn;
    }
    /// Answers the oldest step: so many segments went, and more is left or not.
    void answer(std::int64_t segments, bool done = true) {
        ASSERT_FALSE(steps_.empty());
        auto step = std::move(steps_.front());
        steps_.pop_front();
        step(RetentionStep{{segments, segments * 10, segments * 100}, {}, done});
    }
    std::vector<int> stepped() { return std::exchange(stepped_, {}); }

    struct Asked {
        DueWork work;
        std::optional<DueKey> after;
        std::int32_t limit;
    };
    test::ManualClock clock_;
    test::ScriptedRetention store_;
    std::map<DueWork, std::vector<DuePartition>> due_;
    std::vector<Asked> asked_;
    std::vector<int> stepped_;
    std::deque<Done<RetentionStep>> steps_;
    std::unique_ptr<Retention> retention_;
};

TEST_F(RetentionTaskTest, PhasesComeOneAfterTheOther) {
    std::vector<std::string> order;
    due(1);
    due_[DueWork::txns] = {{{id_of(99), at(1), id_of(5)}, at(50), {}}};
    due_[DueWork::max_wait] = {{{id_of(99), at(1), id_of(6)}, at(60), {}}};
    store_.on_retention = [&](const Uuid& id, auto cutoff, auto completed, auto, auto done) {
        EXPECT_EQ(id, id_of(1));
        EXPECT_EQ(cutoff, at(200));
        EXPECT_EQ(completed, at(300));
        order.emplace_back("retention");
        done(RetentionStep{{2, 20, 200}, {1, 5, 50}, true});
    };
    store_.on_purge = [&](const Uuid& id, WallTime cutoff, auto, auto done) {
        EXPECT_EQ(id, id_of(5));
        EXPECT_EQ(cutoff, at(50));
        order.emplace_back("hashes");
        done(RowsStep{3, true});
    };
    store_.on_max_wait = [&](const Uuid& id, WallTime cutoff, auto, auto done) {
        EXPECT_EQ(id, id_of(6));
        EXPECT_EQ(cutoff, at(60));
        order.emplace_back("max wait");
        done(RetentionStep{{4, 40, 400}, {}, true});
    };
    store_.on_cleanup = [&](auto idle, auto, auto after, auto done) {
        EXPECT_EQ(idle, 720h);
        order.emplace_back(after ? "cleanup 2" : "cleanup");
        done(CleanupStep{2, after ? std::nullopt : std::optional(CleanupKey{at(1), id_of(9)})});
    };
    store_.on_history = [&](auto age, auto, auto done) {
        EXPECT_EQ(age, 2160h);
        order.emplace_back("records");
        done(RowsStep{5, order.size() > 6});
    };
    make();
    EXPECT_EQ(run()->ended(), "well");
    EXPECT_THAT(order, ElementsAre("retention", "hashes", "max wait", "cleanup", "cleanup 2",
                                   "records", "records"));
    const auto stats = retention_->stats();
    EXPECT_EQ(stats.removed[0].segments, 2);
    EXPECT_EQ(stats.removed[1].messages, 5);
    EXPECT_EQ(stats.removed[2].bytes, 400);
    EXPECT_EQ(stats.hash_rows, 3);
    EXPECT_EQ(stats.partitions, 4);
    EXPECT_EQ(stats.records, 10);
    EXPECT_EQ(stats.steps, 7u);
    EXPECT_THAT(stats.due, ElementsAre(1u, 1u, 1u));
}

TEST_F(RetentionTaskTest, CleanupsAreAMinuteApart) {
    int cleanups = 0;
    store_.on_cleanup = [&](auto, auto, auto, auto done) {
        ++cleanups;
        done(CleanupStep{});
    };
    make();
    run();
    clock_.advance(59s);
    run();
    EXPECT_EQ(cleanups, 1);
    clock_.advance(1s);
    run();
    EXPECT_EQ(cleanups, 2);
}

TEST_F(RetentionTaskTest, FewStepsAtATimeAndWhoHasMoreGoesToTheEnd) {
    due(4);
    make(2);
    const auto turn = run();
    EXPECT_THAT(stepped(), ElementsAre(1, 2));
    answer(7, false); // 1 has more
    EXPECT_THAT(stepped(), ElementsAre(3));
    answer(1);
    EXPECT_THAT(stepped(), ElementsAre(4));
    answer(1);
    EXPECT_THAT(stepped(), ElementsAre(1));
    answer(1);
    answer(1);
    EXPECT_EQ(turn->ended(), "well");
    EXPECT_THAT(stepped(), IsEmpty());
}

// RT-10
TEST_F(RetentionTaskTest, WhatLosesNothingIsLeftAloneForLongerAndLonger) {
    due(1, false);
    make();
    std::vector<int> turns;
    for (int turn = 1; turn <= 60; ++turn) {
        const auto ran = run();
        if (!steps_.empty()) {
            turns.push_back(turn);
            answer(0);
        }
        EXPECT_EQ(ran->ended(), "well");
    }
    EXPECT_THAT(turns, ElementsAre(1, 9, 25, 57));
    EXPECT_EQ(retention_->stats().backed_off, 56u);
    // Something went elsewhere: its oldest message is another one.
    due_[DueWork::retention][0].key.oldest_at = at(150);
    run();
    answer(1);
    run();
    EXPECT_EQ(steps_.size(), 1u) << "it lost something, and is looked at again";
}

TEST_F(RetentionTaskTest, WhatThePlainLimitTakesIsNeverLeftAlone) {
    due(1, false);
    make();
    run();
    answer(0);
    due(1, true);
    run();
    EXPECT_EQ(steps_.size(), 1u);
    answer(1);
}

TEST_F(RetentionTaskTest, ATurnLooksAtSoManyAndTheNextOneGoesOnBehindThem) {
    due(5, false);
    make(1, 2);
    for (int i = 0; i < 2; ++i) {
        const auto turn = run();
        answer(0);
        answer(0);
        EXPECT_EQ(turn->ended(), "well");
    }
    EXPECT_THAT(stepped(), ElementsAre(1, 2, 3, 4));
    run();
    answer(0);
    EXPECT_THAT(stepped(), ElementsAre(5));
    run(); // from the front again, where both are left alone
    EXPECT_THAT(stepped(), IsEmpty());
    EXPECT_EQ(asked_.front().limit, 2);
}

TEST_F(RetentionTaskTest, ALockedRowIsForLaterAndAnotherFailureEndsTheTurn) {
    due(3);
    make();
    const auto turn = run();
    auto step = std::move(steps_.front());
    steps_.pop_front();
    step(fail(Errc::transient, "locked", "55P03"));
    EXPECT_THAT(stepped(), ElementsAre(1, 2));
    step = std::move(steps_.front());
    steps_.pop_front();
    step(fail(Errc::unavailable, "the database is away"));
    EXPECT_EQ(turn->ended(), "the database is away");
    EXPECT_THAT(stepped(), IsEmpty());
    EXPECT_EQ(retention_->stats().failed_steps, 2u);
}

TEST_F(RetentionTaskTest, ATurnThatIsOverStopsBetweenTwoSteps) {
    due(3);
    make();
    const auto turn = run();
    turn->is_over = true;
    answer(1);
    ASSERT_TRUE(turn->outcome && !*turn->outcome);
    EXPECT_EQ(turn->outcome->error().code, Errc::shutting_down);
    EXPECT_THAT(stepped(), ElementsAre(1));
}

TEST_F(RetentionTaskTest, TheWalkGoesPageByPageAndIsCutShort) {
    std::vector<std::optional<Uuid>> pages;
    store_.on_walk = [&](std::optional<Uuid> after, auto, auto done) {
        pages.push_back(after);
        done(WalkStep{100, 3, pages.size() < 3 ? std::optional(id_of(4)) : std::nullopt});
    };
    make();
    auto turn = std::make_shared<FakeTurn>();
    retention_->walk(turn);
    EXPECT_EQ(turn->ended(), "well");
    EXPECT_EQ(pages, (std::vector<std::optional<Uuid>>{std::nullopt, id_of(4), id_of(4)}));
    EXPECT_EQ(retention_->stats().repaired, 9u);
    turn = std::make_shared<FakeTurn>();
    turn->is_over = true;
    retention_->walk(turn);
    ASSERT_TRUE(turn->outcome && !*turn->outcome);
    EXPECT_EQ(turn->outcome->error().code, Errc::shutting_down);
}

} // namespace
} // namespace queen::broker
