#include "sql/sql_fixture.hpp"

namespace queen::test {
namespace {

class Queues : public SqlTest {
protected:
    std::string listed(const std::string& path, const std::string& queue = "q") {
        return sql.one("select q #>> $2::text[] from jsonb_array_elements("
                       "queen.list_queues_v1($1) -> 'queues') q where q ->> 'name' = $3",
                       {kTenant, path, queue});
    }
    std::string detail(const std::string& path, const std::string& queue = "q") {
        return sql.one("select queen.queue_detail_v1($1, $2) #>> $3::text[]",
                       {kTenant, queue, path});
    }
    bool remove(const std::string& queue = "q") {
        return sql.yes("select queen.delete_queue_v1($1, $2)", {kTenant, queue});
    }
};

TEST_F(Queues, AnEmptyTenantHasAnEmptyList) {
    EXPECT_EQ(sql.one("select queen.list_queues_v1($1)", {kTenant}),
              R"({"kvRows": 0, "queues": [], "kvBytes": 0, "statsAge": 0, "timerRows": 0, )"
              R"("queueCount": 0, "timerBytes": 0})");
    EXPECT_EQ(sql.one("select queen.queue_detail_v1($1, 'q') is null", {kTenant}), "t");
}

// ST-1; pending is net of processing.
TEST_F(Queues, FiguresFollowTheCursorsAndLeases) {
    push("q", "p", {"a", "b", "c", "d"});
    push("q", "r", {"e"});
    const auto counts = [&] {
        return listed("{messages,total}") + " " + listed("{messages,pending}") + " " +
               listed("{messages,processing}");
    };
    EXPECT_EQ(counts(), "5 5 0");
    pop({.budget = 3, .lease = 10});
    EXPECT_EQ(counts(), "5 2 3");
    EXPECT_EQ(detail("{partitions,0,stats,processing}"), "3");
    EXPECT_EQ(detail("{partitions,1,stats,processing}"), "0");
    EXPECT_EQ(detail("{totals,pending}"), "2");
    sql.query("select queen.log_ack_v1('q', 'p', 'g', 'w', 1)");
    EXPECT_EQ(counts(), "5 2 1");
    EXPECT_EQ(detail("{totals,completed}"), "2");
    clock(11);
    EXPECT_EQ(counts(), "5 3 0");
    EXPECT_EQ(detail("{partitions,0,cursor,totalConsumed}"), "2");
}

// ST-2, K40: a group-less cursor that nobody uses any more counts only while no group is named.
TEST_F(Queues, AnAbandonedGrouplessCursorDoesNotPinPending) {
    push("q", "p", {"a", "b"});
    pop({.group = "__QUEUE_MODE__", .budget = 1, .auto_ack = true});
    EXPECT_EQ(listed("{messages,pending}"), "1");
    pop({.group = "g", .auto_ack = true});
    EXPECT_EQ(listed("{messages,pending}"), "0");
    pop({.group = "slow", .budget = 1, .auto_ack = true});
    EXPECT_EQ(listed("{messages,pending}"), "1");
}

TEST_F(Queues, RetainedPartsCountOnly) {
    push("q", "p", {"a"});
    push("q", "p", {"b"});
    sql.script("delete from queen.log_segments where base_offset = 0");
    sql.script(
        "update queen.log_partitions set log_start = 1, segment_count = 1, stored_bytes = 1");
    EXPECT_EQ(listed("{messages,total}") + listed("{messages,pending}") +
                  listed("{retainedBytes}") + listed("{segments,segments}") +
                  listed("{segments,messages}"),
              "11111");
}

TEST_F(Queues, TheListIsNewestFirstAndNamesLabels) {
    push("a.b", "p", {"x"});
    push("c", "p", {"x"});
    sql.script("update queen.queues set created_at = '2020-01-01' where name = 'a.b'");
    EXPECT_EQ(sql.query("select q ->> 'name' from jsonb_array_elements(queen.list_queues_v1($1) "
                        "-> 'queues') with ordinality t (q, n) order by n",
                        {kTenant})
                  .column(0),
              "c a.b");
    EXPECT_EQ(listed("{namespace}", "a.b") + "|" + listed("{task}", "a.b") + "|" +
                  listed("{partitions}", "a.b") + "|" + listed("{createdAt}", "a.b"),
              "a|b|1|2020-01-01T00:00:00.000Z");
}

TEST_F(Queues, DetailNamesPartitionsWithTheirTimesAndOptions) {
    push("q", "p", {"a"});
    clock(1.5);
    push("q", "p", {"b"});
    EXPECT_EQ(sql.one("select string_agg(k, ' ' order by k) from jsonb_object_keys("
                      "queen.queue_detail_v1($1, 'q')) k",
                      {kTenant}),
              "createdAt id name namespace next options partitionCount partitions retainedBytes "
              "segments task totals");
    EXPECT_EQ(detail("{partitions,0,oldestMessage}") + " " + detail("{partitions,0,newestMessage}"),
              "2030-01-01T00:00:00.000Z 2030-01-01T00:00:01.500Z");
    EXPECT_EQ(detail("{partitions,0,stats}"),
              R"({"total": 2, "failed": null, "pending": 2, "completed": 0, "deadLetter": 0, )"
              R"("processing": 0})");
    EXPECT_EQ(detail("{partitions,0,messages}"), detail("{totals}"));
    EXPECT_EQ(detail("{partitions,0,id}"), pid());
    EXPECT_EQ(detail("{options,leaseTime}") + detail("{partitionCount}"), "601");
}

TEST_F(Queues, DetailListsAtMostTenThousandPartitionsAndCountsAll) {
    push("q", "p", {"a"});
    sql.script("insert into queen.log_partitions (queue_id, name) select id, 'n' || "
               "lpad(i::text, 5, '0') from queen.queues, generate_series(1, 10000) i");
    EXPECT_EQ(sql.one("select jsonb_array_length(d -> 'partitions') || ' ' || (d ->> "
                      "'partitionCount') || ' ' || (d #>> '{partitions,0,name}') || ' ' || (d #>> "
                      "'{partitions,9999,name}') || ' ' || (d #>> '{totals,total}') from "
                      "queen.queue_detail_v1($1, 'q') d",
                      {kTenant}),
              "10000 10001 n00001 n10000 1");
}

TEST_F(Queues, DeletingTakesEverythingAndLeavesOthersAlone) {
    for (const std::string queue : {"q", "keep"}) {
        push(queue, "p", {"a"});
        push(queue, "r", {"b"});
        wildcard({.queue = queue});
    }
    EXPECT_TRUE(remove());
    for (const std::string table :
         {"queues", "log_partitions", "log_segments", "log_txns", "log_consumers",
          "consumer_groups_metadata", "consumer_watermarks"}) {
        const std::int64_t left = sql.integer("select count(*) from queen." + table);
        EXPECT_EQ(left, table.starts_with("log") ? 2 : 1) << table;
    }
    EXPECT_FALSE(remove());
    EXPECT_EQ(sql.one("select queen.delete_queue_v1('00000000-0000-0000-0000-000000000002', "
                      "'keep')"),
              "f");
}

// K47: a queue that is made again begins from nothing.
TEST_F(Queues, AQueueMadeAgainKnowsNothingOfTheOldOne) {
    push("q", "p", {"a"});
    EXPECT_EQ(wildcard({.lease = 300}), "p:0+0*1");
    const std::string old = pid();
    EXPECT_TRUE(remove());
    EXPECT_EQ(push("q", "p", {"a"}), "queued 0");
    EXPECT_NE(pid(), old);
    EXPECT_EQ(member(sql.one("select queen.log_ack_by_hash_v1($1, 'g', 'w', array[$2]::bytea[], "
                             "array['completed'])",
                             {old, hash("a")}),
                     "error"),
              "partition not found");
    EXPECT_EQ(wildcard({.worker = "w2"}), "p:0+0*1");
}

TEST_F(Queues, APushInFlightIsWaitedForAndGoesWithTheQueue) {
    push("q", "p", {"a"});
    SqlSession pusher = connect();
    pusher.script("begin");
    pusher.query("select queen.log_push_one_v1('q', 'p', 1, $1, -1, 'x')", {hash("b")});
    SqlSession admin = connect();
    admin.send("select queen.delete_queue_v1($1, 'q')", {kTenant});
    await_lock(admin);
    // A pop meanwhile skips what is locked and waits for nobody.
    sql.script("set statement_timeout = '20s'");
    EXPECT_EQ(wildcard({}), "");
    pusher.script("commit");
    EXPECT_EQ(admin.finish().get(0, 0), "t");
    EXPECT_EQ(sql.integer("select count(*) from queen.log_txns"), 0);
}

} // namespace
} // namespace queen::test
