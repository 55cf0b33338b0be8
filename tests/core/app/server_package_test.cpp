#include "app/server_package.hpp"
#include "support/temp_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace queen::app {
namespace {

using testing::HasSubstr;

/// A folder that looks like /usr/lib/postgresql with stub programs.
class ServerPackageTest : public testing::Test {
protected:
    void install(const std::string& version, std::initializer_list<const char*> programs) {
        const std::filesystem::path bin = std::filesystem::path(root()) / version / "bin";
        std::filesystem::create_directories(bin);
        for (const char* program : programs) {
            std::ofstream(bin / program) << "#!/bin/sh\nexit 1\n";
            std::filesystem::permissions(bin / program, std::filesystem::perms::owner_all);
        }
    }
    std::string root() const { return folder_.path(); }

private:
    test::TempDirectory folder_;
};

TEST_F(ServerPackageTest, TheNewestServerIsTaken) {
    install("15", {"postgres", "initdb"});
    install("9.6", {"postgres", "initdb"});
    install("17", {"postgres", "initdb"});
    const auto found = find_server(root(), std::nullopt);
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->major, 17);
    EXPECT_EQ(found->bin, root() + "/17/bin");
}

TEST_F(ServerPackageTest, TheVersionThatWroteTheDataIsTakenOverANewerOne) {
    install("15", {"postgres", "initdb"});
    install("17", {"postgres", "initdb"});
    const auto found = find_server(root(), 15);
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->major, 15);
}

TEST_F(ServerPackageTest, AMissingPackageIsOneLineThatNamesIt) {
    const auto found = find_server(root() + "/none", std::nullopt);
    ASSERT_FALSE(found);
    EXPECT_THAT(found.error().message, HasSubstr("no PostgreSQL server found in " + root()));
    EXPECT_THAT(found.error().message, HasSubstr("postgresql-15"));
    EXPECT_EQ(found.error().message.find('\n'), std::string::npos);
}

TEST_F(ServerPackageTest, AClientWithoutAServerDoesNotCount) {
    install("16", {"psql", "pg_dump"});
    const auto found = find_server(root(), std::nullopt);
    ASSERT_FALSE(found);
    EXPECT_THAT(found.error().message, HasSubstr("no PostgreSQL server found"));
}

TEST_F(ServerPackageTest, ATooOldServerIsToldItsVersion) {
    install("14", {"postgres", "initdb"});
    const auto found = find_server(root(), std::nullopt);
    ASSERT_FALSE(found);
    EXPECT_THAT(found.error().message, HasSubstr("PostgreSQL 14"));
    EXPECT_THAT(found.error().message, HasSubstr("too old"));
    EXPECT_THAT(found.error().message, HasSubstr("version 15"));
}

TEST_F(ServerPackageTest, DataOfAVersionThatIsNotInstalledIsRefused) {
    install("15", {"postgres", "initdb"});
    const auto found = find_server(root(), 16);
    ASSERT_FALSE(found);
    EXPECT_THAT(found.error().message, HasSubstr("written by PostgreSQL 16"));
    EXPECT_THAT(found.error().message, HasSubstr("postgresql-16"));
}

TEST_F(ServerPackageTest, DataOfATooOldVersionIsRefusedEvenWhenThatVersionIsThere) {
    install("14", {"postgres", "initdb"});
    install("15", {"postgres", "initdb"});
    const auto found = find_server(root(), 14);
    ASSERT_FALSE(found);
    EXPECT_THAT(found.error().message, HasSubstr("too old"));
    EXPECT_THAT(found.error().message, HasSubstr("pg_upgrade"));
}

} // namespace
} // namespace queen::app
