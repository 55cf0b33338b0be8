// Everything that one broker does and others have to hear of: a pop is parked on b and another on
// c, a does it, and both are answered because of a hint. Brokers look for themselves so rarely here
// that nothing else can wake them.
#include "cluster/cluster.hpp"
#include "cluster/timers_bed.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <set>
#include <type_traits>

namespace queen::test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr std::size_t kA = 0, kB = 1, kC = 2;
const std::string kAll = "partitions=9&batch=99&autoAck=true";

/// One cluster for all tests of the program; each has a queue of its own. Who waits on a broker has
/// the broker's name for a group: "b", "c".
class Announced : public testing::Test {
protected:
    static void SetUpTestSuite() {
        if (cluster_ == nullptr) {
            cluster_ =
                new Cluster({.brokers = 3, .transport = transport_under_test(), .timers = true});
        }
    }
    static void TearDownTestSuite() { delete std::exchange(cluster_, nullptr); }

    static Cluster& cluster() { return *cluster_; }
    static Api& a() { return *cluster()[kA].api; }
    static Api& b() { return *cluster()[kB].api; }
    static Api& c() { return *cluster()[kC].api; }
    static std::string queue() {
        return testing::UnitTest::GetInstance()->current_test_info()->name();
    }
    static std::string as_group(std::size_t at) {
        return "consumerGroup=" + cluster()[at].name + "&";
    }

    /// A pop that is parked on each of the other brokers, and why they are answered.
    class Parked {
    public:
        explicit Parked(const std::string& more = "autoAck=true", const std::string& partition = {})
            : Parked([&](std::size_t at) {
                  return cluster().park(at, queue(), as_group(at) + more, partition);
              }) {}
        template <class Park>
        requires std::is_invocable_r_v<HttpClient, Park, std::size_t>
        explicit Parked(const Park& park)
            : causes_{Cause(cluster(), kB), Cause(cluster(), kC)}, pops_{park(kB), park(kC)} {}

        const Cause& cause(std::size_t at) const { return causes_[at - kB]; }
        HttpClient& pop(std::size_t at) { return pops_[at - kB]; }
        /// Both are answered with such ids, by a hint.
        template <class Ids>
        void each_gets(const Ids& ids, const std::string& kind) {
            for (const std::size_t at : {kB, kC}) {
                EXPECT_THAT(Api::read_pop(pop(at).read()).ids(), ids) << cluster()[at].name;
                cause(at).was_a_hint(kind);
            }
        }

    private:
        const std::array<Cause, 2> causes_;
        std::array<HttpClient, 2> pops_;
    };

    /// Each of the other brokers reads, for its group, what was pushed so far: its source knows the
    /// group and believes that there is nothing.
    static void read_by_each(std::size_t messages) {
        for (const std::size_t at : {kB, kC}) {
            const auto all = cluster()[at].api->pop(queue(), as_group(at) + kAll);
            ASSERT_EQ(all.messages.size(), messages) << cluster()[at].name;
        }
    }
    /// Two messages each in p0 and p1, which each of the other brokers has read.
    static void history() {
        const std::string heard = "queen_peer_hints_heard_total{kind=\"stored\"}";
        const double before[] = {cluster().metric(kB, heard), cluster().metric(kC, heard)};
        for (const std::string partition : {"p0", "p1"}) {
            ASSERT_EQ(
                a().push_ids(queue(), partition, {partition + "-old", partition + "-new"}).status,
                201);
        }
        read_by_each(4);
        // Nothing of what is told of them may come later.
        for (const std::size_t at : {kB, kC}) {
            cluster().await(at, heard, before[at - kB] + 2 * cluster().times_told());
            cluster().await_at_most(at, "queen_peer_hints_waiting", 0);
        }
    }
    /// All messages of the broker's group, however many pops they take, the first of them parked
    /// already.
    static std::size_t all_of(std::size_t at, HttpClient& parked) {
        std::size_t count = Api::read_pop(parked.read()).messages.size();
        for (std::size_t last = count; count < 4 && last > 0; count += last) {
            last = cluster()[at]
                       .api->pop(queue(), as_group(at) + kAll + "&wait=true&timeout=20000")
                       .messages.size();
        }
        return count;
    }
    static std::string cursors(std::size_t of, const std::string& partition = {}) {
        return "/api/v1/consumer-groups/" + cluster()[of].name + "/queues/" + queue() +
               (partition.empty() ? "" : "/partitions/" + partition);
    }
    /// On a, of the group of another broker: to its start.
    static int seek(std::size_t of, const std::string& partition = {}) {
        return a()
            .http.post(cursors(of, partition) + "/seek", R"({"timestamp":"2000-01-01T00:00:00Z"})")
            .status;
    }
    static int remove_group(std::size_t of) {
        return a().http.request("DELETE", cursors(of)).status;
    }
    static void leases_end(int (*cause)(std::size_t of));

