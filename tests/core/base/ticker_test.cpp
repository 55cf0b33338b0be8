#include "base/clock.hpp"
#include "base/ticker.hpp"
#include "support/manual_clock.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <future>
#include <iterator>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace queen {
namespace {

using namespace std::chrono_literals;
using test::ManualClock;

/// Returns once all tasks that are due have run. The first task wakes a thread that sleeps by real
/// time and cannot see that the test moved the clock; the second is the last of its deadline.
void drain(TickerThread& ticker, const Clock& clock) {
    ticker.at(SteadyTime::min(), [] {});
    std::promise<void> ran;
    ticker.at(clock.now(), [&] { ran.set_value(); });
    ran.get_future().wait();
}

std::ptrdiff_t threads_of_this_process() {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

TEST(TickerThread, RunsTasksByDeadlineThenByOrderOfArrival) {
    ManualClock clock;
    std::vector<int> order;
    TickerThread ticker(clock);
    const SteadyTime start = clock.now();
    ticker.at(start + 3s, [&] { order.push_back(3); });
    ticker.at(start + 1s, [&] { order.push_back(1); });
    ticker.at(start + 2s, [&] { order.push_back(20); });
    ticker.at(start + 2s, [&] { order.push_back(21); });
    ticker.at(start + 4s, [&] { order.push_back(4); });
    drain(ticker, clock);
    EXPECT_TRUE(order.empty());
    clock.advance(3s);
    drain(ticker, clock);
    EXPECT_EQ(order, (std::vector{1, 20, 21, 3}));
}

TEST(TickerThread, RunsOnItsOwnThread) {
    TickerThread ticker(SystemClock::instance());
    std::promise<std::thread::id> ran;
    ticker.at(SteadyTime::min(), [&] { ran.set_value(std::this_thread::get_id()); });
    EXPECT_NE(ran.get_future().get(), std::this_thread::get_id());
}

TEST(TickerThread, WaitsForTheDeadlineInRealTime) {
    const SystemClock& clock = SystemClock::instance();
    TickerThread ticker(clock);
    const SteadyTime deadline = clock.now() + 20ms;
    std::promise<SteadyTime> ran;
    ticker.at(deadline, [&] { ran.set_value(clock.now()); });
    EXPECT_GE(ran.get_future().get(), deadline);
}

TEST(TickerThread, AnEarlierDeadlineShortensTheWait) {
    const SystemClock& clock = SystemClock::instance();
    TickerThread ticker(clock);
    std::atomic<bool> late_ran = false;
    ticker.at(SteadyTime::max(), [&] { late_ran = true; });
    std::promise<void> ran;
    ticker.at(clock.now() + 1ms, [&] { ran.set_value(); });
    ran.get_future().wait(); // for ever, if the thread still slept towards max()
    EXPECT_FALSE(late_ran);
}

TEST(TickerThread, ATaskMayAddAndCancelTasks) {
    ManualClock clock;
    TickerThread ticker(clock);
    std::vector<int> order;
    ticker.at(clock.now(), [&] {
        order.push_back(1);
        const auto never = ticker.at(clock.now(), [&] { order.push_back(-1); });
        ticker.at(clock.now(), [&] { order.push_back(2); });
        ticker.cancel(never);
    });
    drain(ticker, clock);
    drain(ticker, clock); // behind what the first task added
    EXPECT_EQ(order, (std::vector{1, 2}));
}

TEST(TickerThread, ACancelledTaskDoesNotRunAndIsDestroyedAtOnce) {
    ManualClock clock;
    TickerThread ticker(clock);
    auto held = std::make_shared<int>(0);
    const std::weak_ptr<int> watch = held;
    const auto id = ticker.at(clock.now() + 1s, [held = std::move(held)] { ++*held; });
    EXPECT_FALSE(watch.expired());
    ticker.cancel(id);
    EXPECT_TRUE(watch.expired());
    clock.advance(1h);
    drain(ticker, clock);
}

TEST(TickerThread, CancelIgnoresIdsThatAreUnknownOrDone) {
    ManualClock clock;
    TickerThread ticker(clock);
    ticker.cancel(0);
    ticker.cancel(77);
    int ran = 0;
    const auto id = ticker.at(clock.now(), [&] { ++ran; });
    drain(ticker, clock);
    ticker.cancel(id);
    ticker.cancel(id);
    drain(ticker, clock);
    EXPECT_EQ(ran, 1);
}

TEST(TickerThread, AFinishedTaskIsDestroyed) {
    ManualClock clock;
    TickerThread ticker(clock);
    auto held = std::make_shared<int>(0);
    const std::weak_ptr<int> watch = held;
    ticker.at(clock.now(), [held = std::move(held)] { ++*held; });
    drain(ticker, clock);
    EXPECT_TRUE(watch.expired());
}

// What a task holds may belong to someone who calls the ticker in its destructor.
TEST(TickerThread, DestroyingATaskMayCallTheTicker) {
    ManualClock clock;
    TickerThread ticker(clock);
    struct Canceller {
        TickerThread& ticker;
        ~Canceller() { ticker.cancel(1); }
    };
    const auto holding = [&] { return std::make_shared<Canceller>(ticker); };
    ticker.cancel(ticker.at(clock.now() + 1h, [held = holding()] {}));
    ticker.at(clock.now(), [held = holding()] {});
    drain(ticker, clock);
}

TEST(TickerThread, ManyCancelledDeadlinesLeaveTheOthersInOrder) {
    ManualClock clock;
    TickerThread ticker(clock);
    constexpr int kTasks = 10'000;
    std::vector<int> order;
    std::vector<Ticker::Id> ids;
    for (int i = 0; i < kTasks; ++i) {
        ids.push_back(ticker.at(clock.now() + 1s + std::chrono::milliseconds((i * 7919) % kTasks),
                                [&order, i] { order.push_back((i * 7919) % kTasks); }));
    }
    std::vector<int> expected;
    for (int i = 0; i < kTasks; ++i) {
        if (i % 100 != 0) {
            ticker.cancel(ids[static_cast<std::size_t>(i)]);
        } else {
            expected.push_back((i * 7919) % kTasks);
        }
    }
    std::sort(expected.begin(), expected.end());
    clock.advance(1h);
    drain(ticker, clock);
    EXPECT_EQ(order, expected);
}

TEST(TickerThread, TheThreadStartsWithTheFirstTask) {
    ManualClock clock;
    const auto before = threads_of_this_process();
    TickerThread ticker(clock);
    ticker.cancel(1);
    EXPECT_EQ(threads_of_this_process(), before);
    drain(ticker, clock);
    EXPECT_EQ(threads_of_this_process(), before + 1);
}

/// Counts how often the ticker looks at the time: once per wake with something pending.
class CountingClock final : public Clock {
public:
    SteadyTime now() const noexcept override {
        ++reads;
        return {};
    }
    mutable std::atomic<int> reads = 0;
};

TEST(TickerThread, AnIdleTickerDoesNotLookAtTheClock) {
    CountingClock clock;
    TickerThread ticker(clock);
    for (int i = 1; i <= 100; ++i) {
        std::promise<void> ran;
        ticker.at(SteadyTime::min(), [&] { ran.set_value(); });
        ran.get_future().wait();
        EXPECT_EQ(clock.reads, i);
    }
}

// "Now plus the wait" must not overflow into the past: the thread would spin.
TEST(TickerThread, AFarDeadlineIsWaitedForAsleep) {
    CountingClock clock;
    TickerThread ticker(clock);
    ticker.at(SteadyTime::max(), [] {});
    constexpr int kRounds = 100;
    for (int i = 0; i < kRounds; ++i) {
        std::promise<void> ran;
        ticker.at(SteadyTime::min(), [&] { ran.set_value(); });
        ran.get_future().wait();
    }
    EXPECT_LE(clock.reads, 2 * kRounds + 10); // one to run a task, one to wait again
}

TEST(TickerThread, DestructionDropsWhatIsPendingAndWaitsForWhatRuns) {
    ManualClock clock;
    std::atomic<bool> finished = false;
    std::atomic<bool> dropped_ran = false;
    std::promise<void> begun;
    std::promise<void> go_on;
    std::thread releaser;
    {
        TickerThread ticker(clock);
        ticker.at(clock.now() + 1h, [&] { dropped_ran = true; });
        ticker.at(clock.now(), [&] {
            begun.set_value();
            go_on.get_future().wait();
            finished = true;
        });
        begun.get_future().wait();
        releaser = std::thread([&] { go_on.set_value(); });
    }
    EXPECT_TRUE(finished);
    EXPECT_FALSE(dropped_ran);
    releaser.join();
}

TEST(TickerThread, ATickerThatNeverRanCanBeDestroyed) {
    ManualClock clock;
    TickerThread ticker(clock);
}

TEST(TickerThread, TakesTasksFromManyThreads) {
    const SystemClock& clock = SystemClock::instance();
    TickerThread ticker(clock);
    constexpr int kThreads = 4;
    constexpr int kTasks = 2'000;
    std::atomic<int> ran = 0;
    std::atomic<int> cancelled = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&] {
            for (int i = 0; i < kTasks; ++i) {
                const auto id = ticker.at(clock.now(), [&] { ++ran; });
                if (i % 2 == 0) {
                    const auto far = ticker.at(SteadyTime::max(), [&] { ++cancelled; });
                    ticker.cancel(far);
                } else {
                    ticker.cancel(id - 1); // perhaps another thread's, perhaps done
                }
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    drain(ticker, clock);
    EXPECT_LE(ran, kThreads * kTasks);
    EXPECT_GE(ran, kThreads * kTasks / 2);
    EXPECT_EQ(cancelled, 0);
}

TEST(TickerThreadDeathTest, ATaskIsRequired) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    ManualClock clock;
    TickerThread ticker(clock);
    EXPECT_EXIT(ticker.at(clock.now(), nullptr), testing::KilledBySignal(SIGABRT), "needs a task");
}

} // namespace
} // namespace queen
