// Transactions against each other, and against pushes, pops and acks.
#include "sql/transaction_fixture.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>

namespace queen::test {
namespace {

class TransactionRace : public SqlTest {
protected:
    TransactionRace() : SqlTest(Database::own) {}

    void send(SqlSession& session, const TransactionText& what) {
        session.send(std::string("select ") + kTransactionCall, arguments(what));
    }
    std::string name(int i) { return "p" + std::to_string(i); }
};

// K09 for transactions: queues and partitions that do not exist, named in both orders.
TEST_F(TransactionRace, FirstPushesInBothOrdersDoNotDeadlock) {
    run_clock();
    std::vector<SqlSession> clients;
    for (int i = 0; i < 8; ++i) {
        clients.push_back(connect());
    }
    for (int round = 0; round < 10; ++round) {
        for (int i = 0; i < 8; ++i) {
            TransactionText what;
            for (int n = 0; n < 20; ++n) {
                const int p = i % 2 == 1 ? 19 - n : n;
                what.pushes.push_back({"q" + std::to_string(p % 4) + "." + std::to_string(round),
                                       name(p),
                                       {"m" + std::to_string(i)}});
            }
            send(clients[static_cast<std::size_t>(i)], what);
        }
        for (SqlSession& client : clients) {
            ASSERT_NO_THROW(client.finish());
        }
    }
    EXPECT_EQ(sql.one("select min(last_offset) || ' ' || max(last_offset) || ' ' || count(*) from "
                      "queen.log_partitions"),
              "7 7 200");
    EXPECT_EQ(deadlocks(), 0);
}

// LK-1: partitions before cursors, each ascending, whatever the order of the operations. Beside
// them pushes, pops, acks and the walk of an extend lock the same rows.
TEST_F(TransactionRace, MixedWorkOverTheSamePartitionsDoesNotDeadlock) {
    run_clock();
    constexpr int kPartitions = 12;
    for (int p = 0; p < kPartitions; ++p) {
        push("q", name(p), {"first" + std::to_string(p)});
        pop({.partition = name(p), .group = "g", .worker = "w"});
        pop({.partition = name(p), .group = "h", .worker = "w"});
    }
    std::vector<std::string> pids;
    for (int p = 0; p < kPartitions; ++p) {
        pids.push_back(pid(name(p)));
    }
    std::vector<SqlSession> clients;
    for (int i = 0; i < 10; ++i) {
        clients.push_back(connect());
    }
    std::mt19937 random(7);
    int serial = 0;
    for (int round = 0; round < 40; ++round) {
        for (std::size_t i = 0; i < clients.size(); ++i) {
            std::vector<int> order(kPartitions);
            std::iota(order.begin(), order.end(), 0);
            std::shuffle(order.begin(), order.end(), random);
            TransactionText what;
            const auto id = "m" + std::to_string(serial++);
            switch (i % 5) {
            case 3:
                clients[i].send(
                    "select count(*) from queen.log_pop_wildcard_bin_v1('q', 'g', 1000, "
                    "60, $1, true, 100, 'all', '')",
                    {"auto" + id});
                continue;
            case 4:
                clients[i].send("select queen.log_renew_lease_v1('w', 60)");
                continue;
            default:
                break;
            }
            for (int n = 0; n < 6; ++n) {
                what.pushes.push_back({"q", name(order[static_cast<std::size_t>(n)]), {id}});
                // Completed twice or lost to another: both are answers.
                what.acks.push_back({.pid = pids[static_cast<std::size_t>(order[11 - n])],
                                     .group = n % 2 == 0 ? "g" : "h",
                                     .worker = "",
                                     .id = "first" + std::to_string(order[11 - n])});
            }
            send(clients[i], what);
        }
        for (SqlSession& client : clients) {
            ASSERT_NO_THROW(client.finish());
        }
    }
    EXPECT_EQ(deadlocks(), 0);
}

// Two brokers run the same transaction, as when a client's first answer was lost on the way.
TEST_F(TransactionRace, OfTwoEqualTransactionsOneIsDone) {
    push("in", "p", {"a"});
    ASSERT_NE(pop({.queue = "in", .partition = "p", .worker = "w"}), "");
    const TransactionText what{
        .pushes = {{"out", "z", {"n"}}},
        .acks = {{.pid = pid("p", "in"), .group = "g", .worker = "w", .id = "a"}}};
    SqlSession first = connect(), second = connect();
    first.script("begin");
    transact(first, what);
    send(second, what);
    await_lock(second);
    first.script("commit");
    try {
        second.finish();
        FAIL() << "done twice";
    } catch (const SqlError& e) {
        EXPECT_EQ(e.state(), "23505") << e.what();
    }
    EXPECT_EQ(sql.one("select last_offset from queen.log_partitions where name = 'z'"), "0");
}

// The lease ran out and went to another worker while the transaction waited for the cursor.
TEST_F(TransactionRace, ALeaseLostWhileItWaitedIsRefused) {
    push("in", "p", {"a", "b"});
    ASSERT_NE(pop({.queue = "in", .partition = "p", .budget = 1, .worker = "w"}), "");
    SqlSession other = connect(), session = connect();
    other.script("begin");
    ASSERT_EQ(other.one("select queen.log_ack_by_hash_v1($1, 'g', 'w', array[$2::bytea], "
                        "array['retry']) ->> 'ok'",
                        {pid("p", "in"), hash("a")}),
              "true");
    send(session, {.pushes = {{"out", "z", {"n"}}},
                   .acks = {{.pid = pid("p", "in"), .group = "g", .worker = "w", .id = "a"}}});
    await_lock(session);
    other.script("commit");
    EXPECT_THROW(session.finish(), SqlError);
    EXPECT_EQ(sql.integer("select count(*) from queen.queues where name = 'out'"), 0);
}

// PUSH-9: a row that somebody holds ends a transaction in its own time, be it partition or cursor.
TEST_F(TransactionRace, ARowThatStaysLockedEndsItWithItsOwnState) {
    push("in", "p", {"a"});
    ASSERT_NE(pop({.queue = "in", .partition = "p", .worker = "w"}), "");
    sql.script("create or replace function queen._push_lock_timeout() returns text "
               "language sql immutable as $$ select '50ms' $$");
    const TransactionText what{
        .acks = {{.pid = pid("p", "in"), .group = "g", .worker = "w", .id = "a"}}};
    SqlSession holder = connect();
    holder.script("begin; select 1 from queen.log_consumers for update");
    EXPECT_THAT(verdict(sql, what), testing::StartsWith("55P03"));
    holder.script("rollback");
    EXPECT_EQ(verdict(sql, what), "ok");
    EXPECT_EQ(sql.one("show lock_timeout"), "0") << "the session keeps nothing of it";
}

// What it reads follows what it is asked, not the number of partitions. The plans are made while
// the tables are small.
TEST_F(TransactionRace, ItsAcksReadTheirOwnPartitionsWhateverTheNumberOfOthers) {
    const auto partitions = [&](int first, int last) {
        sql.query("insert into queen.log_partitions (queue_id, name) select q.id, 'p' || i from "
                  "queen.queues q, generate_series($1::int, $2::int) i where q.name = 'q'",
                  {first, last});
        sql.script("insert into queen.log_consumers (partition_id, consumer_group) "
                   "select id, 'g' from queen.log_partitions on conflict do nothing");
    };
    push("q", "p0", {"first"});
    partitions(1, 20);
    SqlSession session = connect();
    int serial = 0;
    const auto reads = [&] {
        const auto id = "m" + std::to_string(serial++);
        for (const std::string p : {"p1", "p2"}) {
            push("q", p, {id});
            pop({.partition = p, .worker = "w"});
        }
        session.script("begin");
        transact(session, {.pushes = {},
                           .acks = {{pid("p1"), "g", "w", id}, {pid("p2"), "g", "", id}},
                           .leases = {"w"}});
        const auto counts = session.query(
            "select sum(seq_tup_read), sum(coalesce(idx_tup_fetch, 0)) filter (where relname in "
            "('log_partitions', 'log_consumers')) from pg_stat_xact_user_tables where schemaname = "
            "'queen' and relname like 'log_%'");
        EXPECT_EQ(counts.integer(0, 0), 0) << "a table was read from end to end";
        session.script("commit");
        return counts.integer(0, 1);
    };
    for (int i = 0; i < 8; ++i) {
        reads(); // past the calls after which the server may keep one plan for all
    }
    constexpr std::int64_t kNoTable = 500; // 16 with good plans; a table has a row a partition
    for (const int last : {1000, 100000}) {
        partitions(last == 1000 ? 21 : 1001, last);
        EXPECT_LT(reads(), kNoTable) << last;
        sql.script("analyze");
        EXPECT_LT(reads(), kNoTable) << last << ", with plans made anew";
    }
}

// A queue that is deleted while a transaction waits for its partition is made again.
TEST_F(TransactionRace, AQueueDeletedUnderItAsksForAnotherTry) {
    push("q", "p", {"a"});
    SqlSession deleter = connect(), session = connect();
    deleter.script("begin");
    deleter.query("select queen.delete_queue_v1($1, 'q')", {kTenant});
    send(session, {.pushes = {{"q", "p", {"b"}}}, .acks = {}});
    await_lock(session);
    deleter.script("commit");
    try {
        session.finish();
        FAIL() << "it went into a partition that is gone";
    } catch (const SqlError& e) {
        EXPECT_EQ(e.state(), "40001") << e.what();
    }
    EXPECT_EQ(verdict(sql, {.pushes = {{"q", "p", {"b"}}}, .acks = {}}), "ok");
}

} // namespace
} // namespace queen::test
