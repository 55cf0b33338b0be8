#include "http/push_reader.hpp"
#include "http/routes/api.hpp"
#include "model/frame.hpp"
#include "model/segment.hpp"

namespace queen::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string error_of(Api& api, const std::string& body, int status = 400) {
    const auto reply = api.ask("POST", "/api/v1/push", body);
    EXPECT_EQ(reply.status, status) << body;
    EXPECT_EQ(api.store.calls, 0u) << body;
    return at(reply.body, "error");
}

std::string item(const std::string& members) {
    return R"({"items":[{)" + members + "}]}";
}

std::vector<std::string> payloads(const PushSegment& segment) {
    std::vector<std::string> out;
    const auto bytes = decompress_segment(segment.blob);
    const auto frames = parse_frames(*bytes);
    for (const Frame& frame : *frames) {
        out.emplace_back(frame.payload);
    }
    return out;
}

TEST(PushRoute, AnswersAnArrayInInputOrderWithTheContractsFields) {
    Api api;
    const auto reply = api.ask("POST", "/api/v1/push",
                               R"({"items":[
        {"queue":"bikes.rent","partition":"dock-9","payload":{"n":4},"transactionId":"tx-4"},
        {"queue":"bikes.rent","partition":"dock-9","payload":{"n":4},"transactionId":"tx-4"},
        {"queue":"other","payload":null}]})");
    EXPECT_EQ(reply.status, 201);
    EXPECT_EQ(at(reply.body, ""), "[3]");
    const std::string first_id = at(reply.body, "0.message_id");
    EXPECT_EQ(first_id.size(), 36u);
    EXPECT_EQ(at(reply.body, "0"), "{6}");
    EXPECT_EQ(at(reply.body, "0.index"), "0");
    EXPECT_EQ(at(reply.body, "0.transaction_id"), "tx-4");
    EXPECT_EQ(at(reply.body, "0.queueName"), "bikes.rent");
    EXPECT_EQ(at(reply.body, "0.status"), "queued");
    EXPECT_EQ(at(reply.body, "0.offset"), "0");
    EXPECT_EQ(at(reply.body, "1.index"), "1");
    EXPECT_EQ(at(reply.body, "1.status"), "duplicate");
    EXPECT_EQ(at(reply.body, "1.message_id"), first_id);
    EXPECT_EQ(at(reply.body, "1.offset"), "0");
    EXPECT_EQ(at(reply.body, "2.queueName"), "other");
    EXPECT_EQ(at(reply.body, "2.transaction_id"), at(reply.body, "2.message_id")); // minted
    ASSERT_EQ(api.store.pushed.size(), 2u);
    EXPECT_EQ(api.store.pushed[1].partition, "Default");
    EXPECT_EQ(api.store.pushed[0].tenant, kDefaultTenant);
}

TEST(PushRoute, NoItemsAreAnEmptyAnswer) {
    Api api;
    const auto reply = api.ask("POST", "/api/v1/push", R"({"items":[]})");
    EXPECT_EQ(reply.status, 201);
    EXPECT_EQ(reply.body, "[]");
    EXPECT_EQ(api.store.calls, 0u);
}

TEST(PushRoute, AnItemThatWasNotStoredSaysWhyAndTheRequestIsStill201) {
    Api api;
    api.store.broken = Error{Errc::store_failed, "value too \"long\"", "22001"};
    const auto reply = api.ask("POST", "/api/v1/push", item(R"("queue":"q","payload":1)"));
    EXPECT_EQ(reply.status, 201);
    EXPECT_EQ(at(reply.body, "0.status"), "error");
    EXPECT_EQ(at(reply.body, "0.error"), "value too \"long\"");
    EXPECT_EQ(at(reply.body, "0.offset"), "<missing>");
}

