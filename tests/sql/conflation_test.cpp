// Groups that take the newest message of a partition alone (CF-1, CF-2).
#include "sql/sql_fixture.hpp"

namespace queen::test {
namespace {

class Conflation : public SqlTest {
protected:
    /// A wildcard pop. conflate: "true", "false" or "" for none. @return meta without partitions,
    /// then "partition:offset#attempt" for each
    std::string pop(const std::string& conflate, const std::string& group = "g",
                    const std::string& worker = "w", bool auto_ack = false) {
        const SqlRows rows = sql.query(
            "select b.meta - 'partitions' - 'delay' - 'window' - 'minWait' - 'seeded', "
            "coalesce(string_agg(t.told, ' ' order by t.told), '') from "
            "queen.log_pop_wildcard_bin_v1('q', $1, 100, 60, $2, $3, 100, 'all', '', "
            "p_conflate => nullif($4, '')::boolean) b left join lateral (select (p ->> "
            "'partition') || ':' || ((s ->> 'seq')::int + (s ->> 'startOff')::int) || '*' || (s "
            "->> "
            "'take') || '#' || (p ->> 'deliveryAttempt') as told from jsonb_array_elements(b.meta "
            "-> "
            "'partitions') p, jsonb_array_elements(p -> 'segments') s) t on true group by b.meta",
            {group, worker, auto_ack, conflate});
        return rows.get(0, 0) + " " + rows.get(0, 1);
    }
    std::string discover(const std::string& conflate, const std::string& group = "g") {
        return sql.one(
            "select (meta - 'partitions' - 'delay' - 'window')::text || ' ' || "
            "coalesce(jsonb_path_query_array(meta, "
            "'$.partitions[*].segments[*].take')::text, '') from "
            "queen.log_pop_discover_bin_v1('n', '', $1, 100, 60, 'w', false, 100, 'all', "
            "'', p_conflate => nullif($2, '')::boolean)",
            {group, conflate});
    }
    std::string stored(const std::string& group = "g") {
        return sql.one("select string_agg(m.conflation::text, ' ' order by m.queue_id nulls first) "
                       "from queen.consumer_groups_metadata m where m.consumer_group = $1",
                       {group});
    }
    std::string positions(const std::string& upto, const std::string& count) {
        return sql.one("select queen.log_ack_multi_v1(array[$1::uuid], '{g}', array[$2::bigint], "
                       "'{w}', array[$3::bigint]) #>> '{results,0}'",
                       {pid(), upto, count});
    }
};

TEST_F(Conflation, DeliversTheNewestOfEachPartitionAndLeasesAllUpToIt) {
    push("q", "a", {"1", "2", "3"});
    push("q", "a", {"4", "5"});
    push("q", "b", {"6"});
    EXPECT_EQ(pop("true"), R"({"conflation": true} a:4*1#1 b:0*1#1)");
    EXPECT_EQ(cursor("committed || ' ' || batch_end || ' ' || lease_conflated", "a"), "-1 4 true");
    EXPECT_EQ(pop("true"), R"({"conflation": true} )") << "under lease";
}

// CF-1
TEST_F(Conflation, WhoRegisteredTheGroupDecides) {
    push("q", "p", {"1", "2"});
    EXPECT_EQ(pop("true", "newest"), R"({"conflation": true} p:1*1#1)");
    EXPECT_EQ(pop("false", "all"), "{} p:0*2#1");
    EXPECT_EQ(stored("newest"), "true");
    EXPECT_EQ(stored("all"), "false");
    push("q", "p2", {"3", "4"});
    EXPECT_EQ(pop("false", "newest"),
              R"({"conflation": true, "conflationConflict": true} p2:1*1#1)");
    EXPECT_EQ(pop("true", "all"), R"({"conflationConflict": true} p2:0*2#1)");
    push("q", "p3", {"5", "6"});
    EXPECT_EQ(pop("", "newest"), R"({"conflation": true} p3:1*1#1)") << "no opinion, no conflict";
    EXPECT_EQ(pop("", "all"), "{} p3:0*2#1");
    EXPECT_EQ(stored("newest"), "true");
    EXPECT_EQ(stored("all"), "false");
}

// A broker of the first release knows nothing of it and calls without the argument.
TEST_F(Conflation, ACallWithoutTheArgumentBehavesAsStored) {
    push("q", "p", {"1", "2"});
    EXPECT_EQ(pop("true"), R"({"conflation": true} p:1*1#1)");
    clock(100);
    EXPECT_EQ(sql.one("select meta #> '{partitions,0,segments,0}' -> 'startOff' from "
                      "queen.log_pop_list_v1('q', 'g', '{p}', 9, 60, 'v', false, 1, 'all', '', "
                      "false, $1)",
                      {kTenant}),
              "1");
}

TEST_F(Conflation, QueueModeNeverConflates) {
    push("q", "p", {"1", "2"});
    EXPECT_EQ(pop("true", "__QUEUE_MODE__"), R"({"conflationConflict": true} p:0*2#1)");
    EXPECT_EQ(stored("__QUEUE_MODE__"), "false");
}

TEST_F(Conflation, APinnedPopOfAnUnregisteredGroupGetsWhatItAsksForAndStoresNothing) {
    push("q", "p", {"1", "2", "3"});
    const auto pinned = [&](const std::string& conflate) {
        return sql.one(
            "select (meta - 'partitions' - 'delay' - 'window' - 'minWait')::text || ' ' || "
            "jsonb_path_query_array(meta, '$.partitions[*].segments[*].take') from "
            "queen.log_pop_specific_bin_v1('q', 'p', 'g', 9, 60, 'w', false, 'all', '', "
            "p_conflate => nullif($1, '')::boolean)",
            {conflate});
    };
    EXPECT_EQ(pinned("true"), R"({"seeded": false, "conflation": true} [1])");
    EXPECT_EQ(cursor("batch_end"), "2");
    clock(100);
    EXPECT_EQ(pinned(""), R"({"seeded": false} [3])");
    EXPECT_EQ(cursor("lease_conflated"), "f") << "the flag is of the lease";
}

TEST_F(Conflation, ADiscoveryStoresItWithItsLabelsAndWithEachQueue) {
    configure("q", R"({"namespace": "n"})");
    push("q", "p", {"1", "2"});
    EXPECT_EQ(discover("true"), R"({"seeded": true, "conflation": true} [1])");
    EXPECT_EQ(stored(), "true true");
    configure("later", R"({"namespace": "n"})");
    push("later", "p", {"1", "2", "3"});
    EXPECT_EQ(discover(""), R"({"seeded": true, "conflation": true} [1])");
    EXPECT_EQ(stored(), "true true true");
    EXPECT_EQ(discover("false"),
              R"({"seeded": true, "conflation": true, "conflationConflict": true} [])");
}

TEST_F(Conflation, AQueueWhereTheGroupIsAlreadyKeepsWhatItHas) {
    configure("q", R"({"namespace": "n"})");
    push("q", "p", {"1", "2"});
    EXPECT_EQ(pop("false"), "{} p:0*2#1");
    clock(100);
    EXPECT_EQ(discover("true"),
              R"({"seeded": true, "conflation": true, "conflationConflict": true} [2])");
}

// CF-2, both ack paths.
TEST_F(Conflation, OneAckByIdCompletesTheSpanAndTellsWhatItSkipped) {
    push("q", "p", {"1", "2", "3", "4"});
    pop("true");
    const std::string answer = ack({{"4", "completed"}});
    for (const auto& [name, value] : {std::pair{"ok", "true"},
                                      {"acked", "4"},
                                      {"conflated", "3"},
                                      {"covered", "true"},
                                      {"leaseReleased", "true"}}) {
        EXPECT_EQ(member(answer, name), value) << name;
    }
    EXPECT_EQ(cursor("committed || ' ' || total_consumed"), "3 1");
    push("q", "p", {"5"});
    EXPECT_EQ(pop("true"), R"({"conflation": true} p:4*1#1)");
    EXPECT_EQ(sql.one("select $1::jsonb ? 'conflated'", {ack({{"5", "completed"}})}), "f");
}

TEST_F(Conflation, OneAckByPositionCompletesTheSpanAndTellsWhatItSkipped) {
    push("q", "p", {"1", "2", "3", "4"});
    for (const auto& [count, consumed] : {std::pair{"0", "1"}, {"1", "2"}}) {
        pop("true");
        const std::string end = cursor("batch_end");
        const std::string answer = positions(end, count);
        EXPECT_EQ(member(answer, "ok"), "true");
        EXPECT_EQ(member(answer, "conflated"), "3");
        EXPECT_EQ(member(answer, "covered"), "true");
        EXPECT_EQ(cursor("committed || ' ' || total_consumed"), end + " " + consumed);
        push("q", "p", {"x" + end, "y" + end, "z" + end, "u" + end});
    }
}

// Without a dedup window one id may stand in a span twice; only the delivered one is meant.
TEST_F(Conflation, AnIdThatTheSpanHoldsTwiceIsTheDeliveredOne) {
    configure("q", R"({"dedupWindowSeconds": 0})");
    push("q", "p", {"same"});
    push("q", "p", {"other"});
    push("q", "p", {"same"});
    EXPECT_EQ(pop("true"), R"({"conflation": true} p:2*1#1)");
    EXPECT_EQ(member(ack({{"same", "completed"}}), "conflated"), "2");
    EXPECT_EQ(cursor("committed"), "2");
}

TEST_F(Conflation, AnIdThatWasSkippedIsNotTheBatchs) {
    push("q", "p", {"1", "2", "3"});
    pop("true");
    EXPECT_NE(member(ack({{"2", "completed"}}), "staleHashes"), "[]");
    EXPECT_EQ(cursor("committed || ' ' || batch_end"), "-1 2");
}

TEST_F(Conflation, WhatFailsComesBackAsTheThenNewest) {
    push("q", "p", {"1", "2"});
    EXPECT_EQ(pop("true"), R"({"conflation": true} p:1*1#1)");
    ack({{"2", "retry"}});
    EXPECT_EQ(pop("true"), R"({"conflation": true} p:1*1#2)") << "the same one again";
    push("q", "p", {"3"});
    ack({{"2", "failed"}});
    EXPECT_EQ(cursor("batch_retry_count"), "1");
    EXPECT_EQ(pop("true"), R"({"conflation": true} p:2*1#1)") << "nobody asks for the old one";
    EXPECT_EQ(cursor("committed"), "-1");
}

TEST_F(Conflation, ANewerMessageHasABudgetOfItsOwn) {
    configure("q", R"({"retryLimit": 1})");
    push("q", "p", {"1"});
    pop("true");
    ack({{"1", "failed"}}); // charged
    push("q", "p", {"2"});
    pop("true");
    EXPECT_EQ(member(ack({{"2", "failed"}}), "dlq"), "false") << "its first failure";
    EXPECT_EQ(cursor("batch_retry_count || ' ' || retry_offset"), "1 1");
    pop("true");
    EXPECT_EQ(member(ack({{"2", "failed"}}), "dlq"), "true");
}

TEST_F(Conflation, AMessageThatIsDroppedEndsItsSpan) {
    configure("q", R"({"retryLimit": 0, "deadLetterQueue": false, "dlqAfterMaxRetries": false})");
    push("q", "p", {"1", "2", "3"});
    pop("true");
    const std::string answer = ack({{"3", "failed"}});
    EXPECT_EQ(member(answer, "dropped"), "true");
    EXPECT_EQ(member(answer, "conflated"), "2");
    EXPECT_EQ(cursor("committed || ' ' || total_consumed"), "2 1");
}

TEST_F(Conflation, TheNewestIsTheNewestThatMayBeSeen) {
    configure("q", R"({"delayedProcessing": 10})");
    for (int i = 0; i < 20; ++i) {
        clock(i);
        push("q", "p", {std::to_string(2 * i), std::to_string(2 * i + 1)});
    }
    clock(15);
    EXPECT_EQ(pop("true"), R"({"conflation": true} p:11*1#1)") << "of second 5";
    EXPECT_EQ(member(ack({{"11", "completed"}}), "conflated"), "11");
    EXPECT_EQ(pop("true"), R"({"conflation": true} )");
    clock(29);
    EXPECT_EQ(pop("true"), R"({"conflation": true} p:39*1#1)");
}

TEST_F(Conflation, AutoAckMovesTheCursorPastTheSpan) {
    push("q", "p", {"1", "2", "3"});
    EXPECT_EQ(pop("true", "g", "", true), R"({"conflation": true} p:2*1#1)");
    EXPECT_EQ(cursor("committed || ' ' || total_consumed"), "2 1");
}

TEST_F(Conflation, WhatCouldNotBeDeliveredIsGivenBack) {
    push("q", "p", {"1", "2"});
    pop("true");
    EXPECT_EQ(sql.one("select queen.log_release_undelivered_v1($1, 'g', 'w')", {pid()}), "t");
    EXPECT_EQ(pop("true"), R"({"conflation": true} p:1*1#1)");
}

TEST_F(Conflation, DepthCountsWhatWillBeDelivered) {
    push("q", "a", {"1", "2", "3"});
    push("q", "b", {"4", "5"});
    push("q", "c", {"6"});
    pop("true");
    sql.script("update queen.log_consumers set worker_id = null, lease_expires_at = null");
    const auto depth = [&](const std::string& group) {
        return sql.one("select (d ->> 'conflation') || ' ' || (d ->> 'pending') || ' ' || (d ->> "
                       "'effectivePending') || ' ' || (d ->> 'effectiveReady') from "
                       "queen.log_queue_depth_v1('q', nullif($1, '')) d",
                       {group});
    };
    EXPECT_EQ(depth("g"), "true 6 3 3");
    EXPECT_EQ(depth("stranger"), "false 6 6 6");
    EXPECT_EQ(depth("").substr(0, 6), "false ");
}

} // namespace
} // namespace queen::test
