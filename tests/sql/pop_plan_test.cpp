// F-54: what the statements of a pop read, as the server executed them. They run inside plpgsql,
// where EXPLAIN does not reach, so auto_explain tells: it sends the plan of each nested statement,
// with the rows it really visited, to the session as a notice. The plans are the generic ones that
// a broker's session uses: the functions ask for them, and the calls before the one that is looked
// at are more than the five after which the server would decide by itself.
#include "sql/sql_fixture.hpp"

namespace queen::test {
namespace {

class PopPlan : public SqlTest {
protected:
    PopPlan() : SqlTest(Database::own), consumer(connect()) {
        sql.script("insert into queen.queues (name) values ('q')");
    }

    /// Partitions p<first> to p<last> with twenty segments of one message, each with a cursor.
    void partitions(int first, int last) {
        sql.query("insert into queen.log_partitions (queue_id, name, last_offset, segment_count, "
                  "stored_bytes, newest_at) select q.id, 'p' || i, 19, 20, 20, queen._clock() from "
                  "queen.queues q, generate_series($1::int, $2::int) i",
                  {first, last});
        sql.script("insert into queen.log_consumers (partition_id, consumer_group) "
                   "select id, 'g' from queen.log_partitions on conflict do nothing");
        // Segments where the pops go; the other partitions need none to be in the way.
        sql.script("insert into queen.log_segments select p.id, i, i, queen._clock(), 'x' from "
                   "queen.log_partitions p, generate_series(0, 19) i where p.name ~ '^p\\d{1,3}$' "
                   "on conflict do nothing");
    }

    std::string pop(int first, int names, int budget, int cap) {
        return consumer.one(
            "select jsonb_array_length(meta -> 'partitions') from queen.log_pop_list_v1('q', 'g', "
            "(select array_agg('p' || i order by i) from generate_series($1::int, $1 + $2 - 1) i), "
            "$3, 60, 'w', false, $4)",
            {first, names, budget, cap});
    }

    /// Plans of the statements inside one more pop.
    std::vector<std::string> plans(int first, int names, int budget, int cap) {
        auto out = nested_plans(
            consumer, [&] { EXPECT_EQ(pop(first, names, budget, cap), std::to_string(cap)); });
        std::erase_if(out, [](const std::string& plan) {
            return plan.find("queen.log_") == std::string::npos ||
                   plan.find("generate_series($1::int") != std::string::npos;
        });
        return out;
    }

    /// Over the nodes that read a table of ours: how often, and how many rows.
    std::string visited(const std::vector<std::string>& plans, const std::string& table) {
        return sql.one("select coalesce(sum((n ->> 'Actual Loops')::numeric * ((n ->> 'Actual "
                       "Rows')::numeric + "
                       "coalesce((n ->> 'Rows Removed by Filter')::numeric, 0))), 0)::int "
                       "from unnest($1::text[]) p, jsonb_path_query(p::jsonb, 'strict $.**') n "
                       "where jsonb_typeof(n) = 'object' and n ->> 'Relation Name' = $2 "
                       "and n ->> 'Node Type' like '%Scan%'",
                       {plans, table});
    }

    /// Nodes that no pop may have, by relation.
    std::string forbidden(const std::vector<std::string>& plans) {
        return sql.one(
            "select coalesce(string_agg((n ->> 'Node Type') || ' ' || coalesce(n ->> 'Relation "
            "Name', "
            "''), ', '), '') from unnest($1::text[]) p, jsonb_path_query(p::jsonb, 'strict $.**') "
            "n "
            "where jsonb_typeof(n) = 'object' and (n ->> 'Node Type' in ('Seq Scan', 'Hash Join', "
            "'Merge Join', 'Memoize', 'Bitmap Heap Scan') or (n ? 'Relation Name' and n ->> 'Node "
            "Type' like 'Index%' and not n ? 'Index Cond'))",
            {plans});
    }

