#include "sql/sql_fixture.hpp"

namespace queen::test {
namespace {

class Claim : public SqlTest {};

TEST_F(Claim, TakesFromTheCursorAcrossSegmentsUpToTheBudget) {
    push("q", "p", {"a", "b"});
    push("q", "p", {"c", "d", "e"});
    push("q", "p", {"f"});
    EXPECT_EQ(pop({.budget = 4, .auto_ack = true}), "0+0*2 2+0*2");
    EXPECT_EQ(pop({.budget = 4, .auto_ack = true}), "2+2*1 5+0*1");
    EXPECT_EQ(pop({.budget = 4, .auto_ack = true}), "");
}

// An array ends at 1 GiB: without a bound in bytes a default batch of large messages failed each
// time, and the partition stood still.
TEST_F(Claim, StopsBeforeTooManyBytesButTakesAtLeastOneSegment) {
    for (const char* id : {"a", "b", "c", "d"}) {
        push("q", "p", {id});
    }
    push("q", "other", {"e"});
    sql.script("update queen.log_segments set blob = convert_to(repeat('x', 25 << 20), 'UTF8') "
               "where base_offset < 3");
    sql.script("update queen.log_segments set blob = convert_to(repeat('x', 70 << 20), 'UTF8') "
               "where base_offset = 3");
    EXPECT_EQ(pop({.auto_ack = true}), "0+0*1 1+0*1");
    EXPECT_EQ(pop({.auto_ack = true}), "2+0*1");
    EXPECT_EQ(list({"p", "other"}), "p=took") << "the second name was not reached";
    EXPECT_EQ(cursor("batch_end"), "3");
}

TEST_F(Claim, StartsInTheMiddleOfASegment) {
    push("q", "p", {"a", "b", "c"});
    EXPECT_EQ(pop({.budget = 1, .auto_ack = true}), "0+0*1");
    EXPECT_EQ(pop({.budget = 1, .auto_ack = true}), "0+1*1");
    const SqlRows rows = sql.query("select r_msg_count, r_blob, r_created_at from "
                                   "queen.log_pop_v1('q', 'p', 'g', 5, 0, 'w')");
    EXPECT_EQ(rows.get(0, 0), "3");
    EXPECT_EQ(rows.get(0, 1), "\\x61");
}

TEST_F(Claim, ALeaseCoversTheBatchAndMovesNoCursor) {
    push("q", "p", {"a", "b", "c"});
    EXPECT_EQ(pop({.budget = 2, .lease = 30, .worker = "w1"}), "0+0*2");
    EXPECT_EQ(cursor("committed || ',' || batch_end || ',' || worker_id || ',' || "
                     "extract(epoch from lease_expires_at - lease_acquired_at)::int"),
              "-1,1,w1,30");
}

TEST_F(Claim, WhileALeaseLivesNobodyElseGetsThePartition) {
    push("q", "p", {"a", "b"});
    pop({.budget = 1, .lease = 30});
    EXPECT_EQ(pop({.worker = "w2"}), "");
    clock(30); // expires when its time has passed
    EXPECT_EQ(pop({.worker = "w2"}), "");
    clock(30.000001);
    EXPECT_EQ(pop({.worker = "w2"}), "0+0*2");
    EXPECT_EQ(pop({.group = "other"}), "0+0*2");
}

// K06
TEST_F(Claim, AutoAckDeliversEachMessageOnceInOrder) {
    for (int i = 1; i <= 11; ++i) {
        push("q", "p", {"m" + std::to_string(i)});
    }
    std::string seen;
    for (int i = 0; i < 40; ++i) {
        const std::string got = pop({.budget = 1, .auto_ack = true});
        seen += got.substr(0, got.find('+')) + (got.empty() ? "" : " ");
    }
    EXPECT_EQ(seen, "0 1 2 3 4 5 6 7 8 9 10 ");
    EXPECT_EQ(cursor("total_consumed"), "11");
    EXPECT_EQ(cursor("worker_id is null and batch_end is null"), "t");
}

TEST_F(Claim, TheLeaseLengthFallsBackToTheQueueAndThenToAMinute) {
    push("q", "p", {"a"});
    const auto length = [&](int asked, const std::string& group) {
        pop({.group = group, .lease = asked});
        return cursor("extract(epoch from lease_expires_at - lease_acquired_at)::int", "p", group);
    };
    EXPECT_EQ(length(7, "g1"), "7");
    EXPECT_EQ(length(0, "g2"), "60");
    configure("q", R"({"leaseTime": 25})");
    EXPECT_EQ(length(0, "g3"), "25");
    EXPECT_EQ(length(-5, "g4"), "25");
}

TEST_F(Claim, ARetentionGapIsSkipped) {
    push("q", "p", {"a"});
    push("q", "p", {"b"});
    push("q", "p", {"c", "d"});
    sql.script("delete from queen.log_segments where base_offset < 2");
    sql.script("update queen.log_partitions set log_start = 2");
    EXPECT_EQ(pop({}), "2+0*2");
    EXPECT_EQ(cursor("batch_end"), "3");
}

// Nothing of ours makes one, and a partition must not stand still because of it.
TEST_F(Claim, AHoleBetweenSegmentsShortensABatchAndStopsNothing) {
    for (const char* id : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
        push("q", "p", {id});
    }
    sql.script("delete from queen.log_segments where base_offset between 1 and 5");
    EXPECT_EQ(pop({.budget = 3, .auto_ack = true}), "0+0*1");
    EXPECT_EQ(pop({.budget = 3, .auto_ack = true}), "6+0*1 7+0*1");
    EXPECT_EQ(cursor("committed || ',' || total_consumed"), "7,3");
}

TEST_F(Claim, AttemptsCountDeliveriesFromOneOffset) {
    push("q", "p", {"a", "b"});
    const auto attempt = [&] { return cursor("attempt_count || '@' || attempt_offset"); };
    pop({.lease = 1});
    EXPECT_EQ(attempt(), "1@0");
    clock(2);
    pop({.lease = 1});
    EXPECT_EQ(attempt(), "2@0");
    sql.query("select queen.log_ack_at_v1($1, 'g', 'w', -1, false)", {pid()});
    pop({.budget = 1, .lease = 1});
    EXPECT_EQ(attempt(), "3@0");
    sql.query("select queen.log_ack_at_v1($1, 'g', 'w', 0)", {pid()});
    pop({.lease = 1});
    EXPECT_EQ(attempt(), "1@1");
}

// F-37: only a failed ack spends the budget.
TEST_F(Claim, ExpiredLeasesLeaveTheRetryBudgetAlone) {
    push("q", "p", {"a"});
    for (int i = 0; i < 10; ++i) {
        clock(i * 10);
        EXPECT_EQ(pop({.lease = 5}), "0+0*1");
    }
    EXPECT_EQ(cursor("batch_retry_count || ',' || attempt_count"), "0,10");
}

// CL-6: the delay withholds a suffix.
TEST_F(Claim, DelayWithholdsYoungSegmentsAndDeliversTheRest) {
    configure("q", R"({"delayedProcessing": 10})");
    push("q", "p", {"a", "b"});
    clock(5);
    push("q", "p", {"c"});
    clock(9.999);
    EXPECT_EQ(pop({.auto_ack = true}), "");
    clock(10);
    EXPECT_EQ(pop({.budget = 1, .auto_ack = true}), "0+0*1");
    EXPECT_EQ(pop({.auto_ack = true}), "0+1*1");
    EXPECT_EQ(pop({.auto_ack = true}), "");
    EXPECT_EQ(list({"p"}), "p=empty"); // withheld, not leased: so that stale hints go away
    clock(15);
    EXPECT_EQ(pop({.skip_window = true}), "2+0*1");
}

// CL-7: a debounce over the whole partition.
TEST_F(Claim, WindowWithholdsEverythingUntilThePartitionIsQuiet) {
    configure("q", R"({"windowBuffer": 10})");
    push("q", "p", {"a"});
    clock(8);
    push("q", "p", {"b"});
    clock(17.9);
    EXPECT_EQ(pop({}), "");
    EXPECT_EQ(list({"p"}), "p=empty");
    EXPECT_EQ(pop({.group = "sure", .skip_window = true}), "0+0*1 1+0*1");
    clock(18);
    EXPECT_EQ(pop({}), "0+0*1 1+0*1");
}

TEST_F(Claim, SkippingTheWindowDoesNotSkipTheDelay) {
    configure("q", R"({"windowBuffer": 10, "delayedProcessing": 5})");
    push("q", "p", {"a"});
    clock(4);
    EXPECT_EQ(pop({.skip_window = true}), "");
    clock(5);
    EXPECT_EQ(pop({.skip_window = true}), "0+0*1");
}

// F-11: a partition that retention emptied stops looking pending.
TEST_F(Claim, AnEmptiedPartitionSealsTheCursor) {
    push("q", "p", {"a", "b"});
    pop({.budget = 1, .lease = 1});
    sql.script("delete from queen.log_segments");
    sql.script("update queen.log_partitions set log_start = 2, segment_count = 0");
    clock(5);
    EXPECT_TRUE(sql.yes("select queen.log_has_pending_v1('q', 'g')"));
    const std::string before = cursor("(c.attempt_count, c.attempt_offset, c.worker_id)::text");
    EXPECT_EQ(list({"p"}), "p=empty");
    EXPECT_EQ(cursor("committed"), "1");
    EXPECT_EQ(cursor("(c.attempt_count, c.attempt_offset, c.worker_id)::text"), before);
    push("q", "p", {"c"});
    EXPECT_EQ(pop({}), "2+0*1");
}

// F-12
TEST_F(Claim, ASealNeverPassesSegmentsThatTheDelayWithholds) {
    configure("q", R"({"delayedProcessing": 10})");
    push("q", "p", {"a"});
    EXPECT_EQ(pop({}), "");
    EXPECT_EQ(cursor("committed"), "-1");
    clock(11);
    EXPECT_EQ(pop({}), "0+0*1");
}

TEST_F(Claim, APinnedPopOfAnUnknownPartitionIsEmptyAndCreatesNothing) {
    EXPECT_EQ(pop({}), "");
    push("q", "p", {"a"});
    EXPECT_EQ(pop({.partition = "nobody"}), "");
    EXPECT_EQ(sql.integer("select count(*) from queen.log_consumers"), 0);
    const std::string wire =
        sql.one("select queen.log_pop_specific_v1('q', 'nix', 'g', 1, 0, 'w')");
    EXPECT_EQ(wire, R"({"segments": [], "partitionId": null, "deliveryAttempt": null})");
}

TEST_F(Claim, ASpecificPopCarriesIdAttemptAndBlobs) {
    push("q", "p",
         {"hello world, this is longer than a line of base64 would be in mime form ....", "b"});
    push("q", "p", {"c"});
    const std::string wire = sql.one("select queen.log_pop_specific_v1('q', 'p', 'g', 9, 30, 'w')");
    EXPECT_EQ(member(wire, "partitionId"), pid());
    EXPECT_EQ(member(wire, "deliveryAttempt"), "1");
    EXPECT_EQ(sql.query("select concat_ws(',', s ->> 'seq', s ->> 'startOff', s ->> 'take', "
                        "s ->> 'msgCount', s ->> 'createdAt', decode(s ->> 'blob', 'base64') = "
                        "g.blob, strpos(s ->> 'blob', e'\\n')) "
                        "from jsonb_array_elements($1::jsonb -> 'segments') s join "
                        "queen.log_segments g on g.base_offset = (s ->> 'seq')::int order by 1",
                        {wire})
                  .column(0),
              "0,0,2,2,2030-01-01T00:00:00.000000Z,t,0 2,0,1,1,2030-01-01T00:00:00.000000Z,t,0");
}

TEST_F(Claim, TheBinaryTwinCarriesMetaAndBlobsInOrder) {
    push("q", "p", {"a", "b"});
    push("q", "p", {"c"});
    configure("q", R"({"mode": "merge", "windowBuffer": 3, "delayedProcessing": 2,)"
                   R"( "minPopWaitTime": 7})");
    clock(3);
    const SqlRows rows = sql.query("select meta - 'partitions', (meta -> 'partitions' -> "
                                   "0) - 'segments' - 'partitionId', blobs from "
                                   "queen.log_pop_specific_bin_v1('q', 'p', 'g', 9, 30, 'w')");
    EXPECT_EQ(rows.get(0, 0), R"({"delay": 2, "seeded": false, "window": 3, "minWait": 7})");
    EXPECT_EQ(rows.get(0, 1),
              R"({"lastOff": 2, "batchEnd": 2, "partition": "p", "leaseLeftMs": 30000, )"
              R"("deliveryAttempt": 1})");
    EXPECT_EQ(rows.get(0, 2), R"({"\\x61","\\x63"})");
}

TEST_F(Claim, AutoAckHasNoLeaseInItsMeta) {
    push("q", "p", {"a"});
    EXPECT_EQ(sql.one("select (meta -> 'partitions' -> 0) ? 'leaseLeftMs' from "
                      "queen.log_pop_specific_bin_v1('q', 'p', 'g', 9, 30, 'w', true)"),
              "f");
}

class List : public SqlTest {};

TEST_F(List, GivesAVerdictForEachNameItReached) {
    push("q", "a", {"1"});
    push("q", "b", {"2", "3"});
    push("q", "c", {"4"});
    push("q", "d", {"5"});
    pop({.partition = "a", .lease = 30, .worker = "other"});
    pop({.partition = "c", .auto_ack = true});
    // CL-13: a name given twice counts once. Names beyond the cap have no verdict.
    EXPECT_EQ(list({"nix", "a", "b", "a", "c", "b", "d"}, {}, nullptr, 1),
              "nix=empty a=leased(30000) b=took");
    EXPECT_EQ(list({"b", "d"}), "b=leased(60000) d=took");
}

TEST_F(List, StopsWhenTheBudgetIsSpent) {
    push("q", "a", {"1", "2"});
    push("q", "b", {"3", "4"});
    push("q", "c", {"5"});
    EXPECT_EQ(list({"b", "a", "c"}, {.budget = 3}), "b=took a=took");
    EXPECT_EQ(cursor("batch_end", "a"), "0");
}

TEST_F(List, MetaBlobsAndVerdictsAgree) {
    push("q", "a", {"1", "2"});
    push("q", "b", {"3"});
    push("q", "b", {"4"});
    const SqlRows rows = sql.query(
        "select (select string_agg(p ->> 'partition' || (p ->> 'batchEnd') || (p ->> 'lastOff'), "
        "' ') from jsonb_array_elements(meta -> 'partitions') p), blobs, meta -> 'seeded', "
        "(select string_agg((s ->> 'p') || (s ->> 'lastOff') || ((s ->> 'id') is not null), ' ') "
        "from jsonb_array_elements(states) s) from "
        "queen.log_pop_list_v1('q', 'g', '{b,a}', 3, 0, 'w')");
    EXPECT_EQ(rows.get(0, 0), "b11 a01");
    EXPECT_EQ(rows.get(0, 1), R"({"\\x33","\\x34","\\x31"})");
    EXPECT_EQ(rows.get(0, 2), "false"); // nobody registered the group
    EXPECT_EQ(rows.get(0, 3), "b1true a1true");
    wildcard({});
    EXPECT_EQ(sql.one("select meta -> 'seeded' from queen.log_pop_list_v1('q', 'g', '{a}', 1, 0, "
                      "'w')"),
              "true");
}

TEST_F(List, AnUnknownQueueAnswersEmpty) {
    EXPECT_EQ(list({"a", "b"}), "a=empty b=empty");
    EXPECT_EQ(list({}), "");
    EXPECT_EQ(sql.integer("select count(*) from queen.queues"), 0);
}

TEST_F(List, TheLeaseLeftIsThatOfTheHolder) {
    push("q", "a", {"1"});
    pop({.partition = "a", .lease = 30});
    clock(29.75);
    EXPECT_EQ(list({"a"}), "a=leased(250)");
    clock(30.1);
    EXPECT_EQ(list({"a"}), "a=took");
}

TEST_F(List, ALargeBlobArrivesWhole) {
    sql.query("select queen.log_push_one_v1('q', 'p', 1, $1, -1, "
              "convert_to(repeat(md5('x'), 100000), 'UTF8'))",
              {hash("a")});
    EXPECT_EQ(
        sql.one("select octet_length(blobs[1]) || ',' || (blobs[1] = (select blob from "
                "queen.log_segments)) from queen.log_pop_list_v1('q', 'g', '{p}', 1, 0, 'w')"),
        "3200000,true");
}

} // namespace
} // namespace queen::test
