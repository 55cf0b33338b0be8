// Everything that one broker does and another has to hear of: a pop is parked on b, a does it, and
// b's pop is answered because of a hint. Brokers look for themselves so rarely here that nothing
// else can wake it.
#include "cluster/cluster.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace queen::test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

constexpr std::size_t kA = 0, kB = 1;

/// One cluster for all tests of the program; each has a queue of its own.
class Announced : public testing::Test {
protected:
    static void SetUpTestSuite() {
        if (cluster_ == nullptr) {
            cluster_ = new Cluster({.timers = true});
        }
    }
    static void TearDownTestSuite() { delete std::exchange(cluster_, nullptr); }

    static Cluster& cluster() { return *cluster_; }
    static Api& a() { return *cluster()[kA].api; }
    static Api& b() { return *cluster()[kB].api; }
    static std::string queue() {
        return testing::UnitTest::GetInstance()->current_test_info()->name();
    }
    /// Two messages each in p0 and p1, all read and settled by g on both brokers, so that b's
    /// source knows the group and believes that there is nothing.
    static void history() {
        const std::string heard = "queen_peer_hints_heard_total{kind=\"stored\"}";
        const double before = cluster().metric(kB, heard);
        for (const std::string partition : {"p0", "p1"}) {
            ASSERT_EQ(
                a().push_ids(queue(), partition, {partition + "-old", partition + "-new"}).status,
                201);
        }
        const auto all = b().pop(queue(), "consumerGroup=g&partitions=9&batch=99&autoAck=true");
        ASSERT_EQ(all.messages.size(), 4u);
        // Each partition is told of twice, at once and coalesced: nothing of it may come later.
        cluster().await(kB, heard, before + 4);
        cluster().await_at_most(kB, "queen_peer_hints_waiting", 0);
    }
    /// All messages of the group, however many pops they take, the first of them parked already.
    static std::size_t all_of(HttpClient& parked) {
        std::size_t count = Api::read_pop(parked.read()).messages.size();
        for (std::size_t last = count; count < 4 && last > 0; count += last) {
            last = b().pop(queue(), "consumerGroup=g&partitions=9&batch=99&autoAck=true&wait=true"
                                    "&timeout=20000")
                       .messages.size();
        }
        return count;
    }
    static HttpResponse seek(const std::string& partition = {}) {
        return a().http.post("/api/v1/consumer-groups/g/queues/" + queue() +
                                 (partition.empty() ? "" : "/partitions/" + partition) + "/seek",
                             R"({"timestamp":"2000-01-01T00:00:00Z"})");
    }

    static Cluster* cluster_;
};
Cluster* Announced::cluster_ = nullptr;

// K34. QUEEN_TEST_PUSHES says how many; ctest's slow run takes the 500 that the case asks for.
TEST_F(Announced, K34_APushWakesAPopOnAnotherBroker) {
    const Cause all(cluster(), kB);
    const char* const wanted = std::getenv("QUEEN_TEST_PUSHES");
    const int pushes = wanted != nullptr ? std::atoi(wanted) : 200;
    ASSERT_GT(pushes, 0);
    for (int i = 0; i < pushes; ++i) {
        auto parked = cluster().park(kB, queue(), "consumerGroup=g&autoAck=true");
        const std::string id = "m" + std::to_string(i);
        ASSERT_EQ(a().push_ids(queue(), "p" + std::to_string(i % 3), {id}).status, 201);
        // Nothing but a hint has it look before its time is over. It need not be this push's: each
        // is told twice, and who just looked because of the one before finds this one as well.
        ASSERT_THAT(Api::read_pop(parked.read()).ids(), ElementsAre(id));
    }
    all.was_a_hint("stored");
    EXPECT_GE(all.grown("queen_peer_hints_heard_total{kind=\"stored\"}"), pushes);
}

