// Dead letters, settling in order, and the delay after a failure.
#include "sql/sql_fixture.hpp"

#include <algorithm>

namespace queen::test {
namespace {

using Items = std::vector<std::pair<std::string, std::string>>; ///< id, status

/// Messages are "m<offset>", all of partition p.
class Letters : public SqlTest {
protected:
    void fill(int messages) {
        std::vector<std::string> ids;
        for (int i = 0; i < messages; ++i) {
            ids.push_back("m" + std::to_string(next_++));
        }
        push("q", "p", ids);
    }

    /// One call, with letters for these offsets; `last`: nothing else can be brought.
    std::string call(const Items& items, const std::vector<std::int64_t>& letters,
                     const std::vector<std::string>& errors = {}, bool last = false,
                     const std::string& worker = "w", SqlSession* session = nullptr) {
        std::vector<std::string> hashes, statuses;
        for (const auto& [id, status] : items) {
            hashes.push_back(hash(id));
            statuses.push_back(status);
        }
        return (session != nullptr ? *session : sql)
            .one("select queen.log_ack_by_hash_v1($1, 'g', $2, $3, $4, $5, $6, l.at, l.ids, "
                 "l.txns, l.traces, l.producers, l.payloads, l.encrypted, l.times, $8) from ("
                 "select coalesce(array_agg(o), '{}') as at, "
                 "array_agg(('00000000-0000-0000-0001-' || lpad(o::text, 12, '0'))::uuid) as ids, "
                 "array_agg('m' || o) as txns, "
                 "array_agg(('00000000-0000-0000-000' || (o % 2) || '-000000000000')::uuid) "
                 "as traces, array_agg(case when o % 2 = 0 then '' else 'sub' end) as producers, "
                 "array_agg(convert_to('{\"n\":' || o || '}', 'UTF8')) as payloads, "
                 "array_agg(o % 2 = 1) as encrypted, "
                 "array_agg(timestamptz '2029-12-31 00:00:00+00') as times "
                 "from unnest($7::bigint[]) o) l",
                 {pid(), worker, hashes, statuses, std::string(kTenant), errors, letters, last});
    }
    /// As a broker does: what is asked for is brought.
    std::string settle(const Items& items, const std::vector<std::string>& errors = {},
                       const std::string& worker = "w") {
        std::vector<std::int64_t> letters;
        for (;;) {
            const auto answer = call(items, letters, errors, false, worker);
            const auto rows = sql.query("select o::bigint from jsonb_array_elements(case when "
                                        "jsonb_typeof($1::jsonb -> 'letters') = 'array' then "
                                        "$1::jsonb -> 'letters' else '[]' end) o",
                                        {answer});
            if (rows.size() == 0) {
                return answer;
            }
            letters.clear();
            for (std::size_t i = 0; i < rows.size(); ++i) {
                letters.push_back(rows.integer(i, 0));
            }
        }
    }
    /// Offsets and retry counts of the letters, oldest first.
    std::string filed() {
        return sql.one("select coalesce(string_agg(\"offset\" || 'x' || retry_count, ' ' order by "
                       "\"offset\"), '') from queen.log_dlq");
    }
    std::string state() {
        return cursor("concat_ws(' ', committed, coalesce(worker_id, '-'), batch_retry_count)");
    }
    static Items all(int first, int last, const std::string& status = "completed") {
        Items items;
        for (int i = first; i <= last; ++i) {
            items.emplace_back("m" + std::to_string(i), status);
        }
        return items;
    }

