#include "sql/transaction_fixture.hpp"

#include <gmock/gmock.h>

namespace queen::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class Transaction : public SqlTest {
protected:
    std::string run(const TransactionText& what) { return verdict(sql, what); }

    /// Everything a transaction could change.
    std::string state() {
        return sql.one(
            "select concat_ws(E'\\n', "
            "(select string_agg(q.name, ',' order by q.name) from queen.queues q), "
            "(select string_agg(p::text, ',' order by p.id) from queen.log_partitions p), "
            "(select string_agg(s::text, ',' order by s.partition_id, s.base_offset) from "
            "queen.log_segments s), "
            "(select string_agg(t::text, ',' order by t.partition_id, t.base_offset) from "
            "queen.log_txns t), "
            "(select string_agg(c::text, ',' order by c.partition_id, c.consumer_group) from "
            "queen.log_consumers c), "
            "(select string_agg(d::text, ',' order by d.id) from queen.log_dlq d))");
    }
    /// It fails as told, and nothing is different.
    void expect_refusal(const TransactionText& what, const std::string& text) {
        const auto before = state();
        EXPECT_THAT(run(what), HasSubstr(text));
        EXPECT_EQ(state(), before);
    }
    std::string lease(const std::string& worker, const std::string& queue = "in",
                      const std::string& partition = "p", int budget = 100) {
        return pop({.queue = queue, .partition = partition, .budget = budget, .worker = worker});
    }
    TransactionText::Ack done(const std::string& id, const std::string& worker,
                              const std::string& status = "completed") {
        return {.pid = pid("p", "in"), .group = "g", .worker = worker, .id = id, .status = status};
    }
    std::string committed() { return cursor("committed", "p", "g", "in"); }
};

TEST_F(Transaction, StoresAndSettlesAtOnceAndAnswersByPlace) {
    push("in", "p", {"a", "b"});
    push("out", "y", {"old"});
    lease("w");
    const auto answer = transact(sql, {.pushes = {{"out", "z", {"n1"}}, {"out", "y", {"n2", "n3"}}},
                                       .acks = {done("b", "w"), done("a", "w")}});
    EXPECT_EQ(sql.one("select string_agg((p ->> 'status') || (p ->> 'baseOffset'), ' ' order by n) "
                      "from jsonb_array_elements($1::jsonb -> 'pushes') with ordinality t (p, n)",
                      {answer}),
              "queued0 queued1");
    EXPECT_EQ(sql.one("select $1::jsonb #- '{acks,0,partitionId}' -> 'acks' @> "
                      "'[{\"group\": \"g\", \"queue\": \"in\", \"partition\": \"p\", \"items\": "
                      "[0, 1], \"leaseReleased\": true, \"covered\": true, \"filed\": []}]'",
                      {answer}),
              "t")
        << answer;
    EXPECT_EQ(committed(), "1");
    EXPECT_EQ(sql.one("select last_offset from queen.log_partitions where name = 'z'"), "0");
}

TEST_F(Transaction, NothingAtAllIsFine) {
    EXPECT_EQ(transact(sql, {}), R"({"acks": [], "pushes": []})");
}

// TX-3: unlike a push, which leaves the other segments alone.
TEST_F(Transaction, ADuplicateTakesEverythingBackAndNamesEachMessage) {
    push("in", "p", {"a"});
    push("out", "y", {"old", "older"});
    lease("w");
    const TransactionText what{
        .pushes = {{"new-queue", "x", {"n1"}}, {"out", "y", {"n2", "older", "old"}}},
        .acks = {done("a", "w")}};
    expect_refusal(what, R"([{"i": 1, "s": 1, "off": 1}, {"i": 2, "s": 1, "off": 0}])");
    EXPECT_THAT(run(what), StartsWith("23505: ERROR:  QDUP: "));
    EXPECT_EQ(committed(), "-1");
}

TEST_F(Transaction, AnAckThatIsNotHonouredTakesEverythingBack) {
    push("in", "p", {"a", "b", "c"});
    lease("w", "in", "p", 2);
    const auto with = [&](TransactionText::Ack ack) {
        return TransactionText{.pushes = {{"out", "z", {"n"}}}, .acks = {std::move(ack)}};
    };
    expect_refusal(with(done("a", "other")), R"("invalid or expired lease")");
    expect_refusal(with(done("c", "w")), R"([{"n": 0, "error": "stale"}])");
    expect_refusal(with(done("never", "w")), R"([{"n": 0, "error": "unresolved"}])");
    expect_refusal(with({pid("p", "in"), "nobody", "w", "a"}), R"("consumer not found")");
    expect_refusal(with({"00000000-0000-0000-0000-00000000dead", "g", "w", "a"}),
                   R"("partition not found")");
    EXPECT_THAT(run(with(done("c", "w"))), StartsWith("QTXN0: ERROR:  QTXN: "));
    clock(61);
    expect_refusal(with(done("a", "w")), R"("invalid or expired lease")");
}