TEST_F(Announced, APushWakesPinnedAndDiscoveringPops) {
    ASSERT_EQ(a().configure(queue(), R"({"namespace":"space"})").status, 200);
    ASSERT_EQ(a().push_ids(queue(), "p", {"first"}).status, 201);
    ASSERT_THAT(b().pop(queue(), "autoAck=true").ids(), ElementsAre("first"));
    {
        const Cause cause(cluster(), kB);
        auto parked = cluster().park(kB, queue(), "autoAck=true", "p");
        ASSERT_EQ(a().push_ids(queue(), "p", {"pinned"}).status, 201);
        EXPECT_THAT(Api::read_pop(parked.read()).ids(), ElementsAre("pinned"));
        cause.was_a_hint("stored");
    }
    const Cause cause(cluster(), kB);
    auto parked =
        cluster().park_at(kB, "/api/v1/pop?namespace=space&wait=true&timeout=58000&autoAck=true");
    ASSERT_EQ(a().push_ids(queue(), "p", {"discovered"}).status, 201);
    EXPECT_THAT(Api::read_pop(parked.read()).ids(), ElementsAre("discovered"));
    cause.was_a_hint("stored");
}

TEST_F(Announced, ATransactionWakesAPopOnAnotherBroker) {
    const Cause cause(cluster(), kB);
    auto parked = cluster().park(kB, queue(), "consumerGroup=g&autoAck=true");
    const auto said = a().http.post(
        "/api/v1/transaction", R"({"operations":[{"type":"push","items":[{"queue":")" + queue() +
                                   R"(","partition":"p","transactionId":"t","payload":1}]}]})");
    ASSERT_EQ(said.status, 200) << said.body;
    EXPECT_THAT(Api::read_pop(parked.read()).ids(), ElementsAre("t"));
    cause.was_a_hint("stored");
}

TEST_F(Announced, AReplayedLetterWakesAPopOnAnotherBroker) {
    ASSERT_EQ(a().configure(queue(),
                            R"({"retryLimit":0,"deadLetterQueue":true,"dlqAfterMaxRetries":true})")
                  .status,
              200);
    ASSERT_EQ(a().push_ids(queue(), "p", {"bad"}).status, 201);
    const auto taken = a().pop(queue(), "consumerGroup=g");
    ASSERT_THAT(taken.ids(), ElementsAre("bad"));
    ASSERT_EQ(a().ack(taken.messages[0], "dlq", "g"), "true");
    const auto letters = a().http.get("/api/v1/dlq?queue=" + queue());
    const auto document = json::Document::parse(letters.body);
    ASSERT_TRUE(document && document->root()["messages"].size() == 1) << letters.body;
    const std::string id(document->root()["messages"].at(0)["id"].string());

    const Cause cause(cluster(), kB);
    auto parked = cluster().park(kB, queue(), "consumerGroup=g&autoAck=true");
    const auto said = a().http.post("/api/v1/dlq/" + id + "/replay", "");
    ASSERT_EQ(said.status, 200) << said.body;
    EXPECT_EQ(Api::read_pop(parked.read()).messages.size(), 1u);
    cause.was_a_hint("stored");
}

// K42: asked of one broker, fired by the other, taken from the first.
TEST_F(Announced, K42_ATimerThatFiresWakesAPopOnAnotherBroker) {
    ASSERT_EQ(a().push_ids(queue(), "p", {"first"}).status, 201);
    ASSERT_THAT(b().pop(queue(), "consumerGroup=g&autoAck=true").ids(), ElementsAre("first"));
    const Cause cause(cluster(), kB);
    auto parked = cluster().park(kB, queue(), "consumerGroup=g&autoAck=true");
    const auto said = b().http.post(
        "/api/v1/timers", R"([{"op":"schedule","timerKey":"k","queue":")" + queue() +
                              R"(","partition":"p","payload":"Nw==","txn":"t","delayMs":1}])");
    ASSERT_EQ(said.status, 200) << said.body;
    const auto got = Api::read_pop(parked.read());
    ASSERT_EQ(got.messages.size(), 1u) << said.body;
    EXPECT_EQ(got.messages[0].data, "7");
    cause.was_a_hint("stored");
}

