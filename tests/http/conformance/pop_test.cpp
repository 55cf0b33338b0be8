// GET /api/v1/pop...: the three shapes of a pop, their parameters and answers.
#include "base/text.hpp"
#include "http/conformance/conformance.hpp"

namespace queen::test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::SizeIs;
using testing::UnorderedElementsAre;

constexpr const char* kUuid = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";

class PopContract : public ConformanceTest {
protected:
    std::string pinned(const std::string& partition, const std::string& query = {}) const {
        return "/api/v1/pop/queue/" + percent_encode(queue()) + "/partition/" +
               percent_encode(partition) + (query.empty() ? "" : "?" + query);
    }
    static std::vector<std::string> data_of(const std::vector<Delivery>& messages) {
        std::vector<std::string> all;
        for (const auto& message : messages) {
            all.push_back(message.data);
        }
        return all;
    }
    /// Pops at every broker: nothing comes, and the answer has neither body nor length (F-32).
    void expect_nothing(const std::string& path) {
        for (std::size_t i = 0; i < brokers(); ++i) {
            const auto answer = call_at(i, "GET", path);
            EXPECT_EQ(answer.status(), 204) << testing::PrintToString(answer);
            EXPECT_EQ(answer.body(), "");
            EXPECT_EQ(answer.response().count("Content-Length"), 0u);
        }
    }
};

TEST_F(PopContract, AMessageHasEveryFieldOfTheContract) {
    push(queue(), "lane", {R"({"n":4})"}, {"tx-4"});
    std::string path = pop_path(queue(), "consumerGroup=fleet&batch=2&wait=true&timeout=10000");
    const auto answer = get(path);
    ASSERT_EQ(answer.status(), 200) << testing::PrintToString(answer);
    EXPECT_THAT(answer.keys(), ElementsAre("consumerGroup", "leaseId", "messages", "partition",
                                           "partitionId", "partitionsClaimed", "queue", "success"));
    EXPECT_EQ(answer.at("success"), "true");
    EXPECT_EQ(answer.at("queue"), queue());
    EXPECT_EQ(answer.at("partition"), "lane");
    EXPECT_EQ(answer.at("consumerGroup"), "fleet");
    EXPECT_EQ(answer.at("partitionsClaimed"), "1");
    EXPECT_THAT(answer.at("partitionId"), MatchesRegex(kUuid));
    EXPECT_THAT(answer.at("leaseId"), MatchesRegex(kUuid));
    EXPECT_THAT(answer.keys("messages.0"),
                ElementsAre("consumerGroup", "createdAt", "data", "deliveryAttempt", "id",
                            "leaseId", "offset", "partition", "partitionId", "producerSub",
                            "traceId", "transactionId"));
    EXPECT_THAT(answer.at("messages.0.id"), MatchesRegex(kUuid));
    EXPECT_EQ(answer.at("messages.0.transactionId"), "tx-4");
    EXPECT_EQ(answer.at("messages.0.traceId"), "null");
    EXPECT_EQ(answer.at("messages.0.data.n"), "4");
    EXPECT_EQ(answer.at("messages.0.producerSub"), "null");
    EXPECT_THAT(answer.at("messages.0.createdAt"),
                MatchesRegex("[0-9-]{10}T[0-9:]{8}\\.[0-9]{6}Z"));
    EXPECT_EQ(answer.at("messages.0.partition"), "lane");
    EXPECT_EQ(answer.at("messages.0.partitionId"), answer.at("partitionId"));
    EXPECT_EQ(answer.at("messages.0.leaseId"), answer.at("leaseId"));
    EXPECT_EQ(answer.at("messages.0.consumerGroup"), "fleet");
    EXPECT_EQ(answer.at("messages.0.deliveryAttempt"), "1");
    EXPECT_EQ(answer.at("messages.0.offset"), "0");
}

TEST_F(PopContract, AnEmptyAnswerHasNoBodyOnEveryShape) {
    expect_nothing(pop_path(queue()));
    expect_nothing(pinned("nobody"));
    expect_nothing("/api/v1/pop?namespace=" + queue("-none"));
    expect_nothing(pop_path(queue(), "wait=true&timeout=1"));
    EXPECT_EQ(call("HEAD", pop_path(queue())).status(), 405);
}

TEST_F(PopContract, AWildcardPopMakesTheQueueAndTheOthersDoNot) {
    get(pop_path(queue()));
    EXPECT_EQ(get("/api/v1/resources/queues/" + queue()).at("options.leaseTime"), "60");
    get("/api/v1/pop/queue/" + queue("-pinned") + "/partition/p");
    EXPECT_EQ(get("/api/v1/resources/queues/" + queue("-pinned")).status(), 404);
    get("/api/v1/pop?task=" + queue("-task"));
    EXPECT_EQ(get("/api/v1/resources/queues/" + queue("-task")).status(), 404);
}

