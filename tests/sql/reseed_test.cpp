#include "sql/sql_fixture.hpp"

#include <gmock/gmock.h>

#include <set>

namespace queen::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

/// A page of either walk; `id` and `write` are where the next one goes on.
struct Page {
    std::vector<std::string> names; ///< in the order of the rows
    bool more = false;
    std::string id, write, cutoff;
};

class Reseed : public SqlTest {
protected:
    using SqlTest::SqlTest;

    static SqlArg or_null(const std::string& text) {
        return text.empty() ? SqlArg(nullptr) : SqlArg(text);
    }
    Page full(int limit = 100, const Page& from = {}, const std::string& group = "g",
              const std::string& queue = "q") {
        return read(sql.query("select id, name, null, null from "
                              "queen.log_hotlist_reseed_v1($1, $2, $3, $4)",
                              {queue, group, or_null(from.id), limit}));
    }
    Page window(std::int64_t window_ms, int limit = 100, const Page& from = {}) {
        return read(sql.query(
            "select id, name, write, cutoff from queen.log_hotlist_reseed_window_v1("
            "'q', 'g', $1, $2, $3, $4, p_cutoff => $5)",
            {or_null(from.write), or_null(from.id), limit, window_ms, or_null(from.cutoff)}));
    }
    static std::set<std::string> named(const Page& page) {
        return {page.names.begin(), page.names.end()};
    }

    /// Partitions with one message each, written a microsecond apart from now on.
    void fill(const std::string& queue, int partitions) {
        sql.query("insert into queen.queues (name) values ($1) on conflict do nothing", {queue});
        sql.query("insert into queen.log_partitions (queue_id, name, last_offset, last_write_at) "
                  "select q.id, 'p' || i, 0, queen._clock() + i * interval '1 us' "
                  "from queen.queues q, generate_series(1, $2::int) i where q.name = $1 "
                  "on conflict do nothing",
                  {queue, partitions});
    }
    void catch_up(const std::string& queue) {
        sql.query("insert into queen.log_consumers (partition_id, consumer_group, committed) "
                  "select p.id, 'g', p.last_offset from queen.log_partitions p "
                  "join queen.queues q on q.id = p.queue_id where q.name = $1 "
                  "on conflict do nothing",
                  {queue});
    }
    void write_at(const std::string& partition, double seconds) {
        sql.query("update queen.log_partitions set last_write_at = "
                  "timestamptz '2030-01-01 00:00:00+00' + $2::float8 * interval '1 s' "
                  "where name = $1",
                  {partition, std::to_string(seconds)});
    }

private:
    static Page read(const SqlRows& rows) {
        Page page;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            EXPECT_FALSE(page.more) << "a row behind the one that ends the page";
            if (rows.null(i, 1)) {
                page.more = true;
                page.id = rows.get(i, 0);
                page.write = rows.get(i, 2);
            } else {
                page.names.push_back(rows.get(i, 1));
            }
            page.cutoff = rows.get(i, 3);
        }
        return page;
    }
};

