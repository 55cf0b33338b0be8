// The executor on real sessions: what becomes of requests when the database ails.
#include "store/canceller.hpp"
#include "store/conninfo.hpp"
#include "store/executor.hpp"
#include "store/pg_session.hpp"
#include "store/pg_store.hpp"
#include "support/manual_clock.hpp"
#include "support/postgres.hpp"

#include <gmock/gmock.h>

#include <future>

namespace queen::store {
namespace {

using namespace std::chrono_literals;
using queen::test::ManualClock;
using queen::test::TestPostgres;

constexpr SteadyTime kNever = SteadyTime::max();
constexpr Statement kTakeLock{"take_lock", "select pg_advisory_xact_lock(4712)"};

class PgExecutor : public testing::Test {
protected:
    static constexpr std::size_t kSessions = 5;
    TestPostgres& server = TestPostgres::shared();
    std::string conninfo = *complete_conninfo(server.conninfo());
    ManualClock clock; ///< of the executor alone: backoffs pass when the test says so

    std::unique_ptr<Executor> executor(StatementLimits limits = {}) {
        auto canceller = std::make_shared<Canceller>(conninfo, 10s);
        return std::make_unique<Executor>(
            Executor::Options{.sessions = kSessions, .spare_threads = 1},
            [=, this] { return std::make_unique<PgSession>(conninfo, limits, canceller); }, clock);
    }
    static std::future<Result<Rows>> submit(Executor& executor, const Statement& statement,
                                            Lane lane = Lane::push) {
        auto promise = std::make_shared<std::promise<Result<Rows>>>();
        executor.submit<Rows>(
            lane, kNever, [&statement](Session& session) { return session.run(statement, {}); },
            [promise](Result<Rows> rows) { promise->set_value(std::move(rows)); });
        return promise->get_future();
    }
    static Result<void> ping(Executor& executor) {
        std::promise<Result<void>> promise;
        PgStore(Asker(executor)).ping(kNever, [&](Result<void> pong) { promise.set_value(pong); });
        return promise.get_future().get();
    }
    /// All sessions in use at once, and back.
    static void open_all(Executor& executor) {
        constexpr std::size_t kPushes = 2; // cap of one lane
        std::promise<void> all;
        std::shared_future<void> let_go = all.get_future().share();
        std::atomic<std::size_t> started{0};
        std::vector<std::future<void>> ends;
        for (std::size_t i = 0; i < kSessions; ++i) {
            const auto lane = i < kPushes ? Lane::push : static_cast<Lane>(i == 2 ? 0 : i - 1);
            auto end = std::make_shared<std::promise<void>>();
            ends.push_back(end->get_future());
            executor.submit<int>(
                lane, kNever,
                [&](Session&) -> Result<int> {
                    if (++started == kSessions) {
                        all.set_value();
                    }
                    let_go.wait();
                    return 0;
                },
                [end](const Result<int>&) { end->set_value(); });
        }
        for (auto& end : ends) {
            end.wait();
        }
    }
    std::string lock_waiters() {
        return server.execute("postgres", "select count(*) from pg_locks where locktype = "
                                          "'advisory' and objid = 4712 and not granted");
    }
    static void expect_all_permits_back(const Executor& executor) {
        EXPECT_EQ(executor.statistics().in_use, 0u);
        for (const auto& lane : executor.statistics().lanes) {
            EXPECT_EQ(lane.running + lane.waiting, 0u);
        }
    }
};

/// PL-9: every idle link is dead after a restart, and not one request fails for it.
TEST_F(PgExecutor, PL9_ARestartOfTheServerFailsNoLaterRequest) {
    auto executor = this->executor();
    open_all(*executor);
    EXPECT_EQ(executor->statistics().open, kSessions);
    server.restart();
    open_all(*executor);
    for (std::size_t i = 0; i < 2 * kSessions; ++i) {
        const auto pong = ping(*executor);
        ASSERT_TRUE(pong) << pong.error().message;
    }
    const auto statistics = executor->statistics();
    EXPECT_EQ(statistics.resets, kSessions);
    EXPECT_FALSE(statistics.outage);
}

TEST_F(PgExecutor, AnOutageFailsFastAndEndsByItself) {
    auto executor = this->executor();
    open_all(*executor);
    server.kill9();
    // A backend outlives its postmaster by a moment: it may still answer, and each link may die
    // under a ping.
    std::size_t died_under = 0;
    for (int failed = 0, answered = 0; failed < 20;) {
        const auto pong = ping(*executor);
        if (pong) {
            ASSERT_LT(++answered, 100'000);
            continue;
        }
        ++failed;
        died_under += pong.error().code == Errc::transient ? 1 : 0;
        EXPECT_THAT(pong.error().code, testing::AnyOf(Errc::unavailable, Errc::transient));
    }
    EXPECT_LE(died_under, kSessions);
    EXPECT_TRUE(executor->statistics().outage);
    server.restart();
    EXPECT_EQ(ping(*executor).error().code, Errc::unavailable) << "still within the backoff";
    clock.advance(2s);
    const auto pong = ping(*executor);
    EXPECT_TRUE(pong) << pong.error().message;
    open_all(*executor);
    EXPECT_EQ(executor->statistics().open, kSessions);
    expect_all_permits_back(*executor);
}

/// F-29: a backend killed, a statement cancelled, a statement timed out: each gives its permit
/// back.
TEST_F(PgExecutor, F29_PermitsComeBackFromStatementsThatDie) {
    StatementLimits limits;
    limits.seed = 50ms;
    auto executor = this->executor(limits);
    PgSession holder(conninfo, StatementLimits{});
    ASSERT_TRUE(holder.connect());
    ASSERT_TRUE(holder.script("select pg_advisory_lock(4712)", 10s));

    auto killed = submit(*executor, kTakeLock);
    while (lock_waiters() != "1") {
    }
    server.execute("postgres", "select pg_terminate_backend(pid) from pg_locks where locktype = "
                               "'advisory' and objid = 4712 and not granted");
    EXPECT_EQ(killed.get().error().code, Errc::transient);
    EXPECT_EQ(executor->statistics().broken, 1u);

    auto cancelled = submit(*executor, kTakeLock);
    while (lock_waiters() != "1") {
    }
    server.execute("postgres", "select pg_cancel_backend(pid) from pg_locks where locktype = "
                               "'advisory' and objid = 4712 and not granted");
    EXPECT_EQ(cancelled.get().error().code, Errc::timeout);

    constexpr static Statement kImpatient{"impatient", kTakeLock.sql, StatementClass::seed};
    std::vector<std::future<Result<Rows>>> late;
    for (int i = 0; i < 6; ++i) {
        late.push_back(submit(*executor, kImpatient));
    }
    for (auto& outcome : late) {
        EXPECT_EQ(outcome.get().error().code, Errc::timeout);
    }
    EXPECT_EQ(executor->statistics().timeouts, 7u);
    EXPECT_EQ(lock_waiters(), "0") << "nothing is left running in the server";
    EXPECT_TRUE(ping(*executor));
    executor->stop(10s);
    expect_all_permits_back(*executor);
}

TEST_F(PgExecutor, StopCutsOffWhatRunsInTheServer) {
    auto executor = this->executor();
    PgSession holder(conninfo, StatementLimits{});
    ASSERT_TRUE(holder.connect());
    ASSERT_TRUE(holder.script("select pg_advisory_lock(4712)", 10s));
    auto stuck = submit(*executor, kTakeLock);
    while (lock_waiters() != "1") {
    }
    executor->stop(0ms);
    EXPECT_EQ(stuck.get().error().code, Errc::shutting_down);
    expect_all_permits_back(*executor);
}

} // namespace
} // namespace queen::store