// K23: what a number means is the consumer's business; its digits are not ours to round.
TEST(PushRoute, K23PayloadsAreStoredByteForByte) {
    const std::string odd[] = {
        R"({"i":9007199254740993,"j":18446744073709551616,"e":1e400,)"
        R"("d":0.1000000000000000055511151231257827,"z":-0.0,"f":1.0})",
        R"({ "spaced" :	[ 1 , 2 ],"dup":1,"dup":2 })",
        R"("é\u00e9\/\ud83d\ude00")",
        "-0.0",
        "12345678901234567890123456789",
        "true",
        "null",
        "[]",
        "{}",
        R"("")",
        R"([[[{"queue":"x","payload":{"items":[]}}]]])",
    };
    Api api;
    std::string body = R"({"before":[{"items":1}], "items" : [)";
    for (const auto& payload : odd) {
        body += R"({"extra":{"payload":7},"queue":"q", "payload" : )" + payload +
                R"(  ,"traceId":"t","bufferMs":[1,{"payload":0}]} ,)";
    }
    body.back() = ']';
    body += R"(,"after":{"items":[]}})";
    const auto reply = api.ask("POST", "/api/v1/push", body);
    ASSERT_EQ(reply.status, 201) << reply.body;
    ASSERT_EQ(api.store.pushed.size(), 1u);
    EXPECT_THAT(payloads(api.store.pushed[0]), testing::ElementsAreArray(odd));
}

TEST(PushRoute, OfARepeatedKeyTheLastCounts) {
    Api api;
    api.ask("POST", "/api/v1/push",
            R"({"items":[{"queue":"old","payload":1}],)"
            R"("items":[{"queue":"a","queue":"b","payload":{"x":1},"payload":2}]})");
    ASSERT_EQ(api.store.pushed.size(), 1u);
    EXPECT_EQ(api.store.pushed[0].queue, "b");
    EXPECT_THAT(payloads(api.store.pushed[0]), testing::ElementsAre("2"));
}

// K20: a NUL inside a payload is data; in a name or an id it is refused, and named.
TEST(PushRoute, K20ANulEscapeRoundTripsInAPayloadAndIsRefusedInNames) {
    Api api;
    const auto stored = api.ask("POST", "/api/v1/push",
                                R"({"items":[{"queue":"q","payload":1},)"
                                R"({"queue":"q","payload":{"a\u0000b":"\u0000"}},)"
                                R"({"queue":"q","payload":3}]})");
    EXPECT_EQ(stored.status, 201);
    EXPECT_THAT(payloads(api.store.pushed.at(0)),
                testing::ElementsAre("1", R"({"a\u0000b":"\u0000"})", "3"));
    for (const char* members :
         {R"("queue":"a\u0000","payload":1)", R"("queue":"q","partition":"\u001f","payload":1)",
          R"("queue":"q","transactionId":"x\u0000","payload":1)",
          R"("queue":"a\tb","payload":1)"}) {
        const auto reply = api.ask("POST", "/api/v1/push", item(members));
        EXPECT_EQ(reply.status, 400) << members;
        EXPECT_EQ(at(reply.body, "code"), "bad_body");
        EXPECT_EQ(at(reply.body, "error"),
                  "bad body: control characters are not allowed in queue, partition or "
                  "transactionId (item 0)");
    }
}

