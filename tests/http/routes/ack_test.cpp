#include "base/text.hpp"
#include "http/ack_reader.hpp"
#include "http/routes/api.hpp"

namespace queen::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string one(const std::string& members) {
    return R"({"transactionId":"tx-4","partitionId":")" + std::string(kPartitionId) + "\"" +
           members + "}";
}

std::string batch(const std::string& items, const std::string& more = "") {
    return R"({"acknowledgments":[)" + items + "]" + more + "}";
}

TEST(AckRoute, OneAckIsAnArrayOfOneWithTheContractsFields) {
    Api api;
    api.store.ack_answer.lease_released = true;
    const auto reply = api.ask("POST", "/api/v1/ack",
                               one(R"(,"status":"completed","leaseId":")" + std::string(kLeaseId) +
                                   R"(","consumerGroup":"fleet","error":null)"));
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, R"([{"index":0,"transactionId":"tx-4","success":true,"error":null,)"
                          R"("leaseReleased":true,"dlq":false,"noop":false}])");
    ASSERT_EQ(api.store.acks.size(), 1u);
    EXPECT_EQ(api.store.acks[0].partition_id, *parse_uuid(kPartitionId));
    EXPECT_EQ(api.store.acks[0].group, "fleet");
    EXPECT_EQ(api.store.acks[0].worker, kLeaseId);
    EXPECT_EQ(api.store.acks[0].items.at(0).hash, hash_transaction_id("tx-4"));
    EXPECT_EQ(api.store.acks[0].items.at(0).status, AckStatus::completed);
}

TEST(AckRoute, NullMeansAbsentForEveryField) {
    Api api;
    const auto reply = api.ask("POST", "/api/v1/ack",
                               one(R"(,"status":null,"leaseId":null,"consumerGroup":null,)"
                                   R"("error":null)"));
    EXPECT_EQ(reply.status, 200);
    ASSERT_EQ(api.store.acks.size(), 1u);
    EXPECT_EQ(api.store.acks[0].group, "__QUEUE_MODE__");
    EXPECT_EQ(api.store.acks[0].worker, ""); // lease-less
    EXPECT_EQ(api.store.acks[0].items.at(0).status, AckStatus::completed);
}

TEST(AckRoute, ABatchAnswersInOrderAndCarriesOneGroup) {
    Api api;
    std::string items;
    for (const char* id : {"a", "b", "c"}) {
        items += (items.empty() ? "" : ",") +
                 (R"({"transactionId":")" + std::string(id) + R"(","partitionId":")" +
                  std::string(kPartitionId) + R"("})");
    }
    items += R"(,{"transactionId":"d","partitionId":"17"})";
    const auto reply =
        api.ask("POST", "/api/v1/ack/batch", batch(items, R"(,"consumerGroup":"g")"));
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(at(reply.body, ""), "[4]");
    for (std::size_t i = 0; i < 4; ++i) {
        const std::string index = std::to_string(i);
        EXPECT_EQ(at(reply.body, index + ".index"), index);
        EXPECT_EQ(at(reply.body, index + ".transactionId"), std::string(1, char('a' + i)));
        EXPECT_EQ(at(reply.body, index + ".success"), i < 3 ? "true" : "false");
    }
    EXPECT_THAT(at(reply.body, "3.error"), HasSubstr("not a partition id"));
    ASSERT_EQ(api.store.acks.size(), 1u);
    EXPECT_EQ(api.store.acks[0].group, "g");
    EXPECT_EQ(api.store.acks[0].items.size(), 3u);
}

TEST(AckRoute, AnEmptyBatchIsAnEmptyAnswer) {
    Api api;
    const auto reply = api.ask("POST", "/api/v1/ack/batch", batch(""));
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, "[]");
    EXPECT_EQ(api.store.calls, 0u);
}

