// Pops against each other and against pushes. The rule behind all of it: a pop never waits (LK-3).
#include "sql/sql_fixture.hpp"

#include <algorithm>
#include <random>
#include <set>

namespace queen::test {
namespace {

class PopRace : public SqlTest {
protected:
    PopRace() : SqlTest(Database::own) {}
    /// A session in which a statement that waits fails instead of hanging the test.
    SqlSession impatient() {
        SqlSession session = connect();
        session.script("set lock_timeout = '10s'");
        return session;
    }
};

// F-5: what is skipped because it is locked is not empty.
TEST_F(PopRace, ALockedCursorWithPendingDataIsLeasedForAMoment) {
    push("q", "busy", {"a", "b"});
    push("q", "idle", {"a"});
    push("q", "free", {"a"});
    for (const std::string partition : {"busy", "idle"}) {
        pop({.partition = partition, .budget = 1, .auto_ack = true});
    }
    SqlSession other = connect();
    other.script("begin; select from queen.log_consumers for update");
    SqlSession consumer = impatient();
    EXPECT_EQ(list({"busy", "idle", "free"}, {.auto_ack = true}, &consumer),
              "busy=leased(250) idle=empty free=took");
    EXPECT_EQ(pop({.partition = "busy"}, &consumer), "");
    EXPECT_EQ(wildcard({}, &consumer), "");
    other.script("commit");
    EXPECT_EQ(list({"busy"}, {.auto_ack = true}, &consumer), "busy=took");
}

TEST_F(PopRace, ACursorThatAnotherPopIsCreatingIsLeasedForAMoment) {
    push("q", "p", {"a"});
    SqlSession creator = connect();
    creator.script("begin");
    EXPECT_EQ(pop({.worker = "w1"}, &creator), "0+0*1");
    SqlSession consumer = impatient();
    EXPECT_EQ(list({"p"}, {.worker = "w2"}, &consumer), "p=leased(250)");
    creator.script("rollback");
    EXPECT_EQ(list({"p"}, {.worker = "w2"}, &consumer), "p=took");
}

// While one pop seeds all partitions, nobody queues up behind it.
TEST_F(PopRace, NobodyWaitsForTheSeeder) {
    push("q", "a", {"1"});
    push("q", "b", {"1"});
    SqlSession seeder = connect();
    seeder.script("begin");
    EXPECT_NE(wildcard({.budget = 1, .partitions = 1}, &seeder), "");
    SqlSession consumer = impatient();
    EXPECT_EQ(wildcard({}, &consumer), "");
    EXPECT_EQ(consumer.one("select meta -> 'seeded' from queen.log_pop_wildcard_bin_v1('q', 'g', "
                           "1, 0, 'w')"),
              "false");
    EXPECT_EQ(list({"a", "b"}, {}, &consumer), "a=leased(250) b=leased(250)");
    EXPECT_EQ(pop({.partition = "a"}, &consumer), "");
    EXPECT_EQ(consumer.one("select meta -> 'seeded' from queen.log_pop_discover_bin_v1('q', '', "
                           "'g', 1, 0, 'w')"),
              "false");
    EXPECT_NE(wildcard({.group = "other"}, &consumer), "");
    seeder.script("commit");
    EXPECT_EQ(sql.integer("select count(*) from queen.log_consumers where consumer_group = 'g'"),
              2);
}

TEST_F(PopRace, ASeederDoesNotWaitForAPopThatCreatesACursor) {
    push("q", "a", {"1"});
    push("q", "b", {"1"});
    SqlSession creator = connect();
    creator.script("begin");
    EXPECT_NE(pop({.partition = "a", .worker = "pinned"}, &creator), "");
    SqlSession consumer = impatient();
    EXPECT_EQ(wildcard({}, &consumer), "");
    creator.script("commit");
    EXPECT_EQ(wildcard({}, &consumer), "b:0+0*1");
}

TEST_F(PopRace, APopDoesNotWaitForThePushThatCreatesItsQueue) {
    SqlSession producer = connect();
    producer.script("begin");
    producer.query("select queen.log_push_one_v1('q', 'p', 1, $1, -1, 'x')", {hash("a")});
    SqlSession consumer = impatient();
    EXPECT_EQ(wildcard({}, &consumer), "");
    EXPECT_EQ(sql.integer("select count(*) from queen.queues"), 0);
    producer.script("commit");
    EXPECT_EQ(wildcard({}, &consumer), "p:0+0*1");
}

TEST_F(PopRace, APushInFlightDoesNotHoldUpFirstPops) {
    push("q", "p", {"a"});
    SqlSession producer = connect();
    producer.script("begin");
    producer.query("select queen.log_push_one_v1('q', 'p', 1, $1, -1, 'x')", {hash("b")});
    SqlSession consumer = impatient();
    EXPECT_EQ(pop({.group = "pinned"}, &consumer), "0+0*1");
    EXPECT_EQ(wildcard({}, &consumer), "p:0+0*1");
    producer.script("commit");
}

TEST_F(PopRace, APopDoesNotWaitForTheWatermarkOfAnother) {
    push("q", "p", {"a"});
    wildcard({.auto_ack = true});
    clock(100);
    SqlSession other = connect();
    other.script("begin");
    EXPECT_EQ(wildcard({}, &other), "");
    SqlSession consumer = impatient();
    EXPECT_EQ(wildcard({}, &consumer), "");
    other.script("commit");
    sql.script("delete from queen.consumer_watermarks");
    other.script("begin");
    EXPECT_EQ(wildcard({}, &other), "");
    EXPECT_EQ(wildcard({}, &consumer), "");
    other.script("rollback");
}

// F-9: rows that exist are claimed without an attempt to insert them.
TEST_F(PopRace, NoInsertIsTriedForACursorThatExists) {
    push("q", "p", {"a", "b"});
    wildcard({.budget = 1, .lease = 1});
    clock(5);
    sql.script("create function no() returns trigger language plpgsql as $$ begin raise exception "
               "'insert'; end $$; create trigger no before insert on queen.log_consumers for each "
               "statement execute function no()");
    EXPECT_EQ(wildcard({.budget = 1, .lease = 1}), "p:0+0*1");
    EXPECT_EQ(wildcard({.lease = 1}), ""); // leased, which is no reason to insert either
    EXPECT_EQ(list({"p"}, {.lease = 1}), "p=leased(1000)");
    clock(10);
    EXPECT_EQ(list({"p"}, {.lease = 1}), "p=took");
    EXPECT_THROW(pop({.group = "first-contact"}), SqlError); // the trigger does watch
}

// CL-11: a pop locks what it can use and no more, so a hundred of them share a queue, whatever
// lists of names they come with, while all their transactions are open.
TEST_F(PopRace, AHundredOpenListPopsHoldDisjointPartitionsAndNoOtherLocks) {
    constexpr int kPartitions = 1000;
    sql.query("select queen.log_push_multi_v1(array_agg('q'::text), array_agg('p' || i), "
              "array_agg(1), array_agg(decode(md5(i::text), 'hex')), array_agg(-1::bigint), "
              "array_agg(convert_to(i::text, 'UTF8'))) from generate_series(1, $1::int) i",
              {kPartitions});
    sql.script("insert into queen.log_consumers (partition_id, consumer_group) select id, 'g' from "
               "queen.log_partitions");
    std::mt19937 random(11);
    std::uniform_int_distribution<int> any(1, kPartitions);
    std::vector<SqlSession> consumers;
    std::multiset<std::string> taken;
    std::size_t full = 0;
    for (int i = 0; i < 100; ++i) {
        std::vector<std::string> names;
        while (names.size() < 16) {
            names.push_back("p" + std::to_string(any(random)));
        }
        consumers.push_back(impatient());
        consumers.back().script("begin");
        const SqlRows got =
            consumers.back().query("select p ->> 'partition' from queen.log_pop_list_v1('q', 'g', "
                                   "$1, 100, 60, 'w', false, "
                                   "4) b, jsonb_array_elements(b.meta -> 'partitions') p",
                                   {names});
        full += got.size() == 4;
        for (std::size_t row = 0; row < got.size(); ++row) {
            taken.insert(got.get(row, 0));
        }
    }
    EXPECT_EQ(full, 100u);
    EXPECT_EQ(std::set<std::string>(taken.begin(), taken.end()).size(), taken.size());
    EXPECT_EQ(sql.integer("select count(*) from (select from queen.log_consumers for update skip "
                          "locked) free"),
              kPartitions - static_cast<std::int64_t>(taken.size()));
    for (SqlSession& consumer : consumers) {
        consumer.script("commit");
    }
    EXPECT_EQ(sql.integer("select count(*) from queen.log_consumers where worker_id = 'w'"),
              static_cast<std::int64_t>(taken.size()));
}

TEST_F(PopRace, NamesBehindTheBudgetAreNotLocked) {
    push("q", "deep", {"1", "2", "3"});
    push("q", "next", {"1"});
    push("q", "last", {"1"});
    sql.script("insert into queen.log_consumers (partition_id, consumer_group) select id, 'g' from "
               "queen.log_partitions");
    SqlSession first = impatient();
    SqlSession second = impatient();
    first.script("begin");
    EXPECT_EQ(list({"deep", "next", "last"}, {.budget = 2}, &first), "deep=took");
    second.script("begin");
    EXPECT_EQ(list({"deep", "next", "last"}, {.budget = 1}, &second), "deep=leased(250) next=took");
    EXPECT_EQ(list({"last"}), "last=took");
    first.script("commit");
    second.script("commit");
}

// F-8: a hundred consumers meet a new queue of a thousand partitions.
TEST_F(PopRace, AHundredFirstPopsNeverWaitForEachOther) {
    run_clock();
    constexpr std::size_t kPartitions = 1000;
    constexpr std::size_t kConsumers = 100;
    sql.query("select queen.log_push_multi_v1(array_agg('q'::text), array_agg('p' || i), "
              "array_agg(1), array_agg(decode(md5(i::text), 'hex')), array_agg(-1::bigint), "
              "array_agg(convert_to(i::text, 'UTF8'))) from generate_series(1, $1::int) i",
              {kPartitions});
    std::vector<SqlSession> consumers;
    for (std::size_t i = 0; i < kConsumers; ++i) {
        consumers.push_back(connect());
    }
    SqlSession sampler = connect();
    const std::string one_pop =
        "select p ->> 'partition' from queen.log_pop_wildcard_bin_v1('q', 'g', 20, 0, 'w', true, "
        "5) b, jsonb_array_elements(b.meta -> 'partitions') p";
    for (SqlSession& consumer : consumers) {
        consumer.send(one_pop);
    }
    std::multiset<std::string> seen;
    std::string waits;
    std::size_t samples = 0;
    while (seen.size() < kPartitions) {
        // Left out: who holds the lock on a version of a cursor row and waits for its successor.
        // PostgreSQL waits there in spite of SKIP LOCKED, for one claim (001_log_schema.sql).
        waits +=
            sampler
                .query("select l.locktype || ' ' || left(a.query, 40) from pg_locks l join "
                       "pg_stat_activity a using (pid) where not l.granted and not (l.locktype "
                       "= 'transactionid' and exists (select from pg_locks t where t.pid = "
                       "l.pid and t.granted and t.locktype = 'tuple' and t.relation = "
                       "'queen.log_consumers'::regclass))")
                .column(0);
        ++samples;
        for (SqlSession& consumer : consumers) {
            if (consumer.busy()) {
                continue;
            }
            const SqlRows got = consumer.finish();
            for (std::size_t row = 0; row < got.size(); ++row) {
                seen.insert(got.get(row, 0));
            }
            consumer.send(one_pop);
        }
    }
    for (SqlSession& consumer : consumers) {
        const SqlRows got = consumer.finish();
        for (std::size_t row = 0; row < got.size(); ++row) {
            seen.insert(got.get(row, 0));
        }
    }
    EXPECT_EQ(waits, "");
    EXPECT_GT(samples, 3u);
    EXPECT_EQ(seen.size(), kPartitions);
    EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()).size(), kPartitions);
    EXPECT_EQ(deadlocks(), 0);
    EXPECT_EQ(sql.integer("select count(*) from queen.log_consumers where committed = 0"),
              static_cast<std::int64_t>(kPartitions));
}

