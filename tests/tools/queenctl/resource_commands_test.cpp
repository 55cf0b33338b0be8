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

TEST(ResourceCommands, DepthShowsPartitionsAndSums) {
    ScriptedServer server(in_order(
        {{200,
          R"({"queue":"orders","group":"billing","pending":70,"processing":30,"ready":40,)"
          R"("partitionsPending":2,"partitionsReady":1,"conflation":false,"effectivePending":70,)"
          R"("effectiveReady":40,"partitionCount":2,"partitions":[{"partition":"p","pending":30,)"
          R"("processing":30,"ready":0},{"partition":"r\n","pending":40,"processing":0,)"
          R"("ready":40}],"next":null})",
          {},
          false}}));
    const Outcome outcome = at(server, {"depth", "orders/eu", "--group", "bil ling"});
    EXPECT_EQ(outcome.exit, Exit::ok) << outcome.err;
    EXPECT_EQ(outcome.out, "PARTITION  PENDING  PROCESSING  READY\n"
                           "p               30          30      0\n"
                           "r\\x0a           40           0     40\n"
                           "(all)           70          30     40\n"
                           "partitions: 2, with pending messages 2, with ready ones 1\n");
    EXPECT_EQ(server.seen().at(0).target,
              "/api/v1/resources/queues/orders%2Feu/depth?group=bil%20ling");
    EXPECT_THAT(at(server, {"depth", "orders", "--json"}).out, HasSubstr("{\"queue\":\"orders\""));
    EXPECT_EQ(server.seen().at(1).target, "/api/v1/resources/queues/orders/depth");
    at(server, {"depth", "orders", "--group", ""});
    EXPECT_EQ(server.seen().at(2).target, "/api/v1/resources/queues/orders/depth?group=");
}

TEST(ResourceCommands, DepthAndQueueSayWhereTheListGoesOn) {
    ScriptedServer server(in_order(
        {{200,
          R"({"pending":9,"processing":0,"ready":9,"partitionsPending":3,"partitionsReady":3,)"
          R"("partitionCount":3,"partitions":[{"partition":"b","pending":3,"processing":0,)"
          R"("ready":3}],"next":"b"})",
          {},
          false},
         {200,
          R"({"name":"q","partitions":[{"name":"b","stats":{}}],"partitionCount":3,)"
          R"("next":"b","totals":{}})",
          {},
          false}}));
    const Outcome depth = at(server, {"depth", "q", "--limit", "1", "--after", "a"});
    EXPECT_THAT(depth.out, HasSubstr("\n1 of 3 partitions are listed; go on with --after b\n"));
    EXPECT_EQ(server.seen().at(0).target, "/api/v1/resources/queues/q/depth?limit=1&after=a");
    const Outcome queue = at(server, {"queue", "q", "--limit", "1", "--after", "a"});
    EXPECT_THAT(queue.out, HasSubstr("\n1 of 3 partitions are listed; go on with --after b\n"));
    EXPECT_EQ(server.seen().at(1).target, "/api/v1/resources/queues/q?limit=1&after=a");
    for (const char* limit : {"0", "10001", "x"}) {
        EXPECT_EQ(at(server, {"depth", "q", "--limit", limit}).exit, Exit::usage) << limit;
    }
    EXPECT_EQ(server.seen().size(), 2u);
}

