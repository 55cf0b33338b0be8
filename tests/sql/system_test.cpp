// Switches, statistics and counts of all brokers.
#include "sql/sql_fixture.hpp"
#include "support/sql_files.hpp"

namespace queen::test {
namespace {

class System : public SqlTest {
protected:
    System() : SqlTest(Database::own) {}

    /// A whole refresh, one step. @return "queues partitions written"
    std::string refresh(SqlSession* session = nullptr) {
        return (session != nullptr ? *session : sql)
            .one("select concat_ws(' ', s.queues, s.partitions, s.written) from "
                 "queen.refresh_stats_step_v1(null, 1000) s");
    }
    void push_many(int count) {
        std::vector<std::string> batch;
        for (int i = 0; i < count; ++i) {
            batch.push_back("m" + std::to_string(ids_++));
        }
        push("q", "p", batch);
    }
    std::string ingested() {
        return sql.one("select coalesce(queen.resources_overview_cached_v1($1) #>> "
                       "'{throughput,ingestedPerSecond}', 'null')",
                       {kTenant});
    }
    std::string processed(const char* which = "resources_overview_cached_v1") {
        return sql.one(std::string("select coalesce(queen.") + which +
                           "($1) #>> '{throughput,processedPerSecond}', 'null')",
                       {kTenant});
    }
    std::string switches() {
        return sql.one("select concat_ws(' ', maintenance, pop_maintenance, timers_schedule, "
                       "timers_fire) from queen.read_switches_v1()");
    }
    /// What rows of the statistics there are, by their versions.
    std::string versions() {
        return sql.one("select concat((select string_agg(concat(s.xmin, s.ctid), ' ' order by "
                       "s.queue_id) from queen.queue_stats s), '/', (select "
                       "string_agg(concat(g.xmin, g.ctid), ' ' order by g.queue_id, "
                       "g.consumer_group) from queen.group_stats g))");
    }

