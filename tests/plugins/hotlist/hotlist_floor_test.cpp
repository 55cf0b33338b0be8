// What a broker sees of the hot-list over time: ticks, walks, trims, sweeps.
#include "hotlist_fixture.hpp"

#include <algorithm>

namespace queen::hotlist {
namespace {

using plugin::Pick;
using plugin::ReadyState;
using plugin::VerdictKind;

class HotListFloorTest : public HotListFixture {
protected:
    bool logged(std::string_view text) const {
        return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
            return line.find(text) != std::string::npos;
        });
    }
};

// ---- walks --------------------------------------------------------------------------------------

TEST_F(HotListFloorTest, AWalkMakesWhatItFindsReadyAndWakesOnceAPage) {
    take();
    page({"p1", "p2"});
    page({"p3"});
    done();
    ASSERT_EQ(host.wakes().size(), 2u);
    EXPECT_EQ(host.wakes()[0].ready, 2u);
    EXPECT_EQ(host.wakes()[0].group, "a");
    EXPECT_EQ(host.wakes()[1].ready, 1u);
    EXPECT_EQ(take().names, (Names{"p1", "p2", "p3"}));
    EXPECT_EQ(figure("reseeds_full_total"), 1);
}

TEST_F(HotListFloorTest, AWalkThatFindsNothingNewWakesNobody) {
    warm();
    mark({"p1"});
    clock.advance(46s);
    (void)state(); // a consumer is there
    tick();
    ASSERT_EQ(host.reseeds().size(), 2u);
    page({"p1"});
    EXPECT_TRUE(host.wakes().empty());
}

TEST_F(HotListFloorTest, WhatAWalkFoundIsReleasedByItsId) {
    take();
    page({"p1"});
    done();
    Taken taken = take();
    settle(std::move(taken),
           {plugin::Verdict{1, "p1", {}, VerdictKind::leased, false, 0, clock.now() + 60s}});
    list->released(kOrders, "a", id_of_name("p1"), true);
    EXPECT_EQ(take().names, Names{"p1"});
}

TEST_F(HotListFloorTest, TheFloorWalksEachIntervalWhileAConsumerIsThere) {
    warm();
    answered = 1;
    const SteadyTime begin = clock.now();
    for (int second = 0; second < 300; ++second) {
        (void)state();
        run_until(clock.now() + 1s);
        answer_walks();
    }
    const auto walks = host.reseeds().size() - 1;
    EXPECT_GE(walks, 6u) << "45 s apart at most";
    EXPECT_LE(walks, 10u) << "30 s apart at least";
    EXPECT_EQ(clock.now(), begin + 300s);
    EXPECT_EQ(figure("reseeds_full_total"), static_cast<double>(walks) + 1);
}

TEST_F(HotListFloorTest, ALargeQueueIsWalkedByWindows) {
    take();
    page({});
    page({});
    done();
    clock.advance(46s);
    (void)state();
    tick();
    ASSERT_EQ(host.reseeds().size(), 2u);
    EXPECT_EQ(host.reseeds()[1].window, 120s);
    page({"late"});
    done();
    EXPECT_EQ(take().names, Names{"late"});
    EXPECT_EQ(figure("reseeds_window_total"), 1);
}

TEST_F(HotListFloorTest, F45_AWalkOfAReplacedRingStampsNothing) {
    take();
    const auto old = ticket();
    list->forget("t", "orders", "a");
    take();
    ASSERT_NE(ticket(), old) << "the new ring owes a walk of its own";
    const plugin::ReseedRow row{"stale", id_of(1)};
    EXPECT_FALSE(list->reseed_page(kA, old, {&row, 1}));
    list->reseed_done(kA, old, true);
    EXPECT_EQ(state(), ReadyState::cold);
    EXPECT_EQ(figure("reseeds_dropped_total"), 1);
    page({"p1"});
    done();
    EXPECT_EQ(state(), ReadyState::ready);
}

