#include "command_line.hpp"
#include "scripted_server.hpp"

#include <gmock/gmock.h>

namespace queen::ctl::testing {
namespace {

using ::testing::HasSubstr;

Outcome ack_at(const ScriptedServer& server, std::vector<std::string> words) {
    words.insert(words.begin(), {"--url", server.url(), "ack"});
    return command_line(words);
}

TEST(AckCommand, SendsOneRequestForAllTransactions) {
    ScriptedServer server(in_order(
        {{200,
          R"([{"transactionId":"t1","success":true,"leaseReleased":false,"dlq":false,"noop":false},)"
          R"({"transactionId":"t2","success":true,"leaseReleased":true,"dlq":true,"noop":false},)"
          R"({"transactionId":"t3","success":true,"leaseReleased":false,"dlq":false,"noop":true}])",
          {},
          false}}));
    const Outcome outcome = ack_at(server, {"id-1", "t1", "t2", "t3", "--lease", "l", "--group",
                                            "g", "--status", "failed", "--error", "no \"ink\""});
    EXPECT_EQ(outcome.exit, Exit::ok) << outcome.err;
    EXPECT_EQ(outcome.out, "TRANSACTION  RESULT       LEASE     ERROR\n"
                           "t1           accepted\n"
                           "t2           dead letter  released\n"
                           "t3           was settled\n");
    EXPECT_EQ(server.seen().at(0).target, "/api/v1/ack/batch");
    EXPECT_EQ(
        server.seen().at(0).body,
        R"({"consumerGroup":"g","acknowledgments":[)"
        R"({"transactionId":"t1","partitionId":"id-1","status":"failed","leaseId":"l","error":"no \"ink\""},)"
        R"({"transactionId":"t2","partitionId":"id-1","status":"failed","leaseId":"l","error":"no \"ink\""},)"
        R"({"transactionId":"t3","partitionId":"id-1","status":"failed","leaseId":"l","error":"no \"ink\""}]})");
}

TEST(AckCommand, FailsWhenOneIsRefusedOrNotAnswered) {
    ScriptedServer server(in_order(
        {{200, R"([{"transactionId":"t","success":false,"error":"no leased batch"}])", {}, false},
         {200, R"([])", {}, false}}));
    const Outcome refused = ack_at(server, {"id", "t"});
    EXPECT_EQ(refused.exit, Exit::failed);
    EXPECT_THAT(refused.out, HasSubstr("refused"));
    EXPECT_THAT(refused.out, HasSubstr("no leased batch"));
    EXPECT_EQ(ack_at(server, {"id", "t"}).exit, Exit::failed);
}

TEST(AckCommand, ChecksItsWords) {
    ScriptedServer server(in_order({{200, "[]", {}, false}}));
    EXPECT_EQ(ack_at(server, {"id"}).exit, Exit::usage);
    EXPECT_EQ(ack_at(server, {"id", "t", "--status", "done"}).err,
              "queenctl ack: --status done: allowed is completed, failed, retry or dlq\n");
    EXPECT_TRUE(server.seen().empty());
}

} // namespace
} // namespace queen::ctl::testing
