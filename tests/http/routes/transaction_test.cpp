#include "base/text.hpp"
#include "http/routes/api.hpp"
#include "http/transaction_reader.hpp"
#include "model/frame.hpp"
#include "model/segment.hpp"

namespace queen::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

http::Reply ask(Api& api, const std::string& body) {
    return api.ask("POST", "/api/v1/transaction", body);
}

std::string operations(const std::string& all, const std::string& more = "") {
    return R"({"operations":[)" + all + "]" + more + "}";
}

std::string ack(const std::string& members = "") {
    return R"({"type":"ack","transactionId":"in-1","partitionId":")" + std::string(kPartitionId) +
           "\"" + members + "}";
}

std::vector<std::string> payloads(const PushSegment& segment) {
    const auto bytes = decompress_segment(segment.blob);
    std::vector<std::string> all;
    const auto frames = parse_frames(*bytes);
    for (const auto& frame : *frames) {
        all.emplace_back(frame.payload);
    }
    return all;
}

/// Refused as the contract says, with this text, and without the store.
void expect_refusal(const std::string& body, const std::string& text, int status = 400,
                    const std::string& reason = "bad_request") {
    Api api;
    const auto reply = ask(api, body);
    EXPECT_EQ(reply.status, status) << body;
    EXPECT_EQ(at(reply.body, "success"), "false");
    EXPECT_EQ(at(reply.body, "reason"), reason) << reply.body;
    EXPECT_THAT(at(reply.body, "error"), HasSubstr(text)) << body;
    EXPECT_EQ(at(reply.body, "results"), "[0]");
    EXPECT_TRUE(parse_uuid(at(reply.body, "transactionId")));
    EXPECT_THAT(api.transactions.calls, IsEmpty());
}

TEST(TransactionRoute, AnswersOneElementAnItemInTheContractsForm) {
    Api api;
    const auto reply = ask(
        api, operations(R"({"type":"push","items":[{"queue":"q","payload":1,"transactionId":"a"},)"
                        R"({"queue":"r","partition":"p","data":2,"transactionId":"b"}]},)" +
                        ack() + R"(,{"type":"push","queue":"q","transactionId":"a"})"));
    EXPECT_EQ(reply.status, 200);
    const auto id = at(reply.body, "transactionId");
    const auto message = at(reply.body, "results.0.messageId");
    EXPECT_TRUE(parse_uuid(message));
    EXPECT_EQ(reply.body,
              R"({"transactionId":")" + id + R"(","success":true,"results":[)" +
                  R"({"index":0,"type":"push","success":true,"transactionId":"a","messageId":")" +
                  message + R"(","queueName":"q"},)" +
                  R"({"index":1,"type":"push","success":true,"transactionId":"b","messageId":")" +
                  at(reply.body, "results.1.messageId") + R"(","queueName":"r"},)" +
                  R"({"index":2,"type":"ack","success":true,"transactionId":"in-1","error":null,)" +
                  R"("dlq":false},)" +
                  R"({"index":3,"type":"push","success":true,"transactionId":"a","messageId":")" +
                  message + R"(","queueName":"q","duplicate":true}]})");
    ASSERT_EQ(api.transactions.calls.size(), 1u);
    const auto& segments = api.transactions.calls[0].segments;
    ASSERT_EQ(segments.size(), 2u);
    EXPECT_EQ(segments[0].partition, "Default");
    EXPECT_THAT(payloads(segments[0]), ElementsAre("1"));
    EXPECT_THAT(payloads(segments[1]), ElementsAre("2"));
}

