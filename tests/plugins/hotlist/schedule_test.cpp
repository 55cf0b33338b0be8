// The races of the hot-list that hurt, each as one schedule, step by step. No walk is carried out
// unless the schedule says so: what is under test is what the ring does by itself, or else the
// floor. Each is seen failing on a copy of the hot-list that lacks what it tests (schedule.cmake).
#include "schedule_world.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace queen::hotlist::schedule {
namespace {

using namespace std::chrono_literals;
using plugin::ReadyState;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

constexpr auto kOrders = World::kAcmeOrders;
const Place kG = World::kG;
const Place kH{kOrders, "h"};
constexpr auto kLongLease = 10min;
/// What a lost release may cost (the cap of a lease park), and the spacing of ticks.
constexpr auto kRevisit = 1000ms + 100ms;

Options quiet_options() {
    Options options;
    options.idle_sweep = 0ns; // a sweep is not what these are about
    options.unserved_trim = 0ns;
    return options;
}

class HotListSchedule : public testing::Test {
protected:
    HotListSchedule() { w.warm(); }
    void TearDown() override { EXPECT_THAT(w.faults(), IsEmpty()); }

    /// Time passes, nobody pops, walks are asked for and lie in w.walks().
    void pass(Nanoseconds span) {
        w.run(span, {.walks = false, .consumers = false, .until_drained = false});
    }
    /// Time passes with consumers that look when the ring says so. @return all is delivered
    bool deliver(Nanoseconds span) {
        w.run(span, {.walks = false});
        return w.drained();
    }
    /// The same with consumers that sleep until they are told.
    bool deliver_to_sleepers(Nanoseconds span, bool walks = false) {
        w.run(span, {.told_only = true, .walks = walks});
        return w.drained();
    }
    /// The walk of g's floor, asked for and not yet begun.
    std::size_t ask_floor() {
        pass(30s + World::kMostJitter + 1s);
        for (std::size_t i = 0; i < w.walks().size(); ++i) {
            if (w.walks()[i].place == kG) {
                return i;
            }
        }
        ADD_FAILURE() << "no floor within its interval";
        return 0;
    }
    /// The lease of the only batch of a pop.
    Batch lease(const std::vector<Batch>& batches) {
        EXPECT_THAT(batches, SizeIs(1));
        return batches.empty() ? Batch{} : batches.front();
    }

