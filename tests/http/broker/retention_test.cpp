// Retention and cleanup by real brokers on a server of their own, with short periods.
#include "support/api.hpp"
#include "support/broker_process.hpp"
#include "support/candidate_source.hpp"
#include "support/postgres.hpp"
#include "support/sql_session.hpp"
#include "support/temp_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <memory>

namespace queen::test {
namespace {

using testing::ElementsAre;

class RetentionBrokerTest : public testing::Test {
protected:
    RetentionBrokerTest()
        : database_(TestPostgres::shared().create_database()),
          sql(TestPostgres::shared().conninfo(database_)) {}

    std::unique_ptr<BrokerProcess> start(const std::string& name) {
        return std::make_unique<BrokerProcess>(BrokerOptions{
            .config = "database: {url: \"" + TestPostgres::shared().conninfo(database_) +
                      "\", sessions: 4}\nserver_id: " + name +
                      "\nmaintenance: {retention_interval: 100ms, retention_batch: 20}\n" +
                      serving(source_under_test()),
            .data_directory = directory_.path() + "/" + name});
    }
    /// Turns at retention that began after this call and were given back.
    void await_turns(int turns) {
        const std::string now = sql.one("select runs from queen.maintenance_leases where task = "
                                        "'retention'");
        sql.wait_for("(select runs from queen.maintenance_leases where task = 'retention') > "
                     "$1::bigint + $2::bigint",
                     {now.empty() ? "0" : now, turns});
    }
    static std::vector<std::string> ids(int from, int to) {
        std::vector<std::string> all;
        for (int i = from; i < to; ++i) {
            all.push_back("m" + std::to_string(i));
        }
        return all;
    }

    TempDirectory directory_;
    const std::string database_;
    SqlSession sql;
};

TEST_F(RetentionBrokerTest, K05_WhatOneGroupFinishedStaysForTheOther) {
    const auto broker = start("a");
    Api api(broker->port());
    ASSERT_EQ(
        api.configure("q", R"({"completedRetentionSeconds":1,"retentionEnabled":true})").status,
        200);
    EXPECT_EQ(api.pop("q", "consumerGroup=A").status, 204);
    EXPECT_EQ(api.pop("q", "consumerGroup=B").status, 204);
    ASSERT_EQ(api.push_ids("q", "p", ids(0, 100)).status, 201);
    EXPECT_EQ(
        api.pop("q", "consumerGroup=A&batch=100&autoAck=true&wait=true&timeout=20000").ids().size(),
        100u);
    sql.wait_for("clock_timestamp() > (select max(newest_at) from queen.log_partitions) + interval "
                 "'1 s'");
    await_turns(2);
    EXPECT_EQ(api.pop("q", "consumerGroup=B&batch=100&autoAck=true&wait=true&timeout=20000").ids(),
              ids(0, 100));
    // Now everybody has it. Left alone for 8 turns at most, then it goes.
    sql.wait_for("not exists (select from queen.log_segments)");
    EXPECT_EQ(sql.one("select sum(messages_deleted) || ' ' || min(retention_type) from "
                      "queen.retention_history"),
              "100 completed_retention");
}

TEST_F(RetentionBrokerTest, K49_AnIdleGroupGetsExactlyTheNewMessageAfterItsLaneWasCleanedUp) {
    auto broker = start("a");
    {
        Api api(broker->port());
        ASSERT_EQ(api.configure("q", R"({"maxWaitTimeSeconds":1,"dedupWindowSeconds":1})").status,
                  200);
        ASSERT_EQ(api.push_ids("q", "p", {"old"}).status, 201);
        EXPECT_THAT(api.pop("q", "consumerGroup=g&autoAck=true&wait=true&timeout=20000").ids(),
                    ElementsAre("old"));
    }
    sql.wait_for("not exists (select from queen.log_segments)");
    // A month later, and the broker starts anew.
    EXPECT_EQ(broker->stop(), 0);
    sql.script("update queen.log_partitions set created_at = created_at - interval '40 days', "
               "last_write_at = last_write_at - interval '40 days', newest_at = newest_at - "
               "interval '40 days'; update queen.log_consumers set created_at = created_at - "
               "interval '40 days'");
    broker = start("a");
    sql.wait_for("not exists (select from queen.log_partitions)");
    Api api(broker->port());
    ASSERT_EQ(api.push_ids("q", "p", {"new"}).status, 201);
    const auto popped =
        api.pop("q", "consumerGroup=g&subscriptionMode=all&wait=true&timeout=20000");
    ASSERT_THAT(popped.ids(), ElementsAre("new"));
    EXPECT_EQ(popped.messages[0].offset, 0);
    EXPECT_EQ(api.ack(popped.messages[0], "completed", "g"), "true");
    EXPECT_EQ(api.pop("q", "consumerGroup=g").status, 204);
}

// K46 in small: many finished messages, steps of 20 rows, and traffic that goes on.
TEST_F(RetentionBrokerTest, K46_ABacklogGoesInBoundedStepsWhilePushesGoOn) {
    const auto broker = start("a");
    Api api(broker->port());
    ASSERT_EQ(api.configure("q", R"({"maxWaitTimeSeconds":600})").status, 200);
    for (int p = 0; p < 10; ++p) {
        ASSERT_EQ(api.push_ids("q", "p" + std::to_string(p), ids(p, p + 1)).status, 201);
    }
    sql.script("insert into queen.log_segments select id, i, i, clock_timestamp() - interval '1 "
               "hour', 'x' from queen.log_partitions, generate_series(-100, -1) i; update "
               "queen.log_partitions set log_start = -100, segment_count = 101, stored_bytes = "
               "stored_bytes + 100, oldest_live_at = clock_timestamp() - interval '1 hour'");
    for (int i = 100; i < 120; ++i) {
        ASSERT_EQ(api.push_ids("q", "p" + std::to_string(i % 10), ids(i, i + 1)).status, 201);
    }
    sql.wait_for("not exists (select from queen.log_segments where base_offset < 0)");
    EXPECT_EQ(sql.one("select count(*) || ' ' || sum(messages_deleted) || ' ' || "
                      "max(messages_deleted) from queen.retention_history"),
              "50 1000 20");
    EXPECT_EQ(sql.one("select count(*) from queen.log_segments"), "30");
}

// F-24: another broker has the turn within the lease of one that died in the middle of it.
TEST_F(RetentionBrokerTest, F24_ATurnOfAKilledBrokerIsTakenOverWhenItsLeaseIsOver) {
    auto first = start("first");
    await_turns(1);
    const auto second = start("second");
    first->kill9();
    // As if it had died in the middle of a turn, and most of its lease were over.
    sql.script("update queen.maintenance_leases set holder = 'first', fence = fence + 1, "
               "next_due_at = now(), lease_until = clock_timestamp() + interval '2 s' where task = "
               "'retention'");
    const std::string end =
        sql.one("select lease_until from queen.maintenance_leases where task = 'retention'");
    sql.wait_for("exists (select from queen.maintenance_leases where task = 'retention' and "
                 "last_start_at >= $1::timestamptz)",
                 {end});
    await_turns(1);
}

} // namespace
} // namespace queen::test
