#include "sweeper_fixture.hpp"

#include <bit>
#include <set>

namespace queen::timers {
namespace {

using namespace std::chrono_literals;
using test::Fault;
using test::TimerWorld;
using testing::ElementsAre;
using testing::IsEmpty;
using Verb = TimerWorld::Verb;
using State = TimerWorld::Row::State;

TEST_F(SweeperTest, FiresWhatIsDueAndNothingElse) {
    start();
    world_.add(-1s);
    world_.add(300ms);
    world_.tick();
    EXPECT_EQ(world_.rows[0].state, State::fired);
    EXPECT_EQ(world_.rows[1].state, State::waiting);
    world_.run(299ms);
    EXPECT_EQ(world_.rows[1].state, State::waiting);
    world_.run(6ms);
    EXPECT_EQ(world_.rows[1].state, State::fired);
}

// ---- SW-3: when it looks again ----

TEST_F(SweeperTest, SleepsUntilTheNextTimerIsDue) {
    start();
    world_.add(1h + 400ms);
    EXPECT_EQ(sleep_of_a_cycle(), 400ms);
}

TEST_F(SweeperTest, NeverSleepsShorterThanFiveMilliseconds) {
    start();
    world_.add(1h + 1ms);
    EXPECT_EQ(sleep_of_a_cycle(), 5ms);
}

TEST_F(SweeperTest, LooksAgainSoonAfterWork) {
    start();
    world_.add(0s);
    EXPECT_EQ(sleep_of_a_cycle(), 5ms);
    EXPECT_EQ(world_.count(State::fired), 1U);
}

TEST_F(SweeperTest, AnIdleBrokerSleepsASecondHoweverLong) {
    start();
    for (int cycle = 0; cycle < 20; ++cycle) {
        EXPECT_EQ(sleep_of_a_cycle(), 1s) << cycle;
    }
}

TEST_F(SweeperTest, IdleSleepsDoubleUpToTheLimitThatIsSet) {
    start({.idle_max_sleep = 6s, .idle_after = 3});
    std::vector<Nanoseconds> sleeps;
    for (int cycle = 0; cycle < 6; ++cycle) {
        sleeps.push_back(sleep_of_a_cycle());
    }
    EXPECT_THAT(sleeps, ElementsAre(1s, 1s, 2s, 4s, 6s, 6s));
    world_.add(1h + 100ms); // near: the next one is no idle cycle
    EXPECT_EQ(sleep_of_a_cycle(), 100ms);
    world_.run(1h);
    EXPECT_EQ(world_.count(State::fired), 1U);
}

TEST_F(SweeperTest, WhatOthersHaveIsLookedForAgainAfterARandomSleep) {
    start();
    world_.add(0s);
    bool differ = false;
    world_.faults = [this](const TimerWorld::Call& call) {
        if (call.verb == Verb::due) { // another broker takes it between probe and claim
            world_.clock.advance(0s);
        }
        return Fault::none;
    };
    Nanoseconds first{0};
    for (int cycle = 0; cycle < 20; ++cycle) {
        world_.inside = [this](const TimerWorld::Call& call) {
            if (call.verb == Verb::claim) {
                world_.rows[0].visible = world_.clock.now() + 1s;
            }
        };
        const Nanoseconds sleep = sleep_of_a_cycle();
        EXPECT_GE(sleep, 25ms);
        EXPECT_LE(sleep, 200ms);
        differ = differ || (first != 0s && sleep != first);
        first = sleep;
    }
    EXPECT_TRUE(differ);
}

// ---- SW-4: the wake of this broker's own timers ----

TEST_F(SweeperTest, F39_ATimerScheduledHereIsFiredWhenItIsDueNotAtTheNextLook) {
    start();
    world_.run(10ms); // asleep for a second
    const auto row = world_.add(200ms);
    world_.tell(row);
    world_.run(206ms);
    EXPECT_EQ(world_.rows[row].state, State::fired);
}

TEST_F(SweeperTest, F39_OneThatNobodyToldOfIsFiredWithinASecond) {
    start();
    world_.run(10ms);
    const auto row = world_.add(200ms);
    world_.run(1s);
    EXPECT_EQ(world_.rows[row].state, State::fired);
}

TEST_F(SweeperTest, K42_TimersOfTwoSecondsAreOnTimeOnAnIdleBroker) {
    start();
    for (int round = 0; round < 50; ++round) {
        world_.run(10s);
        const auto row = world_.add(2s);
        world_.tell(row);
        world_.run(2s + 5ms);
        ASSERT_EQ(world_.rows[row].state, State::fired) << round;
    }
}

TEST_F(SweeperTest, ALaterTimerDoesNotPullTheWakeForward) {
    start();
    world_.add(300ms);
    world_.tick();
    const SteadyTime wake = world_.next_tick;
    world_.tell(world_.add(500ms));
    EXPECT_EQ(world_.next_tick, wake);
    EXPECT_EQ(stats()["pulled_forward_total"], 0);
    world_.tell(world_.add(100ms));
    EXPECT_EQ(world_.next_tick, world_.clock.now() + 100ms);
    EXPECT_EQ(stats()["pulled_forward_total"], 1);
    world_.run(1s);
}

TEST_F(SweeperTest, SchedulesOfThePastDoNotMakeItSpin) {
    start();
    for (int i = 0; i < 1000; ++i) {
        world_.tell(world_.add(-1h));
    }
    world_.run(20ms);
    EXPECT_EQ(world_.count(State::fired), 1000U);
    EXPECT_LE(world_.count(Verb::due), 5U);
}

// ---- SW-2, SW-5: how much ----

TEST_F(SweeperTest, OneTimerCostsAProbeAClaimAndAFire) {
    start();
    world_.add(0s);
    world_.tick();
    EXPECT_EQ(world_.calls.size(), 3U);
}

TEST_F(SweeperTest, ACycleTakesNoMoreThanItsRows) {
    start();
    for (int i = 0; i < 6000; ++i) {
        world_.add(0s);
    }
    world_.tick();
    EXPECT_EQ(world_.count(State::fired), 5000U);
    world_.run(100ms);
    EXPECT_EQ(world_.count(State::fired), 6000U);
}

TEST_F(SweeperTest, ATransactionHasNoMoreBytesThanAllowedOrOneSegment) {
    start({.fire_bytes = 250}); // a row has 100
    for (const char* destination : {"a", "b", "c", "d", "d", "d"}) {
        world_.add(0s, destination);
    }
    world_.tick();
    std::vector<std::vector<std::uint32_t>> fired;
    for (const auto& call : of(Verb::fire)) {
        fired.push_back(call.segments);
    }
    EXPECT_THAT(fired, ElementsAre(ElementsAre(0, 1), ElementsAre(2), ElementsAre(3)));
}

TEST_F(SweeperTest, ATenantHasFiftyRowsOfAClaimWhileOthersWantSome) {
    start();
    for (int i = 0; i < 500; ++i) {
        world_.add(0s, "q", "loud");
    }
    world_.add(0s, "q", "quiet");
    world_.tick();
    const auto claims = of(Verb::claim);
    EXPECT_EQ(claims.front().rows_per_tenant, 50U);
    for (const auto& call : claims) {
        EXPECT_GE(call.rows_per_tenant, 50U);
    }
    EXPECT_EQ(world_.count(State::fired), 501U);
    EXPECT_EQ(claims[1].rows_per_tenant, 200U) << "alone, it has what nobody else wants";
}

TEST_F(SweeperTest, WindowsCoverAllShardsAndTheirFirstMovesOn) {
    start({.cycle_rows = 200});
    for (int i = 0; i < 64 * 400; ++i) {
        world_.add(0s, "q", std::to_string(i % 4));
    }
    std::set<plugin::TimerShards> windows;
    for (int cycle = 0; cycle < 64; ++cycle) {
        const auto before = world_.calls.size();
        world_.clock.advance(1s);
        world_.tick();
        const auto& claim = world_.calls[before + 1];
        EXPECT_EQ(std::popcount(claim.shards), 16);
        windows.insert(claim.shards);
    }
    EXPECT_EQ(windows.size(), 64U);
    for (unsigned shard = 0; shard < 64; ++shard) {
        EXPECT_EQ(std::count_if(windows.begin(), windows.end(),
                                [shard](auto window) { return (window >> shard & 1) != 0; }),
                  16)
            << "of 64 cycles that had time for one window each, shard " << shard;
    }
}

TEST_F(SweeperTest, ACycleEndsWhenHalfALeaseIsSpent) {
    start({.lease = 10s});
    for (int i = 0; i < 600; ++i) {
        world_.add(0s, "q" + std::to_string(i % 3));
    }
    world_.inside = [this](const TimerWorld::Call& call) {
        if (call.verb == Verb::fire) {
            world_.clock.advance(6s); // a slow store
        }
    };
    world_.tick();
    EXPECT_EQ(world_.count(Verb::claim), 1U);
    EXPECT_EQ(stats()["cycles_total"], 1);
    world_.inside = nullptr;
    world_.run(1s);
    EXPECT_EQ(world_.count(State::fired), 600U);
}

TEST_F(SweeperTest, WhatIsLeftOfABatchAtHalfItsLeaseIsHandedBackUncounted) {
    start({.lease = 10s, .fire_bytes = 1});
    for (int i = 0; i < 5; ++i) {
        world_.add(0s, "q" + std::to_string(i));
    }
    world_.inside = [this](const TimerWorld::Call& call) {
        if (call.verb == Verb::fire) {
            world_.clock.advance(3s);
        }
    };
    world_.tick();
    EXPECT_EQ(world_.count(State::fired), 2U);
    const auto fails = of(Verb::fail);
    ASSERT_EQ(fails.size(), 1U);
    EXPECT_FALSE(fails[0].counted);
    EXPECT_THAT(fails[0].segments, ElementsAre(2, 3, 4));
    EXPECT_EQ(stats()["handed_back_total"], 3);
    world_.inside = nullptr;
    world_.run(10ms);
    EXPECT_EQ(world_.count(State::fired), 5U) << "at once, not after the lease";
}

TEST_F(SweeperTest, LanesShareTheWindowsAndTheRowsOfACycle) {
    start({.cycle_rows = 1000, .parallelism = 3});
    world_.at_once = false;
    for (int i = 0; i < 2000; ++i) {
        world_.add(0s, "q", std::to_string(i % 7));
    }
    world_.tick();
    world_.take_effect();
    world_.answer();
    const auto claims = of(Verb::claim);
    ASSERT_EQ(claims.size(), 3U) << "at the same time";
    EXPECT_EQ(claims[0].shards & claims[1].shards, 0U);
    EXPECT_EQ(claims[1].shards & claims[2].shards, 0U);
    while (world_.has_call() || world_.has_answer()) {
        world_.has_call() ? world_.take_effect() : world_.answer();
    }
    EXPECT_EQ(world_.count(State::fired), 1000U);
}

TEST_F(SweeperTest, WhatCannotBePackedIsFiredAlone) {
    start();
    plugin::RecordingTimerHost host;
    Sweeper sweeper({}, world_.clock, host, [](plugin::LogLevel, std::string_view) {});
    sweeper.tick(world_.clock.now());
    plugin::TimerAnswer answer;
    answer.due = 3;
    answer.next_in = -1s;
    sweeper.answered(host.next()->call, answer);
    const std::vector<plugin::TimerSegment> segments{
        {"t", 1, 0, 100, 0s}, {"t", 1, 0, 0, 0s}, {"t", 1, 0, 100, 0s}};
    answer = {};
    answer.batch = 1;
    answer.segments = segments;
    sweeper.answered(host.next()->call, answer);
    std::vector<std::vector<std::uint32_t>> fired;
    const std::vector<plugin::TimerResult> results{plugin::TimerResult::fired};
    for (auto call = host.next(); call; call = host.next()) {
        if (call->verb == plugin::RecordingTimerHost::Verb::fire) {
            fired.push_back(call->segments);
            answer = {};
            answer.results = results;
            sweeper.answered(call->call, answer);
        }
        if (fired.size() == 3) {
            break;
        }
    }
    EXPECT_THAT(fired, ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2)));
    EXPECT_THAT(host.released(), ElementsAre(1));
}

