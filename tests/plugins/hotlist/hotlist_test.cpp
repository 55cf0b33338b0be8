// What a broker sees of the hot-list: peek, take, settle, marks, releases, wakes.
#include "hotlist_fixture.hpp"

#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

namespace queen::hotlist {
namespace {

using plugin::Pick;
using plugin::ReadyState;
using plugin::Verdict;
using plugin::VerdictKind;

class HotListTest : public HotListFixture {};

TEST_F(HotListTest, AnUnknownScopeIsColdAndPeekMakesNothingOfIt) {
    for (int i = 0; i < 1000; ++i) {
        const std::string name = "q" + std::to_string(i), key = "t\x1f" + name;
        EXPECT_EQ(state({{key, "t", name}, "g"}), ReadyState::cold);
    }
    EXPECT_EQ(figure("queues"), 0);
    EXPECT_EQ(tick(), SteadyTime::max());
    EXPECT_TRUE(host.reseeds().empty());
}

TEST_F(HotListTest, AColdTakeScansAndAsksForOneFullWalk) {
    Taken first = take();
    EXPECT_EQ(first.pick(), Pick::scan);
    EXPECT_EQ(take().pick(), Pick::scan);
    ASSERT_EQ(host.reseeds().size(), 1u);
    EXPECT_EQ(host.reseeds()[0].window, 0s);
    EXPECT_EQ(host.reseeds()[0].group, "a");
    EXPECT_EQ(figure("scans_total"), 2);
    settle(std::move(first));
}

TEST_F(HotListTest, AColdRingOffersWhatItHasByNow) {
    take();
    mark({"p1"});
    EXPECT_EQ(state(), ReadyState::cold) << "it does not know all";
    EXPECT_EQ(take().names, Names{"p1"});
}

TEST_F(HotListTest, ARingThatCannotBeWalkedStillScansNowAndThen) {
    take();
    done(false);
    int scans = 0;
    for (int i = 0; i < 90; ++i) {
        mark({"busy"});
        Taken taken = take();
        scans += taken.pick() == Pick::scan ? 1 : 0;
        settle(std::move(taken), VerdictKind::took_acked);
    }
    EXPECT_EQ(scans, 10) << "a partition that nobody marks would starve";
}

TEST_F(HotListTest, AWarmRingAnswersNothingWithoutAStatement) {
    warm();
    EXPECT_EQ(state(), ReadyState::nothing);
    EXPECT_EQ(take().pick(), Pick::none);
    EXPECT_EQ(host.reseeds().size(), 1u);
}

TEST_F(HotListTest, PeekEstimatesAndChangesNothing) {
    warm();
    mark({"p1", "p2"}, kOrders, {}, 5);
    for (int i = 0; i < 10; ++i) {
        const auto found = list->peek(kA);
        EXPECT_EQ(found.state, ReadyState::ready);
        EXPECT_EQ(found.partitions, 2u);
        EXPECT_EQ(found.messages, 10u);
        EXPECT_EQ(found.next_due, SteadyTime::max());
    }
    EXPECT_EQ(take().names, (Names{"p1", "p2"}));
    EXPECT_EQ(state(), ReadyState::nothing);
}

// Else a pop that waits for a fuller batch would wait before a backlog that nobody marks any more.
TEST_F(HotListTest, ABacklogCountsAsWhatItsLastClaimTook) {
    warm();
    mark({"p1"}, kOrders, {}, 250);
    const auto claimed = [&](Taken pop, bool drained) {
        const auto token = pop.offered.at(0).token;
        settle(std::move(pop), {{.token = token,
                                 .partition = "p1",
                                 .partition_id = id_of_name("p1"),
                                 .kind = plugin::VerdictKind::took_acked,
                                 .drained = drained,
                                 .frames = 100}});
    };
    claimed(take(), false);
    EXPECT_EQ(list->peek(kA).messages, 100u);
    mark({"p1"}, kOrders, {}, 3);
    EXPECT_EQ(list->peek(kA).messages, 100u);
    mark({"p1"}, kOrders, {}, 120);
    EXPECT_EQ(list->peek(kA).messages, 123u);
    auto rest = take();
    EXPECT_EQ(list->peek(kA).messages, 0u);
    claimed(std::move(rest), true);
    EXPECT_EQ(list->peek(kA).messages, 0u);
}

TEST_F(HotListTest, AWheelEntryThatIsDueCountsAsReady) {
    warm();
    list->configured(kOrders, {5s, 0s, clock.now()});
    mark({"p1"});
    auto found = list->peek(kA);
    EXPECT_EQ(found.state, ReadyState::nothing);
    EXPECT_EQ(found.next_due, clock.now() + 5s + 300ms);
    clock.advance(5s + 300ms);
    found = list->peek(kA);
    EXPECT_EQ(found.state, ReadyState::ready);
    EXPECT_EQ(found.partitions, 1u);
    EXPECT_EQ(take().names, Names{"p1"}) << "without a tick";
}

TEST_F(HotListTest, AMarkReachesEveryGroupThatPolls) {
    warm(kA);
    warm(kB);
    mark({"p1"});
    EXPECT_EQ(take(kA).names, Names{"p1"});
    EXPECT_EQ(take(kB).names, Names{"p1"});
}

TEST_F(HotListTest, AMarkOfOneGroupReachesThatGroupAlone) {
    warm(kA);
    warm(kB);
    mark({"p1"}, kOrders, "b");
    EXPECT_EQ(state(kA), ReadyState::nothing);
    EXPECT_EQ(take(kB).names, Names{"p1"});
}

TEST_F(HotListTest, MarksOfAQueueNobodyPollsCostNothing) {
    mark({"p1"});
    list->learn(kOrders, "p1", id_of(1));
    list->configured(kOrders, {1s, 1s, clock.now()});
    list->released(kOrders, "a", id_of(1), true);
    EXPECT_EQ(figure("queues"), 0);
    EXPECT_EQ(figure("partitions"), 0);
    EXPECT_EQ(figure("marks_local_total"), 1);
}

TEST_F(HotListTest, TheSameNameOfAnotherTenantIsAnotherQueue) {
    warm(kA);
    warm({kOthersOrders, "a"});
    mark({"theirs"}, kOthersOrders);
    EXPECT_EQ(state(kA), ReadyState::nothing);
    EXPECT_EQ(take({kOthersOrders, "a"}).names, Names{"theirs"});
}

TEST_F(HotListTest, MarksAreCountedByWhereTheyComeFrom) {
    mark({"p1", "p2"});
    mark({"p3"}, kOrders, {}, 1, plugin::Origin::timer);
    mark({"p4"}, kOrders, {}, 1, plugin::Origin::transaction);
    mark({"p5"}, kOrders, {}, 1, plugin::Origin::peer);
    EXPECT_EQ(figure("marks_local_total"), 4);
    EXPECT_EQ(figure("marks_remote_total"), 1);
}

TEST_F(HotListTest, AMarkNeverWakes) {
    warm();
    mark({"p1"});
    mark({"p2"}, kOrders, {}, 1, plugin::Origin::peer);
    EXPECT_TRUE(host.wakes().empty()) << "the host wakes for marks, once for all its sources";
}

TEST_F(HotListTest, F2_ABacklogTakenInSmallBatchesHasNoGaps) {
    warm();
    mark({"p1"}, kOrders, {}, 1000);
    for (int batch = 0; batch < 10; ++batch) {
        Taken taken = take(kA, 100);
        ASSERT_EQ(taken.names, Names{"p1"}) << "batch " << batch;
        settle(std::move(taken), VerdictKind::took_leased, batch == 9);
        EXPECT_EQ(state(), ReadyState::nothing) << "our own lease: no use in a probe";
        list->released(kOrders, "a", id_of_name("p1"), true);
    }
    EXPECT_EQ(state(), ReadyState::nothing) << "drained, acked, cleared";
    EXPECT_EQ(figure("ready") + figure("wheel") + figure("in_flight"), 0);
    EXPECT_EQ(host.wakes().size(), 9u);
    EXPECT_EQ(figure("claims_took_total"), 10);
    EXPECT_EQ(figure("claims_empty_total"), 0) << "not one empty claim";
}

TEST_F(HotListTest, F1_AVerdictThatComesAfterTheReleaseParksForASecondAtMost) {
    warm();
    mark({"p1"});
    settle(take(), VerdictKind::requeue); // tells the id
    Taken taken = take();
    list->released(kOrders, "a", id_of_name("p1"), true); // by the pop that really held it
    settle(std::move(taken), VerdictKind::leased, false, 5min);
    const SteadyTime due = list->peek(kA).next_due;
    EXPECT_LE(due, clock.now() + 1000ms);
    clock.advance(due - clock.now());
    EXPECT_EQ(take().names, Names{"p1"});
}

TEST_F(HotListTest, F3_ANackMakesReadyAndWakes) {
    warm();
    mark({"p1"});
    settle(take(), VerdictKind::took_leased, true);
    list->released(kOrders, "a", id_of_name("p1"), false);
    EXPECT_EQ(state(), ReadyState::ready);
    ASSERT_EQ(host.wakes().size(), 1u);
    EXPECT_EQ(host.wakes()[0].queue_key, kOrders.key);
    EXPECT_EQ(host.wakes()[0].group, "a");
    EXPECT_EQ(host.wakes()[0].ready, 1u);
}

TEST_F(HotListTest, F4_ACoveredReleaseOfADrainedPartitionIsNotProbed) {
    warm();
    mark({"p1"});
    settle(take(), VerdictKind::took_leased, true);
    list->released(kOrders, "a", id_of_name("p1"), true);
    EXPECT_EQ(take().pick(), Pick::none);
    EXPECT_TRUE(host.wakes().empty());
}

TEST_F(HotListTest, AReleaseOfWhatIsNotKnownDoesNothing) {
    list->released(kOrders, "a", id_of(1), true);
    warm();
    list->released(kOrders, "a", id_of(1), false);
    list->released(kOrders, "a", {}, false);
    list->released(kOrders, "b", id_of(1), false);
    list->released(kInvoices, "a", id_of(1), false);
    EXPECT_EQ(state(), ReadyState::nothing);
    EXPECT_TRUE(host.wakes().empty());
}

TEST_F(HotListTest, AReleaseConcernsItsGroupAlone) {
    warm(kA);
    warm(kB);
    mark({"p1"});
    settle(take(kA), VerdictKind::took_leased);
    settle(take(kB), VerdictKind::took_leased);
    list->released(kOrders, "a", id_of_name("p1"), true);
    EXPECT_EQ(state(kA), ReadyState::ready);
    EXPECT_EQ(state(kB), ReadyState::nothing);
}

TEST_F(HotListTest, AfterAScanTheReleaseFindsWhatTheStoreFound) {
    Taken scan = take();
    ASSERT_EQ(scan.pick(), Pick::scan);
    const SteadyTime until = clock.now() + 60s;
    settle(std::move(scan),
           {Verdict{0, "found", id_of(9), VerdictKind::took_leased, false, 10, until}});
    page({});
    done();
    EXPECT_EQ(state(), ReadyState::nothing);
    list->released(kOrders, "a", id_of(9), true);
    EXPECT_EQ(take().names, Names{"found"});
    EXPECT_EQ(host.wakes().size(), 1u);
}

TEST_F(HotListTest, AScanThatLeftSomethingBehindMakesItReady) {
    settle(take(), {Verdict{0, "more", id_of(1), VerdictKind::took_acked, false, 10, {}},
                    Verdict{0, "all", id_of(2), VerdictKind::took_acked, true, 10, {}}});
    EXPECT_EQ(take().names, Names{"more"});
}

TEST_F(HotListTest, AnIdThatIsLearnedLeadsItsReleaseBack) {
    warm();
    mark({"p1"});
    list->learn(kOrders, "p1", id_of(5)); // a pinned pop took it
    Taken taken = take();
    settle(std::move(taken),
           {Verdict{1, "p1", {}, VerdictKind::leased, false, 0, clock.now() + 60s}});
    list->released(kOrders, "a", id_of(5), true);
    EXPECT_EQ(take().names, Names{"p1"});
}

TEST_F(HotListTest, APopThatDiedGivesBackAllItTook) {
    warm();
    mark({"p1", "p2", "p3"});
    Taken taken = take();
    ASSERT_EQ(taken.names.size(), 3u);
    settle(std::move(taken)); // no verdicts
    EXPECT_EQ(take().names, (Names{"p1", "p2", "p3"}));
    EXPECT_EQ(figure("claims_requeue_total"), 3);
}

TEST_F(HotListTest, NamesTheHostHadNoRoomForComeBack) {
    warm();
    mark({"p1", "p2", "p3"});
    plugin::NameList names(2);
    auto selection = list->take({kA, 0, 1, 1000, 3}, names); // the host takes fewer than it said
    EXPECT_EQ(names.partitions(), (Names{"p1", "p2"}));
    list->settle(
        kA, std::move(selection.cookie),
        std::vector<Verdict>{{1, "p1", {}, VerdictKind::empty}, {2, "p2", {}, VerdictKind::empty}});
    EXPECT_EQ(take().names, Names{"p3"});
}

TEST_F(HotListTest, WhoWasServedGoesBehindWhoWasNot) {
    warm();
    mark({"served", "passed over"});
    Taken taken = take();
    settle(std::move(taken), {Verdict{1, "served", {}, VerdictKind::took_acked, false, 10, {}},
                              Verdict{2, "passed over", {}, VerdictKind::requeue}});
    EXPECT_EQ(take().names, (Names{"passed over", "served"}));
}

TEST_F(HotListTest, AHeldWindowIsSaidWithTheWindowItWasHeldFor) {
    warm();
    list->configured(kOrders, {0s, 2s, clock.now()});
    mark({"p1"});
    EXPECT_EQ(state(), ReadyState::nothing);
    clock.advance(2s);
    Taken taken = take();
    EXPECT_TRUE(taken.selection.holds_window);
    EXPECT_EQ(taken.selection.window, 2s);
    settle(std::move(taken), VerdictKind::took_acked);
    EXPECT_EQ(list->peek(kA).next_due, clock.now() + 2s);
}

TEST_F(HotListTest, WhatWaitsForATimeThatBecameShorterIsLookedAtByATick) {
    for (const bool delay : {true, false}) {
        remake({});
        warm();
        list->configured(kOrders, {delay ? 20s : 0s, delay ? 0s : 20s, clock.now()});
        mark({"p1"});
        clock.advance(1s);
        list->configured(kOrders, {delay ? 20s : 0s, delay ? 0s : 20s, clock.now()});
        EXPECT_EQ(state(), ReadyState::nothing) << "nothing changed";
        list->configured(kOrders, {0s, 0s, clock.now()});
        list->tick(clock.now());
        EXPECT_EQ(take().names, Names{"p1"});
    }
}

TEST_F(HotListTest, AHeldWindowIsNotSaidUnderAnOldConfiguration) {
    warm();
    list->configured(kOrders, {0s, 2s, clock.now()});
    mark({"p1"});
    clock.advance(30s + 1ns);
    Taken taken = take();
    EXPECT_EQ(taken.names, Names{"p1"});
    EXPECT_FALSE(taken.selection.holds_window);
}

TEST_F(HotListTest, AQueueWhoseConfigurationIsNotKnownIsPlain) {
    warm();
    mark({"p1"});
    Taken taken = take();
    EXPECT_EQ(taken.names, Names{"p1"});
    EXPECT_FALSE(taken.selection.holds_window);
}

TEST_F(HotListTest, ALongerTimeLeavesWhatWaitsAlone) {
    warm();
    list->configured(kOrders, {10s, 0s, clock.now()});
    mark({"p1"});
    list->configured(kOrders, {60s, 0s, clock.now()});
    EXPECT_EQ(list->peek(kA).next_due, clock.now() + 10s + 300ms);
    clock.advance(10s + 300ms);
    mark({"p2"});
    EXPECT_EQ(take().names, Names{"p1"}) << "used from the next event on";
}

TEST_F(HotListTest, TheBatchThatEndsAWindowIsAnOption) {
    Options options;
    options.window_batch = 3;
    remake(options);
    warm();
    list->configured(kOrders, {0s, 60s, clock.now()});
    mark({"p1"}, kOrders, {}, 2);
    EXPECT_EQ(state(), ReadyState::nothing);
    mark({"p1"});
    Taken taken = take();
    EXPECT_EQ(taken.names, Names{"p1"});
    EXPECT_TRUE(taken.selection.holds_window);
}

TEST_F(HotListTest, AForgottenGroupIsColdAndTheOthersAreNot) {
    warm(kA);
    warm(kB);
    list->forget("t", "orders", "a");
    EXPECT_EQ(state(kA), ReadyState::cold);
    EXPECT_EQ(state(kB), ReadyState::nothing);
    list->forget("t", "orders", "");
    EXPECT_EQ(state(kB), ReadyState::cold);
    EXPECT_EQ(figure("queues"), 0);
}

TEST_F(HotListTest, HL22_AGroupForgottenEverywhereIsForgottenForItsTenantOnly) {
    const plugin::Scope invoices{kInvoices, "a"}, theirs{kOthersOrders, "a"};
    for (const auto& scope : {kA, kB, invoices, theirs}) {
        warm(scope);
    }
    list->forget("t", "", "a");
    EXPECT_EQ(state(kA), ReadyState::cold);
    EXPECT_EQ(state(invoices), ReadyState::cold);
    EXPECT_EQ(state(kB), ReadyState::nothing);
    EXPECT_EQ(state(theirs), ReadyState::nothing);
    list->forget("t", "", "");
    EXPECT_EQ(state(kB), ReadyState::cold);
    EXPECT_EQ(state(theirs), ReadyState::nothing);
}

TEST_F(HotListTest, ASelectionOfAForgottenRingSettlesWithoutEffect) {
    warm();
    mark({"p1"});
    Taken taken = take();
    list->forget("t", "orders", "");
    EXPECT_EQ(figure("queues") + figure("rings") + figure("in_flight"), 0);
    warm();
    mark({"p1"});
    Taken later = take();
    ASSERT_EQ(later.names, Names{"p1"});
    settle(std::move(taken), VerdictKind::requeue);
    EXPECT_EQ(state(), ReadyState::nothing) << "the new ring's entry is checked out by the later";
    settle(std::move(later), VerdictKind::empty);
    EXPECT_EQ(figure("ready") + figure("wheel") + figure("in_flight"), 0);
}

TEST_F(HotListTest, AgesOfWhatIsTakenAreSampled) {
    warm();
    mark({"p1"});
    clock.advance(40ms);
    EXPECT_NEAR(figure("oldest_ready_milliseconds"), 40, 0.01);
    settle(take(), VerdictKind::took_acked);
    EXPECT_NEAR(figure("ready_age_p50_milliseconds"), 40, 0.01);
    EXPECT_NEAR(figure("ready_age_p95_milliseconds"), 40, 0.01);
    EXPECT_EQ(figure("oldest_ready_milliseconds"), 0);
    EXPECT_EQ(figure("names_offered_total"), 1);
}

TEST_F(HotListTest, ATracedQueueLeavesBreadcrumbsAndOthersNone) {
    Options options;
    options.trace = "ord";
    remake(options);
    warm(kA);
    warm({kInvoices, "a"});
    lines.clear();
    mark({"p1"}, kInvoices);
    EXPECT_TRUE(lines.empty());
    mark({"p1"});
    settle(take(), VerdictKind::took_leased);
    ASSERT_EQ(lines.size(), 3u);
    EXPECT_NE(lines[0].find("what=mark tenant=t queue=orders group=a count=1 partition=p1"),
              std::string::npos)
        << lines[0];
    EXPECT_NE(lines[1].find("what=take"), std::string::npos);
    EXPECT_NE(lines[2].find("what=settle"), std::string::npos);
}

/// Calls back into the list from inside each call, as a broker may.
class CallingBack final : public plugin::CandidateHost {
public:
    void wake(const plugin::Queue&, std::string_view, std::uint64_t) override { call(wakes); }
    void reseed(const plugin::Scope& scope, plugin::Ticket asked, Nanoseconds) override {
        ticket = scope.group == kA.group ? asked : ticket;
        call(reseeds);
    }
    void tick_at(SteadyTime) override { call(ticks); }

