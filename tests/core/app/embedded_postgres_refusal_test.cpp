// Starts that must not succeed: each ends in one line that names what is at fault.
#include "embedded_postgres_fixture.hpp"

#include <gmock/gmock.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace queen::app {
namespace {

using testing::HasSubstr;
using testing::Not;

class EmbeddedPostgresRefusalTest : public EmbeddedPostgresTest {
protected:
    void stub(const std::string& version, const std::string& script) const {
        const std::filesystem::path bin = std::filesystem::path(path("root")) / version / "bin";
        std::filesystem::create_directories(bin);
        for (const char* program : {"postgres", "initdb"}) {
            std::ofstream(bin / program) << "#!/bin/sh\n" << script << "\n";
            chmod((bin / program).c_str(), 0755);
        }
        for (auto part = bin; part != path(""); part = part.parent_path()) {
            chmod(part.c_str(), 0755);
            if (part == path("root")) {
                break;
            }
        }
    }
    EmbeddedPostgres::Options stubbed() const {
        auto wanted = options();
        wanted.server_root = path("root");
        return wanted;
    }
};

/// Everything that is refused is refused in one line.
void expect_line(const std::string& message, std::initializer_list<std::string> parts) {
    for (const std::string& part : parts) {
        EXPECT_THAT(message, HasSubstr(part));
    }
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

TEST_F(EmbeddedPostgresRefusalTest, MissingServerPackage) {
    expect_line(refusal(stubbed()), {data(), "no PostgreSQL server found", "postgresql-15"});
    EXPECT_FALSE(std::filesystem::exists(data() + "/postgres"));
}

TEST_F(EmbeddedPostgresRefusalTest, TooOldServer) {
    stub("13", "exit 0");
    expect_line(refusal(stubbed()), {data(), "PostgreSQL 13", "too old", "version 15"});
}

TEST_F(EmbeddedPostgresRefusalTest, DataOfAnotherMajor) {
    std::filesystem::create_directories(data() + "/postgres");
    std::ofstream(data() + "/postgres/PG_VERSION") << "99\n";
    expect_line(refusal(options()), {data(), "written by PostgreSQL 99", "postgresql-99"});
}

TEST_F(EmbeddedPostgresRefusalTest, AFolderOfThatNameThatIsNoCluster) {
    std::filesystem::create_directories(data() + "/postgres");
    std::ofstream(data() + "/postgres/important") << "mine\n";
    expect_line(refusal(options()), {data() + "/postgres", "no PostgreSQL cluster"});
    EXPECT_TRUE(std::filesystem::exists(data() + "/postgres/important"));
}

TEST_F(EmbeddedPostgresRefusalTest, NotADirectory) {
    std::ofstream(path("file")) << "x";
    expect_line(refusal(options(path("file"))), {path("file"), "is not a directory"});
}

TEST_F(EmbeddedPostgresRefusalTest, AParentThatTheDatabasesUserMayNotEnterIsNamed) {
    std::filesystem::create_directories(path("shut/data"));
    const auto account = database_account();
    ASSERT_TRUE(account);
    chmod(path("shut").c_str(), account->change ? 0700 : 0);
    expect_line(refusal(options(path("shut/data"))), {path("shut") + ": Permission denied"});
    chmod(path("shut").c_str(), 0700);
}

TEST_F(EmbeddedPostgresRefusalTest, ADirectoryThatAnotherBrokerUsesNamesIt) {
    OtherBroker other([this] { return start_and_keep(options()); });
    expect_line(refusal(options()), {"data directory " + data() + " is in use by process " +
                                     std::to_string(other.pid())});
    const auto file = read_postmaster_file(data() + "/postgres");
    ASSERT_TRUE(file);
    EXPECT_EQ(std::to_string(file->pid), other.said()) << "its server is left alone";
    other.kill9();
}

TEST_F(EmbeddedPostgresRefusalTest, AnInitdbThatFailsLeavesNothingBehind) {
    stub("15", "echo 'creating directory ... ok'\n"
               "echo 'initdb: error: could not look at the moon' >&2\nexit 1");
    expect_line(refusal(stubbed()), {data(), "could not look at the moon"});
    for (const auto& entry : std::filesystem::directory_iterator(data())) {
        EXPECT_THAT(entry.path().filename().string(), Not(HasSubstr("postgres")));
    }
}

TEST_F(EmbeddedPostgresRefusalTest, ASettingThatPostgresRefusesIsShown) {
    auto wanted = options();
    wanted.settings["shared_buffers"] = "many";
    expect_line(refusal(wanted),
                {data(), "PostgreSQL does not start", "\"shared_buffers\": \"many\""});
}

/// In a mount namespace of its own, where a small file system is the data directory.
class FullDiskTest : public EmbeddedPostgresRefusalTest {
protected:
    /// Runs `part` where data() is a file system of `megabytes`.
    /// @return what it said; "" when this process may not mount
    std::string with_disk(int megabytes, const std::function<std::string()>& part) {
        std::filesystem::create_directories(data());
        const OtherBroker broker([&]() -> std::string {
            const std::string size = "mode=0711,size=" + std::to_string(megabytes) + "m";
            if (unshare(CLONE_NEWNS) != 0 ||
                mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
                mount("tmpfs", data().c_str(), "tmpfs", 0, size.c_str()) != 0) {
                return "";
            }
            return part();
        });
        return broker.said();
    }
};

TEST_F(FullDiskTest, ADiskThatFillsUpInTheFirstStartIsSaidAndLeftClean) {
    const std::string said = with_disk(12, [this] {
        std::string message = refusal(options());
        for (const auto& entry : std::filesystem::directory_iterator(data())) {
            if (entry.path().filename().string().starts_with("postgres.init")) {
                message += " BUT " + entry.path().string() + " is left";
            }
        }
        return message;
    });
    if (said.empty()) {
        GTEST_SKIP() << "this user may not mount a small file system";
    }
    expect_line(said, {data(), "No space left on device"});
    EXPECT_THAT(said, Not(HasSubstr("BUT")));
}

TEST_F(FullDiskTest, ADiskThatIsFullAtALaterStartIsSaid) {
    const std::string said = with_disk(120, [this]() -> std::string {
        {
            const auto server = EmbeddedPostgres::start(options());
            if (!server) {
                return "the first start failed: " + server.error().message;
            }
        }
        std::ofstream fill(data() + "/fill");
        const std::string block(1U << 16U, 'x');
        while (fill.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
        }
        return refusal(options());
    });
    if (said.empty()) {
        GTEST_SKIP() << "this user may not mount a small file system";
    }
    expect_line(said, {data(), "No space left on device"});
}

TEST_F(FullDiskTest, AFullDiskIsSaidEvenWhenTheServerCannot) {
    stub("15", "echo 'child process was terminated by signal 7: Bus error'\nexit 1");
    const std::string said = with_disk(1, [this] { return refusal(stubbed()); });
    if (said.empty()) {
        GTEST_SKIP() << "this user may not mount a small file system";
    }
    expect_line(said, {data(), "No space left on device", "initdb ended with status 1"});
}

TEST_F(FullDiskTest, WhatInitdbSaysOfTheDiskReachesTheOperator) {
    stub("15", "echo 'FATAL:  could not write to file \"pg_wal/x\": No space left on device'\n"
               "echo 'child process exited with exit code 1'\n"
               "echo 'initdb: removing contents of data directory'\nexit 1");
    expect_line(refusal(stubbed()), {data(), "No space left on device"});
}

} // namespace
} // namespace queen::app
