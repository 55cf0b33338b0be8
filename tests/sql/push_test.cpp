#include "base/text.hpp"
#include "sql/sql_fixture.hpp"

namespace queen::test {
namespace {

class Push : public SqlTest {};

TEST_F(Push, GivesConsecutiveOffsetsAndStoresBlobHashesAndRange) {
    EXPECT_EQ(push("q", "p", {"a", "b", "c"}), "queued 0");
    EXPECT_EQ(push("q", "p", {"d"}), "queued 3");
    EXPECT_EQ(push("q", "other", {"a"}), "queued 0");
    const SqlRows rows =
        sql.query("select s.base_offset, s.end_offset, s.blob, t.base_offset, t.end_offset, "
                  "t.hashes, s.created_at = t.created_at from queen.log_segments s "
                  "join queen.log_txns t using (partition_id, base_offset) "
                  "where s.partition_id = $1 order by 1",
                  {pid()});
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows.get(0, 0) + "-" + rows.get(0, 1), "0-2");
    EXPECT_EQ(rows.get(0, 2), "\\x61");
    EXPECT_EQ(rows.get(0, 3) + "-" + rows.get(0, 4), "0-2");
    EXPECT_EQ(rows.get(0, 5), "\\x" + hash_hex("a") + hash_hex("b") + hash_hex("c"));
    EXPECT_EQ(rows.get(0, 6), "t");
    EXPECT_EQ(rows.get(1, 0) + "-" + rows.get(1, 1), "3-3");
}

// K16: nothing on the way is narrower than 64 bits, and a duplicate spends no number.
TEST_F(Push, K16_OffsetsGoOnBeyond32And53Bits) {
    push("q", "p", {"a"});
    for (const std::string offset : {"2147483646", "9007199254740992"}) {
        sql.query("update queen.log_partitions set last_offset = $2 where id = $1",
                  {pid(), offset});
        const auto next = std::to_string(std::stoll(offset) + 1);
        EXPECT_EQ(push("q", "p", {"b" + offset, "c" + offset}), "queued " + next);
        EXPECT_EQ(push("q", "p", {"c" + offset}),
                  "duplicate 0:" + std::to_string(std::stoll(offset) + 2));
        EXPECT_EQ(sql.one("select last_offset from queen.log_partitions where id = $1", {pid()}),
                  std::to_string(std::stoll(offset) + 2));
    }
}

TEST_F(Push, AnswersWithTheIdOfThePartitionAndTheStampOfTheSegment) {
    const std::string answer =
        sql.one("select queen.log_push_one_v1('q', 'p', 1, $1, -1, 'x')", {hash("a")});
    EXPECT_EQ(member(answer, "partitionId"), pid());
    EXPECT_EQ(member(answer, "createdAt"), "2030-01-01T00:00:00.000000Z");
}

TEST_F(Push, AFirstPushLabelsTheQueueByItsDottedName) {
    push("orders.email.eu", "p", {"a"});
    push("plain", "p", {"a"});
    EXPECT_EQ(sql.query("select name || '|' || namespace || '|' || task || '|' || lease_time "
                        "from queen.queues order by name")
                  .column(0),
              "orders.email.eu|orders|email|60 plain|plain||60");
}

TEST_F(Push, ADuplicateAnywhereInTheSegmentWritesNothing) {
    push("q", "p", {"a", "b"});
    const std::string before =
        sql.one("select (p.*)::text from queen.log_partitions p where id = $1", {pid()});
    EXPECT_EQ(push("q", "p", {"c", "b", "a"}), "duplicate 1:1 2:0");
    EXPECT_EQ(sql.one("select (p.*)::text from queen.log_partitions p where id = $1", {pid()}),
              before);
    EXPECT_EQ(sql.integer("select count(*) from queen.log_segments"), 1);
    EXPECT_EQ(sql.integer("select count(*) from queen.log_txns"), 1);
    EXPECT_EQ(push("q", "p", {"c"}), "queued 2");
}

TEST_F(Push, ADuplicateReportsTheEarliestOffset) {
    configure("q", R"({"dedupWindowSeconds": 0})");
    push("q", "p", {"a"});
    push("q", "p", {"a"});
    configure("q", R"({"dedupWindowSeconds": 60})");
    EXPECT_EQ(push("q", "p", {"a"}), "duplicate 0:0");
}

TEST_F(Push, TheSameIdInAnotherPartitionIsNoDuplicate) {
    push("q", "p", {"a"});
    EXPECT_EQ(push("q", "p2", {"a"}), "queued 0");
}

// K07: the window counts from the push, consumed or not, and a changed one holds from the next
// push on.
TEST_F(Push, TheWindowIncludesItsEdgeAndEndsBehindIt) {
    configure("q", R"({"dedupWindowSeconds": 10})");
    push("q", "p", {"a"});
    clock(10);
    EXPECT_EQ(push("q", "p", {"a"}), "duplicate 0:0");
    clock(10.000001);
    EXPECT_EQ(push("q", "p", {"a"}), "queued 1");
    clock(30);
    configure("q", R"({"dedupWindowSeconds": 60})");
    EXPECT_EQ(push("q", "p", {"a"}), "duplicate 0:0");
}

TEST_F(Push, K07_WhatWasConsumedStillBlocksAndAChangedWindowHoldsAtOnce) {
    configure("q", R"({"dedupWindowSeconds": 10})");
    EXPECT_EQ(push("q", "p", {"T"}), "queued 0");
    EXPECT_EQ(pop({}), "0+0*1");
    EXPECT_EQ(member(ack({{"T", "completed"}}), "covered"), "true");
    clock(2);
    EXPECT_EQ(push("q", "p", {"T"}), "duplicate 0:0") << "of the first one";
    clock(11);
    EXPECT_EQ(push("q", "p", {"T"}), "queued 1");
    configure("q", R"({"dedupWindowSeconds": 60})");
    clock(26);
    EXPECT_EQ(push("q", "p", {"T"}), "duplicate 0:0") << "whose window is 60 s now, too";
    clock(61);
    EXPECT_EQ(push("q", "p", {"T"}), "duplicate 0:1");
    configure("q", R"({"dedupWindowSeconds": 0})");
    EXPECT_EQ(push("q", "p", {"T"}), "queued 2");
}

TEST_F(Push, TheWindowStartsInTheMiddleOfTheSidecar) {
    configure("q", R"({"dedupWindowSeconds": 10})");
    push("q", "p", {"a"});
    clock(5);
    push("q", "p", {"b", "c"});
    clock(9);
    push("q", "p", {"d"});
    clock(12);
    EXPECT_EQ(push("q", "p", {"c"}), "duplicate 0:2");
    EXPECT_EQ(push("q", "p", {"d"}), "duplicate 0:3");
    EXPECT_EQ(push("q", "p", {"a"}), "queued 4");
}

TEST_F(Push, AWindowOfZeroAcceptsEverythingAndStillKeepsTheSidecar) {
    configure("q", R"({"dedupWindowSeconds": 0})");
    EXPECT_EQ(push("q", "p", {"a"}), "queued 0");
    EXPECT_EQ(push("q", "p", {"a"}), "queued 1");
    EXPECT_EQ(sql.integer("select count(*) from queen.log_txns"), 2);
}

// DED-4: the broker vouches that it compared every offset up to `verified`.
TEST_F(Push, OnlyOffsetsAboveVerifiedAreCompared) {
    push("q", "p", {"a", "b"});
    push("q", "p", {"c"});
    EXPECT_EQ(push("q", "p", {"a"}, -1), "duplicate 0:0");
    EXPECT_EQ(push("q", "p", {"b"}, 0), "duplicate 0:1"); // inside the segment of what is vouched
    EXPECT_EQ(push("q", "p", {"c"}, 1), "duplicate 0:2");
    EXPECT_EQ(push("q", "p", {"a"}, 0), "queued 3"); // a wrong word is believed
    EXPECT_EQ(push("q", "p", {"b"}, 99), "queued 4");
}

// F-13: a vouch that is older than somebody else's push does not hide that push.
TEST_F(Push, AStaleVouchStillFindsWhatWasPushedSince) {
    push("q", "p", {"a"});
    push("q", "p", {"b"}, 0);
    EXPECT_EQ(push("q", "p", {"b"}, 0), "duplicate 0:1");
}

TEST_F(Push, OffsetsBelowThePurgedSidecarAreNotCompared) {
    push("q", "p", {"a"});
    push("q", "p", {"b"});
    sql.script("delete from queen.log_txns where base_offset = 0");
    sql.script("update queen.log_partitions set txns_start = 1");
    EXPECT_EQ(push("q", "p", {"b"}), "duplicate 0:1");
    EXPECT_EQ(push("q", "p", {"a"}), "queued 2");
}

// ORD-1: probes by one step rely on it, whatever the clock does.
TEST_F(Push, StampsNeverGoBackWithTheClock) {
    clock(100);
    push("q", "p", {"a"});
    clock(50);
    push("q", "p", {"b"});
    configure("q", R"({"dedupWindowSeconds": 0})");
    push("q", "p", {"c"});
    clock(101);
    push("q", "p", {"d"});
    EXPECT_EQ(sql.query("select extract(epoch from created_at - '2030-01-01 00:00:00+00')::int "
                        "from queen.log_segments order by base_offset")
                  .column(0),
              "100 100 100 101");
}

// The indexed column moves at most once a second, so that other pushes stay HOT.
TEST_F(Push, LastWriteMovesOnlyAfterASecond) {
    const auto written = [&] {
        return sql.one("select extract(epoch from last_write_at - '2030-01-01 00:00:00+00')::float8"
                       " from queen.log_partitions");
    };
    push("q", "p", {"a"});
    clock(1);
    push("q", "p", {"b"});
    EXPECT_EQ(written(), "0");
    clock(1.5);
    push("q", "p", {"c"});
    EXPECT_EQ(written(), "1.5");
}

TEST_F(Push, CountsSegmentsAndBytesAsTheyAre) {
    push("q", "p", {"abc", "b"});
    push("q", "p", {"d"});
    push("q", "p", {"d"}); // duplicate
    EXPECT_EQ(sql.query("select segment_count || ',' || stored_bytes || ',' || last_offset "
                        "from queen.log_partitions")
                  .column(0),
              sql.query("select count(*) || ',' || sum(octet_length(blob)) || ',' || "
                        "max(end_offset) from queen.log_segments")
                  .column(0));
    EXPECT_EQ(sql.one("select segment_count from queen.log_partitions"), "2");
}

TEST_F(Push, HashesThatDoNotFitTheCountAreRefused) {
    for (const std::string& hashes : {std::string("\\x"), hash("a") + "00", std::string("\\x00")}) {
        try {
            sql.query("select queen.log_push_one_v1('q', 'p', 1, $1, -1, 'x')", {hashes});
            FAIL() << hashes;
        } catch (const SqlError& error) {
            EXPECT_EQ(error.state(), "22023");
        }
    }
    EXPECT_THROW(sql.query("select queen.log_push_one_v1('q', 'p', 0, '', -1, 'x')"), SqlError);
    EXPECT_EQ(sql.integer("select count(*) from queen.log_partitions"), 0);
}

TEST_F(Push, AKnownPartitionIdAndWindowNeedNoNames) {
    push("q", "p", {"a"});
    const std::string answer = sql.one(
        "select queen.log_push_one_v1(null, null, 1, $1, -1, 'x', $2, 0)", {hash("a"), pid()});
    EXPECT_EQ(member(answer, "baseOffset"), "1");
}

TEST_F(Push, AVanishedPartitionFailsSoThatARetryMakesItAgain) {
    push("q", "p", {"a"});
    const std::string id = pid();
    sql.query("select queen.delete_queue_v1($1, 'q')", {kTenant});
    for (const int window : {0, 60}) {
        try {
            sql.query("select queen.log_push_one_v1('q', 'p', 1, $1, -1, 'x', $2, $3)",
                      {hash("b"), id, window});
            FAIL() << window;
        } catch (const SqlError& error) {
            EXPECT_EQ(error.state(), "40001");
        }
    }
    EXPECT_EQ(push("q", "p", {"a"}), "queued 0");
    EXPECT_NE(pid(), id);
}

class PushMany : public SqlTest {
protected:
    struct Segment {
        std::string queue;
        std::string partition;
        std::string id;
        std::string tenant = std::string(kTenant);
    };
    /// "queued 0" or "duplicate" each, in input order.
    std::string push_many(const std::vector<Segment>& segments, SqlSession* session = nullptr) {
        std::vector<std::string> queues, partitions, hashes, blobs, tenants;
        std::vector<std::int64_t> counts, verified;
        for (const Segment& s : segments) {
            queues.push_back(s.queue);
            partitions.push_back(s.partition);
            hashes.push_back(hash(s.id));
            blobs.push_back("\\x" + to_hex(s.id));
            tenants.push_back(s.tenant);
            counts.push_back(1);
            verified.push_back(-1);
        }
        return (session != nullptr ? *session : sql)
            .query("select (r ->> 'status') || coalesce('@' || (r ->> 'baseOffset'), '') from "
                   "jsonb_array_elements(queen.log_push_multi_v1($1, $2, $3, $4, $5, $6, $7)) "
                   "with ordinality t (r, n) order by n",
                   {queues, partitions, counts, hashes, verified, blobs, tenants})
            .column(0);
    }
};

TEST_F(PushMany, AnswersInInputOrderAndKeepsTheOrderInsideAPartition) {
    EXPECT_EQ(
        push_many(
            {{"q", "b", "1"}, {"q", "a", "2"}, {"q", "b", "3"}, {"r", "b", "4"}, {"q", "b", "1"}}),
        "queued@0 queued@0 queued@1 queued@0 duplicate");
    EXPECT_EQ(sql.query("select blob from queen.log_segments where partition_id = $1 "
                        "order by base_offset",
                        {pid("b")})
                  .column(0),
              "\\x31 \\x33");
}

TEST_F(PushMany, NothingToDoIsAnEmptyArray) {
    EXPECT_EQ(sql.one("select queen.log_push_multi_v1('{}', '{}', '{}', '{}', '{}', '{}')"), "[]");
}

TEST_F(PushMany, SegmentsOfTwoTenantsDoNotMeet) {
    const std::string other = "00000000-0000-0000-0000-000000000002";
    EXPECT_EQ(push_many({{"q", "p", "1"}, {"q", "p", "1", other}}), "queued@0 queued@0");
    EXPECT_EQ(sql.query("select tenant_id from queen.queues order by 1").column(0),
              std::string(kTenant) + " " + other);
}

TEST_F(PushMany, ABadSegmentFailsTheWholeCall) {
    const auto attempt = [&](const std::string& call) -> std::string {
        try {
            sql.query("select queen.log_push_multi_v1(" + call + ")", {hash("a"), hash("b")});
        } catch (const SqlError& error) {
            return error.state();
        }
        return "ok";
    };
    EXPECT_EQ(attempt("array['q', ''], array['p', 'p'], array[1, 1], array[$1, $2]::bytea[], "
                      "array[-1, -1], array['x', 'x']::bytea[]"),
              "22023");
    EXPECT_EQ(attempt("array['q', 'q'], array['p', 'r'], array[1, 2], array[$1, $2]::bytea[], "
                      "array[-1, -1], array['x', 'x']::bytea[]"),
              "22023");
    EXPECT_EQ(attempt("array['q', 'q'], array['p', 'r'], array[1], array[$1, $2]::bytea[], "
                      "array[-1, -1], array['x', 'x']::bytea[]"),
              "22023");
    EXPECT_EQ(attempt("array['q', 'q'], array['p', 'r'], array[1, 1], array[$1, $2]::bytea[], "
                      "array[-1, -1], array['x', 'x']::bytea[], array[null, null]::uuid[]"),
              "22023");
    EXPECT_EQ(sql.integer("select count(*) from queen.log_partitions"), 0);
}

TEST_F(PushMany, FindsTheSegmentOfAnOffset) {
    push("q", "p", {"a", "b"});
    push("q", "p", {"c"});
    const auto at = [&](int offset) {
        return sql
            .query("select base_offset || '-' || end_offset || blob from "
                   "queen.log_segment_at_v1($1, $2)",
                   {pid(), offset})
            .column(0);
    };
    EXPECT_EQ(at(0), "0-1\\x61");
    EXPECT_EQ(at(1), "0-1\\x61");
    EXPECT_EQ(at(2), "2-2\\x63");
    EXPECT_EQ(at(3), "");
    EXPECT_EQ(at(-1), "");
}

} // namespace
} // namespace queen::test
