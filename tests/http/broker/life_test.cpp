// The life of a message over HTTP, as README tells it, and the failures people had with it.
#include "http/broker/broker_fixture.hpp"

#include <set>
#include <thread>

namespace queen::test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class LifeTest : public BrokerTest {
protected:
    Api api{port()};

    /// The floor of this broker is a minute; a pop that does not wait asks the store each time.
    Popped pop_when_free(const std::string& query) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
        Popped popped;
        while (popped.messages.empty() && std::chrono::steady_clock::now() < end) {
            popped = api.pop(queue(), query);
        }
        return popped;
    }
};

std::optional<std::int64_t> option_of(const HttpResponse& configured, std::string_view name) {
    const auto document = json::Document::parse(configured.body);
    return document ? document->root()["options"][name].integer() : std::nullopt;
}

TEST_F(LifeTest, PushPopAckAndNothingIsLeft) {
    const auto pushed = api.push(queue(), {{"p", "t1", R"({"n":1})"}, {"p", "t2", "[2]"}});
    EXPECT_EQ(pushed.status, 201);
    EXPECT_THAT(column(pushed, "status"), ElementsAre("queued", "queued"));
    const auto popped = api.pop(queue(), "consumerGroup=g");
    ASSERT_THAT(popped.ids(), ElementsAre("t1", "t2"));
    EXPECT_EQ(popped.messages[0].data, R"({"n":1})");
    EXPECT_EQ(popped.messages[1].offset, 1);
    EXPECT_EQ(popped.messages[0].attempt, 1);
    EXPECT_EQ(api.pop(queue(), "consumerGroup=g").status, 204) << "the partition is held";
    EXPECT_EQ(api.ack(popped.messages[1], "completed", "g"), "true") << "completes what is below";
    EXPECT_EQ(api.pop(queue(), "consumerGroup=g").status, 204);
    EXPECT_THAT(api.pop(queue(), "consumerGroup=h").ids(), ElementsAre("t1", "t2"));
}

TEST_F(LifeTest, A204HasNeitherBodyNorLength) {
    const auto empty = api.http.get(Api::pop_target(queue(), ""));
    EXPECT_EQ(empty.status, 204);
    EXPECT_EQ(empty.count("Content-Length"), 0u);
    EXPECT_EQ(empty.count("Content-Type"), 0u);
    EXPECT_EQ(api.http.get("/health").status, 200) << "the connection is in step";
}

TEST_F(LifeTest, ADuplicateNamesTheFirstMessage) {
    const auto first = api.push_ids(queue(), "p", {"a", "b", "c"});
    const auto again = api.push_ids(queue(), "p", {"x", "b", "y"});
    EXPECT_THAT(column(again, "status"), ElementsAre("queued", "duplicate", "queued"));
    EXPECT_EQ(column(again, "message_id")[1], column(first, "message_id")[1]);
    EXPECT_THAT(api.pop(queue()).ids(), ElementsAre("a", "b", "c", "x", "y"));
}

// An expired lease comes again by itself, counted, and burns no retry budget (K10, F-37).
TEST_F(LifeTest, AnExpiredLeaseIsRedeliveredWithTheNextAttempt) {
    api.push_ids(queue(), "p", {"t"});
    ASSERT_EQ(api.pop(queue(), "leaseSeconds=1").messages.at(0).attempt, 1);
    const auto again = pop_when_free("leaseSeconds=60");
    ASSERT_EQ(again.messages.size(), 1u);
    EXPECT_EQ(again.messages[0].attempt, 2);
}

TEST_F(LifeTest, ALongPollIsWokenByThePush) {
    HttpClient waiting(port());
    waiting.start("GET", Api::pop_target(queue(), "wait=true&timeout=50000"));
    EXPECT_FALSE(waiting.readable(std::chrono::milliseconds(200)));
    api.push_ids(queue(), "p", {"t"});
    EXPECT_THAT(Api::read_pop(waiting.read()).ids(), ElementsAre("t"));
}

TEST_F(LifeTest, ALongPollOfOnePartitionAndOneOfLabelsAreWokenToo) {
    const auto name = "ns-" + queue().substr(9) + ".task";
    const auto labels = name.substr(0, name.find('.'));
    HttpClient pinned(port());
    pinned.start("GET", "/api/v1/pop/queue/" + name +
                            "/partition/p?wait=true&timeout=50000&consumerGroup=a");
    HttpClient discovery(port());
    discovery.start("GET",
                    "/api/v1/pop?namespace=" + labels + "&wait=true&timeout=50000&consumerGroup=b");
    EXPECT_FALSE(discovery.readable(std::chrono::milliseconds(200)));
    api.push_ids(name, "p", {"t"});
    EXPECT_THAT(Api::read_pop(pinned.read()).ids(), ElementsAre("t"));
    EXPECT_THAT(Api::read_pop(discovery.read()).ids(), ElementsAre("t"));
}

