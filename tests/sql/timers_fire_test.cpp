// What a timer driver asks for: due, claim, fire, fail, dead letter.
#include "sql/timers_fixture.hpp"

#include <gmock/gmock.h>

namespace queen::test {
namespace {

using testing::ElementsAre;

class TimersFire : public TimersTest {
protected:
    /// Timers k<first> to k<last> of a queue, due since `late` seconds; straight into the table.
    void fill(const std::string& tenant, const std::string& prefix, int n, double late) {
        sql.query("insert into queen.log_timers (tenant_id, queue, timer_key, \"partition\", "
                  "deliver_at, txn, message_id, payload) select $1, 'q', $2 || i, 'p', "
                  "queen._clock() - make_interval(secs => $3 + i * 1e-6), $2 || i, "
                  "gen_random_uuid(), '{}' from generate_series(1, $4::int) i",
                  {tenant, prefix, std::to_string(late), n});
    }
    static std::map<std::string, int> by_tenant(const std::vector<Hand>& hands) {
        std::map<std::string, int> counts;
        for (const auto& hand : hands) {
            ++counts[hand.tenant];
        }
        return counts;
    }
    std::string letters(const std::string& column) {
        return sql.one("select string_agg(" + column +
                       ", ' | ' order by transaction_id) from queen.log_dlq");
    }
};

TEST_F(TimersFire, DueSaysWhenAndHowMuch) {
    EXPECT_EQ(due(), "none 0 f 0");
    apply({{.key = "a", .delay = 1500}, {.key = "b", .delay = 3000}});
    EXPECT_EQ(due(), "1500 0 f 0");
    clock(1.5);
    EXPECT_EQ(due(), "0 1 f 0") << "the moment itself is due";
    clock(4);
    EXPECT_EQ(due(), "-2500 2 f 2500");
    EXPECT_EQ(due(2), "-2500 2 f 2500");
    EXPECT_EQ(due(1), "-2500 1 t 2500");
    const auto hands = claim({.lease = 10000, .rows = 1});
    EXPECT_EQ(keys_of(hands), "a");
    EXPECT_EQ(due(), "-1000 1 f 1000");
    claim({.lease = 10000});
    EXPECT_EQ(due(), "10000 0 f 0") << "until the first lease ends";
    const auto shard = sql.integer("select shard from queen.log_timers where timer_key = 'a'");
    EXPECT_EQ(due(10, std::int64_t{1} << shard), "10000 0 f 0");
    EXPECT_EQ(due(10, 0), "none 0 f 0");
}

// TM-1: the one thing that is promised.
TEST_F(TimersFire, NothingIsClaimedBeforeItsTime) {
    apply({{.key = "a", .delay = 1}, {.key = "past", .delay = -5}});
    EXPECT_EQ(keys_of(claim()), "past");
    clock(0.000999);
    EXPECT_EQ(keys_of(claim()), "");
    clock(0.001);
    EXPECT_EQ(keys_of(claim()), "a");
}

TEST_F(TimersFire, ShardsAreTheLowSixBitsAndAllOfThemCount) {
    std::vector<TimerText> ops;
    for (int i = 0; i < 250; ++i) {
        ops.push_back({.key = "k" + std::to_string(i)});
    }
    apply(ops);
    EXPECT_EQ(sql.integer("select count(distinct shard) from queen.log_timers where shard between "
                          "0 and 63"),
              sql.integer("select count(distinct hashtextextended(timer_key, 0) & 63) from "
                          "queen.log_timers"));
    const auto top = sql.integer("select count(*) from queen.log_timers where shard = 63");
    ASSERT_GT(top, 0);
    EXPECT_EQ(claim({.shards = std::numeric_limits<std::int64_t>::min()}).size(),
              static_cast<std::size_t>(top))
        << "the sign bit is shard 63";
    EXPECT_EQ(claim({.rows = 1000, .per_tenant = 1000}).size(),
              250 - static_cast<std::size_t>(top));
}

TEST_F(TimersFire, AClaimTellsAllAndGivesEachItsToken) {
    apply_call({{.key = "a", .delay = -2500}, {.key = "b", .delay = -3000}}).run(sql);
    const auto hands = claim();
    ASSERT_EQ(keys_of(hands), "b a") << "oldest first";
    EXPECT_EQ(hands[1].late_us, 2'500'000);
    EXPECT_EQ(hands[1].id, timer("a", "message_id"));
    EXPECT_EQ(hands[1].partition + hands[1].txn, "pt-a");
    EXPECT_NE(hands[0].token, hands[1].token);
    EXPECT_EQ(timer("a", "claim_token"), hands[1].token);
    EXPECT_EQ(timer("a", "claimed_until"), "2030-01-01 00:00:30+00");
    EXPECT_EQ(keys_of(claim()), "") << "they are in hand";
    clock(30);
    const auto again = claim();
    EXPECT_EQ(keys_of(again), "a b") << "the lease is over for both at once";
    EXPECT_NE(again[0].token, hands[1].token);
    EXPECT_EQ(again[0].id, hands[1].id) << "the same message (TM-6)";
    EXPECT_EQ(fire({{hands[1]}}), "stale") << "another has it now";
    EXPECT_EQ(timer("a", "claim_token"), again[0].token) << "and keeps it";
}

TEST_F(TimersFire, RowsAndTenantsHaveTheirMost) {
    fill(std::string(kTenant), "a", 300, 10);
    fill(kTenantB, "b", 20, 5);
    const auto hands = claim({.rows = 100, .per_tenant = 50});
    EXPECT_THAT(by_tenant(hands),
                ElementsAre(std::pair(std::string(kTenant), 50), std::pair(kTenantB, 20)));
    EXPECT_EQ(claim({.rows = 7, .per_tenant = 50}).size(), 7u);
}

// However large payloads are, no more is read than a broker keeps; one row always is.
TEST_F(TimersFire, AClaimEndsWithTheRowThatFillsItsBytes) {
    for (const char* key : {"a", "b", "c", "d"}) {
        apply({{.key = key, .payload = '"' + std::string(998, 'x') + '"'}});
    }
    EXPECT_EQ(claim({.bytes = 1}).size(), 1u);
    EXPECT_EQ(claim({.bytes = 1001}).size(), 2u);
    EXPECT_EQ(claim({.bytes = 1000}).size(), 1u);
    EXPECT_EQ(claim({.bytes = 1000}).size(), 0u);
}

// Whatever their size, a tenant's payloads leave room for what another has due.
TEST_F(TimersFire, ManyBytesOfSomeLeaveRoomForTheFewOfAnother) {
    for (const char* heavy :
         {"00000000-0000-0000-0000-00000000000a", "00000000-0000-0000-0000-00000000000b",
          "00000000-0000-0000-0000-00000000000c"}) {
        std::vector<TimerText> timers;
        for (int i = 0; i < 100; ++i) {
            timers.push_back(
                {.key = std::to_string(i), .payload = '"' + std::string(998, 'x') + '"'});
        }
        apply_call(timers, heavy).run(sql);
    }
    clock(1);
    apply_call({{.key = "light"}}, kTenantB).run(sql);
    EXPECT_THAT(by_tenant(claim({.bytes = 20'000})), testing::Contains(std::pair(kTenantB, 1)));
}

// A tenant's long backlog does not hide what just became due for another.
TEST_F(TimersFire, TenantsTakeTurnsBehindABacklogToo) {
    fill(std::string(kTenant), "a", 20000, 100);
    fill(kTenantB, "b", 30, 1);
    const auto hands = claim({.rows = 100, .per_tenant = 50});
    EXPECT_THAT(by_tenant(hands),
                ElementsAre(std::pair(std::string(kTenant), 50), std::pair(kTenantB, 30)));
    // Within a tenant and shard the oldest go first.
    EXPECT_EQ(sql.integer("select count(*) from queen.log_timers t where t.claim_token is not null "
                          "and exists (select from queen.log_timers o where o.tenant_id = "
                          "t.tenant_id and o.shard = t.shard and o.claim_token is null and "
                          "o.deliver_at < t.deliver_at)"),
              0);
}

TEST_F(TimersFire, OneShardMayUseWhatTheOthersLeave) {
    fill(std::string(kTenant), "a", 3000, 10);
    EXPECT_GE(claim({.shards = 1, .rows = 40}).size(), 32u);
    EXPECT_EQ(claim({.rows = 200}).size(), 200u);
}

// TM-4: stored and gone, in one transaction; provisioned as by a push.
TEST_F(TimersFire, FiresIntoQueuesThatItMakes) {
    apply({{.key = "a", .queue = "mail.send"},
           {.key = "b", .queue = "mail.send"},
           {.key = "c", .queue = "mail.send", .partition = "r"},
           {.key = "d"}});
    const auto hands = claim_by_key();
    EXPECT_EQ(fire(packed(hands)), "fired:0 fired:0 fired:0");
    EXPECT_EQ(waiting(), 0);
    EXPECT_EQ(stored("mail.send"), "t-a,t-b");
    EXPECT_EQ(stored("mail.send", "r"), "t-c");
    EXPECT_EQ(sql.one("select namespace || ' ' || task || ' ' || lease_time from queen.queues "
                      "where name = 'mail.send'"),
              "mail send 60")
        << "as a push makes it";
    EXPECT_EQ(pop({.queue = "mail.send"}), "0+0*2");
    apply({{.key = "e", .queue = "mail.send"}});
    EXPECT_EQ(fire(packed(claim())), "fired:2");
    EXPECT_EQ(fire({}), "");
}

// The guarantee is the one transaction, and no window: a txn that is in the log already is stored
// again, since the timer is another message.
TEST_F(TimersFire, TheDedupWindowIsNotAsked) {
    push("q", "p", {"t-a"});
    apply({{.key = "a"}});
    EXPECT_EQ(fire(packed(claim())), "fired:1");
    EXPECT_EQ(stored(), "t-a t-a");
}

class TimersDuplicate : public TimersTest {
protected:
    TimersDuplicate() : TimersTest(Database::own) {}
};

TEST_F(TimersDuplicate, WhatIsInTheLogAllTheSameIsADuplicateAndGoes) {
    mutate({"log_timers_fire_v1", "v_seg.last_offset, p_blobs", "-1, p_blobs"});
    push("q", "p", {"t-a"});
    apply({{.key = "a"}, {.key = "b", .partition = "r"}});
    const auto hands = claim_by_key();
    EXPECT_EQ(fire(packed(hands)), "duplicate fired:0");
    EXPECT_EQ(waiting(), 0);
    EXPECT_EQ(stored(), "t-a");
}

TEST_F(TimersFire, ASegmentWithARowThatIsGoneIsStaleAndTheRestIsFreeAtOnce) {
    apply({{.key = "a"}, {.key = "b"}, {.key = "c", .partition = "r"}});
    const auto hands = claim_by_key();
    sql.script("delete from queen.log_timers where timer_key = 'b'");
    EXPECT_EQ(fire(packed(hands)), "stale fired:0");
    EXPECT_EQ(stored(), "");
    EXPECT_EQ(stored("q", "r"), "t-c");
    EXPECT_EQ(timer("a", "claim_token"), "");
    EXPECT_EQ(timer("a", "attempts"), "0");
    EXPECT_EQ(keys_of(claim()), "a") << "at once";
    EXPECT_EQ(sql.integer("select count(*) from queen.log_partitions where name = 'p'"), 0)
        << "nothing is made for what is stale";
}

TEST_F(TimersFire, ArgumentsThatDoNotFitChangeNothing) {
    apply({{.key = "a"}, {.key = "b"}});
    const auto hands = claim();
    EXPECT_EQ(fire({{hands[0]}, {hands[1]}}), "22023") << "two segments of one partition";
    EXPECT_EQ(fire({{hands[0], hands[0]}}), "22023") << "a row twice";
    const auto good = fire_call({hands});
    for (std::size_t i = 0; i < good.args.size(); ++i) {
        auto shorter = good;
        shorter.args[i] = "{}";
        EXPECT_EQ(shorter.words(sql), "22023") << i;
    }
    auto other = good;
    other.args[6] = std::vector<std::int64_t>{1, 2};
    EXPECT_EQ(other.words(sql), "22023") << "a row without a segment";
    auto nameless = good;
    nameless.args[2] = std::vector<std::string>{""};
    EXPECT_EQ(nameless.words(sql), "22023");
    EXPECT_EQ(waiting(), 2);
    EXPECT_EQ(good.words(sql), "fired:0");
}

// The flag travels with the frame: what the queue wants by now is not asked.
TEST_F(TimersFire, ADestinationThatIsEncryptedMeanwhileTakesWhatWasStaged) {
    apply({{.key = "a"}});
    configure("q", R"({"encryptionEnabled":true})");
    EXPECT_EQ(fire(packed(claim())), "fired:0");
}

// F-40: a name that no partition can have fails its call and only that; one by one the others go.
TEST_F(TimersFire, F40OnePoisonedTimerAmongTwoHundred) {
    std::string poison; // incompressible, so beyond what an index row takes
    for (int i = 0; i < 300; ++i) {
        poison += hash_hex(std::to_string(i));
    }
    std::vector<TimerText> ops;
    for (int i = 0; i < 200; ++i) {
        ops.push_back({.key = "k" + std::to_string(i), .partition = "p" + std::to_string(i)});
    }
    ops[77].partition = poison;
    apply(ops);
    const auto hands = claim();
    ASSERT_EQ(hands.size(), 200u);
    EXPECT_EQ(fire(packed(hands)), "54000");
    EXPECT_EQ(waiting(), 200);
    int failed = 0;
    for (const auto& segment : packed(hands)) {
        const auto said = fire({segment});
        if (said == "54000") {
            ++failed;
            EXPECT_EQ(fail(segment), "1:");
            EXPECT_EQ(segment[0].key, "k77");
        } else {
            EXPECT_EQ(said, "fired:0");
        }
    }
    EXPECT_EQ(failed, 1);
    EXPECT_EQ(timer("k77", "attempts"), "1");
    EXPECT_EQ(waiting(), 1);
    // Its queue can be made, so the letter has a place.
    sql.script("update queen.log_timers set attempts = 5");
    EXPECT_EQ(dead_letter({hands[77]}) + dead_letter(hands), "01") << "by key";
}

// F-41: what was no attempt costs none.
TEST_F(TimersFire, F41OnlyWhatCountsIsCounted) {
    apply({{.key = "a"}, {.key = "b"}});
    for (int round = 0; round < 20; ++round) {
        const auto hands = claim();
        ASSERT_EQ(hands.size(), 2u);
        EXPECT_EQ(fail(hands, {.backoff = 1000, .counted = false, .most = 5}), "2:");
        clock(2 * (round + 1));
    }
    EXPECT_EQ(timer("a", "attempts") + timer("a", "last_error"), "0");
    EXPECT_EQ(fail(claim(), {.backoff = 1000, .counted = true, .most = 2}), "2:");
    EXPECT_EQ(timer("a", "attempts") + timer("a", "last_error"), "1it does not fit");
    EXPECT_EQ(timer("a", "claim_token"), "");
    EXPECT_EQ(sql.one("select visible_at - queen._clock() from queen.log_timers limit 1"),
              "00:00:01");
    clock(42);
    auto last = claim();
    EXPECT_EQ(last.at(0).attempts, 1);
    EXPECT_EQ(fail(last, {.backoff = 0, .counted = false}), "2:");
    EXPECT_EQ(
        sql.one("select count(*) filter (where visible_at = deliver_at) from queen.log_timers"),
        "2")
        << "given back without a backoff they keep their place";
    last = claim();
    EXPECT_EQ(fail(last, {.counted = true, .most = 2}), "2:a,b");
    EXPECT_EQ(fail(last, {.counted = true, .most = 2}), "0:") << "not in hand any more";
}

TEST_F(TimersFire, DeadLettersKeepWhatTheTimerWas) {
    apply_call({{.key = "a", .payload = R"({"n": 1.0})"}}, std::string(kTenant), "sub").run(sql);
    apply({{.key = "b", .payload = std::string("\xff\0z", 3)},
           {.key = "c", .payload = R"({"encrypted":"x"})", .encrypted = true},
           {.key = "d", .payload = "{}", .zstd = true, .encrypted = true},
           {.key = "e", .payload = R"("\u0000")"},
           {.key = "f", .payload = "not json"},
           {.key = "few"}});
    const auto hands = claim();
    EXPECT_EQ(dead_letter(hands, 0), "0") << "in hand";
    fail(hands, {.most = 1});
    sql.script("update queen.log_timers set attempts = 0 where timer_key = 'few'");
    clock(7);
    EXPECT_EQ(dead_letter(hands, 1), "6");
    EXPECT_EQ(keys_of(claim()), "few");
    EXPECT_EQ(letters("transaction_id"), "t-a | t-b | t-c | t-d | t-e | t-f");
    EXPECT_EQ(letters("convert_from(payload, 'UTF8')"),
              R"({"n": 1.0} | {"_raw_b64": "/wB6"} | {"encrypted":"x"} | )"
              R"({"_zstd": true, "_raw_b64": "e30=", "_encrypted": true} | "\u0000" | )"
              R"({"_raw_b64": "bm90IGpzb24="})");
    EXPECT_EQ(letters("encrypted::text"), "false | false | true | false | false | false");
    EXPECT_EQ(
        sql.one("select concat_ws(' ', consumer_group, \"offset\", partition_id = queue_id, "
                "partition_name, timer_key, producer_sub, error, retry_count, created_at, "
                "failed_at, message_id is not "
                "null) from queen.log_dlq where transaction_id = 't-a'"),
        "__timer__ -1 t p a sub it does not fit 1 2030-01-01 00:00:00+00 2030-01-01 00:00:07+00 "
        "t");
    // As the list shows them.
    EXPECT_EQ(sql.one("select count(*) || ' ' || min(l.partition) || min(l.consumer_group) from "
                      "queen.log_dlq_list_v1($1, 'q', null, null, null, null, null, null, 100, 0, "
                      "100000) l",
                      {kTenant}),
              "6 p__timer__");
}

// A letter of a timer is named by queue and transaction, whoever else has such a transaction.
TEST_F(TimersFire, LettersOfTimersAreThoseOfTheirQueueAlone) {
    apply_call({{.key = "a", .txn = "t"},
                {.key = "b", .partition = "r", .txn = "t"},
                {.key = "a", .queue = "other", .txn = "t"}},
               std::string(kTenant))
        .run(sql);
    apply_call({{.key = "a", .txn = "t"}}, kTenantB).run(sql);
    sql.script("update queen.log_timers set attempts = 5");
    EXPECT_EQ(sql.one("select queen.log_timers_dlq_v1(array[$1::uuid, $1, $1, $2], array['q', 'q', "
                      "'other', 'q'], array['a', 'b', 'a', 'a'], 5)",
                      {kTenant, kTenantB}),
              "4");
    const auto queue_id = [&](std::string_view tenant, const std::string& queue) {
        return sql.one("select id from queen.queues where tenant_id = $1 and name = $2",
                       {tenant, queue});
    };
    const auto list = [&](SqlArg queue, const std::string& partition) {
        return sql
            .query("select total || ' ' || queue || ' ' || partition || ' ' || timer_key || "
                   "(partition_id = $3)::text from queen.log_dlq_list_v1($1, $2, null, $4, "
                   "null, null, null, null, 100, 0, 100000) l where id is not null order by 1",
                   {kTenant, queue, queue_id(kTenant, "q"), partition})
            .column(0);
    };
    EXPECT_EQ(list("q", "r"), "1 q r btrue");
    EXPECT_EQ(list("q", "p"), "1 q p atrue");
    EXPECT_EQ(list(nullptr, "p"), "2 other p afalse 2 q p atrue");
    EXPECT_EQ(list("q", "x"), "");
    const auto newest = [&](std::string_view tenant, const std::string& id) {
        return sql.query("select queue from queen.log_dlq_newest_v1($1, $2, 't')", {tenant, id})
            .column(0);
    };
    EXPECT_EQ(newest(kTenant, queue_id(kTenant, "q")), "q");
    EXPECT_EQ(newest(kTenant, queue_id(kTenant, "other")), "other");
    EXPECT_EQ(newest(kTenant, queue_id(kTenantB, "q")), "");
    EXPECT_EQ(newest(kTenant, "00000000-0000-0000-0000-000000000000"), "");
    const auto remove = [&](std::string_view tenant, const std::string& id) {
        return sql.one("select queen.delete_message_v1($1, $2, 't')", {tenant, id});
    };
    EXPECT_EQ(remove(kTenant, "00000000-0000-0000-0000-000000000000"), "0");
    EXPECT_EQ(remove(kTenant, queue_id(kTenantB, "q")), "0");
    EXPECT_EQ(remove(kTenant, queue_id(kTenant, "q")), "2");
    EXPECT_EQ(sql.integer("select count(*) from queen.log_dlq"), 2);
}

// A letter of a timer has no partition, so it keeps none from being cleaned up.
TEST_F(TimersFire, LettersOfTimersKeepNoPartition) {
    configure("q", "{}");
    sql.script("insert into queen.log_partitions (queue_id, name, created_at, last_write_at) "
               "select id, 'p', queen._clock() - interval '40 d', queen._clock() - interval '40 d' "
               "from queen.queues");
    apply({{.key = "a"}});
    const auto hands = claim();
    fail(hands, {.most = 1});
    EXPECT_EQ(dead_letter(hands, 1), "1");
    EXPECT_EQ(sql.one("select queen.log_partition_dead_v1($1, queen._clock() - interval '30 d')",
                      {pid()}),
              "t");
}

TEST_F(TimersFire, LettersOfManyQueuesAndTenants) {
    apply({{.key = "a"}, {.key = "b", .queue = "other"}});
    apply({{.key = "a"}}, kTenantB);
    const auto hands = claim();
    fail(hands, {.most = 1});
    EXPECT_EQ(dead_letter(hands, 1), "3");
    EXPECT_EQ(sql.one("select string_agg(q.name || right(q.tenant_id::text, 1), ' ' order by "
                      "q.tenant_id, q.name) from queen.log_dlq d join queen.queues q on q.id = "
                      "d.queue_id"),
              "other1 q1 q2");
}

} // namespace
} // namespace queen::test
