// Steps of retention against pushes, pops and acks, and what each reads.
#include "base/text.hpp"
#include "sql/retention_fixture.hpp"

namespace queen::test {
namespace {

class RetentionRace : public RetentionTest {
protected:
    void completed_only() {
        configure("q", R"({"retentionEnabled": true, "completedRetentionSeconds": 5})");
    }
};

TEST_F(RetentionRace, APushWaitsForTheStepAndGoesOn) {
    push_at(0, {"a"});
    SqlSession cleaner = connect();
    SqlSession pusher = connect();
    clock(100);
    cleaner.script("begin");
    cleaner.query("select queen.log_evict_max_wait_step_v1($1, queen._clock(), 10)", {pid()});
    pusher.send("select queen.log_push_one_v1('q', 'p', 1, $1, -1, 'x') ->> 'baseOffset'",
                {hash("b")});
    await_lock(pusher);
    cleaner.script("commit");
    EXPECT_EQ(pusher.finish().get(0, 0), "1");
    expect_invariants(); // the partition was empty as the push came, and not as it began to wait
}

TEST_F(RetentionRace, AStepThatWaitedForAPushSeesIt) {
    push_at(0, {"a"});
    clock(100);
    SqlSession pusher = connect();
    SqlSession cleaner = connect();
    pusher.script("begin");
    pusher.query("select queen.log_push_one_v1('q', 'p', 1, $1, -1, 'x')", {hash("b")});
    cleaner.send("select new_log_start from queen.log_evict_max_wait_step_v1($1, queen._clock() - "
                 "interval '1 s', 10)",
                 {pid()});
    await_lock(cleaner);
    pusher.script("commit");
    EXPECT_EQ(cleaner.finish().get(0, 0), "1");
    expect_invariants();
}

// A row that stays locked costs the step its time, and nobody else anything.
TEST_F(RetentionRace, AStepGivesUpOnARowThatStaysLocked) {
    push_at(0, {"a"});
    sql.script("create or replace function queen._step_lock_timeout() returns text language sql "
               "immutable as $$ select '20ms' $$");
    SqlSession pusher = connect();
    pusher.script("begin");
    pusher.query("select queen.log_push_one_v1('q', 'p', 1, $1, -1, 'x')", {hash("b")});
    try {
        evict(500);
        FAIL();
    } catch (const SqlError& error) {
        EXPECT_EQ(error.state(), "55P03");
    }
    sql.script("create or replace function queen._step_lock_timeout() returns text language sql "
               "immutable as $$ select '2s' $$");
}

// K05: a pop that makes its group known is seen by the step, or the step by the pop.
TEST_F(RetentionRace, K05_AStepWaitsForAPopThatMakesItsGroupKnown) {
    completed_only();
    push_at(0, {"a", "b"});
    pop({.group = "reader", .auto_ack = true});
    clock(100);
    for (const bool pinned : {true, false}) {
        SqlSession popper = connect();
        SqlSession cleaner = connect();
        popper.script("begin");
        if (pinned) {
            EXPECT_EQ(pop({.group = "late1", .budget = 1}, &popper), "0+0*1");
        } else {
            EXPECT_EQ(wildcard({.group = "late2", .budget = 1}, &popper), "p:0+0*1");
        }
        cleaner.send("select s.deleted from " + step_call(), {pid(), 10});
        await_lock(cleaner);
        popper.script("commit");
        EXPECT_EQ(cleaner.finish().get(0, 0), "0") << pinned;
    }
    EXPECT_EQ(segments(), "0-1");
}

TEST_F(RetentionRace, K05_APopDoesNotWaitForAStepAndItsGroupBeginsBehindIt) {
    completed_only();
    push_at(0, {"a", "b"});
    push_at(98, {"c"});
    pop({.group = "reader", .budget = 2, .auto_ack = true});
    clock(100);
    SqlSession cleaner = connect();
    cleaner.script("begin");
    EXPECT_EQ(step(10, &cleaner), "1 of 2 messages, from 2, done, 1 consumed");
    sql.script("set statement_timeout = '5s'");
    EXPECT_EQ(pop({.group = "late1"}), "");
    EXPECT_EQ(wildcard({.group = "late2"}), "");
    // A known group goes on meanwhile.
    EXPECT_EQ(pop({.group = "reader"}), "2+0*1");
    cleaner.script("commit");
    EXPECT_EQ(pop({.group = "late1"}), "2+0*1");
    EXPECT_EQ(wildcard({.group = "late2"}), "p:2+0*1");
    expect_invariants();
}

TEST_F(RetentionRace, AnAckDoesNotWaitForAStepAndIsGoodAfterIt) {
    push_at(0, {"a", "b"});
    EXPECT_EQ(pop({.budget = 1}), "0+0*1");
    clock(30);
    SqlSession cleaner = connect();
    cleaner.script("begin");
    cleaner.query("select queen.log_evict_max_wait_step_v1($1, queen._clock(), 10)", {pid()});
    sql.script("set statement_timeout = '5s'");
    EXPECT_EQ(member(ack({{"a", "completed"}}), "covered"), "true");
    cleaner.script("commit");
    EXPECT_EQ(pop({}), "");
    EXPECT_EQ(cursor("committed"), "1"); // sealed: nothing is left before the end (CL-8)
}

// A seek that goes back while a step decides: either order is one that could have been. A cursor
// below the start is legal and finds what is left.
TEST_F(RetentionRace, ACursorThatGoesBackMeanwhileFindsWhatIsLeft) {
    completed_only();
    push_at(0, {"a"});
    push_at(97, {"b"});
    pop({.auto_ack = true});
    clock(100);
    SqlSession seeker = connect();
    seeker.script("begin");
    seeker.query("update queen.log_consumers set committed = -1");
    EXPECT_EQ(step(), "1 of 1 messages, from 1, done, 1 consumed");
    seeker.script("commit");
    EXPECT_EQ(pop({}), "1+0*1");
    clock(1000);
    EXPECT_EQ(step(), "0 of 0 messages, from 1, done"); // the cursor stands before it again
}

// Pushes of many, retention of all, at full speed: nothing is lost of the books.
TEST_F(RetentionRace, StepsAndPushesTogetherKeepTheBooks) {
    run_clock();
    sql.script("insert into queen.queues (name) values ('q')");
    constexpr int kPushers = 4;
    std::vector<SqlSession> pushers;
    for (int i = 0; i < kPushers; ++i) {
        pushers.push_back(connect());
    }
    SqlSession cleaner = connect();
    int sent = 0;
    const auto send = [&](SqlSession& session) {
        session.send("select queen.log_push_one_v1('q', 'p' || $1::int % 3, 1, $2, -1, 'xy')",
                     {sent, hash("m" + std::to_string(sent))});
        ++sent;
    };
    for (SqlSession& session : pushers) {
        send(session);
    }
    int steps = 0;
    while (sent < 400) {
        for (SqlSession& session : pushers) {
            if (!session.busy()) {
                session.finish();
                send(session);
            }
        }
        if (!cleaner.busy()) {
            if (steps > 0) {
                cleaner.finish();
            }
            ++steps;
            cleaner.send("select count(*) from queen.log_partitions p, lateral "
                         "queen.log_evict_max_wait_step_v1(p.id, queen._clock(), 5) where p.name = "
                         "'p' || $1::int % 3",
                         {steps});
        }
    }
    for (SqlSession& session : pushers) {
        session.finish();
    }
    cleaner.finish();
    expect_invariants();
    EXPECT_GT(steps, 3);
    EXPECT_EQ(sql.one("select sum(messages_deleted) + (select sum(p.last_offset - p.log_start + 1) "
                      "from queen.log_partitions p) from queen.retention_history"),
              std::to_string(sent));
}

} // namespace
} // namespace queen::test
