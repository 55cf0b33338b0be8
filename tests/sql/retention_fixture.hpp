// Steps of retention as short texts, and what must hold after any of them.
#pragma once
#include "sql/sql_fixture.hpp"

#include <string>

namespace queen::test {

class RetentionTest : public SqlTest {
protected:
    explicit RetentionTest(Database database = Database::shared) : SqlTest(database) {
        sql.script("truncate queen.retention_history, queen.log_dlq");
    }

    /// One segment into q/p at this second of the clock.
    void push_at(double seconds, const std::vector<std::string>& ids) {
        clock(seconds);
        const std::string answer = push("q", "p", ids);
        ASSERT_EQ(answer.substr(0, 6), "queued") << answer;
    }
    /// The work list: "partition cutoff completed-cutoff" each, in seconds of the clock.
    std::string due(const std::string& work, int limit = 100) {
        return sql.one(
            "select coalesce(string_agg(concat_ws(' ', p.name, coalesce(extract(epoch from "
            "d.cutoff - timestamptz '2030-01-01 00:00:00+00')::int::text, '-'), "
            "coalesce(extract(epoch from d.completed_cutoff - timestamptz '2030-01-01 "
            "00:00:00+00')::int::text, '-')), ', ' order by d.oldest_at, p.name), '') "
            "from queen.log_due_v1($1, null, null, null, $2) d "
            "join queen.log_partitions p on p.id = d.partition_id",
            {work, limit});
    }
    /// One step with the cutoffs that the queue has now.
    std::string step(int rows = 100, SqlSession* session = nullptr) {
        return (session != nullptr ? *session : sql)
            .one("select s.deleted || ' of ' || s.messages || ' messages, from ' || "
                 "s.new_log_start || case when s.done then ', done' else ', more' end || "
                 "case when s.consumed_deleted > 0 then ', ' || s.consumed_deleted || "
                 "' consumed' else '' end from " +
                     step_call(),
                 {pid(), rows});
    }
    static std::string step_call() {
        return "(select * from queen.queues where name = 'q') q, "
               "queen.log_retention_step_v1($1, queen._clock() - case when q.retention_enabled "
               "then nullif(q.retention_seconds, 0) end * interval '1 s', queen._clock() - case "
               "when q.retention_enabled then nullif(q.completed_retention_seconds, 0) end * "
               "interval '1 s', $2) s";
    }
    std::string evict(double cutoff, int rows = 100) {
        return sql.one("select s.deleted || ' of ' || s.messages || ' messages, from ' || "
                       "s.new_log_start || case when s.done then ', done' else ', more' end from "
                       "queen.log_evict_max_wait_step_v1($1, timestamptz '2030-01-01 00:00:00+00' "
                       "+ $2 * interval '1 s', $3) s",
                       {pid(), std::to_string(cutoff), rows});
    }
    std::string purge(double cutoff, int rows = 100) {
        return sql.one("select s.deleted || ' rows, from ' || s.new_txns_start || case when "
                       "s.done then ', done' else ', more' end from "
                       "queen.log_txns_purge_step_v1($1, timestamptz '2030-01-01 00:00:00+00' + "
                       "$2 * interval '1 s', $3) s",
                       {pid(), std::to_string(cutoff), rows});
    }
    /// Pages of the walk over all partitions: how many each looked at, and all repairs.
    std::string walk(int rows) {
        std::string text;
        std::string after;
        std::int64_t repaired = 0;
        for (;;) {
            const SqlRows page =
                after.empty()
                    ? sql.query("select * from queen.log_watermark_walk_step_v1(null, $1)", {rows})
                    : sql.query("select * from queen.log_watermark_walk_step_v1($1, $2)",
                                {after, rows});
            text += (text.empty() ? "" : " then ") + page.get(0, 0);
            repaired += page.integer(0, 1);
            after = page.get(0, 2);
            if (page.get(0, 3) == "t") {
                return text + ", " + std::to_string(repaired) + " repaired";
            }
        }
    }
    /// Ranges of the segments of q/p.
    std::string segments() {
        return sql.one("select coalesce(string_agg(base_offset || '-' || end_offset, ' ' order by "
                       "base_offset), '') from queen.log_segments where partition_id = $1",
                       {pid()});
    }
    std::string history() {
        return sql.one("select coalesce(string_agg(retention_type || ':' || messages_deleted, ' ' "
                       "order by id), '') from queen.retention_history");
    }
    /// One pass of the cleanup over all of it, as of partitions untouched for so many seconds.
    std::int64_t cleanup(double seconds, int rows = 100, SqlSession* session = nullptr) {
        return (session != nullptr ? *session : sql)
            .integer("select deleted from queen.log_partition_cleanup_step_v1(queen._clock() - $1 "
                     "* interval '1 s', $2)",
                     {std::to_string(seconds), rows});
    }
    /// What 001 promises of each partition.
    void expect_invariants() {
        EXPECT_EQ(
            sql.one(
                "select coalesce(string_agg(p.name, ' '), '') from queen.log_partitions p cross "
                "join lateral (select count(*) as n, coalesce(sum(octet_length(blob)), 0) as "
                "bytes, min(base_offset) as first, max(end_offset) as last, sum(end_offset - "
                "base_offset + 1) as frames, (array_agg(created_at order by base_offset))[1] as "
                "oldest from queen.log_segments where partition_id = p.id) s cross join lateral "
                "(select min(base_offset) as first, max(end_offset) as last, sum(end_offset - "
                "base_offset + 1) as frames, (array_agg(created_at order by base_offset))[1] as "
                "oldest from queen.log_txns where partition_id = p.id) t where p.segment_count <> "
                "s.n or p.stored_bytes <> s.bytes or p.log_start <> coalesce(s.first, "
                "p.last_offset + 1) or coalesce(s.last, p.last_offset) <> p.last_offset or "
                "coalesce(s.frames, 0) <> p.last_offset - p.log_start + 1 or p.oldest_live_at is "
                "distinct from s.oldest or p.txns_start <> coalesce(t.first, p.last_offset + 1) "
                "or coalesce(t.frames, 0) <> p.last_offset - p.txns_start + 1 or p.oldest_txn_at "
                "is distinct from t.oldest or p.txns_start > p.log_start"),
            "");
    }
};

} // namespace queen::test