TEST_F(HotListFloorTest, AFailedWalkIsMadeAgainByTheTick) {
    take();
    done(false);
    EXPECT_EQ(state(), ReadyState::cold);
    EXPECT_LE(tick(), clock.now() + 1s);
    clock.advance(1s);
    tick();
    ASSERT_EQ(host.reseeds().size(), 2u);
    EXPECT_EQ(host.reseeds()[1].window, 0s);
    page({});
    done();
    EXPECT_EQ(state(), ReadyState::nothing);
    EXPECT_EQ(figure("reseeds_failed_total"), 1);
}

TEST_F(HotListFloorTest, FailuresAreWarnedOfAtThreeAndThenAtPowersOfTwo) {
    take();
    std::vector<int> warned_at;
    for (int i = 1; i <= 20; ++i) {
        const auto before = lines.size();
        done(false);
        if (lines.size() > before) {
            warned_at.push_back(i);
        }
        clock.advance(40s);
        take();
        ASSERT_EQ(host.reseeds().size(), static_cast<std::size_t>(i) + 1);
    }
    EXPECT_EQ(warned_at, (std::vector<int>{3, 4, 8, 16}));
    EXPECT_TRUE(logged("warning reseed failed tenant=t queue=orders group=a times_in_a_row=3"));
}

TEST_F(HotListFloorTest, F6_WhatADeadPopKeptIsFoundByTheNextWalk) {
    Options options;
    options.unserved_trim = 0s;
    remake(options);
    warm();
    mark({"p1"});
    Taken stranded = take();
    clock.advance(46s);
    tick();
    page({"p1"});
    done();
    EXPECT_EQ(host.wakes().size(), 1u);
    EXPECT_EQ(take().names, Names{"p1"});
    settle(std::move(stranded), VerdictKind::empty);
    EXPECT_EQ(figure("in_flight"), 1) << "the later pop has it";
}

// ---- ticks --------------------------------------------------------------------------------------

TEST_F(HotListFloorTest, AnIdleBrokerIsNeverTicked) {
    EXPECT_EQ(tick(), SteadyTime::max());
    warm();
    mark({"p1"});
    list->forget("t", "", "");
    EXPECT_EQ(tick(), SteadyTime::max());
}

TEST_F(HotListFloorTest, ATickMakesDueEntriesReadyAndWakesOncePerRing) {
    warm(kA);
    warm(kB);
    list->configured(kOrders, {5s, 0s, clock.now()});
    mark({"p1", "p2", "p3"});
    const SteadyTime due = clock.now() + 5s + 300ms;
    EXPECT_EQ(tick(), due);
    EXPECT_TRUE(host.wakes().empty());
    clock.advance(5s + 300ms);
    tick();
    ASSERT_EQ(host.wakes().size(), 2u);
    EXPECT_NE(host.wakes()[0].group, host.wakes()[1].group);
    EXPECT_EQ(host.wakes()[0].ready, 3u);
    EXPECT_EQ(take(kA).names.size(), 3u);
}

TEST_F(HotListFloorTest, AnEarlierEntryPullsTheTickForwardAndALaterOneDoesNot) {
    warm();
    tick();
    list->configured(kOrders, {10s, 0s, clock.now()});
    const auto before = host.ticks().size();
    mark({"p1"});
    ASSERT_EQ(host.ticks().size(), before + 1);
    EXPECT_EQ(host.ticks().back(), clock.now() + 10s + 300ms);
    clock.advance(1s);
    mark({"p2", "p3"});
    EXPECT_EQ(host.ticks().size(), before + 1);
    list->configured(kOrders, {1s, 0s, clock.now()});
    mark({"p4"});
    EXPECT_EQ(host.ticks().size(), before + 2);
}

TEST_F(HotListFloorTest, AThousandEntriesCloseTogetherShareTicks) {
    warm();
    list->configured(kOrders, {5s, 0s, clock.now()});
    for (int i = 0; i < 1000; ++i) {
        mark({"p" + std::to_string(i)});
        clock.advance(100us);
    }
    const int ticks = run_until(clock.now() + 6s);
    EXPECT_GE(ticks, 20);
    EXPECT_LE(ticks, 23) << "100 ms of entries, ticks 5 ms apart";
    EXPECT_EQ(figure("ready"), 1000);
}