TEST_F(PopContract, TheBatchIsABudgetOverAllPartitions) {
    for (const std::string lane : {"a", "b", "c"}) {
        push(queue(), lane, {"1", "2", "3"});
    }
    const auto messages = take(queue(), "batch=5&partitions=3&consumerGroup=g");
    EXPECT_THAT(messages, SizeIs(5));
    // Grouped by partition, in the order of offsets inside each.
    for (std::size_t i = 1; i < messages.size(); ++i) {
        if (messages[i].partition == messages[i - 1].partition) {
            EXPECT_EQ(std::stoi(messages[i].offset), std::stoi(messages[i - 1].offset) + 1);
        }
        EXPECT_EQ(messages[i].lease_id, messages[0].lease_id);
    }
    const auto one = take(queue(), "batch=0&partitions=1&consumerGroup=other");
    EXPECT_THAT(one, SizeIs(1)) << "at least one is used";
}

TEST_F(PopContract, ALeasedPartitionIsSkippedByItsGroupAndByNobodyElse) {
    push(queue(), "a", {"1", "2", "3"});
    const auto mine = take(queue(), "batch=1&consumerGroup=g");
    ASSERT_THAT(data_of(mine), ElementsAre("1"));
    expect_nothing(pop_path(queue(), "consumerGroup=g&batch=10"));
    expect_nothing(pinned("a", "consumerGroup=g&batch=10"));
    EXPECT_THAT(data_of(take(queue(), "batch=10&consumerGroup=h")), ElementsAre("1", "2", "3"));
    EXPECT_THAT(data_of(take(queue(), "batch=10")), ElementsAre("1", "2", "3")) << "queue mode";
    ack(mine[0]);
    EXPECT_THAT(data_of(take(queue(), "batch=10&consumerGroup=g")), ElementsAre("2", "3"));
}

// K06: a reader that acks as it reads sees each message once, in order.
TEST_F(PopContract, K06_AutoAckAdvancesAndHasNoLease) {
    push(queue(), "p", {"1", "2", "3", "4", "5"});
    std::vector<std::string> seen;
    while (seen.size() < 5) {
        const auto messages = take(queue(), "autoAck=true&batch=2");
        ASSERT_FALSE(messages.empty());
        for (const auto& message : messages) {
            EXPECT_EQ(message.lease_id, "");
            seen.push_back(message.data);
        }
    }
    EXPECT_THAT(seen, ElementsAre("1", "2", "3", "4", "5"));
    expect_nothing(pop_path(queue(), "autoAck=true"));
}

TEST_F(PopContract, ALeaseEndsAndTheAttemptCounts) {
    push(queue(), "p", {"1"});
    EXPECT_EQ(take(queue(), "leaseSeconds=1").at(0).attempt, "1");
    const auto again = take(queue(), "leaseSeconds=60");
    ASSERT_THAT(again, SizeIs(1));
    EXPECT_EQ(again[0].attempt, "2");
}

TEST_F(PopContract, TheLeaseOfTheRequestElseOfTheQueue) {
    post("/api/v1/configure", R"({"queue":")" + queue() + R"(","options":{"leaseTime":1}})");
    push(queue(), "p", {"1"});
    EXPECT_EQ(take(queue()).at(0).attempt, "1");
    EXPECT_EQ(take(queue(), "leaseSeconds=300").at(0).attempt, "2");
    expect_nothing(pop_path(queue(), "wait=true&timeout=1500"));
}

TEST_F(PopContract, APinnedPopTakesFromItsPartitionOnly) {
    push(queue(), "a", {"1"});
    push(queue(), "b/c", {"2"});
    const auto messages = take_at(pinned("b/c", "partitions=7"));
    ASSERT_THAT(data_of(messages), ElementsAre("2"));
    EXPECT_EQ(messages[0].partition, "b/c");
    expect_nothing(pinned("b/c"));
}

