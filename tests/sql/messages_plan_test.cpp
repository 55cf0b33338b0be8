// What a page of messages reads, with the plans that a broker's session uses: partitions that may
// have something of the page, one segment step for each, and nothing by scanning (F-54).
#include "sql/sql_fixture.hpp"

namespace queen::test {
namespace {

class MessagesPlan : public SqlTest {
protected:
    MessagesPlan() : SqlTest(Database::own), reader(connect()) {
        sql.script("insert into queen.queues (name) values ('q'), ('other')");
        clock(200'000);
    }

    /// Partitions of both queues, one message each and three seconds apart; the first of 'q' also
    /// has a long past.
    void partitions(int first, int last) {
        sql.query("insert into queen.log_partitions (queue_id, name, last_offset, segment_count, "
                  "stored_bytes, newest_at, last_write_at) select q.id, 'p' || i, 0, 1, 1, at, at "
                  "from queen.queues q, generate_series($1::int, $2::int) i, lateral (select "
                  "timestamptz '2030-01-01 00:00:00+00' + make_interval(secs => 200000 - i * 1.5) "
                  "as at) t",
                  {first, last});
        sql.script("insert into queen.log_segments select p.id, 0, 0, p.newest_at, 'x' from "
                   "queen.log_partitions p on conflict do nothing");
        sql.script("insert into queen.log_consumers (partition_id, consumer_group) select id, 'g' "
                   "from queen.log_partitions on conflict do nothing");
        sql.script("analyze");
    }

    std::string page(int want, const SqlArg& status = nullptr, const SqlArg& after = nullptr,
                     const SqlArg& part = nullptr) {
        return reader.one(
            "select jsonb_array_length(queen.log_messages_v1($1, 'q', $2, null, null, $3, "
            "timestamptz '2029-01-01', null, case when $4::int is not null then timestamptz "
            "'2030-01-01 00:00:00+00' + make_interval(secs => 200000 - $4 * 1.5) end, case when "
            "$4 is not null then '00000000-0000-0000-0000-000000000000'::uuid end, 0, $5) -> "
            "'slices')",
            {kTenant, part, status, after, want});
    }

    /// Rows read of a table, and how many nodes read all of one.
    std::string read(const std::string& table, int want, const SqlArg& status = nullptr,
                     const SqlArg& after = nullptr, const SqlArg& part = nullptr) {
        const auto plans = nested_plans(reader, [&] { page(want, status, after, part); });
        return sql.one(
            "select coalesce(sum((n ->> 'Actual Loops')::numeric * ((n ->> 'Actual Rows')::numeric "
            "+ coalesce((n ->> 'Rows Removed by Filter')::numeric, 0))), 0)::int || ' ' || "
            "count(*) filter (where n ->> 'Node Type' = 'Seq Scan') from unnest($1::text[]) p, "
            "jsonb_path_query(p::jsonb, 'strict $.**') n where jsonb_typeof(n) = 'object' and n "
            "->> 'Relation Name' = $2 and n ->> 'Node Type' like '%Scan%'",
            {plans, table});
    }
    SqlSession reader;
};

TEST_F(MessagesPlan, APageReadsWhatItShowsWhateverTheNumberOfPartitions) {
    partitions(1, 1000);
    for (int i = 0; i < 8; ++i) { // past the five after which a generic plan may come
        EXPECT_EQ(page(20), "20");
        EXPECT_EQ(page(20, "pending", nullptr, "p7"), "1");
        EXPECT_EQ(page(20, nullptr, 300), "20");
    }
    const auto expect_page = [&] {
        // Partitions: for the edge, again with those just behind it, and once to show each. Of the
        // two that were written to in the last two seconds the edge does not know.
        const auto partitions = read("log_partitions", 20);
        EXPECT_EQ(partitions.substr(partitions.find(' ')), " 0");
        EXPECT_LE(std::stoi(partitions), 20 + 26 + 20) << partitions;
        // Segments: three rounds at most, a step or two for each partition of the page.
        const auto segments = read("log_segments", 20);
        EXPECT_EQ(segments.substr(segments.find(' ')), " 0");
        EXPECT_LE(std::stoi(segments), 3 * 26) << segments;
        // Cursors: those of what is shown.
        EXPECT_EQ(read("log_consumers", 20), "20 0");
        // Deep in the list: those written to behind the position are looked at too, once each.
        const auto deep = read("log_partitions", 20, nullptr, 300);
        EXPECT_EQ(deep.substr(deep.find(' ')), " 0");
        EXPECT_LE(std::stoi(deep), 300 + 20 + 30 + 20) << deep;
        // One partition is one partition.
        EXPECT_EQ(read("log_partitions", 20, nullptr, nullptr, "p7"), "2 0");
        EXPECT_EQ(read("log_segments", 20, nullptr, nullptr, "p7"), "1 0");
    };
    expect_page();
    partitions(1001, 100000);
    expect_page();
    reader.script("discard plans");
    expect_page();
}

TEST_F(MessagesPlan, ADeepPartitionCostsItsPage) {
    partitions(1, 100);
    sql.script("insert into queen.log_segments select p.id, i, i, newest_at, 'x' from "
               "queen.log_partitions p join queen.queues q on q.id = p.queue_id and q.name = 'q', "
               "generate_series(1, 20000) i where p.name = 'p1'");
    sql.script("update queen.log_partitions p set last_offset = 20000 from queen.queues q where "
               "q.id = p.queue_id and q.name = 'q' and p.name = 'p1'");
    for (int i = 0; i < 8; ++i) {
        EXPECT_EQ(page(20), "20");
    }
    // A cursor reads a little ahead; whatever is below stays unread.
    EXPECT_LE(std::stoi(read("log_segments", 20)), 1'000);
    EXPECT_LE(std::stoi(read("log_segments", 20, "pending")), 1'000);
    EXPECT_LE(std::stoi(read("log_segments", 20, "completed")), 1'000);
}

} // namespace
} // namespace queen::test
