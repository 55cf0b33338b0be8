// Dead letters in the database: order, pages, removing, and moving one back into a queue.
#include "sql/sql_fixture.hpp"
#include "support/sql_files.hpp"

#include <map>

namespace queen::test {
namespace {

constexpr std::string_view kOther = "00000000-0000-0000-0000-000000000002";
constexpr std::string_view kNobody = "00000000-0000-0000-0000-0000000000ff";

class Dlq : public SqlTest {
protected:
    using SqlTest::SqlTest;

    struct Letter {
        std::string txn = "t";
        std::string group = "g";
        std::string partition = "p";
        std::string queue = "q";
        std::int64_t offset = 0;
        double at = 0; ///< seconds on the test's clock
        std::string error = "broken";
        std::string payload = "{}";
    };
    /// @return the letter's id
    std::string file(const Letter& letter) {
        return sql.one("insert into queen.log_dlq (queue_id, partition_id, consumer_group, "
                       "\"offset\", message_id, transaction_id, payload, error, retry_count, "
                       "failed_at) select q.id, p.id, $3, $4, gen_random_uuid(), $5, "
                       "convert_to($6, 'UTF8'), $7, 3, timestamptz '2030-01-01 00:00:00+00' + "
                       "make_interval(secs => $8) from queen.queues q join queen.log_partitions p "
                       "on p.queue_id = q.id where q.name = $1 and p.name = $2 returning id",
                       {letter.queue, letter.partition, letter.group, letter.offset, letter.txn,
                        letter.payload, letter.error, std::to_string(letter.at)});
    }
    struct List {
        SqlArg queue = "q";
        SqlArg group = nullptr;
        SqlArg partition = nullptr;
        SqlArg from = nullptr;
        SqlArg to = nullptr;
        SqlArg after_at = nullptr;
        SqlArg after_id = nullptr;
        int limit = 100;
        int offset = 0;
        std::int64_t bytes = 1 << 20;
        std::string tenant{kTenant};
    };
    SqlRows list(const List& what, const std::string& columns = "transaction_id",
                 SqlSession* session = nullptr) {
        return (session != nullptr ? *session : sql)
            .query("select " + columns +
                       " from queen.log_dlq_list_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
                   {what.tenant, what.queue, what.group, what.partition, what.from, what.to,
                    what.after_at, what.after_id, what.limit, what.offset, what.bytes});
    }
    std::string txns(const List& what) { return list(what).column(0); }
    std::string total(const List& what) { return list(what, "total").get(0, 0); }