// Somebody else may have settled it: what goes with this ack must not happen twice.
TEST_F(Transaction, AnAckSentAgainAfterItsLeaseEndedIsRefused) {
    push("in", "p", {"a"});
    lease("w");
    EXPECT_EQ(run({.pushes = {{"out", "z", {"n"}}}, .acks = {done("a", "w")}}), "ok");
    expect_refusal({.pushes = {{"out", "z", {"m"}}}, .acks = {done("a", "w")}},
                   R"("invalid or expired lease")");
}

// The acks before it in the lock order had been done.
TEST_F(Transaction, ALaterRefusalTakesEarlierAcksBack) {
    push("in", "p", {"a"});
    push("in", "q", {"b"});
    lease("w");
    ASSERT_NE(pop({.queue = "in", .partition = "q", .worker = "w"}), "");
    for (const std::string bad : {"p", "q"}) { // whichever id is the lower one
        TransactionText what{
            .acks = {done("a", "w"),
                     {.pid = pid("q", "in"), .group = "g", .worker = "w", .id = "b"}}};
        what.acks[bad == "p" ? 0 : 1].id = "never";
        expect_refusal(what, "unresolved");
    }
}

TEST_F(Transaction, ARepeatedCompletedAckIsHonouredARepeatedNackIsNot) {
    push("in", "p", {"a", "b"});
    lease("w");
    ASSERT_EQ(run({.acks = {done("a", "w")}}), "ok");
    EXPECT_EQ(committed(), "0");
    EXPECT_EQ(run({.acks = {done("a", "w")}}), "ok");
    for (const std::string word : {"failed", "retry", "dlq"}) {
        expect_refusal({.acks = {done("a", "w", word)}}, R"([{"n": 0, "error": "noop"}])");
    }
}

TEST_F(Transaction, SignalsSettleAsInAnAck) {
    push("in", "p", {"a", "b", "c"});
    lease("w");
    ASSERT_EQ(run({.acks = {done("a", "w"), done("b", "w", "failed"), done("c", "w")}}), "ok");
    EXPECT_EQ(committed(), "0");
    EXPECT_EQ(cursor("worker_id is null and batch_retry_count = 1", "p", "g", "in"), "t");
}

// A partition id learned elsewhere does nothing.
TEST_F(Transaction, APartitionOfAnotherTenantIsRefused) {
    push("in", "p", {"a"});
    lease("w");
    expect_refusal(
        {.acks = {done("a", "w")}, .leases = {}, .tenant = "00000000-0000-0000-0000-000000000002"},
        "partition not owned by tenant");
    expect_refusal({.acks = {done("a", "")},
                    .leases = {"w"},
                    .tenant = "00000000-0000-0000-0000-000000000002"},
                   "not");
    expect_refusal({.pushes = {{"out", "z", {"n"}}},
                    .acks = {},
                    .leases = {"w"},
                    .tenant = "00000000-0000-0000-0000-000000000002"},
                   R"([{"lease": "w"}])");
}

// TX-5
TEST_F(Transaction, AnAckWithoutALeaseIsTheHoldersWhoMustBeRequired) {
    push("in", "p", {"a", "b"});
    lease("w");
    expect_refusal({.acks = {done("a", "")}, .leases = {"other"}}, R"("invalid or expired lease")");
    EXPECT_EQ(run({.acks = {done("a", "")}, .leases = {"w"}}), "ok");
    EXPECT_EQ(committed(), "0");
    EXPECT_EQ(run({.acks = {done("b", "")}}), "ok") << "without any lease: lease-less";
    EXPECT_EQ(committed(), "1");
    EXPECT_EQ(cursor("worker_id is null", "p", "g", "in"), "t");
    expect_refusal({.acks = {done("b", "")}, .leases = {"w"}}, R"("invalid or expired lease")");
}

TEST_F(Transaction, AnAcksOwnLeaseWinsAndCountsForTheOthers) {
    push("in", "p", {"a", "b"});
    push("in", "q", {"c"});
    lease("w");
    ASSERT_NE(pop({.queue = "in", .partition = "q", .worker = "v"}), "");
    expect_refusal({.acks = {done("a", "v")}, .leases = {"w"}}, R"("invalid or expired lease")");
    const TransactionText::Ack other{.pid = pid("q", "in"), .group = "g", .worker = "", .id = "c"};
    expect_refusal({.acks = {done("a", "w"), other}}, R"([{"n": 1, )");
    // One ack under two names: by the lease it gives and as the holder's.
    EXPECT_EQ(run({.acks = {done("a", "w"), done("b", ""), other}, .leases = {"v"}}), "ok");
    EXPECT_EQ(committed(), "1");
    EXPECT_EQ(cursor("committed", "q", "g", "in"), "0");
}

