// POST /api/v1/transaction.
#include "http/conformance/conformance.hpp"

namespace queen::test {
namespace {

using testing::AnyOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::SizeIs;
using testing::StartsWith;

constexpr const char* kUuid = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";

class TransactionContract : public ConformanceTest {
protected:
    Answer run(const std::string& operations, const std::string& more = {}) {
        return post("/api/v1/transaction", R"({"operations":[)" + operations + "]" +
                                               (more.empty() ? "" : "," + more) + "}");
    }
    std::string in() const { return queue("-in"); }
    std::string out() const { return queue("-out"); }
    static std::string push_op(const std::string& name, const std::string& payload,
                               const std::string& id = {}) {
        return R"({"type":"push","items":[{"queue":")" + name + R"(","payload":)" + payload +
               (id.empty() ? "" : R"(,"transactionId":")" + id + "\"") + "}]}";
    }
    static std::string ack_op(const Delivery& message, const std::string& status = "completed",
                              const std::string& more = {}) {
        return R"({"type":"ack","transactionId":")" + message.transaction_id +
               R"(","partitionId":")" + message.partition_id + R"(","status":")" + status +
               R"(","consumerGroup":")" + message.group + "\"" + (more.empty() ? "" : "," + more) +
               "}";
    }
    static std::string leases(const std::vector<Delivery>& messages) {
        return R"("requiredLeases":[")" + messages.at(0).lease_id + R"("])";
    }
    void expect_failure(const Answer& answer, const std::string& reason, int status = 200) {
        EXPECT_EQ(answer.status(), status) << testing::PrintToString(answer);
        EXPECT_EQ(answer.at("success"), "false");
        EXPECT_EQ(answer.at("reason"), reason) << testing::PrintToString(answer);
        EXPECT_NE(answer.at("error"), "missing");
        EXPECT_EQ(answer.at("results"), "[0]");
    }
    /// No message of that queue is stored.
    void expect_empty(const std::string& name) {
        const auto depth = get("/api/v1/resources/queues/" + name + "/depth");
        if (depth.status() != 404) {
            EXPECT_EQ(depth.at("pending"), "0");
        }
    }
};

TEST_F(TransactionContract, PushesAndAcksTogether) {
    push(in(), "p", {"1", "2"});
    const auto messages = take(in(), "batch=2&consumerGroup=g");
    const auto answer =
        run(ack_op(messages.at(0)) + "," + ack_op(messages.at(1)) + "," +
                R"({"type":"push","items":[{"queue":")" + out() +
                R"(","partition":"o","payload":"A","transactionId":"a"},{"queue":")" + out() +
                R"(","payload":"B"}]})",
            leases(messages));
    ASSERT_EQ(answer.status(), 200);
    EXPECT_EQ(answer.at("success"), "true") << testing::PrintToString(answer);
    EXPECT_THAT(answer.at("transactionId"), MatchesRegex(kUuid));
    ASSERT_EQ(answer.size("results"), 4u);
    EXPECT_THAT(answer.column("results", "index"), ElementsAre("0", "1", "2", "3"));
    EXPECT_THAT(answer.column("results", "type"), ElementsAre("ack", "ack", "push", "push"));
    EXPECT_THAT(answer.column("results", "success"), Each("true"));
    EXPECT_EQ(answer.at("results.0.transactionId"), "t0");
    EXPECT_EQ(answer.at("results.0.error"), "null");
    EXPECT_EQ(answer.at("results.0.dlq"), "false");
    EXPECT_EQ(answer.at("results.2.transactionId"), "a");
    EXPECT_THAT(answer.at("results.2.messageId"), MatchesRegex(kUuid));
    EXPECT_EQ(answer.at("results.2.queueName"), out());
    EXPECT_EQ(answer.at("results.3.transactionId"), answer.at("results.3.messageId"));
    EXPECT_THAT(take(out(), "batch=10&partitions=10"), SizeIs(2));
    for (std::size_t i = 0; i < brokers(); ++i) {
        EXPECT_EQ(call_at(i, "GET", pop_path(in(), "consumerGroup=g")).status(), 204);
    }
}

