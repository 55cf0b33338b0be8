// What a queue's settings and a group's registration do to deliveries, against the real broker. Its
// backoff is a minute: whoever is answered sooner was woken.
#include "http/broker/broker_fixture.hpp"
#include "support/exposition.hpp"

#include <thread>

namespace queen::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class VisibilityTest : public BrokerTest {
protected:
    std::unique_ptr<HttpClient> park(const std::string& target) {
        auto client = std::make_unique<HttpClient>(port());
        client->start("GET", target);
        EXPECT_FALSE(client->readable(milliseconds(100)));
        return client;
    }
    /// A wildcard, a pinned and a discovery pop of partition p of the queue, whose namespace is its
    /// own.
    std::vector<std::string> targets(const std::string& query) const {
        return {Api::pop_target(queue(), query),
                "/api/v1/pop/queue/" + percent_encode(queue()) + "/partition/p?" + query,
                "/api/v1/pop?namespace=" + percent_encode(space()) + "&" + query};
    }
    std::string space() const { return "ns-" + queue(); }
    void label(const std::string& options = "{}") {
        const auto answer =
            api.http.post("/api/v1/configure", "{\"queue\":" + json::quoted(queue()) +
                                                   ",\"namespace\":" + json::quoted(space()) +
                                                   ",\"options\":" + options + "}");
        ASSERT_EQ(answer.status, 200) << answer.body;
    }
    double counted(const std::string& family) {
        const auto page = parse_exposition(api.http.get("/metrics/prometheus").body);
        double sum = 0;
        for (const auto& sample : page.families.at(family).samples) {
            sum += sample.value;
        }
        return sum;
    }

    Api api{port()};
};

TEST_F(VisibilityTest, AGroupThatConflatesGetsTheNewestAndOneAckCompletesAll) {
    const std::string query = "consumerGroup=g&conflation=true";
    const auto empty = api.pop(queue(), query);
    EXPECT_EQ(empty.status, 200);
    EXPECT_THAT(empty.messages, IsEmpty());
    EXPECT_THAT(empty.body, HasSubstr(R"("conflation":true)"));
    api.push_ids(queue(), "p", {"1", "2", "3"});
    auto popped = api.pop(queue(), "consumerGroup=g"); // as stored
    ASSERT_THAT(popped.ids(), ElementsAre("3"));
    EXPECT_THAT(popped.body, HasSubstr(R"("conflation":true)"));
    const auto answer =
        api.http.post("/api/v1/ack", R"({"consumerGroup":"g","transactionId":"3","partitionId":")" +
                                         popped.messages[0].partition_id + R"(","leaseId":")" +
                                         popped.lease_id + "\"}");
    EXPECT_THAT(answer.body, HasSubstr(R"("conflated":2)"));
    EXPECT_THAT(answer.body, HasSubstr(R"("leaseReleased":true)"));
    const auto other = api.pop(queue(), "consumerGroup=g&conflation=false");
    EXPECT_EQ(other.status, 200);
    EXPECT_THAT(other.body, HasSubstr(R"("conflationConflict":true)"));
    EXPECT_THAT(api.pop(queue(), "consumerGroup=all").ids(), ElementsAre("1", "2", "3"));
    const auto depth =
        api.http.get("/api/v1/resources/queues/" + percent_encode(queue()) + "/depth?group=g");
    EXPECT_THAT(depth.body, HasSubstr(R"("conflation": true)"));
}

// What is pushed while the newest is held is delivered when that is acked, without another push.
TEST_F(VisibilityTest, AConflatedAckWakesWhoWaitsForWhatCameMeanwhile) {
    api.push_ids(queue(), "p", {"1", "2"});
    const auto held = api.pop(queue(), "consumerGroup=g&conflation=true");
    ASSERT_THAT(held.ids(), ElementsAre("2"));
    api.push_ids(queue(), "p", {"3", "4"});
    auto waiting =
        park(Api::pop_target(queue(), "consumerGroup=g&conflation=true&wait=true&timeout=50000"));
    EXPECT_EQ(api.ack(held.messages[0], "completed", "g"), "true");
    EXPECT_THAT(Api::read_pop(waiting->read()).ids(), ElementsAre("4"));
}

