// Transactions over HTTP.
#include "http/broker/broker_fixture.hpp"

#include <atomic>
#include <map>
#include <set>
#include <thread>

namespace queen::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class TransactionTest : public BrokerTest {
protected:
    static std::string push(const std::string& queue, const std::string& partition,
                            const std::string& id) {
        return R"({"type":"push","queue":)" + json::quoted(queue) + R"(,"partition":)" +
               json::quoted(partition) + R"(,"transactionId":)" + json::quoted(id) +
               R"(,"payload":1})";
    }
    static std::string ack(const Message& message, const std::string& status = "completed",
                           const std::string& group = "g") {
        return R"({"type":"ack","transactionId":)" + json::quoted(message.transaction_id) +
               R"(,"partitionId":)" + json::quoted(message.partition_id) + R"(,"status":)" +
               json::quoted(status) + R"(,"consumerGroup":)" + json::quoted(group) + "}";
    }
    /// The answer's body.
    static std::string run(Api& api, const std::vector<std::string>& operations,
                           const std::vector<std::string>& leases = {}) {
        std::string body = R"({"operations":[)";
        for (const auto& operation : operations) {
            body += (body.back() == '[' ? "" : ",") + operation;
        }
        body += R"(],"requiredLeases":[)";
        for (const auto& lease : leases) {
            body += (body.back() == '[' ? "" : ",") + json::quoted(lease);
        }
        const auto response = api.http.post("/api/v1/transaction", body + "]}");
        EXPECT_EQ(response.status, 200) << response.body;
        return response.body;
    }
    std::string other() const { return queue() + ".out"; }

    Api api{port()};
};

constexpr const char* kSuccess = "\"success\":true";

