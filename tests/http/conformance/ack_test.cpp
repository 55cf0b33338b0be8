// POST /api/v1/ack and /api/v1/ack/batch.
#include "base/text.hpp"
#include "http/conformance/conformance.hpp"

namespace queen::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

/// What is said of one message of a batch.
struct Word {
    std::size_t message;
    std::string status;
    std::string error{};
};

class AckContract : public ConformanceTest {
protected:
    void configure(const std::string& options) {
        const auto answer = post("/api/v1/configure",
                                 R"({"queue":")" + queue() + R"(","options":)" + options + "}");
        ASSERT_EQ(answer.status(), 200) << testing::PrintToString(answer);
    }
    /// Pushes 1 ... n and takes them as group g.
    std::vector<Delivery> batch(std::size_t n) {
        std::vector<std::string> payloads;
        for (std::size_t i = 1; i <= n; ++i) {
            payloads.push_back(std::to_string(i));
        }
        push(queue(), "p", payloads);
        return again();
    }
    std::vector<Delivery> again() { return take(queue(), "batch=100&consumerGroup=g"); }
    static std::vector<std::string> data_of(const std::vector<Delivery>& messages) {
        std::vector<std::string> all;
        for (const auto& message : messages) {
            all.push_back(message.data);
        }
        return all;
    }
    Answer settle(const std::vector<Delivery>& messages, const std::vector<Word>& words,
                  const std::string& lease = "-") {
        std::string body;
        json::Writer out(body);
        out.begin_object().key("consumerGroup").string("g").key("acknowledgments").begin_array();
        for (const auto& word : words) {
            const auto& message = messages.at(word.message);
            out.begin_object().key("transactionId").string(message.transaction_id);
            out.key("partitionId").string(message.partition_id).key("status").string(word.status);
            if (const auto id = lease == "-" ? message.lease_id : lease; !id.empty()) {
                out.key("leaseId").string(id);
            }
            if (!word.error.empty()) {
                out.key("error").string(word.error);
            }
            out.end_object();
        }
        out.end_array().end_object();
        auto answer = post("/api/v1/ack/batch", body);
        EXPECT_EQ(answer.status(), 200) << testing::PrintToString(answer);
        EXPECT_EQ(answer.size(), words.size());
        return answer;
    }
    Answer letters() {
        return get("/api/v1/dlq?queue=" + percent_encode(queue()) + "&consumerGroup=g");
    }
    /// Nothing comes to the group any more, at any broker.
    void expect_finished() {
        for (std::size_t i = 0; i < brokers(); ++i) {
            EXPECT_EQ(call_at(i, "GET", pop_path(queue(), "consumerGroup=g&batch=100")).status(),
                      204);
        }
        const auto depth = get("/api/v1/resources/queues/" + queue() + "/depth?group=g");
        EXPECT_EQ(depth.at("pending"), "0");
        EXPECT_EQ(depth.at("processing"), "0");
    }
};

TEST_F(AckContract, ASingleAckAnswersAnArrayOfOne) {
    const auto messages = batch(1);
    const auto answer = ack(messages.at(0));
    EXPECT_EQ(answer.status(), 200);
    ASSERT_EQ(answer.size(), 1u);
    EXPECT_THAT(answer.keys("0"), ElementsAre("dlq", "error", "index", "leaseReleased", "noop",
                                              "success", "transactionId"));
    EXPECT_EQ(answer.at("0.index"), "0");
    EXPECT_EQ(answer.at("0.transactionId"), messages[0].transaction_id);
    EXPECT_EQ(answer.at("0.success"), "true");
    EXPECT_EQ(answer.at("0.error"), "null");
    EXPECT_EQ(answer.at("0.leaseReleased"), "true");
    EXPECT_EQ(answer.at("0.dlq"), "false");
    EXPECT_EQ(answer.at("0.noop"), "false");
    expect_finished();
}

