// What walks find again, what delays and windows hold back, what is kept and for how long.
#include "schedule_fixture.hpp"

#include <set>

namespace queen::hotlist::schedule {
namespace {

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

TEST_F(HotListSchedule, Hl9_WhatAWalkFindsOnADelayedQueueMayHaveWaitedLongEnough) {
    w.store.configure(kOrders, 20s, 0s);
    w.list->configured(w.queue(kOrders), {20s, 0s, w.clock.now()});
    w.push_elsewhere(kOrders, "p");
    const auto floor = ask_floor();
    w.advance(20s);
    w.read(w.walks()[floor]);
    w.apply(floor);
    EXPECT_THAT(w.pop(kG), SizeIs(1));
}

TEST_F(HotListSchedule, WhatWaitsIsLookedAtWhenItsTimeBecomesShorter) {
    for (const bool delay : {true, false}) {
        w.store.configure(kOrders, delay ? 3600s : 0s, delay ? 0s : 3600s);
        w.list->configured(w.queue(kOrders),
                           {delay ? 3600s : 0s, delay ? 0s : 3600s, w.clock.now()});
        w.push(kOrders, "p");
        pass(10s);
        w.store.configure(kOrders, 0s, 0s);
        w.list->configured(w.queue(kOrders), {0s, 0s, w.clock.now()});
        EXPECT_TRUE(deliver(kRevisit)) << w.undelivered();
    }
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