// K23: bytes as sent, whatever they are; the flat form is the same as one item.
TEST(TransactionRoute, PayloadsAreStoredByteForByteWithTheirTraceId) {
    Api api;
    const std::string payload = R"({"i":18446744073709551615, "e":1e400,"s":"é\u0000"})";
    const auto reply = ask(
        api, operations(R"({"payload":)" + payload + R"(,"type":"push","queue":"q","traceId":")" +
                        std::string(kPartitionId) +
                        R"("},{"type":"push","queue":"q","traceId":"no uuid","data":[1, 2]},)"
                        R"({"type":"push","queue":"q","payload":null,"data":1},)"
                        R"({"type":"push","queue":"q"})"));
    EXPECT_EQ(reply.status, 200) << reply.body;
    const auto& segment = api.transactions.calls.at(0).segments.at(0);
    EXPECT_THAT(payloads(segment), ElementsAre(payload, "[1, 2]", "null", "{}"));
    const auto bytes = decompress_segment(segment.blob);
    const auto frames = parse_frames(*bytes);
    EXPECT_EQ(frames.value().at(0).trace_id, *parse_uuid(kPartitionId));
    EXPECT_FALSE(frames.value().at(1).trace_id.known());
    EXPECT_EQ(at(reply.body, "results.0.transactionId"), at(reply.body, "results.0.messageId"));
}

TEST(TransactionRoute, AcksKeepWhatTheySay) {
    Api api;
    const auto reply = ask(
        api, operations(ack(R"(,"status":"FAILED","consumerGroup":"g","leaseId":")" +
                            std::string(kLeaseId) + R"(","error":{"why":"\u0000"})") +
                            "," + ack(R"(,"status":null,"consumerGroup":"","leaseId":null)") + "," +
                            ack(R"(,"status":"complete","leaseId":"mine")"),
                        R"(,"requiredLeases":[")" + std::string(kLeaseId) + R"(",null,"","x"])"));
    EXPECT_EQ(reply.status, 200) << reply.body;
    const auto& call = api.transactions.calls.at(0);
    ASSERT_EQ(call.acks.size(), 3u);
    EXPECT_EQ(call.acks[0].group, "g");
    EXPECT_EQ(call.acks[0].lease_id, kLeaseId);
    EXPECT_EQ(call.acks[0].status, AckStatus::failed);
    EXPECT_EQ(call.acks[1].group, "__QUEUE_MODE__");
    EXPECT_EQ(call.acks[1].lease_id, "");
    EXPECT_EQ(call.acks[1].status, AckStatus::completed);
    EXPECT_EQ(call.acks[2].status, AckStatus::failed);
    const std::string nobody = "00000000-0000-0000-0000-000000000000";
    EXPECT_EQ(call.acks[2].lease_id, nobody) << "an id that no pop mints is no lease";
    EXPECT_THAT(call.required_leases, ElementsAre(kLeaseId, nobody));
    EXPECT_THAT(at(reply.body, "results.2.error"), HasSubstr("'complete' counts as failed"));
    EXPECT_EQ(at(reply.body, "results.2.success"), "true");
}

TEST(TransactionRoute, NothingToDoSucceeds) {
    for (const std::string body :
         {R"({"operations":[]})", R"({"operations":[],"kv":null,"timers":null})",
          R"({"operations":[],"requiredLeases":null,"kv":[],"timers":[]})", R"({"kv":[]})",
          R"({"operations":[{"type":"push","items":[]}]})"}) {
        Api api;
        const auto reply = ask(api, body);
        EXPECT_EQ(reply.status, 200) << body;
        EXPECT_EQ(at(reply.body, "success"), "true") << body;
        EXPECT_EQ(at(reply.body, "results"), "[0]");
    }
}

