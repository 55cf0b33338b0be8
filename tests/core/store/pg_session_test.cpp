#include "core/store/relay.hpp"
#include "store/canceller.hpp"
#include "store/conninfo.hpp"
#include "store/pg_session.hpp"
#include "support/manual_clock.hpp"
#include "support/postgres.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <future>

namespace queen::store {
namespace {

using namespace std::chrono_literals;
using queen::test::TempDirectory;
using queen::test::TestPostgres;
using testing::HasSubstr;

constexpr Statement kTakeLock{"take_lock", "select pg_advisory_lock($1)"};
constexpr Statement kPid{"pid", "select pg_backend_pid()"};
/// Waits in the server until this backend has ended.
constexpr Statement kTerminate{"terminate", "select pg_terminate_backend($1, 30000)"};
/// Whether a backend waits for a lock.
constexpr Statement kWaits{"waits",
                           "select exists (select from pg_locks where pid = $1 and not granted)"};

std::string own_conninfo(const TestPostgres& server = TestPostgres::shared()) {
    return *complete_conninfo(server.conninfo());
}

StatementLimits short_limits(std::chrono::milliseconds normal = 100ms,
                             std::chrono::milliseconds grace = 10s) {
    StatementLimits limits;
    limits.normal = normal;
    limits.cancel_grace = grace;
    return limits;
}

std::size_t open_descriptors() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

class PgSessionTest : public testing::Test {
protected:
    static constexpr std::int64_t kLock = 4711;
    PgSession other{own_conninfo(), StatementLimits{}};

