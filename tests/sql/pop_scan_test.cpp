#include "sql/sql_fixture.hpp"

namespace queen::test {
namespace {

class Wildcard : public SqlTest {
protected:
    /// Seconds of the group's watermark and of its last check; "epoch" for never.
    std::string watermark(const std::string& group = "g") {
        return sql.one(
            "select concat_ws(' ', "
            "case when last_empty_scan_at = 'epoch' then 'epoch' else "
            "extract(epoch from last_empty_scan_at - '2030-01-01 00:00:00+00')::int::text end, "
            "case when updated_at = 'epoch' then 'epoch' else "
            "extract(epoch from updated_at - '2030-01-01 00:00:00+00')::int::text end) "
            "from queen.consumer_watermarks where consumer_group = $1",
            {group});
    }
    bool pending(const std::string& group = "g") {
        return sql.yes("select queen.log_has_pending_v1('q', $1)", {group});
    }
    bool partition_pending(const std::string& partition = "p", const std::string& group = "g") {
        return sql.yes("select queen.log_partition_has_pending_v1('q', $1, $2)",
                       {partition, group});
    }
};

// PROV-4: a group may subscribe before the first push.
TEST_F(Wildcard, APopOfAnUnknownQueueCreatesItAndRegistersTheGroup) {
    EXPECT_EQ(wildcard({.queue = "orders.email"}), "");
    EXPECT_EQ(sql.one("select namespace || '|' || task || '|' || lease_time from queen.queues"),
              "orders|email|60");
    EXPECT_EQ(sql.one("select m.consumer_group || '|' || m.subscription_mode from "
                      "queen.consumer_groups_metadata m join queen.queues q on q.id = m.queue_id"),
              "g|all");
    EXPECT_EQ(sql.integer("select count(*) from queen.log_partitions"), 0);
}

TEST_F(Wildcard, TakesFromSeveralPartitionsUpToBudgetAndCount) {
    for (const std::string partition : {"a", "b", "c", "d"}) {
        push("q", partition, {"1", "2"});
    }
    const auto claimed = [&](int budget, int partitions, const std::string& group) {
        wildcard({.group = group, .budget = budget, .partitions = partitions});
        return sql.one("select count(*) || '/' || sum(batch_end + 1) from queen.log_consumers "
                       "where worker_id is not null and consumer_group = $1",
                       {group});
    };
    EXPECT_EQ(claimed(100, 3, "g1"), "3/6");
    EXPECT_EQ(claimed(5, 100, "g2"), "3/5");
    EXPECT_EQ(claimed(100, 0, "g3"), "4/8"); // uncapped
    EXPECT_EQ(claimed(0, 1, "g4"), "1/1");   // at least one message
}

// K02: what is leased is left alone, the rest is served.
TEST_F(Wildcard, ASecondWorkerGetsOnlyPartitionsTheFirstDoesNotHold) {
    push("q", "a", {"1", "2", "3"});
    push("q", "b", {"1", "2", "3"});
    const std::string first = wildcard({.budget = 1, .worker = "w1"});
    const std::string second = wildcard({.worker = "w2"});
    EXPECT_EQ(first.substr(0, 1) + second.substr(0, 1), first[0] == 'a' ? "ab" : "ba");
    EXPECT_EQ(second.substr(1), ":0+0*3");
    EXPECT_EQ(wildcard({.worker = "w3"}), "");
    sql.query("select queen.log_ack_v1('q', $1, 'g', 'w1', 0)", {first.substr(0, 1)});
    EXPECT_EQ(wildcard({.worker = "w3"}), first.substr(0, 1) + ":0+1*2");
}

TEST_F(Wildcard, CandidatesComeInRandomOrder) {
    for (int i = 0; i < 30; ++i) {
        push("q", "p" + std::to_string(i), {"1"});
    }
    std::string order;
    for (int i = 0; i < 8; ++i) {
        order += wildcard({.budget = 1, .partitions = 1}) + " ";
    }
    std::string sorted;
    for (int i = 0; i < 8; ++i) {
        sorted += "p" + std::to_string(i) + ":0+0*1 ";
    }
    EXPECT_NE(order, sorted);
}

TEST_F(Wildcard, TheWireTwinIsMetaWithBlobs) {
    push("q", "a", {"x"});
    const std::string wire =
        sql.one("select queen.log_pop_wildcard_wire_v1('q', 'g', 9, 5, 'w', false, 9)");
    EXPECT_EQ(sql.one("select $1::jsonb #>> '{partitions,0,segments,0,blob}'", {wire}), "eA==");
    EXPECT_EQ(sql.one("select $1::jsonb #>> '{partitions,0,leaseLeftMs}'", {wire}), "5000");
    EXPECT_EQ(sql.one("select queen.log_pop_wildcard_wire_v1('q', 'g', 9, 5, 'w')"),
              R"({"delay": 0, "seeded": true, "window": 0, "minWait": 0, "partitions": []})");
}

// SC-2
TEST_F(Wildcard, AnEmptyScanMovesTheWatermarkAtMostEachThirtySeconds) {
    push("q", "p", {"a"});
    clock(1);
    EXPECT_EQ(wildcard({.auto_ack = true}), "p:0+0*1");
    EXPECT_EQ(watermark(), "epoch epoch");
    clock(200);
    wildcard({});
    EXPECT_EQ(watermark(), "200 200");
    clock(229);
    wildcard({});
    EXPECT_EQ(watermark(), "200 200");
    clock(230);
    wildcard({});
    EXPECT_EQ(watermark(), "230 230");
}

// K10: the lease filter does not count in the check.
TEST_F(Wildcard, ABacklogUnderALeaseIsNeverStranded) {
    push("q", "p", {"1", "2", "3", "4", "5"});
    EXPECT_EQ(wildcard({.lease = 300, .worker = "A"}), "p:0+0*5");
    for (int t = 30; t <= 300; t += 30) {
        clock(t);
        EXPECT_EQ(wildcard({.worker = "B"}), "");
        EXPECT_EQ(watermark(), "epoch " + std::to_string(t));
    }
    clock(300.5);
    EXPECT_EQ(wildcard({.worker = "B"}), "p:0+0*5");
}

TEST_F(Wildcard, DataThatTheDelayWithholdsHoldsTheWatermark) {
    configure("q", R"({"delayedProcessing": 3600})");
    push("q", "p", {"1"});
    clock(600);
    EXPECT_EQ(wildcard({}), "");
    EXPECT_EQ(watermark(), "epoch 600");
    clock(3600);
    EXPECT_EQ(wildcard({}), "p:0+0*1");
}

// F-11: phantom pending used to pin the watermark at the epoch.
TEST_F(Wildcard, AnEmptiedPartitionDoesNotPinTheWatermark) {
    push("q", "p", {"a"});
    wildcard({.partitions = 1});
    sql.query("select queen.log_release_undelivered_v1($1, 'g', 'w')", {pid()});
    sql.script("delete from queen.log_segments");
    sql.script("update queen.log_partitions set log_start = 1");
    clock(100);
    EXPECT_TRUE(pending());
    EXPECT_EQ(wildcard({}), "");
    EXPECT_FALSE(pending());
    EXPECT_EQ(watermark(), "100 100");
}

// F-50: a push that commits late carries an old last_write_at; two minutes of slack find it.
TEST_F(Wildcard, APushThatCommitsAfterTheWatermarkMovedIsFound) {
    push("q", "p", {"a"});
    wildcard({.auto_ack = true});
    clock(1000);
    SqlSession late = connect();
    late.script("begin");
    late.query("select queen.log_push_one_v1('q', 'p', 1, $1, -1, 'x')", {hash("b")});
    clock(1100);
    EXPECT_EQ(wildcard({}), "");
    EXPECT_EQ(watermark(), "1100 1100");
    late.script("commit");
    EXPECT_TRUE(pending());
    EXPECT_EQ(wildcard({}), "p:1+0*1");
}

TEST_F(Wildcard, AWatermarkOfAClockThatWasSetBackHidesNothing) {
    push("q", "p", {"a"});
    wildcard({.auto_ack = true});
    clock(4000);
    wildcard({});
    EXPECT_EQ(watermark(), "4000 4000");
    clock(1000);
    push("q", "p", {"b"});
    EXPECT_TRUE(pending());
    EXPECT_EQ(wildcard({.lease = 3600}), "p:1+0*1");
    EXPECT_EQ(wildcard({}), "");
    EXPECT_EQ(watermark(), "epoch 1000") << "else it would hide the lease's data at 4000";
}

TEST_F(Wildcard, AScanLooksOnlyAtPartitionsWrittenSinceTheWatermark) {
    push("q", "old", {"a"});
    wildcard({.auto_ack = true});
    clock(1000);
    wildcard({});
    EXPECT_EQ(watermark(), "1000 1000");
    // A cursor that somebody moved back without deleting the watermark stays out of sight.
    sql.script("update queen.log_consumers set committed = -1");
    EXPECT_EQ(wildcard({}), "");
    sql.script("delete from queen.consumer_watermarks");
    EXPECT_EQ(wildcard({}), "old:0+0*1");
}

TEST_F(Wildcard, AMissingWatermarkIsMadeAgain) {
    push("q", "p", {"a"});
    wildcard({.auto_ack = true});
    sql.script("delete from queen.consumer_watermarks");
    clock(500);
    wildcard({});
    wildcard({});
    EXPECT_EQ(watermark(), "500 500");
}

TEST_F(Wildcard, TheProbeAnswersForWhatAPopCouldTakeNow) {
    EXPECT_TRUE(pending());           // unknown queue
    EXPECT_TRUE(partition_pending()); // unknown partition
    push("q", "p", {"a", "b"});
    EXPECT_TRUE(pending()); // group not registered
    EXPECT_TRUE(partition_pending());
    wildcard({.group = "h"});
    EXPECT_TRUE(pending());
    wildcard({.budget = 1, .lease = 10});
    EXPECT_FALSE(pending()); // under a live lease
    EXPECT_FALSE(partition_pending());
    clock(10);
    EXPECT_FALSE(pending());
    EXPECT_FALSE(partition_pending());
    clock(10.001);
    EXPECT_TRUE(pending()); // expired
    EXPECT_TRUE(partition_pending());
    wildcard({.auto_ack = true});
    EXPECT_FALSE(pending());
    EXPECT_FALSE(partition_pending());
    push("q", "new", {"a"});
    EXPECT_TRUE(pending()); // no cursor there yet
    EXPECT_FALSE(partition_pending());
    EXPECT_TRUE(partition_pending("new"));
}

TEST_F(Wildcard, ThePinnedProbeLeavesOutWhatRetentionTook) {
    push("q", "p", {"a"});
    wildcard({.lease = 1});
    sql.script("delete from queen.log_segments");
    sql.script("update queen.log_partitions set log_start = 1");
    clock(5);
    EXPECT_FALSE(partition_pending());
}

TEST_F(Wildcard, TheDiscoveryProbeLooksAtEveryMatchingQueue) {
    const auto discover = [&] {
        return sql.yes("select queen.log_discover_has_pending_v1('a', '', 'g')");
    };
    const auto drain = [&] {
        sql.query("select queen.log_pop_discover_bin_v1('a', '', 'g', 100, 0, 'w', true, 100)");
    };
    EXPECT_TRUE(discover()); // labels not registered
    drain();
    EXPECT_FALSE(discover());
    push("a.1", "p", {"x"});
    EXPECT_TRUE(discover()); // not registered with the new queue
    drain();
    EXPECT_FALSE(discover());
    push("a.1", "p", {"y"});
    EXPECT_TRUE(discover());
    sql.query("select queen.log_pop_discover_bin_v1('a', '', 'g', 100, 10, 'w', false, 100)");
    EXPECT_FALSE(discover());
    clock(11);
    EXPECT_TRUE(discover());
}

} // namespace
} // namespace queen::test
