#include "app/socket_folder.hpp"
#include "support/temp_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace queen::app {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class SocketFolderTest : public testing::Test {
protected:
    std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
    const Account account_ = database_account().value();

private:
    test::TempDirectory folder_;
};

TEST_F(SocketFolderTest, LiesInTheDataDirectoryWhileThatPathFitsASocket) {
    // "/run" and "/.s.PGSQL.5432" take 18 of the 107 bytes.
    const std::string longest = "/" + std::string(88, 'd');
    EXPECT_EQ(socket_folder_for(longest, account_), longest + "/run");
    EXPECT_THAT(socket_folder_for(longest + "d", account_), testing::Not(StartsWith(longest)));
}

TEST_F(SocketFolderTest, ElsewhereItsNameIsTheDataDirectorysOwn) {
    const std::string one = socket_folder_for("/a,b", account_);
    EXPECT_THAT(one, testing::Not(HasSubstr(",")));
    EXPECT_EQ(one, socket_folder_for("/a,b", account_));
    EXPECT_NE(one, socket_folder_for("/a,c", account_));
}

TEST_F(SocketFolderTest, IsMadePrivateAndTakenAgain) {
    ASSERT_TRUE(open_socket_folder(path("run"), account_));
    struct stat info {};
    ASSERT_EQ(stat(path("run").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777U, 0700U);
    EXPECT_EQ(info.st_uid, account_.uid);
    EXPECT_TRUE(open_socket_folder(path("run"), account_));
}

TEST_F(SocketFolderTest, OneThatOthersMayEnterIsRefused) {
    ASSERT_TRUE(open_socket_folder(path("run"), account_));
    ASSERT_EQ(chmod(path("run").c_str(), 0711), 0);
    const auto opened = open_socket_folder(path("run"), account_);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, Errc::conflict);
    EXPECT_THAT(opened.error().message, HasSubstr(path("run")));
}

TEST_F(SocketFolderTest, OneOfSomebodyElseIsRefused) {
    ASSERT_TRUE(open_socket_folder(path("run"), account_));
    Account other = account_;
    ++other.uid;
    EXPECT_FALSE(open_socket_folder(path("run"), other));
}

TEST_F(SocketFolderTest, ALinkOrAFileInItsPlaceIsRefused) {
    ASSERT_TRUE(open_socket_folder(path("run"), account_));
    std::filesystem::create_symlink(path("run"), path("link"));
    EXPECT_FALSE(open_socket_folder(path("link"), account_));
    std::ofstream(path("file")) << "x";
    ASSERT_EQ(chmod(path("file").c_str(), 0600), 0);
    ASSERT_EQ(chown(path("file").c_str(), account_.uid, account_.gid), 0);
    EXPECT_FALSE(open_socket_folder(path("file"), account_));
}

} // namespace
} // namespace queen::app
