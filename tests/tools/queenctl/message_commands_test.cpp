#include "command_line.hpp"
#include "scripted_server.hpp"

#include <gmock/gmock.h>

namespace queen::ctl::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Outcome at(const ScriptedServer& server, std::vector<std::string> words) {
    words.insert(words.end(), {"--url", server.url()});
    return command_line(words);
}

struct Row {
    std::string partition;
    int offset;
    int second;
};

/// A page of messages, newest first.
Reaction page(const std::vector<Row>& rows, const std::string& next = "null") {
    std::string body = R"({"messages":[)";
    for (const Row& row : rows) {
        const std::string second = (row.second < 10 ? "0" : "") + std::to_string(row.second);
        body += (body.back() == '[' ? "" : ",") + std::string(R"({"partitionId":"id-)") +
                row.partition + R"(","partition":")" + row.partition + R"(","offset":)" +
                std::to_string(row.offset) + R"(,"transactionId":"t","status":"pending",)" +
                R"("createdAt":"2026-01-01T00:00:)" + second +
                R"(.000Z","data":{"n":1.0},"payloadAvailable":true})";
    }
    return {200, body + R"(],"complete":true,"pagination":{"next":)" + next + "}}", {}, false};
}

TEST(MessageCommands, MessagesShowsThemAndHowToGoOn) {
    ScriptedServer server(in_order({page({{"p", 7, 2}}, "\"c1\"")}));
    const Outcome outcome = at(server, {"messages", "a b", "--status", "pending"});
    EXPECT_EQ(outcome.exit, Exit::ok) << outcome.err;
    EXPECT_EQ(outcome.out, "STORED                    PARTITION  OFFSET  STATUS   TRANSACTION  "
                           "DATA       PARTITION ID\n"
                           "2026-01-01T00:00:02.000Z  p               7  pending  t            "
                           "{\"n\":1.0}  id-p\n"
                           "more with --after c1\n");
    EXPECT_EQ(server.seen().at(0).target, "/api/v1/messages?queue=a%20b&limit=200&status=pending");
    EXPECT_EQ(at(server, {"messages"}).exit, Exit::usage);
    EXPECT_EQ(at(server, {"messages", "q", "--limit", "1001"}).exit, Exit::usage);
}

TEST(MessageCommands, TailPrintsEachMessageOnceOldestFirst) {
    ScriptedServer server(in_order({
        page({{"p", 2, 20}, {"p", 1, 19}, {"r", 0, 18}}),
        page({{"p", 2, 20}, {"p", 1, 19}, {"r", 0, 18}}), // nothing new
        // One that committed late, with an older stamp, in a partition that is new; and a newer
        // one.
        page({{"p", 3, 21}, {"p", 2, 20}, {"s", 0, 19}, {"p", 1, 19}, {"r", 0, 18}}),
        drop_connection(),
    }));
    const Outcome outcome = at(server, {"tail", "q", "--lines", "2"});
    EXPECT_EQ(outcome.exit, Exit::unreachable);
    EXPECT_EQ(outcome.out, "2026-01-01T00:00:19.000Z  p  1  t  {\"n\":1.0}\n"
                           "2026-01-01T00:00:20.000Z  p  2  t  {\"n\":1.0}\n"
                           "2026-01-01T00:00:19.000Z  s  0  t  {\"n\":1.0}\n"
                           "2026-01-01T00:00:21.000Z  p  3  t  {\"n\":1.0}\n");
    EXPECT_THAT(outcome.pauses, ElementsAre(1s, 1s, 1s));
    EXPECT_EQ(server.seen().at(0).target, "/api/v1/messages?queue=q&limit=1000");
    EXPECT_EQ(server.seen().at(1).target,
              "/api/v1/messages?queue=q&limit=1000&from=2026-01-01T00%3A00%3A15.000000Z");
}

TEST(MessageCommands, TailFollowsPagesByTheirCursor) {
    ScriptedServer server(in_order({
        page({{"p", 0, 1}}),
        page({{"p", 3, 3}, {"p", 2, 3}}, "\"c1\""),
        page({{"p", 1, 2}, {"p", 0, 1}}),
        drop_connection(),
    }));
    const Outcome outcome = at(server, {"tail", "q", "--json", "--every", "100ms"});
    EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 4);
    EXPECT_THAT(outcome.out, ::testing::StartsWith("{\"partitionId\":\"id-p\""));
    EXPECT_THAT(server.seen().at(2).target, HasSubstr("&after=c1"));
    EXPECT_THAT(outcome.pauses, ElementsAre(100ms, 100ms));
    EXPECT_THAT(outcome.out, HasSubstr("{\"n\":1.0}")) << "digits as they came";
}

// The first look is for what is there; it does not read an hour of messages.
TEST(MessageCommands, TailBeginsWithOnePageWhenThatIsEnough) {
    ScriptedServer server(
        in_order({page({{"p", 9, 50}, {"p", 8, 40}}, "\"c1\""), drop_connection()}));
    const Outcome outcome = at(server, {"tail", "q", "--lines", "0"});
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(server.seen().at(1).target, Not(HasSubstr("after")));
}

TEST(MessageCommands, TailSaysWhenItCannotKeepUp) {
    ScriptedServer server([n = 0](const Seen&) mutable {
        return n++ < 11 ? page({{"p", 100 - n, 1}}, "\"c\"") : drop_connection();
    });
    const Outcome outcome = at(server, {"tail", "q"});
    EXPECT_THAT(outcome.err, HasSubstr("some are left out"));
}

TEST(MessageCommands, TailRefusesWhatItCannotUse) {
    ScriptedServer server(in_order({{200, R"({"messages":[{"offset":1}]})", {}, false}}));
    EXPECT_EQ(at(server, {"tail", "q"}).exit, Exit::failed);
    EXPECT_EQ(at(server, {"tail", "q", "--every", "1ms"}).exit, Exit::usage);
    EXPECT_EQ(at(server, {"tail"}).exit, Exit::usage);
}

} // namespace
} // namespace queen::ctl::testing
