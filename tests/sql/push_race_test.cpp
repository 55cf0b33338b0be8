// Pushes against each other.
#include "base/text.hpp"
#include "sql/sql_fixture.hpp"

#include <algorithm>
#include <map>

namespace queen::test {
namespace {

class PushRace : public SqlTest {
protected:
    PushRace() : SqlTest(Database::own) {}
    /// Ids m0, m1 ... spread over partitions p0, p1 ..., one segment a partition, in either order.
    void send(SqlSession& session, const std::string& queue, int partitions, int ids,
              bool descending) {
        std::vector<std::string> queues, names, hashes, blobs;
        std::vector<std::int64_t> counts, verified;
        for (int n = 0; n < partitions; ++n) {
            const int p = descending ? partitions - 1 - n : n;
            std::string bytes = "\\x";
            int count = 0;
            for (int i = p; i < ids; i += partitions) {
                bytes += hash_hex("m" + std::to_string(i));
                ++count;
            }
            queues.push_back(queue);
            names.push_back("p" + std::to_string(p));
            hashes.push_back(bytes);
            blobs.push_back("\\x00");
            counts.push_back(count);
            verified.push_back(-1);
        }
        session.send("select string_agg(r ->> 'status', ' ') from jsonb_array_elements("
                     "queen.log_push_multi_v1($1, $2, $3, $4, $5, $6)) r",
                     {queues, names, counts, hashes, verified, blobs});
    }
};

// K09: the same ids in both orders, into partitions that do not exist.
TEST_F(PushRace, OverlappingFirstPushesInBothOrdersStoreEachIdOnce) {
    run_clock();
    constexpr int kClients = 16;
    constexpr int kPartitions = 50;
    std::vector<SqlSession> clients;
    for (int i = 0; i < kClients; ++i) {
        clients.push_back(connect());
    }
    for (int round = 0; round < 8; ++round) {
        const std::string queue = "q" + std::to_string(round);
        if (round % 2 == 1) {
            configure(queue, "{}"); // only the partitions are missing: their inserts meet
        }
        for (int i = 0; i < kClients; ++i) {
            send(clients[static_cast<std::size_t>(i)], queue, kPartitions, 500, i % 2 == 1);
        }
        std::ptrdiff_t queued = 0;
        for (SqlSession& client : clients) {
            const std::string statuses = client.finish().get(0, 0); // throws on a deadlock
            queued += std::ranges::count(statuses, 'q');
        }
        EXPECT_EQ(queued, kPartitions);
        EXPECT_EQ(sql.one("select count(*) || ' ' || sum(last_offset + 1) from "
                          "queen.log_partitions p join queen.queues q on q.id = p.queue_id where "
                          "q.name = $1",
                          {queue}),
                  "50 500");
    }
    EXPECT_EQ(sql.integer("select count(*) from queen.queues"), 8);
    EXPECT_EQ(deadlocks(), 0);
}

// The one ordered pass over the partition rows.
TEST_F(PushRace, OppositeOrdersOverExistingPartitionsDoNotDeadlock) {
    run_clock();
    configure("q", R"({"dedupWindowSeconds": 0})");
    std::vector<SqlSession> clients;
    for (int i = 0; i < 8; ++i) {
        clients.push_back(connect());
    }
    for (int round = 0; round < 40; ++round) {
        for (std::size_t i = 0; i < clients.size(); ++i) {
            send(clients[i], "q", 20, 20, i % 2 == 1);
        }
        for (SqlSession& client : clients) {
            ASSERT_NO_THROW(client.finish());
        }
    }
    EXPECT_EQ(sql.one("select min(last_offset) || ' ' || max(last_offset) from "
                      "queen.log_partitions"),
              "319 319");
    EXPECT_EQ(sql.integer("select count(*) from queen.log_segments a join queen.log_segments b on "
                          "a.partition_id = b.partition_id and a.base_offset < b.base_offset and "
                          "a.created_at > b.created_at"),
              0);
    EXPECT_EQ(deadlocks(), 0);
}

// F-9
TEST_F(PushRace, NoInsertIsTriedForAQueueOrPartitionThatExists) {
    push("q", "p", {"a"});
    sql.script("create function no() returns trigger language plpgsql as $$ begin raise exception "
               "'insert'; end $$; create trigger no before insert on queen.queues for each "
               "statement execute function no(); create trigger no before insert on "
               "queen.log_partitions for each statement execute function no()");
    EXPECT_EQ(push("q", "p", {"b"}), "queued 1");
    EXPECT_THROW(push("q", "new", {"b"}), SqlError);
}

TEST_F(PushRace, TwoPushesOfOneIdStoreItOnce) {
    push("q", "p", {"a"});
    SqlSession first = connect();
    SqlSession second = connect();
    first.script("begin");
    first.query("select queen.log_push_one_v1('q', 'p', 1, $1, 0, 'x')", {hash("b")});
    // The second vouches for what it could see, which is not the first's push.
    second.send("select queen.log_push_one_v1('q', 'p', 1, $1, 0, 'x') ->> 'status'", {hash("b")});
    await_lock(second);
    first.script("commit");
    EXPECT_EQ(second.finish().get(0, 0), "duplicate");
}

// PUSH-9: a locked partition ends a push in its own time, long before the statement's limit.
TEST_F(PushRace, ARowThatStaysLockedEndsThePushWithItsOwnState) {
    push("q", "locked", {"a"});
    push("q", "free", {"a"});
    sql.script("create or replace function queen._push_lock_timeout() returns text "
               "language sql immutable as $$ select '50ms' $$");
    SqlSession holder = connect();
    holder.script("begin; select 1 from queen.log_partitions where name = 'locked' for update");
    const auto push_to = [&](const std::vector<std::string>& partitions) {
        const auto n = partitions.size();
        return sql.one("select queen.log_push_multi_v1($1, $2, $3, array_fill($4::bytea, "
                       "array[$5::int]), array_fill(-1::bigint, array[$5::int]), "
                       "array_fill('x'::bytea, array[$5::int]))",
                       {std::vector<std::string>(n, "q"), partitions,
                        std::vector<std::int64_t>(n, 1), hash("b"), n});
    };
    try {
        push_to({"free", "locked"});
        FAIL() << "it did not wait for the lock";
    } catch (const SqlError& e) {
        EXPECT_EQ(e.state(), "55P03");
    }
    EXPECT_NE(push_to({"free"}).find("queued"), std::string::npos);
    EXPECT_EQ(sql.one("show lock_timeout"), "0") << "the session keeps nothing of it";
    holder.script("rollback");
    EXPECT_NE(push_to({"locked"}).find("queued"), std::string::npos);
}

// LK-2: partitions of a queue that was made anew while the ordered pass waited are not locked out
// of order behind it; the push begins again.
TEST_F(PushRace, AQueueMadeAnewMeanwhileIsPushedToInTheNextTry) {
    const auto push_both = [&](SqlSession& session) {
        session.send(
            "select queen.log_push_multi_v1('{q,q}', '{a,b}', '{1,1}', array_fill($1::bytea, "
            "array[2]), '{-1,-1}', array_fill('x'::bytea, array[2]))",
            {hash("m")});
    };
    push("q", "a", {"x"});
    push("q", "b", {"x"});
    SqlSession deleter = connect();
    SqlSession pusher = connect();
    deleter.script("begin; select queen.delete_queue_v1("
                   "'00000000-0000-0000-0000-000000000001', 'q')");
    push_both(pusher);
    await_lock(pusher);
    push_both(deleter);
    deleter.finish();
    deleter.script("commit");
    try {
        pusher.finish();
        FAIL() << "it locked partitions out of order";
    } catch (const SqlError& e) {
        EXPECT_EQ(e.state(), "40001");
    }
    push_both(pusher);
    EXPECT_NE(std::string(pusher.finish().get(0, 0)).find("duplicate"), std::string::npos);
    EXPECT_EQ(sql.one("select string_agg(name || last_offset, ' ' order by name) from "
                      "queen.log_partitions"),
              "a0 b0");
}

TEST_F(PushRace, ARolledBackPushLeavesNoGap) {
    push("q", "p", {"a"});
    SqlSession first = connect();
    SqlSession second = connect();
    first.script("begin");
    first.query("select queen.log_push_one_v1('q', 'p', 1, $1, -1, 'x')", {hash("b")});
    second.send("select queen.log_push_one_v1('q', 'p', 1, $1, -1, 'x') ->> 'baseOffset'",
                {hash("b")});
    await_lock(second);
    first.script("rollback");
    EXPECT_EQ(second.finish().get(0, 0), "1");
}

} // namespace
} // namespace queen::test