    static Cluster* cluster_;
};
Cluster* Announced::cluster_ = nullptr;

// K34. QUEEN_TEST_PUSHES says how many; ctest's slow run takes the 500 that the case asks for.
TEST_F(Announced, K34_APushWakesAPopOnAnotherBroker) {
    const Cause all(cluster(), kB);
    const char* const wanted = std::getenv("QUEEN_TEST_PUSHES");
    // Over the database each push waits for those of 20 ms, and is told no differently.
    const int pushes = wanted != nullptr                          ? std::atoi(wanted)
                       : transport_under_test() == Transport::tcp ? 200
                                                                  : 100;
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
    read_by_each(1);
    Parked pinned("autoAck=true", "p");
    ASSERT_EQ(a().push_ids(queue(), "p", {"pinned"}).status, 201);
    pinned.each_gets(ElementsAre("pinned"), "stored");
    Parked discovering([](std::size_t at) {
        return cluster().park_at(at, "/api/v1/pop?namespace=space&wait=true&timeout=58000&" +
                                         as_group(at) + "autoAck=true");
    });
    ASSERT_EQ(a().push_ids(queue(), "p", {"discovered"}).status, 201);
    discovering.each_gets(ElementsAre("discovered"), "stored");
}

TEST_F(Announced, APushWakesWildcardPopsOfTwoOtherBrokers) {
    Parked parked;
    ASSERT_EQ(a().push_ids(queue(), "p", {"m"}).status, 201);
    parked.each_gets(ElementsAre("m"), "stored");
}

TEST_F(Announced, ATransactionWakesAPopOnAnotherBroker) {
    Parked parked;
    const auto said = a().http.post(
        "/api/v1/transaction", R"({"operations":[{"type":"push","items":[{"queue":")" + queue() +
                                   R"(","partition":"p","transactionId":"t","payload":1}]}]})");
    ASSERT_EQ(said.status, 200) << said.body;
    parked.each_gets(ElementsAre("t"), "stored");
}

TEST_F(Announced, AReplayedLetterWakesAPopOnAnotherBroker) {
    ASSERT_EQ(a().configure(queue(),
                            R"({"retryLimit":0,"deadLetterQueue":true,"dlqAfterMaxRetries":true})")
                  .status,
              200);
    ASSERT_EQ(a().push_ids(queue(), "p", {"bad"}).status, 201);
    read_by_each(1);
    const auto taken = a().pop(queue(), "consumerGroup=g");
    ASSERT_THAT(taken.ids(), ElementsAre("bad"));
    ASSERT_EQ(a().ack(taken.messages[0], "dlq", "g"), "true");
    const auto letters = a().http.get("/api/v1/dlq?queue=" + queue());
    const auto document = json::Document::parse(letters.body);
    ASSERT_TRUE(document && document->root()["messages"].size() == 1) << letters.body;
    const std::string id(document->root()["messages"].at(0)["id"].string());

    Parked parked;
    const auto said = a().http.post("/api/v1/dlq/" + id + "/replay", "");
    ASSERT_EQ(said.status, 200) << said.body;
    parked.each_gets(ElementsAre("dlq:" + id), "stored");
}

// K42: asked of one broker, fired by another, taken from the first and a third.
TEST_F(Announced, K42_ATimerThatFiresWakesAPopOnAnotherBroker) {
    ASSERT_EQ(a().push_ids(queue(), "p", {"first"}).status, 201);
    read_by_each(1);
    Parked parked;
    schedule(b(), queue(), {.key = "k", .transaction_id = "t", .delay_ms = 1});
    parked.each_gets(ElementsAre("t"), "stored");
}

