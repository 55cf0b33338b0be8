// GET /api/v1/messages, GET and DELETE /api/v1/messages/:partitionId/:transactionId, POST
// .../retry.
#include "base/text.hpp"
#include "http/conformance/conformance.hpp"

#include <set>

namespace queen::test {
namespace {

using testing::AnyOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::MatchesRegex;
using testing::SizeIs;
using testing::UnorderedElementsAre;

class MessagesContract : public ConformanceTest {
protected:
    Answer browse(const std::string& query = {}) {
        return get("/api/v1/messages?queue=" + percent_encode(queue()) + query);
    }
    Answer detail(const std::string& pid, const std::string& txn) {
        return get("/api/v1/messages/" + pid + "/" + percent_encode(txn));
    }
};

TEST_F(MessagesContract, APageHasEveryFieldOfTheContract) {
    post("/api/v1/configure",
         R"({"queue":")" + queue() + R"(","namespace":"ns","task":"tk","options":{"priority":3}})");
    push(queue(), "lane", {R"({"n":1.0})"}, {"tx"});
    const auto answer = browse();
    ASSERT_EQ(answer.status(), 200);
    EXPECT_THAT(answer.keys(), IsSupersetOf({"messages", "mode", "total"}));
    EXPECT_EQ(answer.at("total"), "1");
    EXPECT_THAT(answer.keys("mode"), ElementsAre("busGroupsCount", "hasQueueMode", "type"));
    EXPECT_EQ(answer.at("mode.type"), "none");
    EXPECT_THAT(answer.keys("messages.0"),
                IsSupersetOf({"id",        "transactionId", "txnHash",        "partitionId",
                              "queuePath", "queue",         "partition",      "namespace",
                              "task",      "status",        "queueStatus",    "busStatus",
                              "traceId",   "producerSub",   "queuePriority",  "payloadAvailable",
                              "segment",   "createdAt",     "leaseExpiresAt", "data",
                              "payload",   "isEncrypted"}));
    EXPECT_EQ(answer.at("messages.0.transactionId"), "tx");
    EXPECT_THAT(answer.at("messages.0.txnHash"), MatchesRegex("[0-9a-f]{32}"));
    EXPECT_EQ(answer.at("messages.0.queuePath"), queue() + "/lane");
    EXPECT_EQ(answer.at("messages.0.namespace"), "ns");
    EXPECT_EQ(answer.at("messages.0.task"), "tk");
    EXPECT_EQ(answer.at("messages.0.status"), "pending");
    EXPECT_EQ(answer.at("messages.0.queuePriority"), "3");
    EXPECT_EQ(answer.at("messages.0.payloadAvailable"), "true");
    EXPECT_EQ(answer.at("messages.0.segment.seq"), "0");
    EXPECT_EQ(answer.at("messages.0.segment.frameIdx"), "0");
    EXPECT_EQ(answer.at("messages.0.isEncrypted"), "false");
    EXPECT_THAT(answer.body(), HasSubstr(R"("data":{"n":1.0})"));
    EXPECT_THAT(answer.body(), HasSubstr(R"("payload":{"n":1.0})"));
    EXPECT_THAT(answer.keys("messages.0.busStatus"), ElementsAre("consumedBy", "totalGroups"));
}

TEST_F(MessagesContract, NewestFirstAndNarrowedByPartitionAndLabels) {
    const std::string ns = queue("-ns");
    post("/api/v1/configure",
         R"({"queue":")" + queue() + R"(","namespace":")" + ns + R"(","task":"t1"})");
    push(queue(), "a", {"1"}, {"first"});
    push(queue(), "b", {"2"}, {"second"});
    EXPECT_THAT(browse().column("messages", "transactionId"), ElementsAre("second", "first"));
    EXPECT_THAT(browse("&partition=a").column("messages", "transactionId"), ElementsAre("first"));
    EXPECT_EQ(get("/api/v1/messages?namespace=" + ns).at("total"), "2");
    EXPECT_EQ(get("/api/v1/messages?ns=" + ns).at("total"), "2");
    EXPECT_EQ(get("/api/v1/messages?ns=" + ns + "&task=t2").at("total"), "0");
    EXPECT_EQ(browse("&limit=1").size("messages"), 1u);
    EXPECT_THAT(browse("&limit=1&offset=1").column("messages", "transactionId"),
                ElementsAre("first"));
    EXPECT_EQ(browse("&to=2020-01-01T00:00:00Z&from=2019-01-01T00:00:00Z").at("total"), "0");
    EXPECT_EQ(browse("&from=2020-01-01T00:00:00Z").at("total"), "2");
    EXPECT_EQ(get("/api/v1/messages?queue=" + queue("-none")).at("total"), "0");
    for (const std::string query : {"&from=yesterday", "&to=x", "&status=lost", "&limit=x"}) {
        EXPECT_EQ(browse(query).status(), 400) << query;
    }
}

TEST_F(MessagesContract, StatusesFollowTheGroups) {
    push(queue(), "p", {"1", "2", "3", "4"}, {"done", "dead", "held", "open"});
    auto messages = take(queue(), "batch=1&consumerGroup=g");
    ack(messages.at(0));
    messages = take(queue(), "batch=1&consumerGroup=g");
    EXPECT_EQ(ack(messages.at(0), "dlq", R"("error":"why")").at("0.dlq"), "true");
    messages = take(queue(), "batch=1&consumerGroup=g");
    const auto answer = browse();
    EXPECT_THAT(answer.column("messages", "transactionId"),
                ElementsAre("open", "held", "dead", "done"));
    EXPECT_THAT(answer.column("messages", "status"),
                ElementsAre("pending", "processing", "dead_letter", "completed"));
    EXPECT_EQ(answer.at("mode.type"), "bus");
    EXPECT_EQ(answer.at("mode.busGroupsCount"), "1");
    EXPECT_NE(answer.at("messages.1.leaseExpiresAt"), "null");
    for (const auto& [status, id] :
         std::vector<std::pair<std::string, std::string>>{{"pending", "open"},
                                                          {"processing", "held"},
                                                          {"dead_letter", "dead"},
                                                          {"completed", "done"}}) {
        EXPECT_THAT(browse("&status=" + status).column("messages", "transactionId"),
                    ElementsAre(id))
            << status;
    }
}

// K40: a message that the group finished is not pending for the console.
TEST_F(MessagesContract, K40_WhatTheNamedGroupFinishedIsCompleted) {
    push(queue(), "p", {"1"}, {"tx"});
    ack(take(queue(), "consumerGroup=g").at(0));
    EXPECT_EQ(browse("&status=pending").at("total"), "0");
    take(queue(), "batch=1"); // a stray look without a group
    EXPECT_EQ(browse().at("messages.0.status"), "completed");
}

// K41: many messages of one moment, paged to the end while more arrive.
TEST_F(MessagesContract, K41_PagesShowEachMessageOnce) {
    std::vector<std::string> payloads(500, "1");
    std::vector<std::string> ids;
    for (std::size_t i = 0; i < payloads.size(); ++i) {
        ids.push_back("m" + std::to_string(i));
    }
    push(queue(), "p", payloads, ids);
    const auto before = browse("&limit=1").at("messages.0.createdAt");
    std::multiset<std::string> seen;
    for (int page = 0; page < 10; ++page) {
        const auto answer = browse("&limit=50&partition=p&offset=" + std::to_string(page * 50));
        ASSERT_EQ(answer.size("messages"), 50u);
        for (const auto& id : answer.column("messages", "transactionId")) {
            seen.insert(id);
        }
        push(queue(), "q" + std::to_string(page), {"1"});
    }
    EXPECT_EQ(seen.size(), 500u);
    EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()).size(), 500u);
}

