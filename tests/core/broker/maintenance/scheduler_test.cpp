#include "broker/maintenance/scheduler.hpp"
#include "support/manual_clock.hpp"
#include "support/manual_ticker.hpp"
#include "support/manual_workers.hpp"
#include "support/scripted_maintenance.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

namespace queen::broker {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

class SchedulerTest : public testing::Test {
protected:
    SchedulerTest() {
        tasks_.on_register = [this](const std::string& task, auto period, const auto& done) {
            log_.push_back("register " + task + " " + std::to_string(period.count()));
            done(registered_);
        };
        tasks_.on_claim = [this](const std::string& task, const std::string& holder, auto lease,
                                 auto done) {
            log_.push_back("claim " + task + " " + holder + " " + std::to_string(lease.count()));
            if (due_) {
                due_ = false;
                done(std::optional(TaskClaim{++fence_, 1500ms}));
            } else {
                done(std::optional<TaskClaim>{});
            }
        };
        tasks_.on_release = [this](const std::string& task, std::int64_t fence, bool complete,
                                   const auto& done) {
            log_.push_back("release " + task + " " + std::to_string(fence) +
                           (complete ? "" : " cut short"));
            done(true);
        };
    }

    Scheduler& start(std::chrono::milliseconds period = 20s) {
        scheduler_.add({"sweep", period, [this](TaskTurnPtr turn) { turns_.push_back(turn); }});
        scheduler_.start();
        return scheduler_;
    }
    std::vector<std::string> log() { return std::exchange(log_, {}); }