// K48, F-43
TEST_F(Announced, K48_ASeekWakesThePopsOfTheGroupOnAnotherBroker) {
    history();
    Parked parked(kAll);
    ASSERT_EQ(seek(kB), 200);
    EXPECT_EQ(all_of(kB, parked.pop(kB)), 4u);
    EXPECT_FALSE(parked.pop(kC).readable(std::chrono::milliseconds(0))) << "another group";
    ASSERT_EQ(seek(kC), 200);
    EXPECT_EQ(all_of(kC, parked.pop(kC)), 4u);
    for (const std::size_t at : {kB, kC}) {
        parked.cause(at).was_a_hint("moved");
        // To the end of time, and nothing is left.
        EXPECT_EQ(a().http.post(cursors(at) + "/seek", R"({"toEnd":true})").status, 200);
        EXPECT_EQ(cluster()[at].api->pop(queue(), as_group(at)).status, 204);
    }
}

TEST_F(Announced, K48_ASeekOfOnePartitionWakesAPopOnAnotherBroker) {
    history();
    Parked parked(kAll);
    ASSERT_EQ(seek(kB, "p1"), 200);
    ASSERT_EQ(seek(kC, "p1"), 200);
    parked.each_gets(ElementsAre("p1-old", "p1-new"), "moved");
}

TEST_F(Announced, K34_ADeletedGroupBeginsAnewOnAnotherBroker) {
    history();
    Parked parked(kAll);
    for (const std::size_t at : {kB, kC}) {
        ASSERT_EQ(remove_group(at), 200);
        EXPECT_EQ(all_of(at, parked.pop(at)), 4u);
        parked.cause(at).was_a_hint("moved");
    }
}

/// Of a group whose consumer on b holds a batch, which it failed once already, while another pop of
/// it is parked there.
void Announced::leases_end(int (*cause)(std::size_t of)) {
    constexpr const char* kRefused = "invalid or expired lease";
    ASSERT_EQ(a().configure(queue(), R"({"retryLimit":1,"leaseTime":600,)"
                                     R"("deadLetterQueue":true,"dlqAfterMaxRetries":true})")
                  .status,
              200);
    ASSERT_EQ(a().push_ids(queue(), "p", {"1", "2", "3"}).status, 201);
    const auto first = b().pop(queue(), "consumerGroup=b&batch=9");
    ASSERT_THAT(first.ids(), ElementsAre("1", "2", "3"));
    ASSERT_EQ(b().ack(first.messages[0], "failed", "b"), "true");
    const auto held = b().pop(queue(), "consumerGroup=b&batch=9");
    ASSERT_THAT(held.ids(), ElementsAre("1", "2", "3"));
    EXPECT_EQ(held.messages[0].attempt, 2);
    const auto neighbour = c().pop(queue(), "consumerGroup=c&batch=9");
    ASSERT_THAT(neighbour.ids(), ElementsAre("1", "2", "3"));

    Parked parked("batch=9");
    ASSERT_EQ(cause(kB), 200);
    const auto got = Api::read_pop(parked.pop(kB).read());
    parked.cause(kB).was_a_hint("moved");
    ASSERT_THAT(got.ids(), ElementsAre("1", "2", "3"));
    EXPECT_EQ(got.messages[0].attempt, 1) << "what failed before is forgotten";

    for (const auto& message : held.messages) {
        EXPECT_EQ(b().ack(message, "failed", "b"), kRefused);
    }
    EXPECT_THAT(column(b().ack_all(held.messages, "b"), "error"), Each(kRefused));
    // Neither did that move anything nor was it counted: one failure is still allowed.
    ASSERT_EQ(b().ack(got.messages[0], "failed", "b"), "true");
    const auto again = b().pop(queue(), "consumerGroup=b&batch=9");
    ASSERT_THAT(again.ids(), ElementsAre("1", "2", "3"));
    EXPECT_EQ(again.messages[0].attempt, 2);
    EXPECT_THAT(column(b().ack_all(again.messages, "b"), "error"), ElementsAre("", "", ""));
    EXPECT_EQ(b().pop(queue(), "consumerGroup=b").status, 204);
    EXPECT_THAT(a().http.get("/api/v1/dlq?queue=" + queue()).body, HasSubstr(R"("messages":[])"));

    // Nor was another group's batch touched.
    EXPECT_FALSE(parked.pop(kC).readable(std::chrono::milliseconds(0)));
    EXPECT_EQ(c().ack(neighbour.messages[2], "completed", "c"), "true");
    ASSERT_EQ(a().push_ids(queue(), "p", {"4"}).status, 201);
    EXPECT_THAT(Api::read_pop(parked.pop(kC).read()).ids(), ElementsAre("4"));
}