// K48, F-43
TEST_F(Announced, K48_ASeekWakesThePopsOfTheGroupOnAnotherBroker) {
    history();
    auto parked = cluster().park(kB, queue(), "consumerGroup=g&partitions=9&batch=99&autoAck=true");
    auto stranger = cluster().park(kB, queue(), "consumerGroup=h&subscriptionMode=new");
    const Cause cause(cluster(), kB);
    ASSERT_EQ(seek().status, 200);
    EXPECT_EQ(all_of(parked), 4u);
    cause.was_a_hint("moved");
    EXPECT_FALSE(stranger.readable(std::chrono::milliseconds(0))) << "another group";
    // To the end of time, and nothing is left.
    EXPECT_EQ(
        a().http.post("/api/v1/consumer-groups/g/queues/" + queue() + "/seek", R"({"toEnd":true})")
            .status,
        200);
    EXPECT_EQ(b().pop(queue(), "consumerGroup=g").status, 204);
}

TEST_F(Announced, K48_ASeekOfOnePartitionWakesAPopOnAnotherBroker) {
    history();
    const Cause cause(cluster(), kB);
    auto parked = cluster().park(kB, queue(), "consumerGroup=g&partitions=9&batch=99&autoAck=true");
    ASSERT_EQ(seek("p1").status, 200);
    EXPECT_THAT(Api::read_pop(parked.read()).ids(), ElementsAre("p1-old", "p1-new"));
    cause.was_a_hint("moved");
}

TEST_F(Announced, K34_ADeletedGroupBeginsAnewOnAnotherBroker) {
    history();
    const Cause cause(cluster(), kB);
    auto parked = cluster().park(kB, queue(), "consumerGroup=g&partitions=9&batch=99&autoAck=true");
    ASSERT_EQ(a().http.request("DELETE", "/api/v1/consumer-groups/g/queues/" + queue()).status,
              200);
    EXPECT_EQ(all_of(parked), 4u);
    cause.was_a_hint("moved");
}

TEST_F(Announced, SettingsThatFreeMessagesWakeAPopOnAnotherBroker) {
    ASSERT_EQ(a().configure(queue(), R"({"delayedProcessing":3600})").status, 200);
    ASSERT_EQ(a().push_ids(queue(), "p", {"held"}).status, 201);
    const Cause cause(cluster(), kB);
    auto parked = cluster().park(kB, queue(), "consumerGroup=g&autoAck=true");
    ASSERT_EQ(a().configure(queue(), R"({"delayedProcessing":0})").status, 200);
    EXPECT_THAT(Api::read_pop(parked.read()).ids(), ElementsAre("held"));
    cause.was_a_hint("configured");
    EXPECT_GE(cause.grown("queen_peer_hints_settings_read_total{result=\"done\"}"), 1);
}

// K47
TEST_F(Announced, K47_AQueueThatWasDeletedAndMadeAgainIsReadFromItsStartOnBothBrokers) {
    history();
    ASSERT_EQ(a().push_ids(queue(), "p0", {"late"}).status, 201);
    const auto held = b().pop(queue(), "consumerGroup=g");
    ASSERT_THAT(held.ids(), ElementsAre("late"));
    auto on_a = cluster().park(kA, queue(), "consumerGroup=g");
    auto on_b = cluster().park(kB, queue(), "consumerGroup=g");
    const Cause cause(cluster(), kB);
    EXPECT_THAT(a().remove(queue()).body, HasSubstr(R"("deleted":true)"));
    for (const std::string partition : {"p0", "p1"}) {
        EXPECT_THAT(column(b().push_ids(queue(), partition, {"1", "2", "3", "4", "5"}), "status"),
                    Each("queued"))
            << "old ids do not block";
    }
    const auto from_a = Api::read_pop(on_a.read());
    const auto from_b = Api::read_pop(on_b.read());
    EXPECT_THAT(from_a.ids(), ElementsAre("1", "2", "3", "4", "5"));
    EXPECT_THAT(from_b.ids(), ElementsAre("1", "2", "3", "4", "5"));
    EXPECT_NE(from_a.messages[0].partition, from_b.messages[0].partition);
    EXPECT_NE(b().ack(held.messages[0], "completed", "g"), "true");
    cause.was_a_hint("deleted");
}

