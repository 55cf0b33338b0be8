#include "core/store/fake_session.hpp"
#include "store/executor.hpp"
#include "support/manual_clock.hpp"

#include <gmock/gmock.h>

#include <future>
#include <random>

namespace queen::store {
namespace {

using namespace std::chrono_literals;
using queen::test::ManualClock;
using test::FakeDatabase;
using test::FakeSession;
using test::Gate;
using test::Journal;
using testing::ElementsAre;

constexpr SteadyTime kNever = SteadyTime::max();

std::size_t at(Lane lane) {
    return static_cast<std::size_t>(lane);
}

/// Submits a call that returns a number, and gives its outcome as a future.
std::future<Result<int>> ask(Executor& executor, Lane lane,
                             std::function<Result<int>(Session&)> call,
                             SteadyTime deadline = kNever, Repeat repeat = Repeat::never) {
    auto promise = std::make_shared<std::promise<Result<int>>>();
    auto future = promise->get_future();
    executor.submit<int>(
        lane, deadline, std::move(call),
        [promise](Result<int> outcome) { promise->set_value(std::move(outcome)); }, repeat);
    return future;
}

Result<int> one(Session&) {
    return 1;
}

/// A statement that runs until it is let go.
struct Blocker {
    Gate started, let_go;
    std::future<Result<int>> outcome;

    Blocker(Executor& executor, Lane lane) {
        outcome = ask(executor, lane, [this](Session&) -> Result<int> {
            started.open();
            let_go.wait();
            return 0;
        });
    }
    ~Blocker() {
        if (outcome.valid()) {
            outcome.wait(); // the call still uses the gates
        }
    }
};

void expect_all_permits_back(const Executor& executor) {
    const auto statistics = executor.statistics();
    EXPECT_EQ(statistics.in_use, 0u);
    for (const auto& lane : statistics.lanes) {
        EXPECT_EQ(lane.running, 0u);
        EXPECT_EQ(lane.waiting, 0u);
    }
}

class ExecutorTest : public testing::Test {
protected:
    FakeDatabase database;
    ManualClock clock;

