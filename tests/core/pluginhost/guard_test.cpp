#include "pluginhost/guard.hpp"
#include "support/manual_clock.hpp"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

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

} // namespace
} // namespace queen::pluginhost