TEST(TransactionRoute, MalformedBundlesAreRefusedByName) {
    const std::string needs = "transaction requires an operations array (or a top-level kv/timers "
                              "array)";
    expect_refusal("{}", needs);
    expect_refusal(R"({"operations":null})", needs);
    expect_refusal(R"({"operations":{}})", "operations is not an array");
    expect_refusal(R"({"operations":7})", "operations is not an array");
    expect_refusal("[]", "the body is not an object");
    expect_refusal("3", "the body is not an object");
    expect_refusal("{", "");
    expect_refusal(operations("7"), "operation 0: is not an object");
    expect_refusal(operations("[]"), "operation 0: is not an object");
    const std::string type = "every transaction operation needs a type of push or ack";
    expect_refusal(operations("{}"), type);
    expect_refusal(operations(R"({"type":1})"), type);
    expect_refusal(operations(R"({"type":null,"queue":"q"})"), type);
    expect_refusal(operations(R"({"type":"pop"})"),
                   "segments transaction supports only push and ack operations, got `pop`");
    expect_refusal(operations(R"({"type":"kv"})"), "arrays of their own beside operations");
    expect_refusal(operations(ack() + R"(,{"type":"push","items":[{"queue":"q"},{}]})"),
                   "operation 1, item 1: queue is missing");
    expect_refusal(operations(R"({"type":"push","payload":1})"), "operation 0: queue is missing");
    expect_refusal(operations(R"({"type":"push","items":7})"),
                   "operation 0: items is not an array");
    expect_refusal(operations(R"({"type":"push","items":{}})"),
                   "operation 0: items is not an array");
    expect_refusal(operations(R"({"type":"push","items":[[]]})"),
                   "operation 0, item 0: is not an object");
    expect_refusal(operations(R"({"type":"push","items":["q"]})"),
                   "operation 0, item 0: is not an object");
    expect_refusal(operations(R"({"type":"push","queue":["q"]})"),
                   "operation 0: queue is not a string");
    expect_refusal(operations(R"({"type":"push","queue":"a\u0001"})"), "control");
    expect_refusal(operations(R"({"type":"push","queue":""})"), "queue");
    expect_refusal(operations(R"({"type":"push","queue":"q","transactionId":""})"),
                   "transactionId");
    expect_refusal(operations(R"({"type":"ack","partitionId":"p"})"),
                   "operation 0: transactionId is missing");
    expect_refusal(operations(R"({"type":"ack","transactionId":"t"})"),
                   "operation 0: partitionId is missing");
    expect_refusal(operations(ack(R"(,"leaseId":7)")), "operation 0: leaseId is not a string");
    expect_refusal(operations(ack(R"(,"status":"")")), "operation 0: status must be one of");
    expect_refusal(operations(ack(R"(,"status":[])")), "operation 0: status must be one of");
    expect_refusal(operations(ack(R"(,"consumerGroup":"..")")), "consumerGroup");
    expect_refusal(operations(ack(), R"(,"requiredLeases":"x")"), "requiredLeases is not an array");
    expect_refusal(operations(ack(), R"(,"requiredLeases":[7])"), "requiredLeases holds");
    expect_refusal(operations(ack(), R"(,"requiredLeases":[[]])"), "requiredLeases holds");
}

TEST(TransactionRoute, RidersOfLaterVersionsAreRefusedNotDropped) {
    expect_refusal(operations(ack(), R"(,"kv":[{"op":"put"}])"), "kv: ");
    expect_refusal(operations(ack(), R"(,"kv":{})"), "kv is not an array");
    expect_refusal(operations(ack(), R"(,"timers":"x")"), "timers is not an array");
}

std::string timer(const std::string& more = R"("op":"schedule","delayMs":5,"payload":"MQ==")",
                  const std::string& key = "k") {
    return R"({"queue":"later","timerKey":")" + key + R"(","txn":"t",)" + more + "}";
}
std::string with_timers(const std::string& timers) {
    return operations(ack(), R"(,"timers":[)" + timers + "]");
}

TEST(TransactionRoute, TimersRideAlongBehindTheItems) {
    Api api;
    const auto reply =
        ask(api, with_timers(timer() + "," + timer(R"("op":"cancel","x":{"y":[1]})", "l")));
    EXPECT_EQ(reply.status, 200) << reply.body;
    ASSERT_EQ(api.transactions.calls.size(), 1u);
    const auto& timers = api.transactions.calls[0].timers;
    ASSERT_EQ(timers.size(), 2u);
    EXPECT_TRUE(timers[0].message_id.known());
    EXPECT_EQ(timers[0].payload, "1");
    EXPECT_EQ(at(reply.body, "results"), "[3]");
    EXPECT_EQ(at(reply.body, "results.0.type"), "ack");
    for (const auto& [path, value] : {std::pair{"results.1.index", "1"},
                                      {"results.1.opIndex", "0"},
                                      {"results.1.type", "timer"},
                                      {"results.1.ok", "true"},
                                      {"results.1.status", "scheduled"},
                                      {"results.1.queue", "later"},
                                      {"results.1.timerKey", "k"},
                                      {"results.1.txn", "t"},
                                      {"results.2.index", "2"},
                                      {"results.2.opIndex", "1"},
                                      {"results.2.status", "cancelled"},
                                      {"results.2.ok", "true"}}) {
        EXPECT_EQ(at(reply.body, path), value) << path;
    }
    EXPECT_EQ(at(reply.body, "results.1.messageId"), to_string(timers[0].message_id));
    const auto alone = ask(api, R"({"timers":[)" + timer() + "]}");
    EXPECT_EQ(at(alone.body, "results.0.index"), "0") << alone.body;
    EXPECT_EQ(at(ask(api, R"({"timers":[7],"timers":[]})").body, "success"), "false");
    EXPECT_EQ(at(ask(api, R"({"timers":[)" + timer() + R"(],"timers":[]})").body, "results"),
              "[0]");
}

