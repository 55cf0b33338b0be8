// Life and deaths of the embedded server: first start, stop, kills of either side, several brokers.
#include "embedded_postgres_fixture.hpp"

#include <gmock/gmock.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace queen::app {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

std::string listing(const std::string& folder) {
    std::string names;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        names += entry.path().filename().string() + " ";
    }
    return names;
}

bool await_another(const EmbeddedPostgres& server, pid_t before) {
    return server.await(60s,
                        [&](pid_t pid, const std::string&) { return pid != 0 && pid != before; });
}

bool lives(pid_t pid) {
    auto process = Process::open(pid, false);
    return process && !process->wait(0ms);
}

TEST_F(EmbeddedPostgresTest, TheFirstStartMakesAClusterThatTakesConnections) {
    const auto server = start(options());
    ASSERT_NE(server, nullptr);
    EXPECT_FALSE(server->adopted());
    EXPECT_GE(server->major(), kOldestPostgres);
    EXPECT_EQ(query(server->conninfo(), "SELECT current_database()"), "queen");
    EXPECT_EQ(query(server->conninfo(), "SHOW server_encoding"), "UTF8");
    EXPECT_EQ(query(server->conninfo(), "SHOW lc_collate"), "C");
    EXPECT_EQ(query(server->conninfo(), "SHOW data_checksums"), "on");
    EXPECT_EQ(query(server->conninfo(), "SHOW max_connections"), "20");
    EXPECT_EQ(query(server->conninfo(), "SHOW jit"), "off");
    EXPECT_THAT(listing(data()), Not(HasSubstr("postgres.init-")));
}