TEST_F(PopContract, ADiscoveryPopFindsQueuesByLabels) {
    const std::string ns = queue("-ns");
    const std::string task = queue("-task");
    const auto label = [&](const std::string& name, const std::string& ns_of,
                           const std::string& task_of) {
        const auto made = post("/api/v1/configure", R"({"queue":")" + name + R"(","namespace":")" +
                                                        ns_of + R"(","task":")" + task_of + "\"}");
        EXPECT_EQ(made.status(), 200);
        push(name, "p", {json::quoted(name)});
    };
    label(queue("-1"), ns, task);
    label(queue("-2"), ns, "");
    label(queue("-3"), "", task);
    const auto answer =
        get("/api/v1/pop?namespace=" + ns + "&task=" + task + "&batch=10&consumerGroup=g");
    EXPECT_EQ(answer.at("queue"), "") << testing::PrintToString(answer);
    EXPECT_THAT(answer.column("messages", "data"), ElementsAre(queue("-1")));
    EXPECT_THAT(
        data_of(take_at("/api/v1/pop?namespace=" + ns + "&batch=10&partitions=10&consumerGroup=h")),
        UnorderedElementsAre(queue("-1"), queue("-2")));
    EXPECT_THAT(
        data_of(take_at("/api/v1/pop?task=" + task + "&batch=10&partitions=10&consumerGroup=i")),
        UnorderedElementsAre(queue("-1"), queue("-3")));
    const auto neither = get("/api/v1/pop?consumerGroup=g");
    EXPECT_EQ(neither.status(), 400);
    EXPECT_EQ(neither.at("error"), "namespace or task is required");
    EXPECT_EQ(neither.at("success"), "false");
    EXPECT_EQ(neither.at("messages"), "[0]");
}

TEST_F(PopContract, AWaitingPopIsAnsweredByAPush) {
    get(pop_path(queue(), "consumerGroup=g"));
    std::vector<HttpClient> parked;
    for (std::size_t i = 0; i < brokers(); ++i) {
        parked.push_back(connection(i));
        parked.back().start("GET", pop_path(queue(), "consumerGroup=g&wait=true&timeout=30000"));
    }
    for (std::size_t i = 0; i < brokers(); ++i) {
        push(queue(), "lane" + std::to_string(i), {"1"});
    }
    for (auto& client : parked) {
        EXPECT_EQ(client.read().status, 200);
    }
}

TEST_F(PopContract, MalformedParametersAreRefusedByName) {
    for (const std::string query :
         {"batch=x", "batch=", "batch=1.5", "partitions=0", "partitions=1001", "autoAck=yes",
          "wait=1", "timeout=soon", "leaseSeconds=-1", "leaseSeconds=x", "subscriptionMode=newest",
          "subscriptionFrom=yesterday", "consumerGroup=..", "conflation=maybe"}) {
        const auto answer = get(pop_path(queue(), query));
        EXPECT_EQ(answer.status(), 400) << query << " " << testing::PrintToString(answer);
        EXPECT_THAT(answer.at("error"), HasSubstr(query.substr(0, query.find('='))));
    }
    EXPECT_EQ(get(pop_path(queue(), "unknown=parameter")).status(), 204);
}

// First contact: where a group begins, once, for every partition and for those born later.
TEST_F(PopContract, K04_ANewGroupMissesNothingPushedAfterItSubscribed) {
    push(queue(), "old", {"1"});
    get(pop_path(queue(), "consumerGroup=new&subscriptionMode=new"));
    get(pop_path(queue(), "consumerGroup=now&subscriptionFrom=now"));
    push(queue(), "old", {"2"}, {"second"});
    push(queue(), "born-later", {"3"});
    for (const std::string group : {"new", "now"}) {
        EXPECT_THAT(data_of(take(queue(), "batch=1&partitions=1&consumerGroup=" + group)),
                    testing::AnyOf(ElementsAre("2"), ElementsAre("3")));
        EXPECT_THAT(data_of(take(queue(), "batch=9&partitions=9&consumerGroup=" + group)),
                    testing::AnyOf(ElementsAre("2"), ElementsAre("3")));
        expect_nothing(pop_path(queue(), "consumerGroup=" + group));
    }
    EXPECT_THAT(take(queue(), "batch=9&partitions=9&consumerGroup=all"), SizeIs(3));
}

TEST_F(PopContract, K19_ASubscriptionBeginsAtATimeInEveryReadableForm) {
    push(queue(), "p", {"1"});
    int n = 0;
    for (const std::string from :
         {"2020-01-01T00:00:00Z", "2020-01-01T00:00:00%2B05:30", "2020-01-01T00:00:00+05:30",
          "2020-01-01T00:00:00-03:30", "2020-01-01T00:00:00", "2020-01-01T00:00:00.123456789Z"}) {
        const auto query = "consumerGroup=g" + std::to_string(n++) + "&subscriptionFrom=" + from;
        EXPECT_THAT(take(queue(), query), SizeIs(1)) << from;
    }
    const auto later = "consumerGroup=later&subscriptionFrom=2999-01-01T00:00:00Z";
    expect_nothing(pop_path(queue(), later));
}

TEST_F(PopContract, QueueModeBeginsAtEverythingWhateverItSays) {
    push(queue(), "p", {"1"});
    EXPECT_THAT(take(queue(), "subscriptionMode=new"), SizeIs(1));
}

} // namespace
} // namespace queen::test
