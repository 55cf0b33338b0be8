#include "sql/sql_fixture.hpp"

namespace queen::test {
namespace {

class AckAt : public SqlTest {
protected:
    /// "ok acked released covered" or the error.
    std::string at(std::int64_t upto, const std::string& worker = "w", bool ok = true) {
        return sql.one("select case when (a ->> 'ok')::bool then concat_ws(' ', a ->> 'acked', "
                       "a ->> 'leaseReleased', a ->> 'covered') else a ->> 'error' end from "
                       "queen.log_ack_at_v1($1, 'g', $2, $3, $4) a",
                       {pid(), worker, upto, ok});
    }
};

TEST_F(AckAt, ReachingTheEndOfTheBatchReleasesTheLease) {
    push("q", "p", {"a", "b", "c"});
    pop({.budget = 2});
    EXPECT_EQ(at(1), "2 true true");
    EXPECT_EQ(cursor("concat_ws(',', committed, worker_id, batch_end, attempt_count, "
                     "batch_retry_count, total_consumed)"),
              "1,0,0,2");
}

TEST_F(AckAt, LessMovesTheCursorAndKeepsTheLease) {
    push("q", "p", {"a", "b", "c"});
    pop({});
    EXPECT_EQ(at(0), "1 false false");
    EXPECT_EQ(cursor("concat_ws(',', committed, worker_id, batch_end)"), "0,w,2");
    EXPECT_EQ(pop({.worker = "w2"}), "");
    EXPECT_EQ(at(0), "0 false false");
    EXPECT_EQ(at(2), "2 true true");
}

TEST_F(AckAt, ANegativeAckGivesTheWholeBatchBack) {
    push("q", "p", {"a", "b"});
    pop({});
    EXPECT_EQ(at(1, "w", false), "0 true false");
    EXPECT_EQ(pop({}), "0+0*2");
    EXPECT_EQ(cursor("batch_retry_count || ',' || attempt_count"), "0,2");
}

TEST_F(AckAt, RefusalsAreTold) {
    push("q", "p", {"a", "b"});
    EXPECT_EQ(at(0), "consumer not found");
    pop({.budget = 1, .lease = 10});
    EXPECT_EQ(at(0, "other"), "invalid or expired lease");
    EXPECT_EQ(at(1), "position beyond leased batch");
    clock(10);
    EXPECT_EQ(at(0), "invalid or expired lease");
    EXPECT_EQ(at(0, ""), "1 true true"); // without a worker nothing is checked
    EXPECT_EQ(at(0, ""), "no leased batch");
    EXPECT_EQ(member(sql.one("select queen.log_ack_v1('q', 'nix', 'g', 'w', 0)"), "error"),
              "partition not found");
    EXPECT_EQ(member(sql.one("select queen.log_ack_v1('q', 'p', 'g', 'w', 0)"), "error"),
              "invalid or expired lease");
}

TEST_F(AckAt, ManyAtOnceAreAnsweredInInputOrder) {
    push("q", "p", {"a", "b"});
    push("q", "r", {"c"});
    pop({});
    pop({.partition = "r"});
    const std::string answer =
        sql.one("select queen.log_ack_multi_v1(array[$1, $2, $1, $3]::uuid[], "
                "array['g', 'g', 'g', 'g'], array[0, 0, 1, 0], array['w', 'w', 'w', 'w'], "
                "array[1, 1, 1, 1])",
                {pid("r"), pid("p"), "00000000-0000-0000-0000-000000000000"});
    EXPECT_EQ(sql.query("select coalesce(r ->> 'error', r ->> 'acked') from jsonb_array_elements("
                        "$1::jsonb -> 'results') with ordinality t (r, n) order by n",
                        {answer})
                  .column(0),
              "1 1 invalid or expired lease consumer not found");
    EXPECT_EQ(member(answer, "ok"), "true");
    EXPECT_EQ(sql.query("select concat_ws(',', r ->> 'queue', r ->> 'partition', r ->> 'covered') "
                        "from jsonb_array_elements($1::jsonb -> 'results') with ordinality t (r, "
                        "n) order by n limit 2",
                        {answer})
                  .column(0),
              "q,r,true q,p,false");
    EXPECT_EQ(sql.one("select queen.log_ack_multi_v1('{}', '{}', '{}', '{}', '{}')"),
              R"({"ok": true, "results": []})");
    EXPECT_THROW(sql.query("select queen.log_ack_multi_v1(array[$1]::uuid[], '{}', '{}', '{}', "
                           "'{}')",
                           {pid()}),
                 SqlError);
}

// AR-3: what memory knows of a batch is held against what is so.
TEST_F(AckAt, ManyAtOnceAreRefusedToAnotherTenantAndForABatchThatWasBegun) {
    push("q", "p", {"a", "b", "c"});
    push("q", "r", {"a", "b"});
    pop({.budget = 1, .auto_ack = true});
    pop({});
    pop({.partition = "r"});
    const auto multi = [&](const std::string& tenant, const std::vector<std::int64_t>& firsts) {
        return sql
            .query("select coalesce(r ->> 'error', r ->> 'acked') from jsonb_array_elements("
                   "queen.log_ack_multi_v1(array[$1, $2]::uuid[], array['g', 'g'], array[2, 1], "
                   "array['w', 'w'], array[0, 0], $3, $4) -> 'results') with ordinality t (r, n) "
                   "order by n",
                   {pid(), pid("r"), tenant, firsts})
            .column(0);
    };
    EXPECT_EQ(multi("00000000-0000-0000-0000-000000000002", {1, 0}),
              "partition not owned by tenant partition not owned by tenant");
    ack({{"b", "completed"}});
    EXPECT_EQ(multi(std::string(kTenant), {1, 0}), "batch was begun 2");
    EXPECT_EQ(cursor("concat_ws(',', committed, worker_id, total_consumed)"), "1,w,2");
    EXPECT_EQ(multi(std::string(kTenant), {2, 0}), "1 invalid or expired lease");
}

class AckByHash : public SqlTest {
protected:
    void lease(int budget = 100) { ASSERT_NE(pop({.budget = budget}), ""); }
    std::string state() {
        return cursor("concat_ws(' ', committed, coalesce(worker_id, '-'), batch_retry_count)");
    }
};

TEST_F(AckByHash, AllCompletedReleasesAndIsCovered) {
    push("q", "p", {"a", "b"});
    lease();
    const std::string answer = ack({{"b", "completed"}, {"a", "completed"}});
    EXPECT_EQ(answer, R"({"ok": true, "dlq": false, "off": null, "acked": 2, "filed": [], )"
                      R"("freed": false, "queue": "q", "covered": true, "dropped": false, )"
                      R"("letters": null, "partition": "p", "filedItems": [], )"
                      R"("noopHashes": [], "staleHashes": [], "leaseReleased": true, )"
                      R"("rejectedItems": [], "unresolvedHashes": []})");
    EXPECT_EQ(state(), "1 - 0");
    EXPECT_EQ(cursor("attempt_offset is null and attempt_count = 0"), "t");
}

// AK-3
TEST_F(AckByHash, TheHighestCompletedPositionTakesTheLowerOnesWithIt) {
    push("q", "p", {"a", "b", "c", "d"});
    lease();
    EXPECT_EQ(member(ack({{"c", "completed"}}), "acked"), "3");
    EXPECT_EQ(state(), "2 w 0");
    EXPECT_EQ(member(ack({{"d", "completed"}}), "covered"), "true");
}

TEST_F(AckByHash, APartialAckLetsTheAttemptFollow) {
    push("q", "p", {"a", "b", "c"});
    pop({.lease = 10});
    clock(20);
    lease();
    EXPECT_EQ(cursor("attempt_count || '@' || attempt_offset"), "2@0");
    ack({{"a", "completed"}});
    EXPECT_EQ(cursor("attempt_count || '@' || attempt_offset"), "2@1");
    clock(100);
    lease();
    EXPECT_EQ(cursor("attempt_count || '@' || attempt_offset"), "3@1");
}

// AK-6
TEST_F(AckByHash, RetryReleasesAndChargesNothing) {
    push("q", "p", {"a", "b"});
    lease();
    const std::string answer = ack({{"a", "retry"}, {"b", "completed"}});
    EXPECT_EQ(member(answer, "leaseReleased") + member(answer, "off") + member(answer, "covered"),
              "true0false");
    EXPECT_EQ(state(), "-1 - 0");
}

// AK-7: once per call, whatever the number of failed items.
TEST_F(AckByHash, FailedChargesTheBudgetOncePerCallUntilItIsSpent) {
    push("q", "p", {"a", "b", "c"});
    for (int failures = 1; failures <= 3; ++failures) {
        lease();
        const std::string answer = ack({{"a", "failed"}, {"b", "failed"}, {"c", "completed"}});
        EXPECT_EQ(member(answer, "dlq") + member(answer, "leaseReleased"), "falsetrue");
        EXPECT_EQ(state(), "-1 - " + std::to_string(failures));
    }
    // Spent: a dead letter is wanted, which this caller cannot bring (as brokers of the first
    // release): the lease ends and the head stays.
    lease();
    const std::string answer = ack({{"a", "failed"}});
    EXPECT_EQ(member(answer, "dlq") + member(answer, "off") + member(answer, "leaseReleased"),
              "true0true");
    EXPECT_EQ(state(), "-1 - 3");
    EXPECT_EQ(pop({}), "0+0*3");
}

TEST_F(AckByHash, WithoutDeadLettersASpentHeadIsDropped) {
    configure("q", R"({"retryLimit": 1, "deadLetterQueue": false, "dlqAfterMaxRetries": false})");
    push("q", "p", {"a", "b", "c"});
    lease();
    ack({{"b", "failed"}});
    lease();
    const std::string answer = ack({{"b", "failed"}});
    EXPECT_EQ(member(answer, "dropped") + member(answer, "off") + member(answer, "dlq") +
                  member(answer, "covered"),
              "true1falsefalse");
    EXPECT_EQ(state(), "1 - 0");
    EXPECT_EQ(pop({}), "0+2*1");
}

TEST_F(AckByHash, EitherFlagWantsDeadLetters) {
    for (const std::string flag : {"deadLetterQueue", "dlqAfterMaxRetries"}) {
        configure(flag,
                  R"({"retryLimit": 0, "deadLetterQueue": false, "dlqAfterMaxRetries": false,)"
                  R"( "mode": "replace"})");
        configure(flag, R"({"mode": "merge", ")" + flag + R"(": true})");
        push(flag, "p", {"a"});
        pop({.queue = flag});
        EXPECT_EQ(sql.one("select queen.log_ack_by_hash_v1($1, 'g', 'w', array[$2]::bytea[], "
                          "array['failed']) ->> 'dlq'",
                          {pid("p", flag), hash("a")}),
                  "true");
    }
}

// AK-8
TEST_F(AckByHash, DlqOfACallerWithoutLettersLeavesTheHead) {
    push("q", "p", {"a", "b"});
    lease();
    const std::string answer = ack({{"a", "completed"}, {"b", "dlq"}});
    EXPECT_EQ(member(answer, "dlq") + member(answer, "off") + member(answer, "acked"), "true11");
    EXPECT_EQ(state(), "0 - 0");
}

// AK-4
TEST_F(AckByHash, AtOnePositionDlqBeatsFailedBeatsRetry) {
    push("q", "p", {"a", "b"});
    lease();
    EXPECT_EQ(member(ack({{"a", "retry"}, {"a", "dlq"}, {"a", "failed"}}), "dlq"), "true");
    lease();
    ack({{"a", "retry"}, {"a", "failed"}});
    EXPECT_EQ(state(), "-1 - 1");
}

// F-35, AK-5
TEST_F(AckByHash, WhatDidNotResolveIsReported) {
    push("q", "p", {"a", "b"});
    push("q", "p", {"c"});
    pop({.budget = 1, .auto_ack = true});
    lease(1);
    const std::string answer = ack({{"nobody", "completed"}, {"a", "failed"}, {"c", "completed"}});
    EXPECT_EQ(member(answer, "noopHashes"), "[\"" + hash_hex("a") + "\"]");
    EXPECT_EQ(member(answer, "staleHashes"), "[\"" + hash_hex("c") + "\"]");
    EXPECT_EQ(member(answer, "unresolvedHashes"), "[\"" + hash_hex("nobody") + "\"]");
    EXPECT_EQ(member(answer, "acked") + member(answer, "leaseReleased"), "0false");
    EXPECT_EQ(state(), "0 w 0");
}

TEST_F(AckByHash, PurgedHashesAreUnresolved) {
    push("q", "p", {"a"});
    push("q", "p", {"b"});
    lease();
    sql.script("delete from queen.log_txns where base_offset = 0");
    sql.script("update queen.log_partitions set txns_start = 1");
    const std::string answer = ack({{"a", "completed"}});
    EXPECT_EQ(member(answer, "unresolvedHashes"), "[\"" + hash_hex("a") + "\"]");
    EXPECT_EQ(member(ack({{"b", "completed"}}), "covered"), "true");
}

TEST_F(AckByHash, AHashThatOccursTwiceTakesItsPositionsInOrder) {
    configure("q", R"({"dedupWindowSeconds": 0})");
    push("q", "p", {"a", "b", "a"});
    lease();
    EXPECT_EQ(member(ack({{"a", "completed"}}), "acked"), "1");
    EXPECT_EQ(member(ack({{"a", "completed"}}), "covered"), "true");
    push("q", "p", {"a", "b", "a"});
    lease();
    EXPECT_EQ(member(ack({{"a", "completed"}, {"b", "completed"}, {"a", "completed"}}), "covered"),
              "true");
}

TEST_F(AckByHash, ALeaselessAckMovesTheCursorAnywhereAboveIt) {
    push("q", "p", {"a", "b", "c"});
    pop({.budget = 1, .auto_ack = true});
    EXPECT_EQ(member(ack({{"c", "completed"}}, ""), "acked"), "2");
    EXPECT_EQ(state(), "2 - 0");
}

TEST_F(AckByHash, ALeaselessAckIsBoundedByALiveLease) {
    push("q", "p", {"a", "b", "c"});
    lease(2);
    const std::string answer = ack({{"b", "completed"}, {"c", "completed"}}, "");
    EXPECT_EQ(member(answer, "staleHashes"), "[\"" + hash_hex("c") + "\"]");
    EXPECT_EQ(member(answer, "leaseReleased") + member(answer, "covered"), "truetrue");
}

// K08
TEST_F(AckByHash, AWorkerWhoseLeaseExpiredChangesNothing) {
    push("q", "p", {"a"});
    pop({.lease = 2, .worker = "A"});
    clock(3);
    EXPECT_EQ(member(ack({{"a", "completed"}}, "A"), "error"), "invalid or expired lease");
    EXPECT_EQ(pop({.worker = "B"}), "0+0*1");
    EXPECT_EQ(member(ack({{"a", "completed"}}, "A"), "error"), "invalid or expired lease");
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(member(ack({{"a", "failed"}}, "A"), "ok"), "false");
    }
    EXPECT_EQ(sql.one("select queen.log_renew_lease_v1('A', 60)"),
              R"({"renewed": 0, "expiresAt": null})");
    EXPECT_FALSE(sql.yes("select queen.log_release_undelivered_v1($1, 'g', 'A')", {pid()}));
    EXPECT_EQ(state(), "-1 B 0");
    EXPECT_EQ(member(ack({{"a", "completed"}}, "B"), "covered"), "true");
    EXPECT_EQ(pop({.worker = "C"}), "");
}

// A client that lost the answer sends its ack again; the first one had ended the lease.
TEST_F(AckByHash, WhatIsSentAgainIsDoneAndDoesNothing) {
    push("q", "p", {"a", "b", "c"});
    pop({.budget = 2, .worker = "A"});
    ack({{"a", "completed"}, {"b", "completed"}}, "A");
    pop({.worker = "B"});
    const auto before = state();
    const auto again = ack({{"b", "completed"}, {"a", "completed"}}, "A");
    EXPECT_EQ(member(again, "ok"), "true");
    EXPECT_EQ(member(again, "repeated"), "true");
    EXPECT_EQ(member(again, "leaseReleased"), "false");
    EXPECT_NE(member(again, "noopHashes").find(hash("a").substr(2)), std::string::npos);
    // Anything beyond that is an ack of a lease that is lost.
    for (const auto& items : std::vector<std::vector<std::pair<std::string, std::string>>>{
             {{"a", "completed"}, {"c", "completed"}},
             {{"a", "completed"}, {"b", "failed"}},
             {{"never", "completed"}}}) {
        EXPECT_EQ(member(ack(items, "A"), "error"), "invalid or expired lease");
    }
    EXPECT_EQ(state(), before);
}

TEST_F(AckByHash, RefusalsAreTold) {
    push("q", "p", {"a"});
    EXPECT_EQ(member(ack({{"a", "completed"}}), "error"), "consumer not found");
    lease();
    const std::string call = "select queen.log_ack_by_hash_v1($1, 'g', 'w', array[$2]::bytea[], "
                             "array['completed'], $3)";
    EXPECT_EQ(
        member(sql.one(call, {pid(), hash("a"), "00000000-0000-0000-0000-000000000002"}), "error"),
        "partition not owned by tenant");
    EXPECT_EQ(member(sql.one(call, {"00000000-0000-0000-0000-000000000000", hash("a"), kTenant}),
                     "error"),
              "partition not found");
    EXPECT_THROW(ack({{"a", "done"}}), SqlError);
    EXPECT_EQ(member(sql.one(call, {pid(), hash("a"), kTenant}), "covered"), "true");
}

// K18: counting goes on after part of the batch was acknowledged and the worker died.
TEST_F(AckByHash, FailuresOfAHeadAddUpOverPartialAcksAndDeaths) {
    push("q", "p", {"1", "2", "3"});
    pop({.lease = 10});
    ack({{"1", "completed"}});
    ack({{"2", "failed"}});
    pop({.lease = 10}); // dies
    clock(20);
    for (int failures = 2; failures <= 3; ++failures) {
        EXPECT_EQ(pop({.lease = 10}), "0+1*2");
        EXPECT_EQ(member(ack({{"2", "failed"}}), "dlq"), "false");
        EXPECT_EQ(state(), "0 - " + std::to_string(failures));
    }
    pop({.lease = 10});
    EXPECT_EQ(member(ack({{"2", "failed"}}), "dlq"), "true");
}

TEST_F(AckByHash, PassingTheHeadThatFailedGivesItsSuccessorAFreshBudget) {
    configure("q", R"({"retryLimit": 2})");
    push("q", "p", {"a", "b", "c"});
    for (int i = 0; i < 2; ++i) {
        lease();
        ack({{"a", "failed"}});
    }
    lease();
    EXPECT_EQ(member(ack({{"a", "completed"}, {"b", "failed"}}), "dlq"), "false");
    EXPECT_EQ(state(), "0 - 1");
    // A lower head that fails meanwhile does not hide what the higher one has used up.
    lease();
    ack({{"b", "failed"}});
    EXPECT_EQ(state(), "0 - 2");
    lease();
    EXPECT_EQ(member(ack({{"b", "failed"}}), "dlq"), "true");
}

TEST_F(AckByHash, BothAckPathsResetTheCountersOfACompletedBatch) {
    for (const bool by_hash : {true, false}) {
        const std::string id = by_hash ? "a" : "b";
        push("q", "p", {id});
        lease();
        ack({{id, "failed"}});
        lease();
        EXPECT_EQ(cursor("batch_retry_count || ',' || attempt_count"), "1,2");
        if (by_hash) {
            ack({{id, "completed"}});
        } else {
            sql.query("select queen.log_ack_v1('q', 'p', 'g', 'w', 1)");
        }
        EXPECT_EQ(cursor("concat_ws(',', batch_retry_count, retry_offset, attempt_count, "
                         "attempt_offset)"),
                  "0,0");
    }
}

class Lease : public SqlTest {};

TEST_F(Lease, RenewingExtendsEveryLiveLeaseOfTheWorkerAndShortensNone) {
    push("q", "a", {"1"});
    push("q", "b", {"2"});
    push("q", "c", {"3"});
    pop({.partition = "a", .lease = 100});
    pop({.partition = "b", .lease = 10});
    pop({.partition = "c", .lease = 10, .worker = "other"});
    clock(5);
    EXPECT_EQ(sql.one("select queen.log_renew_lease_v1('w', 50)"),
              R"({"renewed": 2, "expiresAt": "2030-01-01T00:00:55.000000Z"})");
    const auto until = [&](const std::string& partition) {
        return cursor("extract(epoch from lease_expires_at - '2030-01-01 00:00:00+00')::int",
                      partition);
    };
    EXPECT_EQ(until("a") + " " + until("b") + " " + until("c"), "100 55 10");
    EXPECT_EQ(sql.one("select queen.log_renew_lease_v1('w', 0, array[$1]::uuid[])", {pid("b")}),
              R"({"renewed": 1, "expiresAt": "2030-01-01T00:00:55.000000Z"})");
    EXPECT_EQ(member(sql.one("select queen.log_renew_lease_v1('', 60)"), "renewed"), "0");
}

// An answer that could not be written is handed back as if it had never been.
TEST_F(Lease, ReleasingAnUndeliveredBatchRestoresTheAttempts) {
    push("q", "p", {"a", "b"});
    pop({.budget = 1});
    EXPECT_TRUE(sql.yes("select queen.log_release_undelivered_v1($1, 'g', 'w')", {pid()}));
    EXPECT_EQ(cursor("concat_ws(',', committed, worker_id, batch_end, attempt_offset, "
                     "attempt_count)"),
              "-1,0");
    EXPECT_FALSE(sql.yes("select queen.log_release_undelivered_v1($1, 'g', 'w')", {pid()}));
    pop({.budget = 1, .lease = 1});
    clock(2);
    pop({});
    EXPECT_EQ(cursor("attempt_count || '@' || attempt_offset"), "2@0");
    EXPECT_FALSE(sql.yes("select queen.log_release_undelivered_v1($1, 'g', 'x')", {pid()}));
    EXPECT_TRUE(sql.yes("select queen.log_release_undelivered_v1($1, 'g', 'w')", {pid()}));
    EXPECT_EQ(cursor("attempt_count || '@' || attempt_offset"), "1@0");
    pop({});
    EXPECT_EQ(cursor("attempt_count || '@' || attempt_offset"), "2@0");
}

TEST_F(Lease, AnExpiredLeaseIsNotReleased) {
    push("q", "p", {"a"});
    pop({.lease = 10});
    clock(10);
    EXPECT_FALSE(sql.yes("select queen.log_release_undelivered_v1($1, 'g', 'w')", {pid()}));
}

} // namespace
} // namespace queen::test
