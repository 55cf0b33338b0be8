// The shipped example against a shipped broker, as a user runs them: from an install tree.
#include "support/broker_process.hpp"
#include "support/temp_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace queen::test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

/// A log as dpkg writes it: repeated lines, lines without a package, several packages interleaved.
void write_log(const std::string& path, int rounds) {
    std::ofstream log(path);
    for (int i = 0; i < rounds; ++i) {
        log << "2026-11-01 10:00:00 startup archives unpack\n";
        for (const char* package : {"libc6:amd64", "zlib1g:amd64", "tzdata:all"}) {
            log << "2026-11-01 10:00:01 install " << package << " <none> 1." << i << "\n"
                << "2026-11-01 10:00:01 status half-installed " << package << " 1." << i << "\n"
                << "2026-11-01 10:00:02 status installed " << package << " 1." << i << "\n"
                << "2026-11-01 10:00:02 status installed " << package << " 1." << i << "\n";
        }
    }
}

struct Run {
    int status;
    std::string output;
};

Run run(const std::string& command) {
    Run run{-1, {}};
    FILE* pipe = popen((command + " 2>&1").c_str(), "r");
    if (pipe == nullptr) {
        return run;
    }
    char buffer[4096];
    for (std::size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
        run.output.append(buffer, n);
    }
    run.status = pclose(pipe);
    return run;
}

TEST(PackageHistory, EachGroupSeesEachLineOnceAndInOrder) {
    const TempDirectory directory;
    const auto prefix = directory.path() + "/prefix";
    const auto installed = run("cmake --install '" QUEEN_BUILD_DIR "' --prefix '" + prefix + "'");
    ASSERT_EQ(installed.status, 0) << installed.output;

    const auto log = directory.path() + "/dpkg.log";
    write_log(log, 100);
    // Its plugins are found beside the installed program, nothing of the build tree is needed.
    const BrokerProcess broker({.config = {},
                                .data_directory = directory.path() + "/data",
                                .program = prefix + "/bin/queend"});
    const auto url = "http://127.0.0.1:" + std::to_string(broker.port());
    const auto history =
        run(QUEEN_BUILD_DIR "/bin/package-history --url " + url + " --file '" + log + "'");
    EXPECT_EQ(history.status, 0) << history.output;
    EXPECT_THAT(history.output, HasSubstr("pushed       1300 lines"));
    EXPECT_THAT(history.output, HasSubstr("every line once per group, in order per package"));

    const auto queues = run("'" + prefix + "/bin/queenctl' --url " + url + " --json queues");
    EXPECT_EQ(queues.status, 0) << queues.output;
    EXPECT_THAT(queues.output, HasSubstr("package-history"));
}

TEST(PackageHistory, CompareShowsOneLogThroughBothSourcesSideBySide) {
    const TempDirectory directory;
    const auto log = directory.path() + "/dpkg.log";
    write_log(log, 20);
    const auto compared = run("QUEEN_BIN='" QUEEN_BUILD_DIR "/bin' '" QUEEN_SOURCE_DIR
                              "/examples/package-history/compare' '" +
                              log + "'");
    EXPECT_EQ(compared.status, 0) << compared.output;
    EXPECT_THAT(compared.output, ContainsRegex("\n +hotlist +sqlscan\n"));
    for (const char* group : {"audit", "report"}) {
        EXPECT_THAT(compared.output, ContainsRegex(group + std::string(" lines +260 +260\n")));
    }
    EXPECT_THAT(compared.output, ContainsRegex("\npop statements +[1-9][0-9]* +[1-9][0-9]*\n"));
    EXPECT_THAT(compared.output, ContainsRegex("\ncandidates empty +[0-9]+ +[0-9]+\n"));
}

} // namespace
} // namespace queen::test
