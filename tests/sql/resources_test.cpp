// Depth, sizes, labels and overview. Random states: resources_property_test.cpp.
#include "sql/sql_fixture.hpp"

namespace queen::test {
namespace {

constexpr std::string_view kOther = "00000000-0000-0000-0000-000000000002";

class Resources : public SqlTest {
protected:
    using SqlTest::SqlTest;

    std::string depth(const SqlArg& group, const std::string& queue = "q") {
        return sql.one("select queen.log_queue_depth_v1($1, $2)", {queue, group});
    }
    /// pending, processing and ready.
    std::string counts(const SqlArg& group, const std::string& queue = "q") {
        return sql.one("select concat_ws(' ', d -> 'pending', d -> 'processing', d -> 'ready') "
                       "from queen.log_queue_depth_v1($1, $2) d",
                       {queue, group});
    }
    std::string overview(const std::string& path, std::string_view tenant = kTenant) {
        return sql.one("select queen.resources_overview_v1($1) #>> $2::text[]", {tenant, path});
    }
    /// The pages of a list, each as its names, separated by |.
    std::string pages(const std::string& procedure, const std::string& names, int limit) {
        std::string all;
        SqlArg after = nullptr;
        for (int page = 0; page < 20; ++page) {
            const auto rows = sql.query("select d ->> 'next', d ->> 'partitionCount', " + names +
                                            " from " + procedure + " d",
                                        {after, limit});
            EXPECT_EQ(rows.get(0, 1), "5");
            all += (all.empty() ? "" : "|") + rows.get(0, 2);
            if (rows.null(0, 0)) {
                return all;
            }
            after = rows.get(0, 0);
        }
        return all + "...";
    }
};

TEST_F(Resources, DepthHasTheContractsFieldsAndNothingForAnUnknownQueue) {
    push("q", "p", {"a", "b"});
    push("q", "r", {"c"});
    pop({.group = "g", .budget = 1});
    EXPECT_EQ(
        depth("g"),
        R"({"next": null, "group": "g", "queue": "q", "ready": 1, "pending": 2, )"
        R"("conflation": false, "partitions": [{"ready": 0, "pending": 1, "partition": "p", )"
        R"("processing": 1}, {"ready": 1, "pending": 1, "partition": "r", "processing": 0}], )"
        R"("processing": 1, "effectiveReady": 1, "partitionCount": 2, "partitionsReady": 1, )"
        R"("effectivePending": 2, "partitionsPending": 2})");
    EXPECT_EQ(member(depth(nullptr), "group"), "");
    EXPECT_EQ(sql.one("select queen.log_queue_depth_v1('nope', 'g') is null"), "t");
    EXPECT_EQ(sql.one("select queen.log_queue_depth_v1('q', 'g', $1) is null", {kOther}), "t");
    EXPECT_EQ(sql.integer("select count(*) from queen.queues"), 1) << "asking creates nothing";
}

// K40 as people had it: all of it is done, then somebody looks without a group.
TEST_F(Resources, K40_FiguresAreThoseOfEachGroupAndFallWhenAStrayOneGoes) {
    std::vector<std::string> ids;
    for (int i = 0; i < 100; ++i) {
        ids.push_back("m" + std::to_string(i));
    }
    push("q", "p", ids);
    EXPECT_EQ(counts(nullptr), "100 0 100");
    wildcard({.group = "g", .auto_ack = true});
    EXPECT_EQ(counts("g"), "0 0 0");
    EXPECT_EQ(counts(nullptr), "0 0 0");
    wildcard({.group = "__QUEUE_MODE__", .budget = 10, .auto_ack = true});
    EXPECT_EQ(counts("__QUEUE_MODE__"), "90 0 90");
    EXPECT_EQ(counts("g"), "0 0 0");
    EXPECT_EQ(counts(nullptr), "0 0 0") << "F-34: a group-less pop beside a named group";
    wildcard({.group = "stray", .budget = 30, .auto_ack = true});
    EXPECT_EQ(counts("stray"), "70 0 70");
    EXPECT_EQ(counts("g"), "0 0 0") << "a stray group is its own business";
    EXPECT_EQ(counts(nullptr), "70 0 70");
    sql.script("delete from queen.log_consumers where consumer_group = 'stray'");
    sql.script("delete from queen.consumer_groups_metadata where consumer_group = 'stray'");
    EXPECT_EQ(counts(nullptr), "0 0 0");
}

TEST_F(Resources, ARegisteredGroupWithoutACursorCountsWhereItWillBegin) {
    push("q", "p", {"a", "b"});
    clock(10);
    wildcard({.group = "new", .mode = "new"});
    wildcard({.group = "all", .auto_ack = true});
    EXPECT_EQ(counts("new"), "0 0 0");
    push("q", "later", {"c", "d", "e"});
    EXPECT_EQ(sql.integer("select count(*) from queen.log_consumers"), 2) << "no cursor there yet";
    EXPECT_EQ(counts("new"), "3 0 3");
    EXPECT_EQ(counts("all"), "3 0 3");
    EXPECT_EQ(counts(nullptr), "3 0 3");
    sql.script("delete from queen.log_consumers where consumer_group = 'new'");
    EXPECT_EQ(counts("new"), "3 0 3") << "what was there before it came is not its business";
    // The group-less cursor does not stand in for a named group that has not come yet.
    pop({.partition = "later", .group = "__QUEUE_MODE__", .auto_ack = true});
    EXPECT_EQ(counts(nullptr), "3 0 3");
}

TEST_F(Resources, AGroupNobodyHasHeardOfBeginsAtTheStart) {
    push("q", "p", {"a", "b"});
    wildcard({.group = "g", .auto_ack = true});
    EXPECT_EQ(counts("nobody"), "2 0 2");
    EXPECT_EQ(counts("__QUEUE_MODE__"), "2 0 2");
}

TEST_F(Resources, AnExpiredLeaseHoldsNothing) {
    push("q", "p", {"a", "b"});
    wildcard({.budget = 1, .lease = 10});
    EXPECT_EQ(counts("g"), "1 1 0");
    EXPECT_EQ(counts(nullptr), "1 1 0");
    clock(10);
    EXPECT_EQ(counts("g"), "1 1 0") << "as long as the claim refuses others";
    EXPECT_EQ(wildcard({.worker = "w2"}), "");
    clock(10.001);
    EXPECT_EQ(counts("g"), "2 0 2");
    EXPECT_EQ(counts(nullptr), "2 0 2");
}

// Ready is what a pop gets: the same edges as the claim's.
TEST_F(Resources, ReadyLeavesOutWhatDelayAndWindowHoldBack) {
    configure("q", R"({"delayedProcessing": 5})");
    push("q", "p", {"a", "b"});
    clock(2);
    push("q", "p", {"c"});
    clock(3);
    push("q", "p", {"d", "e", "f"});
    EXPECT_EQ(counts("g"), "6 0 0");
    for (const auto& [second, ready] :
         {std::pair{5.0, "2"}, {6.999, "2"}, {7.0, "3"}, {8.0, "6"}}) {
        clock(second);
        EXPECT_EQ(counts("g"), std::string("6 0 ") + ready) << second;
        EXPECT_EQ(counts(nullptr), std::string("6 0 ") + ready) << second;
    }
    clock(7);
    EXPECT_EQ(wildcard({.auto_ack = true}), "p:0+0*2 p:2+0*1");
    EXPECT_EQ(counts("g"), "3 0 0");
    configure("q", R"({"windowBuffer": 10})");
    clock(12.999);
    EXPECT_EQ(counts("g"), "3 0 0");
    clock(13);
    EXPECT_EQ(counts("g"), "3 0 3");
    EXPECT_EQ(wildcard({}), "p:3+0*3");
}

TEST_F(Resources, ACursorInTheMiddleOfASegmentCountsTheRestOfIt) {
    configure("q", R"({"delayedProcessing": 5})");
    push("q", "p", {"a", "b", "c", "d"});
    clock(5);
    push("q", "p", {"e", "f"});
    wildcard({.budget = 3, .auto_ack = true});
    EXPECT_EQ(counts("g"), "3 0 1");
}

TEST_F(Resources, WhatRetentionTookIsNotWaiting) {
    push("q", "p", {"a", "b", "c"});
    push("q", "p", {"d"});
    wildcard({.budget = 2, .lease = 100});
    sql.script("delete from queen.log_segments where base_offset = 0");
    sql.script("update queen.log_partitions set log_start = 3, segment_count = 1");
    EXPECT_EQ(counts("g"), "1 0 0") << "the lease holds only what is gone, yet it holds";
    EXPECT_EQ(counts("h"), "1 0 1");
}

// K41, and a bound on every answer.
TEST_F(Resources, PartitionsArePagedByNameWhateverHappensBetween) {
    for (const std::string name : {"e", "b", "d", "a", "c"}) {
        push("q", name, {name});
    }
    const std::string tenant = "'" + std::string(kTenant) + "'";
    const std::string listed = "(select string_agg(p ->> 'partition', ' ') from "
                               "jsonb_array_elements(d -> 'partitions') p)";
    const std::string named = "(select string_agg(p ->> 'name', ' ') from "
                              "jsonb_array_elements(d -> 'partitions') p)";
    const std::string keys = "(select string_agg(k, ' ' order by k) from jsonb_object_keys(d -> "
                             "'partitions') k)";
    for (const std::string group : {"'g'", "null"}) {
        const std::string procedure =
            "queen.log_queue_depth_v1('q', " + group + ", " + tenant + ", $1, $2)";
        EXPECT_EQ(pages(procedure, listed, 2), "a b|c d|e");
        EXPECT_EQ(pages(procedure, listed, 5), "a b c d e");
    }
    EXPECT_EQ(pages("queen.queue_detail_v1(" + tenant + ", 'q', $1, $2)", named, 2), "a b|c d|e");
    EXPECT_EQ(pages("queen.queue_sizes_v1(" + tenant + ", 'q', $1, $2)", keys, 3), "a b c|d e");
    // Sums are over all of them, whatever the page; a page may be behind everything.
    EXPECT_EQ(sql.one("select concat_ws(' ', d -> 'pending', d -> 'partitionCount', d -> "
                      "'partitions', d ->> 'next') from queen.log_queue_depth_v1('q', 'g', $1, "
                      "'zz', 2) d",
                      {kTenant}),
              "5 5 []");
}

TEST_F(Resources, SizesAreTheStoredBytes) {
    EXPECT_EQ(sql.one("select queen.queue_sizes_v1($1, 'q') is null", {kTenant}), "t");
    push("q", "p", {"a", "bb"});
    push("q", "p", {"ccc"});
    push("q", "r", {"dddd"});
    EXPECT_EQ(sql.one("select queen.queue_sizes_v1($1, 'q')", {kTenant}),
              R"({"next": null, "queue": "q", "partitions": {"p": 4, "r": 4}, )"
              R"("retainedBytes": 8, "partitionCount": 2})");
    EXPECT_EQ(sql.integer("select sum(octet_length(blob)) from queen.log_segments"), 8);
    EXPECT_EQ(sql.one("select queen.queue_sizes_v1($1, 'q') is null", {kOther}), "t");
}

TEST_F(Resources, LabelsSumUpTheirQueuesAndLeaveTheUnlabelledOut) {
    push("orders.email", "p", {"a", "b"});
    push("orders.invoice", "p", {"c"});
    push("orders.invoice", "r", {"d"});
    configure("plain", "{}");
    push("plain", "p", {"e"});
    wildcard({.queue = "orders.email", .budget = 1});
    EXPECT_EQ(sql.one("select queen.list_labels_v1($1, 'namespace')", {kTenant}),
              R"({"namespaces": [{"queues": 2, "messages": {"total": 4, "pending": 3}, )"
              R"("namespace": "orders", "partitions": 3}], "namespaceCount": 1})");
    EXPECT_EQ(sql.one("select queen.list_labels_v1($1, 'task')", {kTenant}),
              R"({"tasks": [{"task": "email", "queues": 1, "messages": {"total": 2, "pending": )"
              R"(1}, "partitions": 1}, {"task": "invoice", "queues": 1, "messages": {"total": )"
              R"(2, "pending": 2}, "partitions": 2}], "taskCount": 2})");
    EXPECT_EQ(sql.one("select queen.list_labels_v1($1, 'task')", {kOther}),
              R"({"tasks": [], "taskCount": 0})");
    EXPECT_THROW(sql.one("select queen.list_labels_v1($1, 'name')", {kTenant}), SqlError);
    EXPECT_EQ(overview("{namespaces}") + overview("{tasks}") + overview("{queues}"), "123");
}

TEST_F(Resources, AnEmptyTenantHasAnOverviewOfZeros) {
    EXPECT_EQ(sql.one("select queen.resources_overview_v1($1)", {kTenant}),
              R"({"lag": {"time": {"avg": 0, "max": 0, "min": 0, "median": 0}, "offset": {"avg": )"
              R"(0, "max": 0, "min": 0, "median": 0}}, "tasks": 0, "queues": 0, "messages": )"
              R"({"total": 0, "failed": null, "pending": 0, "completed": 0, "deadLetter": 0, )"
              R"("processing": 0}, "statsAge": 0, "timestamp": "2030-01-01T00:00:00.000Z", )"
              R"("namespaces": 0, "partitions": 0, "throughput": {"ingestedPerSecond": 0, )"
              R"("processedPerSecond": null}})");
}

TEST_F(Resources, OverviewLagIsOverThePartitionsThatAreBehind) {
    push("q", "p", {"a", "b", "c"});
    clock(10);
    push("q", "p", {"d"});
    push("q", "r", {"e"});
    push("x", "p", {"f", "g"});
    push("x", "done", {"h"});
    pop({.queue = "x", .partition = "done", .auto_ack = true});
    pop({.queue = "q", .partition = "p", .budget = 1, .auto_ack = true});
    clock(20);
    // Behind: q/p by 3 messages, the oldest 20 s; q/r and x/p by 1 and 2, 10 s.
    EXPECT_EQ(overview("{lag,offset}"), R"({"avg": 2, "max": 3, "min": 1, "median": 2})");
    EXPECT_EQ(overview("{lag,time}"), R"({"avg": 13.333, "max": 20, "min": 10, "median": 10})");
    EXPECT_EQ(overview("{messages,total}") + overview("{messages,pending}") +
                  overview("{messages,completed}") + overview("{partitions}"),
              "8624");
    EXPECT_EQ(overview("{partitions}", kOther) + overview("{messages,total}", kOther), "00");
}

TEST_F(Resources, ThroughputCountsTheMessagesOfTheLastFiveMinutes) {
    push("q", "p", {"a", "b", "c"});
    clock(1);
    push("q", "p", {"d", "e"});
    push("q", "r", {"f"});
    EXPECT_EQ(overview("{throughput,ingestedPerSecond}"), "0.02"); // 6 / 300 s
    clock(300);
    push("q", "p", {"g", "h", "i", "j", "k", "l"});
    EXPECT_EQ(overview("{throughput,ingestedPerSecond}"), "0.03"); // a, b, c are 300 s old
    clock(601);
    EXPECT_EQ(overview("{throughput,ingestedPerSecond}"), "0");
}

TEST_F(Resources, ListsAreBoundedAndSayHowMuchThereIs) {
    sql.script("insert into queen.queues (name, namespace, task, created_at) select 'q' || i, 'n' "
               "|| lpad(i::text, 5, '0'), 't', timestamptz '2030-01-01' + i * interval '1 s' from "
               "generate_series(1, 10001) i");
    EXPECT_EQ(sql.one("select concat_ws(' ', jsonb_array_length(l -> 'queues'), l -> "
                      "'queueCount', l #>> '{queues,0,name}', l #>> '{queues,9999,name}') from "
                      "queen.list_queues_v1($1) l",
                      {kTenant}),
              "10000 10001 q10001 q2");
    EXPECT_EQ(sql.one("select concat_ws(' ', jsonb_array_length(l -> 'namespaces'), l -> "
                      "'namespaceCount', l #>> '{namespaces,9999,namespace}') from "
                      "queen.list_labels_v1($1, 'namespace') l",
                      {kTenant}),
              "10000 10001 n10000");
}

TEST_F(Resources, RowsOfTheListCarryOptionsAndAllCounts) {
    push("q", "p", {"a", "b"});
    wildcard({.budget = 1, .auto_ack = true});
    EXPECT_EQ(sql.one("select string_agg(k, ' ' order by k) from jsonb_array_elements("
                      "queen.list_queues_v1($1) -> 'queues') q, jsonb_object_keys(q) k",
                      {kTenant}),
              "createdAt id messages name namespace options partitions queue retainedBytes "
              "segments storage task");
    EXPECT_EQ(sql.one("select q -> 'messages' from jsonb_array_elements(queen.list_queues_v1($1) "
                      "-> 'queues') q",
                      {kTenant}),
              R"({"total": 2, "pending": 1, "completed": 1, "deadLetter": 0, "processing": 0})");
    EXPECT_EQ(sql.one("select count(*) from jsonb_array_elements(queen.list_queues_v1($1) -> "
                      "'queues') q, jsonb_object_keys(q -> 'options') k",
                      {kTenant}),
              "19");
}

/// What statements of a transaction touched, by the server's own count.
class ResourcesPlan : public Resources {
protected:
    ResourcesPlan() : Resources(Database::own) {
        sql.script("insert into queen.queues (name) values ('q'), ('large')");
        sql.script("insert into queen.log_partitions (queue_id, name, last_offset, segment_count, "
                   "newest_at) select q.id, 'p' || i, 9, 1, queen._clock() from queen.queues q, "
                   "generate_series(1, 20000) i where q.name = 'large' or i <= 50");
        sql.script("insert into queen.log_segments (partition_id, base_offset, end_offset, "
                   "created_at, blob) select id, 0, 9, newest_at, 'x' from queen.log_partitions");
        sql.script("insert into queen.consumer_groups_metadata (consumer_group, queue_id, "
                   "subscription_mode, subscription_timestamp) select g, q.id, 'all', 'epoch' "
                   "from queen.queues q, unnest(array['g', 'h']) g");
        sql.script("insert into queen.log_consumers (partition_id, consumer_group, committed) "
                   "select p.id, g, 4 from queen.log_partitions p, unnest(array['g', 'h']) g");
        sql.script("analyze");
    }