// ---- the end ----

TEST_F(SweeperTest, AfterStopNoCallIsBegunAndBatchesAreReleased) {
    claim_unanswered();
    sweeper_->stop();
    const auto calls = world_.calls.size();
    world_.answer();
    world_.tick();
    sweeper_->scheduled(world_.clock.now());
    EXPECT_EQ(world_.calls.size(), calls);
    EXPECT_EQ(world_.rows[0].state, State::waiting);
    EXPECT_EQ(world_.next_tick, SteadyTime::max());
}

TEST_F(SweeperTest, StopInsideACallDoesNotWaitForItself) {
    start();
    world_.add(0s);
    world_.inside = [this](const TimerWorld::Call& call) {
        if (call.verb == Verb::claim) {
            sweeper_->stop();
        }
    };
    world_.tick();
    EXPECT_EQ(world_.count(Verb::fire), 0U);
}

TEST_F(SweeperTest, AHostThatRefusesEndsTheCycle) {
    start();
    world_.add(0s);
    for (const Verb verb : {Verb::due, Verb::claim, Verb::fire}) {
        world_.refuses = verb == Verb::due;
        world_.inside = [&](const TimerWorld::Call& call) {
            // From the call after this one on.
            world_.refuses =
                verb == Verb::claim ? call.verb == Verb::due : call.verb == Verb::claim;
        };
        EXPECT_EQ(sleep_of_a_cycle(), 1s);
        EXPECT_EQ(world_.open_batches(), 0U);
    }
    world_.refuses = false;
    world_.inside = nullptr;
    world_.run(1min);
    EXPECT_EQ(world_.count(State::fired), 1U);
}

