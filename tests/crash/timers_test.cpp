// Brokers and databases that die while timers wait, are claimed or are being fired.
#include "cluster/timers_bed.hpp"
#include "support/sql_session.hpp"

#include <gmock/gmock.h>

namespace queen::test {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAreArray;

constexpr std::size_t kA = 0, kB = 1;

class TimersOfTheDead : public testing::Test {
protected:
    static constexpr const char* kQueue = "q";

    static Cluster::Options cluster_options(const std::string& sweeper,
                                            std::vector<std::vector<std::string>> environments) {
        return {.mesh = false,
                .patient = false,
                .plugins = timers_plugin(sweeper),
                .environments = std::move(environments)};
    }
    /// Everything that the log holds for a group that is new.
    static std::vector<std::string> delivered(Cluster& cluster) {
        return drained(cluster, kQueue, {kB}, "all");
    }
    /// `holder` locks all partitions; a fire waits for them for so long, '0' for ever.
    static void lock_partitions(SqlSession& holder, SqlSession& sql, const std::string& timeout) {
        sql.script("CREATE OR REPLACE FUNCTION queen._fire_lock_timeout() RETURNS text "
                   "LANGUAGE sql IMMUTABLE AS $$ SELECT '" +
                   timeout + "' $$");
        holder.script("BEGIN");
        holder.query("SELECT 1 FROM queen.log_partitions FOR UPDATE");
    }
    /// A fire of a that waits for a lock of `holder`, with the timer in its hands.
    static void fire_until_locked(Cluster& cluster, SqlSession& holder, SqlSession& sql) {
        auto& a = *cluster[kA].api;
        ASSERT_EQ(a.push_ids(kQueue, "p", {"first"}).status, 201);
        lock_partitions(holder, sql, "0");
        schedule(a, kQueue, {.key = "k", .transaction_id = "t"});
        sql.wait_for(kFireWaits);
        ASSERT_EQ(sql.integer("SELECT count(*) FROM queen.log_timers WHERE claim_token IS NOT "
                              "NULL"),
                  1);
    }
};

TEST_F(TimersOfTheDead, AnotherBrokerFiresWhatADeadOneScheduled) {
    Cluster cluster(cluster_options({}, {{}, {kEarlyFloor}}));
    auto parked = cluster.park(kB, kQueue, "consumerGroup=g&autoAck=true");
    const auto due =
        schedule(*cluster[kA].api, kQueue, {.key = "k", .transaction_id = "t", .delay_ms = 1500});
    cluster.kill9(kA);
    const auto popped = Api::read_pop(parked.read());
    ASSERT_THAT(popped.ids(), ElementsAre("t"));
    EXPECT_GE(popped.messages[0].created_at, due);
    EXPECT_EQ(cluster.metric(kB, kFired), 1);
    EXPECT_THAT(delivered(cluster), ElementsAre("t"));
}

TEST_F(TimersOfTheDead, AClaimOfADeadBrokerIsAnothersAfterItsLease) {
    Cluster cluster(cluster_options("lease: 1s", {}));
    SqlSession holder(cluster.conninfo()), sql(cluster.conninfo());
    cluster.kill9(kB); // so that a is the one that claims
    fire_until_locked(cluster, holder, sql);
    cluster.kill9(kA);
    // As if the machine had gone with the broker: nothing of the fire happens.
    sql.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
              "WHERE datname = current_database() AND query LIKE '%log_timers_fire_v1%' "
              "AND pid <> pg_backend_pid()");
    sql.wait_for(std::string("NOT ") + kFireWaits);
    holder.script("ROLLBACK");
    EXPECT_EQ(sql.integer("SELECT count(*) FROM queen.log_timers WHERE claim_token IS NOT NULL "
                          "AND attempts = 0"),
              1)
        << "claimed, and not fired";
    cluster.start(kB);
    sql.wait_for(kNoTimer);
    EXPECT_EQ(cluster.metric(kB, kFired), 1);
    EXPECT_EQ(cluster.metric(kB, "queen_timers_poisoned_total"), 0);
    EXPECT_THAT(delivered(cluster), ElementsAre("first", "t"));
}