    void SetUp() override {
        ASSERT_TRUE(other.connect());
        hold_lock();
    }
    void hold_lock() { ASSERT_TRUE(other.run(kTakeLock, number(kLock))); }
    static Parameters number(std::int64_t value) {
        Parameters parameters;
        parameters.int8(value);
        return parameters;
    }
    static Parameters pid_of(const PgSession& session) {
        Parameters parameters;
        parameters.int4(session.backend_pid());
        return parameters;
    }
    void await_lock_wait(int pid) {
        Parameters parameters;
        parameters.int4(pid);
        while (!Row(*other.run(kWaits, parameters), 0).boolean(0)) {
        }
    }
    void expect_works(PgSession& session) {
        const auto rows = session.run(kPid, {});
        ASSERT_TRUE(rows) << rows.error().message;
        EXPECT_EQ(Row(*rows, 0).integer(0), session.backend_pid());
    }
};

TEST_F(PgSessionTest, ALateStatementIsCancelledAndItsLinkKept) {
    auto canceller = std::make_shared<Canceller>(own_conninfo(), 10s);
    PgSession session(own_conninfo(), short_limits(), canceller);
    ASSERT_TRUE(session.connect());
    const int pid = session.backend_pid();
    for (int i = 0; i < 3; ++i) {
        const auto rows = session.run(kTakeLock, number(kLock));
        ASSERT_FALSE(rows);
        EXPECT_EQ(rows.error().code, Errc::timeout);
        EXPECT_EQ(rows.error().sqlstate, "57014");
        ASSERT_TRUE(session.open());
        expect_works(session);
    }
    EXPECT_EQ(session.backend_pid(), pid);
}

TEST_F(PgSessionTest, LateStatementsAreLoggedOnceEach30Seconds) {
    queen::test::ManualClock clock;
    Canceller canceller(own_conninfo(), 10s, clock);
    EXPECT_TRUE(canceller.worth_a_line("pop_list"));
    EXPECT_TRUE(canceller.worth_a_line("push_multi"));
    clock.advance(30s - 1ns);
    EXPECT_FALSE(canceller.worth_a_line("pop_list"));
    clock.advance(1ns);
    EXPECT_TRUE(canceller.worth_a_line("pop_list"));
    EXPECT_FALSE(canceller.worth_a_line("pop_list"));
}

TEST_F(PgSessionTest, ACancelForABackendThatIsNotThereIsRefused) {
    Canceller canceller(own_conninfo(), 10s);
    EXPECT_EQ(canceller.cancel(other.backend_pid(), other.server_started() + 1).error().code,
              Errc::not_found)
        << "another server may have a backend of the same number";
    EXPECT_TRUE(canceller.cancel(other.backend_pid(), other.server_started()));
}

TEST_F(PgSessionTest, EachClassHasItsOwnLimit) {
    const auto limits = StatementLimits::around(200'000ms);
    EXPECT_EQ(limits.of(StatementClass::normal), 200'000ms);
    EXPECT_EQ(limits.of(StatementClass::seed), 200'000ms) << "never below the normal one";
    EXPECT_EQ(limits.of(StatementClass::maintenance), 600'000ms);

    StatementLimits seed_is_short = short_limits(1h);
    seed_is_short.seed = 50ms;
    PgSession session(own_conninfo(), seed_is_short);
    ASSERT_TRUE(session.connect());
    const Statement seed{"take_lock_seed", kTakeLock.sql, StatementClass::seed};
    EXPECT_EQ(session.run(seed, number(kLock)).error().code, Errc::timeout);
}

TEST_F(PgSessionTest, ALateStatementWithoutCancelCostsItsLink) {
    PgSession session(own_conninfo(), short_limits());
    ASSERT_TRUE(session.connect());
    const int pid = session.backend_pid();
    EXPECT_EQ(session.run(kTakeLock, number(kLock)).error().code, Errc::timeout);
    EXPECT_FALSE(session.open());
    EXPECT_FALSE(session.run(kPid, {})) << "nobody uses it before it was opened anew";
    ASSERT_TRUE(session.connect());
    EXPECT_NE(session.backend_pid(), pid);
    expect_works(session);
}

/// K32: the link swallows everything; new connections pass, so the cancel arrives, its result
/// never.
TEST_F(PgSessionTest, K32_ASilentLinkHoldsNobodyBeyondDeadlineAndGrace) {
    const TempDirectory folder;
    std::string through = own_conninfo();
    const std::size_t host = through.find("host='") + 6;
    const std::string directory = through.substr(host, through.find('\'', host) - host);
    test::Relay relay(folder.path() + "/.s.PGSQL.5432", directory + "/.s.PGSQL.5432");
    through.replace(host, directory.size(), folder.path());
    auto canceller = std::make_shared<Canceller>(through, 10s);
    PgSession session(through, short_limits(100ms, 100ms), canceller);
    const auto connected = session.connect();
    ASSERT_TRUE(connected) << connected.error().message;
    expect_works(session);
    const int pid = session.backend_pid();

    relay.go_silent();
    const auto rows = session.run(kPid, {});
    ASSERT_FALSE(rows);
    EXPECT_EQ(rows.error().code, Errc::timeout);
    EXPECT_FALSE(session.open());
    ASSERT_TRUE(session.connect());
    EXPECT_NE(session.backend_pid(), pid);
    expect_works(session);
}

TEST_F(PgSessionTest, InterruptEndsAStatementThatRuns) {
    PgSession session(own_conninfo(), StatementLimits{});
    ASSERT_TRUE(session.connect());
    const int pid = session.backend_pid();
    auto running = std::async(std::launch::async,
                              [&] { return session.run(kTakeLock, number(kLock)).error().code; });
    await_lock_wait(pid);
    session.interrupt();
    EXPECT_EQ(running.get(), Errc::shutting_down);
    EXPECT_FALSE(session.open());
    EXPECT_FALSE(session.connect()) << "for good";
}

TEST_F(PgSessionTest, ABackendKilledUnderAStatementIsTransient) {
    PgSession session(own_conninfo(), StatementLimits{});
    ASSERT_TRUE(session.connect());
    const int pid = session.backend_pid();
    auto running =
        std::async(std::launch::async, [&] { return session.run(kTakeLock, number(kLock)); });
    await_lock_wait(pid);
    ASSERT_TRUE(other.run(kTerminate, pid_of(session)));
    const auto rows = running.get();
    ASSERT_FALSE(rows);
    EXPECT_EQ(rows.error().code, Errc::transient);
    EXPECT_EQ(rows.error().sqlstate, "57P01");
    EXPECT_FALSE(session.open());
    ASSERT_TRUE(session.connect());
    expect_works(session);
}

/// PL-9: a link that the server closed while it was idle is found without a round trip.
TEST_F(PgSessionTest, CheckFindsAnIdleLinkThatIsDead) {
    PgSession session(own_conninfo(), StatementLimits{});
    EXPECT_FALSE(session.check()) << "not connected yet";
    ASSERT_TRUE(session.connect());
    EXPECT_TRUE(session.check());
    ASSERT_TRUE(other.run(kTerminate, pid_of(session)));
    EXPECT_FALSE(session.check());
    ASSERT_TRUE(session.connect());
    EXPECT_TRUE(session.check());
    expect_works(session);
}

TEST_F(PgSessionTest, StatementsAreMadeAnewWhenTheirPreparedFormIsGone) {
    PgSession session(own_conninfo(), StatementLimits{});
    ASSERT_TRUE(session.connect());
    expect_works(session);
    ASSERT_TRUE(session.script("deallocate all", 10s));
    expect_works(session);

    // what an installer of another broker may do to a function that is in use
    constexpr Statement changing{"changing", "select * from pg_temp.changing()"};
    ASSERT_TRUE(session.script(
        "create function pg_temp.changing() returns int language sql as 'select 1'", 10s));
    EXPECT_EQ(Row(*session.run(changing, {}), 0).integer(0), 1);
    ASSERT_TRUE(session.script("drop function pg_temp.changing(); create function "
                               "pg_temp.changing() returns text language sql as $$select 'x'$$",
                               10s));
    const auto rows = session.run(changing, {});
    ASSERT_TRUE(rows) << rows.error().message;
    EXPECT_EQ(Row(*rows, 0).text(0), "x");
}

TEST_F(PgSessionTest, ALinkWithAnOpenTransactionIsDropped) {
    PgSession session(own_conninfo(), StatementLimits{});
    ASSERT_TRUE(session.connect());
    EXPECT_TRUE(session.run({"begin", "begin"}, {}));
    EXPECT_FALSE(session.open());
}

TEST_F(PgSessionTest, ErrorsCarryTheServersWords) {
    PgSession session(own_conninfo(), StatementLimits{});
    ASSERT_TRUE(session.connect());
    const auto rows = session.run({"missing", "select * from not_there"}, {});
    ASSERT_FALSE(rows);
    EXPECT_EQ(rows.error().code, Errc::store_failed);
    EXPECT_EQ(rows.error().sqlstate, "42P01");
    EXPECT_THAT(rows.error().message, HasSubstr("not_there"));
    expect_works(session);
    const auto divided = session.run({"divide", "select 1 / $1"}, number(0));
    EXPECT_EQ(divided.error().sqlstate, "22012");
    EXPECT_EQ(session.run({"divide", "select 1 / $1"}, number(0)).error().sqlstate, "22012");
    expect_works(session);
}

TEST_F(PgSessionTest, TheBrokersRulesReplaceThoseOfTheDatabase) {
    const std::string database = TestPostgres::shared().create_database();
    for (const char* setting : {"statement_timeout = 1234", "synchronous_commit = off",
                                "default_transaction_isolation = serializable", "jit = on"}) {
        TestPostgres::shared().execute(database, "alter database " + database + " set " + setting);
    }
    PgSession session(*complete_conninfo(TestPostgres::shared().conninfo(database)),
                      StatementLimits{});
    ASSERT_TRUE(session.connect());
    const auto rows = session.run(
        {"settings", "select current_setting('statement_timeout'), "
                     "current_setting('synchronous_commit'), "
                     "current_setting('transaction_isolation'), current_setting('jit'), "
                     "current_setting('application_name')"},
        {});
    ASSERT_TRUE(rows);
    Row row(*rows, 0);
    EXPECT_EQ(row.text(0), "0");
    EXPECT_EQ(row.text(1), "on");
    EXPECT_EQ(row.text(2), "read committed");
    EXPECT_EQ(row.text(3), "off");
    EXPECT_EQ(row.text(4), "queend");
}

TEST_F(PgSessionTest, NoticesDoNotGoToStderr) {
    PgSession session(own_conninfo(), StatementLimits{});
    ASSERT_TRUE(session.connect());
    testing::internal::CaptureStderr();
    EXPECT_TRUE(session.script("do $$ begin raise notice 'a'; raise warning 'b'; end $$", 10s));
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(PgSessionTest, LargeValuesPassInBothDirections) {
    PgSession session(own_conninfo(), StatementLimits{});
    ASSERT_TRUE(session.connect());
    std::string large(std::size_t{32} << 20, 'x');
    for (std::size_t i = 0; i < large.size(); i += 1021) {
        large[i] = static_cast<char>(i);
    }
    Parameters parameters;
    parameters.bytea(large);
    const auto rows = session.run({"echo", "select $1"}, parameters);
    ASSERT_TRUE(rows) << rows.error().message;
    EXPECT_TRUE(Row(*rows, 0).bytea(0) == large);
}

TEST_F(PgSessionTest, ConnectingAnewLeaksNoDescriptor) {
    TestPostgres server; // of our own: it is killed below
    PgSession session(own_conninfo(server), StatementLimits{});
    ASSERT_TRUE(session.connect());
    const std::size_t before = open_descriptors();
    for (int i = 0; i < 200; ++i) {
        ASSERT_TRUE(session.connect());
    }
    EXPECT_EQ(open_descriptors(), before);

    server.kill9();
    for (int i = 0; i < 200; ++i) {
        EXPECT_EQ(session.connect().error().code, Errc::unavailable);
    }
    EXPECT_LE(open_descriptors(), before) << "while the server is down";
    for (int i = 0; i < 50; ++i) {
        PgSession never_up(own_conninfo(server), StatementLimits{});
        EXPECT_FALSE(never_up.connect());
        EXPECT_FALSE(never_up.connect());
    }
    EXPECT_LE(open_descriptors(), before) << "sessions that never came up";

    server.restart();
    ASSERT_TRUE(session.connect());
    expect_works(session);
    for (int i = 0; i < 50; ++i) {
        PgSession refused(own_conninfo(server) + " dbname='not_there'", StatementLimits{});
        EXPECT_FALSE(refused.connect());
        EXPECT_THAT(refused.connect().error().message, HasSubstr("not_there"));
    }
    EXPECT_LE(open_descriptors(), before + 1) << "a server that answers and refuses";
}

} // namespace
} // namespace queen::store
