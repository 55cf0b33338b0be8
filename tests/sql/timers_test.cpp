// Setting, cancelling and showing timers.
#include "sql/timers_fixture.hpp"
#include "support/sql_files.hpp"

#include <gmock/gmock.h>

namespace queen::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class Timers : public TimersTest {
protected:
    std::string peek(const std::string& key, const std::string& column) {
        return sql.one("select t." + column + " from queen.log_timers_peek_v1($1, 'q', $2) t",
                       {kTenant, key});
    }
    std::string list(const std::string& after, int limit) {
        return sql
            .query("select timer_key from queen.log_timers_list_v1($1, 'q', $2, $3)",
                   {kTenant, after, limit})
            .column(0);
    }
    std::int64_t count(const std::string& prefix) {
        return sql.integer("select queen.log_timers_count_v1($1, 'q', $2)", {kTenant, prefix});
    }
    std::string ride(const std::vector<TimerText>& timers,
                     const std::vector<TransactionText::Push>& pushes) {
        return ride_call(timers, pushes).words(sql);
    }
};

// TM-3: both are the same upsert.
TEST_F(Timers, SchedulingAgainReplacesEverything) {
    EXPECT_EQ(apply({{.key = "a", .delay = 1000, .payload = "1", .zstd = true}}), "scheduled");
    const auto id = timer("a", "message_id");
    sql.script("update queen.log_timers set attempts = 3, last_error = 'x', claimed_until = "
               "queen._clock() + interval '1 h', producer_sub = 'old'");
    clock(5);
    const TimerText second{.key = "a",
                           .delay = 2000,
                           .kind = "reschedule",
                           .partition = "r",
                           .txn = "t2",
                           .payload = "2",
                           .encrypted = true};
    const auto rows = apply_call({second}, std::string(kTenant), "sub").run(sql);
    EXPECT_EQ(rows.get(0, 0) + " " + rows.get(0, 1), "rescheduled t2");
    EXPECT_EQ(rows.get(0, 3), "2030-01-01 00:00:07+00");
    EXPECT_EQ(rows.get(0, 4), "2000000");
    EXPECT_NE(rows.get(0, 2), id) << "a rescheduled timer is a new message (TM-6)";
    EXPECT_EQ(sql.one("select concat_ws(' ', \"partition\", deliver_at, txn, message_id, "
                      "convert_from(payload, 'UTF8'), payload_zstd, encrypted, producer_sub, "
                      "attempts, last_error, claimed_until, claim_token, visible_at, created_at, "
                      "updated_at) from queen.log_timers"),
              "r 2030-01-01 00:00:07+00 t2 " + rows.get(0, 2) +
                  " 2 f t sub 0 2030-01-01 00:00:07+00 2030-01-01 00:00:00+00 2030-01-01 "
                  "00:00:05+00");
    EXPECT_EQ(apply({{.key = "b", .kind = "reschedule"}}), "scheduled") << "of nothing";
}

TEST_F(Timers, VerdictsStandWhereTheirOperationsDo) {
    apply({{.key = "b"}, {.key = "d"}});
    const auto rows =
        apply_call({{.key = "d"}, cancel_of("b"), cancel_of("x"), {.key = "a"}, cancel_of("b2")})
            .run(sql);
    EXPECT_EQ(rows.column(0), "rescheduled cancelled absent scheduled absent");
    EXPECT_EQ(rows.column(1), "t-d t-b mine t-a mine");
    EXPECT_TRUE(rows.null(1, 2) && rows.null(2, 3) && rows.null(2, 4));
    EXPECT_EQ(apply({}), "");
    EXPECT_EQ(waiting(), 2);
}

// TM-4: what a late cancel says.
TEST_F(Timers, CancellingWhatWasFiredSaysAbsent) {
    apply({{.key = "a"}});
    EXPECT_EQ(fire(packed(claim())), "fired:0");
    EXPECT_EQ(apply({cancel_of("a")}), "absent");
    EXPECT_EQ(stored(), "t-a") << "it was delivered all the same";
}

