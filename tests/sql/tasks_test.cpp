// Turns at the tasks that one broker at a time does for all.
#include "sql/sql_fixture.hpp"

namespace queen::test {
namespace {

class Tasks : public SqlTest {
protected:
    Tasks() { sql.script("truncate queen.maintenance_leases"); }
    void known(int period_ms = 10'000) {
        sql.query("select queen.task_register_v1('t', $1)", {period_ms});
    }
    /// "fence late-ms", "" when there is no turn.
    std::string claim(const std::string& holder = "a", int lease_ms = 60'000,
                      SqlSession* session = nullptr) {
        return (session != nullptr ? *session : sql)
            .one("select fence || ' ' || late_ms from queen.task_claim_v1('t', $1, $2)",
                 {holder, lease_ms});
    }
    bool release(int fence, bool complete = true) {
        return sql.yes("select queen.task_release_v1('t', $1, $2)", {fence, complete});
    }
    std::string next_due() {
        return sql.one("select extract(epoch from next_due_at - timestamptz '2030-01-01 "
                       "00:00:00+00')::int from queen.maintenance_leases");
    }
};

TEST_F(Tasks, OneTurnAtATimeAndTheNextAPeriodAfterItWasDue) {
    EXPECT_EQ(claim(), ""); // nobody knows it
    known();
    clock(3);
    EXPECT_EQ(claim("a"), "1 3000");
    EXPECT_EQ(claim("b"), "");
    EXPECT_EQ(next_due(), "0"); // moves as the turn is given back (MA-2)
    clock(5);
    EXPECT_TRUE(release(1));
    EXPECT_EQ(next_due(), "10");
    clock(9.9);
    EXPECT_EQ(claim("b"), "");
    clock(10);
    EXPECT_EQ(claim("b"), "2 0");
    EXPECT_EQ(sql.one("select holder from queen.maintenance_leases"), "b");
}

TEST_F(Tasks, ATurnThatWasLateIsNotMadeUpFor) {
    known();
    clock(95);
    EXPECT_EQ(claim(), "1 95000");
    EXPECT_TRUE(release(1));
    EXPECT_EQ(next_due(), "95");
}

// F-24
TEST_F(Tasks, F24_AHolderThatDiesCostsItsLease) {
    known();
    EXPECT_EQ(claim("a", 60'000), "1 0");
    clock(59);
    EXPECT_EQ(claim("b"), "");
    clock(60);
    EXPECT_EQ(claim("b"), "2 60000");
    // The first one is not dead after all: what it says does not count any more.
    EXPECT_FALSE(release(1));
    EXPECT_EQ(claim("a"), "");
    EXPECT_TRUE(release(2));
    EXPECT_FALSE(release(2)); // given back already
}

TEST_F(Tasks, ATurnThatWasCutShortIsDueAtOnce) {
    known();
    clock(1);
    EXPECT_EQ(claim("a"), "1 1000");
    EXPECT_TRUE(release(1, false));
    EXPECT_EQ(claim("b"), "2 1000");
}

TEST_F(Tasks, TheLastBrokerToStartSaysHowOftenAndTheOperatorWhether) {
    known(60'000);
    claim();
    release(1);
    EXPECT_EQ(next_due(), "60");
    sql.script("update queen.maintenance_leases set enabled = false");
    known(5'000); // a shorter period holds at once
    EXPECT_EQ(next_due(), "5");
    EXPECT_EQ(sql.one("select period_ms || ' ' || enabled from queen.maintenance_leases"),
              "5000 false");
    clock(100);
    EXPECT_EQ(claim(), "");
    known(600'000); // a longer one from the next turn on
    EXPECT_EQ(next_due(), "5");
    sql.script("update queen.maintenance_leases set enabled = true");
    EXPECT_EQ(claim(), "2 95000");
}

TEST_F(Tasks, OfManyBrokersOneGetsTheTurn) {
    known();
    std::vector<SqlSession> brokers;
    for (int i = 0; i < 8; ++i) {
        brokers.push_back(connect());
    }
    SqlSession holder = connect();
    holder.script("begin");
    holder.query("select from queen.maintenance_leases for update");
    for (SqlSession& broker : brokers) {
        broker.send("select count(*) from queen.task_claim_v1('t', 'b', 60000)");
    }
    sql.wait_for("count(*) = 8 from pg_stat_activity where wait_event_type = 'Lock' and datname = "
                 "current_database()");
    holder.script("commit");
    std::int64_t turns = 0;
    for (SqlSession& broker : brokers) {
        turns += broker.finish().integer(0, 0);
    }
    EXPECT_EQ(turns, 1);
}

} // namespace
} // namespace queen::test
