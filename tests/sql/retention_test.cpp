// What goes by age, what stays, and what every step leaves behind.
#include "base/text.hpp"
#include "sql/retention_fixture.hpp"

namespace queen::test {
namespace {

class Retention : public RetentionTest {};

TEST_F(Retention, WhatIsOlderGoesConsumedOrNotAndWholeSegmentsOnly) {
    push_at(0, {"a", "b"});
    push_at(10, {"c"});
    push_at(20, {"d", "e", "f"});
    configure("q", R"({"retentionEnabled": true, "retentionSeconds": 100})");
    clock(115); // cutoff 15
    EXPECT_EQ(due("retention"), "p 15 -");
    EXPECT_EQ(step(), "2 of 3 messages, from 3, done");
    EXPECT_EQ(segments(), "3-5");
    EXPECT_EQ(history(), "retention:3");
    EXPECT_EQ(due("retention"), "");
    EXPECT_EQ(step(), "0 of 0 messages, from 3, done");
    expect_invariants();
    clock(121);
    EXPECT_EQ(step(), "1 of 3 messages, from 6, done");
    EXPECT_EQ(segments(), "");
    EXPECT_EQ(sql.one("select oldest_live_at is null from queen.log_partitions"), "t");
    expect_invariants();
    push_at(130, {"g"}); // offsets go on
    EXPECT_EQ(segments(), "6-6");
    expect_invariants();
}

TEST_F(Retention, NothingGoesWhileRetentionIsOffOrItsAgeIsZero) {
    push_at(0, {"a"});
    clock(1'000'000);
    configure("q", R"({"retentionSeconds": 1, "completedRetentionSeconds": 1})");
    EXPECT_EQ(due("retention"), "");
    configure("q", R"({"retentionEnabled": true})");
    EXPECT_EQ(due("retention"), "");
    EXPECT_EQ(step(), "0 of 0 messages, from 0, done");
    EXPECT_EQ(segments(), "0-0");
}

// K05
TEST_F(Retention, K05_ConsumedDataGoesOnlyWhenEveryKnownGroupHasFinishedIt) {
    configure("q", R"({"retentionEnabled": true, "completedRetentionSeconds": 5})");
    EXPECT_EQ(wildcard({.group = "A"}), ""); // both register before there is anything
    EXPECT_EQ(wildcard({.group = "B"}), "");
    push_at(0, {"a", "b"});
    push_at(1, {"c"});
    EXPECT_EQ(wildcard({.group = "A", .auto_ack = true}), "p:0+0*2 p:2+0*1");
    clock(1000);
    EXPECT_EQ(due("retention"), "p - 995");
    EXPECT_EQ(step(), "0 of 0 messages, from 0, done"); // B has no cursor row, and counts
    EXPECT_EQ(pop({.group = "B", .budget = 2, .auto_ack = true}), "0+0*2");
    EXPECT_EQ(step(), "1 of 2 messages, from 2, done, 1 consumed");
    EXPECT_EQ(history(), "completed_retention:2");
    EXPECT_EQ(pop({.group = "B", .auto_ack = true}), "2+0*1");
    EXPECT_EQ(step(), "1 of 1 messages, from 3, done, 1 consumed");
    expect_invariants();
}

TEST_F(Retention, APartlyConsumedSegmentStays) {
    configure("q", R"({"retentionEnabled": true, "completedRetentionSeconds": 5})");
    push_at(0, {"a", "b", "c"});
    pop({.budget = 2, .auto_ack = true});
    clock(100);
    EXPECT_EQ(step(), "0 of 0 messages, from 0, done");
    pop({.budget = 1, .auto_ack = true});
    EXPECT_EQ(step(), "1 of 3 messages, from 3, done, 1 consumed");
}

TEST_F(Retention, WithoutAKnownGroupNothingIsConsumed) {
    configure("q", R"({"retentionEnabled": true, "completedRetentionSeconds": 5})");
    push_at(0, {"a"});
    clock(100);
    EXPECT_EQ(step(), "0 of 0 messages, from 0, done");
    EXPECT_EQ(segments(), "0-0");
}

TEST_F(Retention, AGroupThatBeginsLaterCountsWhereItBegins) {
    configure("q", R"({"retentionEnabled": true, "completedRetentionSeconds": 5})");
    push_at(0, {"a"});
    pop({.group = "reader", .auto_ack = true});
    clock(50);
    // Registered without a cursor here: the seeder skipped the partition, which was locked.
    sql.script("insert into queen.consumer_groups_metadata (consumer_group, queue_id, "
               "subscription_mode, subscription_timestamp) select 'late', id, 'new', "
               "queen._clock() from queen.queues");
    push_at(51, {"b"});
    pop({.group = "reader", .auto_ack = true});
    clock(100);
    // Its first message is b; what lies before is not its concern.
    EXPECT_EQ(step(), "1 of 1 messages, from 1, done, 1 consumed");
    EXPECT_EQ(pop({.group = "late"}), "1+0*1");
}

TEST_F(Retention, ADiscoveryThatHasNotMetTheQueueIsAKnownGroup) {
    EXPECT_EQ(sql.one("select (queen.log_pop_discover_bin_v1('shop', '', 'finder', 1, 60, 'w')) "
                      ".meta ->> 'partitions'"),
              "[]");
    configure("q", R"({"namespace": "shop", "retentionEnabled": true,
                       "completedRetentionSeconds": 5})");
    push_at(0, {"a"});
    pop({.auto_ack = true});
    clock(100);
    EXPECT_EQ(step(), "0 of 0 messages, from 0, done");
    sql.query("select queen.log_pop_discover_bin_v1('shop', '', 'finder', 9, 60, 'w', true)");
    EXPECT_EQ(step(), "1 of 1 messages, from 1, done, 1 consumed");
}

TEST_F(Retention, WhatWaitedTooLongGoesWhateverRetentionEnabledSaysAndUnderALease) {
    push_at(0, {"a"});
    push_at(5, {"b"});
    configure("q", R"({"maxWaitTimeSeconds": 50})");
    EXPECT_EQ(pop({.budget = 1}), "0+0*1"); // leased
    clock(52);
    EXPECT_EQ(due("max_wait"), "p 2 -");
    EXPECT_EQ(evict(2), "1 of 1 messages, from 1, done");
    EXPECT_EQ(history(), "max_wait_time_eviction:1");
    // The lease is still its holder's, and the ack is good: its hash is kept.
    EXPECT_EQ(member(ack({{"a", "completed"}}), "leaseReleased"), "true");
    EXPECT_EQ(pop({}), "1+0*1");
    expect_invariants();
}

TEST_F(Retention, TtlRemovesOnlyWhereSomebodySetIt) {
    push_at(0, {"a"});
    configure("q", "{}");
    clock(100'000);
    EXPECT_EQ(due("max_wait"), ""); // the echo says 3600, nobody asked for it
    configure("q", R"({"ttl": 0})");
    EXPECT_EQ(due("max_wait"), "");
    configure("q", R"({"ttl": 70})");
    EXPECT_EQ(due("max_wait"), "p 99930 -");
    configure("q", R"({"ttl": 70, "maxWaitTimeSeconds": 30})"); // the shorter one
    EXPECT_EQ(due("max_wait"), "p 99970 -");
}

// RT-9
TEST_F(Retention, ACursorBelowTheStartGoesOnWithTheNextSegment) {
    push_at(0, {"a", "b"});
    push_at(10, {"c"});
    EXPECT_EQ(pop({.budget = 1, .auto_ack = true}), "0+0*1");
    clock(20);
    EXPECT_EQ(evict(5), "1 of 2 messages, from 2, done");
    EXPECT_EQ(cursor("committed"), "0");
    EXPECT_EQ(pop({}), "2+0*1");
}

// F-23, RT-5: bounded in rows; more is left until the walk says so.
TEST_F(Retention, F23_AStepRemovesAtMostWhatItMayAndSaysWhetherMoreIsLeft) {
    for (int i = 0; i < 7; ++i) {
        push_at(i, {"m" + std::to_string(i)});
    }
    clock(1000);
    EXPECT_EQ(evict(500, 3), "3 of 3 messages, from 3, more");
    EXPECT_EQ(evict(500, 3), "3 of 3 messages, from 6, more");
    expect_invariants();
    EXPECT_EQ(evict(500, 1), "1 of 1 messages, from 7, done");
    expect_invariants();
}

TEST_F(Retention, F23_AStepIsBoundedInBytesAsWell) {
    for (int i = 0; i < 4; ++i) {
        push_at(i, {"m" + std::to_string(i)});
    }
    sql.script("create or replace function queen._step_bytes() returns bigint language sql "
               "immutable as $$ select 3::bigint $$"); // a blob is two bytes
    clock(1000);
    EXPECT_EQ(evict(500), "2 of 2 messages, from 2, more");
    sql.script("create or replace function queen._step_bytes() returns bigint language sql "
               "immutable as $$ select 1::bigint $$");
    EXPECT_EQ(evict(500), "1 of 1 messages, from 3, more"); // one at least
    sql.script("create or replace function queen._step_bytes() returns bigint language sql "
               "immutable as $$ select 67108864::bigint $$");
    EXPECT_EQ(evict(500), "1 of 1 messages, from 4, done");
}

TEST_F(Retention, AWrongWatermarkIsSetRightByTheStepItCaused) {
    push_at(0, {"a"});
    configure("q", R"({"maxWaitTimeSeconds": 50})");
    sql.script("update queen.log_partitions set oldest_live_at = '2000-01-01'");
    EXPECT_NE(due("max_wait"), "");
    EXPECT_EQ(evict(-50), "0 of 0 messages, from 0, done");
    EXPECT_EQ(due("max_wait"), "");
    expect_invariants();
}

TEST_F(Retention, AStepOfAPartitionThatIsGoneIsDone) {
    EXPECT_EQ(sql.one("select done from queen.log_retention_step_v1(gen_random_uuid(), "
                      "queen._clock(), queen._clock(), 10)"),
              "t");
    EXPECT_EQ(sql.one("select done from queen.log_txns_purge_step_v1(gen_random_uuid(), "
                      "queen._clock(), 10)"),
              "t");
}

TEST_F(Retention, ACutoffOfNullIsRefusedWhereItWouldMeanEverything) {
    push_at(0, {"a"});
    for (const std::string call :
         {"log_txns_purge_step_v1($1, null, 10)", "log_evict_max_wait_step_v1($1, null, 10)"}) {
        try {
            sql.query("select * from queen." + call, {pid()});
            FAIL() << call;
        } catch (const SqlError& error) {
            EXPECT_EQ(error.state(), "22004") << call;
        }
    }
}

TEST_F(Retention, HashesLiveAsLongAsTheirMessagesAndTheWindow) {
    configure("q", R"({"dedupWindowSeconds": 60})");
    push_at(0, {"a", "b"});
    push_at(10, {"c"});
    clock(5000);
    EXPECT_EQ(due("txns"), ""); // the messages are there: they may have to be acked
    EXPECT_EQ(purge(5000), "0 rows, from 0, done");
    pop({});
    EXPECT_EQ(member(ack({{"c", "completed"}}), "acked"), "3");
    EXPECT_EQ(evict(5), "1 of 2 messages, from 2, done");
    EXPECT_EQ(due("txns"), "p 4100 -"); // 900 s is the longest of the three
    EXPECT_EQ(purge(4100), "1 rows, from 2, done");
    EXPECT_EQ(due("txns"), "");
    expect_invariants();
    // With the window off the ack still finds its message.
    configure("q", R"({"dedupWindowSeconds": 0})");
    EXPECT_EQ(evict(500), "1 of 1 messages, from 3, done");
    EXPECT_EQ(purge(4100), "1 rows, from 3, done");
    expect_invariants();
    push_at(5001, {"d"});
    expect_invariants();
    EXPECT_EQ(pop({.worker = "v"}), "3+0*1");
    EXPECT_EQ(member(ack({{"d", "completed"}}, "v"), "acked"), "1");
}

TEST_F(Retention, TheHorizonOfHashesIsTheLongestOfWindowCompletedAndAQuarterOfAnHour) {
    push_at(0, {"a"});
    clock(100'000);
    evict(500);
    configure("q", R"({"dedupWindowSeconds": 0})");
    EXPECT_EQ(due("txns"), "p 99100 -");
    configure("q", R"({"dedupWindowSeconds": 2000})");
    EXPECT_EQ(due("txns"), "p 98000 -");
    configure("q", R"({"dedupWindowSeconds": 2000, "completedRetentionSeconds": 3000})");
    EXPECT_EQ(due("txns"), "p 97000 -");
}

TEST_F(Retention, WhatIsInTheDedupWindowIsKnownThoughItsMessageWent) {
    configure("q", R"({"dedupWindowSeconds": 1000})");
    push_at(0, {"a"});
    push_at(500, {"b"});
    clock(1200);
    EXPECT_EQ(evict(600), "2 of 2 messages, from 2, done");
    EXPECT_EQ(purge(200), "1 rows, from 1, done");
    EXPECT_EQ(push("q", "p", {"b"}), "duplicate 0:1");
    EXPECT_EQ(push("q", "p", {"a"}), "queued 2");
    expect_invariants();
}

TEST_F(Retention, HistoryGoesByAgeOldestFirst) {
    for (int i = 0; i < 5; ++i) {
        push_at(i * 10, {"m" + std::to_string(i)});
        clock(i * 10 + 1);
        evict(i * 10 + 0.5);
    }
    clock(1000);
    EXPECT_EQ(sql.one("select deleted || ' ' || done from queen.log_history_purge_step_v1("
                      "timestamptz '2030-01-01 00:00:30+00', 2)"),
              "2 false");
    EXPECT_EQ(sql.one("select deleted || ' ' || done from queen.log_history_purge_step_v1("
                      "timestamptz '2030-01-01 00:00:30+00', 2)"),
              "1 true");
    EXPECT_EQ(sql.integer("select count(*) from queen.retention_history"), 2);
}

// RT-11: also what a first boot after an upgrade does.
TEST_F(Retention, TheWalkFillsInAndSetsRightAndWritesNothingElse) {
    for (int i = 0; i < 5; ++i) {
        push("q", "p" + std::to_string(i), {"m"});
    }
    push("q", "gone", {"m"});
    clock(100);
    sql.query("select queen.log_evict_max_wait_step_v1($1, queen._clock(), 10)", {pid("gone")});
    sql.script("update queen.log_partitions set oldest_live_at = null, oldest_txn_at = null where "
               "name in ('p0', 'p1')");
    sql.script("update queen.log_partitions set oldest_live_at = '2000-01-01' where name in "
               "('p2', 'gone')");
    const std::string untouched =
        sql.one("select string_agg(ctid::text, ' ' order by id) from queen.log_partitions where "
                "name in ('p3', 'p4')");
    EXPECT_EQ(walk(4), "4 then 2, 4 repaired");
    expect_invariants();
    EXPECT_EQ(sql.one("select string_agg(ctid::text, ' ' order by id) from queen.log_partitions "
                      "where name in ('p3', 'p4')"),
              untouched);
    EXPECT_EQ(walk(5000), "6, 0 repaired");
}

TEST_F(Retention, TheWalkRepairsFewAtATime) {
    sql.script("insert into queen.queues (name) values ('q')");
    sql.script("insert into queen.log_partitions (queue_id, name, oldest_live_at) select id, 'n' "
               "|| i, queen._clock() from queen.queues, generate_series(1, 450) i");
    EXPECT_EQ(walk(5000), "450 then 250 then 50, 450 repaired");
    expect_invariants();
}

} // namespace
} // namespace queen::test