// TM-8: a token and time left, both of them.
TEST_F(Timers, OnlyWhatIsInSomebodysHandsIsTooLate) {
    apply({{.key = "a"}, {.key = "b"}});
    auto hands = claim({.lease = 10000});
    ASSERT_EQ(keys_of(hands), "a b");
    EXPECT_EQ(apply({cancel_of("a"), {.key = "b", .delay = 1}}), "too_late too_late");
    EXPECT_EQ(peek("a", "claimed"), "t");
    EXPECT_EQ(apply_call({cancel_of("a")}).run(sql).get(0, 1), "t-a");
    clock(10);
    EXPECT_EQ(peek("a", "claimed"), "f");
    EXPECT_EQ(apply({cancel_of("a")}), "cancelled") << "the lease is over";
    EXPECT_EQ(fail({hands[1]}, {.backoff = 60000}), "1:");
    EXPECT_EQ(peek("b", "claimed"), "f");
    EXPECT_EQ(apply({cancel_of("b")}), "cancelled") << "it backs off, and is nobody's";
}

// TM-9: in one transaction, and nothing is written before all is looked at.
TEST_F(Timers, OneBadOperationRefusesAllOfThem) {
    const std::string long_name(256, 'x');
    const TimerText good{.key = "good"};
    const std::vector<std::vector<TimerText>> refused{
        {good, {.key = "a", .kind = "move"}},
        {good, {.key = "a", .kind = ""}},
        {good, {.key = ""}},
        {good, {.key = "a", .queue = ""}},
        {good, {.key = "a", .queue = long_name}},
        {good, {.key = "a", .partition = ""}},
        {good, {.key = "a", .delay = std::int64_t{1000} * 86400 * 36526}},
        {{.key = "a"}, good, {.key = "a", .kind = "cancel"}},
    };
    for (const auto& ops : refused) {
        EXPECT_EQ(apply(ops), "22023") << ops.back().key;
        EXPECT_EQ(waiting(), 0);
    }
    auto call = apply_call({good});
    for (std::size_t i = 0; i < 10; ++i) {
        auto shorter = call;
        shorter.args[i] = std::vector<std::string>{};
        if (i == 0) {
            shorter.args[0] = std::vector<std::string>{"cancel", "cancel"};
        }
        EXPECT_EQ(shorter.words(sql), "22023") << i;
        auto null = call;
        null.args[i] = "{NULL}";
        EXPECT_EQ(null.words(sql), "22023") << i;
    }
    EXPECT_EQ(waiting(), 0);
    EXPECT_EQ(apply({{.key = "a"}, {.key = "a", .queue = "r"}}), "scheduled scheduled")
        << "another timer";
    EXPECT_THROW(
        try {
            apply_call({good, good}).run(sql);
        } catch (const SqlError& e) {
            EXPECT_THAT(e.what(), HasSubstr("operation 0: timer \"good\" of queue \"q\" more than "
                                            "once in a call"));
            throw;
        },
        SqlError);
}

TEST_F(Timers, TenantsHaveTheirOwn) {
    EXPECT_EQ(apply({{.key = "a", .delay = 1}}), "scheduled");
    EXPECT_EQ(apply({{.key = "a", .delay = 2}}, kTenantB), "scheduled");
    EXPECT_EQ(apply({cancel_of("a")}, kTenantB), "cancelled");
    EXPECT_EQ(sql.one("select tenant_id from queen.log_timers"), kTenant);
    EXPECT_EQ(
        sql.integer("select count(*) from queen.log_timers_peek_v1($1, 'q', 'a')", {kTenantB}), 0);
    EXPECT_EQ(
        sql.integer("select count(*) from queen.log_timers_list_v1($1, 'q', '', 10)", {kTenantB}),
        0);
    EXPECT_EQ(sql.integer("select queen.log_timers_count_v1($1, 'q', 'a')", {kTenantB}), 0);
}