    /// Runs the call eight times, so that plans are generic where the server likes them so. @return
    /// the rows of each table that were read for one call, by seq scan and by index.
    std::string touched(const std::string& call, const std::string& mode) {
        sql.script("discard plans");
        sql.script("set plan_cache_mode = " + mode);
        const auto read = [&] { // counts of earlier transactions may still be in it
            return sql.query("select relname, seq_tup_read, idx_tup_fetch from "
                             "pg_stat_xact_user_tables where relname in ('log_partitions', "
                             "'log_consumers', 'log_segments') order by relname");
        };
        sql.script("begin");
        const auto before = read();
        for (int i = 0; i < kCalls; ++i) {
            EXPECT_EQ(sql.query("select " + call).size(), 1u);
        }
        const auto after = read();
        sql.script("rollback");
        std::string text;
        for (std::size_t i = 0; i < after.size(); ++i) {
            text += after.get(i, 0);
            for (const int column : {1, 2}) {
                const auto rows = after.integer(i, column) - before.integer(i, column);
                EXPECT_EQ(rows % kCalls, 0) << "each call touches the same";
                text += " " + std::to_string(rows / kCalls);
            }
            text += "\n";
        }
        return text;
    }

    static constexpr int kCalls = 8;
};

// One queue of 50 partitions beside one of 20,000, two groups each.
TEST_F(ResourcesPlan, F54_DepthTouchesOnlyTheQueuesOwnPartitions) {
    const std::string one_group = "log_consumers 0 50\nlog_partitions 0 50\nlog_segments 0 0\n";
    const std::string both = "log_consumers 0 100\nlog_partitions 0 50\nlog_segments 0 0\n";
    for (const std::string mode : {"auto", "force_generic_plan", "force_custom_plan"}) {
        EXPECT_EQ(touched("queen.log_queue_depth_v1('q', 'g')", mode), one_group) << mode;
        EXPECT_EQ(touched("queen.log_queue_depth_v1('q')", mode), both) << mode;
    }
}

TEST_F(ResourcesPlan, F54_DetailAndSizesTouchOnlyTheQueuesOwnPartitions) {
    const std::string tenant = "'" + std::string(kTenant) + "'";
    for (const std::string mode : {"auto", "force_generic_plan", "force_custom_plan"}) {
        EXPECT_EQ(touched("queen.queue_detail_v1(" + tenant + ", 'q')", mode),
                  "log_consumers 0 100\nlog_partitions 0 50\nlog_segments 0 50\n")
            << mode;
        EXPECT_EQ(touched("queen.queue_sizes_v1(" + tenant + ", 'q', null, 10)", mode),
                  "log_consumers 0 0\nlog_partitions 0 62\nlog_segments 0 0\n")
            << mode;
    }
}

// Not the messages: 40,100 cursors and 20,050 partitions, whatever the segments hold.
TEST_F(ResourcesPlan, ListsReadEachPartitionOnce) {
    EXPECT_EQ(touched("queen.list_queues_v1('" + std::string(kTenant) + "')", "auto"),
              "log_consumers 0 40100\nlog_partitions 0 20050\nlog_segments 0 0\n");
}

// A refresh walks twice, for the queue as a whole and for its two groups, and reads a segment for
// each partition that is behind. It stays within its step, whatever else there is.
TEST_F(ResourcesPlan, ARefreshReadsThePartitionsOfItsQueuesTwice) {
    sql.query("select queen.refresh_stats_step_v1(null, 100)"); // nothing is written below
    const std::string before_q = sql.one("select coalesce((select max(id::text) from queen.queues "
                                         "where id < (select id from queen.queues where name = "
                                         "'q')), '00000000-0000-0000-0000-000000000000')");
    for (const std::string mode : {"auto", "force_generic_plan"}) {
        EXPECT_EQ(touched("queen.refresh_stats_step_v1('" + before_q + "', 1)", mode),
                  "log_consumers 0 200\nlog_partitions 0 100\nlog_segments 0 150\n")
            << mode;
    }
}

} // namespace
} // namespace queen::test