TEST_F(AckContract, ABatchAnswersInRequestOrderAndAnEmptyOneIsEmpty) {
    const auto messages = batch(3);
    const auto answer = settle(messages, {{2, "completed"}, {0, "completed"}, {1, "completed"}});
    EXPECT_THAT(answer.column("", "index"), ElementsAre("0", "1", "2"));
    EXPECT_THAT(answer.column("", "transactionId"), ElementsAre("t2", "t0", "t1"));
    EXPECT_THAT(answer.column("", "success"), Each("true"));
    EXPECT_THAT(answer.column("", "leaseReleased"), Each("true"));
    const auto none = post("/api/v1/ack/batch", R"({"acknowledgments":[]})");
    EXPECT_EQ(none.status(), 200);
    EXPECT_EQ(none.body(), "[]");
}

TEST_F(AckContract, NullMeansAbsentForEveryField) {
    push(queue(), "p", {"1"});
    const auto message = take(queue()).at(0);
    const auto answer =
        post("/api/v1/ack", R"({"transactionId":"t0","partitionId":")" + message.partition_id +
                                R"(","status":null,"consumerGroup":null,)"
                                R"("leaseId":null,"error":null})");
    EXPECT_EQ(answer.at("0.success"), "true") << testing::PrintToString(answer);
    EXPECT_EQ(get(pop_path(queue())).status(), 204);
}

TEST_F(AckContract, EveryWordForCompletedCompletes) {
    for (const std::string word : {"completed", "success", "acked", "ok", "COMPLETED", "Ok"}) {
        push(queue(), word, {"1"}, {word});
        const auto messages = take(queue(), "consumerGroup=g&batch=1");
        EXPECT_THAT(ack(messages.at(0), word).column("", "success"), ElementsAre("true")) << word;
    }
    expect_finished();
}

// K37: an unknown word loses nothing, and the answer shows how it was taken.
TEST_F(AckContract, K37_AnUnknownWordCountsAsFailedAndIsNamed) {
    const auto messages = batch(1);
    const auto answer = ack(messages.at(0), "complete");
    EXPECT_EQ(answer.status(), 200);
    EXPECT_THAT(answer.at("0.error"), HasSubstr("complete"));
    EXPECT_EQ(answer.at("0.leaseReleased"), "true");
    EXPECT_EQ(again().at(0).attempt, "2");
}

TEST_F(AckContract, AcksAreImplicitBelowTheHighestCompleted) {
    const auto messages = batch(5);
    const auto answer = settle(messages, {{2, "completed"}});
    EXPECT_EQ(answer.at("0.leaseReleased"), "false") << "a partial ack keeps the lease";
    EXPECT_EQ(settle(messages, {{4, "completed"}}).at("0.leaseReleased"), "true");
    expect_finished();
}

TEST_F(AckContract, CompletedBehindASignalComesBack) {
    const auto messages = batch(5);
    const auto answer = settle(messages, {{0, "completed"}, {2, "failed"}, {4, "completed"}});
    EXPECT_THAT(answer.column("", "leaseReleased"), Each("true"));
    EXPECT_THAT(data_of(again()), ElementsAre("3", "4", "5"));
}

TEST_F(AckContract, RetryGivesBackWithoutACharge) {
    configure(R"({"retryLimit":0})");
    auto messages = batch(2);
    for (int i = 0; i < 3; ++i) {
        const auto answer = settle(messages, {{0, "retry"}});
        EXPECT_EQ(answer.at("0.success"), "true");
        EXPECT_EQ(answer.at("0.dlq"), "false");
        messages = again();
        EXPECT_THAT(data_of(messages), ElementsAre("1", "2"));
    }
    EXPECT_EQ(messages[0].attempt, "4");
    EXPECT_EQ(letters().at("total"), "0");
}

TEST_F(AckContract, FailuresSpendTheBudgetAndTheNextOneIsADeadLetter) {
    configure(R"({"retryLimit":3})");
    auto messages = batch(2);
    for (int failure = 1; failure <= 3; ++failure) {
        const auto answer = settle(messages, {{0, "failed", "try " + std::to_string(failure)}});
        EXPECT_EQ(answer.at("0.dlq"), "false");
        EXPECT_EQ(answer.at("0.success"), "true");
        messages = again();
        ASSERT_THAT(data_of(messages), ElementsAre("1", "2"));
        EXPECT_EQ(messages[0].attempt, std::to_string(failure + 1));
    }
    const auto last = settle(messages, {{0, "failed", "lock jammed"}});
    EXPECT_EQ(last.at("0.success"), "true");
    EXPECT_EQ(last.at("0.dlq"), "true");
    EXPECT_EQ(last.at("0.leaseReleased"), "true");
    const auto list = letters();
    EXPECT_EQ(list.at("total"), "1");
    EXPECT_EQ(list.at("messages.0.data"), "1");
    EXPECT_EQ(list.at("messages.0.errorMessage"), "lock jammed");
    EXPECT_EQ(list.at("messages.0.transactionId"), "t0");
    const auto rest = again();
    ASSERT_THAT(data_of(rest), ElementsAre("2"));
    EXPECT_EQ(rest[0].attempt, "1");
}

