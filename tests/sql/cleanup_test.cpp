// Partitions that nobody uses any more.
#include "sql/retention_fixture.hpp"

namespace queen::test {
namespace {

constexpr double kDay = 86'400;

class Cleanup : public RetentionTest {
protected:
    /// q/p with one message, consumed by g and removed; 40 days pass.
    void empty_partition(bool registered = true) {
        if (registered) {
            wildcard({});
        }
        push_at(0, {"a"});
        sql.script("update queen.log_partitions set created_at = queen._clock()");
        pop({.auto_ack = true});
        sql.script("update queen.log_consumers set created_at = queen._clock()");
        clock(1);
        evict(0.5);
        clock(40 * kDay);
    }
    std::string partitions() {
        return sql.one("select coalesce(string_agg(name, ' ' order by name), '') from "
                       "queen.log_partitions");
    }
};

TEST_F(Cleanup, AnEmptyAndUnusedPartitionGoesWithAllThatIsItsOwn) {
    empty_partition();
    const std::string id = pid();
    EXPECT_EQ(cleanup(41 * kDay), 0);
    EXPECT_EQ(cleanup(30 * kDay), 1);
    EXPECT_EQ(partitions(), "");
    EXPECT_EQ(sql.one("select (select count(*) from queen.log_consumers) + (select count(*) from "
                      "queen.log_txns)"),
              "0");
    EXPECT_EQ(sql.one("select retention_type || ' ' || messages_deleted from "
                      "queen.retention_history where partition_id = $1 order by id desc limit 1",
                      {id}),
              "__partition_deleted__ 0");
    EXPECT_EQ(sql.one("select partitions_deleted from queen.queues"), "1");
    EXPECT_EQ(cleanup(30 * kDay), 0);
}

// K49, PROV-6: at the end of all, idle past everything, then one message.
TEST_F(Cleanup, K49_AGroupWhoseLaneIsMadeAnewGetsExactlyTheNewMessage) {
    for (const std::string mode : {"all", "new"}) {
        sql.script("truncate queen.queues, queen.log_txns cascade");
        clock(-1);
        wildcard({.mode = mode});
        empty_partition();
        const std::string before = pid();
        EXPECT_EQ(cleanup(30 * kDay), 1) << mode;
        EXPECT_EQ(push("q", "p", {"b"}), "queued 0") << mode;
        EXPECT_NE(pid(), before);
        EXPECT_EQ(pop({.mode = "all"}), "0+0*1") << mode;
        EXPECT_EQ(member(ack({{"b", "completed"}}), "covered"), "true") << mode;
        EXPECT_EQ(pop({}), "") << mode;
    }
}

// Where it would begin in a new lane stands in its cursor alone.
TEST_F(Cleanup, K49_AGroupThatOnlyPopsByNameKeepsItsLane) {
    empty_partition(false);
    EXPECT_EQ(cleanup(30 * kDay), 0);
    push("q", "p", {"b"});
    EXPECT_EQ(pop({.mode = "new"}), "1+0*1");
    // Queue mode begins at the start anyway.
    sql.script(
        "update queen.log_consumers set consumer_group = '__QUEUE_MODE__', worker_id = null, "
        "batch_end = null, lease_expires_at = null, lease_acquired_at = null");
    clock(80 * kDay);
    sql.script("update queen.log_consumers set committed = 1");
    evict(79 * kDay);
    EXPECT_EQ(cleanup(30 * kDay), 1);
}

TEST_F(Cleanup, WhatKeepsAPartition) {
    const std::vector<std::pair<std::string, std::string>> vetoes{
        {"update queen.log_partitions set last_write_at = queen._clock() - interval '29 days'",
         "written lately"},
        {"update queen.log_partitions set created_at = queen._clock() - interval '29 days'",
         "made lately"},
        {"insert into queen.log_segments select id, 9, 9, queen._clock(), 'x' from "
         "queen.log_partitions",
         "a segment that nobody counted"},
        {"insert into queen.log_dlq (queue_id, partition_id, consumer_group, \"offset\") select "
         "queue_id, id, 'g', 0 from queen.log_partitions",
         "a dead letter"},
        {"update queen.log_consumers set batch_end = 0, worker_id = 'w', lease_expires_at = "
         "queen._clock() + interval '1 s'",
         "a live lease"},
        {"update queen.log_consumers set batch_end = 0, worker_id = 'w', lease_expires_at = null",
         "a lease without an end"},
        {"update queen.log_consumers set lease_expires_at = queen._clock() - interval '29 days'",
         "a lease that ended lately"},
        {"update queen.log_consumers set lease_acquired_at = queen._clock() - interval '29 days'",
         "leased lately"},
        {"update queen.log_consumers set created_at = queen._clock() - interval '29 days'",
         "a cursor made lately"},
        {"update queen.queues set dedup_window_seconds = 86400 * 41", "ids in the dedup window"},
    };
    for (const auto& [change, what] : vetoes) {
        sql.script("truncate queen.queues, queen.log_txns, queen.log_dlq cascade");
        empty_partition();
        EXPECT_EQ(sql.one("select queen.log_partition_dead_v1($1, queen._clock() - interval '30 "
                          "days')",
                          {pid()}),
                  "t")
            << what;
        sql.script(change);
        EXPECT_EQ(cleanup(30 * kDay), 0) << what;
        EXPECT_EQ(partitions(), "p") << what;
    }
}

TEST_F(Cleanup, ALeaseThatRanOutLongAgoKeepsNothing) {
    empty_partition();
    sql.script("update queen.log_consumers set batch_end = 0, worker_id = 'w', lease_expires_at = "
               "queen._clock() - interval '35 days', lease_acquired_at = queen._clock() - interval "
               "'36 days'");
    EXPECT_EQ(cleanup(30 * kDay), 1);
}

TEST_F(Cleanup, PagesGoOnBehindThoseThatStay) {
    for (int i = 0; i < 7; ++i) {
        push("q", "p" + std::to_string(i), {"m"});
    }
    sql.script("delete from queen.log_segments; update queen.log_partitions set segment_count = 0, "
               "stored_bytes = 0, log_start = 1, oldest_live_at = null, created_at = "
               "queen._clock(), last_write_at = queen._clock() + substr(name, 2)::int * interval "
               "'1 s'");
    sql.script("insert into queen.log_dlq (queue_id, partition_id, consumer_group, \"offset\") "
               "select queue_id, id, 'g', 0 from queen.log_partitions where name in ('p0', 'p1')");
    clock(40 * kDay);
    const std::string page = "select deleted || ' ' || done || ' ' || (select count(*) from "
                             "queen.log_partitions), last_at, last_id from "
                             "queen.log_partition_cleanup_step_v1(queen._clock() - interval '30 "
                             "days', 3, $1, $2)";
    SqlRows rows = sql.query(page, {nullptr, nullptr});
    EXPECT_EQ(rows.get(0, 0), "1 false 7");
    rows = sql.query(page, {rows.get(0, 1), rows.get(0, 2)});
    EXPECT_EQ(rows.get(0, 0), "3 false 6");
    rows = sql.query(page, {rows.get(0, 1), rows.get(0, 2)});
    EXPECT_EQ(rows.get(0, 0), "1 true 3");
    EXPECT_EQ(partitions(), "p0 p1");
}

// RT-14: the push is told, and its retry makes the lane anew.
TEST_F(Cleanup, APushThatWaitedForACleanupFailsLoudlyOnce) {
    empty_partition();
    SqlSession cleaner = connect();
    SqlSession pusher = connect();
    cleaner.script("begin");
    EXPECT_EQ(cleanup(30 * kDay, 100, &cleaner), 1);
    const std::string call = "select queen.log_push_multi_v1(array['q'], array['p'], array[1], "
                             "array[$1::bytea], array[-1], array['x'::bytea])";
    pusher.send(call, {hash("b")});
    await_lock(pusher);
    cleaner.script("commit");
    try {
        pusher.finish();
        FAIL() << "stored in a partition that is gone";
    } catch (const SqlError& error) {
        EXPECT_EQ(error.state(), "40001");
    }
    EXPECT_EQ(sql.one("select a.r -> 0 ->> 'baseOffset' from (" + call + ") a (r)", {hash("b")}),
              "0");
}

TEST_F(Cleanup, APartitionInUseIsSkipped) {
    empty_partition();
    SqlSession pusher = connect();
    pusher.script("begin");
    pusher.query("select queen.log_push_one_v1('q', 'p', 1, $1, -1, 'x')", {hash("b")});
    sql.script("set lock_timeout = '5s'");
    EXPECT_EQ(cleanup(30 * kDay), 0);
    pusher.script("commit");
    EXPECT_EQ(cleanup(30 * kDay), 0);
    EXPECT_EQ(partitions(), "p");
}

// A pop neither waits for a cleanup nor gets a cursor in a partition that goes.
TEST_F(Cleanup, APopDoesNotWaitForACleanup) {
    empty_partition();
    SqlSession cleaner = connect();
    cleaner.script("begin");
    EXPECT_EQ(cleanup(30 * kDay, 100, &cleaner), 1);
    sql.script("set statement_timeout = '5s'");
    EXPECT_EQ(pop({}), "");
    EXPECT_EQ(pop({.group = "another"}), "");
    EXPECT_EQ(wildcard({.group = "third"}), "");
    cleaner.script("rollback");
    EXPECT_EQ(partitions(), "p");
}

} // namespace
} // namespace queen::test