TEST(ResourceCommands, OverviewShowsCountsAndLag) {
    ScriptedServer server(in_order(
        {{200,
          R"({"queues":3,"partitions":12,"namespaces":2,"tasks":0,"messages":{"total":100,)"
          R"("pending":7,"processing":1,"completed":92,"failed":null,"deadLetter":0},"lag":{"time":)"
          R"({"avg":1.5,"median":1,"min":0.25,"max":3},"offset":{"avg":4,"median":4,"min":1,)"
          R"("max":7}},"throughput":{"ingestedPerSecond":0.333,"processedPerSecond":null},)"
          R"("timestamp":"2026","statsAge":0})",
          {},
          false}}));
    const Outcome outcome = at(server, {"overview"});
    EXPECT_EQ(outcome.exit, Exit::ok) << outcome.err;
    EXPECT_EQ(outcome.out, "THERE ARE\n"
                           "queues                     3\n"
                           "partitions                12\n"
                           "namespaces                 2\n"
                           "tasks                      0\n"
                           "messages                 100\n"
                           "pending                    7\n"
                           "processing                 1\n"
                           "completed                 92\n"
                           "dead letters               0\n"
                           "in, per second         0.333\n"
                           "out, per second            -\n"
                           "figures          counted now\n"
                           "\n"
                           "PARTITIONS BEHIND BY  AVG  MEDIAN   MIN  MAX\n"
                           "messages                4       4     1    7\n"
                           "seconds               1.5       1  0.25    3\n");
    EXPECT_EQ(server.seen().at(0).target, "/api/v1/resources/overview");
    EXPECT_THAT(at(server, {"overview", "--json"}).out, HasSubstr("{\"queues\":3,"));
}

TEST(ResourceCommands, OverviewSaysHowOldItsFiguresAre) {
    ScriptedServer server(in_order(
        {{200, R"({"statsAge":6.5})", {}, false}, {200, R"({"statsAge":-1})", {}, false}}));
    EXPECT_THAT(at(server, {"overview", "--cached"}).out, HasSubstr("as of 6.5 s ago\n"));
    EXPECT_EQ(server.seen().at(0).target, "/api/v1/resources/overview?stats=cached");
    EXPECT_THAT(at(server, {"overview", "--cached"}).out, HasSubstr("never refreshed\n"));
}

TEST(ResourceCommands, LabelsAreListed) {
    ScriptedServer server(in_order(
        {{200,
          R"({"namespaces":[{"namespace":"orders","queues":2,"partitions":3,"messages":{"total":4,)"
          R"("pending":3}}],"namespaceCount":1})",
          {},
          false},
         {200,
          R"({"tasks":[{"task":"email","queues":1,"partitions":1,"messages":{"total":2,"pending":)"
          R"(1}}],"taskCount":1})",
          {},
          false},
         {200, R"({"tasks":[],"taskCount":0})", {}, false},
         {500, R"({"error":"pool"})", {}, false}}));
    EXPECT_EQ(at(server, {"namespaces"}).out, "NAMESPACE  QUEUES  PARTITIONS  TOTAL  PENDING\n"
                                              "orders          2           3      4        3\n");
    EXPECT_EQ(at(server, {"tasks"}).out, "TASK   QUEUES  PARTITIONS  TOTAL  PENDING\n"
                                         "email       1           1      2        1\n");
    EXPECT_EQ(server.seen().at(0).target, "/api/v1/resources/namespaces");
    EXPECT_EQ(server.seen().at(1).target, "/api/v1/resources/tasks");
    EXPECT_EQ(at(server, {"tasks", "--json"}).out, "{\"tasks\":[],\"taskCount\":0}\n");
    const Outcome refused = at(server, {"namespaces"});
    EXPECT_EQ(refused.exit, Exit::failed);
    EXPECT_EQ(refused.err, "queenctl namespaces: the broker answered 500: pool\n");
}

TEST(ResourceCommands, WordsAndQueuesThatAreNotThereAreToldApart) {
    ScriptedServer server(
        in_order({{404, R"({"error":"Queue not found","code":"not_found"})", {}, false}}));
    const Outcome missing = at(server, {"depth", "nope"});
    EXPECT_EQ(missing.exit, Exit::failed);
    EXPECT_EQ(missing.err, "queenctl depth: the broker answered 404: Queue not found\n");
    EXPECT_EQ(at(server, {"depth"}).err, "queenctl depth: QUEUE is missing\n");
    for (const char* command : {"overview", "namespaces", "tasks", "candidates"}) {
        EXPECT_EQ(at(server, {command, "x"}).exit, Exit::usage) << command;
    }
    EXPECT_EQ(server.seen().size(), 1u);
}

} // namespace
} // namespace queen::ctl::testing
