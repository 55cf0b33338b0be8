#include "app/postgres_log.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace queen::app {
namespace {

TEST(PostgresLog, TheLastFatalLineTells) {
    EXPECT_EQ(telling_line("2026 [7] LOG:  starting\n"
                           "2026 [7] FATAL:  could not bind\n"
                           "2026 [7] HINT:  is it taken?\n"
                           "2026 [7] LOG:  database system is shut down\n"),
              "could not bind");
    EXPECT_EQ(telling_line("creating directory ... ok\ninitdb: error: no moon\n"), "no moon");
    EXPECT_EQ(telling_line("LOG:  all is well\n"), "");
    EXPECT_EQ(telling_line(""), "");
}

TEST(PostgresLog, AFullDiskComesBeforeWhatFollowsFromIt) {
    EXPECT_EQ(telling_line("FATAL:  could not write lock file: No space left on device\n"
                           "FATAL:  something else\n"),
              "could not write lock file: No space left on device");
}

TEST(PostgresLog, ABadSettingIsNamed) {
    EXPECT_EQ(telling_line("LOG:  unrecognized configuration parameter \"x\" in file \"l\" line 1\n"
                           "FATAL:  configuration file \"c\" contains errors\n"),
              "configuration file \"c\" contains errors: unrecognized configuration parameter "
              "\"x\" in file \"l\" line 1");
}

TEST(PostgresLog, OnlyWhatTheLastStartSaidCounts) {
    const test::TempDirectory folder;
    const PostgresLog log(folder.path() + "/log");
    EXPECT_EQ(log.size(), 0U);
    std::ofstream(log.path()) << "FATAL:  yesterday\n";
    const auto from = log.size();
    EXPECT_EQ(log.reason(0), "yesterday");
    EXPECT_EQ(log.reason(from), "");
    std::ofstream(log.path(), std::ios::app) << "FATAL:  today\n";
    EXPECT_EQ(log.reason(from), "today");
}

TEST(PostgresLog, OneThatGrewTooLongIsMovedToASecondFile) {
    const test::TempDirectory folder;
    const PostgresLog log(folder.path() + "/log");
    std::ofstream(log.path()) << "short";
    log.trim();
    EXPECT_EQ(log.size(), 5U);
    std::filesystem::resize_file(log.path(), (32U << 20U) + 1U); // sparse
    log.trim();
    EXPECT_EQ(log.size(), 0U);
    EXPECT_EQ(std::filesystem::file_size(log.path() + ".1"), (32U << 20U) + 1U);
}

} // namespace
} // namespace queen::app