TEST(TransactionRoute, TimersAreRefusedInTheWordsOfTransactions) {
    expect_refusal(with_timers("7"), "timers: operation 0: is not an object (timers_bad_op)");
    expect_refusal(with_timers("[]"), "timers_bad_op");
    expect_refusal(with_timers(R"({"op":"schedule"})"), "timers_queue_required");
    expect_refusal(with_timers(timer() + "," + timer()), "timers_duplicate_key");
    expect_refusal(with_timers(timer(R"("op":"cancel","_x":1)")), "timers_server_owned_field");
    expect_refusal(with_timers(timer(R"("op":"schedule","delayMs":1e12,"payload":"MQ==")")),
                   "timers_horizon", 403, "timer_horizon_exceeded");
    expect_refusal(with_timers(timer(R"("op":"cancel")", std::string(256, 'k'))),
                   "timers_name_too_long", 413, "name_too_long");
    const std::string large(((std::size_t{1} << 20) + 3) / 3 * 4, 'A');
    expect_refusal(with_timers(timer(R"("op":"schedule","delayMs":1,"payload":")" + large + "\"")),
                   "timers_payload_too_large", 413, "payload_too_large");
    std::string many;
    for (int i = 0; i < 257; ++i) {
        many += (i == 0 ? "" : ",") + timer(R"("op":"cancel")", std::to_string(i));
    }
    expect_refusal(with_timers(many), "timers_too_many_ops");
}

// SWI-3
TEST(TransactionRoute, TimersThatAreSwitchedOffAre403AndCancelsAreNot) {
    Api api;
    api.system.on_set_switch = [](SwitchKey, bool, const Done<void>& done) { done({}); };
    api.ask("POST", "/api/v1/system/kv-timers", R"({"timersSchedule":false})");
    const auto reply = ask(api, with_timers(timer()));
    EXPECT_EQ(reply.status, 403);
    EXPECT_EQ(at(reply.body, "reason"), "timers_schedule_disabled");
    EXPECT_EQ(at(reply.body, "success"), "false");
    EXPECT_THAT(api.transactions.calls, IsEmpty());
    EXPECT_EQ(ask(api, with_timers(timer(R"("op":"cancel")"))).status, 200);
    EXPECT_EQ(ask(api, operations(ack())).status, 200);
}

TEST(TransactionRoute, TimersThatCannotBeMadeReadyRunNothing) {
    Api api;
    api.forms.on_encrypted = [](const std::string&) { return true; };
    auto reply = ask(api, with_timers(timer()));
    EXPECT_EQ(reply.status, 400);
    EXPECT_EQ(at(reply.body, "reason"), "bad_request");
    EXPECT_THAT(at(reply.body, "error"), HasSubstr("no encryption key"));
    api.forms.on_encrypted = [](const std::string&) -> Result<bool> {
        return fail(Errc::unavailable, "no session");
    };
    reply = ask(api, with_timers(timer()));
    EXPECT_EQ(reply.status, 500);
    EXPECT_EQ(at(reply.body, "error"), "pool");
    EXPECT_THAT(api.transactions.calls, IsEmpty());
}

