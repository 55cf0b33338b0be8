#include "base/json.hpp"
#include "command_line.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace queen::ctl::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// A settings file that goes away with the test.
class ConfigCommands : public ::testing::Test {
protected:
    ConfigCommands()
        : path_(::testing::TempDir() + "queenctl-" +
                ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".yaml") {}
    ~ConfigCommands() override { std::filesystem::remove(path_); }
    void write(const std::string& text) const { std::ofstream(path_) << text; }
    std::string path_;
};

TEST_F(ConfigCommands, CheckPrintsEveryFaultAndFails) {
    write("listen: 1\nlogg: {}\n");
    const Outcome outcome = command_line({"config", "check", path_});
    EXPECT_EQ(outcome.exit, Exit::failed);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 2);
    EXPECT_THAT(outcome.err, HasSubstr(path_ + ":1:9: listen: "));
    EXPECT_THAT(outcome.err, HasSubstr(path_ + ":2:1: logg: is unknown; did you mean log?"));
}

TEST_F(ConfigCommands, CheckAcceptsAndWarnsWithoutTheEnvironment) {
    write("listen: 0.0.0.0:80\n");
    const Outcome outcome = command_line({"config", "check", path_}, "", {{"PORT", "nonsense"}});
    EXPECT_EQ(outcome.exit, Exit::ok) << outcome.err;
    EXPECT_EQ(outcome.out, path_ + ": no faults\n");
    EXPECT_THAT(outcome.err,
                HasSubstr("warning: " + path_ + ":1:9: listen: 0.0.0.0:80 is reachable"));
    EXPECT_EQ(command_line({"config", "check"}).exit, Exit::usage);
    EXPECT_EQ(command_line({"config", "check", "/nowhere"}).exit, Exit::failed);
}

TEST_F(ConfigCommands, CheckJudgesThePluginsThatAreThere) {
    const std::string folders = "plugin_folders: [" QUEEN_PLUGIN_DIR "]\n";
    write(folders +
          "plugins:\n  - {name: sqlscan, path: sqlscan.so, options: {hints: 0, hitns: 1}}\n"
          "  - {name: text, path: " +
          path_ + "}\ncandidates: {default: sqlscan}\n");
    const Outcome outcome = command_line({"config", "check", path_});
    EXPECT_EQ(outcome.exit, Exit::failed);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr(path_ + ":3:56: plugin 'sqlscan': hints"));
    EXPECT_THAT(outcome.err, HasSubstr(path_ + ":3:59: plugin 'sqlscan': hitns"));
    EXPECT_THAT(outcome.err, HasSubstr(path_ + ":4:12: plugin 'text': " + path_ + " is not a"));

    write(folders + "plugins:\n  - {name: mine, path: mine.so}\ncandidates: {default: mine}\n");
    const Outcome elsewhere = command_line({"config", "check", path_});
    EXPECT_EQ(elsewhere.exit, Exit::ok);
    EXPECT_THAT(elsewhere.err,
                HasSubstr("warning: " + path_ + ":3:12: plugin 'mine': mine.so is in none of"));
}

TEST_F(ConfigCommands, ShowPrintsValuesAndSourcesAndNoSecret) {
    write("database: postgres://joe:hunter2@db/x\n");
    const settings::Environment env{{"HOME", "/home/ada"}, {"HOSTNAME", "alpha"}, {"PORT", "7000"}};
    const Outcome table = command_line({"config", "show", path_}, "", env);
    EXPECT_EQ(table.exit, Exit::ok) << table.err;
    EXPECT_THAT(table.out, HasSubstr("user=joe password=*** dbname=x host=db"));
    EXPECT_THAT(table.out, Not(HasSubstr("hunter2")));
    EXPECT_THAT(table.out, ::testing::ContainsRegex("listen +127.0.0.1:7000 .*environment PORT\n"));
    const Outcome outcome = command_line({"config", "show", path_, "--json"}, "", env);
    const auto document = json::Document::parse(outcome.out);
    ASSERT_TRUE(document.has_value()) << outcome.out;
    EXPECT_EQ(document->root().at(0)["option"].string(), "listen");
    EXPECT_EQ(document->root().at(0)["value"].string(), "127.0.0.1:7000");
    EXPECT_EQ(document->root().at(0)["source"].string(), "environment PORT");
    EXPECT_THAT(outcome.out, Not(HasSubstr("hunter2")));
    EXPECT_EQ(command_line({"config", "show"}, "", {{"HOME", "/"}, {"PORT", "x"}}).exit,
              Exit::failed);
}

TEST_F(ConfigCommands, SchemaIsJsonAndDefaultIsTheShippedFile) {
    EXPECT_TRUE(json::Document::parse(command_line({"config", "schema"}).out).has_value());
    std::ifstream in(QUEEN_SOURCE_DIR "/config/queen.yaml");
    const std::string shipped{std::istreambuf_iterator<char>(in), {}};
    EXPECT_EQ(command_line({"config", "default"}).out, shipped);
}

} // namespace
} // namespace queen::ctl::testing
