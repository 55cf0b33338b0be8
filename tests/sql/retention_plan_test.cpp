// F-21, F-22: rows read follow what is due, whatever the number of partitions and however long the
// backlog; and what a push writes. As in pop_plan_test.cpp, auto_explain tells what the statements
// inside of the functions did, with plans that were made while the tables were small.
#include "base/text.hpp"
#include "sql/retention_fixture.hpp"

namespace queen::test {
namespace {

class RetentionPlan : public RetentionTest {
protected:
    RetentionPlan() : RetentionTest(Database::own), worker(connect()) {
        sql.script("insert into queen.queues (name, retention_enabled, retention_seconds) values "
                   "('q', true, 100), ('other', false, 0)");
        clock(1'000'000);
    }
    /// Young partitions p<first> to p<last>, without segments in the way.
    void partitions(int first, int last, const std::string& queue = "q") {
        sql.query("insert into queen.log_partitions (queue_id, name, last_offset, segment_count, "
                  "stored_bytes, newest_at, oldest_live_at, oldest_txn_at) select q.id, 'p' || i, "
                  "0, 1, 1, queen._clock(), queen._clock(), queen._clock() from queen.queues q, "
                  "generate_series($1::int, $2::int) i where q.name = $3",
                  {first, last, queue});
    }
    /// Segments of one message each in a partition of its own, all old.
    void backlog(const std::string& partition, int segments) {
        sql.query("insert into queen.log_partitions (queue_id, name, last_offset, segment_count, "
                  "stored_bytes, newest_at, oldest_live_at) select id, $1, $2::int - 1, $2::int, "
                  "$2::int, queen._clock(), queen._clock() - interval '1 day' from queen.queues "
                  "where name = 'q'",
                  {partition, segments});
        sql.query("insert into queen.log_segments select p.id, i, i, queen._clock() - interval '1 "
                  "day', 'x' from queen.log_partitions p, generate_series(0, $2::int - 1) i where "
                  "p.name = $1",
                  {partition, segments});
    }
    /// Plans of the statements inside of one call.
    std::vector<std::string> plans(const std::string& call) {
        auto out = nested_plans(worker, [&] { worker.query(call); });
        std::erase_if(out, [](const std::string& plan) {
            return plan.find("queen.log_") == std::string::npos ||
                   plan.find("\"Node Type\": \"Function Scan\"") != std::string::npos;
        });
        return out;
    }
    std::int64_t visited(const std::vector<std::string>& told, const std::string& table) {
        return sql.integer(
            "select coalesce(sum((n ->> 'Actual Loops')::numeric * ((n ->> 'Actual Rows')::numeric "
            "+ coalesce((n ->> 'Rows Removed by Filter')::numeric, 0))), 0)::bigint from "
            "unnest($1::text[]) p, jsonb_path_query(p::jsonb, 'strict $.**') n where "
            "jsonb_typeof(n) = 'object' and n ->> 'Relation Name' = $2 and n ->> 'Node Type' like "
            "'%Scan%'",
            {told, table});
    }
    std::vector<std::string> due_plans() {
        return plans("select count(*) from queen.log_due_v1('retention', null, null, null, 1000)");
    }

    SqlSession worker;
};

TEST_F(RetentionPlan, F21_TheWorkListReadsWhatIsDue) {
    partitions(1, 100);
    sql.script("analyze");
    sql.script("update queen.log_partitions set oldest_live_at = queen._clock() - interval '1 day' "
               "where name in ('p7', 'p8', 'p9')");
    for (int i = 0; i < 8; ++i) {
        due_plans();
    }
    EXPECT_EQ(visited(due_plans(), "log_partitions"), 3);
    partitions(101, 1000);
    EXPECT_EQ(visited(due_plans(), "log_partitions"), 3);
    partitions(1001, 100'000);
    partitions(1, 5000, "other"); // of a queue without retention, and all of it old
    sql.script("update queen.log_partitions set oldest_live_at = '2000-01-01' where queue_id = "
               "(select id from queen.queues where name = 'other')");
    EXPECT_EQ(visited(due_plans(), "log_partitions"), 3);
    sql.script("analyze");
    worker.script("discard plans");
    for (int i = 0; i < 8; ++i) {
        due_plans();
    }
    EXPECT_EQ(visited(due_plans(), "log_partitions"), 3);
    // Hashes whose messages are there are no work, however old they are.
    EXPECT_EQ(visited(plans("select count(*) from queen.log_due_v1('txns', null, null, null, "
                            "1000)"),
                      "log_partitions"),
              0);
    // Nor are partitions with messages for the cleanup.
    EXPECT_EQ(visited(plans("select * from queen.log_partition_cleanup_step_v1(queen._clock(), "
                            "1000)"),
                      "log_partitions"),
              0);
}

TEST_F(RetentionPlan, F22_AStepReadsWhatItTakesOfALongBacklog) {
    backlog("short", 50);
    sql.script("analyze");
    for (int i = 0; i < 8; ++i) {
        plans("select * from queen.log_evict_max_wait_step_v1('" + pid("short") +
              "', queen._clock(), 5)");
    }
    backlog("long", 20'000);
    const std::string call = "select * from queen.log_evict_max_wait_step_v1('" + pid("long") +
                             "', queen._clock(), 100)";
    // The walk, one segment beyond it, and the delete.
    EXPECT_EQ(visited(plans(call), "log_segments"), 201);
    // And no more of what went before, though nobody has vacuumed.
    for (int i = 0; i < 40; ++i) {
        worker.query(call);
    }
    EXPECT_EQ(visited(plans(call), "log_segments"), 201);
    EXPECT_EQ(sql.one("select log_start from queen.log_partitions where name = 'long'"), "4200");
}

TEST_F(RetentionPlan, AWalkReadsEachPartitionOnceAndItsFirstRows) {
    partitions(1, 2000);
    backlog("long", 5'000);
    sql.script("analyze");
    sql.script("update queen.log_partitions set oldest_txn_at = null, oldest_live_at = case when "
               "name = 'long' then oldest_live_at end");
    std::vector<std::string> told;
    for (int i = 0; i < 8; ++i) {
        told = plans("select * from queen.log_watermark_walk_step_v1(null, 1000)");
    }
    EXPECT_EQ(visited(told, "log_partitions"), 1000);
    EXPECT_LE(visited(told, "log_segments"), 1);
}

// What retention looks for is indexed: a push must not pay for it.
TEST_F(RetentionPlan, PushesIntoAPartitionThatHoldsSomethingStayHot) {
    push("q", "p", {"first"});
    const auto updates = [this] {
        sql.script("select pg_stat_force_next_flush()");
        return sql.query("select n_tup_upd, n_tup_hot_upd from pg_stat_user_tables where relname = "
                         "'log_partitions'");
    };
    const SqlRows before = updates();
    for (int i = 0; i < 200; ++i) {
        push("q", "p", {"m" + std::to_string(i)});
    }
    const SqlRows after = updates();
    EXPECT_EQ(after.integer(0, 0) - before.integer(0, 0), 200);
    EXPECT_EQ(after.integer(0, 1) - before.integer(0, 1), 200);
}

} // namespace
} // namespace queen::test
