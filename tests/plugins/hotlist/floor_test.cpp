#include "floor.hpp"

#include <gtest/gtest.h>

#include <set>

namespace queen::hotlist {
namespace {

using namespace std::chrono_literals;
using Ended = ReseedFloor::Ended;

constexpr ReseedFloor::Intervals kUsual{30s, 300s, 0s};

class FloorTest : public testing::Test {
protected:
    void remake(ReseedFloor::Intervals intervals, std::uint64_t spread = 0) {
        floor.emplace(intervals, spread);
    }
    /// A whole walk of that many pages. @return its window
    Nanoseconds walk(std::uint64_t pages, bool complete = true) {
        const auto begun = floor->start(now, ++ticket);
        EXPECT_TRUE(begun.has_value());
        for (std::uint64_t i = 0; i < pages; ++i) {
            EXPECT_TRUE(floor->page(ticket));
        }
        floor->done(ticket, complete, now);
        return begun ? begun->window : -1ns;
    }
    void wait_until_due() { now = std::max(now, floor->due()); }

    SteadyTime now{1000s};
    plugin::Ticket ticket = 0;
    std::optional<ReseedFloor> floor{std::in_place, kUsual, 0u};
};

TEST_F(FloorTest, TheFirstWalkIsDueAtOnceAndFull) {
    EXPECT_LE(floor->due(), now);
    EXPECT_FALSE(floor->warm());
    EXPECT_EQ(walk(1), 0s);
    EXPECT_TRUE(floor->warm());
}

TEST_F(FloorTest, OneWalkAtATime) {
    ASSERT_TRUE(floor->start(now, 1));
    EXPECT_FALSE(floor->start(now + 1h, 2));
    EXPECT_EQ(floor->due(), SteadyTime::max());
}

TEST_F(FloorTest, AHastenedWalkComesSoonAndOnlyOnce) {
    walk(1);
    const SteadyTime began = now;
    now += 1s;
    floor->hasten(now);
    floor->hasten(now);
    EXPECT_EQ(floor->due(), began + ReseedFloor::kHastened);
    wait_until_due();
    walk(1);
    EXPECT_EQ(floor->due(), now + 30s);
    now += 20s;
    floor->hasten(now);
    EXPECT_EQ(floor->due(), now);
    ASSERT_TRUE(floor->start(now, ++ticket));
    now += 1s;
    floor->hasten(now); // the one under way may have passed it
    floor->done(ticket, true, now);
    EXPECT_EQ(floor->due(), now - 1s + ReseedFloor::kHastened);
    wait_until_due();
    walk(1, false);
    const SteadyTime retry = floor->due();
    floor->hasten(now);
    EXPECT_EQ(floor->due(), retry) << "a store that fails is not asked more often";
}

TEST_F(FloorTest, ASmallQueueIsWalkedWholeEachInterval) {
    walk(1);
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(floor->due(), now + 30s);
        wait_until_due();
        EXPECT_EQ(walk(1), 0s);
    }
}

TEST_F(FloorTest, ALargeQueueIsWalkedByWindowsAndWholeNowAndThen) {
    walk(2);
    const SteadyTime first = now;
    int windowed = 0;
    for (wait_until_due(); now < first + 300s; wait_until_due()) {
        EXPECT_EQ(walk(1), 120s) << "four intervals, at least 120 s";
        ++windowed;
    }
    EXPECT_EQ(windowed, 9);
    EXPECT_EQ(walk(2), 0s);
}

TEST_F(FloorTest, AWindowedWalkNeverMovesTheClockOfFullOnes) {
    walk(2);
    const auto full = floor->last_full();
    wait_until_due();
    ASSERT_NE(walk(1), 0s);
    EXPECT_EQ(floor->last_full(), full);
}

TEST_F(FloorTest, WithoutAFullIntervalEveryWalkIsFull) {
    remake({30s, 0s, 0s});
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(walk(100), 0s);
        wait_until_due();
    }
}

