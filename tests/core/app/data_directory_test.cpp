#include "app/data_directory.hpp"
#include "support/temp_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace queen::app {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class DataDirectoryTest : public testing::Test {
protected:
    std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
    const Account account_ = database_account().value();

private:
    test::TempDirectory folder_;
};

TEST_F(DataDirectoryTest, IsMadeWithItsParents) {
    const auto opened = open_data_directory(path("a/b/c"), account_);
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_TRUE(std::filesystem::is_directory(path("a/b/c")));
    struct stat info {};
    ASSERT_EQ(stat(path("a/b/c").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 066U, 0U) << "nobody else reads or writes it";
}

TEST_F(DataDirectoryTest, IsGivenInCanonicalForm) {
    std::filesystem::create_directory(path("real"));
    std::filesystem::create_symlink(path("real"), path("link"));
    const auto opened = open_data_directory(path("link/../link/x/"), account_);
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ(*opened, std::filesystem::canonical(path("real")).string() + "/x");
}

TEST_F(DataDirectoryTest, AFileIsNoDirectory) {
    std::ofstream(path("file")) << "x";
    const auto opened = open_data_directory(path("file"), account_);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, Errc::invalid_argument);
    EXPECT_EQ(opened.error().message, "data directory " + path("file") + " is not a directory");
    const auto below = open_data_directory(path("file/x"), account_);
    ASSERT_FALSE(below);
    EXPECT_THAT(below.error().message, HasSubstr("not a directory"));
}

// Nobody, not even root, makes a directory there; that none is there is not the reason.
TEST_F(DataDirectoryTest, OneThatCannotBeMadeSaysWhy) {
    // File systems of the kernel, where not even root makes a directory; one of them is mounted.
    struct statfs info {};
    const bool sys = statfs("/sys", &info) == 0 && info.f_type == SYSFS_MAGIC;
    const std::string wanted = sys ? "/sys/queen" : "/dev/pts/queen";
    const auto opened = open_data_directory(wanted, account_);
    ASSERT_FALSE(opened);
    EXPECT_THAT(opened.error().message,
                AllOf(StartsWith("cannot make data directory " + wanted + ": "),
                      Not(HasSubstr("No such file or directory"))));
}

TEST_F(DataDirectoryTest, ASecondLockNamesTheProcessThatHasTheFirst) {
    const auto data = open_data_directory(path("d"), account_);
    ASSERT_TRUE(data);
    auto first = lock_data_directory(*data);
    ASSERT_TRUE(first) << first.error().message;
    const auto second = lock_data_directory(*data);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, Errc::conflict);
    EXPECT_EQ(second.error().message,
              "data directory " + *data + " is in use by process " + std::to_string(getpid()));
    *first = UniqueFd();
    EXPECT_TRUE(lock_data_directory(*data)) << "a lock that was let go is free";
}

TEST_F(DataDirectoryTest, AFileIsReplacedAsAWholeAndKeptPrivate) {
    ASSERT_TRUE(replace_file(path("conf"), "old and long", account_));
    ASSERT_TRUE(replace_file(path("conf"), "new", account_));
    std::ostringstream text;
    text << std::ifstream(path("conf")).rdbuf();
    EXPECT_EQ(text.str(), "new");
    struct stat info {};
    ASSERT_EQ(stat(path("conf").c_str(), &info), 0);
    EXPECT_EQ(info.st_uid, account_.uid);
    EXPECT_EQ(info.st_mode & 0777U, 0600U);
    EXPECT_FALSE(std::filesystem::exists(path("conf.new")));
}

TEST_F(DataDirectoryTest, APostmasterFileIsReadAsFarAsItIsWritten) {
    EXPECT_FALSE(read_postmaster_file(path("")));
    std::ofstream(path("postmaster.pid"))
        << "4711\n/data\n1700000000\n5432\n/run/x\n\n  1 2\nready\n";
    auto file = read_postmaster_file(path(""));
    ASSERT_TRUE(file);
    EXPECT_EQ(file->pid, 4711);
    EXPECT_EQ(file->socket_folder, "/run/x");
    std::ofstream(path("postmaster.pid")) << "4711\n/data\n";
    file = read_postmaster_file(path(""));
    ASSERT_TRUE(file);
    EXPECT_EQ(file->socket_folder, "");
    for (const char* damaged : {"", "garbage\n", "0\n", "-4\n", "1\n"}) {
        std::ofstream(path("postmaster.pid")) << damaged;
        EXPECT_FALSE(read_postmaster_file(path(""))) << damaged;
    }
}

TEST_F(DataDirectoryTest, AForeignProcessIsNoPostmasterOfThisCluster) {
    const std::string cluster = std::filesystem::canonical(path("")).string();
    EXPECT_EQ(cluster_liveness(cluster, getpid(), account_), Liveness::none);
}

TEST_F(DataDirectoryTest, AProcessThatWorksInTheClusterKeepsItsLockAlive) {
    const std::string cluster = std::filesystem::canonical(path("")).string();
    ASSERT_EQ(chmod(cluster.c_str(), 0711), 0);
    const auto dead = spawn({.arguments = {"/bin/true"}});
    ASSERT_TRUE(dead);
    auto gone = Process::open(*dead, true);
    ASSERT_TRUE(gone && gone->wait(10s));

    const std::string fifo = cluster + "/there";
    ASSERT_EQ(mkfifo(fifo.c_str(), 0622), 0);
    ASSERT_EQ(chmod(fifo.c_str(), 0622), 0); // whatever the umask
    const auto backend =
        spawn({.arguments = {"/bin/sh", "-c", "cd " + cluster + " && : > there && exec sleep 1000"},
               .account = &account_});
    ASSERT_TRUE(backend) << backend.error().message;
    auto process = Process::open(*backend, true);
    ASSERT_TRUE(process);
    std::ifstream(fifo).get(); // returns once the other side is in the folder
    EXPECT_EQ(cluster_liveness(cluster, *dead, account_), Liveness::dying);
    process->signal(SIGKILL);
    ASSERT_TRUE(process->wait(10s));
    EXPECT_EQ(cluster_liveness(cluster, *dead, account_), Liveness::none);
}

TEST_F(DataDirectoryTest, AnEndedPostmasterThatNobodyCollectsDoesNotBlock) {
    const std::string cluster = std::filesystem::canonical(path("")).string();
    const auto pid = spawn({.arguments = {"/bin/true"}});
    ASSERT_TRUE(pid);
    auto watcher = Process::open(*pid, false); // a watcher does not collect it
    ASSERT_TRUE(watcher && watcher->wait(10s));
    EXPECT_EQ(kill(*pid, 0), 0) << "its number is still taken";
    EXPECT_EQ(cluster_liveness(cluster, *pid, account_), Liveness::none);
    auto parent = Process::open(*pid, true);
    ASSERT_TRUE(parent && parent->wait(10s));
    EXPECT_EQ(cluster_liveness(cluster, *pid, account_), Liveness::none);
}

} // namespace
} // namespace queen::app
