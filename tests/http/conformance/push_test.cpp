// POST /api/v1/push.
#include "http/conformance/conformance.hpp"

namespace queen::test {
namespace {

using testing::AnyOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::SizeIs;
using testing::StartsWith;

constexpr const char* kUuid7 =
    "[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}";

class PushContract : public ConformanceTest {
protected:
    /// One item with these members beside the queue's.
    Answer push_item(const std::string& members) {
        return post("/api/v1/push",
                    R"({"items":[{"queue":)" + json::quoted(queue()) + members + "}]}");
    }
    void expect_refused(const Answer& answer, const std::string& text) {
        EXPECT_EQ(answer.status(), 400) << testing::PrintToString(answer);
        EXPECT_THAT(answer.at("error"), StartsWith("bad body: "));
        EXPECT_THAT(answer.at("error"), HasSubstr(text));
        EXPECT_EQ(answer.at("code"), "bad_body");
    }
};

TEST_F(PushContract, AnswersAnArrayInInputOrder) {
    const auto answer = post("/api/v1/push", R"({"items":[
        {"queue":")" + queue() + R"(","partition":"a","payload":1,"transactionId":"x"},
        {"queue":")" + queue() + R"(","payload":null},
        {"queue":")" + queue() + R"(","partition":"a","payload":[],"transactionId":"y"}]})");
    EXPECT_EQ(answer.status(), 201);
    EXPECT_THAT(answer.response().header("Content-Type"), StartsWith("application/json"));
    EXPECT_THAT(answer.column("", "index"), ElementsAre("0", "1", "2"));
    EXPECT_THAT(answer.column("", "status"), Each("queued"));
    EXPECT_THAT(answer.column("", "queueName"), Each(queue()));
    EXPECT_THAT(answer.column("", "offset"), ElementsAre("0", "0", "1"));
    EXPECT_THAT(answer.column("", "message_id"), Each(MatchesRegex(kUuid7)));
    EXPECT_EQ(answer.at("0.transaction_id"), "x");
    EXPECT_EQ(answer.at("1.transaction_id"), answer.at("1.message_id"));
    EXPECT_THAT(answer.keys("0"), ElementsAre("index", "message_id", "offset", "queueName",
                                              "status", "transaction_id"));
}

TEST_F(PushContract, NoItemsAreAnEmptyAnswer) {
    const auto answer = post("/api/v1/push", R"({"items":[]})");
    EXPECT_EQ(answer.status(), 201);
    EXPECT_EQ(answer.body(), "[]");
}

TEST_F(PushContract, WithoutAPartitionAMessageGoesToDefault) {
    push_item(R"(,"payload":1,"transactionId":"absent")");
    push_item(R"(,"payload":1,"transactionId":"null","partition":null)");
    push_item(R"(,"payload":1,"transactionId":"empty","partition":"")");
    const auto messages = take(queue(), "batch=10");
    ASSERT_THAT(messages, SizeIs(3));
    for (const auto& message : messages) {
        EXPECT_EQ(message.partition, "Default");
    }
}

TEST_F(PushContract, FieldsNobodyKnowsAreIgnored) {
    const auto answer = push_item(
        R"(,"payload":1,"traceId":"dropped","producerSub":"forged","bufferMs":5,"more":{"a":[]})");
    EXPECT_EQ(answer.status(), 201);
    const auto popped = get(pop_path(queue(), "wait=true&timeout=2000"));
    const auto again = popped.status() == 200 ? popped : get(pop_path(queue(), "wait=true"));
    EXPECT_EQ(again.at("messages.0.traceId"), "null");
    EXPECT_EQ(again.at("messages.0.producerSub"), "null");
}