    std::unique_ptr<Executor> executor(std::size_t sessions, std::size_t spare_threads = 2) {
        return std::make_unique<Executor>(
            Executor::Options{.sessions = sessions, .spare_threads = spare_threads},
            test::fake_sessions(database), clock);
    }
};

TEST_F(ExecutorTest, DoneRunsOnAWorkerAfterTheSessionWentBack) {
    auto executor = this->executor(1);
    std::promise<std::pair<std::size_t, std::thread::id>> seen;
    std::thread::id caller;
    executor->submit<int>(
        Lane::push, kNever,
        [&](Session&) -> Result<int> {
            caller = std::this_thread::get_id();
            return static_cast<int>(executor->statistics().in_use);
        },
        [&](Result<int> in_use_during_call) {
            EXPECT_EQ(in_use_during_call, 1);
            seen.set_value({executor->statistics().in_use, std::this_thread::get_id()});
        });
    const auto [in_use, thread] = seen.get_future().get();
    EXPECT_EQ(in_use, 0u);
    EXPECT_NE(thread, std::this_thread::get_id());
    EXPECT_EQ(thread, caller) << "no needless hand-over between threads";
}

TEST_F(ExecutorTest, TheWaitForASessionIsMeasuredByLane) {
    auto executor = this->executor(1);
    Blocker blocker(*executor, Lane::push);
    blocker.started.wait();
    auto pop = ask(*executor, Lane::pop, one);
    auto late = ask(*executor, Lane::ack, one, clock.now() + 1s);
    clock.advance(3s);
    executor->wake(); // the ack's deadline is over: it never gets a session
    EXPECT_FALSE(late.get());
    blocker.let_go.open();
    EXPECT_TRUE(pop.get());
    const auto statistics = executor->statistics();
    EXPECT_EQ(statistics.lanes[at(Lane::push)].waited.count(), 1u);
    EXPECT_EQ(statistics.lanes[at(Lane::push)].waited.sum, 0s);
    EXPECT_EQ(statistics.lanes[at(Lane::pop)].waited.count(), 1u);
    EXPECT_EQ(statistics.lanes[at(Lane::pop)].waited.sum, 3s);
    EXPECT_EQ(statistics.lanes[at(Lane::ack)].waited.count(), 0u);
}

TEST_F(ExecutorTest, LanesAreServedInOrderOfPreference) {
    auto executor = this->executor(5); // a lane may use two
    Blocker ack1(*executor, Lane::ack), push(*executor, Lane::push), pop(*executor, Lane::pop),
        admin(*executor, Lane::admin);
    for (Blocker* blocker : {&ack1, &push, &pop, &admin}) {
        blocker->started.wait();
    }
    Blocker ack2(*executor, Lane::ack);
    ack2.started.wait();

    Journal journal;
    std::vector<std::future<Result<int>>> queued;
    for (const auto& entry : std::vector<std::pair<Lane, std::string>>{{Lane::admin, "admin"},
                                                                       {Lane::pop, "pop"},
                                                                       {Lane::push, "push"},
                                                                       {Lane::ack, "ack"}}) {
        queued.push_back(
            ask(*executor, entry.first, [&journal, name = entry.second](Session&) -> Result<int> {
                journal.say(name);
                return 0;
            }));
    }
    ack2.let_go.open();
    for (auto& outcome : queued) {
        outcome.wait();
    }
    EXPECT_THAT(journal.words(), ElementsAre("ack", "push", "pop", "admin"));
    for (Blocker* blocker : {&ack1, &push, &pop, &admin}) {
        blocker->let_go.open();
    }
}

TEST_F(ExecutorTest, ALaneLeavesASessionToEachOther) {
    auto executor = this->executor(6);
    Gate let_go;
    std::promise<void> three;
    std::atomic<int> started{0};
    std::vector<std::future<Result<int>>> pops;
    for (int i = 0; i < 10; ++i) {
        pops.push_back(ask(*executor, Lane::pop, [&](Session&) -> Result<int> {
            if (++started == 3) {
                three.set_value();
            }
            let_go.wait();
            return 0;
        }));
    }
    three.get_future().wait();
    for (const Lane lane : {Lane::ack, Lane::push, Lane::admin}) {
        EXPECT_EQ(ask(*executor, lane, one).get(), 1);
    }
    const auto statistics = executor->statistics();
    EXPECT_EQ(statistics.lanes[at(Lane::pop)].running, 3u);
    EXPECT_EQ(statistics.lanes[at(Lane::pop)].waiting, 7u);
    let_go.open();
    for (auto& pop : pops) {
        EXPECT_EQ(pop.get(), 0);
    }
    EXPECT_EQ(started, 10);
}

TEST_F(ExecutorTest, TwoLanesTogetherCannotTakeTheThirdOnesSession) {
    auto executor = this->executor(6); // ack and push alone could use 3 + 3
    Gate let_go;
    std::promise<void> all_allowed;
    std::atomic<int> started{0};
    std::vector<std::future<Result<int>>> outcomes;
    for (int i = 0; i < 6; ++i) {
        for (const Lane lane : {Lane::ack, Lane::push}) {
            outcomes.push_back(ask(*executor, lane, [&](Session&) -> Result<int> {
                if (++started == 4) {
                    all_allowed.set_value();
                }
                let_go.wait();
                return 0;
            }));
        }
    }
    all_allowed.get_future().wait();
    EXPECT_EQ(ask(*executor, Lane::admin, one).get(), 1);
    EXPECT_EQ(ask(*executor, Lane::pop, one).get(), 1);
    EXPECT_EQ(started, 4) << "two of six sessions stay for pop and admin";
    let_go.open();
    for (auto& outcome : outcomes) {
        outcome.wait();
    }
}

/// F-30, K30: with a single session no lane starves, however busy a better one is.
TEST_F(ExecutorTest, F30_OneSessionServesEveryLane) {
    auto executor = this->executor(1);
    std::atomic<bool> flood{true};
    std::atomic<int> acks{0};
    std::function<void()> more = [&] {
        executor->submit<int>(
            Lane::ack, kNever, [&](Session&) -> Result<int> { return ++acks; },
            [&](const Result<int>&) {
                if (flood) {
                    more();
                }
            });
    };
    for (int i = 0; i < 3; ++i) { // the ack lane never runs dry
        more();
    }
    for (const Lane lane : {Lane::admin, Lane::pop, Lane::push}) {
        EXPECT_EQ(ask(*executor, lane, one).get(), 1);
    }
    flood = false;
    executor->stop(10s);
    expect_all_permits_back(*executor);
}

/// F-30: work that follows from a statement never waits for the session that statement held.
TEST_F(ExecutorTest, F30_ContinuationsMaySubmitWithOneSession) {
    auto executor = this->executor(1, 1);
    std::promise<int> end;
    std::function<void(int)> step = [&](int depth) {
        executor->submit<int>(
            Lane::push, kNever, [depth](Session&) -> Result<int> { return depth + 1; },
            [&](Result<int> next) { *next == 1000 ? end.set_value(*next) : step(*next); });
    };
    step(0);
    EXPECT_EQ(end.get_future().get(), 1000);
}

TEST_F(ExecutorTest, AJobWhoseDeadlinePassesFailsWithoutRunning) {
    auto executor = this->executor(1);
    Blocker blocker(*executor, Lane::push);
    blocker.started.wait();
    std::atomic<bool> ran{false};
    auto late = ask(
        *executor, Lane::ack,
        [&](Session&) -> Result<int> {
            ran = true;
            return 0;
        },
        clock.now() + 1s);
    auto patient = ask(*executor, Lane::ack, one, clock.now() + 1h);
    clock.advance(1s);
    executor->wake();
    const auto outcome = late.get(); // while the only session is still in use
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, Errc::unavailable);
    EXPECT_EQ(outcome.error().message, "pool");
    blocker.let_go.open();
    EXPECT_EQ(patient.get(), 1);
    EXPECT_FALSE(ran);
    EXPECT_EQ(executor->statistics().lanes[at(Lane::ack)].expired, 1u);
}

TEST_F(ExecutorTest, DeadlinesAreSeenWithoutAWakeByAnyone) {
    Executor executor({.sessions = 1, .spare_threads = 1}, test::fake_sessions(database));
    Blocker blocker(executor, Lane::push);
    blocker.started.wait();
    auto late = ask(executor, Lane::ack, one, SystemClock::instance().now() + 20ms);
    EXPECT_EQ(late.get().error().message, "pool");
    blocker.let_go.open();
}

TEST_F(ExecutorTest, TasksGoBeforeStatements) {
    auto executor = this->executor(1, 1);
    Gate busy, let_go;
    executor->post([&] {
        busy.open();
        let_go.wait();
    });
    busy.wait();
    Blocker blocker(*executor, Lane::ack); // takes the other thread
    blocker.started.wait();
    Journal journal;
    std::promise<void> task_ran;
    auto statement = ask(*executor, Lane::ack, [&](Session&) -> Result<int> {
        journal.say("statement");
        return 0;
    });
    executor->post([&] {
        journal.say("task");
        task_ran.set_value();
    });
    blocker.let_go.open();
    statement.wait();
    task_ran.get_future().wait();
    EXPECT_THAT(journal.words(), ElementsAre("task", "statement"));
    let_go.open();
}

/// A worker keeps the first piece of work it hands in for itself and wakes another for the second,
/// so that a long continuation delays no more than one.
TEST_F(ExecutorTest, WorkHandedInByAWorkerIsSharedFromTheSecondOn) {
    auto executor = this->executor(1, 1);
    Gate first_ran, second_ran;
    std::promise<void> end;
    executor->post([&] {
        executor->post([&] { first_ran.open(); });
        executor->post([&] { second_ran.open(); });
        first_ran.wait(); // only another worker can open them
        second_ran.wait();
        end.set_value();
    });
    end.get_future().wait();
}

TEST_F(ExecutorTest, StopFailsWhatWaitsAndFinishesWhatRuns) {
    auto executor = this->executor(1);
    Blocker blocker(*executor, Lane::push);
    blocker.started.wait();
    std::atomic<int> ran{0};
    std::atomic<int> answered{0};
    for (int i = 0; i < 50; ++i) {
        executor->submit<int>(
            Lane::pop, kNever, [&](Session&) -> Result<int> { return ++ran; },
            [&](Result<int> outcome) {
                ASSERT_FALSE(outcome);
                EXPECT_EQ(outcome.error().code, Errc::shutting_down);
                if (++answered == 50) {
                    blocker.let_go.open(); // the statement ends within the grace
                }
            });
    }
    executor->stop(1h);
    EXPECT_EQ(blocker.outcome.get(), 0);
    EXPECT_EQ(ran, 0);
    EXPECT_EQ(answered, 50);
    expect_all_permits_back(*executor);

    const auto after = ask(*executor, Lane::ack, one).get();
    EXPECT_EQ(after.error().code, Errc::shutting_down);
}

TEST_F(ExecutorTest, StopCutsOffAStatementThatOutlivesItsGrace) {
    auto executor = this->executor(2);
    Gate started;
    auto stuck = ask(*executor, Lane::push, [&](Session& session) -> Result<int> {
        started.open();
        static_cast<FakeSession&>(session).await_interrupt();
        return fail(Errc::shutting_down, "interrupted");
    });
    started.wait();
    executor->stop(0ms);
    EXPECT_EQ(stuck.get().error().message, "interrupted");
}

TEST_F(ExecutorTest, TasksAndFollowersPostedDuringStopStillRun) {
    auto executor = this->executor(1, 1);
    Blocker blocker(*executor, Lane::push);
    blocker.started.wait();
    std::promise<Errc> follower;
    executor->submit<int>(Lane::pop, kNever, one, [&](const Result<int>&) {
        executor->post([&] {
            executor->submit<int>(Lane::ack, kNever, one, [&](Result<int> outcome) {
                follower.set_value(outcome.error().code);
                blocker.let_go.open();
            });
        });
    });
    executor->stop(1h);
    EXPECT_EQ(follower.get_future().get(), Errc::shutting_down);
}

/// F-29: whatever goes wrong at whatever step, the permit comes back.
TEST_F(ExecutorTest, F29_NoFaultKeepsAPermit) {
    auto executor = this->executor(1, 1);
    const auto next_is_served = [&] { return ask(*executor, Lane::admin, one).get() == 1; };

    // the call returns an error
    EXPECT_FALSE(ask(*executor, Lane::push, [](Session&) -> Result<int> {
                     return fail(Errc::store_failed, "refused", "23505");
                 }).get());
    EXPECT_TRUE(next_is_served());
    // the call throws: the link may be between a question and its answer, so it is dropped
    const auto thrown = ask(*executor, Lane::push, [](Session&) -> Result<int> {
                            throw std::runtime_error("broken call");
                        }).get();
    EXPECT_EQ(thrown.error().code, Errc::internal);
    EXPECT_TRUE(next_is_served());
    EXPECT_EQ(executor->statistics().resets, 1u);
    // the link breaks
    EXPECT_FALSE(ask(*executor, Lane::push, [](Session& session) -> Result<int> {
                     session.quarantine();
                     return fail(Errc::transient, "lost");
                 }).get());
    EXPECT_TRUE(next_is_served());
    EXPECT_EQ(executor->statistics().resets, 2u);
    // the continuation throws
    Gate thrown_in_done;
    executor->submit<int>(Lane::push, kNever, one, [&](const Result<int>&) {
        thrown_in_done.open();
        throw std::runtime_error("broken continuation");
    });
    thrown_in_done.wait();
    EXPECT_TRUE(next_is_served());
    // a task throws
    executor->post([] { throw std::runtime_error("broken task"); });
    EXPECT_TRUE(next_is_served());
    // the deadline passed before it began
    EXPECT_EQ(ask(*executor, Lane::push, one, clock.now()).get().error().code, Errc::unavailable);
    EXPECT_TRUE(next_is_served());
    // no connection
    database.up = false;
    EXPECT_EQ(ask(*executor, Lane::push, one).get().error().code, Errc::unavailable);
    database.up = true;
    clock.advance(10s);
    EXPECT_TRUE(next_is_served());
    executor->stop(1h);
    expect_all_permits_back(*executor);
}

/// F-31: a crowd that waits for a session is a list, not a recursion, and is answered to the last.
TEST_F(ExecutorTest, F31_ACrowdOfWaitersIsAnswered) {
    auto executor = this->executor(1, 1);
    Blocker blocker(*executor, Lane::push);
    blocker.started.wait();
    constexpr int kCrowd = 100'000;
    std::atomic<int> refused{0};
    std::promise<void> last;
    for (int i = 0; i < kCrowd; ++i) {
        executor->submit<int>(Lane::pop, clock.now() + 1s, one, [&](Result<int> outcome) {
            EXPECT_EQ(outcome.error().message, "pool");
            if (++refused == kCrowd) {
                last.set_value();
            }
        });
    }
    clock.advance(1s);
    executor->wake();
    last.get_future().wait();
    blocker.let_go.open();
    EXPECT_EQ(blocker.outcome.get(), 0);
}

TEST_F(ExecutorTest, EveryJobIsAnsweredOnceUnderLoadAndShutdown) {
    auto executor = this->executor(5, 2);
    constexpr int kJobs = 4000;
    std::vector<std::atomic<int>> answers(kJobs);
    std::array<std::atomic<std::size_t>, kLanes> most{};
    std::vector<std::thread> producers;
    for (int producer = 0; producer < 4; ++producer) {
        producers.emplace_back([&, producer] {
            std::mt19937 random(static_cast<unsigned>(producer));
            for (int i = producer; i < kJobs; i += 4) {
                const auto lane = static_cast<Lane>(random() % kLanes);
                const SteadyTime deadline = random() % 8 == 0 ? clock.now() : kNever;
                executor->submit<int>(
                    lane, deadline,
                    [&, lane](Session&) -> Result<int> {
                        const auto running = executor->statistics().lanes[at(lane)].running;
                        auto& seen = most[at(lane)];
                        for (auto old = seen.load(); old < running;) {
                            seen.compare_exchange_weak(old, running);
                        }
                        return 0;
                    },
                    [&, i](const Result<int>&) { ++answers[static_cast<std::size_t>(i)]; });
            }
        });
    }
    producers[0].join(); // stop comes in the middle of what the others submit
    executor->stop(1h);
    for (std::size_t i = 1; i < producers.size(); ++i) {
        producers[i].join();
    }
    for (const auto& count : answers) {
        ASSERT_EQ(count, 1);
    }
    for (const auto& running : most) {
        EXPECT_LE(running, 2u); // 5 sessions - 3 other lanes
    }
    expect_all_permits_back(*executor);
}

} // namespace
} // namespace queen::store
