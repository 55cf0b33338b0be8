// Where a seek puts cursors, what it ends, and what it leaves alone.
#include "sql/groups_fixture.hpp"

namespace queen::test {
namespace {

class Seek : public GroupsTest {
protected:
    /// Segments of one message at seconds 10, 20, 30 in p, one at 15 in r, and the clock at 40.
    void history() {
        clock(10);
        push("q", "p", {"p0"});
        clock(15);
        push("q", "r", {"r0"});
        clock(20);
        push("q", "p", {"p1"});
        clock(30);
        push("q", "p", {"p2"});
        clock(40);
    }
    void consumed(const std::string& group = "g") {
        history();
        wildcard({.group = group, .auto_ack = true});
        ASSERT_EQ(cursors(group), "p=2 r=0");
    }
};

// K48
TEST_F(Seek, GoesBeforeTheFirstSegmentNotOlderInEachPartition) {
    consumed();
    EXPECT_EQ(seek(15), "moved 2");
    EXPECT_EQ(cursors(), "p=0 r=-1");
    EXPECT_EQ(wildcard({.auto_ack = true}), "p:1+0*1 p:2+0*1 r:0+0*1");
    EXPECT_EQ(seek(15.5), "moved 2");
    EXPECT_EQ(cursors(), "p=0 r=0");
    EXPECT_EQ(seek(20), "moved 2");
    EXPECT_EQ(cursors(), "p=0 r=0") << "a segment of that very moment is delivered";
    EXPECT_EQ(seek(20.000001), "moved 2");
    EXPECT_EQ(cursors(), "p=1 r=0");
    EXPECT_EQ(seek(-1000), "moved 2");
    EXPECT_EQ(cursors(), "p=-1 r=-1");
}

// K48
TEST_F(Seek, TheEndAndAFutureTimeLeaveNothing) {
    history();
    wildcard({.budget = 1, .auto_ack = true});
    EXPECT_EQ(seek_end(), "moved 2");
    EXPECT_EQ(cursors(), "p=2 r=0");
    EXPECT_EQ(wildcard({}), "");
    EXPECT_EQ(seek(-1), "moved 2");
    EXPECT_EQ(seek(1000), "moved 2");
    EXPECT_EQ(wildcard({}), "");
    push("q", "p", {"p3"});
    EXPECT_EQ(wildcard({}), "p:3+0*1") << "what comes later is not skipped";
}

// K48
TEST_F(Seek, OfOnePartitionMovesNoOther) {
    consumed();
    consumed("h");
    EXPECT_EQ(seek_partition(20, "p"), "moved 1");
    EXPECT_EQ(cursors(), "p=0 r=0");
    EXPECT_EQ(seek_partition_end("p"), "moved 1");
    EXPECT_EQ(cursors(), "p=2 r=0");
    EXPECT_EQ(cursors("h"), "p=2 r=0");
}

// K48
TEST_F(Seek, UnknownOnesAreRefusedAndNothingMoves) {
    consumed();
    sql.query("select queen.configure_queue_v1('bare', '{}')");
    EXPECT_EQ(seek_end("g", "nope"), "Queue not found or has no partitions");
    EXPECT_EQ(seek_end("g", "bare"), "Queue not found or has no partitions");
    EXPECT_EQ(seek_partition_end("p", "g", "nope"), "Queue not found or has no partitions");
    EXPECT_EQ(seek_partition_end("nope"), "Partition not found");
    EXPECT_EQ(seek_end("nobody"), "Consumer group not found");
    EXPECT_EQ(seek_partition_end("p", "nobody"), "Consumer group not found");
    EXPECT_EQ(told(sql.one("select queen.log_seek_consumer_group_v1('g', 'q', false)")),
              "Must specify toEnd=true or a timestamp");
    EXPECT_EQ(told(sql.one("select queen.log_seek_consumer_group_v1('g', 'q', true, 'now')")),
              "Must specify toEnd=true or a timestamp");
    EXPECT_EQ(told(sql.one("select queen.log_seek_consumer_group_v1('g', 'q', true, null, $1)",
                           {kOtherTenant})),
              "Queue not found or has no partitions");
    EXPECT_EQ(cursors(), "p=2 r=0");
    EXPECT_EQ(cursors("nobody"), "");
    EXPECT_EQ(repairs(), "");
}

TEST_F(Seek, AGroupIsKnownByItsSubscriptionItsLabelsOrACursor) {
    clock(1);
    push("a.b", "p", {"x"});
    push("a.b", "r", {"y"});
    EXPECT_EQ(seek_end("g", "a.b"), "Consumer group not found");
    pop({.queue = "a.b", .partition = "p", .budget = 1}); // a cursor and no subscription
    EXPECT_EQ(seek_end("g", "a.b"), "moved 2");
    wildcard({.queue = "a.b", .group = "w"});
    EXPECT_EQ(seek_end("w", "a.b"), "moved 2");
    // A discovery subscribed to labels before the queue was there.
    sql.query("select queen.log_pop_discover_bin_v1('n', '', 'd', 1, 0, 'w')");
    sql.query("select queen.log_pop_discover_bin_v1('m', '', 'e', 1, 0, 'w')");
    configure("q", R"({"namespace": "n", "task": "t"})");
    push("q", "p", {"x"});
    EXPECT_EQ(seek_end("e"), "Consumer group not found");
    EXPECT_EQ(seek_end("d"), "moved 1");
    EXPECT_EQ(cursors("d"), "p=0");
    EXPECT_EQ(seek_end("__QUEUE_MODE__"), "moved 1") << "every queue has that";
}

TEST_F(Seek, CreatesTheCursorsThatAreMissing) {
    history();
    pop({.partition = "r", .budget = 1, .auto_ack = true});
    EXPECT_EQ(cursors(), "r=0");
    EXPECT_EQ(seek(20), "moved 2");
    EXPECT_EQ(cursors(), "p=0 r=0");
    // Registration keeps them.
    EXPECT_EQ(wildcard({.auto_ack = true, .mode = "all"}), "p:1+0*1 p:2+0*1");
}

TEST_F(Seek, EndsLeasesAndRefusesTheirAcks) {
    history();
    EXPECT_EQ(wildcard({.worker = "old"}), "p:0+0*1 p:1+0*1 p:2+0*1 r:0+0*1");
    EXPECT_EQ(seek(30), "moved 2");
    EXPECT_EQ(member(ack({{"p2", "completed"}}, "old"), "error"), "invalid or expired lease");
    EXPECT_EQ(member(ack({{"p0", "completed"}}, "old"), "repeated"), "true")
        << "the seek passed it";
    EXPECT_EQ(member(ack({{"p0", "failed"}}, "old"), "error"), "invalid or expired lease");
    EXPECT_EQ(member(sql.one("select queen.log_renew_lease_v1('old', 60)"), "renewed"), "0");
    EXPECT_EQ(cursors(), "p=1 r=0");
    EXPECT_EQ(pop({.worker = "new"}), "2+0*1") << "free at once, not after the old lease";
    EXPECT_EQ(member(ack({{"p2", "completed"}}, "old"), "error"), "invalid or expired lease");
    EXPECT_EQ(member(ack({{"p2", "completed"}}, "new"), "ok"), "true");
}

TEST_F(Seek, ResetsRetriesAndAttempts) {
    history();
    for (int i = 0; i < 2; ++i) {
        pop({.worker = "w"});
        ack({{"p0", "failed"}});
    }
    EXPECT_EQ(cursor("concat_ws(' ', batch_retry_count, retry_offset, attempt_count)"), "2 0 2");
    EXPECT_EQ(seek_partition(0, "p"), "moved 1");
    EXPECT_EQ(cursor("concat_ws(' ', batch_retry_count, coalesce(retry_offset, -9), "
                     "attempt_count, coalesce(attempt_offset, -9), prior_attempt_count)"),
              "0 -9 0 -9 0");
    EXPECT_EQ(sql.one("select meta #>> '{partitions,0,deliveryAttempt}' from "
                      "queen.log_pop_list_v1('q', 'g', '{p}', 10, 60, 'w')"),
              "1");
}

// A forgotten watermark hides partitions nobody has written to for long from the candidate scan.
TEST_F(Seek, BringsColdPartitionsBackIntoTheScan) {
    consumed();
    for (const int now : {1000, 2000, 3000}) {
        clock(now);
        EXPECT_EQ(wildcard({}), ""); // the watermark follows
    }
    EXPECT_EQ(seek(0), "moved 2");
    EXPECT_EQ(wildcard({.auto_ack = true}), "p:0+0*1 p:1+0*1 p:2+0*1 r:0+0*1");
    for (const int now : {4000, 5000, 6000}) {
        clock(now);
        EXPECT_EQ(wildcard({}), "");
    }
    EXPECT_EQ(seek_partition(0, "r"), "moved 1");
    EXPECT_EQ(wildcard({}), "r:0+0*1");
}

TEST_F(Seek, StaysAboveWhatRetentionTook) {
    consumed();
    sql.query("with gone as (delete from queen.log_segments where partition_id = $1 and "
              "base_offset < 2) update queen.log_partitions set log_start = 2, segment_count = 1 "
              "where id = $1",
              {pid()});
    EXPECT_EQ(seek(0), "moved 2");
    EXPECT_EQ(cursors(), "p=1 r=-1");
    // Nothing is left at all.
    sql.query("with gone as (delete from queen.log_segments where partition_id = $1) update "
              "queen.log_partitions set log_start = 3, segment_count = 0 where id = $1",
              {pid()});
    EXPECT_EQ(seek(0), "moved 2");
    EXPECT_EQ(cursors(), "p=2 r=-1");
}

TEST_F(Seek, FindsItsPlaceInADeepBacklogWithoutWalkingIt) {
    for (int i = 0; i < 300; ++i) {
        clock(i);
        push("q", "p", {"a" + std::to_string(i), "b" + std::to_string(i)});
    }
    clock(1000);
    for (const int second : {0, 1, 77, 150, 298, 299}) {
        EXPECT_EQ(seek(second, "__QUEUE_MODE__"), "moved 1");
        EXPECT_EQ(cursors("__QUEUE_MODE__"), "p=" + std::to_string(2 * second - 1)) << second;
    }
}

// F-43: in the same transaction, also for a seek to the end.
TEST_F(Seek, F43_LeavesARepairForOtherBrokers) {
    consumed();
    EXPECT_EQ(seek_partition(0, "p"), "moved 1");
    EXPECT_EQ(repairs(), "q/g/p seek");
    EXPECT_EQ(seek_partition_end("p"), "moved 1");
    EXPECT_EQ(repairs(), "q/g/p seek");
    EXPECT_EQ(seek_partition(0, "r"), "moved 1");
    EXPECT_EQ(repairs(), "q/g/* seek") << "a reader may have seen neither";
    EXPECT_EQ(seek_partition(0, "p"), "moved 1");
    EXPECT_EQ(repairs(), "q/g/* seek");
    wildcard({.group = "h"});
    EXPECT_EQ(seek_end("h"), "moved 2");
    EXPECT_EQ(repairs(), "q/g/* seek q/h/* seek");
    SqlSession other = connect();
    other.script("begin");
    EXPECT_EQ(seek_partition(0, "p", "h"), "moved 1");
    sql.script("truncate queen.hotlist_repairs");
    other.query("select queen.log_seek_consumer_group_v1('h', 'q', true)");
    EXPECT_EQ(repairs(), "");
    other.script("rollback");
    EXPECT_EQ(repairs(), "");
}

TEST_F(Seek, TheTimeOfARepairMovesOnThoughTheClockStands) {
    consumed();
    const auto told = [&] {
        return sql.one("select extract(epoch from repair_at - queen._clock()) * 1000000 || '' from "
                       "queen.hotlist_repairs");
    };
    seek_partition_end("p");
    EXPECT_EQ(told().substr(0, 2), "0.");
    seek_partition_end("p");
    EXPECT_EQ(told().substr(0, 2), "1.");
    clock(20);
    seek_partition_end("p");
    EXPECT_EQ(told().substr(0, 9), "20000002.") << "the clock was set back";
}

TEST_F(Seek, RepairsGoAfterAnHourAndAnOldOneDoesNotWiden) {
    consumed();
    wildcard({.group = "h"});
    seek_end("h");
    seek_partition_end("p");
    clock(40 + 3600);
    seek_partition_end("p");
    EXPECT_EQ(repairs(), "q/g/p seek q/h/* seek");
    clock(40 + 3601);
    seek_partition_end("p");
    EXPECT_EQ(repairs(), "q/g/p seek");
    clock(40 + 3601 + 3601);
    seek_partition_end("r");
    EXPECT_EQ(repairs(), "q/g/r seek");
}

TEST_F(Seek, ARepairTellsThePartitionAndWhetherItsQueueWaits) {
    consumed();
    const auto told = [&] {
        return sql
            .query("select concat_ws(' ', queue_name, consumer_group, partition_name, "
                   "partition_id is not null, waits) from queen.log_hotlist_repairs_v1()")
            .column(0);
    };
    seek_partition_end("p");
    EXPECT_EQ(told(), "q g p t f");
    configure("q", R"({"windowBuffer": 1})");
    EXPECT_EQ(told(), "q g p t t");
    configure("q", R"({"delayedProcessing": 1})");
    EXPECT_EQ(told(), "q g p t t");
    sql.query("select queen.delete_queue_v1($1, 'q')", {kTenant});
    EXPECT_EQ(told(), "q g p f f");
}

// K49, K19: the answer says what took effect.
TEST_F(Seek, TheAnswerRepeatsTheQuestion) {
    consumed();
    EXPECT_EQ(sql.one("select queen.log_seek_consumer_group_v1('g', 'q', false, "
                      "'2030-01-01T05:30:15.5+05:30') - 'partitionId' - 'waits'"),
              R"({"success": true, "updated": true, "queueName": "q", "seekToEnd": false, )"
              R"("consumerGroup": "g", "partitionName": null, "targetTimestamp": )"
              R"("2030-01-01T00:00:15.500000Z", "partitionsUpdated": 2})");
    EXPECT_EQ(
        sql.one("select queen.log_seek_partition_v1('g', 'q', 'nope', true)"),
        R"({"error": "Partition not found", "success": false, "updated": false, "queueName": )"
        R"("q", "seekToEnd": true, "consumerGroup": "g", "partitionName": "nope", )"
        R"("targetTimestamp": null, "partitionsUpdated": 0})");
}

// K21, K24: names are names.
TEST_F(Seek, NamesOfAllKindsAreReached) {
    clock(10);
    for (const std::string name : {"a&b", "a\"b", "a\\b", "a/b", "é", "日本", "😀", "'", "<x>", " ",
                                   "null", "__x__", "%", "Q", "q"}) {
        push(name, name, {"m"});
        wildcard({.queue = name, .group = name, .auto_ack = true});
        EXPECT_EQ(seek_partition(0, name, name, name), "moved 1") << name;
        EXPECT_EQ(cursors(name, name), name + "=-1");
        EXPECT_EQ(seek_end(name, name), "moved 1") << name;
        EXPECT_EQ(remove(name), "1 true [" + sql.one("select to_jsonb($1::text)", {name}) + "]");
    }
}

} // namespace
} // namespace queen::test