TEST(AckRoute, ALostLeaseIsAnItemResultNotAStatus) {
    Api api;
    api.store.ack_answer = {.ok = false, .error = "invalid or expired lease"};
    const auto reply = api.ask("POST", "/api/v1/ack", one(R"(,"leaseId":"not an id")"));
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(at(reply.body, "0.success"), "false");
    EXPECT_EQ(at(reply.body, "0.error"), "invalid or expired lease");
    // What is no lease id becomes one that nobody holds; it must not become a lease-less ack.
    EXPECT_EQ(api.store.acks.at(0).worker, "00000000-0000-0000-0000-000000000000");
}

TEST(AckRoute, AStoreThatFailsIsAnItemResultToo) {
    Api api;
    api.store.broken = Error{Errc::unavailable, "no session", {}};
    const auto reply = api.ask("POST", "/api/v1/ack", one(""));
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(at(reply.body, "0.success"), "false");
    EXPECT_EQ(at(reply.body, "0.error"), "no session");
}

// K37: known words in any case; an unknown one counts as failed and the answer says so.
TEST(AckRoute, K37StatusWords) {
    const struct {
        const char* word;
        AckStatus status;
        bool known;
    } words[] = {
        {"completed", AckStatus::completed, true},
        {"COMPLETED", AckStatus::completed, true},
        {"success", AckStatus::completed, true},
        {"acked", AckStatus::completed, true},
        {"ok", AckStatus::completed, true},
        {"failed", AckStatus::failed, true},
        {"Failed", AckStatus::failed, true},
        {"retry", AckStatus::retry, true},
        {"dlq", AckStatus::dlq, true},
        {"complete", AckStatus::failed, false},
        {"done", AckStatus::failed, false},
        {" ok", AckStatus::failed, false},
    };
    for (const auto& word : words) {
        Api api;
        const auto reply =
            api.ask("POST", "/api/v1/ack", one(R"(,"status":")" + std::string(word.word) + "\""));
        EXPECT_EQ(reply.status, 200) << word.word;
        ASSERT_EQ(api.store.acks.size(), 1u);
        EXPECT_EQ(api.store.acks[0].items.at(0).status, word.status) << word.word;
        if (word.known) {
            EXPECT_EQ(at(reply.body, "0.error"), "null") << word.word;
        } else {
            EXPECT_THAT(at(reply.body, "0.error"), HasSubstr(word.word));
        }
    }
}

TEST(AckRoute, K37AStatusThatIsNoWordIs400NamingTheWords) {
    for (const char* value : {"\"\"", "1", "true", "{}", "[\"ok\"]"}) {
        Api api;
        const auto reply = api.ask("POST", "/api/v1/ack", one(std::string(",\"status\":") + value));
        EXPECT_EQ(reply.status, 400) << value;
        EXPECT_THAT(at(reply.body, "error"), HasSubstr("completed, success, acked, ok, failed"));
        EXPECT_EQ(api.store.calls, 0u);
    }
}

TEST(AckRoute, ABadBodyIs400AndTheItemIsNamed) {
    const struct {
        const char* path;
        std::string body, error;
    } bodies[] = {
        {"/api/v1/ack", "", "bad body: "},
        {"/api/v1/ack", "[]", "bad body: the body is not an object"},
        {"/api/v1/ack", R"({"transactionId":5})", "bad body: transactionId is not a string"},
        {"/api/v1/ack", R"({"leaseId":{}})", "bad body: leaseId is not a string"},
        {"/api/v1/ack", R"({"consumerGroup":7})", "bad body: consumerGroup is not a string"},
        {"/api/v1/ack/batch", "{", "bad body: "},
        {"/api/v1/ack/batch", "{}", "bad body: acknowledgments is required"},
        {"/api/v1/ack/batch", R"({"acknowledgments":null})",
         "bad body: acknowledgments is required"},
        {"/api/v1/ack/batch", R"({"acknowledgments":{}})",
         "bad body: acknowledgments is not an array"},
        {"/api/v1/ack/batch", batch(R"({"transactionId":"a"},7)"),
         "bad body: item 1: an acknowledgment is not an object"},
        {"/api/v1/ack/batch", batch(R"({"partitionId":false})"),
         "bad body: item 0: partitionId is not a string"},
    };
    for (const auto& asked : bodies) {
        Api api;
        const auto reply = api.ask("POST", asked.path, asked.body);
        EXPECT_EQ(reply.status, 400) << asked.body;
        EXPECT_THAT(at(reply.body, "error"), StartsWith(asked.error)) << asked.body;
        EXPECT_EQ(at(reply.body, "code"), "bad_body");
        EXPECT_EQ(api.store.calls, 0u);
    }
}

