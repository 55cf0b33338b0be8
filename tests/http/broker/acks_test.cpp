// Settling batches over HTTP: dead letters, budgets, and the two ways an ack can take.
#include "http/broker/broker_fixture.hpp"

#include <map>

namespace queen::test {
namespace {

using testing::ElementsAre;

class AcksTest : public BrokerTest {
protected:
    struct Item {
        Message message;
        std::string status = "completed";
        std::string error_json = "null";
    };

    /// Acks of group "g" in one request. Results as "success,leaseReleased,dlq,noop".
    std::vector<std::string> settle(const std::vector<Item>& items, bool leased = true) {
        std::string body;
        json::Writer out(body);
        out.begin_object().key("consumerGroup").string("g").key("acknowledgments").begin_array();
        for (const auto& item : items) {
            out.begin_object().key("transactionId").string(item.message.transaction_id);
            out.key("partitionId").string(item.message.partition_id);
            out.key("status").string(item.status).key("error").raw(item.error_json);
            if (leased) {
                out.key("leaseId").string(item.message.lease_id);
            }
            out.end_object();
        }
        out.end_array().end_object();
        const auto response = api.http.post("/api/v1/ack/batch", body);
        EXPECT_EQ(response.status, 200) << response.body;
        const auto document = json::Document::parse(response.body).value();
        std::vector<std::string> results;
        for (std::size_t i = 0; i < document.root().size(); ++i) {
            std::string text;
            for (const char* const name : {"success", "leaseReleased", "dlq", "noop"}) {
                text += (text.empty() ? "" : ",") +
                        std::string(document.root().at(i)[name].boolean().value() ? "1" : "0");
            }
            results.push_back(text);
        }
        return results;
    }
    Popped pop(const std::string& more = "") { return api.pop(queue(), "consumerGroup=g" + more); }

