#include "base/json.hpp"
#include "command_line.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

namespace queen::ctl::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kPlugin = QUEEN_PLUGIN_DIR "/sqlscan.so";

TEST(PluginCommands, InspectShowsWhatAFileIsAndItsOptions) {
    const Outcome table = command_line({"plugin", "inspect", kPlugin});
    EXPECT_EQ(table.exit, Exit::ok) << table.out << table.err;
    EXPECT_THAT(table.out, HasSubstr("verdict   fits this broker\n"));
    EXPECT_THAT(table.out, HasSubstr("id        queen.sqlscan\n"));
    EXPECT_THAT(table.out, HasSubstr("offers    queen.candidates/1\n"));
    EXPECT_THAT(table.out, ::testing::ContainsRegex("scan_every +duration +1s +10ms to 1m"));
    const Outcome outcome = command_line({"plugin", "inspect", kPlugin, "--json"});
    const auto document = json::Document::parse(outcome.out);
    ASSERT_TRUE(document.has_value()) << outcome.out;
    EXPECT_EQ(document->root()["fits"].boolean(), true);
    EXPECT_EQ(document->root()["id"].string(), "queen.sqlscan");
    EXPECT_GT(document->root()["options"].size(), 0u);
}

TEST(PluginCommands, InspectRefusesWhatIsNoPlugin) {
    const Outcome program = command_line({"plugin", "inspect", "/proc/self/exe"});
    EXPECT_EQ(program.exit, Exit::failed);
    EXPECT_THAT(program.out, HasSubstr("no .queen.stamp section"));
    EXPECT_EQ(command_line({"plugin", "inspect", "/nowhere.so", "--json"}).exit, Exit::failed);
    EXPECT_EQ(command_line({"plugin", "inspect"}).exit, Exit::usage);
}

TEST(PluginCommands, ListChecksEachEntryAndItsOptions) {
    const std::string path = ::testing::TempDir() + "queenctl-plugin-list.yaml";
    const std::string folders = "plugin_folders: [" QUEEN_PLUGIN_DIR "]\n";
    const auto list = [&](const std::string& yaml) {
        std::ofstream(path) << folders << yaml;
        return command_line({"plugin", "list", path});
    };
    const Outcome plain = list("");
    EXPECT_EQ(plain.exit, Exit::ok) << plain.out << plain.err;
    EXPECT_THAT(plain.out, HasSubstr(kPlugin + "  fits this broker\n"));

    const Outcome option =
        list("plugins:\n  - {name: sqlscan, path: sqlscan.so, options: {hints: 0, hitns: 1}}\n"
             "candidates: {default: sqlscan}\n");
    EXPECT_EQ(option.exit, Exit::failed);
    EXPECT_THAT(option.err, HasSubstr(path + ":3:56: plugin 'sqlscan': hints"));
    EXPECT_THAT(option.err, HasSubstr(path + ":3:59: plugin 'sqlscan': hitns"));

    const Outcome missing = list("plugins:\n  - {name: a, path: none.so}\n"
                                 "candidates: {default: a}\n");
    EXPECT_EQ(missing.exit, Exit::failed);
    EXPECT_THAT(missing.out, HasSubstr("none.so"));

    // Where the command runs is no plugin folder: the broker would not find it there either.
    std::filesystem::copy_file(kPlugin, "beside.so",
                               std::filesystem::copy_options::overwrite_existing);
    const Outcome beside = list("plugins:\n  - {name: a, path: beside.so}\n"
                                "candidates: {default: a}\n");
    std::filesystem::remove("beside.so");
    EXPECT_EQ(beside.exit, Exit::failed) << beside.out;
    EXPECT_THAT(beside.out, HasSubstr("is in none of the plugin folders"));

    std::ofstream(path) << folders
                        << "plugins:\n  - {name: sqlscan, path: sqlscan.so, options: {hints: 0}}\n"
                        << "candidates: {default: sqlscan}\n";
    const Outcome outcome = command_line({"plugin", "list", path, "--json"});
    EXPECT_EQ(outcome.exit, Exit::failed);
    const auto document = json::Document::parse(outcome.out);
    ASSERT_TRUE(document.has_value()) << outcome.out;
    EXPECT_EQ(document->root().at(0)["name"].string(), "sqlscan");
    EXPECT_EQ(document->root().at(0)["fits"].boolean(), true);
    EXPECT_EQ(document->root().at(0)["problems"].size(), 1u);

    const Outcome faulty = list("plugins: 5\n");
    EXPECT_EQ(faulty.exit, Exit::failed);
    EXPECT_THAT(faulty.err, HasSubstr(path + ":2:10: plugins: is a single value"));
    EXPECT_EQ(faulty.out, "");
    std::filesystem::remove(path);
}

} // namespace
} // namespace queen::ctl::testing
