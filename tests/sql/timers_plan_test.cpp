// What due, claim and fire read, as the server executed them (see pop_plan_test.cpp): ranges of
// the index on (shard, visible_at), from which nothing is filtered.
#include "sql/timers_fixture.hpp"

namespace queen::test {
namespace {

class TimersPlan : public TimersTest {
protected:
    TimersPlan() : TimersTest(Database::own), driver(connect()) {}

    /// Timers up to n in all, a tenth of them due.
    void fill(int first, int last) {
        sql.query("insert into queen.log_timers (queue, timer_key, deliver_at, txn, message_id, "
                  "payload) select 'q' || i % 7, 'k' || i, queen._clock() + make_interval(secs => "
                  "case when i % 10 = 0 then -1 - i * 1e-6 else 1000 + i end), 't' || i, "
                  "gen_random_uuid(), '{}' from generate_series($1::int, $2::int) i",
                  {first, last});
    }

    /// Rows that nodes over log_timers read, by index or table; filtered ones too.
    std::string visited(const std::vector<std::string>& plans) {
        return sql.one(
            "select coalesce(string_agg(x || ' ' || n, ', ' order by x), '') from (select "
            "coalesce(n ->> 'Index Name', n ->> 'Node Type') as x, sum((n ->> 'Actual "
            "Loops')::numeric * ((n ->> 'Actual Rows')::numeric + coalesce((n ->> 'Rows Removed by "
            "Filter')::numeric, 0)))::int as n from unnest($1::text[]) p, "
            "jsonb_path_query(p::jsonb, 'strict $.**') n where jsonb_typeof(n) = 'object' and n "
            "->> 'Relation Name' = 'log_timers' and n ->> 'Node Type' like '%Scan%' group by 1) t",
            {plans});
    }
    /// What no plan over timers may have: whole tables, filters that remove rows, unbounded scans.
    std::string forbidden(const std::vector<std::string>& plans) {
        return sql.one(
            "select coalesce(string_agg((n ->> 'Node Type') || ' ' || coalesce(n ->> 'Index Name', "
            "'') || ' ' || coalesce(n ->> 'Filter', ''), ', '), '') from unnest($1::text[]) p, "
            "jsonb_path_query(p::jsonb, 'strict $.**') n where jsonb_typeof(n) = 'object' and n "
            "->> 'Relation Name' = 'log_timers' and n ->> 'Node Type' like '%Scan%' and (n ->> "
            "'Node Type' in ('Seq Scan', 'Bitmap Heap Scan') or not n ? 'Index Cond' or (n ->> "
            "'Rows Removed by Filter')::int > 0)",
            {plans});
    }
    void expect_ranges(const std::string& what) {
        SCOPED_TRACE(what);
        const auto probe = nested_plans(driver, [&] {
            SqlCall{"select * from queen.log_timers_due_v1(-1, 10)", {}}.run(driver);
        });
        EXPECT_EQ(forbidden(probe), "");
        // 64 heads, and cap + 1; the server rounds the rows of a loop.
        EXPECT_LE(std::stoi(visited(probe).substr(visited(probe).find(' '))), 64 + 64 + 11)
            << visited(probe);
        std::vector<Hand> hands;
        driver.script("begin");
        const auto claimed = nested_plans(driver, [&] {
            hands =
                hands_of(claim_call({.lease = 30000, .rows = 20, .per_tenant = 20}).run(driver));
        });
        ASSERT_EQ(hands.size(), 20u);
        EXPECT_EQ(forbidden(claimed), "");
        // Two windows of 16 rows in each of 64 shards, and the rows taken, twice.
        EXPECT_LE(std::stoi(visited(claimed).substr(visited(claimed).find(' '))), 64 * 32 + 4 * 20)
            << visited(claimed);
        const auto fired = nested_plans(driver, [&] { fire_call(packed(hands)).run(driver); });
        EXPECT_EQ(forbidden(fired), "");
        EXPECT_LE(std::stoi(visited(fired).substr(visited(fired).find(' '))), 3 * 20)
            << visited(fired);
        driver.script("rollback");
    }

    SqlSession driver;
};

TEST_F(TimersPlan, WhatADriverReadsFollowsWhatItTakes) {
    // The plans are made while the table is as small as can be, and stay.
    fill(1, 200);
    for (int i = 0; i < 8; ++i) {
        driver.script("begin");
        SqlCall{"select * from queen.log_timers_due_v1(-1, 10)", {}}.run(driver);
        const auto hands = hands_of(claim_call({.rows = 5}).run(driver));
        fire_call(packed(hands)).run(driver);
        driver.script("rollback");
    }
    fill(201, 1000);
    expect_ranges("1,000");
    fill(1001, 100000);
    expect_ranges("100,000");
    sql.script("analyze");
    driver.script("discard plans");
    expect_ranges("100,000, plans made anew");
}

// The reason why visible_at is indexed: timers that back off are out of the way, not at the head.
TEST_F(TimersPlan, ThousandsThatBackOffCostNothing) {
    fill(1, 1000);
    sql.script("insert into queen.log_timers (queue, timer_key, deliver_at, txn, message_id, "
               "payload, claimed_until, attempts) select 'q', 'poison' || i, queen._clock() - "
               "interval '1 h', 't', gen_random_uuid(), '{}', queen._clock() + interval '1 min', 4 "
               "from generate_series(1, 20000) i");
    expect_ranges("poisoned head");
    EXPECT_EQ(claim({.rows = 1000, .per_tenant = 1000}).size(), 100u) << "and none of them";
}

TEST_F(TimersPlan, ListsAndCountsReadTheirOwnRange) {
    fill(1, 30000);
    const auto told = nested_plans(driver, [&] {
        SqlCall{"select * from queen.log_timers_list_v1($1, 'q3', 'k2', 10)", {kTenant}}.run(
            driver);
        SqlCall{"select queen.log_timers_count_v1($1, 'q3', 'k299')", {kTenant}}.run(driver);
        SqlCall{"select * from queen.log_timers_peek_v1($1, 'q3', 'k3')", {kTenant}}.run(driver);
    });
    EXPECT_EQ(forbidden(told), "");
    const auto read = visited(told);
    EXPECT_EQ(read.substr(0, read.find(' ')), "log_timers_pkey");
    EXPECT_LT(std::stoi(read.substr(read.find(' '))), 100) << read;
}

} // namespace
} // namespace queen::test