TEST(AckRoute, AnItemWithoutAddressIsAnItemResult) {
    Api api;
    const auto reply = api.ask("POST", "/api/v1/ack", R"({"transactionId":"t"})");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(at(reply.body, "0.success"), "false");
    EXPECT_THAT(at(reply.body, "0.error"), HasSubstr("partitionId"));
}

TEST(AckRoute, ABodyBeyondItsLimitIs413) {
    Api api;
    const auto reply =
        api.ask("POST", "/api/v1/ack",
                one(",\"error\":\"" + std::string(http::kMaxAckBodyBytes, 'x') + '"'));
    EXPECT_EQ(reply.status, 413);
    EXPECT_EQ(at(reply.body, "code"), "too_large");
}

// K20, K45: the reason never makes the ack fail.
TEST(AckRoute, K20AnyReasonIsAccepted) {
    const struct {
        const char* json;
        std::string kept;
    } reasons[] = {
        {R"("a\u0000b\u0000")", "a\xEF\xBF\xBD"
                                "b\xEF\xBF\xBD"},
        {R"("say \"no\"")", "say \"no\""},
        {R"({"code":[1,2.50,null,true],"x":"y"})", R"({"code":[1,2.50,null,true],"x":"y"})"},
        {"17", "17"},
        {"null", ""}};
    for (const auto& reason : reasons) {
        const std::string body = one(std::string(R"(,"status":"failed","error":)") + reason.json);
        const auto request = http::read_ack(kDefaultTenant, body);
        ASSERT_TRUE(request) << reason.json;
        EXPECT_EQ(request->items.at(0).error, reason.kept);
        EXPECT_EQ(request->items.at(0).status, AckStatus::failed);
    }
}

// K45: a reason is as long as the body allows, and kept as far as is useful.
TEST(AckRoute, K45OfALongReasonTheFirst64KiBAreKeptAndNoCharacterIsCut) {
    const auto kept = [](const std::string& reason) {
        const auto request =
            http::read_ack(kDefaultTenant, one(R"(,"status":"failed","error":")" + reason + "\""));
        return request.value().items.at(0).error;
    };
    constexpr auto kMost = http::kMaxReasonBytes;
    EXPECT_EQ(kept(std::string(kMost, 'x')).size(), kMost);
    EXPECT_EQ(kept(std::string(1 << 20, 'x')).size(), kMost);
    EXPECT_EQ(kept(std::string(kMost - 1, 'x') + "\xC3\xA4").size(), kMost - 1);
    EXPECT_EQ(kept(std::string(kMost - 2, 'x') + "\xC3\xA4").size(), kMost);
    std::string zeros;
    for (std::size_t i = 0; i < kMost; ++i) {
        zeros += R"(\u0000)";
    }
    EXPECT_EQ(kept(zeros).size(), kMost / 3 * 3);
}