TEST_F(TransactionTest, MovesAMessageFromOneQueueToAnother) {
    api.push_ids(queue(), "p", {"a"});
    const auto popped = api.pop(queue(), "consumerGroup=g");
    ASSERT_THAT(popped.ids(), ElementsAre("a"));
    EXPECT_THAT(run(api, {ack(popped.messages[0]), push(other(), "p", "a-2")}, {popped.lease_id}),
                HasSubstr(kSuccess));
    EXPECT_THAT(api.pop(other()).ids(), ElementsAre("a-2"));
    EXPECT_EQ(api.pop(queue(), "consumerGroup=g").status, 204);
    // As a client does whose answer was lost: nothing is done twice.
    const auto again =
        run(api, {ack(popped.messages[0]), push(other(), "p", "a-2")}, {popped.lease_id});
    EXPECT_THAT(again, HasSubstr(R"("success":false,"reason":"duplicate","error":"QDUP: )"));
    EXPECT_THAT(again, HasSubstr("'a-2' is at offset 0 of queue"));
}

TEST_F(TransactionTest, ADuplicateLeavesEverythingAsItWas) {
    api.push_ids(queue(), "p", {"a"});
    api.push_ids(other(), "p", {"old"});
    const auto popped = api.pop(queue(), "consumerGroup=g&leaseSeconds=600");
    EXPECT_THAT(run(api, {push(queue() + ".new", "p", "n"), ack(popped.messages.at(0)),
                          push(other(), "p", "old")}),
                HasSubstr(R"("reason":"duplicate")"));
    EXPECT_THAT(api.pop(other()).ids(), ElementsAre("old"));
    EXPECT_EQ(api.http.get("/api/v1/resources/queues/" + queue() + ".new").status, 404);
    EXPECT_EQ(api.ack(popped.messages[0], "completed", "g"), "true") << "the lease is still there";
}

// K08 for transactions: what was computed under a lost lease is not stored.
TEST_F(TransactionTest, K08AWorkerWithoutItsLeaseStoresNothing) {
    api.push_ids(queue(), "p", {"a"});
    const auto popped = api.pop(queue(), "consumerGroup=g&leaseSeconds=600");
    ASSERT_EQ(api.ack(popped.messages.at(0), "retry", "g"), "true");
    const auto taken = api.pop(queue(), "consumerGroup=g&leaseSeconds=600");
    ASSERT_THAT(taken.ids(), ElementsAre("a"));
    const auto late =
        run(api, {push(other(), "p", "n"), ack(popped.messages[0])}, {popped.lease_id});
    EXPECT_THAT(late, HasSubstr(R"("success":false,"reason":"rejected_ack","error":"QTXN: )"));
    EXPECT_THAT(late, HasSubstr("invalid or expired lease"));
    EXPECT_EQ(api.pop(other()).status, 204);
    EXPECT_THAT(run(api, {push(other(), "p", "n"), ack(taken.messages[0])}, {taken.lease_id}),
                HasSubstr(kSuccess));
    EXPECT_THAT(api.pop(other()).ids(), ElementsAre("n"));
}

// TX-6: the floor of this broker is a minute; who is answered was woken by the transaction.
TEST_F(TransactionTest, APushWakesAParkedPopAndAnAckFreesItsPartition) {
    api.push_ids(queue(), "p", {"a", "b"});
    const auto held = api.pop(queue(), "consumerGroup=g&batch=1");
    HttpClient freed(port()), stored(port());
    freed.start("GET", Api::pop_target(queue(), "wait=true&timeout=50000&consumerGroup=g"));
    stored.start("GET", Api::pop_target(other(), "wait=true&timeout=50000"));
    EXPECT_FALSE(freed.readable(std::chrono::milliseconds(200)));
    EXPECT_FALSE(stored.readable(std::chrono::milliseconds(1)));
    EXPECT_THAT(run(api, {push(other(), "p", "n"), ack(held.messages.at(0))}, {held.lease_id}),
                HasSubstr(kSuccess));
    EXPECT_THAT(Api::read_pop(stored.read()).ids(), ElementsAre("n"));
    EXPECT_THAT(Api::read_pop(freed.read()).ids(), ElementsAre("b"));
}

TEST_F(TransactionTest, ANackInATransactionIsRedelivered) {
    api.push_ids(queue(), "p", {"a"});
    const auto held = api.pop(queue(), "consumerGroup=g");
    EXPECT_THAT(
        run(api, {ack(held.messages.at(0), "retry"), push(other(), "p", "why")}, {held.lease_id}),
        HasSubstr(kSuccess));
    EXPECT_THAT(api.pop(queue(), "consumerGroup=g").ids(), ElementsAre("a"));
}

// TX-9: given up and passed on at one moment; the dead letters of a batch lie in several segments.
TEST_F(TransactionTest, DeadLettersAreFiledWithTheRest) {
    api.push_ids(queue(), "p", {"a"});
    api.push_ids(queue(), "p", {"b", "c"});
    const auto held = api.pop(queue(), "consumerGroup=g");
    ASSERT_THAT(held.ids(), ElementsAre("a", "b", "c"));
    const auto answer = run(api,
                            {push(other(), "p", "n"), ack(held.messages[0], "dlq"),
                             ack(held.messages[1]), ack(held.messages[2], "dlq")},
                            {held.lease_id});
    EXPECT_THAT(answer, HasSubstr(kSuccess));
    const auto document = json::Document::parse(answer);
    ASSERT_TRUE(document);
    std::vector<bool> dlq;
    for (std::size_t i = 1; i < 4; ++i) {
        dlq.push_back(document->root()["results"].at(i)["dlq"].boolean().value_or(false));
    }
    EXPECT_THAT(dlq, ElementsAre(true, false, true)) << answer;
    EXPECT_EQ(api.pop(queue(), "consumerGroup=g").status, 204) << "the cursor passed all of them";
    EXPECT_THAT(api.pop(other()).ids(), ElementsAre("n"));
}

// K01, with the late item sent through a transaction: it takes its place when it commits, so nobody
// reads past it. Small transactions and pushes overtake large ones all the time.
TEST_F(TransactionTest, K01ALateTransactionIsNeverBehindACursor) {
    constexpr int kProducers = 6;
    constexpr int kRounds = 12;
    constexpr int kLate = 400;
    std::atomic<int> running{kProducers};
    std::vector<std::vector<std::string>> sent(kProducers);
    std::vector<std::thread> threads;
    for (int p = 0; p < kProducers; ++p) {
        threads.emplace_back([&, p] {
            Api mine(port());
            auto& ids = sent[static_cast<std::size_t>(p)];
            for (int round = 0; round < kRounds; ++round) {
                const bool late = round % 4 == p % 4;
                std::vector<std::string> all, operations;
                for (int i = 0; i < (late ? kLate : 1); ++i) {
                    all.push_back(std::to_string(p) + ":" +
                                  std::to_string(ids.size() + all.size()));
                    operations.push_back(push(queue(), "hot", all.back()));
                }
                if (late || round % 2 == 0) {
                    if (late) { // its other partitions make it longer
                        for (int i = 0; i < 20; ++i) {
                            operations.push_back(push(other(), "lane" + std::to_string(i),
                                                      all.back() + "/" + std::to_string(i)));
                        }
                    }
                    EXPECT_THAT(run(mine, operations), HasSubstr(kSuccess));
                } else {
                    EXPECT_EQ(mine.push_ids(queue(), "hot", all).status, 201);
                }
                ids.insert(ids.end(), all.begin(), all.end());
            }
            --running;
        });
    }
    std::mutex mutex;
    std::vector<std::string> seen;
    for (int w = 0; w < 3; ++w) {
        threads.emplace_back([&] {
            Api mine(port());
            for (bool over = false;;) {
                const auto popped = mine.pop(queue(), "consumerGroup=g&batch=100&leaseSeconds=600");
                if (popped.messages.empty()) {
                    if (over) {
                        return;
                    }
                    over = running == 0; // and one more look
                    continue;
                }
                over = false;
                {
                    const std::lock_guard lock(mutex); // the lease keeps batches in order
                    const auto ids = popped.ids();
                    seen.insert(seen.end(), ids.begin(), ids.end());
                }
                EXPECT_EQ(mine.ack(popped.messages.back(), "completed", "g"), "true");
            }
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    // A worker may have looked while another one held the last batch.
    for (auto rest = api.pop(queue(), "consumerGroup=g&batch=1000"); !rest.messages.empty();
         rest = api.pop(queue(), "consumerGroup=g&batch=1000")) {
        const auto ids = rest.ids();
        seen.insert(seen.end(), ids.begin(), ids.end());
        api.ack(rest.messages.back(), "completed", "g");
    }
    std::map<char, std::vector<std::string>> by_producer;
    for (const auto& id : seen) {
        by_producer[id.front()].push_back(id);
    }
    for (int p = 0; p < kProducers; ++p) {
        EXPECT_EQ(by_producer[static_cast<char>('0' + p)], sent[static_cast<std::size_t>(p)])
            << "every id once, in the order in which it was pushed";
    }
    std::vector<std::string> all;
    for (auto fresh = api.pop(queue(), "consumerGroup=fresh&batch=1000"); !fresh.messages.empty();
         fresh = api.pop(queue(), "consumerGroup=fresh&batch=1000")) {
        const auto ids = fresh.ids();
        all.insert(all.end(), ids.begin(), ids.end());
        api.ack(fresh.messages.back(), "completed", "fresh");
    }
    EXPECT_EQ(all, seen) << "a fresh group sees what the group saw, in that order";
}

TEST_F(TransactionTest, WhatIsNotAnIdOrNotThereIsAnAnswerNotAnError) {
    Message ghost;
    ghost.transaction_id = "t";
    ghost.partition_id = "17";
    EXPECT_THAT(run(api, {ack(ghost)}), HasSubstr("partitionId is not a partition id"));
    ghost.partition_id = "0199f0aa-0000-7000-8000-0000000000f1";
    EXPECT_THAT(run(api, {ack(ghost)}), HasSubstr("partition not found"));
    api.push_ids(queue(), "p", {"a"});
    const auto held = api.pop(queue(), "consumerGroup=g");
    ghost.partition_id = held.messages.at(0).partition_id;
    EXPECT_THAT(run(api, {ack(ghost)}, {held.lease_id}), HasSubstr("unresolvable"));
    EXPECT_THAT(run(api, {ack(ghost, "completed", "nobody")}), HasSubstr("consumer not found"));
    EXPECT_THAT(run(api, {push(other(), "p", "n")}, {"0199f0d1-0000-7000-8000-000000000777"}),
                HasSubstr("required lease"));
    EXPECT_EQ(api.pop(other()).status, 204);
}

} // namespace
} // namespace queen::test