TEST_F(EmbeddedPostgresTest, NobodyElseCanConnect) {
    const auto server = start(options());
    ASSERT_NE(server, nullptr);
    EXPECT_EQ(query(server->conninfo(), "SHOW listen_addresses"), "");
    const std::string folder =
        query(server->conninfo(), "SHOW unix_socket_directories"); // quoted when it was set quoted
    struct stat info {};
    ASSERT_EQ(stat((data() + "/run").c_str(), &info), 0) << folder;
    EXPECT_EQ(info.st_mode & 0777U, 0700U);
    ASSERT_EQ(stat((data() + "/postgres").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777U, 0700U);
    EXPECT_EQ(info.st_uid, database_account()->uid);
}

TEST_F(EmbeddedPostgresTest, StopEndsTheServerAndTheNextStartFindsTheData) {
    {
        const auto server = start(options());
        ASSERT_NE(server, nullptr);
        EXPECT_EQ(query(server->conninfo(), "CREATE TABLE kept AS SELECT 7 AS n"), "");
        const pid_t pid = server->pid();
        EXPECT_TRUE(server->stop(EmbeddedPostgres::Shutdown::fast));
        EXPECT_FALSE(lives(pid));
        EXPECT_EQ(server->pid(), 0);
        EXPECT_TRUE(server->stop(EmbeddedPostgres::Shutdown::fast)) << "stopping twice is fine";
        EXPECT_FALSE(std::filesystem::exists(data() + "/postgres/postmaster.pid"));
    }
    const auto again = start(options());
    ASSERT_NE(again, nullptr);
    EXPECT_EQ(query(again->conninfo(), "SELECT n FROM kept"), "7");
}

TEST_F(EmbeddedPostgresTest, AKilledBrokersServerIsAdoptedWithItsSessions) {
    OtherBroker killed([this] { return start_and_keep(options()); });
    killed.kill9();
    const auto server = start(options());
    ASSERT_NE(server, nullptr);
    EXPECT_TRUE(server->adopted());
    EXPECT_EQ(std::to_string(server->pid()), killed.said());
    EXPECT_EQ(query(server->conninfo(), "SELECT 1"), "1");
    const pid_t pid = server->pid();
    EXPECT_TRUE(server->stop(EmbeddedPostgres::Shutdown::fast));
    EXPECT_FALSE(lives(pid)) << "what was adopted is stopped as well";
}

TEST_F(EmbeddedPostgresTest, AnAdoptedServerWithOtherSettingsIsRestarted) {
    OtherBroker killed([this] { return start_and_keep(options()); });
    killed.kill9();
    auto wanted = options();
    wanted.max_connections = 33;
    const auto server = start(wanted);
    ASSERT_NE(server, nullptr);
    EXPECT_FALSE(server->adopted());
    EXPECT_EQ(query(server->conninfo(), "SHOW max_connections"), "33");
}

TEST_F(EmbeddedPostgresTest, BrokerAndServerBothKilledLoseNothingThatWasCommitted) {
    OtherBroker killed([this] {
        auto wanted = options();
        wanted.supervise = false;
        auto server = EmbeddedPostgres::start(wanted);
        if (!server) {
            return server.error().message;
        }
        const std::string conninfo = (*server)->conninfo();
        const std::string pid = std::to_string((*server)->pid());
        static_cast<void>(server->release());
        return query(conninfo, "CREATE TABLE kept AS SELECT 7 AS n") + pid;
    });
    const pid_t postmaster = std::stoi(killed.said());
    killed.kill9();
    ASSERT_EQ(kill(postmaster, SIGKILL), 0); // now an orphan that process 1 has yet to collect
    const auto server = start(options());
    ASSERT_NE(server, nullptr);
    EXPECT_FALSE(server->adopted());
    EXPECT_NE(server->pid(), postmaster);
    EXPECT_EQ(query(server->conninfo(), "SELECT n FROM kept"), "7");
}

TEST_F(EmbeddedPostgresTest, AServerThatDiesIsStartedAgain) {
    const auto server = start(options());
    ASSERT_NE(server, nullptr);
    EXPECT_EQ(query(server->conninfo(), "CREATE TABLE kept AS SELECT 7 AS n"), "");
    for (int round = 0; round < 2; ++round) {
        const pid_t before = server->pid();
        ASSERT_EQ(kill(before, SIGKILL), 0);
        EXPECT_TRUE(await_another(*server, before)) << server->trouble();
        EXPECT_EQ(server->trouble(), "");
        EXPECT_EQ(query(server->conninfo(), "SELECT n FROM kept"), "7");
    }
}

TEST_F(EmbeddedPostgresTest, AnAdoptedServerThatDiesIsStartedAgainToo) {
    OtherBroker killed([this] { return start_and_keep(options()); });
    killed.kill9();
    const auto server = start(options());
    ASSERT_NE(server, nullptr);
    ASSERT_TRUE(server->adopted());
    const pid_t before = server->pid();
    ASSERT_EQ(kill(before, SIGKILL), 0);
    EXPECT_TRUE(await_another(*server, before)) << server->trouble();
    EXPECT_EQ(query(server->conninfo(), "SELECT 1"), "1");
}

TEST_F(EmbeddedPostgresTest, AServerThatCannotComeBackSaysWhyAndTheBrokerStillStops) {
    const auto server = start(options());
    ASSERT_NE(server, nullptr);
    std::ofstream(data() + "/postgres/local.conf") << "no_such_setting = 1\n";
    ASSERT_EQ(kill(server->pid(), SIGKILL), 0);
    // The supervisor's first try leaves the reason, and stop() interrupts its wait for a second.
    ASSERT_TRUE(server->await(60s, [](pid_t, const std::string& trouble) {
        return trouble.find("does not start") != std::string::npos;
    })) << server->trouble();
    const std::string why = server->trouble();
    EXPECT_THAT(why, HasSubstr("no_such_setting"));
    EXPECT_EQ(server->pid(), 0);
    EXPECT_TRUE(server->stop(EmbeddedPostgres::Shutdown::fast));
}

TEST_F(EmbeddedPostgresTest, RestartKeepsTheData) {
    const auto server = start(options());
    ASSERT_NE(server, nullptr);
    EXPECT_EQ(query(server->conninfo(), "CREATE TABLE kept AS SELECT 7 AS n"), "");
    const pid_t before = server->pid();
    ASSERT_TRUE(server->restart(EmbeddedPostgres::Shutdown::kill));
    EXPECT_NE(server->pid(), before);
    EXPECT_EQ(query(server->conninfo(), "SELECT n FROM kept"), "7");
}

TEST_F(EmbeddedPostgresTest, TwoBrokersWorkSideBySideInTheirOwnDirectories) {
    const auto one = start(options(path("one")));
    const auto two = start(options(path("two")));
    ASSERT_TRUE(one && two);
    EXPECT_EQ(query(one->conninfo(), "CREATE TABLE mine AS SELECT 1 AS n"), "");
    EXPECT_EQ(query(two->conninfo(), "CREATE TABLE mine AS SELECT 2 AS n"), "");
    EXPECT_EQ(query(one->conninfo(), "SELECT n FROM mine"), "1");
    EXPECT_EQ(query(two->conninfo(), "SELECT n FROM mine"), "2");
}

TEST_F(EmbeddedPostgresTest, AServerOfATestDiesWithIt) {
    OtherBroker test_process([this] {
        auto wanted = options();
        wanted.die_with_parent = true;
        return start_and_keep(wanted);
    });
    auto server = Process::open(std::stoi(test_process.said()), false);
    ASSERT_TRUE(server);
    EXPECT_FALSE(server->wait(0ms));
    test_process.kill9();
    EXPECT_TRUE(server->wait(30s));
}

TEST_F(EmbeddedPostgresTest, AnInterruptedFirstStartIsCleanedUp) {
    ASSERT_TRUE(std::filesystem::create_directories(data()));
    ASSERT_EQ(chmod(data().c_str(), 0711), 0);
    const UniqueFd watch(inotify_init1(IN_CLOEXEC));
    ASSERT_GE(inotify_add_watch(watch.get(), data().c_str(), IN_CREATE), 0);
    const pid_t broker = fork();
    if (broker == 0) {
        static_cast<void>(start_and_keep(options()));
        _exit(0);
    }
    while (listing(data()).find("postgres.init-") == std::string::npos) {
        std::array<char, 4096> events{};
        ASSERT_GT(read(watch.get(), events.data(), events.size()), 0);
    }
    kill(broker, SIGKILL);
    waitpid(broker, nullptr, 0);
    ASSERT_THAT(listing(data()), HasSubstr("postgres.init-"));
    const auto server = start(options());
    ASSERT_NE(server, nullptr);
    EXPECT_THAT(listing(data()), Not(HasSubstr("postgres.init-")));
}

TEST_F(EmbeddedPostgresTest, ALongPathPutsTheSocketIntoAPrivateFolderElsewhere) {
    const std::string deep = path(std::string(90, 'd'));
    std::string folder;
    {
        const auto server = start(options(deep));
        ASSERT_NE(server, nullptr);
        EXPECT_EQ(query(server->conninfo(), "SELECT 1"), "1");
        const std::string conninfo = server->conninfo();
        folder = conninfo.substr(6, conninfo.find('\'', 6) - 6);
        struct stat info {};
        ASSERT_EQ(stat(folder.c_str(), &info), 0) << conninfo;
        EXPECT_EQ(info.st_mode & 0777U, 0700U);
        EXPECT_FALSE(folder.starts_with(deep));
    }
    EXPECT_FALSE(std::filesystem::exists(folder)) << "the folder goes with the server";

    std::filesystem::create_directory(folder); // somebody else was first
    chmod(folder.c_str(), 0777);
    EXPECT_THAT(refusal(options(deep)), HasSubstr("socket folder " + folder));
    std::filesystem::remove(folder);
}

TEST_F(EmbeddedPostgresTest, APathWithACommaIsNotTakenForTwoHosts) {
    const auto server = start(options(path("a,b 'c")));
    ASSERT_NE(server, nullptr);
    EXPECT_EQ(query(server->conninfo(), "SELECT 1"), "1");
}

TEST_F(EmbeddedPostgresTest, AReusedProcessNumberInTheLockFileIsNoServer) {
    {
        const auto server = start(options());
        ASSERT_NE(server, nullptr);
    }
    // A process of the server's user, as after a container's restart: PostgreSQL by itself would
    // take it for a running server and refuse.
    const auto account = database_account();
    const auto other = spawn({.arguments = {"/bin/sleep", "1000"}, .account = &*account});
    ASSERT_TRUE(other);
    auto process = Process::open(*other, true);
    ASSERT_TRUE(process);
    const std::string lock = data() + "/postgres/postmaster.pid";
    std::ofstream(lock) << *other << "\n" << data() << "/postgres\n1700000000\n5432\n\n";
    ASSERT_EQ(chown(lock.c_str(), account->uid, account->gid), 0);
    std::ofstream(data() + "/run/.s.PGSQL.5432.lock") << *other << "\n";
    const auto server = start(options());
    ASSERT_NE(server, nullptr);
    EXPECT_FALSE(process->wait(0ms)) << "the other process is left alone";
    process->signal(SIGKILL);
    process->wait(10s);
}

TEST_F(EmbeddedPostgresTest, TheOperatorsSettingsWinOverOurs) {
    { ASSERT_NE(start(options()), nullptr); }
    std::ofstream(data() + "/postgres/local.conf") << "work_mem = '7MB'\njit = on\n";
    const auto server = start(options());
    ASSERT_NE(server, nullptr);
    EXPECT_EQ(query(server->conninfo(), "SHOW work_mem"), "7MB");
    EXPECT_EQ(query(server->conninfo(), "SHOW jit"), "on");
}

} // namespace
} // namespace queen::app