TEST_F(VisibilityTest, AutopilotChoosesAndTells) {
    for (int i = 0; i < 30; ++i) {
        api.push_ids(queue(), "p" + std::to_string(i), {std::to_string(i)});
    }
    std::size_t got = 0;
    while (got < 30) {
        const auto popped = api.pop(queue(), "autopilot=true&autoAck=true");
        ASSERT_EQ(popped.status, 200);
        EXPECT_THAT(popped.body, HasSubstr(R"("autopilot":{"partitions":)"));
        EXPECT_THAT(popped.body, HasSubstr(R"("batch":100})"));
        got += popped.messages.size();
    }
    EXPECT_EQ(api.pop(queue(), "autopilot=true").status, 204);
}

TEST_F(VisibilityTest, MW1_AWaitForMoreEndsAndDeliversWhatThereIs) {
    api.configure(queue(), R"({"minPopWaitTime":400})");
    EXPECT_EQ(api.pop(queue()).status, 204); // first contact, by which the broker knows the time
    for (const auto& target : {targets("")[0], targets("")[1]}) {
        auto waiting = park(target + (target.find('?') == std::string::npos ? "?" : "&") +
                            "wait=true&timeout=50000&batch=10&autoAck=true");
        const auto start = std::chrono::steady_clock::now();
        api.push_ids(queue(), "p", {target + "1"});
        api.push_ids(queue(), "p", {target + "2"});
        EXPECT_THAT(Api::read_pop(waiting->read()).ids(), ElementsAre(target + "1", target + "2"));
        EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(400));
    }
    EXPECT_GE(counted("queen_pop_fill_wait_total"), 2);
    EXPECT_GE(counted("queen_pop_fill_wait_microseconds_total"), 800'000);
}

TEST_F(VisibilityTest, WhatTheOptionsSayHoldsForThePopThatWaits) {
    api.configure(queue(), R"({"delayedProcessing":3600})");
    api.push_ids(queue(), "p", {"1"});
    EXPECT_EQ(api.pop(queue(), "consumerGroup=g").status, 204);
    auto waiting = park(Api::pop_target(queue(), "consumerGroup=g&wait=true&timeout=50000"));
    api.configure(queue(), "{}");
    EXPECT_THAT(Api::read_pop(waiting->read()).ids(), ElementsAre("1"));
}

// K42 for delay: never early, and without anything else happening.
TEST_F(VisibilityTest, K42_ADelayedMessageIsDeliveredWhenItIsDue) {
    api.configure(queue(), R"({"delayedProcessing":1})");
    EXPECT_EQ(api.pop(queue(), "consumerGroup=g").status, 204);
    const auto start = std::chrono::steady_clock::now();
    api.push_ids(queue(), "p", {"1"});
    Popped popped;
    // Without hints nobody knows when: sqlscan looks at each backoff, which is a minute here.
    const std::string timeout = source_under_test() == "sqlscan" ? "100" : "50000";
    do {
        popped = api.pop(queue(), "consumerGroup=g&wait=true&timeout=" + timeout);
    } while (popped.status == 204 && timeout == "100");
    EXPECT_THAT(popped.ids(), ElementsAre("1"));
    EXPECT_GE(std::chrono::steady_clock::now() - start, seconds(1));
}