TEST_F(AckContract, WithoutDeadLettersAMessageIsDroppedWhenItsBudgetIsSpent) {
    configure(R"({"retryLimit":0,"deadLetterQueue":false,"dlqAfterMaxRetries":false})");
    const auto messages = batch(2);
    const auto answer = settle(messages, {{0, "failed"}});
    EXPECT_EQ(answer.at("0.success"), "true");
    EXPECT_EQ(answer.at("0.dlq"), "false");
    EXPECT_EQ(letters().at("total"), "0");
    EXPECT_THAT(data_of(again()), ElementsAre("2"));
}

TEST_F(AckContract, EitherFlagKeepsDeadLetters) {
    configure(R"({"retryLimit":0,"deadLetterQueue":false,"dlqAfterMaxRetries":true})");
    EXPECT_EQ(settle(batch(1), {{0, "failed"}}).at("0.dlq"), "true");
    EXPECT_EQ(letters().at("total"), "1");
}

TEST_F(AckContract, DlqIsFiledAtOnceWhateverTheBudget) {
    const auto messages = batch(3);
    const auto answer = settle(messages, {{0, "dlq", "no good"}});
    EXPECT_EQ(answer.at("0.dlq"), "true");
    EXPECT_EQ(answer.at("0.leaseReleased"), "true");
    EXPECT_EQ(letters().at("messages.0.errorMessage"), "no good");
    EXPECT_THAT(data_of(again()), ElementsAre("2", "3"));
}

// Rule 8: one call settles in order until something has to come back.
TEST_F(AckContract, OneCallSettlesSeveralDeadLettersAndWhatFollows) {
    configure(R"({"retryLimit":0})");
    const auto messages = batch(6);
    const auto answer = settle(messages, {{0, "completed"},
                                          {1, "dlq", "first"},
                                          {2, "completed"},
                                          {3, "failed", "second"},
                                          {4, "completed"},
                                          {5, "completed"}});
    EXPECT_THAT(answer.column("", "success"), Each("true")) << testing::PrintToString(answer);
    EXPECT_THAT(answer.column("", "dlq"),
                ElementsAre("false", "true", "false", "true", "false", "false"));
    const auto list = letters();
    EXPECT_THAT(list.column("messages", "data"), testing::UnorderedElementsAre("2", "4"));
    EXPECT_THAT(list.column("messages", "errorMessage"),
                testing::UnorderedElementsAre("first", "second"));
    expect_finished();
}

TEST_F(AckContract, SettlingStopsAtTheFirstThatHasToComeBack) {
    configure(R"({"retryLimit":3})");
    const auto messages = batch(5);
    const auto answer = settle(messages, {{0, "dlq"}, {1, "retry"}, {2, "dlq"}, {4, "completed"}});
    EXPECT_EQ(answer.at("0.dlq"), "true");
    EXPECT_EQ(answer.at("2.dlq"), "false");
    EXPECT_EQ(letters().at("total"), "1");
    EXPECT_THAT(data_of(again()), ElementsAre("2", "3", "4", "5"));
}

// K17: one bad message drags no neighbour along.
TEST_F(AckContract, K17_OnlyThePoisonIsDeadLettered) {
    configure(R"({"retryLimit":3})");
    auto messages = batch(10);
    int calls = 0;
    while (true) {
        std::vector<Word> words;
        for (std::size_t i = 0; i < messages.size(); ++i) {
            words.push_back({i, messages[i].data == "5" ? "failed" : "completed"});
        }
        const auto answer = settle(messages, words);
        ++calls;
        ASSERT_LE(calls, 10);
        if (letters().at("total") == "1") {
            break;
        }
        messages = again();
    }
    EXPECT_EQ(calls, 4) << "three failures redeliver, the fourth files";
    EXPECT_EQ(letters().at("messages.0.data"), "5");
    expect_finished();
}