    World w{{.options = quiet_options()}};
};

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

// ---- the floor ----------------------------------------------------------------------------------

TEST_F(HotListSchedule, Hl8_ASettleLeavesAloneWhatTheFloorHasLinkedAgain) {
    w.push(kOrders, "p");
    w.consume_elsewhere(kG);
    const auto slow = w.take(kG);
    w.claim(*slow); // empty
    w.push_elsewhere(kOrders, "p");
    const auto floor = ask_floor();
    w.read(w.walks()[floor]); // sees the push that no mark told of
    w.apply(floor);
    w.settle(slow);
    EXPECT_EQ(lease(w.pop(kG)).first, 1);
}

TEST_F(HotListSchedule, Hl8_NorWhatAnotherPopHasCheckedOutSince) {
    w.push(kOrders, "p");
    w.consume_elsewhere(kG);
    const auto slow = w.take(kG);
    w.claim(*slow); // empty
    w.push_elsewhere(kOrders, "p");
    const auto floor = ask_floor();
    w.read(w.walks()[floor]);
    w.apply(floor);
    const auto next = w.take(kG);
    ASSERT_THAT(next->names, ElementsAre("p"));
    w.settle(slow); // must not clear what is not his any more
    w.lose(lease(w.settle(next)));
    EXPECT_TRUE(deliver(5s + kRevisit)) << w.undelivered();
}

TEST_F(HotListSchedule, Hl9_TheFloorSeesALeaseThatEndedElsewhere) {
    const auto floor = ask_floor();
    w.push(kOrders, "p", 2);
    const auto batch = lease(w.pop(kG, {.messages = 1, .lease = kLongLease}));
    w.store.ack(kOrders, "g", batch.id, batch.worker, 1); // at another broker: nobody tells us
    EXPECT_EQ(w.peek(kG).state, ReadyState::nothing);
    w.read(w.walks()[floor]);
    w.apply(floor);
    EXPECT_EQ(lease(w.pop(kG)).first, 1);
}

TEST_F(HotListSchedule, Hl9_TheFloorShortensNoDelay) {
    w.store.configure(kOrders, 60s, 0s);
    w.list->configured(w.queue(kOrders), {60s, 0s, w.clock.now()});
    const auto floor = ask_floor();
    w.push(kOrders, "p");
    const auto due = w.peek(kG).next_due;
    w.read(w.walks()[floor]);
    w.apply(floor);
    EXPECT_EQ(w.peek(kG).state, ReadyState::nothing);
    EXPECT_EQ(w.peek(kG).next_due, due);
}

TEST_F(HotListSchedule, TheFloorFindsAndWakesForWhatNoMarkTold) {
    w.push_elsewhere(kOrders, "p");
    EXPECT_TRUE(deliver_to_sleepers(30s + World::kMostJitter + kRevisit, true)) << w.undelivered();
}

TEST(HotListScheduleOfALargeQueue, IsWalkedInPartOftenAndWholeSometimes) {
    auto options = quiet_options();
    options.reseed = 10s;
    options.reseed_full = 200s;
    World w({.options = options, .page = 2});
    for (int i = 0; i < 5; ++i) {
        w.push_elsewhere(kOrders, "p" + std::to_string(i));
    }
    w.warm();
    w.run(1s); // all is delivered
    int whole = 0, in_part = 0;
    const auto begin = w.clock.now();
    while (w.clock.now() - begin < 200s + World::kMostJitter + 10s) {
        w.run(5s, {.walks = false, .until_drained = false});
        for (const auto& walk : w.walks()) {
            if (walk.place == kG) {
                (walk.window > 0ns ? in_part : whole) += 1;
                EXPECT_TRUE(walk.window == 0ns || walk.window >= 10s + World::kMostJitter)
                    << "two windows have to overlap";
            }
        }
        w.finish_walks();
    }
    EXPECT_EQ(whole, 1);
    EXPECT_GE(in_part, 5);
    EXPECT_THAT(w.faults(), IsEmpty());
}

TEST_F(HotListSchedule, AStalePageCostsOneEmptyClaim) {
    const auto floor = ask_floor();
    w.push(kOrders, "p");
    w.read(w.walks()[floor]); // sees it
    w.pop(kG, {.auto_ack = true});
    w.pop(kG); // nothing more: cleared
    w.apply(floor);
    const auto claims = w.claims;
    w.pop(kG);
    EXPECT_EQ(w.claims, claims + 1);
    EXPECT_EQ(w.peek(kG).state, ReadyState::nothing);
}

/// Nobody has popped yet.
class ColdHotListSchedule : public HotListSchedule {
protected:
    void TearDown() override { EXPECT_THAT(cold.faults(), IsEmpty()); }
    World cold{{.options = quiet_options()}};
};

TEST_F(ColdHotListSchedule, Hl12_AWalkOfARingThatWasReplacedDoesNotCountForTheNewOne) {
    cold.take(kG);
    ASSERT_THAT(cold.walks(), SizeIs(1));
    cold.read(cold.walks()[0]);
    cold.push_elsewhere(kOrders, "p");
    cold.list->forget("acme", "orders", "g");
    cold.take(kG);
    ASSERT_THAT(cold.walks(), SizeIs(2)) << "the new ring owes a walk of its own";
    cold.apply(0);
    EXPECT_EQ(cold.peek(kG).state, ReadyState::cold) << "the old one saw nothing of p";
    cold.finish_walks();
    EXPECT_EQ(cold.peek(kG).state, ReadyState::ready);
}

TEST_F(ColdHotListSchedule, AFailedFirstWalkLeavesTheRingCold) {
    cold.take(kG);
    cold.fail(0);
    EXPECT_EQ(cold.peek(kG).state, ReadyState::cold);
    EXPECT_EQ(cold.take(kG)->selection.pick, plugin::Pick::scan);
    cold.run(60s, {.consumers = false, .until_drained = false});
    EXPECT_EQ(cold.peek(kG).state, ReadyState::nothing) << "walked again meanwhile";
}

TEST_F(ColdHotListSchedule, WhatAScanTookIsPromotedWhenItIsReleased) {
    cold.commit(kOrders, "p", 2);
    const auto batch = lease(cold.pop(kG, {.messages = 1, .lease = kLongLease}));
    cold.ack(batch);
    cold.events().pop_front(); // the mark came before the ring
    cold.tell();
    EXPECT_EQ(cold.wakes, 1u);
    EXPECT_THAT(cold.offers(kG), ElementsAre("p")) << "before the first walk has found it";
}

// ---- delay and window ---------------------------------------------------------------------------

TEST_F(HotListSchedule, F7_AGhostOfADelayedQueueStopsBeingClaimed) {
    w.store.configure(kOrders, 2s, 0s);
    w.list->configured(w.queue(kOrders), {2s, 0s, w.clock.now()});
    w.push(kOrders, "p");
    w.advance(2s); // visible, and taken elsewhere before it is due here
    w.consume_elsewhere(kG);
    w.consume_elsewhere(kH);
    w.run(10s, {.walks = false, .until_drained = false});
    const auto claims = w.claims;
    w.run(20s, {.walks = false, .until_drained = false});
    EXPECT_EQ(w.claims, claims) << "claims decay to none (HL-10)";
}

TEST_F(HotListSchedule, Hl10_WhatIsStillDelayedIsNoGhost) {
    w.store.configure(kOrders, 4s, 0s);
    w.list->configured(w.queue(kOrders), {4s, 0s, w.clock.now()});
    w.push(kOrders, "p");
    pass(3900ms);
    w.push(kOrders, "p"); // while the first is still withheld: its own delay begins
    pass(150ms);
    w.consume_elsewhere(kG); // the first is visible now; here it comes a little later
    w.consume_elsewhere(kH);
    EXPECT_TRUE(deliver(4s + 300ms + kRevisit)) << w.undelivered();
}

TEST_F(HotListSchedule, Hl10_AVerdictSpeaksOfWhenItsPopSetOutHoweverLateItArrives) {
    w.store.configure(kOrders, 0s, 2s);
    w.list->configured(w.queue(kOrders), {0s, 2s, w.clock.now()});
    w.push(kOrders, "p");
    pass(2s);
    w.commit(kOrders, "p"); // its mark was told before it, as far as this pop goes
    w.events().clear();
    const auto slow = w.take(kG);
    ASSERT_THAT(slow->names, ElementsAre("p"));
    slow->selection.holds_window = false; // a broker that read another window
    w.claim(*slow);                       // withheld: the last push is too young
    pass(60s);
    w.settle(slow);
    EXPECT_TRUE(deliver(kRevisit)) << w.undelivered();
}

TEST_F(HotListSchedule, ADelayedPartitionIsFoundByWhoeverSleeps) {
    w.store.configure(kOrders, 4s, 0s);
    w.list->configured(w.queue(kOrders), {4s, 0s, w.clock.now()});
    w.push(kOrders, "p");
    EXPECT_TRUE(deliver_to_sleepers(4s + 300ms + kRevisit)) << w.undelivered();
}

TEST_F(HotListSchedule, ABufferedPartitionIsDeliveredOnceItsWindowIsOver) {
    w.store.configure(kOrders, 0s, 2s);
    w.list->configured(w.queue(kOrders), {0s, 2s, w.clock.now()});
    w.push(kOrders, "p");
    pass(1900ms);
    EXPECT_THAT(w.offers(kG), IsEmpty());
    EXPECT_TRUE(deliver_to_sleepers(100ms + kRevisit)) << w.undelivered();
}

TEST_F(HotListSchedule, AWindowIsVouchedForOnlyWhileItsConfigurationIsFresh) {
    w.store.configure(kOrders, 0s, 2s);
    w.list->configured(w.queue(kOrders), {0s, 2s, w.clock.now()});
    w.push(kOrders, "p");
    pass(2s);
    const auto fresh = w.take(kG);
    EXPECT_TRUE(fresh->selection.holds_window);
    EXPECT_EQ(fresh->selection.window, 2s);
    w.drop(fresh);
    pass(31s);
    const auto stale = w.take(kG);
    ASSERT_THAT(stale->names, ElementsAre("p"));
    EXPECT_FALSE(stale->selection.holds_window) << "another broker may have changed it";
    w.drop(stale);
}

TEST_F(HotListSchedule, AWindowIsVouchedForOfAllItsNamesOrOfNone) {
    w.store.configure(kOrders, 0s, 2s);
    w.list->configured(w.queue(kOrders), {0s, 2s, w.clock.now()});
    w.push(kOrders, "old");
    pass(1900ms);
    w.push(kOrders, "young");
    const auto batch = lease(w.pinned(kG, "young", {.lease = kLongLease, .skip_window = true}));
    pass(100ms); // the old one is ready
    w.nack(batch);
    w.tell(); // the young one behind it: what a nack gives back waits for no window
    std::size_t names = 0;
    for (int i = 0; i < 2; ++i) {
        const auto pop = w.take(kG, {.messages = 100, .partitions = 10});
        names += pop->names.size();
        EXPECT_EQ(pop->selection.holds_window, pop->names == std::vector<std::string>{"old"});
    }
    EXPECT_EQ(names, 2u);
}

// ---- what is kept, and for how long -------------------------------------------------------------

TEST_F(HotListSchedule, RingsDoNotAskForTheirFloorsAllAtOnce) {
    // Eight rings, warm since the same moment: each has a place of its own in the first seconds.
    std::set<SteadyTime> asked;
    std::size_t walks = 0;
    while (w.walks().size() < w.places().size() && w.faults().empty()) {
        pass(10ms);
        if (w.walks().size() != walks) {
            walks = w.walks().size();
            asked.insert(w.clock.now());
        }
    }
    EXPECT_GE(asked.size(), w.places().size() / 2);
}

class ForgetfulHotList : public testing::Test {
protected:
    static Options options(Nanoseconds sweep, Nanoseconds trim) {
        Options options;
        options.idle_sweep = sweep;
        options.unserved_trim = trim;
        return options;
    }
    static void pass(World& w, Nanoseconds span) {
        w.run(span, {.consumers = false, .until_drained = false});
    }
};

TEST_F(ForgetfulHotList, F46_WhatNobodyPopsIsNotKept) {
    World w({.options = options(0s, 30s)});
    w.warm();
    for (int second = 0; second < 40; ++second) {
        w.push(kOrders, "p" + std::to_string(second)); // a broker that has only producers
        pass(w, 1s);
    }
    EXPECT_EQ(w.stat("rings"), 0);
    EXPECT_EQ(w.stat("partitions"), 0);
    EXPECT_EQ(w.peek(kG).state, ReadyState::cold);
}

TEST_F(ForgetfulHotList, F47_ABacklogOfASlowConsumerIsKeptHoweverOld) {
    World w({.options = options(0s, 30s)});
    w.warm();
    w.push(kOrders, "p");
    for (int i = 0; i < 10; ++i) {
        pass(w, 20s);
        EXPECT_EQ(w.peek(kG).state, ReadyState::ready) << "somebody is there and looks";
    }
}

TEST_F(ForgetfulHotList, Hl16_WhatIsCheckedOutIsNotTrimmed) {
    auto no_floor = options(0s, 30s); // it would take back what is checked out
    no_floor.reseed = no_floor.reseed_full = 1h;
    World w({.options = no_floor});
    w.warm();
    w.push(kOrders, "p");
    const auto slow = w.take(kG);
    pass(w, 300s);
    EXPECT_EQ(w.stat("rings"), 1);
    w.drop(slow);
    EXPECT_EQ(w.peek(kG).state, ReadyState::ready);
    pass(w, 60s);
    EXPECT_EQ(w.stat("rings"), 0);
}

TEST_F(ForgetfulHotList, F48_AQueueThatSomebodyTouchedInBetweenIsNotSwept) {
    World w({.options = options(10s, 0s)});
    w.warm();
    for (int i = 0; i < 10; ++i) {
        pass(w, 9s);
        EXPECT_EQ(w.peek(kG).state, ReadyState::nothing) << "not cold: nothing was lost";
    }
    EXPECT_EQ(w.stat("queues"), 1) << "and those of the others are gone";
    pass(w, 20s);
    EXPECT_EQ(w.stat("queues"), 0) << "two intervals without a touch";
}

TEST_F(ForgetfulHotList, F48_AQueueWithSomethingInItIsNotSwept) {
    World w({.options = options(10s, 0s)});
    w.warm();
    w.push(kOrders, "p");
    w.pop({kOrders, "h"}, {.auto_ack = true});
    w.pop({kOrders, "h"});
    pass(w, 60s);
    EXPECT_EQ(w.stat("queues"), 1);
    EXPECT_EQ(w.peek(kG).state, ReadyState::ready);
}

TEST_F(ForgetfulHotList, F49_NamesThatAreMadeUpAreNotKept) {
    World w({.options = options(10s, 0s)});
    for (int i = 0; i < 1000; ++i) {
        const auto name = "made-up-" + std::to_string(i);
        const auto key = "acme\x1f" + name;
        const plugin::Scope scope{{key, "acme", name}, "g"};
        EXPECT_EQ(w.list->peek(scope).state, ReadyState::cold);
    }
    EXPECT_EQ(w.stat("queues"), 0) << "a look makes nothing";
}

// ---- whose ring ---------------------------------------------------------------------------------

TEST_F(HotListSchedule, Hl22_ForgettingAGroupOfOneTenantLeavesTheOtherAlone) {
    w.push(World::kAcmeOrders, "p");
    w.push(World::kBlueOrders, "b");
    w.list->forget("acme", "", "g");
    EXPECT_EQ(w.peek({World::kBlueOrders, "g"}).state, ReadyState::ready);
    EXPECT_EQ(w.peek({World::kAcmeOrders, "g"}).state, ReadyState::cold);
    EXPECT_EQ(w.peek({World::kAcmeOrders, "h"}).state, ReadyState::ready);
}

TEST_F(HotListSchedule, ASettleOfAForgottenRingIsHarmless) {
    w.push(kOrders, "p");
    const auto pop = w.take(kG);
    w.list->forget("acme", "orders", "");
    w.pop(kG); // the new ring: cold, so the store scans
    w.settle(pop);
    w.finish_walks();
    EXPECT_TRUE(deliver(60s)) << w.undelivered();
}

} // namespace
} // namespace queen::hotlist::schedule
