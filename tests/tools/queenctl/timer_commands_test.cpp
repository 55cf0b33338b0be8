#include "base/base64.hpp"
#include "base/json.hpp"
#include "command_line.hpp"
#include "scripted_server.hpp"

#include <gmock/gmock.h>

#include <fstream>

namespace queen::ctl::testing {
namespace {

using ::testing::HasSubstr;

Outcome at(const ScriptedServer& server, std::vector<std::string> words,
           const std::string& input = {}) {
    words.insert(words.end(), {"--url", server.url()});
    return command_line(words, input);
}

const Reaction kScheduled{
    200,
    R"({"results":[{"ok":true,"status":"scheduled","queue":"q","timerKey":"k","txn":"t",)"
    R"("messageId":"0199f0aa-0000-7000-8000-0000000000f1","deliverAt":"2026-11-03T09:15:27.000000Z"}]})",
    {},
    false};

/// The op that was sent.
std::string sent(const Seen& seen, std::string_view member) {
    const auto document = json::Document::parse(seen.body);
    const auto value = document ? document->root().at(0)[member] : json::Value();
    return value.is(json::Kind::number) ? std::string(value.raw_number())
                                        : std::string(value.string());
}

TEST(TimerCommands, AScheduleSendsTheMessageAsItWasGiven) {
    ScriptedServer server(in_order({kScheduled, kScheduled, kScheduled, kScheduled, kScheduled}));
    const Outcome outcome = at(server, {"timers", "schedule", "q", "a b", R"({"a": 1})", "--in",
                                        "1500ms", "--txn", "t", "--partition", "p"});
    EXPECT_EQ(outcome.exit, Exit::ok) << outcome.err;
    EXPECT_EQ(outcome.out, "scheduled for 2026-11-03T09:15:27.000000Z, message "
                           "0199f0aa-0000-7000-8000-0000000000f1\n");
    EXPECT_EQ(server.seen().at(0).method, "POST");
    EXPECT_EQ(server.seen().at(0).target, "/api/v1/timers");
    EXPECT_EQ(server.seen().at(0).body,
              R"([{"op":"schedule","queue":"q","timerKey":"a b","partition":"p","delayMs":1500,)"
              R"("txn":"t","payload":")" +
                  to_base64(R"({"a": 1})") + R"("}])");
    at(server, {"timers", "schedule", "q", "k", "plain words", "--in", "5m"});
    EXPECT_EQ(from_base64(sent(server.seen().at(1), "payload")), "\"plain words\"");
    EXPECT_EQ(std::stod(sent(server.seen().at(1), "delayMs")), 300'000);
    EXPECT_EQ(sent(server.seen().at(1), "txn").size(), 36u) << "one is minted";
    at(server, {"timers", "schedule", "q", "k", "-", "--in", "0s"}, "[1,\n2]\n");
    EXPECT_EQ(from_base64(sent(server.seen().at(2), "payload")), "[1,\n2]");
    const std::string file = ::testing::TempDir() + "queenctl_timer_message";
    std::ofstream(file) << "7\n";
    at(server, {"timers", "schedule", "q", "k", "--file", file, "--raw", "--in", "1d"});
    EXPECT_EQ(from_base64(sent(server.seen().at(3), "payload")), "\"7\"");
    at(server, {"timers", "schedule", "q", "k", "--file", "-", "--in", "1d"}, "8");
    EXPECT_EQ(from_base64(sent(server.seen().at(4), "payload")), "8");
}

TEST(TimerCommands, WhatIsIncompleteIsNotSent) {
    ScriptedServer server(in_order({}));
    for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
             {"timers", "schedule", "q", "k", "1"},
             {"timers", "schedule", "q", "k", "1", "--in", "soon"},
             {"timers", "schedule", "q", "k", "--in", "1s"},
             {"timers", "schedule", "q", "k", "1", "--file", "-", "--in", "1s"},
             {"timers", "schedule", "q", "k", "--file", "/no/such/file", "--in", "1s"},
             {"timers", "schedule", "q", "k", "--file", "/", "--in", "1s"},
             {"timers", "schedule", "q", "k", "\xFF", "--in", "1s"},
             {"timers", "schedule", "q"},
             {"timers", "cancel", "q"},
             {"timers", "get", "q"},
             {"timers", "list"},
             {"timers", "list", "q", "--limit", "1001"},
             {"timers", "count", "q"},
             {"timers", "switch", "fire"},
             {"timers", "switch", "kv", "on"},
             {"timers", "switch", "fire", "no"},
             {"timers"}}) {
        EXPECT_EQ(at(server, words).exit, Exit::usage) << ::testing::PrintToString(words);
    }
    EXPECT_TRUE(server.seen().empty());
}