TEST_F(PushContract, ADuplicateNamesTheFirstOnesIdAndOffset) {
    const auto first = push(queue(), "p", {"1", "2"}, {"a", "b"});
    const auto again = post("/api/v1/push", R"({"items":[
        {"queue":")" + queue() + R"(","partition":"p","payload":9,"transactionId":"b"},
        {"queue":")" + queue() + R"(","partition":"p","payload":9,"transactionId":"c"},
        {"queue":")" + queue() + R"(","partition":"other","payload":9,"transactionId":"b"}]})");
    EXPECT_EQ(again.status(), 201);
    EXPECT_THAT(again.column("", "status"), ElementsAre("duplicate", "queued", "queued"));
    EXPECT_EQ(again.at("0.message_id"), first.at("1.message_id"));
    EXPECT_EQ(again.at("0.offset"), "1");
    EXPECT_EQ(again.at("1.offset"), "2");
    EXPECT_EQ(again.at("2.offset"), "0");
}

TEST_F(PushContract, ARepeatInsideOneRequestTakesTheLeadersResult) {
    const auto answer = push(queue(), "p", {"1"}, {"once"});
    const auto both = post("/api/v1/push", R"({"items":[
        {"queue":")" + queue() + R"(","partition":"p","payload":1,"transactionId":"n"},
        {"queue":")" + queue() + R"(","partition":"p","payload":2,"transactionId":"n"},
        {"queue":")" + queue() + R"(","partition":"p","payload":3,"transactionId":"once"},
        {"queue":")" + queue() + R"(","partition":"p","payload":4,"transactionId":"once"}]})");
    EXPECT_THAT(both.column("", "status"),
                ElementsAre("queued", "duplicate", "duplicate", "duplicate"));
    EXPECT_EQ(both.at("1.message_id"), both.at("0.message_id"));
    EXPECT_EQ(both.at("1.offset"), both.at("0.offset"));
    EXPECT_EQ(both.at("3.message_id"), answer.at("0.message_id"));
    std::vector<std::string> data;
    for (const auto& message : take(queue(), "batch=10")) {
        data.push_back(message.data);
    }
    EXPECT_THAT(data, ElementsAre("1", "1"));
}

TEST_F(PushContract, ADedupWindowOfZeroKnowsNoDuplicates) {
    const auto configured =
        post("/api/v1/configure",
             R"({"queue":")" + queue() + R"(","options":{"dedupWindowSeconds":0}})");
    ASSERT_EQ(configured.status(), 200);
    push(queue(), "p", {"1"}, {"same"});
    push(queue(), "p", {"2"}, {"same"});
    EXPECT_THAT(take(queue(), "batch=10"), SizeIs(2));
}

TEST_F(PushContract, AFirstPushMakesTheQueueWithLabelsOfItsName) {
    const std::string name = "pushns.pushtask." + queue();
    push(name, "p", {"1"});
    const auto detail = get("/api/v1/resources/queues/" + name);
    EXPECT_EQ(detail.at("namespace"), "pushns");
    EXPECT_EQ(detail.at("task"), "pushtask");
    EXPECT_EQ(detail.at("options.leaseTime"), "60");
    push(queue(), "p", {"1"});
    const auto plain = get("/api/v1/resources/queues/" + queue());
    EXPECT_EQ(plain.at("namespace"), queue());
    EXPECT_EQ(plain.at("task"), "");
}

TEST_F(PushContract, PayloadsComeBackByteForByte) {
    const std::vector<std::string> payloads{
        "null",
        "true",
        "\"text with \\u0000 and \\\" and \xc3\xa9\"",
        R"({"i":9007199254740993,"j":18446744073709551616,"e":1e400,"z":-0.0,"f":1.0})",
        R"({ "b" : 1 , "a" : [ ] })",
        "0.1000000000000000055511151231257827",
        "[[[[]]]]",
        "\"\""};
    push(queue(), "p", payloads);
    const auto path = pop_path(queue(), "batch=100&wait=true&timeout=5000");
    auto popped = get(path);
    for (int i = 0; i < 5 && popped.status() == 204; ++i) {
        popped = get(path);
    }
    ASSERT_EQ(popped.size("messages"), payloads.size()) << testing::PrintToString(popped);
    for (const auto& payload : payloads) {
        EXPECT_THAT(popped.body(), HasSubstr("\"data\":" + payload + ","));
    }
}

