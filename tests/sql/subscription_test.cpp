#include "sql/sql_fixture.hpp"

namespace queen::test {
namespace {

class Seeding : public SqlTest {
protected:
    /// Segments of one message at seconds 10, 20, 30.
    void three() {
        for (int i = 1; i <= 3; ++i) {
            clock(i * 10);
            push("q", "p", {"m" + std::to_string(i)});
        }
        clock(40);
    }
    std::string at(int seconds) { return "2030-01-01T00:00:" + std::to_string(seconds) + "Z"; }
};

TEST_F(Seeding, WithoutWishesAGroupBeginsAtTheStart) {
    three();
    EXPECT_EQ(pop({}), "0+0*1 1+0*1 2+0*1");
}

TEST_F(Seeding, ThePopsOwnWishHoldsForAPinnedFirstContact) {
    three();
    EXPECT_EQ(pop({.group = "new", .mode = "new"}), "");
    EXPECT_EQ(pop({.group = "now", .from = "now"}), "");
    EXPECT_EQ(pop({.group = "from", .from = at(20)}), "1+0*1 2+0*1");
    EXPECT_EQ(pop({.group = "between", .from = at(21)}), "2+0*1");
    EXPECT_EQ(pop({.group = "late", .from = at(31)}), "");
    EXPECT_EQ(pop({.group = "early", .from = "1999-01-01T00:00:00Z"}), "0+0*1 1+0*1 2+0*1");
    EXPECT_EQ(sql.integer("select count(*) from queen.consumer_groups_metadata"), 0);
}

TEST_F(Seeding, NewCursorsSeeWhatComesNext) {
    three();
    pop({.group = "new", .mode = "new"});
    push("q", "p", {"m4"});
    EXPECT_EQ(pop({.group = "new", .mode = "new"}), "3+0*1");
}

TEST_F(Seeding, AnExistingCursorIsNeverSeededAgain) {
    three();
    pop({.budget = 1, .auto_ack = true});
    EXPECT_EQ(pop({.mode = "new"}), "1+0*1 2+0*1");
}

TEST_F(Seeding, TheStoredSubscriptionBeatsTheWishOfThePop) {
    three();
    wildcard({.from = at(20)});
    sql.script("delete from queen.log_consumers");
    EXPECT_EQ(pop({.mode = "new"}), "1+0*1 2+0*1");
}

TEST_F(Seeding, QueueModeIgnoresEveryWish) {
    three();
    EXPECT_EQ(pop({.group = "__QUEUE_MODE__", .mode = "new"}), "0+0*1 1+0*1 2+0*1");
    EXPECT_EQ(pop({.group = "__QUEUE_MODE__", .from = at(30)}), "");
    push("r", "p", {"a"});
    EXPECT_EQ(wildcard({.queue = "r", .group = "__QUEUE_MODE__", .mode = "new"}), "p:0+0*1");
    EXPECT_EQ(sql.one("select subscription_mode || subscription_timestamp from "
                      "queen.consumer_groups_metadata"),
              "all1970-01-01 00:00:00+00");
}

TEST_F(Seeding, UnreadableWishesAreErrors) {
    push("q", "p", {"a"});
    EXPECT_THROW(pop({.mode = "newest"}), SqlError);
    EXPECT_THROW(pop({.from = "yesteryear"}), SqlError);
    EXPECT_EQ(sql.integer("select count(*) from queen.log_consumers"), 0);
}

TEST_F(Seeding, AFirstWildcardPopSeedsEveryPartition) {
    three();
    push("q", "empty-for-new", {"x"});
    clock(41);
    EXPECT_EQ(wildcard({.mode = "new"}), "");
    EXPECT_EQ(sql.query("select p.name || '=' || c.committed from queen.log_consumers c join "
                        "queen.log_partitions p on p.id = c.partition_id order by 1")
                  .column(0),
              "empty-for-new=0 p=2");
    EXPECT_EQ(sql.one("select subscription_mode || ' ' || (subscription_timestamp = "
                      "queen._clock()) from queen.consumer_groups_metadata"),
              "new true");
}

TEST_F(Seeding, ATimestampSeedsEachPartitionAtItsOwnSegment) {
    three();
    push("q", "young", {"x"});
    EXPECT_EQ(wildcard({.from = at(25)}), "p:2+0*1 young:0+0*1");
}

TEST_F(Seeding, SeedingStartsAtTheRetentionWatermark) {
    three();
    sql.script("delete from queen.log_segments where base_offset = 0");
    sql.script("update queen.log_partitions set log_start = 1");
    wildcard({.budget = 1, .partitions = 0});
    EXPECT_EQ(cursor("committed"), "0");
}

// K04
TEST_F(Seeding, ANewSubscriberMissesNothingInPartitionsBornLater) {
    push("q", "old", {"a"});
    clock(5);
    EXPECT_EQ(wildcard({.mode = "new"}), "");
    EXPECT_EQ(wildcard({.group = "h", .from = "now"}), "");
    clock(6);
    push("q", "never-seen-before", {"m1"});
    EXPECT_EQ(wildcard({.mode = "new"}), "never-seen-before:0+0*1");
    EXPECT_EQ(wildcard({.group = "h", .from = "now"}), "never-seen-before:0+0*1");
}

TEST_F(Seeding, APushThatCommitsAfterTheSubscriptionIsDelivered) {
    push("q", "p", {"a"});
    SqlSession late = connect();
    late.script("begin");
    late.query("select queen.log_push_one_v1('q', 'p', 1, $1, -1, 'x')", {hash("b")});
    clock(1);
    EXPECT_EQ(wildcard({.mode = "new"}), "");
    late.script("commit");
    EXPECT_EQ(wildcard({.mode = "new"}), "p:1+0*1");
}

class Discovery : public SqlTest {
protected:
    /// "queue/partition:base" sorted.
    std::string discover(const std::string& ns, const std::string& task,
                         const std::string& mode = "all", const std::string& group = "g") {
        return sql
            .query("select (p ->> 'queue') || '/' || (p ->> 'partition') || ':' || "
                   "(p -> 'segments' -> 0 ->> 'seq') from "
                   "queen.log_pop_discover_bin_v1($1, $2, $3, 100, 0, 'w', false, 100, $4) b, "
                   "jsonb_array_elements(b.meta -> 'partitions') p order by 1",
                   {ns, task, group, mode})
            .column(0);
    }
};

TEST_F(Discovery, FindsQueuesByEitherLabelOrBoth) {
    push("orders.email", "p", {"a"});
    push("orders.invoice", "p", {"a"});
    push("users.email", "p", {"a"});
    configure("plain", "{}");
    push("plain", "p", {"a"});
    EXPECT_EQ(discover("orders", "", "all", "g1"), "orders.email/p:0 orders.invoice/p:0");
    EXPECT_EQ(discover("", "email", "all", "g2"), "orders.email/p:0 users.email/p:0");
    EXPECT_EQ(discover("orders", "email", "all", "g3"), "orders.email/p:0");
    EXPECT_THROW(discover("", ""), SqlError);
}

TEST_F(Discovery, CreatesNoQueueAndRegistersTheGroup) {
    EXPECT_EQ(discover("orders", ""), "");
    EXPECT_EQ(sql.integer("select count(*) from queen.queues"), 0);
    EXPECT_EQ(sql.one("select namespace || '|' || task || '|' || (queue_id is null) from "
                      "queen.consumer_groups_metadata"),
              "orders||true");
}

TEST_F(Discovery, AQueueBornAfterTheSubscriptionIsReadFromThere) {
    push("orders.old", "p", {"a"});
    clock(1);
    EXPECT_EQ(discover("orders", "", "new"), "");
    clock(2);
    push("orders.new", "p", {"b"});
    clock(3);
    EXPECT_EQ(discover("orders", "", "new"), "orders.new/p:0");
}

TEST_F(Discovery, UsesEachQueuesOwnLeaseTimeAndGates) {
    configure("a.1", R"({"namespace": "a", "leaseTime": 11})");
    configure("a.2", R"({"namespace": "a", "leaseTime": 22})");
    configure("a.3", R"({"namespace": "a", "delayedProcessing": 60})");
    for (const std::string queue : {"a.1", "a.2", "a.3"}) {
        push(queue, "p", {"x"});
    }
    EXPECT_EQ(discover("a", ""), "a.1/p:0 a.2/p:0");
    EXPECT_EQ(sql.query("select extract(epoch from lease_expires_at - lease_acquired_at)::int "
                        "from queen.log_consumers where worker_id is not null order by 1")
                  .column(0),
              "11 22");
}

TEST_F(Discovery, TheWireTwinNamesTheQueueAndCarriesBlobs) {
    push("a.1", "p", {"x"});
    const std::string wire = sql.one("select queen.log_pop_discover_wire_v1('a', '', 'g', 9, 0, "
                                     "'w', false, 9) #>> '{partitions,0}'");
    EXPECT_EQ(member(wire, "queue"), "a.1");
    EXPECT_EQ(sql.one("select $1::jsonb #>> '{segments,0,blob}'", {wire}), "eA==");
}

TEST_F(Discovery, StaysInsideTheTenant) {
    sql.query("select queen.log_push_one_v1('a.1', 'p', 1, $1, -1, 'x', null, null, "
              "'00000000-0000-0000-0000-000000000002')",
              {hash("a")});
    EXPECT_EQ(discover("a", ""), "");
}

} // namespace
} // namespace queen::test