// K48, K17, K18
TEST_F(Announced, K48_K17_K18_ASeekEndsALeaseOfAnotherBrokerAndBurnsNobodysBudget) {
    leases_end([](std::size_t of) { return seek(of); });
}

TEST_F(Announced, K48_K17_K18_ADeletedGroupEndsALeaseOfAnotherBrokerAndBurnsNobodysBudget) {
    leases_end(remove_group);
}

// K34: again and again, those of its rows that have a hint. A lease that ends by its time or by an
// ack has none: others look by themselves after a second, so one run of each is enough
// (Links.K34_APartitionThatALeaseFrees...).
TEST_F(Announced, K34_TwentyOfEachCauseWakeAPopOnAnotherBroker) {
    ASSERT_EQ(a().push_ids(queue(), "p", {"m"}).status, 201);
    read_by_each(1);
    const auto wakes = [](const std::string& kind, const std::string& id, const auto& cause) {
        const Cause why(cluster(), kB);
        auto parked = cluster().park(kB, queue(), "consumerGroup=b&autoAck=true");
        cause();
        ASSERT_THAT(Api::read_pop(parked.read()).ids(), ElementsAre(id));
        why.was_a_hint(kind);
    };
    for (int i = 0; i < 20; ++i) {
        SCOPED_TRACE(i);
        wakes("moved", "m", [] { ASSERT_EQ(seek(kB), 200); });
        wakes("moved", "m", [] { ASSERT_EQ(remove_group(kB), 200); });
    }
    for (int i = 0; i < 20; ++i) {
        const std::string id = "t" + std::to_string(i);
        wakes("stored", id,
              [&] { schedule(a(), queue(), {.key = "k", .transaction_id = id, .delay_ms = 1}); });
    }
}

TEST_F(Announced, SettingsThatFreeMessagesWakeAPopOnAnotherBroker) {
    ASSERT_EQ(a().configure(queue(), R"({"delayedProcessing":3600})").status, 200);
    ASSERT_EQ(a().push_ids(queue(), "p", {"held"}).status, 201);
    Parked parked;
    ASSERT_EQ(a().configure(queue(), R"({"delayedProcessing":0})").status, 200);
    parked.each_gets(ElementsAre("held"), "configured");
    for (const std::size_t at : {kB, kC}) {
        EXPECT_GE(parked.cause(at).grown("queen_peer_hints_settings_read_total{result=\"done\"}"),
                  1);
    }
}

// K47: one group on all brokers.
TEST_F(Announced, K47_AQueueThatWasDeletedAndMadeAgainIsReadFromItsStartOnEachBroker) {
    history();
    ASSERT_EQ(a().push_ids(queue(), "p0", {"late"}).status, 201);
    const auto held = b().pop(queue(), "consumerGroup=b");
    ASSERT_THAT(held.ids(), ElementsAre("late"));
    Parked others([](std::size_t at) { return cluster().park(at, queue(), "consumerGroup=b"); });
    auto on_a = cluster().park(kA, queue(), "consumerGroup=b");
    EXPECT_THAT(a().remove(queue()).body, HasSubstr(R"("deleted":true)"));
    for (const std::string partition : {"p0", "p1", "p2"}) {
        EXPECT_THAT(column(b().push_ids(queue(), partition, {"1", "2", "3", "4", "5"}), "status"),
                    Each("queued"))
            << "old ids do not block";
    }
    std::set<std::string> partitions;
    for (auto* parked : {&on_a, &others.pop(kB), &others.pop(kC)}) {
        const auto got = Api::read_pop(parked->read());
        ASSERT_THAT(got.ids(), ElementsAre("1", "2", "3", "4", "5"));
        partitions.insert(got.messages[0].partition);
    }
    EXPECT_THAT(partitions, SizeIs(3));
    EXPECT_NE(b().ack(held.messages[0], "completed", "b"), "true");
    others.cause(kB).was_a_hint("deleted");
    others.cause(kC).was_a_hint("deleted");
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
    EXPECT_EQ(root["servers_alive"].integer(), 2) << stats.body;
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