    Api api{port()};
};

TEST_F(AcksTest, K17_OnlyThePoisonousMessageOfABatchIsDeadLettered) {
    api.configure(queue(), R"({"retryLimit":3})");
    api.push_ids(queue(), "p", {"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"});
    std::map<std::string, int> delivered;
    for (int failures = 1; failures <= 4; ++failures) {
        const auto popped = pop("&batch=10");
        std::vector<Item> items;
        std::size_t poison = 0;
        for (const auto& message : popped.messages) {
            ++delivered[message.transaction_id];
            poison = message.transaction_id == "5" ? items.size() : poison;
            items.push_back({message, message.transaction_id == "5" ? "failed" : "completed"});
        }
        const auto results = settle(items);
        for (std::size_t i = 0; i < results.size(); ++i) {
            EXPECT_EQ(results[i], i == poison && failures == 4 ? "1,1,1,0" : "1,1,0,0")
                << failures << "." << i;
        }
    }
    EXPECT_EQ(pop().status, 204);
    EXPECT_EQ(delivered["5"], 4);
    EXPECT_EQ(delivered["4"], 1);
    EXPECT_EQ(delivered["6"], 4);
    EXPECT_EQ(delivered.size(), 10u);
}

// K18: every failure counts, over partial acks and workers that die.
TEST_F(AcksTest, K18_FailuresAddUpOverPartialAcksAndDeaths) {
    api.configure(queue(), R"({"retryLimit":2})");
    api.push_ids(queue(), "p", {"1", "2", "3"});
    auto popped = pop();
    EXPECT_THAT(settle({{popped.messages.at(0)}}), ElementsAre("1,0,0,0"));
    EXPECT_THAT(settle({{popped.messages.at(1), "failed"}}), ElementsAre("1,1,0,0"));
    EXPECT_EQ(pop("&leaseSeconds=1").status, 200); // and dies
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    Popped again; // a pop that does not wait asks the store each time
    while (again.messages.empty() && std::chrono::steady_clock::now() < end) {
        again = pop();
    }
    EXPECT_THAT(settle({{again.messages.at(0), "failed"}}), ElementsAre("1,1,0,0"));
    popped = pop();
    EXPECT_EQ(popped.ids(), (std::vector<std::string>{"2", "3"}));
    EXPECT_THAT(settle({{popped.messages.at(0), "failed"}}), ElementsAre("1,1,1,0"));
    EXPECT_THAT(pop().ids(), ElementsAre("3"));
}

TEST_F(AcksTest, SignalsAreSettledInOrderInOneCall) {
    api.push_ids(queue(), "p", {"a", "b", "c", "d", "e"});
    const auto m = pop().messages;
    EXPECT_THAT(
        settle(
            {{m.at(0), "dlq"}, {m.at(1)}, {m.at(2), "dlq"}, {m.at(3), "retry"}, {m.at(4), "dlq"}}),
        ElementsAre("1,1,1,0", "1,1,0,0", "1,1,1,0", "1,1,0,0", "1,1,0,0"));
    EXPECT_THAT(pop().ids(), ElementsAre("d", "e"));
}

// K20, K45: whatever the reason holds, the ack counts.
TEST_F(AcksTest, K20K45_AnyReasonIsKeptWithTheDeadLetter) {
    api.push_ids(queue(), "p", {"a", "b", "c"});
    const auto m = pop().messages;
    EXPECT_THAT(settle({{m.at(0), "dlq", R"("nul \u0000 and \"quotes\"")"},
                        {m.at(1), "dlq", R"({"code":17})"},
                        {m.at(2), "dlq", "\"" + std::string(1 << 20, 'x') + "\""}}),
                ElementsAre("1,1,1,0", "1,1,1,0", "1,1,1,0"));
    EXPECT_EQ(pop().status, 204);
}

TEST_F(AcksTest, ALeaselessAckDeadLettersToo) {
    api.push_ids(queue(), "p", {"a", "b"});
    const auto m = pop().messages;
    EXPECT_THAT(settle({{m.at(0), "dlq"}, {m.at(1)}}, false), ElementsAre("1,1,1,0", "1,1,0,0"));
    EXPECT_THAT(settle({{m.at(0), "dlq"}, {m.at(1)}}, false), ElementsAre("0,0,0,1", "1,0,0,1"));
}

// A dead letter frees the partition for whoever waits for it.
TEST_F(AcksTest, WhoWaitsIsWokenByADeadLetter) {
    api.push_ids(queue(), "p", {"a", "b"});
    const auto m = pop("&batch=1").messages;
    HttpClient waiting(port());
    waiting.start("GET", Api::pop_target(queue(), "wait=true&timeout=50000&consumerGroup=g"));
    EXPECT_FALSE(waiting.readable(std::chrono::milliseconds(200)));
    EXPECT_EQ(api.ack(m.at(0), "dlq", "g"), "true");
    EXPECT_THAT(Api::read_pop(waiting.read()).ids(), ElementsAre("b"));
}

// The short way and the long way are one: batches of several partitions whole, one of them in part,
// one of them twice.
TEST_F(AcksTest, WholeBatchesAreSettledLikeMessagesOneByOne) {
    for (const char* const partition : {"a", "b", "c"}) {
        api.push_ids(queue(), partition, {"1", "2"});
    }
    const auto m = pop("&partitions=3").messages;
    ASSERT_EQ(m.size(), 6u);
    std::vector<Item> most;
    for (std::size_t i = 0; i + 1 < m.size(); ++i) {
        most.push_back({m[i]});
    }
    EXPECT_THAT(settle(most), ElementsAre("1,1,0,0", "1,1,0,0", "1,1,0,0", "1,1,0,0", "1,0,0,0"));
    EXPECT_THAT(settle({{m[5]}}), ElementsAre("1,1,0,0"));
    EXPECT_THAT(settle({{m[5]}}), ElementsAre("1,0,0,1")) << "the lease is over, and it is done";
    EXPECT_EQ(pop().status, 204);
}

} // namespace
} // namespace queen::test
