// Seeks and deletes of groups against pops, acks, pushes and each other. They may wait for a pop; a
// pop waits for none of them (LK-3).
#include "sql/groups_fixture.hpp"

namespace queen::test {
namespace {

class GroupsRace : public GroupsTest {
protected:
    GroupsRace() : deadlocks_before_(SqlTest::deadlocks()) {}

    SqlSession impatient() {
        SqlSession session = connect();
        session.script("set lock_timeout = '10s'");
        return session;
    }
    std::int64_t deadlocks() { return SqlTest::deadlocks() - deadlocks_before_; }
    const std::int64_t deadlocks_before_;
    static constexpr const char* kSeekEnd =
        "select queen.log_seek_consumer_group_v1('g', 'q', true)";
    static constexpr const char* kSeekStart =
        "select queen.log_seek_consumer_group_v1('g', 'q', false, 'epoch')";
    static constexpr const char* kRemove = "select queen.log_delete_consumer_group_v1('g')";
};

TEST_F(GroupsRace, APopPassesByASeekAndADelete) {
    push("q", "p", {"a"});
    push("q", "r", {"b"});
    wildcard({.auto_ack = true});
    push("q", "p", {"c"});
    for (const char* move : {kSeekStart, kRemove}) {
        SqlSession mover = connect();
        mover.script("begin");
        mover.query(move);
        SqlSession consumer = impatient();
        EXPECT_EQ(wildcard({}, &consumer), "") << move;
        EXPECT_EQ(list({"p", "r"}, {}, &consumer), "p=leased(250) r=empty") << move;
        EXPECT_EQ(pop({}, &consumer), "") << move;
        EXPECT_EQ(wildcard({.group = "h", .auto_ack = true}, &consumer) == "", move == kRemove);
        mover.script("rollback");
    }
    EXPECT_EQ(list({"p"}, {.auto_ack = true}), "p=took");
}

// A first contact that comes while the group is moved leaves, and does not queue up.
TEST_F(GroupsRace, AFirstContactPassesByASeek) {
    push("q", "p", {"a"});
    pop({.group = "g", .budget = 1, .auto_ack = true});
    push("q", "new", {"b"});
    SqlSession mover = connect();
    mover.script("begin");
    mover.query("select queen.log_seek_partition_v1('g', 'q', 'p', true)");
    SqlSession consumer = impatient();
    EXPECT_EQ(wildcard({}, &consumer), "");
    EXPECT_EQ(pop({.partition = "new"}, &consumer), "");
    mover.script("commit");
    EXPECT_EQ(wildcard({}, &consumer), "new:0+0*1");
}

// GRP-5: the end is what there is when the cursors are held, not when the seek was asked for.
TEST_F(GroupsRace, ASeekWaitsForAPopAndDoesNotUndoWhatItConsumed) {
    push("q", "p", {"a"});
    wildcard({.auto_ack = true});
    push("q", "p", {"b"});
    SqlSession consumer = connect();
    consumer.script("begin");
    EXPECT_EQ(pop({.auto_ack = true}, &consumer), "1+0*1");
    SqlSession mover = connect();
    mover.send(kSeekEnd);
    await_lock(mover);
    push("q", "p", {"c"});
    SqlSession more = connect();
    consumer.script("commit");
    mover.finish();
    EXPECT_EQ(cursors(), "p=2") << "nothing of what was pushed until then comes again";
    EXPECT_EQ(pop({}), "");
}

TEST_F(GroupsRace, ALeaseOfAPopThatASeekWaitedForIsVoid) {
    push("q", "p", {"a", "b"});
    wildcard({.budget = 1, .auto_ack = true});
    SqlSession consumer = connect();
    consumer.script("begin");
    EXPECT_EQ(pop({.worker = "old"}, &consumer), "0+1*1");
    SqlSession mover = connect();
    mover.send(kSeekStart);
    await_lock(mover);
    consumer.script("commit");
    mover.finish();
    EXPECT_EQ(member(ack({{"b", "completed"}}, "old"), "error"), "invalid or expired lease");
    EXPECT_EQ(pop({.worker = "new"}), "0+0*2");
}

TEST_F(GroupsRace, AnAckThatWaitedForASeekIsRefused) {
    push("q", "p", {"a"});
    wildcard({.worker = "old"});
    SqlSession mover = connect();
    mover.script("begin");
    mover.query(kSeekStart);
    SqlSession acker = connect();
    acker.send("select queen.log_ack_by_hash_v1($1, 'g', 'old', $2, $3)",
               {pid(), std::vector<std::string>{hash("a")}, std::vector<std::string>{"completed"}});
    await_lock(acker);
    mover.script("commit");
    EXPECT_EQ(member(acker.finish().get(0, 0), "error"), "invalid or expired lease");
    EXPECT_EQ(cursors(), "p=-1");
}

TEST_F(GroupsRace, APushPassesByASeek) {
    push("q", "p", {"a"});
    wildcard({.auto_ack = true});
    push("q", "fresh", {"b"}); // whose cursor the seek makes
    SqlSession mover = connect();
    mover.script("begin");
    mover.query(kSeekEnd);
    SqlSession producer = impatient();
    for (const std::string partition : {"p", "fresh", "other"}) {
        EXPECT_EQ(producer.one("select queen.log_push_one_v1('q', $1, 1, $2, -1, 'x') ->> 'status'",
                               {partition, hash("c")}),
                  "queued");
    }
    mover.script("commit");
    EXPECT_EQ(wildcard({}), "fresh:1+0*1 other:0+0*1 p:1+0*1");
}

// The queue's delete takes what a seek has in the opposite hands unless the seek held the queue.
TEST_F(GroupsRace, AQueueDeleteAndASeekTakeTurns) {
    for (const bool seek_first : {true, false}) {
        push("q", "p", {"a"});
        push("q", "r", {"b"});
        pop({.group = "g", .budget = 1});
        SqlSession first = connect();
        first.script("begin");
        SqlSession second = connect();
        const std::string remove =
            std::string("select queen.delete_queue_v1('") + std::string(kTenant) + "', 'q')";
        first.query(seek_first ? kSeekEnd : remove);
        second.send(seek_first ? remove : kSeekEnd);
        await_lock(second);
        first.script("commit");
        const std::string answer = second.finish().get(0, 0);
        if (seek_first) {
            EXPECT_EQ(answer, "t");
        } else {
            EXPECT_EQ(told(answer), "Queue not found or has no partitions");
        }
        EXPECT_EQ(sql.integer("select count(*) from queen.log_consumers"), 0);
    }
    EXPECT_EQ(deadlocks(), 0);
}

TEST_F(GroupsRace, TwoSeeksOfOneGroupTakeTurns) {
    push("q", "p", {"a"});
    wildcard({.auto_ack = true});
    SqlSession first = connect();
    first.script("begin");
    first.query(kSeekStart);
    SqlSession second = connect();
    second.send(kSeekEnd);
    await_lock(second);
    first.script("commit");
    second.finish();
    EXPECT_EQ(cursors(), "p=0");
}

// Whoever removes old repairs does it last, so that two who do cannot wait for each other.
TEST_F(GroupsRace, WritersOfRepairsDoNotWaitForEachOther) {
    for (const std::string queue : {"q", "r"}) {
        push(queue, "p", {"a"});
        wildcard({.queue = queue});
        wildcard({.queue = queue, .group = "h"});
        seek_end("g", queue);
        seek_end("h", queue);
    }
    clock(7300); // all four are old
    SqlSession first = connect();
    first.script("begin");
    first.query(kRemove);
    SqlSession second = connect();
    second.send("select queen.log_delete_consumer_group_v1('h')");
    await_lock(second); // for a row that the first one found too old
    first.script("commit");
    second.finish();
    EXPECT_EQ(repairs(), "q/g/* group deleted q/h/* group deleted r/g/* group deleted r/h/* group "
                         "deleted");
    // The other way round: what is being written is not waited for.
    clock(14600);
    wildcard({.group = "h"});
    first.script("begin; select from queen.hotlist_repairs for update");
    SqlSession mover = impatient();
    wildcard({.group = "k"});
    EXPECT_EQ(seek_end("k", "q", &mover), "moved 1");
    first.script("rollback");
}

// Cursors appear and go under a seek while everybody is busy: no deadlock, no lost cursor.
TEST_F(GroupsRace, MovesAmongPopsAcksAndDeletesEnd) {
    run_clock();
    for (int i = 0; i < 40; ++i) {
        push("q", "p" + std::to_string(i), {"a" + std::to_string(i)});
    }
    constexpr int kSessions = 12;
    std::vector<SqlSession> sessions;
    for (int i = 0; i < kSessions; ++i) {
        sessions.push_back(impatient());
    }
    const std::vector<std::string> deeds{
        kSeekStart,
        kSeekEnd,
        kRemove,
        "select queen.log_delete_consumer_group_v1('g', false, p_queue => 'q')",
        "select queen.update_consumer_group_subscription_v1('g', 'epoch')",
        "select queen.log_seek_partition_v1('g', 'q', 'p7', true)",
        "select meta from queen.log_pop_wildcard_bin_v1('q', 'g', 100, 1, 'w', false, 50)",
        "select meta from queen.log_pop_wildcard_bin_v1('q', 'g', 100, 1, 'w', true, 50)",
        "select meta from queen.log_pop_list_v1('q', 'g', '{p9,p3,p7}', 9, 1, 'w')",
        "select queen.log_ack_multi_v1(array_agg(c.partition_id order by random()), "
        "array_agg(c.consumer_group), array_agg(c.batch_end), array_agg(c.worker_id), "
        "array_agg(1::bigint)) from queen.log_consumers c where c.worker_id is not null"};
    for (int round = 0; round < 60; ++round) {
        for (int i = 0; i < kSessions; ++i) {
            sessions[static_cast<std::size_t>(i)].send(
                deeds[static_cast<std::size_t>(round * 7 + i * 3 + round / 10) % deeds.size()]);
        }
        for (auto& session : sessions) {
            ASSERT_NO_THROW(session.finish());
        }
    }
    EXPECT_EQ(deadlocks(), 0);
    EXPECT_EQ(seek_end("__QUEUE_MODE__"), "moved 40");
}

} // namespace
} // namespace queen::test