TEST_F(LifeTest, AnAckWakesWhoWaitsForThePartition) {
    api.push_ids(queue(), "p", {"a", "b"});
    const auto held = api.pop(queue(), "batch=1&consumerGroup=g");
    HttpClient waiting(port());
    waiting.start("GET", Api::pop_target(queue(), "wait=true&timeout=50000&consumerGroup=g"));
    EXPECT_FALSE(waiting.readable(std::chrono::milliseconds(200)));
    EXPECT_EQ(api.ack(held.messages.at(0), "completed", "g"), "true");
    EXPECT_THAT(Api::read_pop(waiting.read()).ids(), ElementsAre("b"));
}

// F-3: a pure nack is a release like any other.
TEST_F(LifeTest, ANackIsRedeliveredAtOnceWithoutAPush) {
    api.push_ids(queue(), "p", {"a"});
    const auto held = api.pop(queue(), "consumerGroup=g");
    HttpClient waiting(port());
    waiting.start("GET", Api::pop_target(queue(), "wait=true&timeout=50000&consumerGroup=g"));
    EXPECT_FALSE(waiting.readable(std::chrono::milliseconds(200)));
    EXPECT_EQ(api.ack(held.messages.at(0), "retry", "g"), "true");
    const auto again = Api::read_pop(waiting.read());
    EXPECT_THAT(again.ids(), ElementsAre("a"));
    EXPECT_EQ(again.messages.at(0).attempt, 2);
}

TEST_F(LifeTest, K02_ASecondWorkerGetsOnlyPartitionsThatAreFree) {
    api.push_ids(queue(), "a", {"a1", "a2"});
    api.push_ids(queue(), "b", {"b1"});
    const auto first = api.pop(queue(), "batch=1&leaseSeconds=30");
    const auto second = api.pop(queue(), "batch=10&partitions=10");
    ASSERT_EQ(first.messages.size(), 1u);
    for (const auto& message : second.messages) {
        EXPECT_NE(message.partition, first.messages[0].partition);
    }
    EXPECT_EQ(api.pop(queue()).status, 204);
}

TEST_F(LifeTest, K04_APartitionBornAfterTheSubscriptionIsDelivered) {
    for (const std::string from : {"subscriptionMode=new", "subscriptionFrom=now"}) {
        const auto name = queue() + from;
        EXPECT_EQ(api.pop(name, "consumerGroup=g&" + from).status, 204);
        api.push_ids(name, "never-seen-before", {"m1"});
        EXPECT_THAT(api.pop(name, "consumerGroup=g&" + from).ids(), ElementsAre("m1"));
    }
}

TEST_F(LifeTest, K06_AutoAckDeliversEachOnceInOrder) {
    std::vector<std::string> ids;
    for (int i = 1; i <= 11; ++i) {
        ids.push_back(std::to_string(i));
    }
    api.push_ids(queue(), "p", ids);
    std::vector<std::string> seen;
    for (int i = 0; i < 40; ++i) {
        for (const auto& id : api.pop(queue(), "autoAck=true&batch=3").ids()) {
            seen.push_back(id);
        }
    }
    EXPECT_EQ(seen, ids);
}

TEST_F(LifeTest, K07_AChangedWindowHoldsForTheNextPush) {
    api.push_ids(queue(), "p", {"t"});
    EXPECT_THAT(column(api.push_ids(queue(), "p", {"t"}), "status"), ElementsAre("duplicate"));
    EXPECT_EQ(api.configure(queue(), R"({"dedupWindowSeconds":0})").status, 200);
    EXPECT_THAT(column(api.push_ids(queue(), "p", {"t"}), "status"), ElementsAre("queued"));
    EXPECT_EQ(api.configure(queue(), R"({"dedupWindowSeconds":3600})").status, 200);
    EXPECT_THAT(column(api.push_ids(queue(), "p", {"t"}), "status"), ElementsAre("duplicate"));
}