// F-9: pops, pushes and acks over the same partitions in every order.
TEST_F(PopRace, AStormOfMixedOrdersHasNoDeadlock) {
    run_clock();
    std::mt19937 random(7);
    constexpr int kPartitions = 24;
    std::vector<std::string> names;
    for (int i = 0; i < kPartitions; ++i) {
        names.push_back("p" + std::to_string(i));
    }
    const auto shuffled = [&] {
        std::ranges::shuffle(names, random);
        return names;
    };
    const auto send_push = [&](SqlSession& session) {
        session.send("select queen.log_push_multi_v1(array_agg('q'::text), array_agg(n order by "
                     "o), array_agg(1), array_agg(decode(md5(random()::text), 'hex')), "
                     "array_agg(-1::bigint), array_agg('x'::bytea)) from unnest($1::text[]) with "
                     "ordinality t (n, o)",
                     {shuffled()});
    };
    const auto send_pop = [&](SqlSession& session, int i) {
        // Leased and acked at once, in one transaction, in the list's order.
        session.send("select queen.log_ack_multi_v1(array_agg((p ->> 'partitionId')::uuid), "
                     "array_agg($1), array_agg((p ->> 'batchEnd')::bigint), array_agg($2), "
                     "array_agg(1::bigint)) from queen.log_pop_list_v1('q', $1, $3, 50, 0, $2) b, "
                     "jsonb_array_elements(b.meta -> 'partitions') p",
                     {"g" + std::to_string(i % 2), "w" + std::to_string(i), shuffled()});
    };
    std::vector<SqlSession> sessions;
    for (int i = 0; i < 12; ++i) {
        sessions.push_back(connect());
    }
    send_push(sessions[0]);
    sessions[0].finish();
    std::vector<int> rounds(sessions.size(), 0);
    const auto next = [&](std::size_t i) {
        if (i % 3 == 0) {
            send_push(sessions[i]);
        } else {
            send_pop(sessions[i], static_cast<int>(i));
        }
    };
    for (std::size_t i = 0; i < sessions.size(); ++i) {
        next(i);
    }
    std::size_t open = sessions.size();
    while (open > 0) {
        for (std::size_t i = 0; i < sessions.size(); ++i) {
            if (rounds[i] >= 40 || sessions[i].busy()) {
                continue;
            }
            ASSERT_NO_THROW(sessions[i].finish());
            if (++rounds[i] < 40) {
                next(i);
            } else {
                --open;
            }
        }
    }
    EXPECT_EQ(deadlocks(), 0);
    // And nothing was lost: a fresh group reads every offset, both groups can drain the rest.
    for (const std::string group : {"fresh", "g0", "g1"}) {
        std::string got;
        do {
            got = wildcard({.group = group, .budget = 5000, .auto_ack = true});
        } while (!got.empty());
    }
    EXPECT_EQ(sql.integer("select count(*) from queen.log_consumers c join queen.log_partitions p "
                          "on p.id = c.partition_id where c.committed <> p.last_offset"),
              0);
    EXPECT_EQ(sql.integer("select count(*) from queen.log_consumers"), 3 * kPartitions);
}