// K18: failures of one message add up over partial acks and redeliveries.
TEST_F(AckContract, K18_FailuresAddUpOverPartialAcks) {
    configure(R"({"retryLimit":2,"leaseTime":1})");
    auto messages = batch(3);
    settle(messages, {{0, "completed"}});
    settle(messages, {{1, "failed"}}); // first failure
    messages = again();
    ASSERT_THAT(data_of(messages), ElementsAre("2", "3"));
    messages = again(); // nobody settled: the lease ends, no budget is spent (F-37)
    settle(messages, {{0, "failed"}});
    messages = again();
    EXPECT_EQ(settle(messages, {{0, "failed"}}).at("0.dlq"), "true");
    EXPECT_THAT(data_of(again()), ElementsAre("3"));
}

TEST_F(AckContract, CompletedTwiceIsNoopAndASignalTooLateIsRefused) {
    const auto messages = batch(3);
    settle(messages, {{1, "completed"}});
    const auto repeated = settle(messages, {{0, "completed"}, {1, "completed"}});
    EXPECT_THAT(repeated.column("", "success"), Each("true"));
    EXPECT_THAT(repeated.column("", "noop"), Each("true"));
    const auto late = settle(messages, {{0, "failed"}});
    EXPECT_EQ(late.at("0.success"), "false");
    EXPECT_THAT(late.at("0.error"), StartsWith("already committed"));
    EXPECT_EQ(late.at("0.leaseReleased"), "false");
}

// Clients send an ack again when its answer was lost; by then the lease has ended.
TEST_F(AckContract, TheSameAckAgainAfterItsLeaseEndedIsNoop) {
    const auto messages = batch(2);
    EXPECT_THAT(settle(messages, {{0, "completed"}, {1, "completed"}}).column("", "noop"),
                Each("false"));
    const auto repeated = settle(messages, {{0, "completed"}, {1, "completed"}});
    EXPECT_THAT(repeated.column("", "success"), Each("true"));
    EXPECT_THAT(repeated.column("", "noop"), Each("true"));
    EXPECT_THAT(settle(messages, {{0, "failed"}}).column("", "success"), Each("false"));
}

TEST_F(AckContract, UnknownAndForeignAddressesAreToldApart) {
    const auto messages = batch(2);
    auto stranger = messages[0];
    stranger.transaction_id = "never-pushed";
    const auto unknown = ack(stranger);
    EXPECT_EQ(unknown.at("0.success"), "false");
    EXPECT_THAT(unknown.at("0.error"), StartsWith("unresolvable"));
    auto nowhere = messages[0];
    nowhere.partition_id = "0199f0aa-0000-7000-8000-0000000000f1";
    EXPECT_EQ(ack(nowhere).at("0.error"), "partition not found");
    nowhere.partition_id = "12";
    EXPECT_EQ(ack(nowhere).at("0.error"), "partitionId is not a partition id");
    auto other = messages[0];
    other.group = "somebody";
    EXPECT_THAT(ack(other).at("0.error"),
                testing::AnyOf("consumer not found", "invalid or expired lease"));
    EXPECT_EQ(ack(messages[1]).at("0.success"), "true") << "none of that touched the lease";
}

// K08: who lost the lease changes nothing and spends nobody's budget.
TEST_F(AckContract, K08_ALostLeaseIsRefused) {
    configure(R"({"retryLimit":1})");
    push(queue(), "p", {"1"});
    const auto slow = take(queue(), "consumerGroup=g&leaseSeconds=1");
    const auto owner = take(queue(), "consumerGroup=g&leaseSeconds=60");
    ASSERT_THAT(owner, SizeIs(1));
    EXPECT_EQ(ack(slow.at(0)).at("0.error"), "invalid or expired lease");
    for (int i = 0; i < 5; ++i) {
        const auto refused = ack(slow[0], "failed");
        EXPECT_EQ(refused.at("0.success"), "false");
        EXPECT_EQ(refused.at("0.error"), "invalid or expired lease");
    }
    EXPECT_EQ(post("/api/v1/lease/" + slow[0].lease_id + "/extend", "{}").at("success"), "false");
    EXPECT_EQ(ack(owner[0]).at("0.success"), "true");
    EXPECT_EQ(letters().at("total"), "0");
    expect_finished();
}