// K43: the horizon is the route's; here every delay that was stored can be read, moved and
// cancelled, and none wraps.
TEST_F(Timers, K43DelaysOfAnyLength) {
    constexpr std::int64_t kDay = 86'400'000;
    for (const std::int64_t delay :
         {std::int64_t{-9'000'000'000'000'000}, -90 * kDay, std::int64_t{-1}, std::int64_t{0},
          std::int64_t{1}, (std::int64_t{1} << 31) - 1, std::int64_t{1} << 31,
          std::int64_t{1} << 32, 90 * kDay, 90 * kDay + 1, 36525 * kDay}) {
        SCOPED_TRACE(delay);
        EXPECT_EQ(apply({{.key = "k", .delay = delay}}), "scheduled");
        const bool past = delay <= 0;
        EXPECT_EQ(sql.one("select visible_at <= queen._clock() from queen.log_timers"),
                  past ? "t" : "f");
        EXPECT_EQ(claim().size(), past ? 1u : 0u);
        sql.script("update queen.log_timers set claim_token = null, claimed_until = null");
        if (delay > -kDay * 365) {
            EXPECT_EQ(sql.integer("select (extract(epoch from deliver_at - queen._clock()) * "
                                  "1000)::bigint from queen.log_timers_peek_v1($1, 'q', 'k')",
                                  {kTenant}),
                      delay);
        }
        EXPECT_EQ(apply({{.key = "k", .delay = delay, .kind = "reschedule"}}), "rescheduled");
        EXPECT_EQ(apply({cancel_of("k")}), "cancelled");
    }
    EXPECT_EQ(apply({{.key = "k", .delay = 36525 * kDay + 1}}), "22023");
    EXPECT_EQ(apply({{.key = "k", .delay = 9'000'000'000'000'000}}), "22023");
}

// TM-5: the destination is made by the fire.
TEST_F(Timers, SettingATimerWritesNoQueue) {
    apply({{.key = "a", .delay = 1000, .queue = "never.made"}});
    EXPECT_EQ(sql.integer("select count(*) from queen.queues"), 0);
}

TEST_F(Timers, ListsGoInByteOrder) {
    apply({{.key = "b"}, {.key = "a"}, {.key = "B"}, {.key = "é"}, {.key = "a/b"}, {.key = "~"}});
    apply({{.key = "c", .queue = "other"}});
    EXPECT_EQ(list("", 100), "B a a/b b ~ é");
    EXPECT_EQ(list("", 2), "B a a/b") << "one more tells that there is more";
    EXPECT_EQ(list("a/b", 2), "b ~ é");
    EXPECT_EQ(list("é", 2), "");
    EXPECT_EQ(list("a!", 100), "a/b b ~ é") << "the key that it goes on from may be gone";
    EXPECT_EQ(list("", 0), "B a");
    EXPECT_EQ(sql.one("select octet_length(payload) from queen.log_timers_list_v1($1, 'q', '', 1) "
                      "limit 1",
                      {kTenant}),
              "0");
}

TEST_F(Timers, CountsPrefixesLiterally) {
    apply({{.key = "a"}, {.key = "a%"}, {.key = "a_1"}, {.key = "ab"}, {.key = "b"}, {.key = "A"}});
    EXPECT_EQ(count("a"), 4);
    EXPECT_EQ(count("a%"), 1);
    EXPECT_EQ(count("a_"), 1);
    EXPECT_EQ(count("ab"), 1);
    EXPECT_EQ(count("c"), 0);
    apply({{.key = "ab\xf4\x8f\xbf\xbf"
                   "z"}});
    EXPECT_EQ(count("ab"), 2) << "behind the highest character";
}

TEST_F(Timers, PeekTellsWhatWaits) {
    apply_call({{.key = "a", .delay = 1500, .payload = "x"}}, std::string(kTenant), "sub").run(sql);
    EXPECT_EQ(sql.one("select concat_ws(' ', t.timer_key, t.\"partition\", t.deliver_at, t.txn, "
                      "convert_from(t.payload, 'UTF8'), t.payload_zstd, t.encrypted, "
                      "t.producer_sub, t.attempts, t.last_error is null, t.claimed) from "
                      "queen.log_timers_peek_v1($1, 'q', 'a') t",
                      {kTenant}),
              "a p 2030-01-01 00:00:01.5+00 t-a x f f sub 0 t f");
    EXPECT_EQ(peek("b", "txn"), "");
}

// TX-2: what a transaction does to timers is done with the rest or not at all.
TEST_F(Timers, TheRiderOfATransaction) {
    apply({{.key = "b"}});
    EXPECT_EQ(
        ride({{.key = "c", .delay = 5}, cancel_of("b"), cancel_of("x")}, {{"out", "p", {"m"}}}),
        "scheduled cancelled absent");
    EXPECT_EQ(timer("c"), "t-c");
    EXPECT_EQ(stored("out"), "x") << "and the message";

    // A duplicate takes the timers back, a bad timer the messages.
    EXPECT_EQ(ride({{.key = "d"}, cancel_of("c")}, {{"out", "p", {"m"}}}), "23505");
    EXPECT_EQ(timer("d") + timer("c"), "t-c");
    EXPECT_EQ(ride({{.key = "d"}, {.key = ""}}, {{"out2", "p", {"n"}}}), "22023");
    EXPECT_EQ(timer("d"), "");
    EXPECT_EQ(sql.integer("select count(*) from queen.queues where name = 'out2'"), 0);

    // That the fire has it is an answer, as on the route of its own.
    apply({{.key = "e"}});
    ASSERT_EQ(claim().size(), 1u);
    EXPECT_EQ(ride({cancel_of("e")}, {{"out2", "p", {"n"}}}), "too_late");
    EXPECT_EQ(sql.integer("select count(*) from queen.queues where name = 'out2'"), 1);
}

// F-64.
TEST_F(Timers, F64DeletingAQueueTakesItsTimersAlong) {
    const auto remove = [&](const std::string& queue) {
        return sql.one("select queen.delete_queue_v1($1, $2)", {kTenant, queue});
    };
    push("q", "p", {"m"});
    apply(
        {{.key = "a"}, {.key = "b", .delay = 60000}, {.key = "c"}, {.key = "x", .queue = "other"}});
    apply({{.key = "a"}}, kTenantB);
    const auto hands = claim({.per_tenant = 1});
    EXPECT_EQ(remove("q"), "t");
    EXPECT_EQ(sql.one("select string_agg(queue || tenant_id, ' ' order by queue) from "
                      "queen.log_timers"),
              "other" + std::string(kTenant) + " q" + kTenantB);
    for (const auto& hand : hands) {
        if (hand.tenant == kTenant && hand.queue == "q") {
            EXPECT_EQ(fire({{hand}}), "stale");
        }
    }
    EXPECT_EQ(sql.integer("select count(*) from queen.queues where tenant_id = $1", {kTenant}), 0)
        << "it stays deleted";
    EXPECT_EQ(remove("other"), "t") << "there was no such queue yet, and there will be none";
    EXPECT_EQ(remove("other"), "f");
    EXPECT_EQ(waiting(), 1);
}

// DM-5: no cleanup gets slower with the number of timers.
TEST_F(Timers, NoSqlFunctionOfTheCleanupNamesTheTable) {
    for (const auto& file : read_sql_files()) {
        if (file.name >= "025") {
            continue;
        }
        for (const auto& statement : file.statements) {
            if (statement.find("LANGUAGE sql") != std::string::npos) {
                EXPECT_EQ(statement.find("queen.log_timers"), std::string::npos) << statement;
            }
        }
    }
    EXPECT_EQ(sql.integer("select count(*) from pg_proc where pronamespace = "
                          "'queen'::regnamespace and proname like 'log_partition%' and prosrc like "
                          "'%log_timers%'"),
              0);
}

// Letter by letter as it was described: what a broker of another make reads.
TEST_F(Timers, TheTableIsAsDescribed) {
    EXPECT_EQ(sql.one("select string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod) "
                      "|| case when a.attnotnull then ' not null' else '' end, ', ' order by "
                      "a.attnum) from pg_attribute a where a.attrelid = "
                      "'queen.log_timers'::regclass and a.attnum > 0"),
              "tenant_id uuid not null, queue text not null, timer_key text not null, partition "
              "text not null, deliver_at timestamp with time zone not null, txn text not null, "
              "message_id uuid not null, payload bytea not null, payload_zstd boolean not null, "
              "encrypted boolean not null, producer_sub text, attempts integer not null, "
              "last_error text, claimed_until timestamp with time zone, claim_token uuid, shard "
              "smallint not null, visible_at timestamp with time zone not null, created_at "
              "timestamp with time zone not null, updated_at timestamp with time zone not null");
    EXPECT_EQ(sql.one("select string_agg(a.attname, ' ' order by a.attnum) from pg_attribute a "
                      "join pg_collation c on c.oid = a.attcollation and c.collname = 'C' where "
                      "a.attrelid = 'queen.log_timers'::regclass and a.attnum > 0"),
              "queue timer_key");
    EXPECT_EQ(sql.one("select string_agg(indexdef, '; ' order by indexname) from pg_indexes where "
                      "schemaname = 'queen' and tablename = 'log_timers'"),
              "CREATE INDEX idx_log_timers_visible ON queen.log_timers USING btree (shard, "
              "visible_at); CREATE UNIQUE INDEX log_timers_pkey ON queen.log_timers USING btree "
              "(tenant_id, queue, timer_key)");
    EXPECT_EQ(sql.integer("select count(*) from pg_constraint where conrelid = "
                          "'queen.log_timers'::regclass and contype = 'f'"),
              0);
    EXPECT_THAT(sql.one("select array_to_string(reloptions, ' ') from pg_class where oid = "
                        "'queen.log_timers'::regclass"),
                StartsWith("fillfactor=70"));
}

// ST-11
TEST_F(Timers, AreCountedForTheListOfQueuesEachFiveMinutes) {
    const auto figures = [&](std::string_view tenant) {
        return sql.one("select (l -> 'timerRows')::text || ' ' || (l -> 'timerBytes')::text from "
                       "queen.list_queues_v1($1) l",
                       {tenant});
    };
    const auto refresh = [&] { return sql.one("select queen.refresh_timer_stats_v1()"); };
    EXPECT_EQ(refresh(), "t");
    EXPECT_EQ(figures(kTenant), "0 0");
    apply_call({{.key = "a", .payload = "12345"}, {.key = "b", .queue = "r", .payload = "1"}})
        .run(sql);
    apply_call({{.key = "a", .payload = std::string(100'000, ' ') + "1"}}, kTenantB).run(sql);
    EXPECT_EQ(figures(kTenant), "0 0") << "asking counts nothing";
    EXPECT_EQ(refresh(), "t");
    EXPECT_EQ(figures(kTenant), "2 6");
    EXPECT_EQ(figures(kTenantB), "1 100001");
    apply_call({cancel_of("a")}).run(sql);
    apply_call({cancel_of("a")}, kTenantB).run(sql);
    clock(299);
    EXPECT_EQ(refresh(), "f");
    EXPECT_EQ(figures(kTenant), "2 6");
    clock(301);
    EXPECT_EQ(refresh(), "t");
    EXPECT_EQ(figures(kTenant), "1 1");
    EXPECT_EQ(figures(kTenantB), "0 0");
    clock(601);
    SqlSession other = connect();
    other.script("begin; select queen.refresh_timer_stats_v1()");
    EXPECT_EQ(refresh(), "f") << "somebody does";
    other.script("rollback");
    EXPECT_EQ(refresh(), "t");
}

} // namespace
} // namespace queen::test
