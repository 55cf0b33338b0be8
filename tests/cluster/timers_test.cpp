// Timers of a cluster, told by causes: cycles are so rare here that only the schedule itself can
// have begun the one that fired, and brokers look for themselves so rarely that only a wake can
// have answered the pop that waited.
#include "cluster/timers_bed.hpp"
#include "support/sql_session.hpp"

#include <gmock/gmock.h>

namespace queen::test {
namespace {

using testing::ElementsAre;

constexpr std::size_t kA = 0, kB = 1;

class TimersOfACluster : public testing::Test {
protected:
    static std::string queue() {
        return testing::UnitTest::GetInstance()->current_test_info()->name();
    }
    /// Firing is on or off, at the broker that was asked.
    static void switch_fire(Cluster& cluster, const std::string& word) {
        const auto said = cluster[kA].api->http.post("/api/v1/system/kv-timers",
                                                     R"({"timersFire":)" + word + "}");
        ASSERT_EQ(said.status, 200) << said.body;
    }
    /// One timer of a that a pop on `at` waits for.
    static void round(Cluster& cluster, std::size_t at, int number, std::int64_t delay_ms) {
        const Cause cause(cluster, at), firing(cluster, kA);
        auto parked = cluster.park(at, queue(), "consumerGroup=g&autoAck=true");
        const std::string id = "m" + std::to_string(at) + "-" + std::to_string(number);
        const auto due = schedule(*cluster[kA].api, queue(),
                                  {.key = id, .transaction_id = id, .delay_ms = delay_ms});
        const auto popped = Api::read_pop(parked.read());
        ASSERT_THAT(popped.ids(), ElementsAre(id));
        EXPECT_EQ(popped.messages[0].created_at.size(), due.size());
        EXPECT_GE(popped.messages[0].created_at, due) << "both by the database's clock";
        EXPECT_EQ(firing.grown(kFired), 1);
        if (at == kA) {
            EXPECT_GE(cause.grown("queen_wakes_total{cause=\"event\"}"), 1);
        } else {
            cause.was_a_hint("stored");
        }
    }
};

TEST_F(TimersOfACluster, F39_AScheduleAloneFiresAndWakesWhoWaitsOnEitherBroker) {
    Cluster cluster({.plugins = timers_plugin(kRareCycles)});
    const Cause firing(cluster, kA), other(cluster, kB);
    for (int number = 0; number < 3; ++number) {
        round(cluster, kA, number, 200);
        round(cluster, kB, number, 200);
    }
    EXPECT_GE(firing.grown(sweeper("pulled_forward_total")), 1);
    EXPECT_EQ(other.grown(kFired), 0);
}

TEST_F(TimersOfACluster, K42_ATimerOfAnIdleClusterIsDeliveredOnEitherBroker) {
    Cluster cluster({.plugins = timers_plugin(kRareCycles)});
    round(cluster, kA, 0, 2000);
    round(cluster, kB, 0, 2000);
}

TEST_F(TimersOfACluster, WithoutAMeshATimerIsFoundByTheFloorOfAnotherBroker) {
    Cluster cluster({.mesh = false,
                     .patient = false,
                     .plugins = timers_plugin(),
                     .environments = {{}, {kFiresNothing, kEarlyFloor}}});
    const Cause cause(cluster, kB), firing(cluster, kA);
    auto parked = cluster.park(kB, queue(), "consumerGroup=g&autoAck=true");
    schedule(*cluster[kA].api, queue(), {.key = "k", .transaction_id = "t", .delay_ms = 200});
    EXPECT_THAT(Api::read_pop(parked.read()).ids(), ElementsAre("t"));
    EXPECT_EQ(firing.grown(kFired), 1);
    EXPECT_GE(cause.grown("queen_wakes_total{cause=\"floor\"}"), 1);
}

TEST_F(TimersOfACluster, NothingIsFiredWhileTheSwitchIsOffAndAllOfItAfterwards) {
    // Without a mesh a broker sees the switch when it reads them the next time.
    Cluster cluster({.mesh = false,
                     .patient = false,
                     .more = "switches: {refresh: 100ms}\n",
                     .plugins = timers_plugin(),
                     .environments = {{kEarlyFloor}, {kEarlyFloor}}});
    const auto switch_both = [&](const std::string& word) {
        switch_fire(cluster, word);
        cluster.await_body(kB, "/api/v1/system/kv-timers", R"("timersFireEnabled":)" + word);
    };
    switch_both("false");
    SqlSession sql(cluster.conninfo());
    std::vector<TimerOpText> ops;
    for (int i = 0; i < 50; ++i) {
        ops.push_back({.key = std::to_string(i), .transaction_id = "t" + std::to_string(i)});
    }
    timer_ops(*cluster[kB].api, queue(), ops);
    // Each broker begins cycles with something due; the second of two began after it was due.
    for (const std::size_t at : {kA, kB}) {
        cluster.await(at, sweeper("cycles_total"), cluster.metric(at, sweeper("cycles_total")) + 2);
    }
    EXPECT_EQ(sql.integer("SELECT count(*) FROM queen.log_timers WHERE claim_token IS NULL "
                          "AND attempts = 0 AND deliver_at <= queen._clock()"),
              50);
    auto parked = cluster.park(kB, queue(), "consumerGroup=g&autoAck=true&batch=100");
    switch_both("true");
    std::size_t got = Api::read_pop(parked.read()).messages.size();
    sql.wait_for(kNoTimer);
    got += drained(cluster, queue(), {kA}).size();
    EXPECT_EQ(got, 50u);
    EXPECT_EQ(cluster.metric(kA, kFired) + cluster.metric(kB, kFired), 50);
}

// F-40: what a trigger refuses for good is what the store can refuse for good.
TEST_F(TimersOfACluster, F40_OnePoisonTimerAmong200FailsAlone) {
    Cluster cluster({.plugins = timers_plugin("max_attempts: 3, backoff_min: 1ms, "
                                              "backoff_max: 1ms"),
                     .environments = {{}, {kFiresNothing}}});
    auto& a = *cluster[kA].api;
    ASSERT_EQ(a.configure("poison", "{}").status, 200);
    SqlSession sql(cluster.conninfo());
    sql.script(R"(
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM queen.log_partitions p JOIN queen.queues q ON q.id = p.queue_id
               WHERE p.id = NEW.partition_id AND q.name = 'poison') THEN
        RAISE EXCEPTION 'no segment of this queue' USING ERRCODE = '23514';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER refuse BEFORE INSERT ON queen.log_segments FOR EACH ROW EXECUTE FUNCTION refuse();)");
    switch_fire(cluster, "false"); // so that one claim takes all of them
    std::vector<TimerOpText> ops;
    std::vector<std::string> ids;
    for (int i = 0; i < 199; ++i) {
        const std::string number = std::to_string(i);
        ids.push_back("t" + number);
        ops.push_back({.key = number,
                       .transaction_id = ids.back(),
                       .partition = "p" + std::to_string(i % 20)});
    }
    timer_ops(a, queue(), ops);
    timer_ops(a, "poison", {{.key = "bad", .transaction_id = "bad"}});
    const Cause cause(cluster, kA);
    switch_fire(cluster, "true");
    sql.wait_for(kNoTimer);
    EXPECT_THAT(drained(cluster, queue(), {kB}), testing::UnorderedElementsAreArray(ids));
    EXPECT_GE(cause.grown(sweeper("isolations_total")), 1) << "they were fired together at first";
    EXPECT_EQ(cause.grown(kFired), 199);
    EXPECT_EQ(cause.grown("queen_timers_poisoned_total"), 3) << "attempts of the guilty one alone";
    EXPECT_EQ(cause.grown("queen_timers_dlq_total"), 1);
    const auto letters = a.http.get("/api/v1/dlq?queue=poison");
    const auto document = json::Document::parse(letters.body);
    ASSERT_TRUE(document && document->root()["messages"].size() == 1) << letters.body;
    const auto letter = document->root()["messages"].at(0);
    EXPECT_EQ(letter["transactionId"].string(), "bad");
    EXPECT_EQ(letter["consumerGroup"].string(), "__timer__");
    EXPECT_EQ(letter["timerKey"].string(), "bad");
    EXPECT_EQ(letter["partition"].string(), "p");
    const std::string address =
        "/api/v1/messages/" + std::string(letter["partitionId"].string()) + "/bad";
    EXPECT_EQ(a.http.get(address).status, 200);
    EXPECT_EQ(a.http.request("DELETE", address).status, 200);
    EXPECT_EQ(a.http.request("DELETE", address).status, 404);
}

} // namespace
} // namespace queen::test