TEST_F(MessagesContract, OneMessageByItsAddress) {
    push(queue(), "lane", {R"({"n":1.0})"}, {"tx/odd \"id\""});
    const auto pid = browse().at("messages.0.partitionId");
    const auto answer = detail(pid, "tx/odd \"id\"");
    ASSERT_EQ(answer.status(), 200) << testing::PrintToString(answer);
    EXPECT_THAT(answer.keys(), IsSupersetOf({"id",           "transactionId", "data",
                                             "payload",      "traceId",       "producerSub",
                                             "createdAt",    "partitionId",   "partition",
                                             "isEncrypted",  "queue",         "queuePath",
                                             "namespace",    "task",          "status",
                                             "errorMessage", "retryCount",    "leaseExpiresAt",
                                             "queueConfig",  "mode",          "consumerGroups"}));
    EXPECT_EQ(answer.at("partition"), "lane");
    EXPECT_EQ(answer.at("status"), "pending");
    EXPECT_EQ(answer.at("errorMessage"), "null");
    EXPECT_THAT(answer.body(), HasSubstr(R"("data":{"n":1.0})"));
    take(queue(), "consumerGroup=g");
    const auto held = detail(pid, "tx/odd \"id\"");
    EXPECT_EQ(held.at("status"), "processing");
    EXPECT_THAT(held.keys("consumerGroups.0"),
                IsSupersetOf({"name", "committed", "consumed", "leaseExpiresAt"}));
    EXPECT_EQ(held.at("consumerGroups.0.name"), "g");
    EXPECT_EQ(held.at("consumerGroups.0.consumed"), "false");
    const auto missing = detail(pid, "other");
    EXPECT_EQ(missing.status(), 404);
    EXPECT_EQ(missing.at("error"), "Message not found");
    EXPECT_EQ(detail("0199f0aa-0000-7000-8000-0000000000f1", "tx").status(), 404);
    EXPECT_THAT(detail("12", "tx").status(), AnyOf(400, 404));
}