    int ids_ = 0;
};

// SWI-1, SWI-3
TEST_F(System, MaintenanceIsOffAndTimersAreOnUntilTheyAreSetAndStay) {
    EXPECT_EQ(switches(), "f f t t");
    sql.query("select queen.set_switch_v1('pop_maintenance_mode', true)");
    EXPECT_EQ(switches(), "f t t t");
    sql.query("select queen.set_switch_v1('maintenance_mode', true)");
    sql.query("select queen.set_switch_v1('pop_maintenance_mode', false)");
    EXPECT_EQ(switches(), "t f t t");
    sql.query("select queen.set_switch_v1('timers_schedule_enabled', false)");
    EXPECT_EQ(switches(), "t f f t");
    sql.query("select queen.set_switch_v1('timers_fire_enabled', false)");
    sql.query("select queen.set_switch_v1('timers_schedule_enabled', true)");
    EXPECT_EQ(switches(), "t f t f");
    EXPECT_EQ(sql.one("select value from queen.system_state where key = 'maintenance_mode'"),
              R"({"enabled": true})");
}

TEST_F(System, AValueThatIsNoSwitchIsAsNeverSet) {
    sql.script("insert into queen.system_state (key, value) values ('pop_maintenance_mode', "
               "'{\"enabled\": \"true\"}'), ('maintenance_mode', '[]'), "
               "('timers_schedule_enabled', '{\"enabled\": \"false\"}'), "
               "('timers_fire_enabled', '[]')");
    EXPECT_EQ(switches(), "f f t t");
}

// That of a version without timers told of two.
TEST_F(System, AnOlderFunctionOfSwitchesIsReplaced) {
    sql.script("drop function queen.read_switches_v1(); create function queen.read_switches_v1(out "
               "maintenance boolean, out pop_maintenance boolean) language sql as 'select true, "
               "true'");
    ASSERT_NO_THROW(install_schema(sql));
    EXPECT_EQ(switches(), "f f t t");
}

// ST-6
TEST_F(System, ARefreshWritesOnlyWhatChanged) {
    push("q", "p", {"a", "b"});
    push("r", "p", {"c"});
    wildcard({.group = "g", .budget = 1, .auto_ack = true});
    EXPECT_EQ(refresh(), "2 2 3"); // two queues, one group
    const auto before = versions();
    EXPECT_EQ(refresh(), "2 2 0");
    clock(5);
    EXPECT_EQ(refresh(), "2 2 0"); // ages grow by themselves
    EXPECT_EQ(versions(), before);
    push("r", "p", {"d"});
    EXPECT_EQ(refresh(), "2 2 1");
}

TEST_F(System, StepsGoOnWhereTheyEnded) {
    for (const char* queue : {"a", "b", "c", "d", "e"}) {
        push(queue, "p", {"x"});
    }
    std::string after = "00000000-0000-0000-0000-000000000000";
    int steps = 0;
    for (; !after.empty(); ++steps) {
        ASSERT_LT(steps, 4);
        after = sql.one("select coalesce(next::text, '') from queen.refresh_stats_step_v1($1, 2)",
                        {after});
    }
    EXPECT_EQ(steps, 3);
    EXPECT_EQ(sql.one("select count(*) from queen.queue_stats"), "5");
}

TEST_F(System, WhatIsGoneLeavesTheStatistics) {
    push("q", "p", {"a"});
    push("r", "p", {"b"});
    wildcard({.group = "g", .auto_ack = true});
    refresh();
    sql.query("delete from queen.log_consumers");
    sql.query("delete from queen.consumer_groups_metadata");
    EXPECT_EQ(refresh(), "2 2 2"); // q waits as a whole again, the group is gone
    EXPECT_EQ(sql.one("select count(*) from queen.group_stats"), "0");
    sql.query("select queen.delete_queue_v1($1, 'q')", {kTenant});
    EXPECT_EQ(sql.one("select count(*) from queen.queue_stats"), "1");
}

TEST_F(System, AgeIsUnknownUntilARefreshEnded) {
    const auto age = [&] {
        return sql.one("select coalesce(age_ms::text, 'never') || ' ' || took_ms from "
                       "queen.stats_state_v1()");
    };
    EXPECT_EQ(age(), "never 0");
    EXPECT_EQ(sql.one("select queen.resources_overview_cached_v1($1) -> 'statsAge'", {kTenant}),
              "-1");
    clock(10);
    sql.query("select queen.stats_refreshed_v1(2000)");
    EXPECT_EQ(age(), "2000 2000"); // figures are as old as the refresh's begin
    clock(14.5);
    EXPECT_EQ(age(), "6500 2000");
    for (const char* answer : {"resources_overview_cached_v1", "list_queues_cached_v1"}) {
        EXPECT_EQ(sql.one(std::string("select queen.") + answer + "($1) -> 'statsAge'", {kTenant}),
                  "6.5");
    }
}

TEST_F(System, AQueueThatIsYoungerThanItsStatisticsIsListedWithZeros) {
    push("q", "p", {"a"});
    EXPECT_EQ(sql.one("select queen.list_queues_cached_v1($1) #>> '{queues,0,messages,total}'",
                      {kTenant}),
              "0");
}

// ST-4
TEST_F(System, ANewQueueHadNothingBefore) {
    sql.query("select queen.configure_queue_v1('q', '{}', $1)", {kTenant});
    sql.query("update queen.queues set created_at = queen._clock()");
    clock(10);
    push_many(600);
    refresh();
    EXPECT_EQ(ingested(), "2"); // 600 in 5 minutes
}

TEST_F(System, RatesNeedThreeSeconds) {
    push_many(90);
    sql.query("update queen.queues set created_at = queen._clock() - interval '1 day'");
    refresh();
    EXPECT_EQ(ingested(), "null"); // pushed at some time or other
    clock(2);
    push_many(10);
    refresh();
    EXPECT_EQ(ingested(), "null");
    clock(5);
    EXPECT_EQ(ingested(), "2"); // 10 in 5 seconds
    EXPECT_EQ(processed(), "0");
}

TEST_F(System, RatesAreOverTheLastFiveMinutes) {
    push_many(1);
    sql.query("update queen.queues set created_at = queen._clock() - interval '1 day'");
    for (int second = 0; second <= 600; second += 10) {
        clock(second);
        push_many(20);
        refresh();
    }
    EXPECT_EQ(ingested(), "2");
    clock(750);
    refresh();
    EXPECT_EQ(sql.one("select $1::numeric between 0.9 and 1.1", {ingested()}), "t");
    clock(901);
    EXPECT_EQ(ingested(), "0"); // decays with nothing written
    clock(4000);
    push_many(300);
    refresh();
    EXPECT_EQ(ingested(), "1"); // a burst after a long rest, over 5 minutes
    clock(4200);
    push_many(300);
    refresh();
    EXPECT_EQ(ingested(), "2");
    clock(4310);
    EXPECT_EQ(sql.one("select $1::numeric between 0.9 and 1.1", {ingested()}), "t");
    EXPECT_EQ(sql.one("select cardinality(sampled_at) <= 16 from queen.queue_stats"), "t");
}

TEST_F(System, ProcessedIsWhatGroupsAreDoneWith) {
    push_many(300);
    wildcard({.group = "g", .budget = 150, .auto_ack = true});
    wildcard({.group = "h", .budget = 150, .auto_ack = true});
    EXPECT_EQ(processed("resources_overview_v1"), "null"); // no statistics yet
    sql.query("update queen.queues set created_at = queen._clock()");
    refresh();
    EXPECT_EQ(processed(), "1"); // each group's count
    wildcard({.group = "g", .budget = 150, .auto_ack = true});
    EXPECT_EQ(processed("resources_overview_v1"), "1.5"); // counted now, from the samples
    sql.query("delete from queen.log_consumers where consumer_group = 'g'");
    EXPECT_EQ(processed("resources_overview_v1"), "0.5");
}

TEST_F(System, TheMedianOfSeveralQueuesIsThatOfTheirPartitions) {
    for (int i = 0; i < 5; ++i) { // five with one message, two with seven
        push("small", "p" + std::to_string(i), {"m"});
    }
    for (int i = 0; i < 2; ++i) {
        push("large", "p" + std::to_string(i), {"a", "b", "c", "d", "e", "f", "g"});
    }
    refresh();
    clock(8);
    EXPECT_EQ(sql.one("select queen.resources_overview_cached_v1($1) #> '{lag,offset}'", {kTenant}),
              R"({"avg": 2.714, "max": 7, "min": 1, "median": 1})");
    EXPECT_EQ(sql.one("select queen.resources_overview_cached_v1($1) #> '{lag,time}'", {kTenant}),
              R"({"avg": 8, "max": 8, "min": 8, "median": 8})");
}

// LK-5
TEST_F(System, TwoRefreshesWaitForEachOtherAndNeverCross) {
    for (const char* queue : {"a", "b", "c", "d"}) {
        push(queue, "p", {"x"});
    }
    refresh();
    for (const char* queue : {"a", "b", "c", "d"}) {
        push(queue, "p", {"y"});
    }
    auto other = connect();
    sql.script("begin");
    EXPECT_EQ(refresh(), "4 4 4");
    other.send("select queen.refresh_stats_step_v1(null, 1000)");
    sql.wait_for("exists (select 1 from pg_locks where pid = $1 and not granted)", {other.pid()});
    sql.script("commit");
    other.finish();
    EXPECT_EQ(sql.one("select sum(pushed) from queen.queue_stats"), "8");
}

TEST_F(System, AQueueThatIsBeingDeletedIsPassedOver) {
    push("q", "p", {"a"});
    push("r", "p", {"b"});
    auto other = connect();
    other.script("begin");
    other.query("select queen.delete_queue_v1($1, 'q')", {kTenant});
    EXPECT_EQ(refresh(), "1 1 1");
    other.script("commit");
}

// CNT-1
TEST_F(System, ADeltaCountsOnceHoweverOftenItIsTold) {
    const auto tell = [&](const char* source, int number, const char* names, const char* values) {
        return sql.one(
            "select queen.add_counts_v1($1, $2, $3, $4)",
            {std::string("0199f0aa-0000-7000-8000-00000000000") + source, number, names, values});
    };
    EXPECT_EQ(tell("1", 1, "{push,pop}", "{5,7}"), "t");
    EXPECT_EQ(tell("1", 1, "{push,pop}", "{5,7}"), "f");
    EXPECT_EQ(tell("2", 1, "{push}", "{10}"), "t");
    EXPECT_EQ(tell("1", 2, "{push}", "{1}"), "t");
    EXPECT_EQ(tell("1", 1, "{push}", "{5}"), "f");
    EXPECT_EQ(sql.one("select queen.cluster_figures_v1(10) -> 'counts'"),
              R"({"pop": 7, "push": 16})");
    clock(8 * 86400);
    EXPECT_EQ(tell("3", 1, "{}", "{}"), "t");
    EXPECT_EQ(sql.one("select count(*) from queen.count_sources"), "1");
}

TEST_F(System, FiguresOfThePageAreBoundedAndSummedUpByName) {
    const char* kOther = "00000000-0000-0000-0000-000000000002";
    for (int i = 0; i < 4; ++i) {
        const auto queue = "q" + std::to_string(i);
        std::vector<std::string> ids;
        for (int n = 0; n <= i; ++n) {
            ids.push_back("m" + std::to_string(n));
        }
        push(queue, "p", ids);
        wildcard({.queue = queue, .group = "g", .budget = 1});
    }
    sql.query("select queen.log_push_one_v1('q3', 'p', 1, $1, -1, '\\x00', p_tenant => $2)",
              {hash("z"), kOther});
    sql.query("insert into queen.log_dlq (queue_id, partition_id, consumer_group, \"offset\") "
              "select p.queue_id, p.id, 'g', 0 from queen.log_partitions p join queen.queues q on "
              "q.id = p.queue_id where q.name in ('q2', 'q3')");
    EXPECT_EQ(sql.one("select queen.cluster_figures_v1(10) -> 'age'"), "null");
    refresh();
    clock(3);
    sql.query("select queen.stats_refreshed_v1(0)");
    clock(5);
    EXPECT_EQ(
        sql.one("select queen.cluster_figures_v1(2) - 'counts'"),
        R"({"age": 2, "groups": [{"age": 5.000000, "group": "g", "queue": "q3", "behind": 4},)"
        R"( {"age": 5.000000, "group": "g", "queue": "q2", "behind": 3}], "queues": )"
        R"([{"queue": "q3", "deadLetters": 2}, {"queue": "q2", "deadLetters": 1}], )"
        R"("deadLetters": 3})");
}

} // namespace
} // namespace queen::test