TEST(TransactionRoute, LongNamesAndManyItemsAre413) {
    expect_refusal(operations(R"({"type":"push","queue":")" + std::string(300, 'q') + "\"}"),
                   "queue", 413, "name_too_long");
    std::string items;
    for (std::size_t i = 0; i <= http::kMaxTransactionItems; ++i) {
        items += (i == 0 ? "" : ",") + std::string(R"({"queue":"q"})");
    }
    expect_refusal(operations(R"({"type":"push","items":[)" + items + "]}"),
                   "more than 10000 messages and acks", 413, "payload_too_large");
    std::string acks;
    for (std::size_t i = 0; i <= http::kMaxTransactionItems; ++i) {
        acks += (i == 0 ? "" : ",") + ack();
    }
    expect_refusal(operations(acks), "more than 10000 messages and acks", 413, "payload_too_large");
}

TEST(TransactionRoute, OfRepeatedKeysTheLastCounts) {
    Api api;
    const auto reply = ask(
        api, R"({"operations":[{"type":"push","queue":"a"}],"requiredLeases":["x"],)"
             R"("kv":[1],"kv":null,"requiredLeases":[],)"
             R"("operations":[{"type":"push","items":[{"queue":"b"}],"items":[{"queue":"c"}]}]})");
    EXPECT_EQ(at(reply.body, "results"), "[1]") << reply.body;
    EXPECT_EQ(at(reply.body, "results.0.queueName"), "c");
    EXPECT_THAT(api.transactions.calls.at(0).required_leases, IsEmpty());
}

TEST(TransactionRoute, ARolledBackBundleIs200WithItsReason) {
    struct Case {
        TransactionOutcome::Kind kind;
        const char* reason;
        const char* text;
    };
    for (const auto& [kind, reason, text] :
         {Case{TransactionOutcome::Kind::duplicate, "duplicate", "QDUP"},
          Case{TransactionOutcome::Kind::rejected, "rejected_ack", "QTXN"}}) {
        Api api;
        api.transactions.on_transact = [kind = kind](const auto&) {
            TransactionOutcome outcome;
            outcome.kind = kind;
            outcome.repeats = {{0, 0, Offset{3}}};
            outcome.rejections = {{0, TransactionOutcome::Refusal::stale, ""}};
            return outcome;
        };
        const auto reply =
            ask(api, operations(R"({"type":"push","queue":"q","transactionId":"a"},)" + ack()));
        EXPECT_EQ(reply.status, 200);
        EXPECT_EQ(at(reply.body, "success"), "false");
        EXPECT_EQ(at(reply.body, "reason"), reason);
        EXPECT_THAT(at(reply.body, "error"), StartsWith(text));
        EXPECT_EQ(at(reply.body, "results"), "[0]");
        EXPECT_TRUE(parse_uuid(at(reply.body, "transactionId")));
    }
}

TEST(TransactionRoute, ENC1_AnEncryptedQueueIs400WithoutAKey) {
    Api api;
    api.transactions.on_transact = [](const TransactionCall&) {
        TransactionOutcome outcome;
        outcome.kind = TransactionOutcome::Kind::form;
        outcome.forms = {{0, true}};
        return outcome;
    };
    const auto reply = ask(api, operations(R"({"type":"push","queue":"vault","payload":1})"));
    EXPECT_EQ(reply.status, 400);
    EXPECT_EQ(at(reply.body, "success"), "false");
    EXPECT_EQ(at(reply.body, "reason"), "bad_request");
    EXPECT_EQ(at(reply.body, "error"),
              "queue 'vault': the queue is encrypted and this broker has no encryption key");
    EXPECT_EQ(at(reply.body, "results"), "[0]");
    EXPECT_EQ(api.transactions.calls.size(), 1u);
}

TEST(TransactionRoute, AStoreThatRefusesIsDbErrorAndOneThatIsAwayIsPool) {
    Api api;
    api.transactions.on_transact = [](const auto&) -> Result<TransactionOutcome> {
        return fail(Errc::store_failed, "disk on fire", "XX000");
    };
    auto reply = ask(api, operations(ack()));
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(at(reply.body, "reason"), "db_error");
    EXPECT_EQ(at(reply.body, "error"), "disk on fire");
    api.transactions.on_transact = [](const auto&) -> Result<TransactionOutcome> {
        return fail(Errc::unavailable, "no session became free");
    };
    reply = ask(api, operations(ack()));
    EXPECT_EQ(reply.status, 500);
    EXPECT_EQ(at(reply.body, "error"), "pool");
}

} // namespace
} // namespace queen::test