TEST_F(MessagesContract, OnlyDeadLettersOfAnAddressCanBeDeleted) {
    push(queue(), "p", {"1"}, {"tx"});
    const auto message = take(queue(), "consumerGroup=g").at(0);
    const std::string path = "/api/v1/messages/" + message.partition_id + "/tx";
    const auto alive = call("DELETE", path);
    EXPECT_EQ(alive.status(), 404);
    EXPECT_EQ(alive.at("success"), "false");
    EXPECT_EQ(alive.at("error"), "Message not found");
    EXPECT_EQ(alive.at("partitionId"), message.partition_id);
    EXPECT_EQ(alive.at("transactionId"), "tx");
    ack(message, "dlq");
    EXPECT_EQ(detail(message.partition_id, "tx").at("status"), "dead_letter");
    const auto deleted = call("DELETE", path);
    EXPECT_EQ(deleted.status(), 200);
    EXPECT_EQ(deleted.at("success"), "true");
    EXPECT_EQ(deleted.at("deleted"), "1");
    EXPECT_EQ(deleted.at("message"), "Message deleted successfully");
    EXPECT_EQ(get("/api/v1/dlq?queue=" + queue()).at("total"), "0");
    EXPECT_EQ(call("DELETE", path).status(), 404);
}

TEST_F(MessagesContract, RetryReplaysTheNewestDeadLetterOfAnAddress) {
    push(queue(), "p", {"1"}, {"tx"});
    const auto message = take(queue(), "consumerGroup=g").at(0);
    const std::string path = "/api/v1/messages/" + message.partition_id + "/tx/retry";
    EXPECT_EQ(post(path, "").status(), 404);
    ack(message, "dlq");
    const auto answer = post(path, "");
    EXPECT_EQ(answer.status(), 200) << testing::PrintToString(answer);
    EXPECT_EQ(answer.at("result"), "moved");
    EXPECT_EQ(answer.at("originalTransactionId"), "tx");
    EXPECT_THAT(take(queue(), "consumerGroup=g"), SizeIs(1));
    EXPECT_EQ(post(path, "").status(), 404);
}

} // namespace
} // namespace queen::test