// F-7: what is only withheld is looked at again; what is gone is not, for ever.
TEST_F(VisibilityTest, F7_ADelayedQueueThatIsEmptyCostsNoClaims) {
    api.configure(queue(), R"({"delayedProcessing":1})");
    EXPECT_EQ(api.pop(queue(), "consumerGroup=g").status, 204);
    api.push_ids(queue(), "p", {"1"});
    const std::string pinned = "/api/v1/pop/queue/" + percent_encode(queue()) +
                               "/partition/p?consumerGroup=g&autoAck=true";
    while (Api::read_pop(api.http.get(pinned)).messages.empty()) { // behind the source's back
    }
    const auto wait = [&](int time) {
        EXPECT_EQ(
            api.pop(queue(), "consumerGroup=g&wait=true&timeout=" + std::to_string(time)).status,
            204);
    };
    wait(6'000); // as long as a ghost may live
    const auto claims = counted("queen_pop_targeted_total") + counted("queen_pop_wildcard_total");
    wait(2'000);
    EXPECT_EQ(counted("queen_pop_targeted_total") + counted("queen_pop_wildcard_total"), claims);
}

TEST_F(VisibilityTest, AQueueThatGetsTheLabelsWakesTheDiscoveryThatWaitsForThem) {
    api.push_ids(queue(), "p", {"1"});
    auto waiting = park("/api/v1/pop?namespace=" + percent_encode(space()) +
                        "&consumerGroup=g&wait=true&timeout=50000");
    label();
    EXPECT_THAT(Api::read_pop(waiting->read()).ids(), ElementsAre("1"));
}

// K04, K19: a group begins where it said, whatever the shape of its first pop.
TEST_F(VisibilityTest, K04_K19_EveryShapeOfPopBeginsWhereItSays) {
    label();
    api.push_ids(queue(), "p", {"old"});
    int group = 0;
    const auto first = [&](std::size_t shape, const std::string& query) {
        const auto name = "g" + std::to_string(++group);
        return Api::read_pop(
            api.http.get(targets("batch=1&consumerGroup=" + name + "&" + query)[shape]));
    };
    for (std::size_t shape = 0; shape < 3; ++shape) {
        for (const char* past :
             {"2001-01-01T00:00:00Z", "2001-01-01T05:30:00%2B05:30", "2001-01-01T05:30:00+05:30",
              "2000-12-31T20:30:00-03:30", "2001-01-01T00:00:00", "2001-01-01T00:00:00.123Z",
              "2001-01-01T00:00:00.123456789Z", "2000-12-31T24:00:00Z"}) {
            EXPECT_THAT(first(shape, "subscriptionFrom=" + std::string(past)).ids(),
                        ElementsAre("old"))
                << shape << past;
        }
        for (const char* later : {"subscriptionFrom=2901-01-01T00:00:00Z", "subscriptionFrom=now",
                                  "subscriptionMode=new", "subscriptionMode=new-only"}) {
            EXPECT_EQ(first(shape, later).status, 204) << shape << later;
        }
        for (const char* unreadable :
             {"subscriptionFrom=yesterday", "subscriptionFrom=1700000000000",
              "subscriptionFrom=2001-13-01T00:00:00Z", "subscriptionMode=newest"}) {
            EXPECT_EQ(first(shape, unreadable).status, 400) << shape << unreadable;
            --group; // untouched: the same group begins at the start
            EXPECT_THAT(first(shape, "").ids(), ElementsAre("old")) << shape << unreadable;
        }
        const auto name = "late" + std::to_string(shape);
        const auto target = targets("consumerGroup=" + name + "&subscriptionMode=new")[shape];
        EXPECT_EQ(api.http.get(target).status, 204);
        const auto id = "new" + std::to_string(shape);
        api.push_ids(queue(), "p", {id});
        EXPECT_THAT(Api::read_pop(api.http.get(target)).ids(), testing::Contains(id));
        EXPECT_THAT(Api::read_pop(api.http.get(target)).ids(), Not(testing::Contains("old")));
    }
    // Born after the subscription, read from its beginning.
    api.push_ids(queue(), "never-seen-before", {"m1"});
    for (const auto& target : {targets("consumerGroup=late0&partitions=10")[0],
                               targets("consumerGroup=late2&partitions=10")[2]}) {
        EXPECT_THAT(Api::read_pop(api.http.get(target)).ids(), testing::Contains("m1"));
    }
}

// K07: no two ids are taken for one another, up to the longest; the original's id comes back.
TEST_F(VisibilityTest, K07_IdsDifferByEachOfTheirBytes) {
    const std::string stem(65'534, 'x');
    const std::string wide = stem.substr(0, 65'532);
    const std::vector<std::string> ids{
        stem,       stem + "a", stem + "b",  "a" + stem, stem.substr(1),
        wide + "é", wide + "è", wide + "日", "A",        "a"};
    const auto pushed = api.push_ids(queue(), "p", ids);
    EXPECT_THAT(column(pushed, "status"), testing::Each("queued"));
    const auto again = api.push_ids(queue(), "p", ids);
    EXPECT_THAT(column(again, "status"), testing::Each("duplicate"));
    EXPECT_EQ(column(again, "message_id"), column(pushed, "message_id"));
    EXPECT_EQ(column(again, "transaction_id"), ids);
    EXPECT_EQ(api.pop(queue(), "autoAck=true").ids(), ids);
    EXPECT_EQ(api.push_ids(queue(), "p", {stem + "ab"}).status, 400);
}

} // namespace
} // namespace queen::test