TEST_F(Reseed, NamesWhatIsProbablyPending) {
    for (const std::string partition : {"behind", "caught-up", "leased", "none", "expired"}) {
        push("q", partition, {"a", "b"});
    }
    push("other", "elsewhere", {"a"});
    sql.query("select queen.log_push_one_v1('q', 'foreign', 1, $1, -1, 'x', "
              "p_tenant => '00000000-0000-0000-0000-0000000000aa')",
              {hash("a")});
    pop({.partition = "behind", .budget = 1, .auto_ack = true});
    pop({.partition = "caught-up", .auto_ack = true});
    pop({.partition = "leased", .lease = 600});
    pop({.partition = "expired", .lease = 1});
    clock(10);
    const std::set<std::string> pending{"behind", "leased", "none", "expired"};
    EXPECT_EQ(named(full()), pending);
    EXPECT_EQ(named(window(600'000)), pending);
    EXPECT_THAT(full(100, {}, "another group").names, SizeIs(5));
    EXPECT_THAT(full(100, {}, "g", "unknown").names, IsEmpty());
    EXPECT_FALSE(full(100, {}, "g", "unknown").more);
}

TEST_F(Reseed, PagesFollowTheIdsAndNameEachPartitionOnce) {
    fill("q", 25);
    fill("other", 25);
    std::vector<std::string> seen;
    Page page;
    int pages = 0;
    do {
        page = full(10, page);
        ++pages;
        seen.insert(seen.end(), page.names.begin(), page.names.end());
    } while (page.more && pages < 9);
    EXPECT_EQ(pages, 3);
    EXPECT_EQ(seen.size(), 25u);
    std::string joined;
    for (const std::string& name : seen) {
        joined += (joined.empty() ? "" : " ") + name;
    }
    EXPECT_EQ(joined, sql.query("select p.name from queen.log_partitions p join queen.queues q on "
                                "q.id = p.queue_id where q.name = 'q' order by p.id")
                          .column(0));
}

TEST_F(Reseed, APageLooksAtSoManyPartitionsWhateverItFinds) {
    fill("q", 30);
    catch_up("q");
    Page page = full(10);
    EXPECT_THAT(page.names, IsEmpty());
    ASSERT_TRUE(page.more);
    EXPECT_EQ(page.id, sql.one("select id from queen.log_partitions order by id offset 9 limit 1"));
    page = full(10, page);
    ASSERT_TRUE(page.more);
    EXPECT_FALSE(full(10, page).more) << "30 partitions are three pages, not four";
    EXPECT_TRUE(window(600'000, 29).more);
    EXPECT_FALSE(window(600'000, 30).more);
    EXPECT_TRUE(full(0).more) << "at least one";
}

TEST_F(Reseed, TheEndOfAPageMayBeAPartitionThatIsNamed) {
    fill("q", 3);
    const Page page = full(2);
    EXPECT_THAT(page.names, SizeIs(2));
    EXPECT_EQ(page.id,
              sql.one("select id from queen.log_partitions where name = $1", {page.names.back()}));
    EXPECT_THAT(full(2, page).names, SizeIs(1));
}

TEST_F(Reseed, APartitionThatIsDeletedUnderTheWalkDoesNotEndIt) {
    fill("q", 20);
    const Page page = full(10);
    sql.query("delete from queen.log_partitions where id = $1", {page.id});
    EXPECT_THAT(full(10, page).names, SizeIs(10));
}

TEST_F(Reseed, AWindowLeavesOutWhatWasWrittenEarlier) {
    for (const std::string partition : {"old", "edge", "new"}) {
        push("q", partition, {"a"});
    }
    clock(1000);
    write_at("old", 1000 - 60 - 120.001);
    write_at("edge", 1000 - 60 - 120);
    write_at("new", 1000);
    EXPECT_THAT(window(60'000).names, ElementsAre("edge", "new"));
    EXPECT_THAT(window(0).names, ElementsAre("old", "edge", "new"));
    EXPECT_EQ(window(0).cutoff, "-infinity");
    EXPECT_EQ(sql.one("select $1::timestamptz = queen._clock() - interval '180 s'",
                      {window(60'000).cutoff}),
              "t");
}

// last_write_at moves once a second only, and a push may commit long after it.
TEST_F(Reseed, AWindowFindsAPushThatCommitsLateAndMovedNothing) {
    push("q", "p", {"a"});
    pop({.auto_ack = true});
    clock(0.9);
    SqlSession late = connect();
    late.script("begin");
    late.query("select queen.log_push_one_v1('q', 'p', 1, $1, -1, 'x')", {hash("b")});
    clock(31);
    EXPECT_THAT(window(1'000).names, IsEmpty());
    late.script("commit");
    EXPECT_EQ(sql.one("select last_write_at = '2030-01-01 00:00:00+00' from queen.log_partitions"),
              "t");
    EXPECT_THAT(window(1'000).names, ElementsAre("p"));
}

TEST_F(Reseed, TheFirstPageFixesTheCutoffForTheWholeWalk) {
    for (int i = 0; i < 4; ++i) {
        push("q", "p" + std::to_string(i), {"a"});
        write_at("p" + std::to_string(i), i);
    }
    const Page first = window(10'000, 2);
    EXPECT_THAT(first.names, ElementsAre("p0", "p1"));
    clock(1'000'000);
    const Page second = window(10'000, 2, first);
    EXPECT_THAT(second.names, ElementsAre("p2", "p3"));
    EXPECT_EQ(second.cutoff, first.cutoff);
    EXPECT_FALSE(second.more);
}

TEST_F(Reseed, PartitionsOfOneMomentAreWalkedInTheOrderOfTheirIds) {
    fill("q", 25);
    sql.script("update queen.log_partitions set last_write_at = '2030-01-01 00:00:00+00'");
    std::set<std::string> seen;
    Page page;
    std::size_t rows = 0;
    do {
        page = window(10'000, 10, page);
        rows += page.names.size();
        seen.insert(page.names.begin(), page.names.end());
    } while (page.more && rows < 100);
    EXPECT_EQ(rows, 25u);
    EXPECT_THAT(seen, SizeIs(25));
}

TEST_F(Reseed, APartitionWrittenDuringAWindowedWalkIsSeenAgain) {
    fill("q", 3);
    const Page first = window(10'000, 2);
    EXPECT_THAT(first.names, ElementsAre("p1", "p2"));
    write_at("p1", 5);
    EXPECT_THAT(window(10'000, 2, first).names, ElementsAre("p3", "p1"));
}

/// What the statements inside the functions really did: plans with their row counts.
class ReseedPlan : public Reseed {
protected:
    ReseedPlan() : Reseed(Database::own), walker_(connect()) {
        for (int i = 0; i < 4; ++i) {
            fill("large" + std::to_string(i), 20'000);
            catch_up("large" + std::to_string(i));
        }
        walker_.script("load 'auto_explain'");
        // A server that thinks little of indexes and much of parallel workers.
        walker_.script("set random_page_cost = 100; set parallel_setup_cost = 0;"
                       "set parallel_tuple_cost = 0; set min_parallel_table_scan_size = 0;"
                       "set min_parallel_index_scan_size = 0");
        walker_.script("set auto_explain.log_min_duration = 0;"
                       "set auto_explain.log_nested_statements = on;"
                       "set auto_explain.log_analyze = on; set auto_explain.log_timing = off;"
                       "set client_min_messages = log");
        walker_.script("prepare full_walk as select count(*) from "
                       "queen.log_hotlist_reseed_v1($1, 'g', null, $2)");
        walker_.script("prepare window_walk as select count(*) from "
                       "queen.log_hotlist_reseed_window_v1($1, 'g', null, null, $2, 600000)");
    }

    /// The plan of the page's own statement, after it ran.
    std::string plan(const std::string& walk, const std::string& queue, int limit) {
        walker_.take_notices();
        walker_.script("execute " + walk + "('" + queue + "', " + std::to_string(limit) + ")");
        std::string found;
        for (const std::string& notice : walker_.take_notices()) {
            if (notice.find("log_partitions") != std::string::npos &&
                notice.find("Query Text: prepare") == std::string::npos) {
                found += notice;
            }
        }
        return found;
    }
    /// The index range of the one queue, one row more than the page, a step on the key for each
    /// cursor; so in whatever way the server came to its plan.
    void expect_bounded(const std::string& walk, const std::string& queue, int limit,
                        int partitions) {
        const bool full = walk == "full_walk";
        const int visited = std::min(limit + 1, partitions);
        for (const std::string mode : {"auto", "force_custom_plan", "force_generic_plan"}) {
            walker_.script("set plan_cache_mode = " + mode);
            for (int run = 0; run < (mode == "auto" ? 8 : 1); ++run) {
                const std::string text = plan(walk, queue, limit);
                ASSERT_THAT(text, HasSubstr(full ? "Index Scan using log_partitions_walked"
                                                 : "Index Scan using log_partitions_written"));
                ASSERT_THAT(text, HasSubstr(full ? "Index Cond: ((ROW(queue_id, id) > ROW("
                                                 : "Index Cond: ((ROW(queue_id, last_write_at, "
                                                   "id) > ROW("));
                ASSERT_THAT(text, HasSubstr(" rows=" + std::to_string(visited) + " loops=1)\n"));
                ASSERT_THAT(text, HasSubstr("Index Scan using log_consumers_pkey"));
                ASSERT_THAT(text, HasSubstr("rows=1 loops=" +
                                            std::to_string(std::min(limit, partitions)) + ")"));
                for (const char* unwanted : {"Seq Scan", "Sort", "Bitmap", "Hash", "Gather"}) {
                    ASSERT_THAT(text, Not(HasSubstr(unwanted)));
                }
                // Every partition that was read is one of the page.
                ASSERT_THAT(text, Not(HasSubstr("Filter: (ROW")));
                ASSERT_THAT(text, Not(HasSubstr("Rows Removed by Index Recheck")));
            }
        }
    }

    SqlSession walker_;
};

TEST_F(ReseedPlan, F53_F54_APageReadsTheIndexRangeOfItsQueueAndNoMore) {
    fill("q", 1'000);
    catch_up("q");
    sql.script("analyze queen.log_partitions, queen.log_consumers, queen.queues");
    expect_bounded("full_walk", "q", 300, 1'000);
    expect_bounded("full_walk", "q", 10'000, 1'000);
    expect_bounded("window_walk", "q", 300, 1'000);
    expect_bounded("window_walk", "q", 10'000, 1'000);
    fill("q", 100'000);
    catch_up("q");
    for (const bool analyzed : {false, true}) {
        if (analyzed) {
            sql.script("analyze queen.log_partitions, queen.log_consumers, queen.queues");
        }
        expect_bounded("full_walk", "q", 10'000, 100'000);
        expect_bounded("window_walk", "q", 10'000, 100'000);
    }
}

// A server that takes all partitions for those of one queue thinks that any index will do.
TEST_F(ReseedPlan, F54_StatisticsOfOneQueueDoNotSpoilTheWalksOfOthers) {
    sql.script("alter table queen.log_partitions set (autovacuum_enabled = off)");
    sql.script("delete from queen.log_partitions where queue_id <> (select id from queen.queues "
               "where name = 'large0')");
    sql.script("analyze queen.log_partitions, queen.log_consumers, queen.queues");
    ASSERT_EQ(sql.one("select n_distinct from pg_stats where tablename = 'log_partitions' and "
                      "attname = 'queue_id'"),
              "1");
    fill("small", 50);
    catch_up("small");
    expect_bounded("full_walk", "small", 10'000, 50);
    expect_bounded("window_walk", "small", 10'000, 50);
    expect_bounded("full_walk", "large0", 10'000, 20'000);
}

} // namespace
} // namespace queen::test
