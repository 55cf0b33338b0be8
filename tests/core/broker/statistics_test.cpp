#include "broker/cluster_figures.hpp"
#include "broker/statistics.hpp"
#include "support/manual_clock.hpp"
#include "support/manual_ticker.hpp"
#include "support/manual_workers.hpp"
#include "support/scripted_system_store.hpp"

#include <gtest/gtest.h>

namespace queen::broker {
namespace {

using namespace std::chrono_literals;

class StatisticsTest : public testing::Test {
protected:
    StatisticsTest() {
        store_.on_refresh_statistics = [this](std::optional<Uuid> after, std::int32_t,
                                              Done<StatisticsStep> done) {
            steps_.push_back({after, std::move(done)});
        };
        store_.on_statistics_refreshed = [this](std::chrono::milliseconds took,
                                                const Done<void>& done) {
            noted_.push_back(took);
            done({});
        };
        store_.on_refresh_timer_statistics = [this](const Done<void>& done) {
            timers_counted_after_.push_back(noted_.size());
            done(counting_);
        };
        store_.on_statistics_state = [this](const Done<StatisticsState>& done) { done(state_); };
    }
    Done<Refreshed> heard() {
        return [this](const Result<Refreshed>& outcome) { heard_.push_back(outcome); };
    }
    /// Answers the oldest step; `last`: nothing is left after it.
    void step(bool last) {
        ASSERT_FALSE(steps_.empty());
        const auto [after, done] = std::move(steps_.front());
        steps_.erase(steps_.begin());
        clock_.advance(300ms);
        done(StatisticsStep{.queues = 5,
                            .partitions = 7,
                            .written = 1,
                            .next = last ? std::nullopt : std::optional(Uuid{})});
    }