TEST_F(HotListFloorTest, PromotesDoNotCostATickEach) {
    warm();
    mark({"p1"});
    int ticks = 0;
    for (int i = 0; i < 1000; ++i) { // a fast consumer: 1000 deliveries in 10 s
        settle(take(), VerdictKind::took_leased, false);
        list->released(kOrders, "a", id_of_name("p1"), true);
        ticks += run_until(clock.now() + 10ms);
    }
    EXPECT_LE(ticks, 12) << "one a second, for the park that was";
}

TEST_F(HotListFloorTest, F51_ATickCostsNothingForQueuesWithNothingDue) {
    Options options;
    options.unserved_trim = 1h;
    remake(options);
    for (int i = 0; i < 2000; ++i) {
        const std::string name = "q" + std::to_string(i), key = "t\x1f" + name;
        warm({{key, "t", name}, "g"});
    }
    warm();
    tick();
    list->configured(kOrders, {1s, 0s, clock.now()});
    mark({"p1"});
    const int ticks = run_until(clock.now() + 2s);
    EXPECT_EQ(ticks, 1) << "of the one entry";
    EXPECT_EQ(host.wakes().size(), 1u);
}

TEST_F(HotListFloorTest, AParkedConsumerCostsAFewTicksAMinute) {
    warm();
    answered = 1;
    int ticks = 0;
    for (int second = 0; second < 600; ++second) {
        (void)state();
        ticks += run_until(clock.now() + 1s);
        answer_walks();
    }
    EXPECT_LE(ticks, 50) << "walks and trims each half a minute, a sweep each five minutes";
    EXPECT_EQ(figure("rings"), 1);
}

TEST_F(HotListFloorTest, WhatVerdictsDeferIsTickedInTime) {
    warm();
    tick();
    const SteadyTime start = clock.now();
    list->configured(kOrders, {4s, 0s, start});
    clock.advance(46s);
    (void)state();
    tick();
    page({"walked"});
    EXPECT_EQ(host.wakes().back().ready, 1u) << "it may be old enough";
    settle(take(), VerdictKind::empty);
    EXPECT_EQ(host.ticks().back(), clock.now() + 1s);
    clock.advance(1s);
    tick();
    EXPECT_EQ(host.wakes().back().ready, 1u);
    settle(take(), VerdictKind::leased, false, 100ms);
    EXPECT_EQ(host.ticks().back(), clock.now() + 400ms);
}

