// Timers: two sessions at a time, and many.
#include "sql/timers_fixture.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <set>

namespace queen::test {
namespace {

class TimersRace : public TimersTest {
protected:
    TimersRace() : TimersTest(Database::own) {}

    /// With every call of a driver beside an open transaction that has locked all rows.
    void expect_nobody_waits(const std::vector<Hand>& hands) {
        sql.script("set statement_timeout = '20s'");
        EXPECT_EQ(fire(packed(hands)), "stale") << "not waited for";
        EXPECT_EQ(fail(hands), "0:");
        EXPECT_EQ(dead_letter(hands, 0), "0");
        EXPECT_EQ(keys_of(claim()), "");
        due();
        sql.script("reset statement_timeout");
    }
};

// What the plain FOR UPDATE of old would have done: the fire behind a slow cancel.
TEST_F(TimersRace, NothingThatADriverDoesWaitsForACancel) {
    apply({{.key = "a"}});
    const auto hands = claim({.lease = 10000});
    clock(10); // so that it may be cancelled
    SqlSession slow = connect();
    slow.script("begin");
    EXPECT_EQ(apply_call({cancel_of("a")}).words(slow), "cancelled");
    expect_nobody_waits(hands);
    slow.script("rollback");
    EXPECT_EQ(fire(packed(hands)), "fired:0") << "nobody else took it";
}

TEST_F(TimersRace, ACancelDuringTheFireWaitsForItAndSaysAbsent) {
    apply({{.key = "a"}});
    const auto hands = claim({.lease = 10000});
    clock(10);
    SqlSession firing = connect(), cancelling = connect();
    firing.script("begin");
    EXPECT_EQ(fire_call(packed(hands)).words(firing), "fired:0");
    apply_call({cancel_of("a")}).send(cancelling);
    await_lock(cancelling);
    firing.script("commit");
    EXPECT_EQ(cancelling.finish().get(0, 0), "absent");
    EXPECT_EQ(stored(), "t-a");

    // And when the fire fails after all, the cancel holds.
    apply({{.key = "b"}});
    const auto others = claim({.lease = 10000});
    clock(20);
    firing.script("begin");
    EXPECT_EQ(fire_call(packed(others)).words(firing), "fired:1");
    apply_call({cancel_of("b")}).send(cancelling);
    await_lock(cancelling);
    firing.script("rollback");
    EXPECT_EQ(cancelling.finish().get(0, 0), "cancelled");
    EXPECT_EQ(fire(packed(others)), "stale");
    EXPECT_EQ(stored(), "t-a");
}

TEST_F(TimersRace, ARescheduleDuringAClaimIsTooLate) {
    apply({{.key = "a"}});
    SqlSession claiming = connect(), changing = connect();
    claiming.script("begin");
    ASSERT_EQ(hands_of(claim_call().run(claiming)).size(), 1u);
    apply_call({{.key = "a", .delay = 1000}}).send(changing);
    await_lock(changing);
    claiming.script("commit");
    EXPECT_EQ(changing.finish().get(0, 0), "too_late");
    EXPECT_EQ(timer("a", "deliver_at"), "2030-01-01 00:00:00+00");
}

// A claim that finds a row being moved leaves it, and once it has moved it is not due.
TEST_F(TimersRace, AClaimDuringARescheduleLeavesTheRow) {
    apply({{.key = "a"}, {.key = "b"}});
    SqlSession changing = connect();
    changing.script("begin");
    EXPECT_EQ(apply_call({{.key = "a", .delay = 5000}}).words(changing), "rescheduled");
    EXPECT_EQ(keys_of(claim()), "b");
    changing.script("commit");
    EXPECT_EQ(keys_of(claim()), "");
    clock(5);
    EXPECT_EQ(keys_of(claim()), "a");
}

TEST_F(TimersRace, TwoClaimsAtOnceShareNoRow) {
    run_clock();
    sql.script("insert into queen.log_timers (queue, timer_key, deliver_at, txn, message_id, "
               "payload) select 'q', 'k' || i, queen._clock() - interval '1 s', 't', "
               "gen_random_uuid(), '{}' from generate_series(1, 3000) i");
    std::vector<SqlSession> drivers;
    for (int i = 0; i < 4; ++i) {
        drivers.push_back(connect());
    }
    std::set<std::string> seen;
    std::size_t taken = 0;
    for (int round = 0; round < 60 && seen.size() < 3000; ++round) {
        for (auto& driver : drivers) {
            claim_call().send(driver);
        }
        for (auto& driver : drivers) {
            for (const auto& hand : hands_of(driver.finish())) {
                seen.insert(hand.key);
                ++taken;
            }
        }
    }
    EXPECT_EQ(seen.size(), 3000u);
    EXPECT_EQ(taken, 3000u);
}

// While one claim is open another takes other rows, and does not wait.
TEST_F(TimersRace, AnOpenClaimHidesItsShardsAndNoOthers) {
    std::vector<TimerText> ops;
    for (int i = 0; i < 100; ++i) {
        ops.push_back({.key = "k" + std::to_string(i)});
    }
    apply(ops);
    const auto shard = std::stoi(timer("k0", "shard"));
    const auto inside =
        sql.integer("select count(*) from queen.log_timers where shard = $1", {shard});
    SqlSession first = connect();
    first.script("begin");
    const std::int64_t its_own = std::int64_t{1} << shard;
    ASSERT_EQ(hands_of(claim_call({.shards = its_own, .rows = 1}).run(first)).size(), 1u);
    EXPECT_EQ(claim().size(), 100u - static_cast<std::size_t>(inside));
    EXPECT_EQ(claim().size(), 0u);
    first.script("rollback");
    EXPECT_EQ(claim().size(), static_cast<std::size_t>(inside))
        << "nothing of it is locked or lost";
}

// LK-1: the order in which rows are locked is total, whatever that of the operations.
TEST_F(TimersRace, AppliesInBothOrdersDoNotDeadlock) {
    run_clock();
    std::vector<SqlSession> clients;
    for (int i = 0; i < 6; ++i) {
        clients.push_back(connect());
    }
    for (int round = 0; round < 25; ++round) {
        for (std::size_t i = 0; i < clients.size(); ++i) {
            std::vector<TimerText> ops;
            for (int n = 0; n < 20; ++n) {
                const int k = i % 2 == 1 ? 19 - n : n;
                const bool cancel = (n + round + static_cast<int>(i)) % 3 == 0;
                ops.push_back({.key = "k" + std::to_string(k),
                               .delay = 60000,
                               .kind = cancel ? "cancel" : "schedule",
                               .queue = "q" + std::to_string(k % 3)});
            }
            apply_call(ops).send(clients[i]);
        }
        for (auto& client : clients) {
            ASSERT_NO_THROW(client.finish());
        }
    }
    EXPECT_EQ(deadlocks(), 0);
}

// Timers before partitions, in a transaction as in the fire: neither waits for the other in a
// circle, and with deletes of the queue beside them.
TEST_F(TimersRace, TransactionsFiresAndDeletesDoNotDeadlock) {
    run_clock();
    constexpr int kKeys = 12;
    std::vector<SqlSession> clients;
    for (int i = 0; i < 8; ++i) {
        clients.push_back(connect());
    }
    std::mt19937 random(11);
    std::vector<std::vector<Hand>> hands(clients.size());
    int serial = 0;
    const auto finish = [&](std::size_t i) {
        try {
            return clients[i].finish();
        } catch (const SqlError& e) {
            // The queue was deleted under it; anything else is a fault.
            EXPECT_TRUE(e.state() == "40001" || e.state() == "23503") << e.what();
            throw;
        }
    };
    for (int round = 0; round < 60; ++round) {
        for (std::size_t i = 0; i < clients.size(); ++i) {
            std::vector<TimerText> ops;
            for (int k = 0; k < kKeys; ++k) {
                ops.push_back(
                    {.key = "k" + std::to_string(k), .partition = "p" + std::to_string(k % 5)});
            }
            std::shuffle(ops.begin(), ops.end(), random);
            ops.resize(6);
            if (i < 3) {
                ride_call(
                    ops,
                    {{"q", "p" + std::to_string(random() % 5), {"m" + std::to_string(serial++)}}})
                    .send(clients[i]);
            } else if (i == 7 && round % 5 == 4) {
                SqlCall{"select queen.delete_queue_v1($1, 'q')", {kTenant}}.send(clients[i]);
            } else if (hands[i].empty()) {
                claim_call({.lease = 50, .rows = 4}).send(clients[i]);
            } else {
                fire_call(packed(hands[i])).send(clients[i]);
            }
        }
        for (std::size_t i = 0; i < clients.size(); ++i) {
            try {
                const auto rows = finish(i);
                const bool claimed = i >= 3 && hands[i].empty() && !(i == 7 && round % 5 == 4);
                hands[i] = claimed ? hands_of(rows) : std::vector<Hand>{};
            } catch (const SqlError&) {
                hands[i].clear();
            }
        }
    }
    EXPECT_EQ(deadlocks(), 0);
}

// F-64, at the same time: a delete waits for a fire that is under way and takes what it stored.
TEST_F(TimersRace, F64ADeleteDuringTheFireLeavesNothing) {
    apply({{.key = "a"}, {.key = "b", .delay = 60000}});
    const auto hands = claim();
    SqlSession firing = connect(), deleting = connect();
    firing.script("begin");
    EXPECT_EQ(fire_call(packed(hands)).words(firing), "fired:0");
    SqlCall{"select queen.delete_queue_v1($1, 'q')", {kTenant}}.send(deleting);
    await_lock(deleting);
    firing.script("commit");
    EXPECT_EQ(deleting.finish().get(0, 0), "t");
    EXPECT_EQ(waiting(), 0);
    EXPECT_EQ(sql.integer("select count(*) from queen.queues"), 0);

    // The other way round: the fire finds its rows held, and makes no queue.
    apply({{.key = "c"}});
    const auto late = claim();
    deleting.script("begin");
    SqlCall{"select queen.delete_queue_v1($1, 'q')", {kTenant}}.run(deleting);
    EXPECT_EQ(fire(packed(late)), "stale");
    deleting.script("commit");
    EXPECT_EQ(fire(packed(late)), "stale");
    EXPECT_EQ(sql.integer("select count(*) from queen.queues"), 0);
}

// PUSH-9: a partition that somebody holds ends the fire in its own time; its rows stay in hand.
TEST_F(TimersRace, APartitionThatStaysLockedEndsTheFireWithItsOwnState) {
    push("q", "p", {"m"});
    apply({{.key = "a"}});
    const auto hands = claim();
    sql.script("create or replace function queen._fire_lock_timeout() returns text "
               "language sql immutable as $$ select '50ms' $$");
    SqlSession holder = connect();
    holder.script("begin; select 1 from queen.log_partitions for update");
    EXPECT_EQ(fire(packed(hands)), "55P03");
    holder.script("rollback");
    EXPECT_EQ(fire(packed(hands)), "fired:1");
}

} // namespace
} // namespace queen::test