    test::ManualClock clock_;
    test::ScriptedSystemStore store_;
    StatisticsState state_;
    std::vector<std::pair<std::optional<Uuid>, Done<StatisticsStep>>> steps_;
    std::vector<std::chrono::milliseconds> noted_;
    std::vector<std::size_t> timers_counted_after_; ///< as many that were noted
    Result<void> counting_;
    std::vector<Result<Refreshed>> heard_;
    FigureReads reads_{clock_, 30s};
    Statistics statistics_{store_, reads_, clock_, {}};
};

TEST_F(StatisticsTest, ARefreshEndsWithItsLastStep) {
    statistics_.refresh(heard());
    step(false);
    EXPECT_TRUE(noted_.empty());
    EXPECT_TRUE(heard_.empty());
    step(true);
    ASSERT_EQ(heard_.size(), 1u);
    EXPECT_TRUE(heard_[0]->refreshed);
    EXPECT_EQ(heard_[0]->queues, 10);
    EXPECT_EQ(heard_[0]->partitions, 14);
    EXPECT_EQ(heard_[0]->written, 2);
    EXPECT_EQ(noted_, std::vector<std::chrono::milliseconds>{600ms});
}

TEST_F(StatisticsTest, AFailedStepEndsItAndTheAgeStays) {
    statistics_.refresh(heard());
    steps_[0].second(fail(Errc::timeout, "slow"));
    ASSERT_EQ(heard_.size(), 1u);
    EXPECT_EQ(heard_[0].error().code, Errc::timeout);
    EXPECT_TRUE(noted_.empty());
    steps_.clear();
    statistics_.refresh(heard());
    EXPECT_EQ(steps_.size(), 1u) << "the next one begins anew";
}

// ST-11
TEST_F(StatisticsTest, TimersAreCountedAfterTheFiguresOfQueuesHaveTheirPlace) {
    statistics_.refresh(heard());
    step(false);
    EXPECT_TRUE(timers_counted_after_.empty());
    step(true);
    EXPECT_EQ(timers_counted_after_, std::vector<std::size_t>{1});
    ASSERT_EQ(heard_.size(), 1u);
    EXPECT_TRUE(heard_[0]);
    counting_ = fail(Errc::timeout, "too many");
    statistics_.refresh(heard());
    step(true);
    ASSERT_EQ(heard_.size(), 2u);
    EXPECT_EQ(heard_[1].error().message, "too many") << "somebody hears of it";
    EXPECT_EQ(noted_.size(), 2u);
    statistics_.refresh(heard());
    EXPECT_EQ(steps_.size(), 1u);
}

// K30: nobody hears of figures older than his question, and a crowd costs two refreshes.
TEST_F(StatisticsTest, WhoAsksMeanwhileSharesTheNextOne) {
    for (int i = 0; i < 100; ++i) {
        statistics_.refresh(heard());
    }
    ASSERT_EQ(steps_.size(), 1u);
    step(true);
    EXPECT_EQ(heard_.size(), 1u);
    ASSERT_EQ(steps_.size(), 1u);
    step(true);
    EXPECT_EQ(heard_.size(), 100u);
    EXPECT_TRUE(steps_.empty());
}

// ST-10
TEST_F(StatisticsTest, AScheduledRefreshRestsFourTimesAsLongAsTheLastOneTook) {
    state_ = {.age = 9'999ms, .took = 2'000ms};
    statistics_.refresh_when_due([] { return false; }, heard());
    ASSERT_EQ(heard_.size(), 1u);
    EXPECT_FALSE(heard_[0]->refreshed);
    EXPECT_TRUE(steps_.empty());
    state_.age = 10'000ms;
    statistics_.refresh_when_due([] { return false; }, heard());
    EXPECT_EQ(steps_.size(), 1u);
    state_ = {};
    statistics_.refresh_when_due([] { return false; }, heard());
    step(true);
    step(true);
    EXPECT_EQ(heard_.size(), 3u);
    state_ = {.age = 1ms, .took = 2'000ms};
    statistics_.refresh(heard());
    EXPECT_EQ(steps_.size(), 1u) << "who asks for it gets it";
    step(true);
}

TEST_F(StatisticsTest, ATurnThatIsOverEndsItBetweenTwoSteps) {
    bool over = false;
    statistics_.refresh_when_due([&] { return over; }, heard());
    over = true;
    step(false);
    ASSERT_EQ(heard_.size(), 1u);
    EXPECT_EQ(heard_[0].error().code, Errc::shutting_down);
    EXPECT_TRUE(steps_.empty());
    EXPECT_TRUE(noted_.empty());
}

TEST_F(StatisticsTest, SomebodyWhoAskedKeepsItGoing) {
    bool over = false;
    statistics_.refresh(heard());
    statistics_.refresh_when_due([&] { return over; }, heard());
    statistics_.refresh(heard());
    step(true);
    over = true;
    step(false);
    step(true);
    EXPECT_EQ(heard_.size(), 3u);
    EXPECT_TRUE(heard_[2].has_value());
}

class ClusterFiguresTest : public testing::Test {
protected:
    ClusterFiguresTest() {
        store_.on_cluster_figures = [this](std::int32_t most, Done<ClusterFigures> done) {
            EXPECT_EQ(most, 500);
            asked_.push_back(std::move(done));
        };
    }
    void ask() {
        reads_.ask([this](const ClusterFigureReads::Figures& figures) {
            heard_.push_back(figures ? figures->dead_letters : -1);
        });
    }
    void answer(std::int64_t letters) {
        const auto done = std::move(asked_.front());
        asked_.erase(asked_.begin());
        ClusterFigures figures;
        figures.dead_letters = letters;
        done(figures);
    }

    test::ManualClock clock_;
    test::ManualTicker ticker_{clock_};
    test::ManualWorkers workers_;
    test::ScriptedSystemStore store_;
    std::vector<Done<ClusterFigures>> asked_;
    std::vector<std::int64_t> heard_; ///< -1: without figures
    ClusterFigureReads reads_{store_, ticker_, workers_, clock_, {}};
};

TEST_F(ClusterFiguresTest, OneAnswerServesEverybodyForFiveSeconds) {
    ask();
    ask();
    ASSERT_EQ(asked_.size(), 1u);
    answer(7);
    EXPECT_EQ(heard_, (std::vector<std::int64_t>{7, 7}));
    ticker_.advance(4'999ms);
    ask();
    EXPECT_EQ(heard_.size(), 3u);
    EXPECT_TRUE(asked_.empty());
    ticker_.advance(1ms);
    ask();
    EXPECT_EQ(asked_.size(), 1u);
    answer(8);
    EXPECT_EQ(heard_.back(), 8);
}

// MET-2
TEST_F(ClusterFiguresTest, NobodyWaitsLongerThanASecond) {
    ask();
    ticker_.advance(999ms);
    workers_.run_all();
    EXPECT_TRUE(heard_.empty());
    ticker_.advance(1ms);
    workers_.run_all();
    EXPECT_EQ(heard_, std::vector<std::int64_t>{-1});
    ticker_.advance(60s);
    ask();
    EXPECT_EQ(heard_.back(), -1) << "at once, while the first question is on its way";
    EXPECT_EQ(asked_.size(), 1u) << "and nobody asks a second one";
    answer(9);
    ask();
    EXPECT_EQ(heard_.back(), 9);
}

TEST_F(ClusterFiguresTest, AFailureIsNotAskedAboutForFiveSeconds) {
    ask();
    asked_.front()(fail(Errc::unavailable, "no database"));
    asked_.clear();
    ask();
    EXPECT_EQ(heard_, (std::vector<std::int64_t>{-1, -1}));
    EXPECT_TRUE(asked_.empty());
    ticker_.advance(5s);
    ask();
    EXPECT_EQ(asked_.size(), 1u);
    answer(3);
    EXPECT_EQ(heard_.back(), 3);
}

} // namespace
} // namespace queen::broker