TEST_F(Transaction, ARequiredLeaseGuardsWhatItDoesNotAck) {
    push("in", "p", {"a"});
    push("in", "q", {"b"});
    const TransactionText guarded{.pushes = {{"out", "z", {"n"}}}, .acks = {}, .leases = {"w"}};
    expect_refusal(guarded, R"(QTXN: 1 required leases are not live)");
    lease("w");
    EXPECT_EQ(run(guarded), "ok");
    // Beside an ack of another lease.
    ASSERT_NE(pop({.queue = "in", .partition = "q", .worker = "v"}), "");
    const TransactionText::Ack other{.pid = pid("q", "in"), .group = "g", .worker = "v", .id = "b"};
    expect_refusal({.acks = {other}, .leases = {"v", "gone"}}, R"([{"lease": "gone"}])");
    EXPECT_EQ(run({.acks = {other}, .leases = {"v", "w"}}), "ok");
    clock(61);
    expect_refusal({.pushes = {{"out", "z", {"m"}}}, .acks = {}, .leases = {"w"}},
                   R"([{"lease": "w"}])");
}

TEST_F(Transaction, AMessageOfTheSameTransactionCanBeSettledInIt) {
    push("in", "p", {"a"});
    lease("w");
    ASSERT_EQ(run({.acks = {done("a", "w")}}), "ok");
    EXPECT_EQ(run({.pushes = {{"in", "p", {"b"}}}, .acks = {done("b", "")}}), "ok");
    EXPECT_EQ(committed(), "1");
}

// Dead letters are filed inside the transaction: first it says what it wants and does nothing.
TEST_F(Transaction, DeadLettersAreAskedForAndThenFiledWithTheRest) {
    push("in", "p", {"a", "b", "c"});
    push("in", "q", {"d"});
    lease("w");
    ASSERT_NE(pop({.queue = "in", .partition = "q", .worker = "v"}), "");
    TransactionText what{
        .pushes = {{"out", "z", {"n"}}},
        .acks = {done("a", "w"),
                 done("b", "w", "dlq"),
                 done("c", "w", "dlq"),
                 {.pid = pid("q", "in"), .group = "g", .worker = "v", .id = "d", .status = "dlq"}}};
    what.acks[2].error = "why c";
    expect_refusal(what, R"("offsets": [1, 2])");
    EXPECT_THAT(run(what), StartsWith("QDLQ0: ERROR:  QDLQ: 2 acks"));
    what.letters = {{pid("p", "in"), 1}, {pid("p", "in"), 2}};
    expect_refusal(what, R"("offsets": [0])"); // one is still missing: nothing is done
    what.letters.emplace_back(pid("q", "in"), 0);
    const auto answer = transact(sql, what);
    EXPECT_EQ(sql.one("select string_agg(a ->> 'filed', ' ' order by a ->> 'filed') from "
                      "jsonb_array_elements($1::jsonb -> 'acks') a",
                      {answer}),
              "[1, 2] [3]")
        << answer;
    EXPECT_EQ(sql.one("select string_agg(concat_ws(':', p.name, d.\"offset\", "
                      "convert_from(d.payload, 'UTF8'), d.error), ' ' order by p.name, "
                      "d.\"offset\") from queen.log_dlq d join queen.log_partitions p on p.id = "
                      "d.partition_id"),
              "p:1:1:why c p:2:2:why c q:0:0:Retries exhausted");
    EXPECT_EQ(committed(), "2");
    EXPECT_EQ(sql.integer("select count(*) from queen.queues where name = 'out'"), 1);
}

TEST_F(Transaction, ALetterThatCannotBeHadIsARefusal) {
    push("in", "p", {"a"});
    lease("w");
    expect_refusal({.acks = {done("a", "w", "dlq")}, .leases = {}, .last = true},
                   R"([{"n": 0, "error": "dlq"}])");
}

TEST_F(Transaction, ArraysOfDifferentLengthAreRefused) {
    EXPECT_THROW(sql.one("select queen.log_transaction_v1($1, '{}', '{}', '{}', '{}', '{}', '{}', "
                         "null, null, null, null, array[gen_random_uuid()], '{}', '{}', '{}', "
                         "'{}', '{}', '{}')",
                         {kTenant}),
                 SqlError);
    EXPECT_THROW(sql.one("select queen.log_transaction_v1($1, '{q}', '{}', '{}', '{}', '{}', '{}', "
                         "null, null, null, null, '{}', '{}', '{}', '{}', '{}', '{}', '{}')",
                         {kTenant}),
                 SqlError);
}

} // namespace
} // namespace queen::test
