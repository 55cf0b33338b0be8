#include "command_line.hpp"
#include "queenctl/command.hpp"
#include "queenctl/queenctl.hpp"

#include <gmock/gmock.h>

namespace queen::ctl::testing {
namespace {

using ::testing::HasSubstr;

TEST(Queenctl, HelpNamesEveryCommandAndOption) {
    const Outcome overview = command_line({"help"});
    EXPECT_EQ(overview.exit, Exit::ok);
    EXPECT_EQ(command_line({"--help"}).out, overview.out);
    EXPECT_EQ(command_line({"-h"}).out, overview.out);
    for (const Command& command : commands()) {
        EXPECT_THAT(overview.out, HasSubstr("  " + std::string(command.name) + " "));
        EXPECT_THAT(overview.out, HasSubstr(std::string(command.summary)));
        std::vector<std::string> words{"help"};
        const std::size_t blank = command.name.find(' ');
        words.emplace_back(command.name.substr(0, blank));
        if (blank != std::string_view::npos) {
            words.emplace_back(command.name.substr(blank + 1));
        }
        const Outcome help = command_line(words);
        EXPECT_EQ(help.exit, Exit::ok) << command.name;
        EXPECT_THAT(help.out, HasSubstr("Usage: queenctl " + std::string(command.name)));
        for (const Flag& flag : command.flags) {
            EXPECT_THAT(help.out, HasSubstr("--" + std::string(flag.name)));
            EXPECT_FALSE(flag.meaning.empty());
        }
        words.erase(words.begin());
        words.emplace_back("--help");
        EXPECT_EQ(command_line(words).out, help.out);
    }
}

TEST(Queenctl, NothingPrintedIsWiderThanAHundredColumns) {
    for (const Command& command : commands()) {
        std::vector<std::string> words{"help"};
        const std::size_t blank = command.name.find(' ');
        words.emplace_back(command.name.substr(0, blank));
        if (blank != std::string_view::npos) {
            words.emplace_back(command.name.substr(blank + 1));
        }
        std::istringstream lines(command_line(words).out);
        for (std::string line; std::getline(lines, line);) {
            EXPECT_LE(line.size(), 100u) << line;
        }
    }
}

TEST(Queenctl, WhatIsUnknownIsOneLineAndExitTwo) {
    const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
        {{}, "queenctl: a command is missing; see queenctl help\n"},
        {{"--json"}, "queenctl: a command is missing; see queenctl help\n"},
        {{"psuh"}, "queenctl: unknown command \"psuh\"; did you mean push?\n"},
        {{"frobnicate"}, "queenctl: unknown command \"frobnicate\"; see queenctl help\n"},
        {{"config"},
         "queenctl: config needs one more word: config check, config show, config "
         "schema, config default\n"},
        {{"plugin", "nope"}, "queenctl: plugin needs one more word: plugin inspect, plugin list\n"},
        {{"health", "--jsno"}, "queenctl health: unknown option --jsno; did you mean --json?\n"},
        {{"health", "x"}, "queenctl health: one word too many: \"x\"\n"},
        {{"queue"}, "queenctl queue: QUEUE is missing\n"},
        {{"health", "--url", "nonsense"},
         "queenctl health: --url \"nonsense\": allowed is http://HOST:PORT[/PATH]\n"},
        {{"health", "--request-timeout", "0s"},
         "queenctl health: --request-timeout must be at least 1ms\n"},
        {{"help", "psuh"}, "queenctl help: unknown command \"psuh\"; did you mean push?\n"},
    };
    for (const auto& [words, message] : cases) {
        const Outcome outcome = command_line(words);
        EXPECT_EQ(outcome.exit, Exit::usage) << message;
        EXPECT_EQ(outcome.err, message);
        EXPECT_EQ(outcome.out, "");
    }
}

TEST(Queenctl, OptionsMayStandBeforeTheCommand) {
    // The value of --url is not taken for the command.
    const Outcome outcome = command_line({"--url", "push", "--json", "health", "x"});
    EXPECT_EQ(outcome.err, "queenctl health: one word too many: \"x\"\n");
}

} // namespace
} // namespace queen::ctl::testing