    test::ManualClock clock_;
    test::ManualTicker ticker_{clock_};
    test::ManualWorkers workers_;
    test::ScriptedTasks tasks_;
    Result<void> registered_;
    bool due_ = false;
    std::int64_t fence_ = 0;
    std::vector<std::string> log_, warnings_;
    std::vector<TaskTurnPtr> turns_;
    Scheduler scheduler_{tasks_,
                         ticker_,
                         workers_,
                         clock_,
                         {.holder = "me", .wait = 30s, .warn = [this](const std::string& line) {
                              warnings_.push_back(line);
                          }}};
};

TEST_F(SchedulerTest, LooksEachTenthOfThePeriodAndRunsWhatItGets) {
    start(20s);
    EXPECT_THAT(log(), ElementsAre("register sweep 20000", "claim sweep me 60000"));
    ticker_.advance(1999ms);
    EXPECT_THAT(log(), IsEmpty());
    ticker_.advance(1ms);
    EXPECT_THAT(log(), ElementsAre("claim sweep me 60000"));
    due_ = true;
    ticker_.advance(2s);
    EXPECT_THAT(log(), ElementsAre("claim sweep me 60000"));
    EXPECT_THAT(turns_, IsEmpty()) << "on a worker, not in the store's answer";
    workers_.run_all();
    ASSERT_EQ(turns_.size(), 1u);
    EXPECT_TRUE(scheduler_.stats()[0].held);
    EXPECT_EQ(scheduler_.stats()[0].late, 1500ms);
    // While it runs this broker asks for no other turn.
    ticker_.advance(10s);
    EXPECT_THAT(log(), IsEmpty());
    turns_[0]->finish({});
    EXPECT_THAT(log(), ElementsAre("release sweep 1"));
    const auto stats = scheduler_.stats()[0];
    EXPECT_FALSE(stats.held);
    EXPECT_EQ(stats.runs, 1u);
    EXPECT_EQ(stats.duration.sum, 10s);
    ticker_.advance(2s);
    EXPECT_THAT(log(), ElementsAre("claim sweep me 60000"));
}

TEST_F(SchedulerTest, PeriodsGiveLooksAndLeases) {
    EXPECT_EQ(Scheduler::poll_of(100ms), 1s);
    EXPECT_EQ(Scheduler::poll_of(5s), 1s);
    EXPECT_EQ(Scheduler::poll_of(30s), 3s);
    EXPECT_EQ(Scheduler::poll_of(24h), 60s);
    EXPECT_EQ(Scheduler::lease_of(5s), 60s);
    EXPECT_EQ(Scheduler::lease_of(40s), 80s);
    EXPECT_EQ(Scheduler::lease_of(24h), 30min);
}

TEST_F(SchedulerTest, ADatabaseThatIsAwayIsAskedAgain) {
    registered_ = fail(Errc::unavailable, "away");
    start(20s);
    EXPECT_THAT(log(), ElementsAre("register sweep 20000"));
    registered_ = {};
    ticker_.advance(2s);
    EXPECT_THAT(log(), ElementsAre("register sweep 20000", "claim sweep me 60000"));
}

// F-24: the run is told before anybody else may have the turn.
TEST_F(SchedulerTest, F24_ATurnIsOverBeforeItsLeaseIs) {
    due_ = true;
    start(20s);
    workers_.run_all();
    ASSERT_EQ(turns_.size(), 1u);
    clock_.advance(54'999ms);
    EXPECT_FALSE(turns_[0]->over());
    clock_.advance(1ms);
    EXPECT_TRUE(turns_[0]->over());
    turns_[0]->finish(fail(Errc::shutting_down, "cut short"));
    EXPECT_EQ(log().back(), "release sweep 1 cut short");
    EXPECT_EQ(scheduler_.stats()[0].failures, 0u);
    EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(SchedulerTest, AFailureIsGivenBackAndToldOnce) {
    start(20s);
    for (int i = 0; i < 3; ++i) {
        due_ = true;
        ticker_.advance(2s);
        workers_.run_all();
        turns_.back()->finish(fail(Errc::timeout, "too slow"));
        turns_.back()->finish({}); // the first counts
    }
    EXPECT_THAT(warnings_, ElementsAre("maintenance task=sweep fails: too slow"));
    EXPECT_EQ(scheduler_.stats()[0].failures, 3u);
    EXPECT_EQ(log().back(), "release sweep 3");
    due_ = true;
    ticker_.advance(2s);
    workers_.run_all();
    turns_.back()->finish({});
    EXPECT_EQ(warnings_.back(), "maintenance task=sweep works again");
}

TEST_F(SchedulerTest, ATurnThatIsLetGoOfHasFailed) {
    due_ = true;
    start(20s);
    workers_.run_all();
    turns_.clear();
    EXPECT_EQ(scheduler_.stats()[0].failures, 1u);
    EXPECT_EQ(log().back(), "release sweep 1");
}

TEST_F(SchedulerTest, AStopTellsTheTurnAndWaitsUntilItIsGivenBack) {
    due_ = true;
    start(20s);
    workers_.run_all();
    ASSERT_EQ(turns_.size(), 1u);
    std::promise<void> stopped;
    std::thread stopper([&] {
        scheduler_.stop(60s);
        stopped.set_value();
    });
    while (!turns_[0]->over()) {
        std::this_thread::yield();
    }
    turns_[0]->finish(fail(Errc::shutting_down, "cut short"));
    stopped.get_future().get();
    stopper.join();
    EXPECT_EQ(log().back(), "release sweep 1 cut short");
    EXPECT_EQ(ticker_.pending(), 0u);
}

TEST_F(SchedulerTest, AfterAStopNoTurnBegins) {
    Done<std::optional<TaskClaim>> late;
    tasks_.on_claim = [&](auto, auto, auto, auto done) { late = done; };
    start(20s);
    std::thread stopper([&] { scheduler_.stop(0ms); });
    stopper.join();
    late(std::optional(TaskClaim{7, 0ms})); // the claim was on its way
    workers_.run_all();
    EXPECT_THAT(turns_, IsEmpty());
    EXPECT_EQ(log().back(), "release sweep 7 cut short");
    EXPECT_EQ(ticker_.pending(), 0u);
}

} // namespace
} // namespace queen::broker