    void expect_work_for(const std::vector<std::string>& told, int reached, int segments) {
        EXPECT_EQ(forbidden(told), "");
        EXPECT_EQ(visited(told, "log_partitions"), std::to_string(reached));
        // Looked at, locked, leased.
        EXPECT_EQ(visited(told, "log_consumers"), std::to_string(3 * reached));
        // The probe for where each begins, and what is delivered.
        EXPECT_EQ(visited(told, "log_segments"), std::to_string(reached + segments));
    }

    SqlSession consumer;
};

TEST_F(PopPlan, APopReadsWhatItReachesWhateverTheNumberOfPartitions) {
    // The plans are made while the tables are as small as can be, and stay.
    partitions(1, 200);
    sql.script("analyze");
    for (int i = 0; i < 8; ++i) {
        EXPECT_EQ(pop(1 + i * 16, 16, 20, 1), "1");
    }
    partitions(201, 1000);
    expect_work_for(plans(300, 16, 20, 1), 1, 20);
    expect_work_for(plans(320, 16, 20 * 10, 10), 10, 200);
    partitions(1001, 100000);
    expect_work_for(plans(400, 16, 20, 1), 1, 20);
    expect_work_for(plans(420, 16, 20 * 10, 10), 10, 200);
    expect_work_for(plans(440, 16, 20 * 16, 16), 16, 320);

    // And with plans made when they are large.
    sql.script("analyze");
    consumer.script("discard plans");
    for (int i = 0; i < 8; ++i) {
        EXPECT_EQ(pop(500 + i * 16, 16, 20, 1), "1");
    }
    expect_work_for(plans(700, 16, 20, 1), 1, 20);
    expect_work_for(plans(720, 16, 20 * 16, 16), 16, 320);
}

TEST_F(PopPlan, ADeepBacklogCostsWhatIsDelivered) {
    partitions(1, 100);
    sql.script("insert into queen.log_segments select id, i, i, queen._clock(), 'x' from "
               "queen.log_partitions, generate_series(20, 20000) i where name = 'p1'");
    sql.script("update queen.log_partitions set last_offset = 20000 where name = 'p1'");
    sql.script("update queen.log_consumers set committed = 10000 where partition_id = (select id "
               "from queen.log_partitions where name = 'p1')");
    for (int i = 0; i < 8; ++i) {
        pop(2 + i, 1, 5, 1);
    }
    expect_work_for(plans(1, 16, 5, 1), 1, 5);
}

// The newest message alone costs one step back, whatever waits before it, and a delay the steps of
// a search by halves.
TEST_F(PopPlan, ConflationReadsOneSegmentOfEachPartition) {
    sql.script("insert into queen.consumer_groups_metadata (consumer_group, queue_id, "
               "subscription_mode, subscription_timestamp, conflation) select 'g', id, 'all', "
               "'epoch', true from queen.queues");
    partitions(1, 200);
    for (int i = 0; i < 8; ++i) {
        pop(1 + i * 16, 16, 16, 4);
    }
    partitions(201, 100000);
    expect_work_for(plans(300, 16, 16, 1), 1, 1);
    expect_work_for(plans(320, 16, 16, 16), 16, 16);
    sql.script("insert into queen.log_segments select id, i, i, queen._clock(), 'x' from "
               "queen.log_partitions, generate_series(20, 20000) i where name = 'p1'; "
               "update queen.log_partitions set last_offset = 20000 where name = 'p1'; "
               "update queen.log_consumers c set worker_id = null from queen.log_partitions p "
               "where p.id = c.partition_id and p.name = 'p1'");
    expect_work_for(plans(1, 1, 1, 1), 1, 1);

    sql.script("update queen.log_segments s set created_at = queen._clock() - interval '1 h' + "
               "make_interval(secs => s.base_offset / 10) from queen.log_partitions p where p.id = "
               "s.partition_id and p.name = 'p1'; "
               "update queen.log_consumers c set worker_id = null from queen.log_partitions p "
               "where p.id = c.partition_id and p.name = 'p1'; "
               "update queen.queues set delayed_processing = 3000");
    const auto told = plans(1, 1, 1, 1);
    EXPECT_EQ(forbidden(told), "");
    EXPECT_LT(std::stoi(visited(told, "log_segments")), 30);
}

} // namespace
} // namespace queen::test