TEST_F(HotListFloorTest, EntriesOfManyRingsDueAtOnceAreSharedOutOverTicks) {
    warm();
    warm(kB);
    list->configured(kOrders, {1s, 0s, clock.now()});
    Names names;
    for (int i = 0; i < 30'000; ++i) {
        names.push_back("p" + std::to_string(i));
    }
    mark(names);
    clock.advance(2s);
    EXPECT_EQ(tick(), clock.now() + 5ms);
    EXPECT_EQ(figure("ready"), 8 * 1024) << "of one of the two rings";
    run_until(clock.now() + 100ms);
    EXPECT_EQ(figure("ready"), 2 * 30'000);
}

// ---- memory over time ---------------------------------------------------------------------------

TEST_F(HotListFloorTest, F46_ABrokerWithoutConsumersForgetsWhatOthersMark) {
    warm();
    Names names;
    for (int i = 0; i < 1000; ++i) {
        names.push_back("p" + std::to_string(i));
    }
    mark(names, kOrders, {}, 1, plugin::Origin::peer);
    EXPECT_EQ(figure("partitions"), 1000);
    run_until(clock.now() + 30s);
    mark(names, kOrders, {}, 1, plugin::Origin::peer); // does not keep it alive
    run_until(clock.now() + 1s);
    EXPECT_EQ(figure("rings"), 0);
    EXPECT_EQ(figure("queues"), 0);
    EXPECT_EQ(figure("partitions"), 0);
    EXPECT_EQ(figure("trims_total"), 1);
    EXPECT_EQ(state(), ReadyState::cold);
    mark(names, kOrders, {}, 1, plugin::Origin::peer);
    EXPECT_EQ(figure("partitions"), 0);
}

TEST_F(HotListFloorTest, F47_ADeepBacklogWithASlowConsumerKeepsItsRing) {
    warm();
    answered = 1;
    mark({"old"});
    for (int second = 0; second < 600; ++second) {
        if (second % 20 == 0) {
            (void)state(); // a look in twenty seconds
        }
        run_until(clock.now() + 1s);
        answer_walks();
    }
    EXPECT_EQ(figure("trims_total"), 0);
    EXPECT_EQ(state(), ReadyState::ready);
}

TEST_F(HotListFloorTest, EachConsumerPathKeepsARing) {
    for (const int path : {0, 1, 2}) {
        warm();
        mark({"p1"});
        Taken taken = take();
        clock.advance(29s);
        tick();
        switch (path) {
        case 0:
            (void)state();
            settle(std::move(taken), VerdictKind::requeue);
            break;
        case 1:
            EXPECT_EQ(take().pick(), Pick::none);
            settle(std::move(taken), VerdictKind::requeue);
            break;
        default:
            settle(std::move(taken), VerdictKind::requeue);
        }
        clock.advance(29s);
        tick();
        EXPECT_EQ(figure("rings"), 1) << path;
        list->forget("t", "", "");
    }
}

TEST_F(HotListFloorTest, ACheckedOutEntryKeepsItsRing) {
    warm();
    mark({"p1"});
    Taken taken = take();
    run_until(clock.now() + 29s);
    run_until(clock.now() + 100s);
    EXPECT_NE(state(), ReadyState::cold);
    settle(std::move(taken), VerdictKind::requeue);
    run_until(clock.now() + 61s);
    EXPECT_EQ(state(), ReadyState::cold);
    EXPECT_EQ(figure("rings"), 0);
}

TEST_F(HotListFloorTest, AGroupThatLeavesIsTrimmedWhileAnotherStays) {
    warm(kA);
    warm(kB);
    for (int second = 0; second < 40; ++second) {
        (void)state(kB);
        run_until(clock.now() + 1s);
    }
    EXPECT_EQ(figure("rings"), 1);
    EXPECT_EQ(state(kA), ReadyState::cold);
    EXPECT_EQ(state(kB), ReadyState::nothing);
}

class HotListSweepTest : public HotListFloorTest {
protected:
    void SetUp() override {
        Options options;
        options.unserved_trim = 0s; // what is left is the sweep's
        remake(options);
        warm();
        answered = 1;
    }
    void run(Nanoseconds time) {
        for (const SteadyTime end = clock.now() + time; clock.now() < end;) {
            run_until(std::min(end, clock.now() + 1s));
            answer_walks();
        }
    }
};

TEST_F(HotListSweepTest, F49_AQueueNobodyTouchesGoesBetweenOneAndTwoIntervals) {
    run(299s);
    EXPECT_EQ(figure("queues"), 1);
    run(302s);
    EXPECT_EQ(figure("queues"), 0);
    EXPECT_EQ(figure("rings"), 0);
    EXPECT_EQ(figure("sweeps_total"), 1);
    EXPECT_EQ(tick(), SteadyTime::max());
}

TEST_F(HotListSweepTest, F48_AQueueThatIsUsedStays) {
    for (int i = 0; i < 20; ++i) {
        run(200s);
        (void)state();
    }
    EXPECT_EQ(figure("sweeps_total"), 0);
}

TEST_F(HotListSweepTest, F48_AQueueWithAnEntryStays) {
    mark({"p1"});
    run(2000s);
    EXPECT_EQ(figure("queues"), 1);
    EXPECT_EQ(take().names, Names{"p1"});
}

TEST_F(HotListSweepTest, F48_AQueueStaysWhileSomebodyIsInTheMiddleOfSomething) {
    Taken scan; // a scan that takes long; it has checked nothing out
    list->forget("t", "", "");
    scan = take();
    ASSERT_EQ(scan.pick(), Pick::scan);
    page({});
    done();
    answered = host.reseeds().size();
    run(2000s);
    EXPECT_EQ(state(), ReadyState::nothing) << "it is the same ring still";
    settle(std::move(scan));
    run(700s);
    EXPECT_EQ(figure("queues"), 0);
}

TEST_F(HotListFloorTest, WithoutASweepOrATrimNothingGoes) {
    Options options;
    options.unserved_trim = 0s;
    options.idle_sweep = 0s;
    remake(options);
    warm();
    answered = 1;
    for (int i = 0; i < 3000; ++i) {
        run_until(clock.now() + 1s);
        answer_walks();
    }
    EXPECT_EQ(figure("rings"), 1);
}

// ---- the log ------------------------------------------------------------------------------------

TEST_F(HotListFloorTest, ASummaryIsWrittenEachHalfMinuteAndOnlyWhenSomethingHappened) {
    warm();
    answered = 1;
    const auto summaries = [&] {
        return std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
            return line.starts_with("reseed floor ");
        });
    };
    const auto run = [&](int seconds, bool busy) {
        for (int i = 0; i < seconds; ++i) {
            (void)state();
            if (busy) {
                mark({"p1"});
            }
            clock.advance(1s);
            tick();
        }
    };
    tick();
    run(120, true);
    EXPECT_EQ(summaries(), 4) << "first at 30 s";
    EXPECT_TRUE(logged("ring tenant=t queue=orders group=a ready=1 wheel=0 in_flight=0"));
    const auto before = summaries();
    run(300, false); // one walk is under way and never ends: nothing happens
    EXPECT_EQ(summaries(), before);
}

