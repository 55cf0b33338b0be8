#include "store/conninfo.hpp"
#include "store/installer.hpp"
#include "support/postgres.hpp"

#include <gmock/gmock.h>

#include <future>

namespace queen::store {
namespace {

using namespace std::chrono_literals;
using queen::test::TestPostgres;
using testing::AllOf;
using testing::HasSubstr;

class InstallerTest : public testing::Test {
protected:
    TestPostgres& server = TestPostgres::shared();
    std::string database = server.create_database();
    std::string conninfo = *complete_conninfo(server.conninfo(database));

    Result<InstallReport> install(InstallOptions options = {}) {
        return Installer(conninfo, options).run();
    }
    /// Options over one file of our own.
    InstallOptions file(std::string_view text) {
        files_ = {{"900_test.sql", text}};
        InstallOptions options;
        options.files = files_;
        options.lock_timeout = 100ms;
        options.pause_first = 10ms;
        options.attempts = 3;
        return options;
    }
    std::string ask(const std::string& sql) { return server.execute(database, sql); }
    const std::string kOurs = "queen broker schema, version " + std::to_string(kSchemaVersion);
    std::string mark() {
        return ask("select obj_description(oid, 'pg_namespace') from pg_namespace "
                   "where nspname = 'queen'");
    }
    std::string fingerprint() {
        return ask(
            "select md5(string_agg(x, ',' order by x)) from (select p.oid::regprocedure::text "
            "|| md5(p.prosrc) x from pg_proc p where p.pronamespace = 'queen'::regnamespace "
            "union all select c.relname || a.attname || a.atttypid from pg_class c join "
            "pg_attribute a on a.attrelid = c.oid where c.relnamespace = "
            "'queen'::regnamespace) s");
    }

private:
    std::vector<SqlFile> files_;
};

TEST(Install, AServerThatDoesNotFitIsRefusedInOneSentence) {
    EXPECT_TRUE(fit_server(150'000, false));
    EXPECT_TRUE(fit_server(180'001, false));
    const auto old = fit_server(140'013, false);
    ASSERT_FALSE(old);
    EXPECT_EQ(old.error().code, Errc::unsupported);
    EXPECT_EQ(old.error().message,
              "PostgreSQL 14 is too old: Queen broker needs PostgreSQL 15 or newer");
    const auto standby = fit_server(150'020, true);
    ASSERT_FALSE(standby);
    EXPECT_EQ(standby.error().code, Errc::unavailable);
    EXPECT_THAT(standby.error().message, HasSubstr("standby"));
}

TEST_F(InstallerTest, InstallsIntoAnEmptyDatabaseAndAgainWithoutChange) {
    const auto first = install();
    ASSERT_TRUE(first) << first.error().message;
    EXPECT_TRUE(first->created);
    EXPECT_GT(first->statements, 20);
    EXPECT_EQ(mark(), kOurs);
    EXPECT_EQ(ask("select queen.log_has_pending_v1('q', 'g')"), "t");
    const std::string before = fingerprint();

    const auto second = install();
    ASSERT_TRUE(second) << second.error().message;
    EXPECT_FALSE(second->created);
    EXPECT_EQ(second->statements, first->statements);
    EXPECT_EQ(fingerprint(), before);
}

TEST_F(InstallerTest, K35_FourAtOnceGiveOneSchema) {
    std::vector<std::future<Result<InstallReport>>> all;
    for (int i = 0; i < 4; ++i) {
        all.push_back(std::async(std::launch::async, [this] { return install(); }));
    }
    int created = 0;
    for (auto& one : all) {
        const auto report = one.get();
        ASSERT_TRUE(report) << report.error().message;
        created += report->created ? 1 : 0;
    }
    EXPECT_EQ(created, 1);
    EXPECT_EQ(mark(), kOurs);
}

TEST_F(InstallerTest, AFailureNamesFileOrdinalStatementAndTheServersWords) {
    const auto failed =
        install(file("create table if not exists queen.a();\n-- @\n-- two\nselect  1 /\n 0\n"));
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, Errc::store_failed);
    EXPECT_EQ(failed.error().message, "schema: sql/900_test.sql, statement 2 (select 1 / 0): "
                                      "division by zero [22012]");
    EXPECT_EQ(mark(), "queen broker schema, version 0") << "ours, and not complete";
    EXPECT_TRUE(install()) << "an installation that was cut off is taken up again";
    EXPECT_EQ(mark(), kOurs);
}

TEST_F(InstallerTest, EachStepIsATransactionOfItsOwn) {
    EXPECT_FALSE(install(file("create table queen.kept();\n-- @\ncreate table queen.gone();\n"
                              "select 1 / 0;\n")));
    EXPECT_NE(ask("select to_regclass('queen.kept')"), "");
    EXPECT_EQ(ask("select to_regclass('queen.gone')"), "");
}

TEST_F(InstallerTest, ADropAndItsSuccessorAreOneTransaction) {
    ASSERT_TRUE(install(file("create table queen.t(a int);")));
    EXPECT_FALSE(install(file("drop table queen.t;\n-- @\ncreate table queen.t(b no_such_type);")));
    EXPECT_NE(ask("select to_regclass('queen.t')"), "") << "the old one is still there";
}

TEST_F(InstallerTest, WhoIsInTheWayIsNamedAndNotCancelled) {
    ASSERT_TRUE(install(file("create table queen.busy(a int);")));
    PgSession blocker(conninfo, StatementLimits{});
    ASSERT_TRUE(blocker.connect());
    ASSERT_TRUE(blocker.script("begin; lock table queen.busy in access share mode", 10s));

    const auto failed = install(file("alter table queen.busy add b int;"));
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, Errc::transient);
    EXPECT_THAT(failed.error().message,
                AllOf(HasSubstr("900_test.sql, statement 1 (alter table queen.busy add b int)"),
                      HasSubstr("[55P03]"), HasSubstr("given up after 3 attempts"),
                      HasSubstr("pid " + std::to_string(blocker.backend_pid())),
                      HasSubstr("idle in transaction"), HasSubstr("lock table queen.busy")));
    EXPECT_TRUE(blocker.script("commit", 10s)) << "the blocker was left alone";
    const auto repeated = install(file("alter table queen.busy add b int;"));
    EXPECT_TRUE(repeated);
}

TEST_F(InstallerTest, AStatementThatHadToWaitSucceedsOnALaterAttempt) {
    ASSERT_TRUE(install(file("create table queen.busy(a int);")));
    PgSession blocker(conninfo, StatementLimits{});
    ASSERT_TRUE(blocker.connect());
    ASSERT_TRUE(blocker.script("begin; lock table queen.busy in access share mode", 10s));
    InstallOptions patient = file("alter table queen.busy add b int;");
    patient.attempts = 1000;
    auto installing = std::async(std::launch::async, [&] { return install(patient); });
    // the first attempt is on: its end is the only way on, since the lock is held until then
    while (ask("select count(*) > 0 from pg_locks where relation = 'queen.busy'::regclass and not "
               "granted") != "t") {
    }
    while (ask("select count(*) > 0 from pg_locks where relation = 'queen.busy'::regclass and not "
               "granted") == "t") {
    }
    ASSERT_TRUE(blocker.script("commit", 10s));
    const auto report = installing.get();
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_GE(report->retries, 1);
}

TEST_F(InstallerTest, WaitsForItsTurnAndNamesWhoHasIt) {
    PgSession holder(conninfo, StatementLimits{});
    ASSERT_TRUE(holder.connect());
    ASSERT_TRUE(holder.script("select pg_advisory_lock(" + std::to_string(kSchemaLock) + ")", 10s));
    InstallOptions impatient;
    impatient.turn = 50ms;
    const auto failed = install(impatient);
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, Errc::unavailable);
    EXPECT_THAT(failed.error().message,
                AllOf(HasSubstr("another installer"),
                      HasSubstr("pid " + std::to_string(holder.backend_pid()))));
    auto patient = std::async(std::launch::async, [this] { return install(); });
    ASSERT_TRUE(holder.script("select pg_advisory_unlock_all()", 10s));
    EXPECT_TRUE(patient.get());
}

TEST_F(InstallerTest, ConcurrentIndexesAreBuiltOutsideATransaction) {
    const auto report = install(file("create table if not exists queen.t(a int);\n-- @\n"
                                     "create index concurrently if not exists t_a on queen.t(a);"));
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_NE(ask("select to_regclass('queen.t_a')"), "");
}

TEST_F(InstallerTest, ASchemaOfSomebodyElseIsRefused) {
    ask("create schema queen; create table queen.queues(id int)");
    for (const bool apply : {true, false}) {
        InstallOptions options;
        options.apply = apply;
        const auto refused = install(options);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, Errc::conflict);
        EXPECT_THAT(refused.error().message, HasSubstr("not made by Queen broker"));
    }
    EXPECT_EQ(mark(), "");
    EXPECT_EQ(ask("select count(*) from pg_class where relnamespace = 'queen'::regnamespace"), "1");
}

TEST_F(InstallerTest, AnEmptySchemaMayHaveBeenMadeForUs) {
    ask("create schema queen");
    EXPECT_TRUE(install());
    EXPECT_EQ(mark(), kOurs);
}

TEST_F(InstallerTest, ANewerSchemaIsRefusedAndAnOlderOneRaised) {
    ASSERT_TRUE(install());
    ask("comment on schema queen is 'queen broker schema, version 7'");
    const auto refused = install();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::conflict);
    EXPECT_THAT(refused.error().message, AllOf(HasSubstr("version 7"), HasSubstr("newer program")));
    EXPECT_EQ(mark(), "queen broker schema, version 7");

    InstallOptions next;
    next.version = 8;
    EXPECT_TRUE(install(next));
    EXPECT_EQ(mark(), "queen broker schema, version 8");
}

TEST_F(InstallerTest, WithoutApplyItLooksAndTouchesNothing) {
    InstallOptions look;
    look.apply = false;
    const auto missing = install(look);
    ASSERT_FALSE(missing);
    EXPECT_THAT(missing.error().message,
                AllOf(HasSubstr("not installed"), HasSubstr("switched off")));
    EXPECT_EQ(ask("select count(*) from pg_namespace where nspname = 'queen'"), "0");

    ASSERT_TRUE(install());
    const auto fits = install(look);
    ASSERT_TRUE(fits) << fits.error().message;
    EXPECT_EQ(fits->statements, 0);

    look.version = kSchemaVersion + 1;
    const auto older = install(look);
    ASSERT_FALSE(older);
    EXPECT_THAT(older.error().message, HasSubstr("needs version " + std::to_string(look.version)));
}

TEST_F(InstallerTest, InterruptEndsTheWaitForATurn) {
    PgSession holder(conninfo, StatementLimits{});
    ASSERT_TRUE(holder.connect());
    ASSERT_TRUE(holder.script("select pg_advisory_lock(" + std::to_string(kSchemaLock) + ")", 10s));
    Installer installer(conninfo);
    auto running = std::async(std::launch::async, [&] { return installer.run(); });
    while (ask("select count(*) from pg_stat_activity where datname = current_database() and "
               "application_name = 'queend' and query like '%pg_try_advisory%'") == "0") {
    }
    installer.interrupt();
    EXPECT_EQ(running.get().error().code, Errc::shutting_down);
}

} // namespace
} // namespace queen::store