TEST_F(SweeperTest, ADisabledOneAsksNothingAndSaysSo) {
    start({.enabled = false});
    world_.add(0s);
    EXPECT_EQ(sweeper_->tick(world_.clock.now()), SteadyTime::max());
    sweeper_->scheduled(world_.clock.now());
    EXPECT_THAT(world_.calls, IsEmpty());
    ASSERT_EQ(lines_.size(), 1U);
    EXPECT_EQ(lines_[0].first, plugin::LogLevel::warning);
}

TEST_F(SweeperTest, AnswersOfNoCallAreCountedAndIgnored) {
    start();
    sweeper_->answered(4711, {});
    sweeper_->answered(0, {});
    EXPECT_EQ(stats()["unknown_answers_total"], 2);
}

TEST_F(SweeperTest, TheHostIsCalledWithoutALock) {
    start({.fire_bytes = 1});
    world_.add(0s, "a");
    world_.add(0s, "b", "t", true);
    world_.inside = [this](const TimerWorld::Call&) {
        stats(); // takes the lock: a deadlock if it were held
        sweeper_->scheduled(world_.clock.now() - 1h);
    };
    world_.run(1s);
    EXPECT_EQ(world_.rows[0].state, State::fired);
    world_.inside = nullptr;
    world_.run(1min);
}

} // namespace
} // namespace queen::timers
