// ENC-5: what the procedures of the push do with a segment whose form is not the queue's.
#include "sql/sql_fixture.hpp"

#include <gmock/gmock.h>

namespace queen::test {
namespace {

using testing::HasSubstr;

class EncryptionSql : public SqlTest {
protected:
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
