// Consumer groups listed, looked into, removed and subscribed anew.
#include "sql/groups_fixture.hpp"

namespace queen::test {
namespace {

class Groups : public GroupsTest {
protected:
    /// "group@queue cursors/lagging/lag/seconds state mode" for each element.
    std::string list(std::string_view tenant = kTenant) {
        return sql
            .query("select concat(g ->> 'name', '@', g ->> 'queueName', ' ', g -> "
                   "'partitionCursors', '/', g -> 'partitionsWithLag', '/', g -> 'totalLag', '/', "
                   "g -> 'maxTimeLag', ' ', g ->> 'state', ' ', coalesce(g ->> "
                   "'subscriptionMode', '-'), ';') from "
                   "jsonb_array_elements(queen.get_consumer_groups_v4($1)) with ordinality as t "
                   "(g, n) order by n",
                   {tenant})
            .column(0);
    }
    /// "group queue/partition lag seconds"
    std::string lagging(int seconds, int limit = 100) {
        return sql
            .query("select concat(l ->> 'consumer_group', ' ', l ->> 'queue_name', '/', l ->> "
                   "'partition_name', ' ', l -> 'offset_lag', ' ', l -> 'time_lag_seconds', ';') "
                   "from jsonb_array_elements(queen.get_lagging_partitions_v1($1, $2, $3)) with "
                   "ordinality as t (l, n) order by n",
                   {kTenant, seconds, limit})
            .column(0);
    }
    std::string detail(const std::string& group, const SqlArg& queue = nullptr) {
        return sql.one("select queen.get_consumer_group_detail_v1($1, $2, $3)",
                       {kTenant, group, queue});
    }
    std::string subscribe(double seconds, const std::string& group = "g") {
        return sql.one("select queen.update_consumer_group_subscription_v1($1, $2)",
                       {group, moment(seconds)});
    }
};

TEST_F(Groups, AreListedByGroupAndQueue) {
    clock(10);
    push("b", "p", {"1", "2"});
    clock(20);
    push("a", "p", {"1"});
    push("b", "r", {"3"});
    wildcard({.queue = "b", .group = "g", .budget = 1, .partitions = 1});
    wildcard({.queue = "a", .group = "g", .auto_ack = true});
    clock(20.5);
    wildcard({.queue = "a", .group = "G", .mode = "new"});
    clock(20);
    wildcard({.queue = "b", .group = "__QUEUE_MODE__", .auto_ack = true});
    clock(21);
    EXPECT_EQ(list(), "G@a 1/0/0/0 Dead new; __QUEUE_MODE__@b 2/0/0/0 Stable -; "
                      "g@a 1/0/0/0 Stable all; g@b 2/2/3/11 Dead all;");
    clock(10 + 300.9);
    EXPECT_EQ(list(), "G@a 1/0/0/0 Dead new; __QUEUE_MODE__@b 2/0/0/0 Stable -; "
                      "g@a 1/0/0/0 Stable all; g@b 2/2/3/300 Dead all;");
    clock(10 + 301);
    EXPECT_EQ(list(), "G@a 1/0/0/0 Dead new; __QUEUE_MODE__@b 2/0/0/0 Stable -; "
                      "g@a 1/0/0/0 Stable all; g@b 2/2/3/301 Lagging all;");
    EXPECT_EQ(list(kOtherTenant), "");
    EXPECT_EQ(sql.one("select queen.get_consumer_groups_v4($1)", {kOtherTenant}), "[]");
    EXPECT_EQ(sql.one("select queen.get_consumer_groups_v4() -> 0"),
              R"({"kind": "queen", "name": "G", "state": "Dead", "topics": ["a"], "members": 1, )"
              R"("storage": "segments", "totalLag": 0, "queueName": "a", "conflation": false, )"
              R"("maxTimeLag": 0, "partitionCursors": 1, "subscriptionMode": "new", )"
              R"("partitionsWithLag": 0, "subscriptionCreatedAt": )" +
                  sql.one("select to_jsonb(queen._iso_ms(created_at)) from "
                          "queen.consumer_groups_metadata where consumer_group = 'G'") +
                  R"(, "subscriptionTimestamp": "2030-01-01T00:00:20.500Z"})");
    EXPECT_EQ(sql.one("select concat_ws(' ', g ->> 'subscriptionTimestamp', g ->> "
                      "'subscriptionCreatedAt' is null) from "
                      "jsonb_array_elements(queen.get_consumer_groups_v4()) g where g ->> 'name' = "
                      "'g' and g ->> 'queueName' = 'a'"),
              "1970-01-01T00:00:00.000Z f");
    EXPECT_EQ(sql.one("select count(*) from jsonb_array_elements(queen.get_consumer_groups_v4()) "
                      "g where g ->> 'name' = '__QUEUE_MODE__' and g -> 'subscriptionTimestamp' = "
                      "'null' and g -> 'subscriptionCreatedAt' = 'null'"),
              "1");
}

TEST_F(Groups, LagIsWhatIsStoredAboveTheCursor) {
    for (int i = 1; i <= 4; ++i) {
        clock(i * 10);
        push("q", "p", {"a" + std::to_string(i), "b" + std::to_string(i)});
    }
    clock(100);
    pop({.budget = 3, .auto_ack = true});
    EXPECT_EQ(list(), "g@q 1/1/5/80 Stable -;") << "no subscription; the second of a segment";
    pop({.budget = 2});
    EXPECT_EQ(list(), "g@q 1/1/5/80 Stable -;") << "what is leased is not consumed";
    // Retention takes what the cursor is in.
    sql.query("with gone as (delete from queen.log_segments where base_offset < 6) update "
              "queen.log_partitions set log_start = 6, segment_count = 1");
    EXPECT_EQ(list(), "g@q 1/1/2/60 Stable -;");
    clock(1);
    EXPECT_EQ(list(), "g@q 1/1/2/0 Stable -;") << "the clock was set back";
}

TEST_F(Groups, ARegisteredGroupWithoutCursorsCountsFromItsSeed) {
    sql.query("select queen.log_pop_wildcard_bin_v1('q', 'new', 1, 0, 'w', false, 1, 'new')");
    sql.query("select queen.log_pop_wildcard_bin_v1('q', 'all', 1, 0, 'w')");
    EXPECT_EQ(list(), "all@q 0/0/0/0 Dead all; new@q 0/0/0/0 Dead new;");
    clock(10);
    push("q", "p", {"a"});
    clock(20);
    push("q", "p", {"b"});
    clock(30);
    EXPECT_EQ(list(), "all@q 0/1/2/20 Dead all; new@q 0/1/2/20 Dead new;");
    subscribe(15, "new");
    EXPECT_EQ(list(), "all@q 0/1/2/20 Dead all; new@q 0/1/1/10 Dead timestamp;");
    EXPECT_EQ(lagging(10), "all q/p 2 20;");
    EXPECT_EQ(detail("new"),
              R"({"q": {"conflation": false, "partitions": [{"workerId": null, "offsetLag": 1, )"
              R"("partition": "p", "leaseActive": false, "totalConsumed": 0, "lastConsumedAt": )"
              R"(null, "timeLagSeconds": 10}], "partitionCount": 1}})");
}

TEST_F(Groups, ASubscriptionToLabelsOnlyIsListedUntilAQueueHasThem) {
    sql.query("select queen.log_pop_discover_bin_v1('n', '', 'd', 1, 0, 'w', false, 1, 'new')");
    EXPECT_EQ(list(), "d@ 0/0/0/0 Dead new;");
    EXPECT_EQ(detail("d"), "{}");
    configure("q", R"({"namespace": "n"})");
    push("q", "p", {"a"});
    EXPECT_EQ(list(), "d@ 0/0/0/0 Dead new;");
    sql.query("select queen.log_pop_discover_bin_v1('n', '', 'd', 1, 0, 'w')");
    EXPECT_EQ(list(), "d@q 1/1/1/0 Dead new;");
}

TEST_F(Groups, LaggingOnesAreThoseStrictlyOlderTheWorstFirst) {
    clock(10);
    push("q", "old", {"1"});
    clock(20);
    push("q", "young", {"2", "3"});
    push("q", "done", {"4"});
    wildcard({.budget = 1, .auto_ack = true, .partitions = 1, .mode = "new"});
    EXPECT_EQ(seek(0), "moved 3");
    EXPECT_EQ(seek_partition_end("done"), "moved 1");
    pop({.partition = "young", .budget = 1, .worker = "me"});
    clock(70);
    EXPECT_EQ(lagging(60), "") << "exactly as old is not older";
    EXPECT_EQ(lagging(59), "g q/old 1 60;");
    EXPECT_EQ(lagging(0), "g q/old 1 60; g q/young 2 50;");
    EXPECT_EQ(lagging(0, 1), "g q/old 1 60;");
    clock(70.001);
    EXPECT_EQ(lagging(60), "g q/old 1 60;");
    clock(70);
    EXPECT_EQ(
        sql.one("select queen.get_lagging_partitions_v1($1, 0) -> 1", {kTenant}),
        R"({"lag_hours": 0.01, "worker_id": "me", "offset_lag": 2, "queue_name": "q", )"
        R"("partition_id": ")" +
            pid("young") +
            R"(", "consumer_group": "g", "partition_name": "young", "last_consumed_at": null, )"
            R"("time_lag_seconds": 50, "oldest_unconsumed_at": "2030-01-01T00:00:20.000Z"})");
    EXPECT_EQ(sql.one("select queen.get_lagging_partitions_v1($1, 0)", {kOtherTenant}), "[]");
}

