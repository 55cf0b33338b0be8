// Each cell of the table of states: what an event does to a slot in each of its states.
#include "sub_ring.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace queen::hotlist {
namespace {

using namespace std::chrono_literals;
using plugin::Verdict;
using plugin::VerdictKind;

enum class Is { idle, ready, wheel, in_flight };

constexpr Local kSlot = 0;

class SubRingTest : public testing::Test {
protected:
    SubRingTest() {
        rules.pad = 300ms;
        rules.window_batch = 100;
        rules.config_fresh = true;
    }

    void mark(std::uint32_t frames = 1, Local local = kSlot) {
        const SubRing::Marked one{local, frames};
        ring.mark({&one, 1}, now, rules, order);
    }
    struct Taken {
        std::vector<CheckedOut> slots;
        bool held = false;
        SteadyTime at{};
    };
    Taken take(std::size_t names = 16, std::uint64_t messages = 1'000'000) {
        Taken taken;
        taken.at = now;
        SubRing::Wanted wanted;
        wanted.names = names;
        wanted.messages = messages;
        ring.take(wanted, SubRing::kNever, 0, now, rules, ages, taken.slots);
        taken.held = wanted.held && !taken.slots.empty();
        return taken;
    }
    void settle(const Taken& taken, VerdictKind kind, bool drained = false,
                std::optional<SteadyTime> until = std::nullopt) {
        Verdict verdict;
        verdict.kind = kind;
        verdict.drained = drained;
        verdict.until = until.value_or(now + 60s);
        for (const CheckedOut& slot : taken.slots) {
            ring.settle(slot, taken.at, verdict, now, rules, order);
        }
    }
    void found(VerdictKind kind, bool drained = false) {
        Verdict verdict;
        verdict.kind = kind;
        verdict.drained = drained;
        verdict.until = now + 60s;
        ring.found(kSlot, verdict, now, rules, order);
    }
    SubRing::Reseeded reseed() {
        const Local local = kSlot;
        return ring.reseed({&local, 1}, now, rules, order);
    }
    bool released(bool covered) { return ring.released(kSlot, covered, now, order); }
    std::size_t drain() { return ring.drain(now, order, 1000); }

    /// Of the only slot that is not idle.
    Is state() const {
        EXPECT_LE(ring.ready() + ring.wheel() + ring.in_flight(), 1u);
        return ring.ready() > 0       ? Is::ready
               : ring.wheel() > 0     ? Is::wheel
               : ring.in_flight() > 0 ? Is::in_flight
                                      : Is::idle;
    }
    Nanoseconds due_in() const { return SteadyTime(Nanoseconds(ring.due())) - now; }

    /// READY; with its only message counted.
    void make_ready() {
        mark();
        ASSERT_EQ(state(), Is::ready);
    }
    Taken make_in_flight() {
        mark();
        drain_after_deferral();
        Taken taken = take();
        EXPECT_EQ(taken.slots.size(), 1u);
        return taken;
    }
    /// WHEEL by a lease of our own, for a second.
    void make_leased(bool drained) { settle(make_in_flight(), VerdictKind::took_leased, drained); }
    void drain_after_deferral() {
        now += rules.delay + rules.window + rules.pad;
        drain();
    }