// The window is large enough for the cache to compare it, and made again under its hands.
TEST_F(LifeTest, F13_TheCacheHidesNoDuplicateAndNoQueueThatWasMadeAgain) {
    std::vector<std::string> ids;
    for (int i = 0; i < 2000; ++i) {
        ids.push_back("t" + std::to_string(i));
    }
    for (int life = 0; life < 2; ++life) {
        EXPECT_THAT(column(api.push_ids(queue(), "p", ids), "status"), Each("queued"));
        for (int i = 0; i < 8; ++i) {
            const auto id = "life" + std::to_string(i);
            EXPECT_THAT(column(api.push_ids(queue(), "p", {id}), "status"), ElementsAre("queued"));
            EXPECT_THAT(column(api.push_ids(queue(), "p", {id, "t7"}), "status"),
                        Each("duplicate"));
        }
        EXPECT_THAT(api.remove(queue()).body, HasSubstr(R"("deleted":true)"));
    }
}

TEST_F(LifeTest, K08_AStaleOwnerIsRefusedAndBurnsNothing) {
    api.configure(queue(), R"({"retryLimit":1})");
    api.push_ids(queue(), "p", {"t"});
    const auto mine = api.pop(queue(), "consumerGroup=g&leaseSeconds=1").messages.at(0);
    const auto theirs = pop_when_free("consumerGroup=g&leaseSeconds=60");
    ASSERT_EQ(theirs.messages.size(), 1u);
    EXPECT_THAT(api.ack(mine, "completed", "g"), HasSubstr("invalid or expired lease"));
    for (int i = 0; i < 5; ++i) {
        EXPECT_THAT(api.ack(mine, "failed", "g"), HasSubstr("invalid or expired lease"));
    }
    EXPECT_THAT(api.http.post("/api/v1/lease/" + mine.lease_id + "/extend", "{}").body,
                HasSubstr(R"("success":false)"));
    EXPECT_EQ(api.ack(theirs.messages[0], "completed", "g"), "true");
    EXPECT_EQ(api.pop(queue(), "consumerGroup=g").status, 204);
}

// K09: overlapping ids in opposite orders over partitions nobody has made yet.
TEST_F(LifeTest, K09_ClientsThatPushTheSameIdsInOppositeOrdersStoreEachOnce) {
    constexpr int kClients = 8;
    std::vector<std::thread> clients;
    std::atomic<int> errors{0};
    for (int c = 0; c < kClients; ++c) {
        clients.emplace_back([&, c] {
            Api mine(port());
            std::vector<std::array<std::string, 3>> items;
            for (int i = 0; i < 200; ++i) {
                const int n = c % 2 == 0 ? i : 199 - i;
                items.push_back({"p" + std::to_string(n % 50), "id" + std::to_string(n), "1"});
            }
            const auto response = mine.push(queue(), items);
            for (const auto& status : column(response, "status")) {
                errors += status == "queued" || status == "duplicate" ? 0 : 1;
            }
        });
    }
    for (auto& client : clients) {
        client.join();
    }
    EXPECT_EQ(errors, 0);
    std::multiset<std::string> seen;
    for (auto popped = api.pop(queue(), "autoAck=true&batch=1000&partitions=100");
         popped.status == 200;
         popped = api.pop(queue(), "autoAck=true&batch=1000&partitions=100")) {
        for (const auto& id : popped.ids()) {
            seen.insert(id);
        }
    }
    EXPECT_EQ(seen.size(), 200u);
    EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()).size(), 200u);
}

TEST_F(LifeTest, K11_OnePushForManyPartitionsAnswersManyWaiters) {
    std::vector<std::unique_ptr<HttpClient>> waiters;
    for (int i = 0; i < 20; ++i) {
        waiters.push_back(std::make_unique<HttpClient>(port()));
        waiters.back()->start("GET", Api::pop_target(queue(), "wait=true&batch=1&timeout=50000"));
    }
    EXPECT_FALSE(waiters.back()->readable(std::chrono::milliseconds(300)));
    std::vector<std::array<std::string, 3>> items;
    for (int i = 0; i < 20; ++i) {
        items.push_back({"p" + std::to_string(i), "t" + std::to_string(i), "1"});
    }
    api.push(queue(), items);
    std::set<std::string> seen;
    for (const auto& waiter : waiters) {
        for (const auto& id : Api::read_pop(waiter->read()).ids()) {
            seen.insert(id);
        }
    }
    EXPECT_EQ(seen.size(), 20u);
}

