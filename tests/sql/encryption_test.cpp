// ENC-5: what the procedures of the push do with a segment whose form is not the queue's.
#include "sql/transaction_fixture.hpp"

#include <gmock/gmock.h>

namespace queen::test {
namespace {

using testing::HasSubstr;

class EncryptionSql : public SqlTest {
protected:
    using SqlTest::SqlTest;
    /// One segment of one message. @param encrypted SQL text: true, false or null
    std::string one(const std::string& id, const std::string& encrypted,
                    const std::string& queue = "q") {
        const auto answer =
            sql.one("select queen.log_push_one_v1(p_queue => $1, p_partition => 'p', p_count => 1, "
                    "p_hashes => $2, p_verified => -1, p_blob => 'x', p_encrypted => " +
                        encrypted + ")",
                    {queue, hash(id)});
        return word(answer);
    }
    /// Segments of one message each to partitions of their own, in one statement.
    std::string multi(const std::string& id, const std::string& queues,
                      const std::string& encrypted) {
        const auto answers =
            sql.one("select queen.log_push_multi_v1(p_queues => " + queues +
                        ", p_partitions => array_fill('p'::text, array[cardinality(" + queues +
                        ")]), p_counts => array_fill(1, array[cardinality(" + queues +
                        ")]), p_hashes => array_fill($1::bytea, array[cardinality(" + queues +
                        ")]), p_verified => array_fill(-1::bigint, array[cardinality(" + queues +
                        ")]), p_blobs => array_fill('x'::bytea, array[cardinality(" + queues +
                        ")]), p_encrypted => " + encrypted + ")",
                    {hash(id)});
        const SqlRows rows =
            sql.query("select value::text from jsonb_array_elements($1)", {answers});
        std::string out;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            out += (i == 0 ? "" : " ") + word(rows.get(i, 0));
        }
        return out;
    }
    std::string word(const std::string& answer) {
        const auto status = member(answer, "status");
        return status == "form" ? "form:" + member(answer, "encrypted") : status;
    }
    void encrypt(const std::string& queue, bool on) {
        configure(queue, on ? R"({"mode":"merge","encryptionEnabled":true})"
                            : R"({"mode":"merge","encryptionEnabled":false})");
    }
    std::int64_t segments() { return sql.integer("select count(*) from queen.log_segments"); }
};

TEST_F(EncryptionSql, ENC5_OnlyTheFormThatTheQueueWantsIsStored) {
    EXPECT_EQ(one("a", "false"), "queued") << "a queue made by a push is not encrypted";
    EXPECT_EQ(one("b", "true"), "form:false");
    encrypt("q", true);
    EXPECT_EQ(one("c", "false"), "form:true");
    EXPECT_EQ(one("c", "true"), "queued");
    encrypt("q", false);
    EXPECT_EQ(one("d", "true"), "form:false");
    EXPECT_EQ(one("d", "false"), "queued");
    EXPECT_EQ(segments(), 3);
}

TEST_F(EncryptionSql, ENC5_TheFormIsCheckedForAPartitionNamedByIdToo) {
    push("q", "p", {"a"});
    encrypt("q", true);
    const auto by_id = [&](const std::string& encrypted) {
        return word(sql.one("select queen.log_push_one_v1('q', 'p', 1, $1, -1, 'x', p_pid => $2, "
                            "p_window => 60, p_encrypted => " +
                                encrypted + ")",
                            {hash("b"), pid()}));
    };
    EXPECT_EQ(by_id("false"), "form:true");
    EXPECT_EQ(by_id("true"), "queued");
}

TEST_F(EncryptionSql, ENC5_ASegmentInTheWrongFormLeavesItsNeighboursAlone) {
    encrypt("b", true);
    EXPECT_EQ(multi("x", "array['a','b','c']", "array[false,false,true]"),
              "queued form:true form:false");
    EXPECT_EQ(segments(), 1);
    EXPECT_EQ(multi("y", "array['a','b','c']", "array[false,true,false]"), "queued queued queued");
    EXPECT_EQ(segments(), 4);
    EXPECT_EQ(sql.integer("select count(*) from queen.log_txns"), 4);
}

TEST_F(EncryptionSql, ENC5_ADuplicateInTheWrongFormIsRefusedForItsFormFirst) {
    push("q", "p", {"a"});
    encrypt("q", true);
    EXPECT_EQ(one("a", "false"), "form:true");
    EXPECT_EQ(one("a", "true"), "duplicate");
}

TEST_F(EncryptionSql, ENC5_ACallerOfTheFirstReleaseStoresNoClearTextOnAnEncryptedQueue) {
    EXPECT_EQ(multi("a", "array['q']", "null"), "queued");
    EXPECT_EQ(push("q", "p", {"b"}), "queued 1");
    encrypt("q", true);
    for (const std::string call :
         {"select queen.log_push_one_v1('q', 'p', 1, $1, -1, 'x')",
          "select queen.log_push_multi_v1(array['q'], array['p'], array[1], array[$1::bytea], "
          "array[-1::bigint], array['x'::bytea], null, null, null, null, null)"}) {
        try {
            sql.query(call, {hash("c")});
            ADD_FAILURE() << "stored: " << call;
        } catch (const SqlError& error) {
            EXPECT_EQ(error.state(), "22023") << call;
            EXPECT_THAT(error.what(), HasSubstr("QENCRYPT"));
        }
    }
    EXPECT_EQ(segments(), 2);
}

TEST_F(EncryptionSql, ArraysOfDifferentLengthAreRefused) {
    try {
        sql.query(
            "select queen.log_push_multi_v1(array['q'], array['p'], array[1], array[$1::bytea], "
            "array[-1::bigint], array['x'::bytea], p_encrypted => array[true, false])",
            {hash("c")});
        ADD_FAILURE() << "accepted";
    } catch (const SqlError& error) {
        EXPECT_EQ(error.state(), "22023");
    }
}

// A push that begins after the answer to the configure sees it, however it waited before: the flag
// is read after the partition's lock.
TEST_F(EncryptionSql,
       ENC5_APushThatWaitedForItsPartitionWhileTheQueueWasEncryptedStoresNoClearText) {
    push("q", "p", {"a"});
    auto other = connect();
    other.query("begin");
    other.query("select 1 from queen.log_partitions where id = $1 for no key update", {pid()});
    sql.send("select queen.log_push_multi_v1(array['q'], array['p'], array[1], array[$1::bytea], "
             "array[-1::bigint], array['x'::bytea], p_encrypted => array[false])",
             {hash("b")});
    auto third = connect();
    third.wait_for("cardinality(pg_blocking_pids($1)) > 0", {sql.pid()});
    third.query("select queen.configure_queue_v1('q', '{\"encryptionEnabled\": true}')");
    other.query("commit");
    const std::string answer = sql.finish().get(0, 0);
    EXPECT_THAT(answer, HasSubstr("\"form\""));
    EXPECT_EQ(third.one("select count(*) from queen.log_segments"), "1");
}

/// Transactions and replays of dead letters.
class EncryptionMoves : public EncryptionSql {
protected:
    using EncryptionSql::EncryptionSql;
    /// A dead letter of queue q, partition p. @return its id
    std::string file(bool encrypted) {
        return sql.one("insert into queen.log_dlq (queue_id, partition_id, consumer_group, "
                       "\"offset\", transaction_id, payload, encrypted, failed_at) select "
                       "p.queue_id, p.id, 'g', 0, 't', 'x', $1, queen._clock() from "
                       "queen.log_partitions p where p.id = $2 returning id",
                       {encrypted, pid()});
    }
    std::string move(const std::string& id, const std::string& encrypted,
                     const std::string& queue = "q") {
        return sql.one("select (r ->> 'result') || coalesce(' wants ' || (r ->> 'encrypted'), '') "
                       "from queen.log_dlq_move_v1($1, $2, $3, 'p', $4, 'x'" +
                           (encrypted.empty() ? "" : ", " + encrypted) + ") r",
                       {kTenant, id, queue, hash("dlq:" + id)});
    }
    std::string letters() { return sql.one("select count(*) from queen.log_dlq"); }
    /// What a transaction was refused with, and that it changed nothing.
    std::string refusal(const TransactionText& what) {
        const auto state = [&] {
            return sql.one("select concat_ws(' ', (select count(*) from queen.queues), (select "
                           "string_agg(p::text, ',' order by p.id) from queen.log_partitions p), "
                           "(select count(*) from queen.log_segments), (select string_agg(c::text, "
                           "',' order by c.partition_id) from queen.log_consumers c))");
        };
        const auto before = state();
        std::string text = verdict(sql, what);
        EXPECT_EQ(state(), before);
        return text;
    }
};

TEST_F(EncryptionMoves, ENC5_ATransactionThatHasOneSegmentInAnotherFormIsRolledBackAndNamesIt) {
    push("in", "p", {"a"});
    pop({.queue = "in"});
    encrypt("vault", true);
    TransactionText what{
        .pushes = {{"new", "p", {"n1"}}, {"vault", "p", {"n2"}}, {"other", "p", {"n3"}}},
        .acks = {{.pid = pid("p", "in"), .group = "g", .worker = "w", .id = "a"}},
        .forms = "{f,f,t}"};
    const auto refused = refusal(what);
    EXPECT_THAT(refused, HasSubstr("QFRM0"));
    EXPECT_THAT(refused, HasSubstr("QFORM: 2 segments"));
    EXPECT_THAT(refused,
                HasSubstr(R"([{"s": 1, "encrypted": true}, {"s": 2, "encrypted": false}])"));
    what.forms = "{f,t,f}";
    EXPECT_EQ(verdict(sql, what), "ok");
    EXPECT_EQ(segments(), 4);
    EXPECT_EQ(cursor("committed", "p", "g", "in"), "0");
}

TEST_F(EncryptionMoves, ENC5_TheFormOfATransactionsSegmentIsJudgedBeforeItsDuplicates) {
    push("q", "p", {"a"});
    encrypt("q", true);
    TransactionText what{.pushes = {{"q", "p", {"a"}}}, .forms = "{f}"};
    EXPECT_THAT(refusal(what), HasSubstr("QFORM"));
    what.forms = "{t}";
    EXPECT_THAT(refusal(what), HasSubstr("QDUP"));
}

TEST_F(EncryptionMoves, ENC5_ATransactionThatSaysNothingOfFormsStoresNoClearText) {
    const TransactionText what{.pushes = {{"q", "p", {"a"}}}};
    EXPECT_EQ(verdict(sql, what), "ok");
    encrypt("q", true);
    EXPECT_THAT(refusal({.pushes = {{"q", "p", {"b"}}}}), HasSubstr("QENCRYPT"));
}

TEST_F(EncryptionMoves, ENC5_ALetterMovesInTheFormOfItsDestinationAlone) {
    push("q", "p", {"a"});
    const std::string clear = file(false);
    const std::string sealed = file(true);
    EXPECT_EQ(move(sealed, "true"), "refused wants false");
    encrypt("q", true);
    EXPECT_EQ(move(clear, "false"), "refused wants true");
    EXPECT_EQ(letters(), "2") << "who was refused stays";
    EXPECT_EQ(segments(), 1);
    EXPECT_EQ(move(clear, "true"), "moved");
    EXPECT_EQ(move(sealed, "true"), "moved");
    EXPECT_EQ(letters(), "0");
    EXPECT_EQ(segments(), 3);
}

TEST_F(EncryptionMoves, ENC5_ACallerThatSaysNothingMovesALetterAsItIsStored) {
    push("q", "p", {"a"});
    const std::string sealed = file(true);
    const std::string clear = file(false);
    EXPECT_EQ(move(sealed, ""), "refused wants false");
    EXPECT_EQ(move(clear, ""), "moved");
    encrypt("q", true);
    EXPECT_EQ(move(sealed, ""), "moved");
    const std::string another = file(false);
    EXPECT_EQ(move(another, ""), "refused wants true");
}

class EncryptionBroken : public EncryptionMoves {
protected:
    EncryptionBroken() : EncryptionMoves(Database::own) {}
};

TEST_F(EncryptionBroken, ATransactionThatPassesOverAFormLosesWhatItSaysItStored) {
    mutate({"log_transaction_v1", R"(IF v_pushes @> '[{"status": "form"}]')", "IF false"});
    encrypt("vault", true);
    EXPECT_EQ(verdict(sql, {.pushes = {{"vault", "p", {"a"}}}, .forms = "{f}"}), "ok");
    EXPECT_EQ(segments(), 0);
}

TEST_F(EncryptionBroken, AMoveThatDoesNotPassTheFormOnStoresAnEnvelopeInAQueueOfClearText) {
    mutate({"log_dlq_move_v1", "coalesce(p_encrypted, v_sealed)", "false"});
    push("q", "p", {"a"});
    EXPECT_EQ(move(file(true), "true"), "moved");
}

// TEN-3
TEST_F(EncryptionSql, ALeaseOfAnotherTenantIsUnknown) {
    push("q", "p", {"a"});
    pop({});
    const std::string other = "00000000-0000-0000-0000-0000000000aa";
    const auto renewed = [&](const std::string& tenant) {
        return member(sql.one("select queen.log_renew_lease_v1('w', 600, null, $1)", {tenant}),
                      "renewed");
    };
    const auto before = cursor("lease_expires_at");
    EXPECT_EQ(renewed(other), "0");
    EXPECT_EQ(cursor("lease_expires_at"), before);
    EXPECT_EQ(renewed(std::string(kTenant)), "1");
    EXPECT_NE(cursor("lease_expires_at"), before);
}

} // namespace
} // namespace queen::test