    SteadyTime now{1000s};
    Rules rules;
    ReadyOrder order;
    ReadyAges ages;
    SubRing ring;
};

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

// ---- verdicts -----------------------------------------------------------------------------------

TEST_F(SubRingTest, ALeasedTookParksForALittleMoreThanTheLease) {
    const Taken taken = make_in_flight();
    settle(taken, VerdictKind::took_leased, false, now + 200ms);
    EXPECT_EQ(state(), Is::wheel);
    EXPECT_EQ(due_in(), 500ms);
}

TEST_F(SubRingTest, ALeasedTookNeverParksForMoreThanASecond) {
    for (const auto until : {now + 701ms, now + 60s, now + 24h, SteadyTime::max()}) {
        const Taken taken = make_in_flight();
        settle(taken, VerdictKind::took_leased, false, until);
        EXPECT_LE(due_in(), 1000ms);
        EXPECT_GT(due_in(), 900ms - rules.pad);
        now += 1s;
        drain();
    }
}

TEST_F(SubRingTest, AClaimThatSawAllMarksResetsTheCount) {
    make_leased(true);
    released(true);
    EXPECT_EQ(state(), Is::idle) << "drained, and nothing came since the checkout";
}

TEST_F(SubRingTest, AMarkDuringAClaimOutlivesIt) {
    const Taken taken = make_in_flight();
    mark();
    settle(taken, VerdictKind::took_leased, true);
    EXPECT_EQ(state(), Is::wheel);
    EXPECT_TRUE(released(true));
    EXPECT_EQ(state(), Is::ready);
}

TEST_F(SubRingTest, AnAckedTookGoesToTheTail) {
    mark(1, 0);
    mark(1, 1);
    const Taken first = take(1);
    settle(first, VerdictKind::took_acked, true);
    const Taken rest = take();
    ASSERT_EQ(rest.slots.size(), 2u);
    EXPECT_EQ(rest.slots[0].local, 1u);
    EXPECT_EQ(rest.slots[1].local, 0u);
}

TEST_F(SubRingTest, AnAckedTookOnAWindowedQueueWaitsForAnotherWindow) {
    rules.window = 2s;
    const Taken taken = make_in_flight();
    settle(taken, VerdictKind::took_acked, false);
    EXPECT_EQ(state(), Is::wheel);
    EXPECT_EQ(due_in(), 2s);
    now += 2s;
    drain();
    EXPECT_TRUE(take().held);
}

TEST_F(SubRingTest, AnAckedTookOnADelayedQueueIsReady) {
    rules.delay = 2s;
    rules.window = 2s;
    const Taken taken = make_in_flight();
    settle(taken, VerdictKind::took_acked, false);
    EXPECT_EQ(state(), Is::ready);
}

TEST_F(SubRingTest, EmptyClearsWhenNothingCameSinceTheCheckout) {
    settle(make_in_flight(), VerdictKind::empty);
    EXPECT_EQ(state(), Is::idle);
    EXPECT_EQ(ring.ready_messages(), 0u);
}

TEST_F(SubRingTest, ClearWithAnOlderEpochIsVoid) {
    const Taken taken = make_in_flight();
    mark();
    settle(taken, VerdictKind::empty);
    EXPECT_EQ(state(), Is::ready);
    EXPECT_EQ(ring.ready_messages(), 2u) << "what was counted stays";
}

TEST_F(SubRingTest, EmptyOnADelayedQueueLooksAgainWithinItsBounds) {
    for (const auto& [delay, revisit] :
         {std::pair<Nanoseconds, Nanoseconds>{10ms, 50ms}, {200ms, 200ms}, {1h, 1000ms}}) {
        rules.delay = delay;
        const Taken taken = make_in_flight();
        settle(taken, VerdictKind::empty);
        EXPECT_EQ(state(), Is::wheel);
        EXPECT_EQ(due_in(), revisit);
        now += revisit;
        drain();
        take();
        reseed(); // out of flight, for the next turn
        now += delay + rules.pad;
        drain();
    }
}

TEST_F(SubRingTest, EmptyOnAWindowedQueueLooksAgainSoon) {
    rules.window = 2s;
    settle(make_in_flight(), VerdictKind::empty);
    EXPECT_EQ(state(), Is::wheel);
    EXPECT_EQ(due_in(), 50ms);
}

TEST_F(SubRingTest, F7_AGhostOfADelayedQueueIsClearedInTheEnd) {
    rules.delay = 2s;
    mark();
    const SteadyTime begin = now;
    now += 2s + 300ms;
    int claims = 0;
    while (drain() > 0) {
        settle(take(), VerdictKind::empty);
        ++claims;
        ASSERT_LT(claims, 100);
        now = std::max(now, SteadyTime(Nanoseconds(ring.wheel() > 0 ? ring.due() : 0)));
    }
    EXPECT_EQ(state(), Is::idle);
    EXPECT_GE(now, begin + 2s + 2 * rules.pad + 1s);
    EXPECT_LE(claims, 4);
}

TEST_F(SubRingTest, AMarkStartsTheClockOfGhostsAnew) {
    rules.delay = 10s;
    mark();
    now += 9s;
    mark(); // visible 19 s after the first
    for (const auto until : {10s + 300ms, 11s + 700ms, 15s + 0ms}) {
        now = SteadyTime(1000s) + until;
        drain();
        settle(take(), VerdictKind::empty);
        EXPECT_EQ(state(), Is::wheel) << "cleared before the second message was due";
    }
}

TEST_F(SubRingTest, AGhostIsJudgedByWhenItWasCheckedOut) {
    rules.window = 1s;
    mark(120); // ready by its batch
    const Taken taken = take();
    now += 4s; // a slow statement: what it saw was withheld by the window
    settle(taken, VerdictKind::empty);
    EXPECT_EQ(state(), Is::wheel);
}

TEST_F(SubRingTest, LeasedParksAndNeverClears) {
    const Taken taken = make_in_flight();
    settle(taken, VerdictKind::leased, false, now + 100ms);
    EXPECT_EQ(state(), Is::wheel);
    EXPECT_EQ(due_in(), 100ms + rules.pad);
    now += 400ms;
    drain();
    settle(take(), VerdictKind::leased, false, now + 5min);
    EXPECT_EQ(due_in(), 1000ms);
}

TEST_F(SubRingTest, NotEvaluatedGoesBackToTheTail) {
    mark(7, 0);
    const Taken taken = take();
    mark(1, 1);
    settle(taken, VerdictKind::requeue);
    EXPECT_EQ(ring.ready(), 2u);
    EXPECT_EQ(ring.ready_messages(), 1u) << "its count starts anew";
    const Taken next = take();
    ASSERT_EQ(next.slots.size(), 2u);
    EXPECT_EQ(next.slots[0].local, 1u);
}

TEST_F(SubRingTest, NotEvaluatedIsNeverHeldForAWindow) {
    rules.window = 2s;
    settle(make_in_flight(), VerdictKind::requeue);
    EXPECT_EQ(state(), Is::ready);
    EXPECT_TRUE(take().held) << "what matured once stays so";
}

TEST_F(SubRingTest, ABatchThatWasFullStaysSoWhenItWasNotEvaluated) {
    rules.window = 2s;
    mark(100);
    settle(take(), VerdictKind::requeue);
    EXPECT_TRUE(take().held);
}

TEST_F(SubRingTest, AVerdictOnASlotThatWasTakenBackChangesNothing) {
    const Taken taken = make_in_flight();
    reseed();
    ASSERT_EQ(state(), Is::ready);
    settle(taken, VerdictKind::empty);
    EXPECT_EQ(state(), Is::ready);
}

TEST_F(SubRingTest, AVerdictOfAnEarlierCheckoutChangesNothing) {
    const Taken stranded = make_in_flight();
    reseed();
    const Taken later = take();
    ASSERT_EQ(later.slots.size(), 1u);
    settle(stranded, VerdictKind::empty);
    EXPECT_EQ(state(), Is::in_flight) << "the later pop has it";
    settle(later, VerdictKind::took_leased);
    EXPECT_EQ(state(), Is::wheel);
}

// ---- verdicts on what the store found itself ----------------------------------------------------

TEST_F(SubRingTest, AClaimTheStoreFoundIsParkedAndItsReleaseFindsIt) {
    found(VerdictKind::took_leased, false);
    EXPECT_EQ(state(), Is::wheel);
    EXPECT_EQ(due_in(), 1000ms);
    EXPECT_TRUE(released(true));
    EXPECT_EQ(state(), Is::ready);
}

TEST_F(SubRingTest, ADrainedClaimTheStoreFoundIsClearedByItsRelease) {
    found(VerdictKind::took_leased, true);
    EXPECT_FALSE(released(true));
    EXPECT_EQ(state(), Is::idle);
}

TEST_F(SubRingTest, AnAckedClaimTheStoreFoundIsReadyWhenThereIsMore) {
    found(VerdictKind::took_acked, true);
    EXPECT_EQ(state(), Is::idle);
    found(VerdictKind::took_acked, false);
    EXPECT_EQ(state(), Is::ready);
}

TEST_F(SubRingTest, ALeaseTheStoreFoundIsParked) {
    found(VerdictKind::leased);
    EXPECT_EQ(state(), Is::wheel);
    found(VerdictKind::empty);
    EXPECT_EQ(state(), Is::wheel) << "there was no checkout: it is no reason to clear";
}

TEST_F(SubRingTest, WhatTheStoreFoundNeverMakesAKnownSlotClearable) {
    make_leased(false);
    found(VerdictKind::took_leased, true);
    EXPECT_TRUE(released(true));
    EXPECT_EQ(state(), Is::ready) << "the claim in the wheel left a backlog";
}

TEST_F(SubRingTest, WhatTheStoreFoundLeavesACheckedOutSlotAlone) {
    make_in_flight();
    found(VerdictKind::took_acked, false);
    EXPECT_EQ(state(), Is::in_flight);
}

// ---- released -----------------------------------------------------------------------------------

TEST_F(SubRingTest, ACoveredReleaseOfADrainedClaimClears) {
    make_leased(true);
    EXPECT_FALSE(released(true)) << "nobody is to be woken";
    EXPECT_EQ(state(), Is::idle);
}

TEST_F(SubRingTest, ACoveredReleaseOfAClaimThatLeftSomethingMakesReady) {
    make_leased(false);
    EXPECT_TRUE(released(true));
    EXPECT_EQ(state(), Is::ready);
}

TEST_F(SubRingTest, ACoveredReleaseAfterTheLeaseEndedIsOfAnotherLease) {
    const Taken taken = make_in_flight();
    settle(taken, VerdictKind::took_leased, true, now + 500ms);
    now += 500ms + 1ns; // it ran out; in the park somebody else took one of its messages and acked
    EXPECT_TRUE(released(true));
    EXPECT_EQ(state(), Is::ready);
}

TEST_F(SubRingTest, AReleaseThatIsNotCoveredMakesReadyWhateverTheClaimSaw) {
    make_leased(true);
    EXPECT_TRUE(released(false));
    EXPECT_EQ(state(), Is::ready);
}

TEST_F(SubRingTest, AReleaseOfACheckedOutSlotKeepsItFromBeingCleared) {
    for (const bool covered : {true, false}) {
        const Taken taken = make_in_flight();
        EXPECT_FALSE(released(covered));
        EXPECT_EQ(state(), Is::in_flight);
        settle(taken, VerdictKind::empty);
        EXPECT_EQ(state(), Is::ready);
        settle(take(), VerdictKind::empty);
    }
}

TEST_F(SubRingTest, AReleaseOfAReadySlotChangesNothing) {
    make_ready();
    EXPECT_FALSE(released(true));
    EXPECT_FALSE(released(false));
    EXPECT_EQ(state(), Is::ready);
}

TEST_F(SubRingTest, ACoveredReleaseOfAnIdleSlotChangesNothing) {
    EXPECT_FALSE(released(true));
    EXPECT_EQ(state(), Is::idle);
}

TEST_F(SubRingTest, WhatIsGivenBackIsReadyAlsoWhenALateReleaseHadClearedIt) {
    make_leased(true);
    released(true); // told late: of the lease before
    ASSERT_EQ(state(), Is::idle);
    EXPECT_TRUE(released(false)); // the lease in force ends in a nack
    EXPECT_EQ(state(), Is::ready);
}

// ---- reseed rows --------------------------------------------------------------------------------

TEST_F(SubRingTest, AReseedRowMakesAnIdleSlotReady) {
    EXPECT_EQ(reseed().ready, 1u);
    EXPECT_EQ(state(), Is::ready);
    EXPECT_EQ(ring.ready_messages(), 1u);
}

TEST_F(SubRingTest, AReseedRowOfADelayedQueueWaits) {
    rules.delay = 5s;
    const auto made = reseed();
    EXPECT_EQ(made.ready, 0u);
    EXPECT_EQ(made.wheel, 1u);
    EXPECT_EQ(due_in(), 5s + 300ms);
}

TEST_F(SubRingTest, AReseedRowLeavesAReadySlotInItsPlace) {
    make_ready();
    const auto place = ring.head();
    EXPECT_EQ(reseed().ready, 0u);
    EXPECT_EQ(ring.head(), place);
}

TEST_F(SubRingTest, AReseedRowEndsAPlainLeasePark) {
    make_leased(true);
    EXPECT_EQ(reseed().ready, 1u);
    EXPECT_EQ(state(), Is::ready);
}

TEST_F(SubRingTest, AReseedRowLeavesTheWheelOfADeferredQueueAlone) {
    for (const bool delayed : {true, false}) {
        (delayed ? rules.delay : rules.window) = 5s;
        mark(1, delayed ? 1 : 2);
        const auto due = ring.due();
        const Local local = delayed ? 1 : 2;
        EXPECT_EQ(ring.reseed({&local, 1}, now, rules, order).ready, 0u);
        EXPECT_EQ(ring.due(), due);
        rules.delay = 0s;
    }
}

TEST_F(SubRingTest, F6_AReseedRowTakesBackWhatADeadPopHasCheckedOut) {
    make_in_flight();
    EXPECT_EQ(reseed().ready, 1u);
    EXPECT_EQ(state(), Is::ready);
    EXPECT_EQ(ring.in_flight(), 0u);
}

TEST_F(SubRingTest, AReseedRowTakesBackIntoTheWheelOfADelayedQueue) {
    rules.delay = 5s;
    make_in_flight();
    EXPECT_EQ(reseed().wheel, 1u);
    EXPECT_EQ(state(), Is::wheel);
}

TEST_F(SubRingTest, AReseedRowStartsTheClockOfGhostsAnew) {
    rules.window = 1s;
    mark();
    now += 10s;
    drain();
    reseed();
    settle(take(), VerdictKind::empty);
    EXPECT_EQ(state(), Is::wheel);
}

} // namespace
} // namespace queen::hotlist