TEST_F(TransactionContract, NoOperationsSucceed) {
    const auto answer = run("");
    EXPECT_EQ(answer.status(), 200);
    EXPECT_EQ(answer.at("success"), "true");
    EXPECT_EQ(answer.at("results"), "[0]");
    EXPECT_EQ(run("", R"("kv":null,"timers":null,"requiredLeases":null)").at("success"), "true");
}

TEST_F(TransactionContract, APushMayStandFlatAndCallItsPayloadData) {
    const auto answer = run(R"({"type":"push","queue":")" + out() +
                            R"(","partition":"p","data":{"n":1},"traceId":)"
                            R"("0199f0c2-0000-7000-8000-00000000000a"},)"
                            R"({"type":"push","queue":")" +
                            out() + R"(","partition":"q"})");
    EXPECT_EQ(answer.at("success"), "true") << testing::PrintToString(answer);
    EXPECT_THAT(answer.column("results", "type"), ElementsAre("push", "push"));
    const auto popped = get("/api/v1/pop/queue/" + out() + "/partition/p?wait=true&timeout=5000");
    EXPECT_EQ(popped.at("messages.0.data.n"), "1");
    EXPECT_EQ(popped.at("messages.0.traceId"), "0199f0c2-0000-7000-8000-00000000000a");
    const auto empty = get("/api/v1/pop/queue/" + out() + "/partition/q?wait=true&timeout=5000");
    EXPECT_EQ(empty.at("messages.0.data"), "{0}") << "the default payload is {}";
}

TEST_F(TransactionContract, ARepeatInsideTheBundleIsStoredOnceAndTold) {
    const auto answer = run(push_op(out(), "1", "same") + "," + push_op(out(), "2", "same"));
    EXPECT_EQ(answer.at("success"), "true") << testing::PrintToString(answer);
    EXPECT_EQ(answer.at("results.0.duplicate"), "missing");
    EXPECT_EQ(answer.at("results.1.duplicate"), "true");
    EXPECT_EQ(answer.at("results.1.messageId"), answer.at("results.0.messageId"));
    const auto messages = take(out(), "batch=10");
    ASSERT_THAT(messages, SizeIs(1));
    EXPECT_EQ(messages[0].data, "1");
}

TEST_F(TransactionContract, ADuplicateRollsEverythingBack) {
    push(out(), "Default", {"1"}, {"known"});
    push(in(), "p", {"1"});
    const auto messages = take(in(), "consumerGroup=g");
    const auto answer = run(ack_op(messages.at(0)) + "," + push_op(queue("-third"), "1") + "," +
                                push_op(out(), "2", "known"),
                            leases(messages));
    expect_failure(answer, "duplicate");
    EXPECT_THAT(answer.at("error"), StartsWith("QDUP"));
    EXPECT_EQ(get("/api/v1/resources/queues/" + queue("-third")).status(), 404);
    EXPECT_EQ(ack(messages[0]).at("0.success"), "true") << "the lease is as it was";
}

TEST_F(TransactionContract, AnAckThatIsNotHonouredRollsEverythingBack) {
    push(in(), "p", {"1", "2"});
    const auto messages = take(in(), "batch=2&consumerGroup=g");
    auto stranger = messages.at(0);
    stranger.transaction_id = "never-pushed";
    const auto unresolved = run(push_op(out(), "1") + "," + ack_op(stranger), leases(messages));
    expect_failure(unresolved, "rejected_ack");
    EXPECT_THAT(unresolved.at("error"), StartsWith("QTXN"));
    // Settled elsewhere: the lease is gone.
    ack(messages.at(1));
    const auto late = run(push_op(out(), "1") + "," + ack_op(messages[0]), leases(messages));
    expect_failure(late, "rejected_ack");
    // A lease nobody holds.
    const auto wrong =
        run(push_op(out(), "1"), R"("requiredLeases":["0199f0d1-0000-7000-8000-000000000777"])");
    if (wrong.at("success") == "false") {
        expect_failure(wrong, "rejected_ack");
        expect_empty(out());
    }
}

