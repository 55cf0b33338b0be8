// F-54: what the statements about groups read, as the server executed them (see pop_plan_test.cpp),
// with 1,000 and with 100,000 partitions beside those they are about.
#include "sql/groups_fixture.hpp"

namespace queen::test {
namespace {

class GroupsPlan : public GroupsTest {
protected:
    GroupsPlan() : GroupsTest(Database::own), operator_(connect()) {
        sql.script("insert into queen.queues (name) values ('q'), ('other')");
        sql.script("insert into queen.consumer_groups_metadata (consumer_group, queue_id, "
                   "subscription_mode, subscription_timestamp) select g, id, 'all', 'epoch' from "
                   "queen.queues, unnest('{g,h}'::text[]) g");
    }

    /// Partitions p<first> to p<last> of a queue, of one segment each, read by g and not by h.
    void partitions(const std::string& queue, int first, int last) {
        sql.query("insert into queen.log_partitions (queue_id, name, last_offset, segment_count, "
                  "stored_bytes, newest_at) select q.id, 'p' || i, 9, 1, 1, queen._clock() from "
                  "queen.queues q, generate_series($1::int, $2::int) i where q.name = $3",
                  {first, last, queue});
        sql.script("insert into queen.log_segments select p.id, 0, 9, queen._clock(), 'x' from "
                   "queen.log_partitions p on conflict do nothing; insert into "
                   "queen.log_consumers (partition_id, consumer_group, committed) select id, g, "
                   "case g when 'g' then 9 else -1 end from queen.log_partitions, "
                   "unnest('{g,h}'::text[]) g on conflict do nothing");
    }

    /// Plans of the statements inside one call.
    std::vector<std::string> plans(const std::string& call) {
        auto out = nested_plans(operator_, [&] { operator_.query(call); });
        std::erase_if(out, [](const std::string& plan) {
            return plan.find(R"("Relation Name": "log_)") == std::string::npos;
        });
        EXPECT_FALSE(out.empty());
        return out;
    }
    /// Rows that nodes over a table of ours visited.
    std::int64_t visited(const std::vector<std::string>& plans, const std::string& table) {
        return sql.integer(
            "select coalesce(sum((n ->> 'Actual Loops')::numeric * ((n ->> 'Actual "
            "Rows')::numeric + coalesce((n ->> 'Rows Removed by Filter')::numeric, 0))), "
            "0)::bigint "
            "from unnest($1::text[]) p, jsonb_path_query(p::jsonb, 'strict $.**') n where "
            "jsonb_typeof(n) = 'object' and n ->> 'Relation Name' = $2 and n ->> 'Node Type' like "
            "'%Scan%'",
            {plans, table});
    }
    /// Reads of whole tables of ours that grow: none may be there.
    std::string forbidden(const std::vector<std::string>& plans) {
        return sql.one(
            "select coalesce(string_agg((n ->> 'Node Type') || ' ' || (n ->> 'Relation Name'), ', "
            "'), '') from unnest($1::text[]) p, jsonb_path_query(p::jsonb, 'strict $.**') n where "
            "jsonb_typeof(n) = 'object' and n ->> 'Relation Name' in ('log_partitions', "
            "'log_consumers', 'log_segments') and (n ->> 'Node Type' = 'Seq Scan' or n ->> 'Node "
            "Type' like 'Index%' and not n ? 'Index Cond')",
            {plans});
    }

    /// One partition is moved whatever the number of others.
    void expect_partition_seek() {
        for (const char* call :
             {"select queen.log_seek_partition_v1('g', 'q', 'p500', false, 'epoch')",
              "select queen.log_seek_partition_v1('g', 'q', 'p500', true)"}) {
            const auto told = plans(call);
            EXPECT_EQ(forbidden(told), "");
            EXPECT_LE(visited(told, "log_partitions"), 6) << call;
            EXPECT_LE(visited(told, "log_consumers"), 4) << call;
            EXPECT_LE(visited(told, "log_segments"), 2) << call;
        }
    }
    /// Of the queue's 1,000 partitions each is read three times: for cursors that are missing, to
    /// lock, to write.
    void expect_queue_seek() {
        const auto told =
            plans("select queen.log_seek_consumer_group_v1('g', 'q', false, 'epoch')");
        EXPECT_EQ(forbidden(told), "");
        EXPECT_LE(visited(told, "log_partitions"), 3 * 1000 + 4);
        EXPECT_LE(visited(told, "log_consumers"), 3 * 1000 + 4);
        EXPECT_LE(visited(told, "log_segments"), 2 * 1000);
        const auto back = plans("select queen.log_seek_consumer_group_v1('g', 'q', true)");
        EXPECT_EQ(forbidden(back), "");
        EXPECT_LE(visited(back, "log_partitions"), 3 * 1000 + 4);
        EXPECT_EQ(visited(back, "log_segments"), 0);
    }
    /// Each partition with its two cursors once, and a segment for each that lags: those of h.
    void expect_figures(std::int64_t partitions) {
        for (const char* call :
             {"select queen.get_consumer_groups_v4()",
              "select queen.get_lagging_partitions_v1('00000000-0000-0000-0000-000000000001', "
              "0)"}) {
            const auto told = plans(call);
            EXPECT_EQ(forbidden(told), "") << call;
            EXPECT_LE(visited(told, "log_partitions"), partitions) << call;
            EXPECT_LE(visited(told, "log_consumers"), partitions * 4) << call;
            EXPECT_LE(visited(told, "log_segments"), partitions) << call;
        }
        const auto one = plans("select queen.get_consumer_group_detail_v1("
                               "'00000000-0000-0000-0000-000000000001', 'h', 'q')");
        EXPECT_EQ(forbidden(one), "");
        EXPECT_LE(visited(one, "log_partitions"), 1000);
        EXPECT_LE(visited(one, "log_segments"), 1000);
    }
    /// The repairs are read with the queue and the partition that they name.
    void expect_repairs() {
        seek_partition_end("p7");
        const auto told = plans("select * from queen.log_hotlist_repairs_v1()");
        EXPECT_EQ(forbidden(told), "");
        EXPECT_LE(visited(told, "log_partitions"), 2);
    }

    SqlSession operator_;
};

TEST_F(GroupsPlan, AMoveReadsWhatItMovesAndAListWhatItCounts) {
    partitions("q", 1, 1000);
    partitions("other", 1, 1000);
    sql.script("analyze");
    expect_partition_seek();
    expect_queue_seek();
    expect_figures(2000);
    expect_repairs();
    // Plans made for small tables are kept while they grow.
    partitions("other", 1001, 100'000);
    expect_partition_seek();
    expect_queue_seek();
    expect_repairs();
    // And those made when they are large.
    sql.script("analyze");
    operator_.script("discard plans");
    expect_partition_seek();
    expect_queue_seek();
    expect_figures(101'000);
    expect_repairs();
}

} // namespace
} // namespace queen::test