    int next_ = 0;
};

TEST_F(Letters, TheFirstCallNamesThemAndChangesNothing) {
    fill(4);
    pop({});
    const std::string before = cursor("c::text");
    const std::string answer =
        call({{"m0", "completed"}, {"m1", "dlq"}, {"m2", "dlq"}, {"m3", "completed"}}, {});
    EXPECT_EQ(member(answer, "letters"), "[1, 2]");
    EXPECT_EQ(member(answer, "ok") + member(answer, "dlq") + member(answer, "off") +
                  member(answer, "queue") + member(answer, "partition"),
              "truetrue1qp");
    EXPECT_EQ(member(answer, "acked") + member(answer, "leaseReleased"), "0false");
    EXPECT_EQ(cursor("c::text"), before);
    EXPECT_EQ(filed(), "");
}

TEST_F(Letters, TheSecondCallFilesThemAndMovesTheCursor) {
    fill(5);
    pop({});
    const std::string answer =
        call({{"m0", "completed"}, {"m1", "dlq"}, {"m2", "dlq"}, {"m3", "completed"}}, {1, 2});
    EXPECT_EQ(member(answer, "letters"), "");
    EXPECT_EQ(member(answer, "filed") + member(answer, "filedItems") +
                  member(answer, "rejectedItems"),
              "[1, 2][1, 2][]");
    EXPECT_EQ(member(answer, "acked") + member(answer, "leaseReleased") +
                  member(answer, "covered") + member(answer, "dlq"),
              "4truefalsetrue");
    EXPECT_EQ(state(), "3 - 0");
    EXPECT_EQ(sql.query("select concat_ws(',', l.consumer_group, l.\"offset\", message_id, "
                        "transaction_id, trace_id, producer_sub, convert_from(payload, 'UTF8'), "
                        "encrypted, error, retry_count, extract(epoch from l.created_at)::bigint, "
                        "extract(epoch from failed_at)::bigint) from queen.log_dlq l join "
                        "queen.queues q on q.id = l.queue_id where q.name = 'q' and "
                        "partition_id = $1 order by \"offset\"",
                        {pid()})
                  .column(0),
              "g,1,00000000-0000-0000-0001-000000000001,m1,00000000-0000-0000-0001-000000000000,"
              "sub,{\"n\":1},t,Retries exhausted,0,1893369600,1893456000 "
              "g,2,00000000-0000-0000-0001-000000000002,m2,{\"n\":2},f,Retries exhausted,0,"
              "1893369600,1893456000");
    EXPECT_EQ(pop({}), "0+4*1");
}

TEST_F(Letters, MoreThanWereBroughtAreAskedForAgain) {
    fill(3);
    pop({});
    const Items items{{"m0", "dlq"}, {"m1", "dlq"}, {"m2", "dlq"}};
    EXPECT_EQ(member(call(items, {0, 2}), "letters"), "[0, 1, 2]");
    EXPECT_EQ(filed(), "");
    EXPECT_EQ(member(call(items, {0, 1, 2}), "filed"), "[0, 1, 2]");
}

TEST_F(Letters, WhatCannotBeBroughtStaysAndTheLeaseEnds) {
    fill(4);
    pop({});
    const std::string answer =
        call({{"m0", "dlq"}, {"m1", "failed"}, {"m1", "dlq"}, {"m2", "dlq"}, {"m3", "completed"}},
             {0, 2}, {}, true);
    EXPECT_EQ(member(answer, "filedItems") + member(answer, "rejectedItems"), "[0][1, 2]");
    EXPECT_EQ(member(answer, "leaseReleased"), "true");
    EXPECT_EQ(filed(), "0x0");
    EXPECT_EQ(pop({}), "0+1*3");
}

TEST_F(Letters, ALeaselessAckFilesToo) {
    fill(3);
    pop({.budget = 1, .auto_ack = true});
    EXPECT_EQ(member(settle({{"m1", "dlq"}, {"m2", "completed"}}, {}, ""), "acked"), "2");
    EXPECT_EQ(filed() + " " + state(), "1x0 2 - 0");
}

TEST_F(Letters, AnExpiredLeaseFilesNothing) {
    fill(1);
    pop({.lease = 10});
    EXPECT_EQ(member(call({{"m0", "dlq"}}, {}), "letters"), "[0]");
    clock(10);
    EXPECT_EQ(member(call({{"m0", "dlq"}}, {0}), "error"), "invalid or expired lease");
    EXPECT_EQ(filed(), "");
}

// K17: of ten, only the fifth fails; it alone goes, after three retries, and the rest once each.
TEST_F(Letters, K17OnlyThePoisonousMessageOfABatchIsDeadLettered) {
    fill(10);
    int deliveries = 0;
    std::string answer;
    do {
        ASSERT_EQ(pop({.budget = 10}), deliveries == 0 ? "0+0*10" : "0+5*5");
        ++deliveries;
        Items items = deliveries == 1 ? all(0, 9) : all(5, 9);
        items[deliveries == 1 ? 5 : 0].second = "failed";
        answer = settle(items);
    } while (member(answer, "dlq") == "false" && deliveries < 10);
    EXPECT_EQ(deliveries, 4);
    EXPECT_EQ(member(answer, "acked"), "5");
    EXPECT_EQ(filed(), "5x3");
    EXPECT_EQ(state() + cursor("'/' || total_consumed"), "9 - 0/10");
    EXPECT_EQ(pop({}), "");
}

// AK-10: the order of the batch decides; what was given up makes way, what comes back ends it.
TEST_F(Letters, SignalsAreSettledInOrderUntilOneHasToComeBack) {
    fill(8);
    pop({});
    const std::string answer = settle({{"m0", "dlq"},
                                       {"m1", "completed"},
                                       {"m2", "dlq"},
                                       {"m3", "retry"},
                                       {"m4", "dlq"},
                                       {"m5", "completed"}});
    EXPECT_EQ(member(answer, "filed") + member(answer, "acked") + member(answer, "off"),
              "[0, 2]30");
    EXPECT_EQ(state(), "2 - 0");
}

// A failed one after a dead letter has a budget of its own: it comes back, charged once.
TEST_F(Letters, WhatFollowsADeadLetterBeginsWithAFreshBudget) {
    configure("q", R"({"retryLimit": 1})");
    fill(3);
    for (const char* const want : {"-1 - 1", "0 - 1", "1 - 1", "2 - 0"}) {
        pop({});
        const int next =
            static_cast<int>(sql.integer("select committed + 1 from queen.log_consumers"));
        settle(all(next, 2, "failed"));
        EXPECT_EQ(state(), want);
    }
    EXPECT_EQ(filed(), "0x1 1x1 2x1");
}

TEST_F(Letters, WithoutRetriesEveryFailedOneGoesAtOnce) {
    configure("q", R"({"retryLimit": 0})");
    fill(3);
    pop({});
    const std::string answer = settle({{"m0", "failed"}, {"m1", "failed"}, {"m2", "completed"}});
    EXPECT_EQ(member(answer, "filed") + member(answer, "acked") + member(answer, "covered"),
              "[0, 1]3false");
    EXPECT_EQ(filed(), "0x0 1x0");
}

TEST_F(Letters, WhatNobodyNamedEndsItOnlyAboveTheHighestCompletedOne) {
    fill(8);
    pop({});
    EXPECT_EQ(
        member(settle({{"m1", "dlq"}, {"m3", "dlq"}, {"m4", "completed"}, {"m6", "dlq"}}), "filed"),
        "[1, 3]");
    EXPECT_EQ(state(), "4 - 0");
}

TEST_F(Letters, DroppedMessagesMakeWayLikeDeadLetters) {
    configure("q", R"({"retryLimit": 0, "deadLetterQueue": false, "dlqAfterMaxRetries": false})");
    fill(4);
    pop({});
    const std::string answer =
        settle({{"m0", "failed"}, {"m1", "failed"}, {"m2", "dlq"}, {"m3", "completed"}});
    EXPECT_EQ(member(answer, "dropped") + member(answer, "filed") + member(answer, "acked"),
              "true[2]4");
}

// DQ-3
TEST_F(Letters, TheErrorIsThatOfTheMessageElseOfTheHeadElseOfTheFirstThatFailed) {
    configure("q", R"({"retryLimit": 0})");
    fill(8);
    const auto errors = [&] {
        return sql.query("delete from queen.log_dlq returning \"offset\" || ':' || error")
            .column(0);
    };
    pop({.budget = 2});
    settle({{"m1", "failed"}, {"m0", "dlq"}}, {"", "own"});
    EXPECT_EQ(errors(), "0:own 1:own");
    pop({.budget = 2});
    settle({{"m3", "failed"}, {"m2", "dlq"}}, {"other", ""});
    EXPECT_EQ(errors(), "2:other 3:other");
    pop({.budget = 2});
    settle({{"m4", "completed"}, {"m5", "dlq"}, {"m5", "failed"}}, {"fine", "", "late"});
    EXPECT_EQ(errors(), "5:late");
    pop({.budget = 2});
    settle({{"m6", "dlq"}, {"m7", "dlq"}}, {"", ""});
    EXPECT_EQ(errors(), "6:Retries exhausted 7:Retries exhausted");
}

TEST_F(Letters, ArraysOfDifferentLengthAreRefused) {
    fill(1);
    pop({});
    EXPECT_THROW(call({{"m0", "dlq"}}, {}, {"a", "b"}), SqlError);
    EXPECT_THROW(sql.query("select queen.log_ack_by_hash_v1($1, 'g', 'w', array[$2]::bytea[], "
                           "array['dlq'], null, null, array[0])",
                           {pid(), hash("m0")}),
                 SqlError);
}

// The letter refers to its queue, so whoever deletes that is waited for before the cursor is
// locked.
TEST_F(Letters, AQueueThatIsBeingDeletedIsWaitedForWithoutADeadlock) {
    fill(1);
    pop({});
    SqlSession deleter = connect(), acker = connect();
    deleter.script("begin");
    deleter.query("select 1 from queen.queues where name = 'q' for update");
    const std::string id = pid();
    acker.send("select queen.log_ack_by_hash_v1($1, 'g', 'w', array[$2]::bytea[], array['dlq'], "
               "null, null, array[0], array[gen_random_uuid()], array['m0'], "
               "array[gen_random_uuid()], array[''], array['x'::bytea], array[false], "
               "array[now()])",
               {id, hash("m0")});
    sql.wait_for("exists (select from pg_locks where pid = $1 and not granted)",
                 {std::int64_t{acker.pid()}});
    deleter.query("select queen.delete_queue_v1($1, 'q')", {std::string(kTenant)});
    deleter.script("commit");
    EXPECT_EQ(member(acker.finish().get(0, 0), "error"), "partition not found");
    EXPECT_EQ(filed(), "");
}

class RetryDelay : public Letters {
protected:
    RetryDelay() { configure("q", R"({"retryDelay": 2500})"); }
};

TEST_F(RetryDelay, AChargeKeepsThePartitionFromTheGroup) {
    fill(2);
    pop({});
    const std::string answer = settle({{"m0", "failed"}});
    EXPECT_EQ(member(answer, "leaseReleased") + member(answer, "freed"), "truefalse");
    EXPECT_EQ(cursor("concat_ws(',', worker_id = '', batch_end, lease_acquired_at, "
                     "extract(epoch from lease_expires_at - '2030-01-01 00:00:00+00')::float)"),
              "t,2.5");
    clock(1);
    EXPECT_EQ(list({"p"}), "p=leased(1500)");
    EXPECT_EQ(wildcard({}), "");
    EXPECT_EQ(wildcard({.group = "other"}), "p:0+0*2");
    EXPECT_FALSE(sql.yes("select queen.log_has_pending_v1('q', 'g')"));
    EXPECT_FALSE(sql.yes("select queen.log_partition_has_pending_v1('q', 'p', 'g')"));
    clock(2.6);
    EXPECT_TRUE(sql.yes("select queen.log_has_pending_v1('q', 'g')"));
    EXPECT_TRUE(sql.yes("select queen.log_partition_has_pending_v1('q', 'p', 'g')"));
    EXPECT_EQ(list({"p"}), "p=took");
    EXPECT_EQ(cursor("concat_ws(',', worker_id, batch_end, attempt_count)"), "w,1,2");
}

TEST_F(RetryDelay, NeitherRetryNorDeadLetterNorDropDelays) {
    fill(3);
    pop({});
    settle({{"m0", "retry"}});
    EXPECT_EQ(pop({}), "0+0*3");
    settle({{"m0", "dlq"}});
    EXPECT_EQ(pop({}), "0+1*2");
    configure("q", R"({"mode": "merge", "retryLimit": 0, "deadLetterQueue": false,
                       "dlqAfterMaxRetries": false})");
    settle({{"m1", "failed"}});
    EXPECT_EQ(pop({}), "0+2*1");
}

// Its default is what nobody asked for, so it does not act.
TEST_F(RetryDelay, ActsOnlyWhenItWasSet) {
    for (const char* const options : {R"({})", R"({"retryDelay": null})", R"({"retryDelay": 0})"}) {
        configure("q", options);
        fill(1);
        pop({});
        settle({{"m" + std::to_string(next_ - 1), "failed"}, {"m0", "failed"}});
        EXPECT_NE(pop({}), "") << options;
        settle(all(0, next_ - 1));
    }
}

TEST_F(RetryDelay, IsNobodysLease) {
    fill(2);
    pop({});
    settle({{"m0", "failed"}});
    clock(1);
    EXPECT_EQ(member(sql.one("select queen.log_renew_lease_v1('', 60)"), "renewed"), "0");
    EXPECT_FALSE(sql.yes("select queen.log_release_undelivered_v1($1, 'g', '')", {pid()}));
    EXPECT_EQ(member(sql.one("select queen.log_ack_at_v1($1, 'g', '', 1)", {pid()}), "error"),
              "no leased batch");
    EXPECT_EQ(member(settle({{"m0", "failed"}}), "error"), "invalid or expired lease");
    const auto depth = sql.one("select queen.log_queue_depth_v1('q', 'g')");
    EXPECT_EQ(member(depth, "pending") + member(depth, "processing") + member(depth, "ready"),
              "200");
    const auto whole = sql.one("select queen.log_queue_depth_v1('q')");
    EXPECT_EQ(member(whole, "pending") + member(whole, "processing") + member(whole, "ready"),
              "200");
    EXPECT_EQ(list({"p"}), "p=leased(1500)");
}

TEST_F(RetryDelay, AnAckThatPassesTheMessageEndsIt) {
    fill(3);
    pop({.budget = 2});
    settle({{"m0", "completed"}, {"m1", "failed"}});
    EXPECT_EQ(member(settle({{"m1", "retry"}}, {}, ""), "freed"), "false");
    EXPECT_EQ(pop({}), "");
    const std::string answer = settle({{"m1", "completed"}}, {}, "");
    EXPECT_EQ(member(answer, "freed") + member(answer, "leaseReleased") + member(answer, "acked") +
                  member(answer, "covered"),
              "truefalse1false");
    EXPECT_EQ(pop({}), "0+2*1");
}

TEST_F(RetryDelay, AnotherFailureWhileItLastsBeginsItAgain) {
    fill(1);
    pop({});
    settle({{"m0", "failed"}});
    clock(2);
    const std::string answer = settle({{"m0", "failed"}}, {}, "");
    EXPECT_EQ(member(answer, "freed") + member(answer, "leaseReleased"), "falsefalse");
    EXPECT_EQ(state(), "-1  2");
    EXPECT_EQ(list({"p"}), "p=leased(2500)");
}

} // namespace
} // namespace queen::test
