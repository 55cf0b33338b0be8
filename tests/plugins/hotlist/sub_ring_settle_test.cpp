// The table of states, second half: verdicts, releases, rows of walks.
#include "sub_ring_fixture.hpp"

namespace queen::hotlist {
namespace {

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

TEST_F(SubRingTest, TheFirstMessageAfterAnAckedTookHasAWindowOfItsOwn) {
    rules.window = 2s;
    settle(make_in_flight(), VerdictKind::took_acked, true);
    now += 1900ms;
    mark();
    EXPECT_EQ(state(), Is::wheel);
    now += 100ms;
    EXPECT_EQ(drain(), 0u) << "it is 100 ms old";
    mark();
    now += 1900ms;
    EXPECT_EQ(drain(), 1u) << "the others wait no longer than the first";
    EXPECT_TRUE(take().held);
}

TEST_F(SubRingTest, ABacklogAfterAnAckedTookWaitsForOneWindowOnly) {
    rules.window = 2s;
    settle(make_in_flight(), VerdictKind::took_acked, false);
    now += 1900ms;
    mark();
    now += 100ms;
    EXPECT_EQ(drain(), 1u);
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
    EXPECT_EQ(reseed(), 1u);
    EXPECT_EQ(state(), Is::ready);
    EXPECT_EQ(ring.ready_messages(), 1u);
}

TEST_F(SubRingTest, AReseedRowOfADelayedQueueIsLookedAtForItMayBeOldEnough) {
    rules.delay = 5s;
    EXPECT_EQ(reseed(), 1u);
    EXPECT_EQ(state(), Is::ready);
}

TEST_F(SubRingTest, WhatOnlyAWalkToldOfIsLookedAtLessAndLessOften) {
    rules.delay = 1h;
    reseed();
    settle(take(), VerdictKind::empty);
    EXPECT_EQ(due_in(), 1s);
    now += 160s;
    drain();
    settle(take(), VerdictKind::empty);
    EXPECT_EQ(due_in(), 10s);
    now += 30min;
    drain();
    settle(take(), VerdictKind::empty);
    EXPECT_EQ(due_in(), 30s);
    now += 30s;
    drain();
    settle(take(), VerdictKind::took_acked); // from here on its age is known
    settle(take(), VerdictKind::empty);
    now += 160s;
    drain();
    settle(take(), VerdictKind::empty);
    EXPECT_EQ(due_in(), 1s);
}

TEST_F(SubRingTest, AReseedRowLeavesAReadySlotInItsPlace) {
    make_ready();
    const auto place = ring.head();
    EXPECT_EQ(reseed(), 0u);
    EXPECT_EQ(ring.head(), place);
}

TEST_F(SubRingTest, AReseedRowEndsAPlainLeasePark) {
    make_leased(true);
    EXPECT_EQ(reseed(), 1u);
    EXPECT_EQ(state(), Is::ready);
}

TEST_F(SubRingTest, AReseedRowLeavesTheWheelOfADeferredQueueAlone) {
    for (const bool delayed : {true, false}) {
        (delayed ? rules.delay : rules.window) = 5s;
        mark(1, delayed ? 1 : 2);
        const auto due = ring.due();
        const Local local = delayed ? 1 : 2;
        EXPECT_EQ(ring.reseed({&local, 1}, now, rules, order), 0u);
        EXPECT_EQ(ring.due(), due);
        rules.delay = 0s;
    }
}

TEST_F(SubRingTest, F6_AReseedRowTakesBackWhatADeadPopHasCheckedOut) {
    make_in_flight();
    EXPECT_EQ(reseed(), 1u);
    EXPECT_EQ(state(), Is::ready);
    EXPECT_EQ(ring.in_flight(), 0u);
}

TEST_F(SubRingTest, AReseedRowTakesBackOnADelayedQueue) {
    rules.delay = 5s;
    make_in_flight();
    EXPECT_EQ(reseed(), 1u);
    EXPECT_EQ(state(), Is::ready);
}

TEST_F(SubRingTest, WhatIsHastenedIsDueNowAndWaitedForNoWindow) {
    rules.window = 20s;
    mark();
    now += 1s;
    ring.hasten(now);
    EXPECT_EQ(due_in(), 0s);
    EXPECT_EQ(drain(), 1u);
    EXPECT_FALSE(take().held);
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