    HotList* list = nullptr;
    plugin::Ticket ticket = 0;
    int wakes = 0, reseeds = 0, ticks = 0;

private:
    struct Ignored final : plugin::Stats {
        void add(std::string_view, double) override {}
    };
    void call(int& counter) {
        ++counter;
        if (std::exchange(inside_, true)) {
            return;
        }
        const plugin::Mark mark{"from inside", id_of(3), 1};
        const plugin::Scope other{kInvoices, "inside"};
        Ignored ignored;
        (void)list->peek(kA);
        list->mark(kOrders, {}, plugin::Origin::push, {&mark, 1});
        list->released(kOrders, "a", id_of(3), true);
        list->configured(kOrders, {0s, 0s, SteadyTime(1s)});
        list->stats(ignored);
        plugin::NameList names(1);
        auto selection = list->take({other, 0, 1, 1, 1}, names); // takes each lock alone
        if (selection.cookie) {
            list->settle(other, std::move(selection.cookie), {});
        }
        list->forget("t", "invoices", "");
        inside_ = false;
    }
    bool inside_ = false;
};

TEST_F(HotListTest, HL17_TheHostIsCalledWithNoLockHeld) {
    CallingBack back;
    HotList one({}, clock, back);
    back.list = &one;
    plugin::NameList names(16);
    auto selection = one.take({kA, 0, 1, 1000, 16}, names);
    one.settle(kA, std::move(selection.cookie), {});
    const plugin::ReseedRow row{"walked", id_of(4)};
    EXPECT_TRUE(one.reseed_page(kA, back.ticket, {&row, 1}));
    one.reseed_done(kA, back.ticket, true);
    one.configured(kOrders, {5s, 0s, clock.now()});
    const plugin::Mark mark{"deferred", {}, 1};
    one.mark(kOrders, {}, plugin::Origin::push, {&mark, 1});
    clock.advance(6s);
    one.tick(clock.now());
    EXPECT_GE(back.wakes, 2) << "a page and a tick";
    EXPECT_GE(back.reseeds, 2);
    EXPECT_GE(back.ticks, 2);
}

// Threads that push, pop, ack, forget and tick at once. The sanitizers look for races; here it is
// checked that no partition is checked out twice and that everything comes back in the end.
TEST_F(HotListTest, ManyThreadsAtOnceCheckNothingOutTwice) {
    Options options;
    options.unserved_trim = 0s;
    remake(options);
    warm(kA);
    std::mutex mutex;
    std::set<std::string> out;
    std::atomic<int> twice{0};
    std::atomic<bool> stop{false};
    const auto consumer = [&](unsigned seed) {
        for (int i = 0; i < 3000; ++i) {
            seed = seed * 1664525u + 1013904223u;
            mark({"p" + std::to_string((seed >> 16) % 40)});
            (void)list->peek(kA);
            plugin::NameList names(4);
            auto selection = list->take({kA, 0, 1, 1000, 4}, names);
            {
                const std::lock_guard lock(mutex);
                for (const auto& name : names.partitions()) {
                    twice += out.insert(name).second ? 0 : 1;
                }
            }
            {
                const std::lock_guard lock(mutex);
                for (const auto& name : names.partitions()) {
                    out.erase(name);
                }
            }
            std::vector<Verdict> verdicts;
            for (const auto& entry : names.entries()) {
                const auto kind = static_cast<VerdictKind>(1 + (seed >> 8) % 5);
                verdicts.push_back({entry.token, entry.partition, id_of(1 + entry.partition.back()),
                                    kind, (seed & 4096) != 0, 1, clock.now() + 1ms});
            }
            if (selection.cookie != nullptr) {
                list->settle(kA, std::move(selection.cookie), verdicts);
            }
            list->released(kOrders, "a", id_of(static_cast<std::uint8_t>(1 + '0' + seed % 10)),
                           (seed & 8192) != 0);
        }
    };
    {
        std::jthread ticker([&] {
            while (!stop.load()) {
                clock.advance(1ms);
                tick();
                (void)figure("ready");
            }
        });
        {
            std::vector<std::jthread> threads;
            for (unsigned seed = 1; seed <= 3; ++seed) {
                threads.emplace_back(consumer, seed);
            }
        }
        stop.store(true);
    }
    EXPECT_EQ(twice, 0);
    EXPECT_EQ(figure("in_flight"), 0);
    clock.advance(10s);
    mark({"last"});
    std::set<std::string> left;
    for (Taken taken = take(); taken.pick() == Pick::names; taken = take()) {
        left.insert(taken.names.begin(), taken.names.end());
        settle(std::move(taken), VerdictKind::empty);
    }
    EXPECT_TRUE(left.contains("last"));
    EXPECT_EQ(figure("ready") + figure("wheel") + figure("in_flight"), 0);
}

} // namespace
} // namespace queen::hotlist
