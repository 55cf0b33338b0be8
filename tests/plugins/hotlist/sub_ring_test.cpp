// The table of states, first half: marks, the wheel, takes.
#include "sub_ring_fixture.hpp"

namespace queen::hotlist {
namespace {

// ---- mark ---------------------------------------------------------------------------------------

TEST_F(SubRingTest, AMarkMakesAnIdleSlotReady) {
    mark(3);
    EXPECT_EQ(state(), Is::ready);
    EXPECT_EQ(ring.ready_messages(), 3u);
}

TEST_F(SubRingTest, AMarkOnADelayedQueueWaitsForTheDelayAndThePad) {
    rules.delay = 5s;
    mark();
    EXPECT_EQ(state(), Is::wheel);
    EXPECT_EQ(due_in(), 5s + 300ms);
}

TEST_F(SubRingTest, ADelayWinsOverAWindow) {
    rules.delay = 5s;
    rules.window = 2s;
    mark(1000);
    EXPECT_EQ(state(), Is::wheel);
    EXPECT_EQ(due_in(), 5s + 300ms) << "a delay is never shortened, whatever the batch";
}

TEST_F(SubRingTest, AMarkOnAWindowedQueueWaitsForTheWindow) {
    rules.window = 2s;
    mark(99);
    EXPECT_EQ(state(), Is::wheel);
    EXPECT_EQ(due_in(), 2s);
}

TEST_F(SubRingTest, AFullBatchEndsTheWindowAtOnce) {
    rules.window = 2s;
    mark(100);
    EXPECT_EQ(state(), Is::ready);
    EXPECT_TRUE(take().held);
}

TEST_F(SubRingTest, AMarkOnAReadySlotOnlyCounts) {
    make_ready();
    const auto place = ring.head();
    now += 1s;
    mark(4);
    EXPECT_EQ(state(), Is::ready);
    EXPECT_EQ(ring.head(), place) << "it keeps its place in line";
    EXPECT_EQ(ring.ready_messages(), 5u);
}

TEST_F(SubRingTest, AMarkThatFillsTheBatchEndsTheWindowEarly) {
    rules.window = 2s;
    mark(60);
    now += 100ms;
    mark(39);
    EXPECT_EQ(state(), Is::wheel);
    mark(1);
    EXPECT_EQ(state(), Is::ready);
    EXPECT_TRUE(take().held);
}

TEST_F(SubRingTest, AMarkNeverShortensADelay) {
    rules.delay = 5s;
    mark();
    now += 5s + 299ms;
    mark(1000);
    EXPECT_EQ(state(), Is::wheel);
    EXPECT_EQ(due_in(), 1ms);
}

TEST_F(SubRingTest, AMarkOnAPlainLeaseParkPromotesWhenItIsAboutToEnd) {
    make_leased(true); // for a second
    now += 699ms;
    mark();
    EXPECT_EQ(state(), Is::wheel) << "due in 301 ms, the pad is 300";
    now += 1ms;
    mark();
    EXPECT_EQ(state(), Is::ready);
}

TEST_F(SubRingTest, AMarkOnACheckedOutSlotKeepsItFromBeingCleared) {
    const Taken taken = make_in_flight();
    mark();
    EXPECT_EQ(state(), Is::in_flight);
    settle(taken, VerdictKind::empty);
    EXPECT_EQ(state(), Is::ready);
}

// ---- wheel --------------------------------------------------------------------------------------

TEST_F(SubRingTest, AnEntryIsReadyWhenItIsDueAndNotBefore) {
    rules.delay = 5s;
    mark();
    now += 5s + 300ms - 1ns;
    EXPECT_EQ(drain(), 0u);
    now += 1ns;
    EXPECT_EQ(drain(), 1u);
    EXPECT_EQ(state(), Is::ready);
    EXPECT_EQ(ring.due(), SubRing::kNever);
}

TEST_F(SubRingTest, EntriesComeOutInTheOrderOfTheirTimes) {
    rules.window = 2s;
    for (const Local local : {3u, 1u, 2u}) {
        mark(1, local);
        now += 10ms;
    }
    now += 2s;
    EXPECT_EQ(drain(), 3u);
    const Taken taken = take();
    ASSERT_EQ(taken.slots.size(), 3u);
    EXPECT_EQ(taken.slots[0].local, 3u);
    EXPECT_EQ(taken.slots[1].local, 1u);
    EXPECT_EQ(taken.slots[2].local, 2u);
}

TEST_F(SubRingTest, AStaleWheelCellIsDroppedWhenItSurfaces) {
    make_leased(false); // due in a second
    ASSERT_TRUE(released(true));
    EXPECT_EQ(ring.due(), SubRing::kNever) << "no tick is asked for what is ready already";
    settle(take(), VerdictKind::took_leased, false);
    now += 500ms;
    released(true);
    settle(take(), VerdictKind::leased); // due 500 ms later than the one before
    now += 500ms;                        // the cells of the first two are due
    EXPECT_EQ(drain(), 0u);
    EXPECT_EQ(state(), Is::wheel);
    EXPECT_EQ(due_in(), 500ms);
}

TEST_F(SubRingTest, StaleWheelCellsDoNotPileUp) {
    mark();
    mark(1, 1);
    Taken other = take(1, 1);
    settle(other, VerdictKind::took_leased, false, now); // first in the wheel, before all others
    const std::size_t before = ring.bytes();
    for (int i = 0; i < 100'000; ++i) {
        other = take();
        ASSERT_EQ(other.slots.size(), 1u);
        settle(other, VerdictKind::took_leased, false, now + 500ms + i * 1ns);
        ASSERT_TRUE(ring.released(other.slots[0].local, true, now, order));
    }
    EXPECT_EQ(ring.wheel(), 1u);
    EXPECT_LE(ring.bytes(), before + 8192) << "each park left a cell behind";
}

TEST_F(SubRingTest, ADrainStopsAtItsLimit) {
    rules.delay = 1s;
    for (Local local = 0; local < 10; ++local) {
        mark(1, local);
    }
    now += 10s;
    EXPECT_EQ(ring.drain(now, order, 4), 4u);
    EXPECT_EQ(ring.ready(), 4u);
    EXPECT_EQ(ring.wheel(), 6u);
    EXPECT_EQ(drain(), 6u);
}

// ---- take ---------------------------------------------------------------------------------------

TEST_F(SubRingTest, ATakeChecksOutWhatIsReadyAndNothingElse) {
    EXPECT_TRUE(take().slots.empty());
    make_ready();
    const Taken taken = take();
    ASSERT_EQ(taken.slots.size(), 1u);
    EXPECT_EQ(state(), Is::in_flight);
    EXPECT_TRUE(take().slots.empty());
    settle(taken, VerdictKind::took_leased);
    EXPECT_TRUE(take().slots.empty()) << "it waits in the wheel";
}

TEST_F(SubRingTest, ATakeStopsWhenItsMessagesAreCovered) {
    for (Local local = 0; local < 10; ++local) {
        mark(10, local);
    }
    EXPECT_EQ(take(16, 1).slots.size(), 1u) << "one at least";
    EXPECT_EQ(take(16, 10).slots.size(), 1u);
    EXPECT_EQ(take(16, 11).slots.size(), 2u);
    EXPECT_EQ(take(3, 1000).slots.size(), 3u) << "no more than asked for";
}

TEST_F(SubRingTest, ATakeForgetsTheDrainedOfAnOlderClaim) {
    make_leased(true);
    now += 1s;
    drain();
    settle(take(), VerdictKind::leased); // somebody else has it, with a backlog for all we know
    released(true);
    EXPECT_EQ(state(), Is::ready) << "cleared by what an older claim had seen (HL-2)";
}

TEST_F(SubRingTest, ATakeStopsBeforeAWindowThatWasNotHeld) {
    rules.window = 2s;
    mark(100, 0);
    mark(100, 1);
    const Local local = 2;
    ring.reseed({&local, 1}, now, rules, order);
    const Taken taken = take();
    EXPECT_EQ(taken.slots.size(), 2u);
    EXPECT_TRUE(taken.held);
    const Taken other = take();
    EXPECT_EQ(other.slots.size(), 1u);
    EXPECT_FALSE(other.held);
}

TEST_F(SubRingTest, AWindowCountsAsHeldOnlyUnderTheOneItWasHeldFor) {
    rules.window = 2s;
    mark();
    now += 2s;
    drain();
    rules.window = 5s;
    EXPECT_FALSE(take().held);
}

TEST_F(SubRingTest, AWindowCountsAsHeldOnlyUnderAFreshConfiguration) {
    rules.window = 2s;
    mark();
    now += 2s;
    drain();
    rules.config_fresh = false;
    EXPECT_FALSE(take().held);
}

TEST_F(SubRingTest, WhatALeaseParkBringsBackIsHeldOnlyOnceTheWindowIsOverToo) {
    rules.window = 5s;
    mark(100);
    settle(take(), VerdictKind::leased, false, now + 100ms);
    now += 400ms;
    ASSERT_EQ(drain(), 1u);
    settle(take(), VerdictKind::took_leased, false, now);
    mark();
    now += 300ms;
    ASSERT_EQ(drain(), 1u);
    EXPECT_FALSE(take().held) << "one message, 300 ms old, in a window of 5 s";
}

} // namespace
} // namespace queen::hotlist
