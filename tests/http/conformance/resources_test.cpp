// /api/v1/resources...
#include "base/text.hpp"
#include "http/conformance/conformance.hpp"

namespace queen::test {
namespace {

using testing::AnyOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::MatchesRegex;
using testing::SizeIs;
using testing::StartsWith;

constexpr const char* kMilliseconds = "[0-9-]{10}T[0-9:]{8}\\.[0-9]{3}Z";

class ResourcesContract : public ConformanceTest {
protected:
    std::string path(const std::string& rest = {}) const {
        return "/api/v1/resources/queues/" + percent_encode(queue()) + rest;
    }
    Answer detail() { return get(path()); }
    Answer depth(const std::string& query = {}) { return get(path("/depth" + query)); }
    /// The element of this test's queue in a list.
    std::string row(const Answer& list, const std::string& name) {
        for (std::size_t i = 0; i < list.size("queues"); ++i) {
            if (list.at("queues." + std::to_string(i) + ".name") == name) {
                return "queues." + std::to_string(i);
            }
        }
        return "none";
    }
};

TEST_F(ResourcesContract, DetailHasEveryFieldOfTheContract) {
    post("/api/v1/configure", R"({"queue":")" + queue() + R"(","namespace":"n","task":"t"})");
    push(queue(), "a", {"1", "2", "3"});
    push(queue(), "b", {"4"});
    const auto messages = take(queue(), "batch=1&consumerGroup=g");
    ack(messages.at(0));
    const auto answer = detail();
    ASSERT_EQ(answer.status(), 200);
    EXPECT_THAT(answer.keys(),
                IsSupersetOf({"id", "name", "namespace", "task", "createdAt", "partitions",
                              "totals", "retainedBytes", "segments", "options"}));
    EXPECT_EQ(answer.at("name"), queue());
    EXPECT_EQ(answer.at("namespace"), "n");
    EXPECT_EQ(answer.at("task"), "t");
    EXPECT_THAT(answer.at("createdAt"), MatchesRegex(kMilliseconds));
    EXPECT_EQ(answer.size("partitions"), 2u);
    EXPECT_THAT(answer.keys("partitions.0"),
                IsSupersetOf({"id", "name", "createdAt", "stats", "oldestMessage", "newestMessage",
                              "messages", "cursor", "lastActivity", "retainedBytes"}));
    EXPECT_THAT(
        answer.keys("partitions.0.stats"),
        IsSupersetOf({"total", "pending", "processing", "completed", "failed", "deadLetter"}));
    EXPECT_THAT(answer.keys("partitions.0.cursor"),
                IsSupersetOf({"totalConsumed", "batchesConsumed"}));
    EXPECT_EQ(answer.at("totals.total"), "4");
    EXPECT_EQ(answer.at("totals.pending"), "3");
    EXPECT_EQ(answer.at("totals.completed"), "1");
    EXPECT_EQ(answer.at("totals.deadLetter"), "0");
    EXPECT_EQ(answer.at("segments.segments"), "2");
    EXPECT_EQ(answer.at("segments.messages"), "4");
    EXPECT_NE(answer.at("retainedBytes"), "0");
    EXPECT_EQ(answer.size("options"), 19u);
    const auto missing = get("/api/v1/resources/queues/" + queue("-none"));
    EXPECT_EQ(missing.status(), 404);
    EXPECT_EQ(missing.at("error"), "Queue not found");
}

TEST_F(ResourcesContract, DeadLettersAreCounted) {
    push(queue(), "a", {"1", "2"});
    const auto message = take(queue(), "consumerGroup=g").at(0);
    EXPECT_EQ(ack(message, "dlq").at("0.dlq"), "true");
    EXPECT_EQ(detail().at("totals.deadLetter"), "1");
    EXPECT_EQ(detail().at("partitions.0.stats.deadLetter"), "1");
}

TEST_F(ResourcesContract, DepthOfTheQueueAndOfAGroup) {
    push(queue(), "a", {"1", "2", "3"});
    push(queue(), "b", {"4"});
    const auto whole = depth();
    ASSERT_EQ(whole.status(), 200);
    EXPECT_THAT(whole.keys(), IsSupersetOf({"queue", "group", "pending", "processing", "ready",
                                            "partitionsPending", "partitionsReady", "conflation",
                                            "effectivePending", "effectiveReady", "partitions"}));
    EXPECT_EQ(whole.at("queue"), queue());
    EXPECT_EQ(whole.at("group"), "null");
    EXPECT_EQ(whole.at("pending"), "4");
    EXPECT_EQ(whole.at("ready"), "4");
    EXPECT_EQ(whole.at("partitionsPending"), "2");
    EXPECT_EQ(whole.at("conflation"), "false");
    EXPECT_THAT(whole.keys("partitions.0"),
                IsSupersetOf({"partition", "pending", "processing", "ready"}));
    take(queue(), "batch=2&partitions=1&consumerGroup=g");
    const auto group = depth("?group=g");
    EXPECT_EQ(group.at("group"), "g");
    EXPECT_THAT(group.at("processing"), AnyOf("2", "1"));
    EXPECT_EQ(group.at("partitionsReady"), "1") << "the leased one is not ready";
    EXPECT_EQ(depth("?group=stranger").at("pending"), "4");
    EXPECT_EQ(get("/api/v1/resources/queues/" + queue("-none") + "/depth").status(), 404);
}

TEST_F(ResourcesContract, SizesByPartition) {
    push(queue(), "a", {"1"});
    const auto answer = get(path("/sizes"));
    EXPECT_EQ(answer.at("queue"), queue());
    EXPECT_THAT(answer.keys("partitions"), ElementsAre("a"));
    EXPECT_EQ(get("/api/v1/resources/queues/" + queue("-none") + "/sizes").status(), 404);
}

TEST_F(ResourcesContract, TheListIsNewestFirstWhateverTheLabels) {
    push(queue("-1"), "a", {"1"});
    push(queue("-2"), "a", {"1", "2"});
    const auto list = get("/api/v1/resources/queues?namespace=no-such&task=none");
    ASSERT_EQ(list.status(), 200);
    EXPECT_THAT(list.keys(),
                IsSupersetOf({"queues", "kvRows", "kvBytes", "timerRows", "timerBytes"}));
    const auto one = row(list, queue("-1"));
    const auto two = row(list, queue("-2"));
    ASSERT_NE(one, "none");
    ASSERT_NE(two, "none");
    EXPECT_LT(std::stoi(two.substr(7)), std::stoi(one.substr(7)));
    EXPECT_THAT(list.keys(two),
                IsSupersetOf({"id", "name", "namespace", "task", "createdAt", "partitions",
                              "retainedBytes", "messages", "segments"}));
    EXPECT_EQ(list.at(two + ".partitions"), "1");
    EXPECT_EQ(list.at(two + ".messages.total"), "2");
    EXPECT_EQ(list.at(two + ".messages.pending"), "2");
    EXPECT_EQ(list.at(two + ".messages.processing"), "0");
    EXPECT_EQ(list.at(two + ".segments.messages"), "2");
    EXPECT_EQ(get("/api/v1/resources/queues?stats=live").status(), 200);
    EXPECT_EQ(get("/api/v1/resources/queues?stats=cached").status(), 200);
    EXPECT_EQ(get("/api/v1/resources/queues?stats=guessed").status(), 400);
}

TEST_F(ResourcesContract, NamespacesAndTasksCountTruly) {
    const std::string ns = queue("-ns");
    for (const std::string which : {"-1", "-2"}) {
        post("/api/v1/configure", R"({"queue":")" + queue(which) + R"(","namespace":")" + ns +
                                      R"(","task":")" + ns + "t\"}");
        push(queue(which), "a", {"1"});
        push(queue(which), "b", {"1"});
    }
    const auto find = [](const Answer& list, const std::string& array, const std::string& key,
                         const std::string& name) {
        for (std::size_t i = 0; i < list.size(array); ++i) {
            const std::string at = array + "." + std::to_string(i) + ".";
            if (list.at(at + key) == name) {
                return list.at(at + "queues") + " " + list.at(at + "partitions") + " " +
                       list.at(at + "messages.total") + " " + list.at(at + "messages.pending");
            }
        }
        return std::string("none");
    };
    EXPECT_EQ(find(get("/api/v1/resources/namespaces"), "namespaces", "namespace", ns), "2 4 4 4");
    EXPECT_EQ(find(get("/api/v1/resources/tasks"), "tasks", "task", ns + "t"), "2 4 4 4");
}

TEST_F(ResourcesContract, TheOverviewHasEveryField) {
    push(queue(), "a", {"1"});
    const auto answer = get("/api/v1/resources/overview");
    ASSERT_EQ(answer.status(), 200);
    EXPECT_THAT(answer.keys(),
                IsSupersetOf({"queues", "partitions", "namespaces", "tasks", "messages", "lag",
                              "throughput", "timestamp", "statsAge"}));
    EXPECT_THAT(answer.keys("messages"), IsSupersetOf({"total", "pending", "processing",
                                                       "completed", "failed", "deadLetter"}));
    EXPECT_THAT(answer.keys("lag.time"), ElementsAre("avg", "max", "median", "min"));
    EXPECT_THAT(answer.keys("lag.offset"), ElementsAre("avg", "max", "median", "min"));
    EXPECT_THAT(answer.keys("throughput"),
                IsSupersetOf({"ingestedPerSecond", "processedPerSecond"}));
}

TEST_F(ResourcesContract, DeletingAQueueIsIdempotent) {
    push(queue(), "a", {"1"});
    const auto answer = call("DELETE", path());
    EXPECT_EQ(answer.status(), 200);
    EXPECT_EQ(answer.at("deleted"), "true");
    EXPECT_EQ(answer.at("existed"), "true");
    EXPECT_EQ(answer.at("queue"), queue());
    const auto again = call("DELETE", path());
    EXPECT_EQ(again.status(), 200);
    EXPECT_EQ(again.at("deleted"), "false");
    EXPECT_EQ(again.at("existed"), "false");
    EXPECT_EQ(again.at("message"), "Queue not found, nothing was deleted");
    EXPECT_EQ(detail().status(), 404);
}

// K47: deleted and made again at once, on every path.
TEST_F(ResourcesContract, K47_ADeletedQueueBeginsAnewAtEveryBroker) {
    push(queue(), "a", {"1", "2"}, {"x", "y"});
    const auto old = take(queue(), "batch=1&consumerGroup=g");
    take(queue(), "batch=10&autoAck=true&consumerGroup=waiting");
    auto parked = connection(brokers() - 1);
    parked.start("GET", pop_path(queue(), "wait=true&timeout=30000&consumerGroup=waiting"));
    EXPECT_EQ(call_at(0, "DELETE", path()).at("deleted"), "true");
    const auto pushed = push(queue(), "a", {"10", "20"}, {"x", "y"});
    EXPECT_EQ(pushed.at("0.offset"), "0") << "old ids block nothing";
    EXPECT_EQ(ack(old.at(0)).at("0.success"), "false");
    const auto messages = take(queue(), "batch=10&consumerGroup=g");
    ASSERT_THAT(messages, SizeIs(2));
    EXPECT_EQ(messages[0].data, "10");
    EXPECT_NE(messages[0].partition_id, old[0].partition_id);
    EXPECT_EQ(parked.read().status, 200);
}

} // namespace
} // namespace queen::test
