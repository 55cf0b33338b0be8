#include "timers_conformance.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>
#include <utility>

namespace queen::conformance {

using namespace std::chrono_literals;
using plugin::TimerOutcome;

// ---- the fixture -------------------------------------------------------------------------------

void TimersConformance::load() {
    clock_ = std::make_shared<plugin::ManualClock>();
    store_ = std::make_shared<ScriptedTimers>(*clock_);
    loaded_ = GetParam().load(store_, clock_);
    ASSERT_NE(loaded_.driver, nullptr) << "the subject could not be loaded";
    store_->attach(loaded_.driver.get());
    next_tick_ = clock_->now();
}

void TimersConformance::finish() {
    if (loaded_.driver == nullptr) {
        return;
    }
    loaded_.driver->stop();
    store_->no_more_calls();
    while (store_->answer_one()) {
    }
    (void)loaded_.driver->tick(clock_->now());
    EXPECT_EQ(store_->violations(), "");
    if (loaded_.faults) {
        EXPECT_EQ(loaded_.faults(), "");
    }
    loaded_ = {};
}

void TimersConformance::add_overdue(int count,
                                    const std::function<void(int, ScriptedTimers::Row&)>& change) {
    for (int i = 0; i < count; ++i) {
        ScriptedTimers::Row row;
        row.tenant = "t";
        row.queue = "q" + std::to_string(i);
        row.due = clock_->now() - 1s;
        change(i, row);
        store().add(std::move(row));
    }
}

void TimersConformance::step() {
    if (store_->answer_one()) {
        return;
    }
    next_tick_ = std::min(next_tick_, store_->wanted_tick());
    const SteadyTime now = clock_->now();
    if (next_tick_ > now) { // a driver that wants never has the time go on all the same
        clock_->advance(std::min<Nanoseconds>(next_tick_ - now, 1s));
    }
    if (next_tick_ <= clock_->now()) {
        next_tick_ = driver().tick(clock_->now());
    }
}

bool TimersConformance::run(const std::function<bool()>& until, Nanoseconds most) {
    const SteadyTime end = clock_->now() + most;
    for (int steps = 0; steps < 1'000'000 && clock_->now() <= end; ++steps) {
        if (until()) {
            return true;
        }
        step();
    }
    return until();
}

void TimersConformance::run_for(Nanoseconds time) {
    (void)run([] { return false; }, time);
    while (store_->answer_one()) { // what it learns later, it learns from somebody else
    }
}

// ---- the suite ---------------------------------------------------------------------------------

using State = ScriptedTimers::State;

TEST_P(TimersConformance, WhatIsDueIsFiredAndItsBatchForgotten) {
    for (int i = 0; i < 20; ++i) {
        store().add("t" + std::to_string(i % 3), "q" + std::to_string(i % 7), -1s);
    }
    EXPECT_TRUE(run([&] { return store().all(State::fired); }, 60s));
    EXPECT_TRUE(run([&] { return store().unreleased() == 0; }, 60s));
}

TEST_P(TimersConformance, AnswersMayComeInsideOfTheCall) {
    store().answer_inside(true);
    for (int i = 0; i < 20; ++i) {
        store().add("t", "q" + std::to_string(i), -1s);
    }
    EXPECT_TRUE(run([&] { return store().all(State::fired); }, 60s));
    EXPECT_TRUE(run([&] { return store().unreleased() == 0; }, 60s));
}

TEST_P(TimersConformance, WhatItIsToldOfIsFiredWhenItIsDue) {
    for (const Nanoseconds after : {Nanoseconds(200ms), Nanoseconds(5s)}) {
        run_for(10s); // idle
        store().add("t", "q", after);
        const SteadyTime due = clock_->now() + after;
        driver().scheduled(due);
        ASSERT_TRUE(run([&] { return store().all(State::fired); }, 60s));
        EXPECT_GE(clock_->now(), due);
        EXPECT_LE(clock_->now(), due + 500ms) << "told " << after.count() << " ns ahead";
    }
}

TEST_P(TimersConformance, WhatNobodyToldItIsFoundWithinAMinute) {
    run_for(100s); // idle for long
    store().add("t", "q", 0s);
    EXPECT_TRUE(run([&] { return store().all(State::fired); }, 60s));
}

TEST_P(TimersConformance, ABacklogOfManyTenantsIsDrained) {
    for (int i = 0; i < 2'000; ++i) {
        store().add("t" + std::to_string(i % 40), "q" + std::to_string(i % 5), -1s);
    }
    EXPECT_TRUE(run([&] { return store().all(State::fired); }, 300s));
    EXPECT_TRUE(run([&] { return store().unreleased() == 0; }, 60s));
}

TEST_P(TimersConformance, WhileFiringIsSwitchedOffNothingHappensAndNothingCounts) {
    store().outcome(TimerOutcome::paused);
    for (int i = 0; i < 10; ++i) {
        store().add("t", "q" + std::to_string(i), -1s);
    }
    run_for(300s);
    EXPECT_TRUE(store().all(State::waiting));
    store().outcome(TimerOutcome::ok);
    EXPECT_TRUE(run([&] { return store().all(State::fired); }, 120s));
    EXPECT_TRUE(run([&] { return store().unreleased() == 0; }, 60s));
    for (const auto& row : store().rows()) {
        EXPECT_EQ(row.attempts, 0);
    }
}

TEST_P(TimersConformance, F41_ADatabaseThatIsAwayCountsAgainstNoTimer) {
    for (int i = 0; i < 10; ++i) {
        store().add("t", "q" + std::to_string(i), -1s);
    }
    for (int turn = 0; turn < 40; ++turn) { // away at every place of the cycle, for a minute
        store().outcome(TimerOutcome::ok);
        for (int i = 0; i < turn % 6; ++i) {
            step();
        }
        store().outcome(TimerOutcome::transient);
        run_for(60s);
    }
    store().outcome(TimerOutcome::ok);
    EXPECT_TRUE(run([&] { return store().all(State::fired); }, 300s));
    EXPECT_TRUE(run([&] { return store().unreleased() == 0; }, 60s));
    for (const auto& row : store().rows()) {
        EXPECT_EQ(row.attempts, 0);
    }
}

TEST_P(TimersConformance, F40_WhatCanNeverBeFiredHoldsNobodyUpAndIsFiledInTheEnd) {
    add_overdue(20, [](int i, ScriptedTimers::Row& row) { row.poison = i == 7; });
    EXPECT_TRUE(run([&] { return store().count(State::fired) == 19; }, 300s));
    EXPECT_TRUE(run([&] { return store().count(State::filed) == 1; }, std::chrono::hours(2)));
    EXPECT_EQ(store().rows()[7].state, State::filed);
    EXPECT_GT(store().rows()[7].attempts, 1) << "it has more than one attempt";
}

TEST_P(TimersConformance, WhatOthersKeepLockedHoldsNobodyUpAndCountsNothing) {
    add_overdue(20, [](int i, ScriptedTimers::Row& row) { row.locked = i == 7; });
    EXPECT_TRUE(run([&] { return store().count(State::fired) == 19; }, 300s));
    store().unlock();
    EXPECT_TRUE(run([&] { return store().all(State::fired); }, 300s));
    EXPECT_TRUE(run([&] { return store().unreleased() == 0; }, 60s));
    EXPECT_EQ(store().rows()[7].attempts, 0);
}

TEST_P(TimersConformance, WhatIsStaleOrInTheLogAlreadyIsOver) {
    add_overdue(9, [](int i, ScriptedTimers::Row& row) {
        row.cancelled = i % 3 == 0;
        row.duplicate = i % 3 == 1;
    });
    EXPECT_TRUE(run([&] { return store().all(State::fired); }, 60s));
    EXPECT_TRUE(run([&] { return store().unreleased() == 0; }, 60s));
    for (const auto& row : store().rows()) {
        EXPECT_EQ(row.attempts, 0);
    }
}

TEST_P(TimersConformance, AfterItsStopItBeginsNoCallWhereverItIs) {
    for (int steps = 0; steps < 40; ++steps) {
        if (steps > 0) {
            ASSERT_NO_FATAL_FAILURE(load());
        }
        for (int i = 0; i < 5; ++i) {
            store().add("t", "q" + std::to_string(i), -1s);
        }
        for (int i = 0; i < steps; ++i) {
            step();
        }
        finish(); // looks for calls after the stop
        ASSERT_FALSE(HasFailure()) << "after " << steps << " steps";
    }
}

TEST_P(TimersConformance, AHostThatSaysNoIsNotAskedInALoop) {
    store().add("t", "q", -1s);
    for (int steps = 0; steps < 12; ++steps) {
        step();
    }
    store().refuse(true);
    store().add("t", "q2", -1s);
    run_for(60s);
    EXPECT_LE(store().refused(), 6'000u) << "more often than each 10 ms";
}

TEST_P(TimersConformance, TicksLieInTheFuture) {
    for (int i = 0; i < 100; ++i) {
        const SteadyTime now = clock_->now();
        EXPECT_GT(driver().tick(now), now);
        (void)store().answer_one();
        clock_->advance(10ms);
    }
}

TEST_P(TimersConformance, FiguresAreNumbersWithNames) {
    struct Figures final : plugin::Stats {
        void add(std::string_view name, double value) override {
            EXPECT_FALSE(name.empty());
            EXPECT_TRUE(std::isfinite(value)) << name;
        }
    } figures;
    store().add("t", "q", -1s);
    run_for(10s);
    driver().stats(figures);
}

// One thread ticks, two answer, two schedule, and stop() comes from a sixth. What this looks for
// is found by the sanitizers; that all is fired, once, is checked at the end.
TEST_P(TimersConformance, CallsFromManyThreadsAtOnce) {
    constexpr int kEach = 200;
    std::atomic<bool> over{false};
    bool all = false;
    {
        std::vector<std::jthread> threads;
        threads.emplace_back([&] {
            while (!over) {
                clock_->advance(1ms);
                (void)driver().tick(clock_->now());
                std::this_thread::yield();
            }
        });
        for (int n = 0; n < 2; ++n) {
            threads.emplace_back([&] {
                while (!over) {
                    if (!store().answer_one()) {
                        std::this_thread::yield();
                    }
                }
            });
            threads.emplace_back([&, n] {
                for (int i = 0; i < kEach; ++i) {
                    store().add("t" + std::to_string(n), "q" + std::to_string(i), 1ms * (i % 5));
                    driver().scheduled(clock_->now() + 1ms * (i % 5));
                }
            });
        }
        all = plugin::eventually([&] { return store().count(State::fired) == 2 * kEach; });
        driver().stop();
        store().no_more_calls();
        over = true;
    }
    EXPECT_TRUE(all);
}

} // namespace queen::conformance
