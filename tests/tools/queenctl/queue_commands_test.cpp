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

TEST(QueueCommands, QueuesListsThem) {
    ScriptedServer server(in_order(
        {{200,
          R"({"queues":[{"name":"orders","partitions":12,"createdAt":"2026-01-01T00:00:00.000Z",)"
          R"("messages":{"total":1000,"pending":3,"processing":0}},{"name":"büro","partitions":1,)"
          R"("createdAt":"2026-01-02T00:00:00.000Z","messages":{"total":5,"pending":5,"processing":2}}]})",
          {},
          false}}));
    const Outcome outcome = at(server, {"queues"});
    EXPECT_EQ(outcome.exit, Exit::ok) << outcome.err;
    EXPECT_EQ(outcome.out,
              "QUEUE   PARTITIONS  TOTAL  PENDING  PROCESSING  CREATED\n"
              "orders          12   1000        3           0  2026-01-01T00:00:00.000Z\n"
              "büro             1      5        5           2  2026-01-02T00:00:00.000Z\n");
    EXPECT_EQ(server.seen().at(0).target, "/api/v1/resources/queues");
    EXPECT_THAT(at(server, {"queues", "--json"}).out, HasSubstr("{\"queues\":[{\"name\":"));
}

TEST(QueueCommands, QueueShowsFactsOptionsAndPartitions) {
    ScriptedServer server(in_order(
        {{200,
          R"({"id":"i","name":"orders","namespace":"shop","task":"","createdAt":"2026","partitions":[)"
          R"({"id":"id-1","name":"p","stats":{"total":3,"pending":1,"processing":1,"completed":1,)"
          R"("failed":null,"deadLetter":0},"oldestMessage":"a","newestMessage":null}],)"
          R"("totals":{"total":3,"pending":1,"processing":1,"completed":1,"deadLetter":0},)"
          R"("retainedBytes":77,"options":{"leaseTime":300,"deadLetterQueue":true}})",
          {},
          false},
         {404, R"({"error":"Queue not found"})", {}, false}}));
    const Outcome outcome = at(server, {"queue", "orders/eu"});
    EXPECT_EQ(outcome.exit, Exit::ok) << outcome.err;
    EXPECT_EQ(
        outcome.out,
        "QUEUE            orders\n"
        "namespace        shop\n"
        "task\n"
        "created          2026\n"
        "bytes            77\n"
        "leaseTime        300\n"
        "deadLetterQueue  true\n"
        "\n"
        "PARTITION  TOTAL  PENDING  PROCESSING  COMPLETED  DEAD  OLDEST  NEWEST  PARTITION ID\n"
        "p              3        1           1          1     0  a               id-1\n"
        "(all)          3        1           1          1     0\n");
    EXPECT_EQ(server.seen().at(0).target, "/api/v1/resources/queues/orders%2Feu");
    const Outcome missing = at(server, {"queue", "x"});
    EXPECT_EQ(missing.exit, Exit::failed);
    EXPECT_EQ(missing.err, "queenctl queue: the broker answered 404: Queue not found\n");
}

TEST(QueueCommands, ConfigureSendsTypedValuesAndItsMode) {
    ScriptedServer server(
        in_order({{200,
                   R"({"configured":true,"namespace":"shop","task":"","options":{"leaseTime":60}})",
                   {},
                   false}}));
    const Outcome outcome =
        at(server, {"configure", "orders", "leaseTime=60", "deadLetterQueue=false",
                    "retentionSinkHold=7", "namespace=shop", "retryLimit=null"});
    EXPECT_EQ(outcome.exit, Exit::ok) << outcome.err;
    EXPECT_EQ(outcome.out, "OPTION     VALUE\nnamespace  shop\ntask\nleaseTime  60\n");
    EXPECT_EQ(server.seen().at(0).body,
              R"({"queue":"orders","mode":"replace","namespace":"shop","options":{"leaseTime":60,)"
              R"("deadLetterQueue":false,"retentionSinkHold":"7","retryLimit":null}})");
    EXPECT_EQ(at(server, {"configure", "orders", "--merge"}).exit, Exit::ok);
    EXPECT_EQ(server.seen().at(1).body, R"({"queue":"orders","mode":"merge","options":{}})");
}

TEST(QueueCommands, ConfigureKnowsTheOptions) {
    ScriptedServer server(in_order({{200, "{}", {}, false}}));
    EXPECT_EQ(at(server, {"configure", "q", "leasetime=60"}).err,
              "queenctl configure: unknown option leasetime; did you mean leaseTime?\n");
    EXPECT_THAT(at(server, {"configure", "q", "x=60"}).err,
                HasSubstr("unknown option x; known are namespace, task, "));
    EXPECT_EQ(at(server, {"configure", "q", "leaseTime"}).err,
              "queenctl configure: \"leaseTime\" is not OPTION=VALUE\n");
    EXPECT_EQ(at(server, {"configure", "q", "task=a", "task=b"}).err,
              "queenctl configure: task is given twice\n");
    EXPECT_EQ(at(server, {"configure"}).exit, Exit::usage);
    EXPECT_TRUE(server.seen().empty());
}

TEST(QueueCommands, DeleteSaysWhetherThereWasOne) {
    ScriptedServer server(in_order(
        {{200, R"({"deleted":true,"existed":true})", {}, false},
         {200, R"({"deleted":false,"existed":false,"message":"Queue not found"})", {}, false}}));
    EXPECT_EQ(at(server, {"delete", "a b"}).out, "a b is deleted\n");
    EXPECT_EQ(server.seen().at(0).method, "DELETE");
    EXPECT_EQ(server.seen().at(0).target, "/api/v1/resources/queues/a%20b");
    const Outcome absent = at(server, {"delete", "x"});
    EXPECT_EQ(absent.out, "x did not exist, nothing was deleted\n");
    EXPECT_EQ(absent.exit, Exit::ok);
}

TEST(QueueCommands, HealthTellsHealthyFromNot) {
    ScriptedServer server(in_order(
        {{200, R"({"status":"healthy","database":"connected","version":"0.1.0"})", {}, false},
         {503, R"({"status":"unhealthy","database":"disconnected","version":"0.1.0"})", {}, false},
         {200, "ok", {}, false}}));
    const Outcome healthy = at(server, {"health"});
    EXPECT_EQ(healthy.exit, Exit::ok);
    EXPECT_EQ(healthy.out, "healthy, database connected, version 0.1.0\n");
    const Outcome unhealthy = at(server, {"health"});
    EXPECT_EQ(unhealthy.exit, Exit::failed);
    EXPECT_EQ(unhealthy.out, "unhealthy, database disconnected, version 0.1.0\n");
    EXPECT_EQ(at(server, {"health"}).exit, Exit::failed); // some other server
}

} // namespace
} // namespace queen::ctl::testing