TEST(TimerCommands, ACancelSaysWhatItMet) {
    ScriptedServer server(in_order(
        {{200,
          R"({"ok":true,"status":"cancelled","queue":"q","timerKey":"k","txn":"t"})",
          {},
          false},
         {200,
          R"({"ok":false,"status":"absent","queue":"q","timerKey":"k","txn":null})",
          {},
          false},
         {503,
          R"({"error":"timers_unavailable","code":"timers_unavailable","reason":"connection"})",
          {},
          false}}));
    Outcome outcome = at(server, {"timers", "cancel", "q", "a/b", "--txn", "t"});
    EXPECT_EQ(outcome.exit, Exit::ok) << outcome.err;
    EXPECT_EQ(outcome.out, "cancelled\n");
    EXPECT_EQ(server.seen().at(0).method, "DELETE");
    EXPECT_EQ(server.seen().at(0).target, "/api/v1/timers/q/a%2Fb?txn=t");
    outcome = at(server, {"timers", "cancel", "q", "k"});
    EXPECT_EQ(outcome.exit, Exit::failed);
    EXPECT_EQ(outcome.out, "absent\n");
    outcome = at(server, {"timers", "cancel", "q", "k"});
    EXPECT_EQ(outcome.exit, Exit::failed);
    EXPECT_EQ(outcome.err, "queenctl timers cancel: the broker answered 503: timers_unavailable "
                           "(connection)\n");
}

TEST(TimerCommands, ATimerIsShownWithItsMessage) {
    const auto timer = [](const std::string& flags) {
        return Reaction{200,
                        R"({"found":true,"timerKey":"k","partition":"p","payload":")" +
                            to_base64("[1,\n2]") + "\"," + flags + "}",
                        {},
                        false};
    };
    ScriptedServer server(
        in_order({timer(R"("encrypted":false)"),
                  timer(R"("encrypted":true)"),
                  timer(R"("payloadZstd":true)"),
                  {200, R"({"found":false,"queue":"q","timerKey":"k"})", {}, false}}));
    const Outcome outcome = at(server, {"timers", "get", "q", "k"});
    EXPECT_EQ(outcome.exit, Exit::ok) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("[1,\\x0a2]"));
    EXPECT_EQ(server.seen().at(0).target, "/api/v1/timers/q/k");
    EXPECT_THAT(at(server, {"timers", "get", "q", "k"}).out, HasSubstr("(encrypted)"));
    EXPECT_THAT(at(server, {"timers", "get", "q", "k"}).out, HasSubstr("zstd"));
    const Outcome gone = at(server, {"timers", "get", "q", "k"});
    EXPECT_EQ(gone.exit, Exit::failed);
    EXPECT_EQ(gone.out, "nothing waits under that key\n");
}

TEST(TimerCommands, ListsAndCounts) {
    ScriptedServer server(in_order(
        {{200,
          R"({"rows":[{"timerKey":"a","deliverAt":"then","partition":"p","txn":"t","attempts":2}],)"
          R"("truncated":true,"nextAfter":"a"})",
          {},
          false},
         {200, R"({"count":7})", {}, false}}));
    const Outcome outcome =
        at(server, {"timers", "list", "q", "--limit", "1", "--after", "\xC3\xBC&"});
    EXPECT_EQ(outcome.exit, Exit::ok) << outcome.err;
    EXPECT_EQ(outcome.out, "KEY  FOR   PARTITION  TRANSACTION  ATTEMPTS\n"
                           "a    then  p          t                   2\n"
                           "more with --after a\n");
    EXPECT_EQ(server.seen().at(0).target, "/api/v1/timers/q?limit=1&after=%C3%BC%26");
    EXPECT_EQ(at(server, {"timers", "count", "q", "a%"}).out, "7\n");
    EXPECT_EQ(server.seen().at(1).target, "/api/v1/timers/q?mode=count&prefix=a%25");
}

TEST(TimerCommands, SwitchesAreShownAndSet) {
    const Reaction states{
        200, R"({"timersScheduleEnabled":true,"timersFireEnabled":false})", {}, false};
    ScriptedServer server(in_order({states, states, states}));
    const Outcome outcome = at(server, {"timers", "switch"});
    EXPECT_EQ(outcome.exit, Exit::ok) << outcome.err;
    EXPECT_EQ(outcome.out, "TIMERS\n"
                           "schedule  on\n"
                           "fire      off\n");
    EXPECT_EQ(server.seen().at(0).method, "GET");
    EXPECT_EQ(server.seen().at(0).target, "/api/v1/system/kv-timers");
    at(server, {"timers", "switch", "fire", "off"});
    EXPECT_EQ(server.seen().at(1).body, R"({"timersFire":false})");
    at(server, {"timers", "switch", "schedule", "on"});
    EXPECT_EQ(server.seen().at(2).body, R"({"timersSchedule":true})");
}

} // namespace
} // namespace queen::ctl::testing