TEST_F(PushContract, WhatIsNoPushIsRefusedAsAWhole) {
    expect_refused(post("/api/v1/push", ""), "");
    expect_refused(post("/api/v1/push", "{"), "");
    expect_refused(post("/api/v1/push", "[]"), "");
    expect_refused(post("/api/v1/push", "{}"), "items");
    expect_refused(post("/api/v1/push", R"({"items":{}})"), "items");
    expect_refused(post("/api/v1/push", R"({"items":[1]})"), "item 0");
    expect_refused(post("/api/v1/push", R"({"items":[{"payload":1}]})"), "queue");
    expect_refused(push_item(""), "payload");
    expect_refused(push_item(R"(,"payload":1,"partition":5)"), "partition");
    expect_refused(push_item(R"(,"payload":1,"transactionId":5)"), "transactionId");
    expect_refused(push_item(R"(,"payload":1,"transactionId":")" + std::string(65'536, 'x') + "\""),
                   "65535");
    expect_refused(push_item(R"(,"payload":1,"transactionId":"a\u0001b")"), "control characters");
    expect_refused(push_item(R"(,"payload":1,"partition":"a\u0000b")"), "control characters");
    // A faulty neighbour stores nothing.
    const auto mixed =
        post("/api/v1/push", R"({"items":[{"queue":")" + queue() + R"(","payload":1},{"queue":")" +
                                 queue() + R"("}]})");
    expect_refused(mixed, "item 1");
    EXPECT_EQ(get("/api/v1/resources/queues/" + queue()).status(), 404);
}

TEST_F(PushContract, TheLongestTransactionIdIsTakenAndTheNextOneRefused) {
    const std::string longest(65'535, 'x');
    push(queue(), "p", {"1"}, {longest});
    const auto messages = take(queue());
    ASSERT_THAT(messages, SizeIs(1));
    EXPECT_EQ(messages[0].transaction_id, longest);
    EXPECT_THAT(ack(messages[0]).column("", "success"), ElementsAre("true"));
}

// K24: the same verdict everywhere, and no two names share data.
TEST_F(PushContract, K24_NamesThatNobodyCouldUseAreRefused) {
    for (const std::string name : {"", ".", ".."}) {
        const auto answer =
            post("/api/v1/push", R"({"items":[{"queue":")" + name + R"(","payload":1}]})");
        EXPECT_EQ(answer.status(), 400) << name;
        EXPECT_THAT(answer.at("error"), HasSubstr("queue"));
    }
    const auto longer = post("/api/v1/push", R"({"items":[{"queue":")" + std::string(256, 'q') +
                                                 R"(","payload":1}]})");
    EXPECT_THAT(longer.status(), AnyOf(400, 413));
    const auto together = post("/api/v1/push", R"({"items":[{"queue":")" + std::string(220, 'q') +
                                                   R"(","partition":")" + std::string(220, 'p') +
                                                   R"(","payload":1}]})");
    EXPECT_EQ(together.status(), 413);
    EXPECT_EQ(together.at("code"), "name_too_long");
}

// K21, K25: odd names work through body and path alike.
TEST_F(PushContract, K21_OddNamesGoThroughEveryStep) {
    for (const std::string name :
         {"a&b", "a\\\"b", "a\\\\b", "a/b", "\xc3\xa9", "\xe6\x97\xa5\xe6\x9c\xac",
          "\xf0\x9f\x90\x9d", "'", "<x>", "a b", "a+b", "a%b", "null", "undefined"}) {
        const auto parsed = json::Document::parse("\"" + name + "\"");
        ASSERT_TRUE(parsed) << name;
        const std::string plain(parsed->root().string());
        const std::string queue_name = queue("-" + plain);
        push(queue_name, plain, {"1"}, {plain});
        const auto messages = take(queue_name);
        ASSERT_THAT(messages, SizeIs(1)) << plain;
        EXPECT_EQ(messages[0].partition, plain);
        EXPECT_EQ(messages[0].transaction_id, plain);
        EXPECT_THAT(ack(messages[0]).column("", "success"), ElementsAre("true")) << plain;
    }
}

} // namespace
} // namespace queen::test