// SWI-2: the other broker reads the switches when it hears, not when their interval is over.
TEST_F(Announced, PausedPopsAnswerOnAnotherBrokerAndGoOnThere) {
    ASSERT_EQ(a().push_ids(queue(), "p", {"m"}).status, 201);
    ASSERT_THAT(b().pop(queue(), "consumerGroup=g&autoAck=true").ids(), ElementsAre("m"));
    const Cause cause(cluster(), kB);
    auto parked = cluster().park(kB, queue(), "consumerGroup=g");
    ASSERT_EQ(a().http.post("/api/v1/system/maintenance/pop", R"({"enabled":true})").status, 200);
    EXPECT_EQ(parked.read().status, 204) << "it hears that pops are paused";
    EXPECT_GE(cause.grown("queen_peer_hints_heard_total{kind=\"switched\"}"), 1);
    EXPECT_EQ(b().http.get("/api/v1/system/maintenance/pop").body,
              R"({"popMaintenanceMode":true,"message":"Pop maintenance mode is ENABLED."})");
    ASSERT_EQ(a().http.post("/api/v1/system/maintenance/pop", R"({"enabled":false})").status, 200);
    cluster().await_body(kB, "/api/v1/system/maintenance/pop", R"("popMaintenanceMode":false)");
    auto again = cluster().park(kB, queue(), "consumerGroup=g&autoAck=true");
    ASSERT_EQ(a().push_ids(queue(), "p", {"after"}).status, 201);
    EXPECT_THAT(Api::read_pop(again.read()).ids(), ElementsAre("after"));
}

// SWI-2: the interval is an hour here.
TEST_F(Announced, SwitchesOfTimersHoldOnAnotherBroker) {
    const std::string kSwitches = "/api/v1/system/kv-timers";
    for (const std::string word : {"false", "true"}) {
        const Cause cause(cluster(), kB);
        ASSERT_EQ(
            a().http
                .post(kSwitches, R"({"timersSchedule":)" + word + R"(,"timersFire":)" + word + "}")
                .status,
            200);
        cluster().await_body(kB, kSwitches,
                             R"("timersScheduleEnabled":)" + word + R"(,"timersFireEnabled":)" +
                                 word);
        EXPECT_GE(cause.grown("queen_peer_hints_heard_total{kind=\"switched\"}"), 1);
    }
}

// ME-12, ME-18
TEST_F(Announced, WhatWasHeardIsShownAndGoesNoFurther) {
    const auto published =
        cluster().metric(kB, "queen_peer_hints_published_total{kind=\"stored\"}");
    auto parked = cluster().park(kB, queue(), "consumerGroup=g&autoAck=true");
    ASSERT_EQ(a().push_ids(queue(), "p", {"m"}).status, 201);
    EXPECT_THAT(Api::read_pop(parked.read()).ids(), ElementsAre("m"));
    EXPECT_EQ(cluster().metric(kB, "queen_peer_hints_published_total{kind=\"stored\"}"), published);
    const auto stats = b().http.get("/internal/api/inter-instance/stats");
    EXPECT_EQ(stats.status, 200);
    const auto document = json::Document::parse(stats.body);
    ASSERT_TRUE(document) << stats.body;
    const auto root = document->root();
    EXPECT_EQ(root["servers_alive"].integer(), 1) << stats.body;
    EXPECT_EQ(root["servers_dead"].integer(), 0);
    EXPECT_EQ(root["handshake_failures"].integer(), 0);
    EXPECT_GT(root["messages_received"].integer().value_or(0), 0);
    EXPECT_GT(root["hints"]["heard"]["stored"].integer().value_or(0), 0);
    bool named = false;
    for (std::size_t i = 0; i < root["peers"].size(); ++i) {
        named = named || root["peers"].at(i)["server_id"].string() == "a";
    }
    EXPECT_TRUE(named) << stats.body;
}

} // namespace
} // namespace queen::test