TEST_F(Groups, DetailShowsPartitionsAndLeases) {
    clock(10);
    push("q", "p", {"1", "2"});
    push("q", "r", {"3"});
    push("s", "p", {"4"});
    wildcard({.budget = 1, .auto_ack = true, .partitions = 1});
    seek_end();
    seek_partition(0, "p");
    pop({.budget = 1, .lease = 60, .worker = "me"});
    clock(15);
    const std::string p =
        R"({"workerId": "me", "offsetLag": 2, "partition": "p", "leaseActive": true, )"
        R"("totalConsumed": )" +
        cursor("total_consumed") + R"(, "lastConsumedAt": null, "timeLagSeconds": 5})";
    EXPECT_EQ(sql.one("select $1::jsonb #> '{q,partitions,0}'", {detail("g")}), p);
    EXPECT_EQ(sql.one("select $1::jsonb #>> '{q,partitions,1,offsetLag}'", {detail("g")}), "0");
    EXPECT_EQ(sql.one("select $1::jsonb #>> '{q,partitionCount}'", {detail("g")}), "2");
    clock(10 + 61);
    EXPECT_EQ(sql.one("select concat_ws(' ', d -> 'workerId', d -> 'leaseActive') from (select "
                      "$1::jsonb #> '{q,partitions,0}') t (d)",
                      {detail("g")}),
              "null false");
    wildcard({.queue = "s"});
    EXPECT_EQ(sql.one("select string_agg(k, ' ' order by k) from jsonb_object_keys($1::jsonb) k",
                      {detail("g")}),
              "q s");
    EXPECT_EQ(sql.one("select string_agg(k, ' ' order by k) from jsonb_object_keys($1::jsonb) k",
                      {detail("g", "s")}),
              "s");
    EXPECT_EQ(detail("g", "nope"), "");
    EXPECT_EQ(detail("nobody"), "");
    EXPECT_EQ(sql.one("select queen.get_consumer_group_detail_v1($1, 'g')", {kOtherTenant}), "");
}