TEST_F(FloorTest, TheWindowIsDerivedAndCoversAnInterval) {
    const auto window_of = [&](ReseedFloor::Intervals intervals, std::uint64_t spread) {
        remake(intervals, spread);
        walk(2);
        wait_until_due();
        return walk(1);
    };
    EXPECT_EQ(window_of({60s, 1h, 0s}, 0), 240s);
    EXPECT_EQ(window_of({30s, 1h, 200s}, 0), 200s);
    EXPECT_EQ(window_of({30s, 1h, 1s}, 7'000'000'000), 37s)
        << "an interval and its jitter at least";
    EXPECT_EQ(window_of({1h, 24h, 24h * 30}, 0), 24h * 7);
}

TEST_F(FloorTest, JitterIsFixedAndWithinTheFirstFifteenSeconds) {
    std::set<Nanoseconds> seen;
    for (std::uint64_t spread = 1; spread < 2000; ++spread) {
        const ReseedFloor one(kUsual, spread * 0x9e3779b97f4a7c15u);
        EXPECT_GE(one.jitter(), 0s);
        EXPECT_LT(one.jitter(), 15s);
        EXPECT_EQ(one.jitter(), ReseedFloor(kUsual, spread * 0x9e3779b97f4a7c15u).jitter());
        seen.insert(one.jitter() / 1s * 1s);
    }
    EXPECT_EQ(seen.size(), 15u) << "they spread over all of it";
    EXPECT_LE(ReseedFloor({2s, 0s, 0s}, ~0ull).jitter(), 1s) << "half of a short interval at most";
}

TEST_F(FloorTest, TheJitterIsPartOfEachInterval) {
    remake(kUsual, 7'000'000'000);
    ASSERT_EQ(floor->jitter(), 7s);
    walk(1);
    EXPECT_EQ(floor->due(), now + 37s);
    EXPECT_FALSE(floor->start(now + 37s - 1ns, 99));
    EXPECT_TRUE(floor->start(now + 37s, 99));
}

TEST_F(FloorTest, AnotherTicketEndsNothing) {
    ASSERT_TRUE(floor->start(now, 7));
    EXPECT_FALSE(floor->page(6));
    EXPECT_EQ(floor->done(6, true, now).ended, Ended::unknown_ticket);
    EXPECT_FALSE(floor->warm());
    EXPECT_EQ(floor->done(7, true, now).ended, Ended::complete);
    EXPECT_EQ(floor->done(7, true, now).ended, Ended::unknown_ticket) << "only once";
}

TEST_F(FloorTest, AFailedFullWalkIsMadeAgainAndFull) {
    walk(2);
    now += 301s;
    ASSERT_EQ(walk(1, false), 0s);
    wait_until_due();
    EXPECT_EQ(walk(1, false), 0s) << "pinned";
    wait_until_due();
    EXPECT_EQ(walk(2), 0s);
    wait_until_due();
    EXPECT_NE(walk(1), 0s);
}

TEST_F(FloorTest, AFailedWindowedWalkDoesNotBecomeFull) {
    walk(2);
    wait_until_due();
    ASSERT_NE(walk(1, false), 0s);
    wait_until_due();
    EXPECT_NE(walk(1), 0s);
}

TEST_F(FloorTest, FailedWalksWaitLongerAndLonger) {
    Nanoseconds expected = 1s;
    for (std::uint32_t i = 1; i <= 40; ++i) {
        const auto begun = floor->start(now, ++ticket);
        ASSERT_TRUE(begun);
        const auto outcome = floor->done(ticket, false, now);
        EXPECT_EQ(outcome.ended, Ended::failed);
        EXPECT_EQ(outcome.failures, i);
        EXPECT_EQ(floor->due() - now, expected);
        expected = std::min<Nanoseconds>(2 * expected, 30s);
        wait_until_due();
    }
    EXPECT_FALSE(floor->warm());
    walk(1);
    EXPECT_EQ(floor->failures(), 0u);
}

TEST_F(FloorTest, TheIntervalCountsFromTheBeginningOfAWalk) {
    ASSERT_TRUE(floor->start(now, 1));
    const SteadyTime begun = now;
    now += 10s;
    floor->done(1, true, now);
    EXPECT_EQ(floor->due(), begun + 30s);
    EXPECT_EQ(floor->last_full(), begun);
}

TEST_F(FloorTest, AWalkLongerThanItsIntervalIsFollowedByARest) {
    ASSERT_TRUE(floor->start(now, 1));
    now += 100s;
    floor->done(1, true, now);
    EXPECT_EQ(floor->due(), now + ReseedFloor::kLeastRest);
}

// MESH-4
TEST_F(FloorTest, AHurriedWalkIsDueAtOnceAndOfTheKindItWouldHaveBeen) {
    walk(2);
    const auto due = floor->due();
    floor->hurry(now);
    EXPECT_EQ(floor->due(), now);
    EXPECT_EQ(walk(1), 120s) << "it reaches back to before the last one";
    EXPECT_EQ(floor->due(), due) << "its interval counts from its own beginning";
}

// MESH-4
TEST_F(FloorTest, AWalkThatIsUnderWayIsFollowedByAnother) {
    walk(1);
    floor->hurry(now);
    ASSERT_TRUE(floor->start(now, ++ticket));
    floor->hurry(now); // what it is for may lie before the place where the walk is
    EXPECT_EQ(floor->due(), SteadyTime::max());
    floor->page(ticket);
    floor->done(ticket, true, now);
    EXPECT_EQ(floor->due(), now + ReseedFloor::kLeastRest);
    wait_until_due();
    walk(1);
    EXPECT_GE(floor->due(), now + 30s) << "once";
}

} // namespace
} // namespace queen::hotlist
