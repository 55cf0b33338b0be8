// The hand-driven clock, ticker and workers that other tests rely on.
#include "base/clock.hpp"
#include "support/manual_clock.hpp"
#include "support/manual_ticker.hpp"
#include "support/manual_workers.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

namespace queen::test {
namespace {

using namespace std::chrono_literals;

TEST(ManualClock, MovesOnlyWhenTold) {
    ManualClock clock;
    const SteadyTime start = clock.now();
    EXPECT_EQ(clock.now(), start);
    clock.advance(5s);
    EXPECT_EQ(clock.now(), start + 5s);
    clock.set(start - 1s);
    EXPECT_EQ(clock.now(), start - 1s);
}

TEST(ManualTicker, RunsWhatIsDueInOrder) {
    ManualClock clock;
    ManualTicker ticker(clock);
    std::vector<int> order;
    ticker.at(clock.now() + 2s, [&] { order.push_back(2); });
    ticker.at(clock.now() + 1s, [&] { order.push_back(10); });
    ticker.at(clock.now() + 1s, [&] { order.push_back(11); });
    EXPECT_EQ(ticker.next(), clock.now() + 1s);
    EXPECT_EQ(ticker.run_due(), 0u);
    clock.advance(1s);
    EXPECT_TRUE(ticker.run_one());
    EXPECT_EQ(order, (std::vector{10}));
    EXPECT_EQ(ticker.run_due(), 1u);
    EXPECT_EQ(order, (std::vector{10, 11}));
    EXPECT_EQ(ticker.pending(), 1u);
}

TEST(ManualTicker, AdvanceStopsAtEachDeadline) {
    ManualClock clock;
    ManualTicker ticker(clock);
    const SteadyTime start = clock.now();
    std::vector<Nanoseconds> seen;
    const std::function<void()> every_second = [&] {
        seen.push_back(clock.now() - start);
        ticker.at(clock.now() + 1s, every_second);
    };
    ticker.at(start + 1s, every_second);
    EXPECT_EQ(ticker.advance(3500ms), 3u);
    EXPECT_EQ(seen, (std::vector<Nanoseconds>{1s, 2s, 3s}));
    EXPECT_EQ(clock.now(), start + 3500ms);
}

TEST(ManualTicker, CancelledTasksDoNotRun) {
    ManualClock clock;
    ManualTicker ticker(clock);
    bool ran = false;
    const auto id = ticker.at(clock.now(), [&] { ran = true; });
    ticker.cancel(id);
    ticker.cancel(id);
    EXPECT_EQ(ticker.run_due(), 0u);
    EXPECT_FALSE(ran);
    EXPECT_EQ(ticker.next(), std::nullopt);
}

TEST(ManualWorkers, RunWhatWasPostedWhenTold) {
    ManualWorkers workers;
    std::vector<int> order;
    workers.post([&] {
        order.push_back(1);
        workers.post([&] { order.push_back(3); });
    });
    workers.post([&] { order.push_back(2); });
    EXPECT_TRUE(order.empty());
    EXPECT_EQ(workers.pending(), 2u);
    EXPECT_TRUE(workers.run_one(1));
    EXPECT_EQ(order, (std::vector{2}));
    EXPECT_EQ(workers.run_all(), 2u);
    EXPECT_EQ(order, (std::vector{2, 1, 3}));
    EXPECT_FALSE(workers.run_one());
}

TEST(SystemClock, SteadyTimeNeverGoesBackAndWallTimeIsOfThisAge) {
    const SystemClock& clock = SystemClock::instance();
    const SteadyTime first = clock.now();
    EXPECT_LE(first, clock.now());
    EXPECT_GT(SystemClock::wall(),
              WallTime(std::chrono::sys_days(std::chrono::year(2024) / 1 / 1)));
}

} // namespace
} // namespace queen::test
