// What a broker compared by itself, and when the probe believes it (DED-4, F-13). A vouch that is
// believed is shown by a lie: the duplicate it hides gets in.
#include "base/text.hpp"
#include "sql/sql_fixture.hpp"

namespace queen::test {
namespace {

class PushVouch : public SqlTest {
protected:
    /// Pushes one message per id with a vouch for (from, upto] of the partition as it is now.
    /// @return "queued <base>" or "duplicate", then "/" and the number of offsets compared
    std::string push_vouched(const std::vector<std::string>& ids, std::int64_t from,
                             std::int64_t upto) {
        return push_vouched(ids, pid(), from, upto, stamp(upto));
    }
    std::string push_vouched(const std::vector<std::string>& ids, const std::string& id,
                             std::int64_t from, std::int64_t upto, const std::string& at) {
        std::string hashes = "\\x";
        for (const auto& each : ids) {
            hashes += hash_hex(each);
        }
        return sql.one(
            "select (a ->> 'status') || coalesce(' ' || (a ->> 'baseOffset'), '') || '/' || "
            "(a ->> 'probed') from queen.log_push_one_v1('q', 'p', $1, $2, -1, 'x', "
            "p_vouch_pid => $3, p_vouch_from => $4, p_vouch_upto => $5, p_vouch_at => $6) a",
            {ids.size(), hashes, id, from, upto, at});
    }
    std::string stamp(std::int64_t offset) {
        return sql.one("select created_at from queen.log_txns where partition_id = $1 and "
                       "base_offset <= $2 and end_offset >= $2",
                       {pid(), offset});
    }
    void push_at(double seconds, const std::vector<std::string>& ids) {
        clock(seconds);
        ASSERT_EQ(push("q", "p", ids).substr(0, 6), "queued");
    }
    /// The pages of window_hashes as "base-end" each.
    std::string page(std::int64_t edge, bool downwards, int bytes) {
        return sql
            .query("select base_offset || '-' || end_offset from "
                   "queen.log_window_hashes_v1($1, $2, $3, $4)",
                   {pid(), edge, downwards, bytes})
            .column(0);
    }
};

TEST_F(PushVouch, WhatCoversTheWindowSparesTheProbe) {
    push("q", "p", {"a", "b"});
    push("q", "p", {"c"});
    EXPECT_EQ(push_vouched({"d"}, -1, 2), "queued 3/0");
    EXPECT_EQ(push_vouched({"a"}, -1, 3), "queued 4/0");
    const auto answer =
        sql.one("select queen.log_push_one_v1('q', 'p', 1, $1, -1, 'x')", {hash("e")});
    EXPECT_EQ(member(answer, "probed"), "5") << "without a vouch all are compared";
    EXPECT_EQ(member(answer, "window"), "3600");
}

// By it a broker sees that its own pushes follow each other in one history.
TEST_F(PushVouch, AnAnswerNamesTheStampItWasStoredAfter) {
    const auto after = [&](const std::string& id) {
        return member(sql.one("select queen.log_push_one_v1('q', 'p', 1, $1, -1, 'x')", {hash(id)}),
                      "after");
    };
    EXPECT_EQ(after("a"), "");
    clock(7);
    EXPECT_EQ(after("b"), "2030-01-01T00:00:00.000000Z");
    EXPECT_EQ(after("c"), "2030-01-01T00:00:07.000000Z");
}

// F-13: another broker pushed since.
TEST_F(PushVouch, F13_WhatLiesAboveIsCompared) {
    push("q", "p", {"a"});
    push("q", "p", {"b", "c"});
    push("q", "p", {"d"});
    EXPECT_EQ(push_vouched({"d"}, -1, 2), "duplicate/1");
    EXPECT_EQ(push_vouched({"b"}, -1, 1), "queued 4/2") << "inside the segment of its end";
    EXPECT_EQ(push_vouched({"c"}, -1, 1), "duplicate/3");
}

// K47: the offsets of a partition that was made again mean other messages.
TEST_F(PushVouch, F13_AVouchForADeletedPartitionIsNotBelieved) {
    push("q", "p", {"a"});
    const auto old = pid();
    sql.query("select queen.delete_queue_v1($1, 'q')", {kTenant});
    push("q", "p", {"b"});
    EXPECT_EQ(push_vouched({"b"}, old, -1, 0, stamp(0)), "duplicate/1");
    EXPECT_EQ(push_vouched({"b"}, -1, 0), "queued 1/0") << "of this very row it is";
}

TEST_F(PushVouch, F13_AVouchBeyondTheLastOffsetIsNotBelieved) {
    push("q", "p", {"a"});
    EXPECT_EQ(push_vouched({"a"}, pid(), -1, 1, stamp(0)), "duplicate/1");
}

// A standby that took over without the last commits gives their offsets to other messages.
TEST_F(PushVouch, F13_AVouchWithAnotherStampIsNotBelieved) {
    push_at(1, {"a"});
    push_at(2, {"b"});
    const auto lost = stamp(1);
    sql.script(
        "delete from queen.log_txns where base_offset = 1; "
        "delete from queen.log_segments where base_offset = 1; "
        "update queen.log_partitions set last_offset = 0, newest_at = '2030-01-01 00:00:01Z'");
    push_at(3, {"c"});
    EXPECT_EQ(push_vouched({"c"}, pid(), -1, 1, lost), "duplicate/2") << "as the last offset";
    push_at(4, {"d"});
    EXPECT_EQ(push_vouched({"c"}, pid(), -1, 1, lost), "duplicate/3") << "as an earlier one";
}

// The broker's own window was narrower: another broker, or a configure, made it wide since.
TEST_F(PushVouch, F13_AVouchThatDoesNotReachTheWindowIsNotBelieved) {
    configure("q", R"({"dedupWindowSeconds": 10})");
    push_at(0, {"a"});
    push_at(5, {"b", "c"});
    push_at(16, {"d"});
    EXPECT_EQ(push_vouched({"e"}, 2, 3), "queued 4/0") << "5 s is older than 16 - 10";
    EXPECT_EQ(push_vouched({"f"}, 1, 4), "queued 5/0") << "the segment of its lower end is old";
    configure("q", R"({"dedupWindowSeconds": 12})");
    EXPECT_EQ(push_vouched({"c"}, 2, 5), "duplicate/5") << "the window reaches below it now";
    EXPECT_EQ(push_vouched({"g"}, 0, 5), "queued 6/0") << "0 s is older than 16 - 12";
}

TEST_F(PushVouch, F13_TheLowerEndIsJudgedLikeTheWindow) {
    configure("q", R"({"dedupWindowSeconds": 10})");
    push_at(0, {"a"});
    push_at(10, {"b"});
    EXPECT_EQ(push_vouched({"a"}, 0, 1), "duplicate/2") << "the edge belongs to the window";
    clock(10.000001);
    EXPECT_EQ(push_vouched({"a"}, 0, 1), "queued 2/0");
}

// Retention takes sidecar rows while a vouch is under way.
TEST_F(PushVouch, F13_RetentionBelowALowerEndIsNoExcuse) {
    push("q", "p", {"a"});
    push("q", "p", {"b"});
    push("q", "p", {"c"});
    sql.script("delete from queen.log_txns where base_offset = 0");
    EXPECT_EQ(push_vouched({"b"}, 0, 2), "duplicate/3") << "the row is gone, but not purged";
    sql.script("update queen.log_partitions set txns_start = 1");
    EXPECT_EQ(push_vouched({"c"}, 1, 2), "duplicate/2") << "offset 1 can still be compared";
    EXPECT_EQ(push_vouched({"d"}, 0, 2), "queued 3/0") << "all that is left is covered";
}

TEST_F(PushVouch, AnIncompleteVouchIsNone) {
    push("q", "p", {"a"});
    for (const std::string null : {"p_vouch_from", "p_vouch_upto", "p_vouch_at", "p_vouch_pid"}) {
        std::string call = "select queen.log_push_one_v1('q', 'p', 1, $1, -1, 'x', ";
        call += "p_vouch_pid => '" + pid() + "', p_vouch_from => -1, p_vouch_upto => 0, ";
        call += "p_vouch_at => '" + stamp(0) + "')";
        EXPECT_EQ(member(sql.one(call, {hash("b" + null)}), "probed"), "0");
        const auto at = call.find(null + " => ") + null.size() + 4;
        call.replace(at, call.find_first_of(",)", at) - at, "null");
        EXPECT_EQ(member(sql.one(call, {hash("a")}), "status"), "duplicate") << null;
        sql.script("delete from queen.log_txns where base_offset > 0; "
                   "delete from queen.log_segments where base_offset > 0; "
                   "update queen.log_partitions set last_offset = 0");
    }
}

TEST_F(PushVouch, AWindowOfZeroAsksForNoVouch) {
    configure("q", R"({"dedupWindowSeconds": 0})");
    push("q", "p", {"a"});
    EXPECT_EQ(push_vouched({"a"}, -1, 0), "queued 1/0");
}

TEST_F(PushVouch, EachSegmentOfACallHasItsOwn) {
    push("q", "p", {"a"});
    push("q", "p2", {"a"});
    const auto call = [&](const std::string& tail) {
        return sql
            .query("select r ->> 'status' from jsonb_array_elements(queen.log_push_multi_v1("
                   "array['q', 'q'], array['p2', 'p'], array[1, 1], array[$1, $1]::bytea[], "
                   "array[-1, -1], array['x', 'x']::bytea[], null, " +
                       tail + ")) with ordinality t (r, n) order by n",
                   {hash("a")})
            .column(0);
    };
    const auto vouches = [&](const std::string& first, const std::string& second) {
        return "array[" + first + ", '" + second +
               "']::uuid[], array[-1, -1], array[0, 0], array['" + stamp(0) + "', '" + stamp(0) +
               "']::timestamptz[]";
    };
    EXPECT_EQ(call(vouches("null", "00000000-0000-0000-0000-000000000000")), "duplicate duplicate");
    EXPECT_EQ(call(vouches("'" + pid("p") + "'", pid("p2"))), "duplicate duplicate");
    EXPECT_EQ(call(vouches("null", pid("p"))), "duplicate queued");
    try {
        call("array[null, null]::uuid[], array[1], array[1, 1], array[null, null]::timestamptz[]");
        FAIL();
    } catch (const SqlError& error) {
        EXPECT_EQ(error.state(), "22023");
    }
}

TEST_F(PushVouch, PagesReachFromTheTopToTheStartOfTheWindow) {
    configure("q", R"({"dedupWindowSeconds": 10})");
    push_at(0, {"a"});
    push_at(5, {"b", "c"});
    push_at(6, {"d"});
    push_at(7, {"e", "f"});
    clock(15);
    EXPECT_EQ(page(5, true, 1000), "4-5 3-3 1-2") << "5 s is the edge, 0 s is outside";
    EXPECT_EQ(page(4, true, 1000), "4-5 3-3 1-2") << "begins with the row that holds the offset";
    EXPECT_EQ(page(4, true, 17), "4-5 3-3 1-2") << "ends with the row that fills it";
    EXPECT_EQ(page(4, true, 16), "4-5 3-3") << "the first row does not count";
    EXPECT_EQ(page(1, true, 1000), "1-2");
    EXPECT_EQ(page(0, true, 1000), "");
    EXPECT_EQ(page(0, false, 1000), "0-0 1-2 3-3 4-5");
    EXPECT_EQ(page(2, false, 16), "1-2 3-3");
    EXPECT_EQ(page(5, false, 16), "4-5");
    EXPECT_EQ(sql.one("select hashes from queen.log_window_hashes_v1($1, 2, true, 1)", {pid()}),
              "\\x" + hash_hex("b") + hash_hex("c"));
    EXPECT_EQ(
        sql.query("select * from queen.log_window_hashes_v1(gen_random_uuid(), 9, true, 9)").size(),
        0u);
}

} // namespace
} // namespace queen::test