TEST_F(TransactionContract, AnAcksOwnLeaseIsChecked) {
    push(in(), "p", {"1"});
    const auto messages = take(in(), "consumerGroup=g");
    const auto refused = run(
        push_op(out(), "1") + "," +
        ack_op(messages.at(0), "completed", R"("leaseId":"0199f0d1-0000-7000-8000-000000000777")"));
    expect_failure(refused, "rejected_ack");
    expect_empty(out());
    const auto taken =
        run(ack_op(messages[0], "completed", R"("leaseId":")" + messages[0].lease_id + "\""));
    EXPECT_EQ(taken.at("success"), "true");
}

TEST_F(TransactionContract, WithoutLeasesAnAckMovesTheCursorAllTheSame) {
    push(in(), "p", {"1"});
    const auto messages = take(in(), "consumerGroup=g");
    EXPECT_EQ(run(ack_op(messages.at(0))).at("success"), "true");
    EXPECT_EQ(get(pop_path(in(), "consumerGroup=g")).status(), 204);
}

TEST_F(TransactionContract, SignalsAndDeadLettersArePartOfIt) {
    post("/api/v1/configure", R"({"queue":")" + in() + R"(","options":{"retryLimit":0}})");
    push(in(), "p", {"1", "2"});
    const auto messages = take(in(), "batch=2&consumerGroup=g");
    const auto answer = run(ack_op(messages.at(0), "failed", R"("error":"in a transaction")") +
                                "," + push_op(out(), "1"),
                            leases(messages));
    EXPECT_EQ(answer.at("success"), "true") << testing::PrintToString(answer);
    EXPECT_EQ(answer.at("results.0.dlq"), "true");
    const auto letters = get("/api/v1/dlq?queue=" + in());
    EXPECT_EQ(letters.at("total"), "1");
    EXPECT_EQ(letters.at("messages.0.errorMessage"), "in a transaction");
    const auto rest = take(in(), "batch=2&consumerGroup=g");
    ASSERT_THAT(rest, SizeIs(1));
    EXPECT_EQ(rest[0].data, "2");
}

TEST_F(TransactionContract, PushesWakeWhoWaits) {
    get(pop_path(out(), "consumerGroup=g"));
    auto parked = connection(0);
    parked.start("GET", pop_path(out(), "consumerGroup=g&wait=true&timeout=30000"));
    EXPECT_EQ(run(push_op(out(), "1")).at("success"), "true");
    EXPECT_EQ(parked.read().status, 200);
}

TEST_F(TransactionContract, BundlesThatCannotBeReadAreBadRequests) {
    const auto none = post("/api/v1/transaction", "{}");
    expect_failure(none, "bad_request", 400);
    EXPECT_EQ(none.at("error"),
              "transaction requires an operations array (or a top-level kv/timers array)");
    const auto untyped = run("{}");
    expect_failure(untyped, "bad_request", 400);
    EXPECT_EQ(untyped.at("error"), "every transaction operation needs a type of push or ack");
    const auto other = run(R"({"type":"kv"})");
    expect_failure(other, "bad_request", 400);
    EXPECT_THAT(other.at("error"),
                StartsWith("segments transaction supports only push and ack operations, got `kv`"));
    expect_failure(run(R"({"type":"push","items":[{"payload":1}]})"), "bad_request", 400);
    expect_failure(run(R"({"type":"ack","transactionId":"x"})"), "bad_request", 400);
    expect_failure(run(R"({"type":"push","items":5})"), "bad_request", 400);
    EXPECT_EQ(post("/api/v1/transaction", "{").status(), 400);
    EXPECT_EQ(post("/api/v1/transaction", R"({"operations":5})").status(), 400);
}

} // namespace
} // namespace queen::test