TEST_F(HotListFloorTest, ASummaryNamesTheTenBusiestRings) {
    for (int i = 0; i < 15; ++i) {
        const std::string name = "q" + std::to_string(i), key = "t\x1f" + name;
        const plugin::Queue queue{key, "t", name};
        warm({queue, "g"});
        for (int p = 0; p <= i; ++p) {
            mark({"p" + std::to_string(p)}, queue);
        }
    }
    tick();
    clock.advance(29s);
    for (int i = 0; i < 15; ++i) {
        const std::string name = "q" + std::to_string(i), key = "t\x1f" + name;
        (void)state({{key, "t", name}, "g"});
    }
    clock.advance(1s);
    tick();
    std::vector<std::string> rings;
    for (const std::string& line : lines) {
        if (line.starts_with("ring ")) {
            rings.push_back(line);
        }
    }
    ASSERT_EQ(rings.size(), 10u);
    EXPECT_NE(rings[0].find("queue=q14 group=g ready=15"), std::string::npos) << rings[0];
    EXPECT_NE(rings[9].find("queue=q5 "), std::string::npos) << rings[9];
}

// MESH-4
TEST_F(HotListFloorTest, AfterHintsWereMissedEveryRingIsWalkedSoonAndNothingIsForgotten) {
    warm();
    warm(kB);
    mark({"p1"});
    const auto ticks = host.ticks().size();
    EXPECT_TRUE(list->missed());
    ASSERT_GT(host.ticks().size(), ticks);
    EXPECT_EQ(host.ticks().back(), clock.now());
    ASSERT_EQ(host.reseeds().size(), 2u) << "nothing is walked inside of the call";
    run_until(clock.now() + 100ms);
    EXPECT_EQ(host.reseeds().size(), 4u);
    EXPECT_EQ(take().names, Names{"p1"});
    run_until(clock.now() + 10s);
    EXPECT_EQ(host.reseeds().size(), 4u) << "once";
}

// MESH-4
TEST_F(HotListFloorTest, ThousandsOfRingsAreWalkedOverManyTicks) {
    constexpr int kRings = 3'000;
    std::vector<std::string> names;
    for (int i = 0; i < kRings; ++i) {
        names.push_back("q" + std::to_string(i));
    }
    for (const std::string& name : names) {
        const std::string key = "t\x1f" + name;
        warm({{key, "t", name}, "a"});
    }
    run_until(clock.now() + 1s);
    ASSERT_EQ(host.reseeds().size(), kRings);
    list->missed();
    EXPECT_GT(run_until(clock.now() + 2s), 10);
    EXPECT_EQ(host.reseeds().size(), 2 * kRings);
}

} // namespace
} // namespace queen::hotlist
