// SW-7, SW-8, SW-9: what becomes of failures.
#include "sweeper_fixture.hpp"

namespace queen::timers {
namespace {

using namespace std::chrono_literals;
using test::Fault;
using test::TimerWorld;
using testing::ElementsAre;
using testing::IsEmpty;
using Verb = TimerWorld::Verb;
using State = TimerWorld::Row::State;

TEST_F(SweeperTest, F41_AnOutageOfFiveMinutesSpendsNoAttempts) {
    start();
    const SteadyTime back = world_.clock.now() + 5min;
    world_.faults = [&](const TimerWorld::Call&) {
        return world_.clock.now() < back ? Fault::transient : Fault::none;
    };
    for (int i = 0; i < 300; ++i) {
        world_.add(i * 1s / 10);
    }
    world_.run(5min - 1ms);
    EXPECT_EQ(world_.count(State::fired), 0U);
    EXPECT_LE(world_.count(Verb::due), 301U) << "once a second, not in a spin";
    world_.run(35s);
    EXPECT_EQ(world_.count(State::fired), 300U);
    for (const auto& row : world_.rows) {
        EXPECT_EQ(row.attempts, 0);
    }
    EXPECT_EQ(lines_.size(), 2U) << "one line when it begins, one when it is over";
}

TEST_F(SweeperTest, F41_AnOutageInTheMiddleOfABatchHandsItBackUncounted) {
    start();
    world_.add(0s);
    bool away = true;
    world_.faults = [&](const TimerWorld::Call& call) {
        return away && call.verb == Verb::fire ? Fault::transient : Fault::none;
    };
    world_.tick();
    const auto fails = of(Verb::fail);
    ASSERT_EQ(fails.size(), 1U);
    EXPECT_FALSE(fails[0].counted);
    EXPECT_EQ(fails[0].backoff, 1s);
    EXPECT_EQ(world_.next_tick, world_.clock.now() + 1s);
    away = false;
    world_.run(1s);
    EXPECT_EQ(world_.rows[0].state, State::fired);
    EXPECT_EQ(world_.rows[0].attempts, 0);
}

TEST_F(SweeperTest, AFireOfWhichNobodyKnowsIsNotFiredTwice) {
    start();
    world_.add(0s);
    int fires = 0;
    world_.faults = [&](const TimerWorld::Call& call) {
        return call.verb == Verb::fire && fires++ == 0 ? Fault::open_end : Fault::none;
    };
    world_.run(1min);
    EXPECT_EQ(fires, 1);
    EXPECT_EQ(world_.rows[0].state, State::fired);
}

TEST_F(SweeperTest, F40_OnePoisonedTimerAmongTwoHundredPaysAlone) {
    start();
    for (int i = 0; i < 200; ++i) {
        world_.add(0s, "q" + std::to_string(i), std::to_string(i % 10), i == 77);
    }
    world_.run(100ms);
    EXPECT_EQ(world_.count(State::fired), 199U);
    for (const auto& row : world_.rows) {
        EXPECT_EQ(row.attempts, row.poison ? 1 : 0);
    }
    EXPECT_EQ(world_.rows[77].last_error, "poison");
    EXPECT_EQ(stats()["poisoned_total"], 1);
    world_.run(5min);
    EXPECT_EQ(world_.rows[77].state, State::filed);
}

TEST_F(SweeperTest, APoisonedTimerIsTriedFiveTimesWithGrowingBackoffThenFiled) {
    start();
    world_.add(0s, "q", "t", true);
    world_.run(10min);
    std::vector<Nanoseconds> backoffs;
    for (const auto& call : of(Verb::fail)) {
        EXPECT_TRUE(call.counted);
        EXPECT_EQ(call.most, 5);
        backoffs.push_back(call.backoff);
    }
    EXPECT_THAT(backoffs, ElementsAre(1s, 2s, 4s, 8s, 16s));
    EXPECT_EQ(world_.rows[0].state, State::filed);
    EXPECT_EQ(stats()["dlq_total"], 1);
}

TEST_F(SweeperTest, BackoffEndsAtAMinute) {
    start({.attempts = 10});
    world_.add(0s, "q", "t", true);
    world_.run(1h);
    EXPECT_EQ(of(Verb::fail).back().backoff, 60s);
    EXPECT_EQ(world_.rows[0].state, State::filed);
}

TEST_F(SweeperTest, OneLockedDestinationHoldsUpNoOther) {
    start();
    for (int i = 0; i < 50; ++i) {
        world_.add(0s, "q" + std::to_string(i), std::to_string(i % 5));
    }
    world_.locked.insert("q7");
    world_.run(10s);
    EXPECT_EQ(world_.count(State::fired), 49U);
    EXPECT_EQ(world_.rows[7].attempts, 0);
    EXPECT_LE(of(Verb::fire).size(), 1U + 50U + 10U) << "once a second, and alone";
    world_.add(0s, "q7", "0"); // behind it in a segment
    world_.add(0s, "q8");
    world_.run(100ms);
    EXPECT_EQ(world_.rows.back().state, State::fired) << "nor does a cycle end for it";
    world_.locked.clear();
    world_.run(12s);
    EXPECT_EQ(world_.count(State::fired), 52U);
    EXPECT_GT(stats()["failures_contended_total"], 0);
    EXPECT_EQ(lines_.size(), 1U) << "one line however long it lasts";
    world_.locked.insert("q7");
    world_.add(0s, "q7");
    world_.run(1s);
    EXPECT_EQ(lines_.size(), 2U) << "and one for the next time";
    world_.locked.clear();
    world_.run(1s);
}

/// A fire waits a second for a lock. With a lease of two, that is all the time that a batch has.
TEST_F(SweeperTest, ALockThatTakesHalfALeaseHoldsUpNoOther) {
    start({.lease = 2s});
    for (int i = 0; i < 50; ++i) {
        world_.add(0s, "q" + std::to_string(i));
    }
    world_.locked.insert("q0");
    world_.inside = [this](const TimerWorld::Call& call) {
        if (call.verb == Verb::fire && world_.touches(call, "q0")) {
            world_.clock.advance(1s);
        }
    };
    world_.run(30s);
    EXPECT_EQ(world_.count(State::fired), 49U);
    world_.locked.clear();
    world_.run(10s);
}

TEST_F(SweeperTest, ATenantWithManyLockedDestinationsCostsTheOthersThreeLocksABatch) {
    start();
    for (int i = 0; i < 100; ++i) {
        const auto queue = "q" + std::to_string(i);
        world_.add(0s, queue, i < 50 ? "a" : "b");
        if (i < 50) {
            world_.locked.insert(queue);
        }
    }
    Nanoseconds waited{0};
    world_.inside = [&](const TimerWorld::Call& call) {
        if (call.verb == Verb::fire && world_.touches_locked(call)) {
            world_.clock.advance(1s);
            waited += 1s;
        }
    };
    world_.tick();
    EXPECT_EQ(waited, 4s) << "all of them together, and three alone";
    EXPECT_EQ(world_.count(State::fired), 50U);
    world_.locked.clear();
    world_.run(10s);
    EXPECT_EQ(world_.count(State::fired), 100U);
}

TEST_F(SweeperTest, AnAnswerThatNeverComesEndsItsCycleInTheEnd) {
    for (const Verb lost : {Verb::due, Verb::claim, Verb::fire, Verb::fail}) {
        world_.rows.clear();
        start();
        world_.next_tick = world_.clock.now();
        world_.add(0s, "a");
        world_.add(0s, "b", "t", lost == Verb::fail);
        int losses = 0;
        world_.faults = [&](const TimerWorld::Call& call) {
            return call.verb == lost && losses++ == 0 ? Fault::lost : Fault::none;
        };
        world_.run(Sweeper::kLostAfter - 1s);
        EXPECT_EQ(losses, 1) << "it is waited for";
        world_.run(2min);
        EXPECT_EQ(world_.count(State::waiting), 0U) << static_cast<int>(lost);
        EXPECT_EQ(stats()["given_up_total"], 1);
        EXPECT_EQ(world_.open_batches(), 0U);
    }
}

TEST_F(SweeperTest, WhatAClaimBringsAfterItsCycleWasGivenUpIsReleased) {
    claim_unanswered();
    world_.clock.advance(Sweeper::kLostAfter);
    world_.tick();
    EXPECT_EQ(stats()["given_up_total"], 1);
    world_.answer();
    EXPECT_EQ(world_.open_batches(), 0U);
    world_.run(10s);
    EXPECT_EQ(world_.rows[0].state, State::fired);
}

/// Out of memory, say: the host gives back the batch that a failed answer brought.
TEST_F(SweeperTest, AnExceptionAtAnyCallEndsItsCycleAndTheNextBeginsAnew) {
    for (std::size_t at = 0; at < 5; ++at) {
        world_.rows.clear();
        start({.fire_bytes = 1});
        world_.at_once = false;
        world_.next_tick = world_.clock.now();
        world_.add(0s, "a");
        world_.add(0s, "b");
        world_.add(0s, "c", "t", true);
        std::size_t calls = 0;
        world_.inside = [&](const TimerWorld::Call&) {
            if (calls++ == at) {
                throw std::bad_alloc();
            }
        };
        bool thrown = false;
        for (int step = 0; step < 20; ++step) {
            try {
                step == 0 ? world_.tick() : world_.run(0s);
            } catch (const std::bad_alloc&) {
                thrown = true;
                world_.next_tick = world_.clock.now() + 1s; // as the host sees to
            }
        }
        EXPECT_TRUE(thrown) << at;
        world_.run(2min);
        EXPECT_EQ(world_.count(State::fired), 2U) << at;
        EXPECT_EQ(world_.count(State::filed), 1U) << at;
    }
}

TEST_F(SweeperTest, ASlowStoreIsUsedAllTheSame) {
    start({.lease = 10s});
    for (int i = 0; i < 3; ++i) {
        world_.add(0s, "q" + std::to_string(i));
    }
    world_.inside = [this](const TimerWorld::Call& call) {
        if (call.verb == Verb::due || call.verb == Verb::claim) {
            world_.clock.advance(6s); // more than half a lease each
        }
    };
    world_.tick();
    EXPECT_EQ(world_.count(State::fired), 3U);
}

TEST_F(SweeperTest, WithoutIsolationTenantsDoNotPayForEachOther) {
    start({.isolate = false});
    world_.add(0s, "good", "a");
    world_.add(0s, "bad", "b", true);
    world_.add(0s, "good too", "b");
    world_.tick();
    EXPECT_EQ(world_.rows[0].state, State::fired);
    EXPECT_EQ(world_.rows[1].attempts, 1);
    EXPECT_EQ(world_.rows[2].attempts, 1) << "one transaction";
    world_.run(5min);
}

TEST_F(SweeperTest, WithoutIsolationAllOfATransactionPay) {
    start({.isolate = false});
    world_.add(0s, "good");
    world_.add(0s, "bad", "t", true);
    world_.tick();
    EXPECT_EQ(world_.rows[0].attempts, 1);
    EXPECT_EQ(world_.rows[1].attempts, 1);
}

TEST_F(SweeperTest, WhatTheSchemaIsAtFaultForIsCountedAndLoggedAsAnError) {
    start();
    world_.add(0s);
    world_.faults = [](const TimerWorld::Call& call) {
        return call.verb == Verb::fire ? Fault::config : Fault::none;
    };
    world_.tick();
    EXPECT_TRUE(of(Verb::fail).at(0).counted);
    EXPECT_EQ(stats()["failures_config_total"], 1);
    ASSERT_EQ(lines_.size(), 1U);
    EXPECT_EQ(lines_[0].first, plugin::LogLevel::error);
}

TEST_F(SweeperTest, AStoreThatRefusesToTellWhatIsDueIsAskedLessAndLess) {
    start();
    world_.faults = [](const TimerWorld::Call&) { return Fault::config; };
    std::vector<Nanoseconds> sleeps;
    for (int cycle = 0; cycle < 8; ++cycle) {
        sleeps.push_back(sleep_of_a_cycle());
    }
    EXPECT_THAT(sleeps, ElementsAre(1s, 2s, 4s, 8s, 16s, 32s, 60s, 60s));
}

TEST_F(SweeperTest, DeadLettersThatCouldNotBeFiledAreFiledLater) {
    start({.attempts = 1});
    world_.add(0s, "q", "t", true);
    int asked = 0;
    world_.faults = [&](const TimerWorld::Call& call) {
        return call.verb == Verb::dead_letter && asked++ == 0 ? Fault::transient : Fault::none;
    };
    world_.run(1min);
    EXPECT_EQ(world_.rows[0].state, State::filed);
    EXPECT_EQ(asked, 2);
}

TEST_F(SweeperTest, PausedMeansNothingIsClaimedAndItLooksEachSecond) {
    start();
    world_.add(0s);
    bool paused = true;
    world_.faults = [&](const TimerWorld::Call& call) {
        return paused && call.verb != Verb::due ? Fault::paused : Fault::none;
    };
    world_.run(10s);
    EXPECT_LE(world_.count(Verb::claim), 11U);
    EXPECT_EQ(world_.count(Verb::fail), 0U);
    EXPECT_EQ(stats()["due"], 1) << "what waits is seen";
    world_.tell(world_.add(0s));
    EXPECT_GT(world_.next_tick, world_.clock.now()) << "a schedule does not make it spin";
    paused = false;
    world_.run(1s);
    EXPECT_EQ(world_.count(State::fired), 2U);
    EXPECT_THAT(lines_, IsEmpty());
}

TEST_F(SweeperTest, PausedInTheMiddleOfABatchHandsTheRestBack) {
    start({.fire_bytes = 1});
    world_.add(0s, "a");
    world_.add(0s, "b");
    int fires = 0;
    world_.faults = [&](const TimerWorld::Call& call) {
        return call.verb == Verb::fire && ++fires == 2 ? Fault::paused : Fault::none;
    };
    world_.tick();
    EXPECT_EQ(world_.count(State::fired), 1U);
    EXPECT_EQ(world_.rows[1].attempts, 0);
    EXPECT_EQ(world_.rows[1].token, 0U);
    world_.run(1s);
    EXPECT_EQ(world_.count(State::fired), 2U);
}

} // namespace
} // namespace queen::timers