TEST_F(AckContract, WithoutALeaseIdTheCursorMovesAllTheSame) {
    const auto messages = batch(3);
    const auto answer = settle(messages, {{1, "completed"}}, "");
    EXPECT_EQ(answer.at("0.success"), "true");
    EXPECT_EQ(settle(messages, {{2, "completed"}}, "").at("0.leaseReleased"), "true");
    expect_finished();
}

TEST_F(AckContract, SeveralPartitionsOfOneLeaseAreSettledInOneCall) {
    push(queue(), "a", {"1"}, {"a1"});
    push(queue(), "b", {"2"}, {"b1"});
    const auto messages = take(queue(), "batch=10&partitions=10&consumerGroup=g");
    ASSERT_THAT(messages, SizeIs(2));
    const auto answer = settle(messages, {{0, "completed"}, {1, "failed"}});
    EXPECT_THAT(answer.column("", "success"), Each("true"));
    const auto rest = again();
    ASSERT_THAT(rest, SizeIs(1));
    EXPECT_EQ(rest[0].partition, messages[1].partition);
}

// K20, K45: whatever an error text holds, the failure counts.
TEST_F(AckContract, K45_ErrorTextsOfEveryKindAreKept) {
    configure(R"({"retryLimit":0})");
    const auto messages = batch(3);
    const auto nul = ack(messages[0], "failed", R"("error":"a\u0000b\"c'd")");
    EXPECT_EQ(nul.at("0.dlq"), "true") << testing::PrintToString(nul);
    EXPECT_THAT(letters().at("messages.0.errorMessage"),
                AllOf(StartsWith("a"), HasSubstr("b\"c'd")));
    const auto rest = again();
    const auto huge = ack(rest.at(0), "failed", "\"error\":\"" + std::string(1 << 20, 'x') + "\"");
    EXPECT_EQ(huge.at("0.dlq"), "true");
    EXPECT_THAT(letters().at("messages.0.errorMessage"), StartsWith("xxxxxxxx"));
    const auto odd = ack(again().at(0), "failed", R"("error":{"code":5})");
    EXPECT_THAT(odd.status(), testing::AnyOf(200, 400));
}

// An ack without its address fails as an item, so that its neighbours are settled.
TEST_F(AckContract, AnIncompleteAddressIsAnItemsFailure) {
    const auto messages = batch(1);
    const auto answer =
        post("/api/v1/ack/batch",
             R"({"consumerGroup":"g","acknowledgments":[{"transactionId":"t0"},{"partitionId":")" +
                 messages.at(0).partition_id + R"("},{"transactionId":"t0","partitionId":")" +
                 messages[0].partition_id + R"(","leaseId":")" + messages[0].lease_id + "\"}]}");
    EXPECT_EQ(answer.status(), 200);
    EXPECT_THAT(answer.column("", "success"), ElementsAre("false", "false", "true"));
    EXPECT_NE(answer.at("0.error"), "null");
    EXPECT_NE(answer.at("1.error"), "null");
}

TEST_F(AckContract, WhatIsNoAckIsRefused) {
    for (const auto& [path, body, text] : std::vector<std::array<std::string, 3>>{
             {"/api/v1/ack", "", ""},
             {"/api/v1/ack", "[]", ""},
             {"/api/v1/ack", R"({"transactionId":5,"partitionId":"x"})", "transactionId"},
             {"/api/v1/ack/batch", "{}", "acknowledgments"},
             {"/api/v1/ack/batch", R"({"acknowledgments":5})", "acknowledgments"},
             {"/api/v1/ack/batch", R"({"acknowledgments":[5]})", "acknowledgment"}}) {
        const auto answer = post(path, body);
        EXPECT_EQ(answer.status(), 400) << path << body;
        EXPECT_THAT(answer.at("error"), AllOf(StartsWith("bad body: "), HasSubstr(text)));
    }
}

} // namespace
} // namespace queen::test