// K12: a partition with a huge backlog does not keep the others from being served.
TEST_F(LifeTest, K12_SmallPartitionsAreServedBesideABigOne) {
    std::vector<std::string> many;
    for (int i = 0; i < 5000; ++i) {
        many.push_back(std::to_string(i));
    }
    api.push_ids(queue(), "big", many);
    std::vector<std::array<std::string, 3>> few;
    for (int i = 0; i < 50; ++i) {
        few.push_back({"s" + std::to_string(i), "small", "1"});
    }
    api.push(queue(), few);
    std::set<std::string> seen;
    std::size_t big = 0;
    int pops = 0;
    for (; seen.size() < 50 && pops < 400; ++pops) {
        const auto popped = api.pop(queue(), "batch=10&consumerGroup=g");
        for (const auto& message : popped.messages) {
            if (message.partition == "big") {
                ++big;
            } else {
                seen.insert(message.partition);
            }
        }
        if (!popped.messages.empty()) {
            ASSERT_EQ(api.ack(popped.messages.back(), "completed", "g"), "true");
        }
    }
    EXPECT_EQ(seen.size(), 50u) << "after " << pops << " pops";
    EXPECT_LT(big, many.size()) << "the big one was still being read";
}

// K13: groups share nothing but the messages.
TEST_F(LifeTest, K13_AGroupThatHoldsItsLeaseHoldsUpNobodyElse) {
    api.push_ids(queue(), "p", {"1", "2"});
    ASSERT_EQ(api.pop(queue(), "consumerGroup=slow&leaseSeconds=600").messages.size(), 2u);
    for (int g = 2; g <= 10; ++g) {
        const auto group = "g" + std::to_string(g);
        const auto popped = api.pop(queue(), "consumerGroup=" + group);
        ASSERT_THAT(popped.ids(), ElementsAre("1", "2")) << group;
        EXPECT_EQ(api.ack(popped.messages[1], "completed", group), "true");
    }
}

// K49: a group that read everything stays at the end, whatever mode later pops name.
TEST_F(LifeTest, K49_AnIdleGroupGetsExactlyWhatIsNew) {
    api.push_ids(queue(), "p", {"1", "2"});
    api.pop(queue(), "consumerGroup=g&autoAck=true");
    api.push_ids(queue(), "p", {"3"});
    EXPECT_THAT(api.pop(queue(), "consumerGroup=g&subscriptionMode=all&autoAck=true").ids(),
                ElementsAre("3"));
    EXPECT_EQ(api.pop(queue(), "consumerGroup=g").status, 204);
}

TEST_F(LifeTest, K20_K23_PayloadsComeBackByteForByte) {
    const std::vector<std::string> payloads{
        R"({"i":9007199254740993,"j":18446744073709551616,"e":1e400,"d":0.1000000000000000055511151231257827,"z":-0.0,"f":1.0})",
        R"({"b" : 1 , "a":"\u0000\u00e9\ud83d\ude00" , "c" : [ ] })", "null", R"("text")"};
    std::vector<std::array<std::string, 3>> items;
    for (std::size_t i = 0; i < payloads.size(); ++i) {
        items.push_back({"p", "t" + std::to_string(i), payloads[i]});
    }
    api.push(queue(), items);
    const auto popped = api.pop(queue());
    ASSERT_EQ(popped.messages.size(), payloads.size());
    for (std::size_t i = 0; i < payloads.size(); ++i) {
        EXPECT_EQ(popped.messages[i].data, payloads[i]);
    }
}

// K21, K25: one rule for names through path, query and body; every name lives or is refused.
TEST_F(LifeTest, K21_K25_OddNamesLiveAWholeLife) {
    for (const std::string odd : {"a&b", "a\"b", "a\\b", "a/b", "a b", "a+b", "a%b", "é", "日本",
                                  "\xF0\x9F\x98\x80", "'", "<x>", "null", "..x", "Orders"}) {
        const auto name = queue() + odd;
        ASSERT_THAT(column(api.push_ids(name, odd, {odd}), "status"), ElementsAre("queued")) << odd;
        const auto group = "consumerGroup=" + percent_encode(odd);
        const auto pinned =
            Api::read_pop(api.http.get("/api/v1/pop/queue/" + percent_encode(name) + "/partition/" +
                                       percent_encode(odd) + "?" + group));
        ASSERT_THAT(pinned.ids(), ElementsAre(odd));
        EXPECT_EQ(pinned.messages[0].partition, odd);
        EXPECT_EQ(api.ack(pinned.messages[0], "completed", odd), "true");
        EXPECT_EQ(api.pop(name, group).status, 204);
        EXPECT_EQ(api.http.get("/api/v1/resources/queues/" + percent_encode(name)).status, 200);
        EXPECT_THAT(api.remove(name).body, HasSubstr(R"("deleted":true)"));
    }
}