// K40: per group, and a stray one can be removed so that counts fall.
TEST_F(Groups, K40_AStrayGroupCanBeRemovedAndCountsFall) {
    push("q", "p", {"1", "2", "3"});
    wildcard({.auto_ack = true});
    const auto pending = [&] {
        return sql.one("select d #>> '{totals,pending}' from queen.queue_detail_v1($1, 'q') d",
                       {kTenant});
    };
    EXPECT_EQ(pending(), "0");
    wildcard({.group = "__QUEUE_MODE__", .budget = 1, .partitions = 1});
    EXPECT_EQ(pending(), "0") << "a pop without a group changes nothing of a named one";
    pop({.group = "stray", .budget = 1});
    EXPECT_EQ(pending(), "1") << "one of three is leased in each group";
    EXPECT_EQ(list(), "__QUEUE_MODE__@q 1/1/3/0 Dead -; g@q 1/0/0/0 Stable all; "
                      "stray@q 1/1/3/0 Dead -;");
    EXPECT_EQ(remove("stray"), "1 false [\"q\"]");
    EXPECT_EQ(pending(), "0");
    EXPECT_EQ(remove("__QUEUE_MODE__"), "1 true [\"q\"]");
    EXPECT_EQ(list(), "g@q 1/0/0/0 Stable all;");
}

TEST_F(Groups, RemovingOneMakesItsNextPopFirstContact) {
    push("q", "p", {"1"});
    wildcard({.worker = "old"});
    wildcard({.group = "h"});
    EXPECT_EQ(remove(), "1 true [\"q\"]");
    EXPECT_EQ(cursors("h"), "p=-1");
    EXPECT_EQ(member(ack({{"1", "completed"}}, "old"), "ok"), "false");
    EXPECT_EQ(sql.integer("select count(*) from queen.consumer_watermarks where consumer_group = "
                          "'g'"),
              0);
    EXPECT_EQ(repairs(), "q/g/* group deleted");
    EXPECT_EQ(sql.one("select meta ->> 'seeded' from queen.log_pop_list_v1('q', 'g', '{}', 1, 60, "
                      "'w')"),
              "false");
    clock(1);
    EXPECT_EQ(wildcard({.mode = "new"}), "") << "where the new first contact says";
    push("q", "p", {"2"});
    EXPECT_EQ(wildcard({}), "p:1+0*1");
    EXPECT_EQ(remove("nobody"), "0 false []");
    EXPECT_EQ(repairs(), "q/g/* group deleted");
}

