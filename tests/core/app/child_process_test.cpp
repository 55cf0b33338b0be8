#include "app/child_process.hpp"
#include "support/temp_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

namespace queen::app {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

TEST(ChildProcess, RunGivesOutputAndStatus) {
    const auto finished = run({.arguments = {"/bin/sh", "-c", "echo out; echo err >&2; exit 3"}});
    ASSERT_TRUE(finished) << finished.error().message;
    EXPECT_EQ(finished->output, "out\nerr\n");
    EXPECT_FALSE(finished->succeeded());
    EXPECT_EQ(describe_status(finished->status), "status 3");
}

TEST(ChildProcess, AProgramThatIsNotThereIsNamed) {
    const auto finished = run({.arguments = {"/no/such/program"}});
    ASSERT_FALSE(finished);
    EXPECT_EQ(finished.error().message,
              "cannot execute /no/such/program: No such file or directory");
}

TEST(ChildProcess, TheEnvironmentOfTheCallerDoesNotLeakIn) {
    setenv("PGDATA", "/somebody/elses", 1);
    const auto finished = run({.arguments = {"/usr/bin/env"}, .environment = {"QUEEN_EXTRA=here"}});
    unsetenv("PGDATA");
    ASSERT_TRUE(finished);
    EXPECT_THAT(finished->output, Not(HasSubstr("PGDATA")));
    EXPECT_THAT(finished->output, HasSubstr("LC_ALL=C\n"));
    EXPECT_THAT(finished->output, HasSubstr("QUEEN_EXTRA=here\n"));
}

TEST(ChildProcess, NoDescriptorOfTheCallerLeaksIn) {
    const UniqueFd leak(dup(0)); // without close-on-exec
    ASSERT_TRUE(leak);
    const auto finished = run({.arguments = {"/bin/sh", "-c", "ls /proc/$$/fd"}});
    ASSERT_TRUE(finished);
    EXPECT_EQ(finished->output, "0\n1\n2\n");
}

TEST(ChildProcess, BlockedAndIgnoredSignalsOfTheCallerAreReset) {
    sigset_t blocked;
    sigset_t before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    ASSERT_EQ(sigprocmask(SIG_BLOCK, &blocked, &before), 0);
    auto* const handler = std::signal(SIGINT, SIG_IGN);
    const auto finished =
        run({.arguments = {"/bin/sh", "-c", "grep -E '^Sig(Blk|Ign)' /proc/self/status"}});
    std::signal(SIGINT, handler);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    ASSERT_TRUE(finished);
    EXPECT_EQ(finished->output, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

TEST(ChildProcess, ItLeadsASessionOfItsOwn) {
    const auto finished =
        run({.arguments = {"/bin/sh", "-c", "echo $$; cut -d' ' -f6 /proc/$$/stat"}});
    ASSERT_TRUE(finished);
    const std::size_t middle = finished->output.find('\n');
    EXPECT_EQ(finished->output.substr(0, middle + 1), finished->output.substr(middle + 1));
}

TEST(ChildProcess, AnEndIsSeenOnceAndKept) {
    const auto pid = spawn({.arguments = {"/bin/sh", "-c", "exit 7"}});
    ASSERT_TRUE(pid);
    auto process = Process::open(*pid, true);
    ASSERT_TRUE(process);
    ASSERT_TRUE(process->wait(10s));
    EXPECT_TRUE(process->wait(0ms));
    ASSERT_TRUE(process->status());
    EXPECT_EQ(describe_status(*process->status()), "status 7");
}

TEST(ChildProcess, ASignalReachesIt) {
    const auto pid = spawn({.arguments = {"/bin/sleep", "1000"}});
    ASSERT_TRUE(pid);
    auto process = Process::open(*pid, true);
    ASSERT_TRUE(process);
    EXPECT_FALSE(process->wait(0ms));
    process->signal(SIGKILL);
    ASSERT_TRUE(process->wait(10s));
    EXPECT_EQ(describe_status(*process->status()), "signal 9");
}

TEST(ChildProcess, ANumberThatIsFreeIsNotFound) {
    const auto pid = spawn({.arguments = {"/bin/true"}});
    ASSERT_TRUE(pid);
    auto process = Process::open(*pid, true);
    ASSERT_TRUE(process && process->wait(10s));
    const auto gone = Process::open(*pid, false);
    ASSERT_FALSE(gone);
    EXPECT_EQ(gone.error().code, Errc::not_found);
}

TEST(ChildProcess, TheFirstFolderThatBarsTheWayIsNamed) {
    const auto account = database_account();
    ASSERT_TRUE(account) << account.error().message;
    const test::TempDirectory folder;
    const std::string shut = folder.path() + "/shut";
    const std::string inside = shut + "/inside";
    std::filesystem::create_directories(inside);
    EXPECT_EQ(first_impassable(inside, *account), "");
    // Root's own 0700 keeps `postgres` out; for another user it takes 0 to keep oneself out.
    ASSERT_EQ(chmod(shut.c_str(), account->change ? 0700 : 0), 0);
    EXPECT_EQ(first_impassable(inside, *account), shut);
    ASSERT_EQ(chmod(shut.c_str(), 0700), 0);
}

} // namespace
} // namespace queen::app