TEST_F(LifeTest, K24_ABadNameGetsOneVerdictOnEveryRoute) {
    const std::string control = "a\tb";
    for (const std::string& bad : {std::string("."), std::string(".."), control,
                                   std::string(256, 'x'), std::string("\xff\xfe")}) {
        const int expected = bad.size() > 255 ? 413 : 400;
        const auto path = percent_encode(bad);
        if (valid_utf8(bad)) {
            EXPECT_EQ(api.push_ids(bad, "p", {"t"}).status, expected) << path;
            EXPECT_EQ(api.push_ids("q", bad, {"t"}).status, expected) << path;
            EXPECT_EQ(api.configure(bad, "{}").status, expected) << path;
        }
        EXPECT_EQ(api.pop(bad).status, expected) << path;
        EXPECT_EQ(api.pop("q", "consumerGroup=" + path).status, expected) << path;
        EXPECT_EQ(api.http.get("/api/v1/pop/queue/q/partition/" + path).status, expected) << path;
        EXPECT_EQ(api.http.get("/api/v1/resources/queues/" + path).status, expected) << path;
        EXPECT_EQ(api.remove(bad).status, expected) << path;
    }
}

TEST_F(LifeTest, K24_NamesThatDifferOnlyLateOrInCaseShareNothing) {
    const std::string stem(63, 'n');
    for (const auto& name :
         {stem + "a", stem + "b", std::string("ORDERS-K24"), std::string("orders-K24")}) {
        api.push_ids(name, "p", {name});
    }
    for (const auto& name :
         {stem + "a", stem + "b", std::string("ORDERS-K24"), std::string("orders-K24")}) {
        EXPECT_THAT(api.pop(name, "autoAck=true").ids(), ElementsAre(name));
    }
}

TEST_F(LifeTest, K36_ReplaceAndMergeDoWhatTheySay) {
    api.configure(queue(), R"({"retryLimit":7,"leaseTime":11})");
    const auto merged =
        api.http.post("/api/v1/configure", "{\"queue\":" + json::quoted(queue()) +
                                               R"(,"mode":"merge","options":{"retryLimit":9}})");
    EXPECT_EQ(option_of(merged, "leaseTime"), 11);
    EXPECT_EQ(option_of(merged, "retryLimit"), 9);
    const auto replaced = api.configure(queue(), R"({"retryLimit":9})");
    EXPECT_EQ(option_of(replaced, "leaseTime"), 300);
}

// K47: names made anew are new things.
TEST_F(LifeTest, K47_DeleteAndRecreateStartsOver) {
    api.push_ids(queue(), "p", {"1", "2"});
    const auto old = api.pop(queue(), "consumerGroup=g").messages.at(0);
    EXPECT_THAT(api.remove(queue()).body, HasSubstr(R"("deleted":true)"));
    EXPECT_THAT(column(api.push_ids(queue(), "p", {"1", "2", "3"}), "status"),
                ElementsAre("queued", "queued", "queued"))
        << "old ids do not block";
    EXPECT_NE(api.ack(old, "completed", "g"), "true") << "an old lease is worth nothing";
    EXPECT_THAT(api.pop(queue(), "consumerGroup=g").ids(), ElementsAre("1", "2", "3"));
    EXPECT_THAT(api.remove(queue() + "-never").body, HasSubstr(R"("deleted":false)"));
}

TEST_F(LifeTest, K47_AParkedPopSeesTheRecreatedQueue) {
    api.push_ids(queue(), "p", {"old"});
    api.pop(queue(), "consumerGroup=g&autoAck=true");
    HttpClient waiting(port());
    waiting.start("GET", Api::pop_target(queue(), "wait=true&timeout=50000&consumerGroup=g"));
    EXPECT_FALSE(waiting.readable(std::chrono::milliseconds(200)));
    api.remove(queue());
    api.push_ids(queue(), "p", {"new"});
    EXPECT_THAT(Api::read_pop(waiting.read()).ids(), ElementsAre("new"));
}

TEST_F(LifeTest, ExtendingALeaseKeepsItForAllItsPartitions) {
    api.push_ids(queue(), "a", {"1"});
    api.push_ids(queue(), "b", {"2"});
    const auto held = api.pop(queue(), "partitions=2&leaseSeconds=1");
    ASSERT_EQ(held.messages.size(), 2u);
    const auto extended =
        api.http.post("/api/v1/lease/" + held.lease_id + "/extend", R"({"seconds":120})");
    EXPECT_THAT(extended.body, HasSubstr(R"("renewed":2)"));
    EXPECT_THAT(api.http.post("/api/v1/lease/" + held.lease_id + "/extend", "").body,
                HasSubstr(R"("success":true)"));
}

} // namespace
} // namespace queen::test