    SqlArg second(double at) {
        return sql.one("select timestamptz '2030-01-01 00:00:00+00' + make_interval(secs => $1)",
                       {std::to_string(at)});
    }
    static std::string move_sql() {
        return "select r ->> 'result' || coalesce(' ' || (r ->> 'queue') || '/' || (r ->> "
               "'partition') || ' ' || (r ->> 'offset'), '') from queen.log_dlq_move_v1($1, $2, "
               "$3, $4, $5, 'frame') r";
    }
    std::vector<SqlArg> move_args(const std::string& id, const std::string& queue = "q",
                                  const std::string& partition = "p",
                                  std::string_view tenant = kTenant) {
        return {tenant, id, queue, partition, hash("dlq:" + id)};
    }
    std::string move(const std::string& id, const std::string& queue = "q",
                     const std::string& partition = "p", std::string_view tenant = kTenant) {
        return sql.one(move_sql(), move_args(id, queue, partition, tenant));
    }
    /// What a call that was sent came to: its answer, or the SQLSTATE.
    static std::string outcome(SqlSession& session) {
        try {
            return session.finish().get(0, 0);
        } catch (const SqlError& error) {
            return error.state();
        }
    }
    /// Two moves of one letter, the second while the first is open. @return their results
    std::string double_click() {
        const std::string id = file({});
        SqlSession first = connect();
        SqlSession second = connect();
        first.script("begin");
        std::string results = first.one(move_sql(), move_args(id));
        results.resize(results.find(' '));
        second.send(move_sql(), move_args(id));
        await_lock(second);
        first.script("commit");
        return results + " " + outcome(second);
    }
    /// A move that comes while a delete of the queue holds queue and partitions and has not reached
    /// the letters: it waits for a cursor that somebody else made and did not commit.
    std::string move_under_delete() {
        push("q", "p", {"x"});
        const std::string id = file({});
        SqlSession remover = connect();
        SqlSession mover = connect();
        SqlSession holder = connect();
        sql.query("insert into queen.log_consumers (partition_id, consumer_group) values ($1, 'z')",
                  {pid()});
        holder.script("begin");
        holder.query("select from queen.log_consumers where consumer_group = 'z' for update");
        remover.send("select queen.delete_queue_v1($1, 'q')", {kTenant});
        await_lock(remover);
        mover.send(move_sql(), move_args(id));
        await_lock(mover);
        holder.script("commit");
        const std::string removed = outcome(remover);
        return outcome(mover) + (removed == "t" ? " deleted" : " " + removed);
    }
    std::int64_t letters() { return sql.integer("select count(*) from queen.log_dlq"); }
    std::int64_t messages(const std::string& queue = "q") {
        return sql.integer("select coalesce(sum(last_offset + 1), 0) from queen.log_partitions p "
                           "join queen.queues q on q.id = p.queue_id where q.name = $1",
                           {queue});
    }
};

TEST_F(Dlq, ALetterCarriesWhatWasStoredByteForByte) {
    push("q", "p", {"t"});
    const std::string payload = R"({"n":1.10,"e":1e400,"z":"\u0000"})";
    const std::string id = file({.txn = "tä", .offset = 7, .at = 5, .payload = payload});
    EXPECT_EQ(list({}, "concat_ws('|', total, id, queue, partition, consumer_group, \"offset\", "
                       "transaction_id, convert_from(payload, 'UTF8'), encrypted, available, "
                       "error, retry_count, failed_at at time zone 'UTC')")
                  .get(0, 0),
              "1|" + id + "|q|p|g|7|tä|" + payload + "|f|t|broken|3|2030-01-01 00:00:05");
    EXPECT_EQ(sql.one("select transaction_id from queen.log_dlq_find_v1($1, $2)", {kTenant, id}),
              "tä");
}

TEST_F(Dlq, F62_PagesAreTakenBeforeAnythingIsAggregatedAndTheTotalIsThatOfTheFilter) {
    push("q", "p", {"x"});
    push("q", "r", {"x"});
    push("other", "p", {"x"});
    for (int i = 0; i < 7; ++i) {
        file({.txn = "m" + std::to_string(i),
              .group = i % 2 == 0 ? "g" : "h",
              .partition = i < 5 ? "p" : "r",
              .at = static_cast<double>(i)});
    }
    file({.txn = "o", .queue = "other", .at = 3.5});
    EXPECT_EQ(txns({}), "m6 m5 m4 m3 m2 m1 m0");
    EXPECT_EQ(txns({.limit = 3}), "m6 m5 m4");
    EXPECT_EQ(txns({.limit = 3, .offset = 3}), "m3 m2 m1");
    EXPECT_EQ(txns({.limit = 3, .offset = 6}), "m0");
    EXPECT_EQ(total({.limit = 3, .offset = 6}), "7");
    EXPECT_EQ(txns({.group = "h"}), "m5 m3 m1");
    EXPECT_EQ(total({.group = "h", .limit = 1}), "3");
    EXPECT_EQ(txns({.partition = "r"}), "m6 m5");
    EXPECT_EQ(txns({.group = "g", .partition = "p"}), "m4 m2 m0");
    EXPECT_EQ(total({.group = "g", .partition = "p", .limit = 1}), "3");
    EXPECT_EQ(txns({.queue = nullptr}), "m6 m5 m4 o m3 m2 m1 m0");
    EXPECT_EQ(total({.queue = nullptr, .limit = 1}), "8");
    EXPECT_EQ(txns({.queue = nullptr, .limit = 2, .offset = 3}), "o m3");
    // An empty page still says how many there are.
    const auto beyond = list({.limit = 3, .offset = 7}, "total, id");
    EXPECT_EQ(beyond.size(), 1u);
    EXPECT_EQ(beyond.get(0, 0), "7");
    EXPECT_TRUE(beyond.null(0, 1));
    EXPECT_EQ(total({.queue = "nope"}), "0");
    EXPECT_EQ(total({.tenant = std::string(kOther)}), "0");
}

TEST_F(Dlq, TimesBoundTheListAndItsTotal) {
    push("q", "p", {"x"});
    for (int i = 0; i < 5; ++i) {
        file({.txn = "m" + std::to_string(i), .at = static_cast<double>(i)});
    }
    EXPECT_EQ(txns({.from = second(2)}), "m4 m3 m2");
    EXPECT_EQ(txns({.to = second(2)}), "m1 m0") << "exclusive";
    EXPECT_EQ(txns({.from = second(1), .to = second(3)}), "m2 m1");
    EXPECT_EQ(total({.from = second(1), .to = second(3), .limit = 1}), "2");
    EXPECT_EQ(txns({.partition = "p", .from = second(1), .to = second(3)}), "m2 m1");
    EXPECT_EQ(total({.partition = "p", .from = second(1), .to = second(3), .limit = 1}), "2");
}

// K41: letters of one moment have an order, and a page that goes on behind a letter neither loses
// nor repeats one, whatever comes meanwhile.
TEST_F(Dlq, K41_PagesBehindALetterBringEachOnceWhileMoreArrive) {
    push("q", "p", {"x"});
    for (int i = 0; i < 50; ++i) {
        file({.txn = "m" + std::to_string(i), .at = i < 30 ? 1.0 : 2.0});
    }
    for (const SqlArg& partition : {SqlArg(nullptr), SqlArg("p")}) {
        std::map<std::string, int> seen;
        List page{.partition = partition, .limit = 7};
        for (int n = 0; n < 20; ++n) {
            const auto rows = list(page, "transaction_id, failed_at, id");
            for (std::size_t i = 0; i < rows.size() && !rows.null(i, 2); ++i) {
                const std::string txn = rows.get(i, 0);
                ++seen[txn.starts_with("late") ? rows.get(i, 2) : txn];
                page.after_at = rows.get(i, 1);
                page.after_id = rows.get(i, 2);
            }
            if (rows.size() < 7) {
                break;
            }
            file({.txn = "late" + std::to_string(n), .at = 2});
            file({.txn = "later" + std::to_string(n), .at = 3});
        }
        for (int i = 0; i < 50; ++i) {
            EXPECT_EQ(seen["m" + std::to_string(i)], 1) << i;
        }
        for (const auto& [txn, times] : seen) {
            EXPECT_EQ(times, 1) << txn;
        }
    }
}

TEST_F(Dlq, APageHasABoundedNumberOfBytesAndItsFirstLetterIsWhole) {
    push("q", "p", {"x"});
    file({.txn = "big", .at = 3, .payload = std::string(5000, '1')});
    file({.txn = "small", .at = 2, .error = std::string(3000, 'e')});
    file({.txn = "last", .at = 1});
    EXPECT_EQ(list({.bytes = 10}, "transaction_id || ':' || available || ':' || "
                                  "coalesce(octet_length(payload), -1) || ':' || length(error)")
                  .column(0),
              "big:true:5000:6 small:false:-1:1000 last:false:-1:6");
    EXPECT_EQ(list({.bytes = 9000}, "available").column(0), "t t t");
}

TEST_F(Dlq, DeletingAMessageTakesTheLettersOfAllGroupsAndOfNothingElse) {
    push("q", "p", {"x"});
    push("q", "r", {"x"});
    file({.txn = "t", .group = "a"});
    file({.txn = "t", .group = "b"});
    file({.txn = "u", .group = "a"});
    file({.txn = "t", .group = "a", .partition = "r"});
    const auto drop = [&](std::string_view tenant) {
        return sql.integer("select queen.delete_message_v1($1, $2, 't')", {tenant, pid()});
    };
    EXPECT_EQ(drop(kOther), 0);
    EXPECT_EQ(letters(), 4);
    EXPECT_EQ(drop(kTenant), 2);
    EXPECT_EQ(drop(kTenant), 0);
    EXPECT_EQ(letters(), 2);
}

TEST_F(Dlq, PurgingIsOfOneQueueAndMaybeOneGroup) {
    push("q", "p", {"x"});
    push("other", "p", {"x"});
    for (const std::string group : {"a", "a", "b"}) {
        file({.group = group});
    }
    file({.group = "a", .queue = "other"});
    const auto purge = [&](const std::string& queue, const SqlArg& group,
                           std::string_view tenant = kTenant) {
        return sql.integer("select queen.purge_dlq_v1($1, $2, $3)", {tenant, queue, group});
    };
    EXPECT_EQ(purge("q", nullptr, kOther), 0);
    EXPECT_EQ(purge("nope", nullptr), 0);
    EXPECT_EQ(purge("q", "a"), 2);
    EXPECT_EQ(purge("q", nullptr), 1);
    EXPECT_EQ(letters(), 1) << "the other queue's";
}

TEST_F(Dlq, AMoveAppendsOneMessageAndTakesTheLetterAway) {
    push("q", "p", {"x"});
    const std::string id = file({});
    const std::string kept = file({.group = "other"});
    EXPECT_EQ(move(id), "moved q/p 1");
    EXPECT_EQ(letters(), 1);
    EXPECT_EQ(sql.one("select id from queen.log_dlq"), kept) << "other groups' letters stay";
    EXPECT_EQ(sql.one("select convert_from(blob, 'UTF8') from queen.log_segments where "
                      "base_offset = 1"),
              "frame");
    EXPECT_EQ(move(id), "gone");
    EXPECT_EQ(messages(), 2);
}

TEST_F(Dlq, AMoveGoesWhereItIsTold) {
    push("q", "p", {"x"});
    EXPECT_EQ(move(file({}), "fresh.queue", "lane"), "moved fresh.queue/lane 0");
    EXPECT_EQ(sql.one("select task from queen.queues where name = 'fresh.queue'"), "queue")
        << "made as a push makes it";
    const std::string id = file({});
    EXPECT_THROW(move(id, "", "p"), SqlError);
    EXPECT_THROW(move(id, "q", ""), SqlError);
    EXPECT_EQ(letters(), 1);
}

TEST_F(Dlq, WhatIsThereAlreadyIsADuplicateAndTheLetterStays) {
    push("q", "p", {"x"});
    const std::string id = file({});
    push("q", "p", {"dlq:" + id});
    EXPECT_EQ(move(id), "duplicate q/p 1");
    EXPECT_EQ(letters(), 1);
    EXPECT_EQ(messages(), 2);
}

// K45: the original's own id is in the dedup window.
TEST_F(Dlq, K45_TheIdOfTheOriginalIsNoObstacle) {
    push("q", "p", {"t"});
    EXPECT_EQ(push("q", "p", {"t"}), "duplicate 0:0");
    EXPECT_EQ(move(file({.txn = "t"})), "moved q/p 1");
}

TEST_F(Dlq, NobodyMovesAnotherTenantsLetter) {
    push("q", "p", {"x"});
    const std::string id = file({});
    EXPECT_EQ(move(id, "q", "p", kOther), "gone");
    EXPECT_EQ(sql.query("select 1 from queen.log_dlq_find_v1($1, $2)", {kOther, id}).size(), 0u);
    EXPECT_EQ(
        sql.query("select 1 from queen.log_dlq_newest_v1($1, $2, 't')", {kOther, pid()}).size(),
        0u);
    EXPECT_EQ(letters(), 1);
    EXPECT_EQ(sql.integer("select count(*) from queen.queues"), 1) << "nor is a queue made";
}

TEST_F(Dlq, TheNewestLetterOfAMessageIsFound) {
    push("q", "p", {"x"});
    file({.group = "a", .at = 1});
    const std::string newest = file({.group = "b", .at = 3});
    file({.group = "c", .at = 2});
    EXPECT_EQ(sql.one("select id from queen.log_dlq_newest_v1($1, $2, 't')", {kTenant, pid()}),
              newest);
}

// F-38, K44: a double click. The second waits for the first, then finds nothing.
TEST_F(Dlq, F38_TwoMovesOfOneLetterAreOneMoveAndOneThatCameLate) {
    push("q", "p", {"x"});
    EXPECT_EQ(double_click(), "moved gone");
    EXPECT_EQ(messages(), 2);
    EXPECT_EQ(letters(), 0);
}

TEST_F(Dlq, AMoveThatIsRolledBackLeavesTheLetterToTheNext) {
    push("q", "p", {"x"});
    const std::string id = file({});
    SqlSession first = connect();
    SqlSession second = connect();
    first.script("begin");
    EXPECT_EQ(first.one(move_sql(), move_args(id)), "moved q/p 1");
    second.send(move_sql(), move_args(id));
    await_lock(second);
    first.script("rollback");
    EXPECT_EQ(second.finish().get(0, 0), "moved q/p 1");
    EXPECT_EQ(messages(), 2);
}

TEST_F(Dlq, AMoveAndADeleteOfTheMessageLeaveOneOfTheTwo) {
    push("q", "p", {"x"});
    const std::string id = file({});
    SqlSession other = connect();
    other.script("begin");
    EXPECT_EQ(other.integer("select queen.delete_message_v1($1, $2, 't')", {kTenant, pid()}), 1);
    SqlSession mover = connect();
    mover.send(move_sql(), move_args(id));
    await_lock(mover);
    other.script("commit");
    EXPECT_EQ(mover.finish().get(0, 0), "gone");
    EXPECT_EQ(messages(), 1);
}

TEST_F(Dlq, AMoveAndADeleteOfItsQueueWaitForEachOtherInOneOrder) {
    EXPECT_EQ(move_under_delete(), "gone deleted");
    EXPECT_EQ(letters(), 0);

    // And the other way round: the delete waits for the move.
    push("q", "p", {"x"});
    const std::string next = file({});
    SqlSession remover = connect();
    SqlSession mover = connect();
    mover.script("begin");
    EXPECT_EQ(mover.one(move_sql(), move_args(next)), "moved q/p 1");
    remover.send("select queen.delete_queue_v1($1, 'q')", {kTenant});
    await_lock(remover);
    mover.script("commit");
    EXPECT_EQ(remover.finish().get(0, 0), "t");
}

class DlqBroken : public Dlq {
protected:
    DlqBroken() : Dlq(Database::own) {}
};

// What the two races above would look like without the locks that decide them.
TEST_F(DlqBroken, WithoutTheLettersLockTheSecondClickIsNotTurnedAwayByIt) {
    mutate({"log_dlq_move_v1", "l.id = p_id FOR UPDATE;", "l.id = p_id;"});
    push("q", "p", {"x"});
    EXPECT_NE(double_click(), "moved gone");
}

TEST_F(DlqBroken, WithoutTheQueuesLockAMoveAndADeleteAreADeadlock) {
    mutate({"log_dlq_move_v1", "FOR KEY SHARE;", ";"});
    EXPECT_NE(move_under_delete(), "gone deleted");
}

// K44: with the queue go its letters; there is nothing left to replay.
class DlqUpgrade : public Dlq {
protected:
    DlqUpgrade() : Dlq(Database::own) {}
};

// Before timer_key, letters of timers had one partition for all queues.
TEST_F(DlqUpgrade, LettersOfTimersBecomeTheirQueuesAndTheOldRowsOfFunctionsGo) {
    push("q", "p", {"x"});
    file({});
    file({.txn = "timer", .group = "__timer__", .offset = -1, .at = 1});
    sql.script(R"(
        update queen.log_dlq set partition_id = '00000000-0000-0000-0000-000000000000'
        where consumer_group = '__timer__';
        alter table queen.log_dlq drop column timer_key, drop column partition_name;
        drop function queen._letters, queen.log_dlq_find_v1, queen.log_dlq_newest_v1;
        create function queen._letters(p_ids uuid[], p_bytes bigint) returns table (id uuid)
            language sql as 'select p_ids[1]';
        create function queen.log_dlq_find_v1(p_tenant uuid, p_id uuid) returns table (id uuid)
            language sql as 'select p_id';
        create function queen.log_dlq_newest_v1(p_tenant uuid, p_pid uuid, p_txn text)
            returns table (id uuid) language sql as 'select p_pid';)");
    for (int boot = 0; boot < 2; ++boot) {
        for (const SqlFile& part : read_sql_files()) {
            for (const auto& statement : part.statements) {
                ASSERT_NO_THROW(sql.script(statement)) << part.name << " " << statement;
            }
        }
    }
    EXPECT_EQ(list({}, "transaction_id || partition || (timer_key is null)::text").column(0),
              "timertrue tptrue");
    const std::string queue = sql.one("select id from queen.queues where name = 'q'");
    EXPECT_EQ(sql.query("select transaction_id from queen.log_dlq_newest_v1($1, $2, 'timer')",
                        {kTenant, queue})
                  .column(0),
              "timer");
    EXPECT_EQ(txns({.partition = "p"}), "t") << "nobody knows where it would have gone";
}

TEST_F(Dlq, K44_ADeletedQueueTakesItsLettersAlong) {
    push("q", "p", {"x"});
    const std::string id = file({});
    sql.one("select queen.delete_queue_v1($1, 'q')", {kTenant});
    EXPECT_EQ(letters(), 0);
    EXPECT_EQ(move(id, "elsewhere", "p"), "gone");
    EXPECT_EQ(sql.integer("select count(*) from queen.queues"), 0);
}

// --- plans ------------------------------------------------------------------------------------

class DlqPlan : public Dlq {
protected:
    DlqPlan() : Dlq(Database::own), reader(connect()) {
        sql.script(
            "insert into queen.queues (name) values ('q'), ('other'); "
            "insert into queen.log_dlq (queue_id, partition_id, partition_name, timer_key, "
            "consumer_group, \"offset\", transaction_id, failed_at) select id, id, 'p7', 'k', "
            "'__timer__', -1, 't', 'epoch' from queen.queues where name = 'q'");
    }
    /// One letter for each of some partitions, half of them the other queue's.
    void fill(int first, int last) {
        sql.query("insert into queen.log_partitions (queue_id, name) select q.id, 'p' || i "
                  "from queen.queues q, generate_series($1::int, $2::int) i",
                  {first, last});
        sql.query("insert into queen.log_dlq (queue_id, partition_id, consumer_group, \"offset\", "
                  "transaction_id, payload, failed_at) select p.queue_id, p.id, 'g', 0, 't', 'x', "
                  "timestamptz '2030-01-01 00:00:00+00' + make_interval(secs => substr(p.name, "
                  "2)::int) from queen.log_partitions p where substr(p.name, 2)::int between $1 "
                  "and $2",
                  {first, last});
        sql.script("analyze");
    }
    /// Rows read of a table by the statements of one list, but those of its count.
    std::string read(const std::string& table, const List& what) {
        auto plans = nested_plans(reader, [&] { list(what, "id", &reader); });
        std::erase_if(plans, [](const std::string& plan) {
            return plan.find("count(*) AS n") != std::string::npos;
        });
        return sql.one(
            "select coalesce(sum((n ->> 'Actual Loops')::numeric * ((n ->> 'Actual Rows')::numeric "
            "+ coalesce((n ->> 'Rows Removed by Filter')::numeric, 0))), 0)::int || ' ' || "
            "count(*) filter (where n ->> 'Node Type' = 'Seq Scan') from unnest($1::text[]) p, "
            "jsonb_path_query(p::jsonb, 'strict $.**') n where jsonb_typeof(n) = 'object' and n "
            "->> 'Relation Name' = $2 and n ->> 'Node Type' like '%Scan%'",
            {plans, table});
    }
    SqlSession reader;
};

TEST_F(DlqPlan, APageReadsWhatItShowsWhateverTheNumberOfLetters) {
    fill(1, 1000);
    for (int i = 0; i < 8; ++i) { // past the five after which a generic plan may come
        list({.limit = 10}, "id", &reader);
        list({.partition = "p7", .limit = 10}, "id", &reader);
    }
    // Once for their places, once to show them.
    const auto expect_pages = [&] {
        EXPECT_EQ(read("log_dlq", {.limit = 10}), "20 0");
        EXPECT_EQ(read("log_dlq", {.limit = 10, .offset = 40}), "60 0");
        EXPECT_EQ(read("log_dlq", {.to = second(500), .limit = 10}), "20 0");
        EXPECT_EQ(read("log_dlq", {.queue = nullptr, .limit = 10}), "30 0");
        EXPECT_EQ(read("log_dlq", {.partition = "p7", .limit = 10}), "4 0");
    };
    expect_pages();
    fill(1001, 100000);
    expect_pages();
    reader.script("discard plans");
    expect_pages();
}

} // namespace
} // namespace queen::test
