// Leases, releases, marks and clears, step by step.
#include "schedule_fixture.hpp"

namespace queen::hotlist::schedule {
namespace {

// ---- leases and releases ------------------------------------------------------------------------

TEST_F(HotListSchedule, F1_ALeasedVerdictThatArrivesAfterTheReleaseCostsASecondNotTheLease) {
    w.push(kOrders, "p", 2);
    const auto first = lease(w.pop(kG, {.messages = 1, .lease = kLongLease}));
    pass(kRevisit);
    const auto late = w.take(kG);
    ASSERT_THAT(late->names, ElementsAre("p"));
    w.begin(*late); // sees the lease
    w.ack(first);
    w.tell(); // the release finds the partition checked out
    EXPECT_THAT(w.settle(late), IsEmpty());
    EXPECT_TRUE(deliver(kRevisit)) << w.undelivered();
}

TEST_F(HotListSchedule, F2_ABacklogIsConsumedInBatchesWithoutAGap) {
    w.push(kOrders, "p", 1000);
    for (int i = 0; i < 10; ++i) {
        const auto batch = lease(w.pop(kG, {.messages = 100}));
        ASSERT_EQ(batch.first, i * 100) << "no push came since, and no time passed";
        w.ack(batch);
        w.tell();
    }
}

TEST_F(HotListSchedule, F2_ACoveredReleaseOfALaterLeaseHidesNoBacklog) {
    w.push(kOrders, "p", 2);
    w.lose(lease(w.pop(kG, {.messages = 2, .lease = 500ms}))); // had drained it
    w.advance(600ms);
    const auto later = lease(w.pinned(kG, "p", {.messages = 1, .lease = kLongLease}));
    w.ack(later);
    w.tell();
    EXPECT_EQ(lease(w.pop(kG)).first, 1);
}

TEST_F(HotListSchedule, F2_ADrainedVerdictThatArrivesAfterItsLeaseHidesNoBacklog) {
    w.push(kOrders, "p", 2);
    const auto slow = w.take(kG, {.messages = 2, .lease = 500ms});
    w.claim(*slow); // drains it
    w.advance(600ms);
    const auto later = lease(w.pinned(kG, "p", {.messages = 1, .lease = kLongLease}));
    w.lose(lease(w.settle(slow)));
    w.ack(later);
    w.tell();
    EXPECT_EQ(lease(w.pop(kG)).first, 1);
}

TEST_F(HotListSchedule, F3_APureNackIsRedeliveredAtOnceAndWakes) {
    w.push(kOrders, "p", 3);
    const auto batch = lease(w.pop(kG, {.lease = kLongLease}));
    const auto wakes = w.wakes;
    w.nack(batch);
    w.tell();
    EXPECT_EQ(w.wakes, wakes + 1);
    EXPECT_EQ(lease(w.pop(kG)).first, 0);
}

TEST_F(HotListSchedule, F3_ANackIsRedeliveredAlthoughAnOlderReleaseCameLate) {
    w.push(kOrders, "p");
    w.ack(lease(w.pop(kG))); // its release lies in events()
    pass(kRevisit);
    w.push(kOrders, "p");
    const auto second = lease(w.pop(kG, {.lease = kLongLease}));
    ASSERT_EQ(second.first, 1);
    w.tell(); // of the first: covered, and the slot knows of a drained claim
    w.nack(second);
    w.tell();
    EXPECT_EQ(lease(w.pop(kG)).first, 1);
}

TEST_F(HotListSchedule, F4_ACoveredAckOfADrainedPartitionCausesNoClaimAndNoWake) {
    w.push(kOrders, "p", 3);
    const auto batch = lease(w.pop(kG));
    const auto wakes = w.wakes;
    w.ack(batch);
    w.tell();
    EXPECT_EQ(w.wakes, wakes);
    EXPECT_EQ(w.peek(kG).state, ReadyState::nothing);
    pass(5s);
    EXPECT_THAT(w.offers(kG), IsEmpty()) << "nor later";
}

TEST_F(HotListSchedule, F5_APartitionWhoseRowWasLockedIsFoundAgain) {
    w.push(kOrders, "p", 3);
    w.store.lock_row(kOrders, "g", "p");
    EXPECT_THAT(w.pop(kG, {.auto_ack = true}), IsEmpty());
    w.store.unlock_rows();
    EXPECT_TRUE(deliver(kRevisit)) << w.undelivered();
}

TEST_F(HotListSchedule, F6_WhatADyingPopHeldIsOfferedAtOnce) {
    w.push(kOrders, "p");
    w.push(kOrders, "q");
    const auto dying = w.take(kG);
    ASSERT_THAT(dying->names, UnorderedElementsAre("p", "q"));
    w.begin(*dying);
    w.drop(dying);
    EXPECT_THAT(w.offers(kG), UnorderedElementsAre("p", "q"));
}

TEST_F(HotListSchedule, F6_WhatNobodySettlesIsOfferedAgainByTheFloor) {
    w.push(kOrders, "p");
    w.strand(w.take(kG));
    const auto floor = ask_floor();
    EXPECT_THAT(w.offers(kG), IsEmpty()) << "until then it is checked out";
    w.read(w.walks()[floor]);
    w.apply(floor);
    EXPECT_THAT(w.offers(kG), ElementsAre("p"));
    EXPECT_EQ(w.stat("in_flight"), 0);
}

TEST_F(HotListSchedule, F6_AClaimThatCommittedBeforeItsPopDiedRunsOutAndIsRedelivered) {
    w.push(kOrders, "p", 2);
    const auto dying = w.take(kG, {.lease = 5s});
    w.claim(*dying);
    w.drop(dying);
    EXPECT_TRUE(deliver(5s + kRevisit)) << w.undelivered();
}

TEST_F(HotListSchedule, AnExpiredLeaseIsFoundByWhoeverSleeps) {
    w.push(kOrders, "p", 2);
    w.lose(lease(w.pop(kG, {.lease = 5s})));
    EXPECT_TRUE(deliver_to_sleepers(5s + kRevisit)) << w.undelivered();
}

TEST_F(HotListSchedule, Hl5_AReleaseDuringAClaimVoidsItsEmptyVerdict) {
    w.push(kOrders, "p", 2);
    const auto held = lease(w.pop(kG, {.messages = 1, .lease = kLongLease}));
    pass(kRevisit);
    const auto other = w.take(kG);
    w.begin(*other);
    // Another broker may answer so; the release must win whatever the verdict is.
    other->answers = {{.partition = "p", .id = held.id}};
    w.nack(held);
    w.tell();
    w.settle(other);
    EXPECT_THAT(w.offers(kG), ElementsAre("p"));
}

TEST_F(HotListSchedule, Hl5_APushDuringTheLeaseMakesTheCoveredReleaseAPromotion) {
    w.push(kOrders, "p");
    const auto batch = lease(w.pop(kG, {.lease = kLongLease}));
    w.push(kOrders, "p");
    const auto wakes = w.wakes;
    w.ack(batch);
    w.tell();
    EXPECT_EQ(w.wakes, wakes + 1);
    EXPECT_EQ(lease(w.pop(kG)).first, 1);
}

TEST_F(HotListSchedule, Hl3_APushDuringTheClaimIsNotCountedAsServed) {
    w.push(kOrders, "p");
    const auto pop = w.take(kG, {.lease = kLongLease});
    w.claim(*pop);
    w.push(kOrders, "p");
    const auto batch = lease(w.settle(pop));
    w.ack(batch);
    w.tell();
    EXPECT_EQ(lease(w.pop(kG)).first, 1) << "at once, not when the park ends";
}

TEST_F(HotListSchedule, Cl14_APushBetweenTheLookAndTheScanOutlivesADrainedClaim) {
    w.push(kOrders, "p");
    const auto pop = w.take(kG, {.messages = 3, .lease = kLongLease});
    w.begin(*pop); // the end of the partition is offset 0 here
    w.commit(kOrders, "p", 5);
    const auto batch = lease(w.settle(pop)); // takes 0 to 2: beyond what it saw as the end
    ASSERT_EQ(batch.last, 2);
    w.tell(); // the mark
    w.ack(batch);
    w.tell();
    EXPECT_EQ(lease(w.pop(kG)).first, 3);
}

TEST_F(HotListSchedule, Hl2_WhatAnOlderClaimDrainedSaysNothingOfThisOne) {
    w.push(kOrders, "p");
    w.nack(lease(w.pop(kG))); // the claim had drained it
    w.tell();
    w.push(kOrders, "p", 9);
    w.drop(w.take(kG)); // whatever was counted is not counted any more
    const auto other = w.take(kG);
    ASSERT_THAT(other->names, ElementsAre("p"));
    const auto batch = lease(w.pinned(kG, "p", {.messages = 1, .lease = kLongLease}));
    w.settle(other); // leased
    w.ack(batch);    // covered: one of ten
    w.tell();
    EXPECT_EQ(lease(w.pop(kG)).first, 1);
}

TEST_F(HotListSchedule, Hl4_AutoAckGoesOnThroughABacklog) {
    w.push(kOrders, "p", 5);
    for (int i = 0; i < 5; ++i) {
        const auto pop = w.take(kG, {.messages = 1, .auto_ack = true});
        w.claim(*pop);
        ASSERT_EQ(pop->answers->size(), 1u);
        EXPECT_EQ(pop->answers->front().first, i);
        w.settle(pop);
    }
    w.pop(kG);
    EXPECT_EQ(w.peek(kG).state, ReadyState::nothing) << "an empty claim ends it";
}

// ---- marks and clears ---------------------------------------------------------------------------

TEST_F(HotListSchedule, AMarkDuringAClaimVoidsItsEmptyVerdict) {
    w.push(kOrders, "p");
    w.consume_elsewhere(kG);
    const auto pop = w.take(kG);
    w.claim(*pop); // empty
    w.push(kOrders, "p");
    w.settle(pop);
    EXPECT_EQ(lease(w.pop(kG)).first, 1);
}

TEST_F(HotListSchedule, AnEmptyVerdictWithoutAMarkSinceClears) {
    w.push(kOrders, "p");
    w.consume_elsewhere(kG);
    w.pop(kG);
    EXPECT_EQ(w.peek(kG).state, ReadyState::nothing);
    EXPECT_THAT(w.offers(kG), IsEmpty());
    EXPECT_THAT(w.offers(kH), ElementsAre("p")) << "of that group alone";
}

TEST_F(HotListSchedule, AMarkThatComesLateCostsOneEmptyClaim) {
    w.commit(kOrders, "p");
    w.consume_elsewhere(kG);
    w.consume_elsewhere(kH);
    w.tell_all();
    const auto claims = w.claims;
    w.run(5s, {.walks = false, .until_drained = false});
    EXPECT_EQ(w.claims, claims + 2) << "one of each group";
}

TEST_F(HotListSchedule, F52_PopsOnManyPartitionsAtOnceAllGetWork) {
    for (int i = 0; i < 100; ++i) {
        w.push(kOrders, "p" + std::to_string(i), 10);
    }
    for (int i = 0; i < 100; ++i) {
        EXPECT_THAT(w.take(kG, {.messages = 10, .partitions = 10})->names, SizeIs(1))
            << "pop " << i << " takes what its batch needs and leaves the rest";
    }
}

} // namespace
} // namespace queen::hotlist::schedule