/// What a pop of the queue "q" delivers, and its lease.
struct Delivered {
    std::string lease;
    std::vector<std::string> ids;
};
Delivered pop(Api& api, const std::string& parameters = "") {
    const auto body = api.ask("GET", "/api/v1/pop/queue/q?consumerGroup=g" + parameters).body;
    Delivered delivered{at(body, "leaseId"), {}};
    for (int i = 0; at(body, "messages." + std::to_string(i) + ".transactionId") != "<missing>";
         ++i) {
        delivered.ids.push_back(at(body, "messages." + std::to_string(i) + ".transactionId"));
    }
    return delivered;
}
http::Reply ack(Api& api, const Delivered& what) {
    std::string items;
    for (const auto& id : what.ids) {
        items += (items.empty() ? "" : ",") + (R"({"transactionId":")" + id) +
                 R"(","partitionId":")" + to_string(FakeStore::partition_id("q", "Default")) +
                 R"(","leaseId":")" + what.lease + R"("})";
    }
    return api.ask("POST", "/api/v1/ack/batch", batch(items, R"(,"consumerGroup":"g")"));
}

// AR-2, AR-3
TEST(AckRoute, AWholeBatchIsAckedByItsPositionAndAPartByItsHashes) {
    Api api;
    api.ask("POST", "/api/v1/push",
            R"({"items":[{"queue":"q","payload":1,"transactionId":"a"},)"
            R"({"queue":"q","payload":2,"transactionId":"b"}]})");
    const auto first = pop(api);
    ASSERT_EQ(first.ids.size(), 2u);
    const auto reply = ack(api, first);
    ASSERT_EQ(api.store.whole.size(), 1u);
    EXPECT_EQ(api.store.whole[0].first, Offset{0});
    EXPECT_EQ(api.store.whole[0].last, Offset{1});
    EXPECT_EQ(api.store.whole[0].worker, first.lease);
    EXPECT_EQ(api.store.whole[0].group, "g");
    EXPECT_EQ(api.store.acks.size(), 0u);
    EXPECT_EQ(reply.body, R"([{"index":0,"transactionId":"a","success":true,"error":null,)"
                          R"("leaseReleased":true,"dlq":false,"noop":false},)"
                          R"({"index":1,"transactionId":"b","success":true,"error":null,)"
                          R"("leaseReleased":true,"dlq":false,"noop":false}])");
    api.ask("POST", "/api/v1/push",
            R"({"items":[{"queue":"q","payload":1,"transactionId":"c"},)"
            R"({"queue":"q","payload":2,"transactionId":"d"}]})");
    auto second = pop(api);
    second.ids.pop_back();
    ack(api, second);
    EXPECT_EQ(api.store.whole.size(), 1u);
    EXPECT_EQ(api.store.acks.size(), 1u);
}

TEST(AckRoute, WhatAnAnswerHadNoRoomForIsNotKnownAsDelivered) {
    Api api;
    api.settings.limits.answer_bytes = 400;
    for (const char* partition : {"a", "b"}) {
        api.ask("POST", "/api/v1/push",
                R"({"items":[{"queue":"q","partition":")" + std::string(partition) +
                    R"(","payload":1,"transactionId":"x"}]})");
    }
    const auto popped = pop(api, "&partitions=2");
    ASSERT_EQ(popped.ids.size(), 1u);
    ASSERT_EQ(api.store.released.size(), 1u);
    const auto item = [&](const char* partition) {
        return R"({"transactionId":"x","partitionId":")" +
               to_string(FakeStore::partition_id("q", partition)) + R"(","leaseId":")" +
               popped.lease + R"("})";
    };
    api.ask("POST", "/api/v1/ack/batch",
            batch(item("a") + "," + item("b"), R"(,"consumerGroup":"g")"));
    ASSERT_EQ(api.store.whole.size(), 1u);
    EXPECT_EQ(api.store.whole[0].partition_id, FakeStore::partition_id("q", "a"));
    ASSERT_EQ(api.store.acks.size(), 1u);
    EXPECT_EQ(api.store.acks[0].partition_id, FakeStore::partition_id("q", "b"));
}

} // namespace
} // namespace queen::test