TEST_F(Groups, RemovingOneMayKeepItsSubscription) {
    clock(10);
    push("q", "p", {"1"});
    clock(20);
    wildcard({.mode = "new"});
    push("q", "p", {"2"});
    wildcard({.auto_ack = true});
    EXPECT_EQ(remove("g", false), "1 false [\"q\"]");
    EXPECT_EQ(repairs(), "q/g/* group deleted");
    EXPECT_EQ(wildcard({.mode = "all"}), "p:1+0*1") << "the record says from 20 on";
    // Nothing but the record is left.
    remove("g", false);
    EXPECT_EQ(remove("g", false), "0 false []");
    EXPECT_EQ(remove(), "0 true [\"q\"]");
    EXPECT_EQ(list(), "");
}

TEST_F(Groups, RemovingOneFromAQueueLeavesItInOthers) {
    push("q", "p", {"1"});
    push("s", "p", {"1"});
    wildcard({});
    wildcard({.queue = "s"});
    sql.query("select queen.log_pop_discover_bin_v1('n', '', 'g', 1, 0, 'w')");
    EXPECT_EQ(remove("g", true, "q"), "1 true [\"q\"]");
    EXPECT_EQ(cursors("g", "s"), "p=-1");
    EXPECT_EQ(list(), "g@s 1/1/1/0 Dead all;");
    EXPECT_EQ(remove("g", true, "nope"), "0 false []");
    EXPECT_EQ(sql.one("select queen.log_delete_consumer_group_v1('g', true, $1)", {kOtherTenant}),
              R"({"queues": [], "metadataDeleted": false, "deletedPartitions": 0})");
    EXPECT_EQ(remove(), "1 true [\"s\"]");
    EXPECT_EQ(list(), "") << "the labels are forgotten as well";
    EXPECT_EQ(repairs(), "q/g/* group deleted s/g/* group deleted");
}

TEST_F(Groups, ASubscriptionMovesFutureFirstContactsOnly) {
    clock(10);
    push("q", "p", {"1"});
    push("q", "r", {"1"});
    clock(20);
    push("q", "p", {"2"});
    push("q", "r", {"2"});
    pop({.partition = "r", .auto_ack = true});
    wildcard({.budget = 1, .auto_ack = true, .partitions = 1, .mode = "new"});
    sql.query("delete from queen.log_consumers where partition_id = $1", {pid("p")});
    const std::string before = cursors();
    EXPECT_EQ(subscribe(15), "1");
    EXPECT_EQ(cursors(), before);
    EXPECT_EQ(wildcard({.auto_ack = true}), "p:1+0*1") << "cold, yet the scan looks";
    EXPECT_EQ(list(), "g@q 2/0/0/0 Stable timestamp;");
    EXPECT_EQ(subscribe(15, "nobody"), "0");
    EXPECT_EQ(sql.one("select queen.update_consumer_group_subscription_v1('g', 'epoch', $1)",
                      {kOtherTenant}),
              "0");
    EXPECT_EQ(list(), "g@q 2/0/0/0 Stable timestamp;");
}

TEST_F(Groups, ASubscriptionToLabelsMovesToo) {
    clock(10);
    sql.query("select queen.log_pop_discover_bin_v1('n', '', 'g', 1, 0, 'w', false, 1, 'new')");
    configure("q", R"({"namespace": "n"})");
    clock(20);
    push("q", "p", {"1"});
    clock(30);
    push("q", "p", {"2"});
    EXPECT_EQ(subscribe(25), "1");
    EXPECT_EQ(sql.one("select meta #>> '{partitions,0,segments,0,seq}' from "
                      "queen.log_pop_discover_bin_v1('n', '', 'g', 10, 0, 'w')"),
              "1");
}

TEST_F(Groups, QueueModeHasNoSubscriptionToMove) {
    push("q", "p", {"1"});
    wildcard({.group = "__QUEUE_MODE__"});
    EXPECT_EQ(subscribe(1000, "__QUEUE_MODE__"), "0");
    EXPECT_EQ(sql.one("select subscription_mode from queen.consumer_groups_metadata"), "all");
}

// K04, with the hint that a subscription was moved after the fact.
TEST_F(Groups, K04_APartitionBornAfterTheSubscriptionIsReadFromItsStart) {
    clock(10);
    push("q", "p", {"1"});
    clock(11);
    EXPECT_EQ(wildcard({.mode = "new"}), "");
    clock(20);
    EXPECT_EQ(subscribe(20), "1");
    clock(30);
    push("q", "never-seen", {"m1"});
    EXPECT_EQ(wildcard({}), "never-seen:0+0*1");
}

} // namespace
} // namespace queen::test
