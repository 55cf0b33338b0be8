#include "command_line.hpp"
#include "scripted_server.hpp"

#include <gmock/gmock.h>

namespace queen::ctl::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Outcome at(const ScriptedServer& server, std::vector<std::string> words, bool terminal = false) {
    words.insert(words.end(), {"--url", server.url()});
    return command_line(words, {}, {{"HOME", "/home/ada"}}, terminal);
}

/// Two sources with something in common and something of their own.
Reaction sources(int took, int scans) {
    return {200,
            R"({"default":"ring","sources":[{"name":"ring","id":"queen.hotlist","version":"1.0.0",)"
            R"("loaded":true,"paused":false,"verdict":"loaded","faults":{},"stats":{"rings":2,)"
            R"("ready":1,"claims_took_total":)" +
                std::to_string(took) +
                R"(,"ready_age_p50_milliseconds":0.25}},{"name":"scan","id":"queen.sqlscan",)"
                R"("version":"0.9.0","loaded":true,"paused":true,"verdict":"loaded","faults":)"
                R"({"slow_call":3,"paused":1},"stats":{"scans_total":)" +
                std::to_string(scans) + R"(,"claims_took_total":7}}]})",
            {},
            false};
}

TEST(CandidatesCommand, ShowsTheSourcesSideBySide) {
    ScriptedServer server(in_order({sources(120, 9)}));
    const Outcome outcome = at(server, {"candidates"});
    EXPECT_EQ(outcome.exit, Exit::ok) << outcome.err;
    EXPECT_EQ(outcome.out, "SOURCE                      ring (default)                   scan\n"
                           "id                           queen.hotlist          queen.sqlscan\n"
                           "version                              1.0.0                  0.9.0\n"
                           "state                               loaded                 paused\n"
                           "faults                                   -  slow_call 3, paused 1\n"
                           "rings                                    2\n"
                           "ready                                    1\n"
                           "claims_took_total                      120                      7\n"
                           "ready_age_p50_milliseconds            0.25\n"
                           "scans_total                                                     9\n");
    EXPECT_EQ(server.seen().at(0).target, "/api/v1/system/candidates");
    EXPECT_THAT(at(server, {"candidates", "--json"}).out, HasSubstr("{\"default\":\"ring\""));
}

TEST(CandidatesCommand, WatchRepeatsWithRatesUntilItIsStopped) {
    ScriptedServer server(
        in_order({sources(100, 9), sources(130, 9), sources(4, 10), drop_connection()}));
    const Outcome outcome = at(server, {"candidates", "--watch", "--every", "3s"});
    EXPECT_EQ(outcome.exit, Exit::unreachable) << "the broker went away";
    EXPECT_THAT(outcome.pauses, ElementsAre(3s, 3s, 3s));
    EXPECT_EQ(server.seen().size(), 4u);
    EXPECT_THAT(outcome.out, Not(HasSubstr("\x1b")));
    EXPECT_THAT(outcome.out, HasSubstr("SOURCE                      ring (default)    /s"));
    // First no rate, then 30 in 3 s, then a broker that began anew.
    EXPECT_THAT(outcome.out, HasSubstr("\nclaims_took_total                      100           "));
    EXPECT_THAT(outcome.out, HasSubstr("\nclaims_took_total                      130  10.0     "));
    EXPECT_THAT(outcome.out, HasSubstr("\nclaims_took_total                        4           "));
    EXPECT_THAT(outcome.out, HasSubstr("10  0.3\n")) << "scans of the other source";
}

TEST(CandidatesCommand, ATerminalIsDrawnOver) {
    ScriptedServer server(in_order({sources(1, 1), sources(2, 2), drop_connection()}));
    const Outcome outcome = at(server, {"candidates", "--watch"}, true);
    EXPECT_THAT(outcome.out, ::testing::StartsWith("\x1b[H\x1b[JSOURCE"));
    EXPECT_THAT(outcome.out, HasSubstr("\n\x1b[H\x1b[JSOURCE"));
    EXPECT_THAT(outcome.pauses, ElementsAre(2s, 2s));
    EXPECT_THAT(at(server, {"candidates"}, true).out, Not(HasSubstr("\x1b")));
}

TEST(CandidatesCommand, WatchingAsJsonIsALineALook) {
    ScriptedServer server(in_order({sources(1, 1), sources(2, 2), drop_connection()}));
    const std::string out = at(server, {"candidates", "--watch", "--json"}, true).out;
    EXPECT_EQ(out, sources(1, 1).body + "\n" + sources(2, 2).body + "\n");
}

TEST(CandidatesCommand, WhatAPluginSaysDoesNotReachTheTerminalAsItIs) {
    ScriptedServer server(in_order(
        {{200,
          R"({"default":"a","sources":[{"name":"a\u001b[2J","id":"x","version":"1","loaded":false,)"
          R"("paused":false,"verdict":"no\nway","faults":{},"stats":{"b\u0007":null}}]})",
          {},
          false}}));
    const std::string out = at(server, {"candidates"}).out;
    EXPECT_THAT(out, Not(HasSubstr("\x1b")));
    EXPECT_THAT(out, Not(HasSubstr("\x07")));
    EXPECT_THAT(out, HasSubstr("no\\x0away"));
}

TEST(CandidatesCommand, RefusesTimesThatMakeNoSense) {
    EXPECT_EQ(command_line({"candidates", "--every", "2s"}).err,
              "queenctl candidates: --every needs --watch\n");
    EXPECT_EQ(command_line({"candidates", "--watch", "--every", "1ms"}).err,
              "queenctl candidates: --every must be at least 100ms\n");
    EXPECT_EQ(command_line({"candidates", "--watch", "--every", "fast"}).exit, Exit::usage);
}

} // namespace
} // namespace queen::ctl::testing