// A lease that nobody needs any more would be a delay for as long as it lasts.
TEST_F(TimersOfTheDead, ABrokerThatStopsLeavesNothingInHand) {
    Cluster cluster(cluster_options("lease: 10m, claim_batch: 20", {}));
    SqlSession holder(cluster.conninfo()), sql(cluster.conninfo());
    cluster.kill9(kB);
    auto& a = *cluster[kA].api;
    ASSERT_EQ(a.push_ids(kQueue, "p0", {"first"}).status, 201);
    lock_partitions(holder, sql, "100ms");
    std::vector<TimerOpText> ops;
    for (int i = 0; i < 200; ++i) {
        const auto id = "t" + std::to_string(i);
        ops.push_back({.key = id, .transaction_id = id, .partition = "p" + std::to_string(i % 10)});
    }
    timer_ops(a, kQueue, ops);
    sql.wait_for(kFireWaits);
    EXPECT_EQ(cluster[kA].process->stop(), 0);
    EXPECT_EQ(sql.integer("SELECT count(*) FROM queen.log_timers WHERE claim_token IS NOT NULL"),
              0);
    EXPECT_GE(sql.integer("SELECT count(*) FROM queen.log_timers"), 20) << "p0 is locked";
    holder.script("ROLLBACK");
    cluster.start(kB);
    sql.wait_for(kNoTimer);
    EXPECT_EQ(delivered(cluster).size(), 201u);
}

TEST_F(TimersOfTheDead, AFireThatOutlivesItsBrokerAndItsLeaseIsTheOnlyOne) {
    Cluster cluster(cluster_options("lease: 1s", {{}, {}}));
    SqlSession holder(cluster.conninfo()), sql(cluster.conninfo());
    cluster.kill9(kB);
    fire_until_locked(cluster, holder, sql);
    cluster.kill9(kA);
    cluster.start(kB);
    // b looks while the statement goes on without its broker: the claim is over, the row is locked.
    sql.wait_for("EXISTS (SELECT 1 FROM queen.log_timers WHERE claimed_until < queen._clock())");
    cluster.await(kB, sweeper("empty_claims_total"),
                  cluster.metric(kB, sweeper("empty_claims_total")) + 2);
    EXPECT_TRUE(sql.yes(std::string("SELECT ") + kFireWaits));
    holder.script("ROLLBACK");
    sql.wait_for(kNoTimer);
    EXPECT_EQ(cluster.metric(kB, kFired), 0);
    EXPECT_THAT(delivered(cluster), ElementsAre("first", "t"));
}

TEST_F(TimersOfTheDead, F41_AnOutageOfManyTriesCountsForNoTimer) {
    Cluster cluster(cluster_options("lease: 1s, transient_backoff: 100ms", {}));
    SqlSession(cluster.conninfo()).script(R"(
CREATE TABLE public.attempt (timer_key text);
CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.attempt VALUES (NEW.timer_key);
    RETURN NEW;
END $$;
CREATE TRIGGER note AFTER UPDATE ON queen.log_timers FOR EACH ROW WHEN (NEW.attempts > 0)
EXECUTE FUNCTION public.note();)");
    std::vector<std::string> ids;
    for (const std::size_t at : {kA, kB}) {
        std::vector<TimerOpText> ops;
        for (int i = 0; i < 100; ++i) { // some are fired before, all are due during the outage
            ids.push_back("t" + std::to_string(ids.size()));
            ops.push_back({.key = ids.back(),
                           .transaction_id = ids.back(),
                           .delay_ms = i * 5,
                           .partition = "p" + std::to_string(i % 10)});
        }
        timer_ops(*cluster[at].api, kQueue, ops);
    }
    TestPostgres::shared().kill9();
    for (const std::size_t at : {kA, kB}) { // more tries than a timer has
        cluster.await(at, "queen_timers_fire_failures_total{class=\"transient\"}", 8);
    }
    TestPostgres::shared().restart();
    SqlSession sql(cluster.conninfo());
    sql.wait_for(kNoTimer);
    EXPECT_EQ(sql.one("SELECT count(*) FROM public.attempt"), "0");
    for (const std::size_t at : {kA, kB}) {
        EXPECT_EQ(cluster.metric(at, "queen_timers_poisoned_total"), 0);
        EXPECT_EQ(cluster.metric(at, "queen_timers_dlq_total"), 0);
    }
    EXPECT_THAT(delivered(cluster), UnorderedElementsAreArray(ids));
}

} // namespace
} // namespace queen::test
