#include "command_line.hpp"
#include "scripted_server.hpp"

#include <gmock/gmock.h>

namespace queen::ctl::testing {
namespace {

using ::testing::HasSubstr;

Outcome at(const ScriptedServer& server, std::vector<std::string> words) {
    words.insert(words.end(), {"--url", server.url()});
    return command_line(words);
}

TEST(DlqCommands, ListShowsLettersTheirNumberAndHowToGoOn) {
    ScriptedServer server(
        in_order({{200,
                   R"({"messages":[{"id":"id-1","transactionId":"t","queue":"q","partition":"p",)"
                   R"("consumerGroup":"g","errorMessage":"bad\u001b[2J","retryCount":3,)"
                   R"("failedAt":"2026-01-01T00:00:00.000Z"}],"pagination":{"limit":1,"offset":0,)"
                   R"("next":"7.id-1"},"total":12})",
                   {},
                   false}}));
    const Outcome outcome =
        at(server, {"dlq", "list", "a b", "--group", "g", "--limit", "1", "--after", "x"});
    EXPECT_EQ(outcome.exit, Exit::ok) << outcome.err;
    EXPECT_EQ(outcome.out,
              "FAILED                    QUEUE  PARTITION  GROUP  TRIES  TRANSACTION  ERROR     "
              "  ID\n"
              "2026-01-01T00:00:00.000Z  q      p          g          3  t            "
              "bad\\x1b[2J  id-1\n"
              "12 in all; more with --after 7.id-1\n");
    EXPECT_EQ(server.seen().at(0).target,
              "/api/v1/dlq?limit=1&queue=a%20b&consumerGroup=g&after=x");
    EXPECT_THAT(at(server, {"dlq", "list", "--json"}).out, HasSubstr("{\"messages\":[{\"id\":"));
    EXPECT_EQ(server.seen().at(1).target, "/api/v1/dlq?limit=100");
    EXPECT_EQ(at(server, {"dlq", "list", "--limit", "0"}).exit, Exit::usage);
}

TEST(DlqCommands, ReplayTellsOfEachLetter) {
    ScriptedServer server(in_order(
        {{200,
          R"({"success":true,"result":"moved","queue":"q","partition":"p","replayedAs":{"offset":7}})",
          {},
          false},
         {404, R"({"success":false,"result":"gone","error":"Message not found"})", {}, false},
         {200,
          R"({"success":true,"result":"duplicate","queue":"q","partition":"p","replayedAs":{"offset":7}})",
          {},
          false}}));
    const Outcome outcome = at(server, {"dlq", "replay", "a", "b", "c", "--queue", "r"});
    EXPECT_EQ(outcome.exit, Exit::failed);
    EXPECT_EQ(outcome.out, "a moved to q/p at offset 7\n"
                           "b not moved: the broker answered 404: Message not found\n"
                           "c was there already, q/p at offset 7; the letter stays\n");
    EXPECT_EQ(server.seen().at(0).method, "POST");
    EXPECT_EQ(server.seen().at(0).target, "/api/v1/dlq/a/replay");
    EXPECT_EQ(server.seen().at(0).body, R"({"queue":"r"})");
    EXPECT_EQ(at(server, {"dlq", "replay"}).exit, Exit::usage);
}

TEST(DlqCommands, ReplayOfAllThatMovedIsASuccess) {
    ScriptedServer server(
        in_order({{200, R"({"success":true,"result":"moved"})", {}, false}, drop_connection()}));
    EXPECT_EQ(at(server, {"dlq", "replay", "a", "--json"}).exit, Exit::ok);
    EXPECT_EQ(server.seen().at(0).body, "{}");
    EXPECT_EQ(at(server, {"dlq", "replay", "a"}).exit, Exit::unreachable);
}

TEST(DlqCommands, DeleteAndPurgeSayHowMany) {
    ScriptedServer server(in_order({{200, R"({"success":true,"deleted":2})", {}, false},
                                    {404, R"({"error":"Message not found"})", {}, false},
                                    {200, R"({"success":true,"deleted":5})", {}, false}}));
    EXPECT_EQ(at(server, {"dlq", "delete", "pid", "a/b"}).out, "2 dead letters deleted\n");
    EXPECT_EQ(server.seen().at(0).method, "DELETE");
    EXPECT_EQ(server.seen().at(0).target, "/api/v1/messages/pid/a%2Fb");
    EXPECT_EQ(at(server, {"dlq", "delete", "pid", "x"}).err,
              "queenctl dlq delete: the broker answered 404: Message not found\n");
    EXPECT_EQ(at(server, {"dlq", "purge", "q", "--group", "g"}).out, "5 dead letters deleted\n");
    EXPECT_EQ(server.seen().at(2).target, "/api/v1/dlq?queue=q&consumerGroup=g");
    EXPECT_EQ(at(server, {"dlq", "purge"}).exit, Exit::usage);
    EXPECT_EQ(at(server, {"dlq", "delete", "pid"}).exit, Exit::usage);
}

} // namespace
} // namespace queen::ctl::testing