// F-10
TEST_F(PopRace, ABatchAlwaysCarriesThePartitionsId) {
    SqlSession producer = connect();
    SqlSession consumer = connect();
    int raced = 0;
    for (int i = 0; i < 300; ++i) {
        const std::string partition = "p" + std::to_string(i);
        producer.send("select queen.log_push_one_v1('q', $1, 1, $2, -1, 'x')",
                      {partition, hash("a")});
        std::string got;
        do {
            got = consumer.one("select (j -> 'segments' <> '[]') || ' ' || coalesce(j ->> "
                               "'partitionId', '') from queen.log_pop_specific_v1('q', $1, 'g', 1, "
                               "60, 'w') j",
                               {partition});
            raced += got == "false ";
        } while (!got.starts_with("true"));
        producer.finish();
        ASSERT_EQ(got, "true " + pid(partition));
    }
    EXPECT_GT(raced, 0); // pops did come before the push's commit
}

// K01: the one who commits last is last, and is delivered.
TEST_F(PopRace, ALateCommitterIsNotLostBehindTheCursor) {
    push("q", "hot", {"0"});
    SqlSession slow = connect();
    SqlSession fast = connect();
    slow.script("begin");
    slow.query("select queen.log_push_one_v1('q', 'hot', 1, $1, -1, 'slow')", {hash("1")});
    fast.send("select queen.log_push_one_v1('q', 'hot', 1, $1, -1, 'fast')", {hash("2")});
    await_lock(fast);
    EXPECT_EQ(pop({.partition = "hot", .auto_ack = true}), "0+0*1");
    EXPECT_EQ(pop({.partition = "hot", .auto_ack = true}), "");
    slow.script("commit");
    fast.finish();
    EXPECT_EQ(pop({.partition = "hot", .auto_ack = true}), "1+0*1 2+0*1");
    EXPECT_EQ(sql.query("select blob from queen.log_segments order by base_offset").column(0),
              "\\x30 \\x736c6f77 \\x66617374");
}

// K06, two readers at once: each message goes to one of them.
TEST_F(PopRace, TwoAutoAckReadersShareWithoutOverlap) {
    run_clock();
    for (int i = 0; i < 60; ++i) {
        push("q", "p", {"m" + std::to_string(i)});
    }
    SqlSession readers[2] = {connect(), connect()};
    const std::string one_pop =
        "select r_base from queen.log_pop_v1('q', 'p', 'g', 3, 0, 'w', true)";
    std::multiset<int> seen;
    readers[0].send(one_pop);
    readers[1].send(one_pop);
    while (seen.size() < 60) {
        for (SqlSession& reader : readers) {
            if (!reader.busy()) {
                const SqlRows got = reader.finish();
                for (std::size_t row = 0; row < got.size(); ++row) {
                    seen.insert(static_cast<int>(got.integer(row, 0)));
                }
                reader.send(one_pop);
            }
        }
    }
    EXPECT_EQ(readers[0].finish().size() + readers[1].finish().size(), 0u);
    EXPECT_EQ(std::set<int>(seen.begin(), seen.end()).size(), 60u);
}

} // namespace
} // namespace queen::test
