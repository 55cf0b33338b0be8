#include "pluginhost/guard.hpp"
#include "support/manual_clock.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <stdexcept>
#include <thread>

namespace queen::pluginhost {
namespace {

using namespace std::chrono_literals;

class GuardTest : public testing::Test {
protected:
    GuardTest() { services_.clock = &clock_; }
    std::int32_t spend(Call call, Nanoseconds time) {
        return guard_.run(call, [&] {
            clock_.advance(time);
            return 0;
        });
    }
    test::ManualClock clock_;
    HostServices services_;
    Guard guard_{"acme", {1ms, 3, 10s}, services_};
};

TEST_F(GuardTest, EveryFaultAndCallHasANameOfItsOwn) {
    std::set<std::string_view> names;
    for (std::size_t i = 0; i < kFaultKinds; ++i) {
        names.insert(to_string(static_cast<Fault>(i)));
    }
    EXPECT_EQ(names.size(), kFaultKinds);
    EXPECT_FALSE(names.contains(""));
    names.clear();
    for (std::size_t i = 0; i < kCalls; ++i) {
        names.insert(to_string(static_cast<Call>(i)));
    }
    EXPECT_EQ(names.size(), kCalls);
    EXPECT_FALSE(names.contains(""));
}

TEST_F(GuardTest, AnAnswerIsHandedOnAndNonZeroIsAFault) {
    EXPECT_EQ(guard_.run(Call::take, [] { return 0; }), 0);
    EXPECT_EQ(guard_.counts().total(), 0u);
    EXPECT_EQ(guard_.run(Call::take, [] { return 5; }), 5);
    EXPECT_EQ(guard_.counts()[Fault::error_return], 1u);
    EXPECT_EQ(guard_.run(
                  Call::reseed_page, [] { return 2; }, 2),
              2);
    EXPECT_EQ(guard_.counts()[Fault::error_return], 1u) << "said to be fine";
}

TEST_F(GuardTest, ACallThatIsGivenThousandsOfRowsHasThatManyTimesTheBudget) {
    const auto walk = [&](std::size_t rows, Nanoseconds time) {
        guard_.run(
            Call::reseed_page,
            [&] {
                clock_.advance(time);
                return 0;
            },
            0, rows);
        return guard_.counts()[Fault::slow_call];
    };
    EXPECT_EQ(walk(10'000, 10ms), 0u);
    EXPECT_EQ(walk(0, 1ms), 0u);
    EXPECT_EQ(walk(1'001, 2ms), 0u);
    EXPECT_EQ(walk(1'000, 1ms + 1ns), 1u);
    EXPECT_EQ(walk(10'000, 10ms + 1ns), 2u);
    EXPECT_EQ(walk(0, 1ms + 1ns), 3u);
}

TEST_F(GuardTest, AnExceptionEndsHere) {
    EXPECT_EQ(guard_.run(Call::mark, []() -> std::int32_t { throw std::runtime_error("x"); }),
              Guard::kThrew);
    EXPECT_EQ(guard_.run(Call::mark, []() -> std::int32_t { throw 1; }), Guard::kThrew);
    EXPECT_EQ(guard_.counts()[Fault::exception], 2u);
    EXPECT_EQ(guard_.counts()[Fault::error_return], 0u);
}

TEST_F(GuardTest, SlowCallsOfDifferentFunctionsDoNotAddUp) {
    for (int i = 0; i < 2; ++i) {
        spend(Call::peek, 2ms);
        spend(Call::take, 2ms);
        spend(Call::mark, 2ms);
    }
    EXPECT_FALSE(guard_.paused());
    spend(Call::take, 2ms);
    EXPECT_TRUE(guard_.paused());
}

// PLG-6: a scrape on a busy machine is slow by chance, and comes as often as somebody likes.
TEST_F(GuardTest, ASlowLookAtTheFiguresIsCountedAndPausesNobody) {
    for (int i = 0; i < 10; ++i) {
        spend(Call::stats, 2ms);
    }
    EXPECT_EQ(guard_.counts()[Fault::slow_call], 10u);
    EXPECT_FALSE(guard_.paused());
}

TEST_F(GuardTest, APauseLastsItsTimeAndTakesThreeMoreToReturn) {
    for (int i = 0; i < 3; ++i) {
        spend(Call::peek, 2ms);
    }
    EXPECT_EQ(guard_.paused_until(), clock_.now() + 10s);
    clock_.advance(10s - 1ns);
    EXPECT_TRUE(guard_.paused());
    clock_.advance(1ns);
    EXPECT_FALSE(guard_.paused());
    spend(Call::peek, 2ms);
    spend(Call::peek, 2ms);
    EXPECT_FALSE(guard_.paused());
    spend(Call::peek, 2ms);
    EXPECT_TRUE(guard_.paused());
    EXPECT_EQ(guard_.counts()[Fault::paused], 2u);
}

TEST_F(GuardTest, CallsThatEndDuringAPauseDoNotProlongIt) {
    for (int i = 0; i < 3; ++i) {
        spend(Call::peek, 2ms);
    }
    const SteadyTime until = guard_.paused_until();
    for (int i = 0; i < 6; ++i) {
        spend(Call::settle, 2ms); // begun before
    }
    EXPECT_EQ(guard_.paused_until(), until);
    EXPECT_EQ(guard_.counts()[Fault::paused], 1u);
}

TEST_F(GuardTest, ScopesAreStaleOncePerPause) {
    EXPECT_FALSE(guard_.stale("q", "g")) << "never paused";
    for (int pause = 0; pause < 2; ++pause) {
        for (int i = 0; i < 3; ++i) {
            spend(Call::peek, 2ms);
        }
        clock_.advance(10s);
        EXPECT_TRUE(guard_.stale("q", "g"));
        EXPECT_FALSE(guard_.stale("q", "g"));
        EXPECT_TRUE(guard_.stale("q", "other"));
        EXPECT_TRUE(guard_.stale("other", "g"));
    }
}

/// On a machine that has other things to do: the thread's own time is moved apart from the clock's.
class BusyGuardTest : public GuardTest {
protected:
    BusyGuardTest() {
        used_ = 0ns;
        services_.thread_time = []() noexcept { return used_; };
    }
    void spend(Nanoseconds time, Nanoseconds used, Call call = Call::publish) {
        guard_.run(call, [&] {
            clock_.advance(time);
            used_ += used;
            return 0;
        });
    }
    static thread_local Nanoseconds used_;
};
thread_local Nanoseconds BusyGuardTest::used_{0};

TEST_F(BusyGuardTest, CallsThatTheMachineHeldUpPauseNobody) {
    for (int i = 0; i < 100; ++i) {
        spend(50ms, 10us);
    }
    EXPECT_FALSE(guard_.paused());
    EXPECT_LE(guard_.counts()[Fault::slow_call], 50u) << "each other one is a suspicion";
}

TEST_F(BusyGuardTest, CallsThatAllWereHeldUpAtOncePauseNobody) {
    const std::function<std::int32_t(int)> nest = [&](int depth) { // as many threads would
        return guard_.run(Call::publish, [&] {
            clock_.advance(2ms);
            return depth > 0 ? nest(depth - 1) : 0;
        });
    };
    nest(20);
    EXPECT_FALSE(guard_.paused());
}

TEST_F(BusyGuardTest, CallsThatCostTheProcessorTooMuchPauseThePlugin) {
    spend(2ms, 2ms);
    spend(2ms, 1ms + 1ns);
    EXPECT_FALSE(guard_.paused());
    spend(1ms + 1ns, 2ms);
    EXPECT_TRUE(guard_.paused());
    EXPECT_EQ(guard_.counts()[Fault::slow_call], 3u);
}

TEST_F(BusyGuardTest, ACallThatIsClearedEndsTheRow) {
    for (int i = 0; i < 10; ++i) {
        spend(2ms, 2ms);
        spend(2ms, 2ms);
        spend(2ms, 1ms);
    }
    EXPECT_FALSE(guard_.paused());
}

TEST_F(BusyGuardTest, CallsThatWaitFarTooLongPauseThePluginWhateverTheyWaitFor) {
    for (int i = 0; i < 3; ++i) {
        EXPECT_FALSE(guard_.paused());
        spend(100ms + 1ns, 0ns);
    }
    EXPECT_TRUE(guard_.paused());
}

TEST_F(BusyGuardTest, WhatTheHostUsesInsideOfACallIsItsOwn) {
    for (int i = 0; i < 10; ++i) {
        guard_.run(Call::tick, [&] {
            clock_.advance(2ms);
            const Guard::HostTime aside(clock_);
            clock_.advance(5ms);
            used_ += 5ms;
            return 0;
        });
    }
    EXPECT_FALSE(guard_.paused());
}

TEST(ThreadTime, GrowsWithWorkAndIsTheThreadsOwn) {
    const auto begin = SystemClock::thread_time();
    volatile std::uint64_t sum = 0;
    while (SystemClock::thread_time() - begin < 1ms) {
        sum = sum + 1;
    }
    EXPECT_GT(sum, 0u);
    std::thread([&] { EXPECT_LT(SystemClock::thread_time(), 1s); }).join();
}

} // namespace
} // namespace queen::pluginhost