TEST(PushRoute, EscapesInNamesAreDecoded) {
    Api api;
    api.ask("POST", "/api/v1/push",
            item(R"("queue":"a\"b\\c\/d","partition":"\u65e5\ud83d\ude00","payload":1)"));
    ASSERT_EQ(api.store.pushed.size(), 1u);
    EXPECT_EQ(api.store.pushed[0].queue, "a\"b\\c/d");
    EXPECT_EQ(api.store.pushed[0].partition, "日😀");
}

TEST(PushRoute, NullAndEmptyPartitionMeanDefaultAndNullTransactionIdIsMinted) {
    Api api;
    const auto reply =
        api.ask("POST", "/api/v1/push",
                R"({"items":[{"queue":"q","partition":null,"payload":1},)"
                R"({"queue":"q","partition":"","transactionId":null,"payload":2}]})");
    ASSERT_EQ(api.store.pushed.size(), 1u);
    EXPECT_EQ(api.store.pushed[0].partition, "Default");
    EXPECT_EQ(at(reply.body, "1.transaction_id"), at(reply.body, "1.message_id"));
}

TEST(PushRoute, ABodyThatIsNotAPushIsRefusedBeforeAnythingIsStored) {
    Api api;
    EXPECT_THAT(error_of(api, ""), StartsWith("bad body: "));
    EXPECT_THAT(error_of(api, "{"), StartsWith("bad body: "));
    EXPECT_THAT(error_of(api, R"({"items":[]} x)"), StartsWith("bad body: "));
    EXPECT_THAT(error_of(api, "{\"items\":[],\"x\":\"\xff\"}"), StartsWith("bad body: "));
    EXPECT_THAT(error_of(api, R"({"items":[{"queue":"q","payload":01}]})"),
                StartsWith("bad body: "));
    EXPECT_EQ(error_of(api, "[]"), "bad body: the body is not an object");
    EXPECT_EQ(error_of(api, "7"), "bad body: the body is not an object");
    EXPECT_EQ(error_of(api, "null"), "bad body: the body is not an object");
    EXPECT_EQ(error_of(api, "{}"), "bad body: items is required");
    EXPECT_EQ(error_of(api, R"({"items":null})"), "bad body: items is required");
    EXPECT_EQ(error_of(api, R"({"items":{}})"), "bad body: items is not an array");
    EXPECT_EQ(error_of(api, R"({"items":"x"})"), "bad body: items is not an array");
    EXPECT_EQ(error_of(api, R"({"items":[[]]})"), "bad body: item 0 is not an object");
    EXPECT_EQ(error_of(api, R"({"items":[null]})"), "bad body: item 0 is not an object");
}

TEST(PushRoute, TheItemAtFaultIsNamedByItsIndex) {
    Api api;
    const std::string good = R"({"items":[{"queue":"q","payload":1},{)";
    const auto with = [&](const char* members) { return good + members + "}]}"; };
    EXPECT_EQ(error_of(api, with(R"("payload":1)")), "bad body: queue of item 1 is missing");
    EXPECT_EQ(error_of(api, with(R"("queue":null,"payload":1)")),
              "bad body: queue of item 1 is missing");
    EXPECT_EQ(error_of(api, with(R"("queue":"q")")), "bad body: payload of item 1 is missing");
    EXPECT_EQ(error_of(api, with(R"("queue":7,"payload":1)")),
              "bad body: queue of item 1 is not a string");
    EXPECT_EQ(error_of(api, with(R"("queue":{"queue":"q"},"payload":1)")),
              "bad body: queue of item 1 is not a string");
    EXPECT_EQ(error_of(api, with(R"("queue":"q","partition":["p"],"payload":1)")),
              "bad body: partition of item 1 is not a string");
    EXPECT_EQ(error_of(api, with(R"("queue":"q","transactionId":true,"payload":1)")),
              "bad body: transactionId of item 1 is not a string");
    EXPECT_THAT(error_of(api, with(R"("queue":"","payload":1)")), HasSubstr("item 1: queue"));
    EXPECT_THAT(error_of(api, with(R"("queue":"q","transactionId":"","payload":1)")),
                HasSubstr("item 1: transactionId"));
}

TEST(PushRoute, TheTransactionIdLimitIsExact) {
    Api api;
    const auto body = [](std::size_t bytes) {
        return item(R"("queue":"q","payload":1,"transactionId":")" + std::string(bytes, 'x') + '"');
    };
    EXPECT_EQ(error_of(api, body(65536)),
              "bad body: transactionId of item 0 exceeds the 65535-byte limit");
    EXPECT_EQ(api.ask("POST", "/api/v1/push", body(65535)).status, 201);
}

TEST(PushRoute, PayloadsMayNestToTheParsersDepthAndNoDeeper) {
    Api api;
    const auto nested = [](std::size_t depth) {
        return item(R"("queue":"q","payload":)" + std::string(depth, '[') +
                    std::string(depth, ']'));
    };
    EXPECT_EQ(api.ask("POST", "/api/v1/push", nested(json::kMaxDepth - 3)).status, 201);
    EXPECT_EQ(api.ask("POST", "/api/v1/push", nested(json::kMaxDepth)).status, 400);
    EXPECT_EQ(api.ask("POST", "/api/v1/push", nested(1'000'000)).status, 400);
}

TEST(PushRoute, ARequestHasAtMostSoManyItems) {
    Api api;
    std::string body = R"({"items":[)";
    for (std::size_t i = 0; i <= http::kMaxPushItems; ++i) {
        body += R"({"queue":"q","payload":1},)";
    }
    body.back() = ']';
    body += '}';
    EXPECT_THAT(error_of(api, body, 413), HasSubstr("more than 100000 items"));
}

} // namespace
} // namespace queen::test
