#include "store/pg_retention_store.hpp"

#include "store/statements.hpp"

#include <string_view>

namespace queen::store {
namespace {

namespace sql = statements;

std::string_view name_of(DueWork work) {
    switch (work) {
    case DueWork::retention:
        return "retention";
    case DueWork::max_wait:
        return "max_wait";
    case DueWork::txns:
        return "txns";
    }
    return "";
}

std::optional<WallTime> time_if_any(Row& row, int column) {
    return row.null(column) ? std::nullopt : std::optional(row.timestamptz(column));
}

Result<std::vector<DuePartition>> decode_due(const Rows& rows) {
    return read_each<DuePartition>(rows, [](Row& row) {
        return DuePartition{.key = {.queue_id = row.uuid(0),
                                    .oldest_at = row.timestamptz(1),
                                    .partition_id = row.uuid(2)},
                            .cutoff = time_if_any(row, 3),
                            .completed_cutoff = time_if_any(row, 4)};
    });
}

/// Columns deleted, messages, bytes, done and, of the step that knows two rules, the consumed part.
Result<RetentionStep> decode_retention(const Rows& rows) {
    Row row(rows, 0);
    RetentionStep step;
    step.aged = {row.integer(0), row.integer(1), row.integer(2)};
    step.done = row.boolean(3);
    if (rows.columns() > 4) {
        step.consumed = {row.integer(4), row.integer(5), row.integer(6)};
        step.aged.segments -= step.consumed.segments;
        step.aged.messages -= step.consumed.messages;
        step.aged.bytes -= step.consumed.bytes;
    }
    if (auto status = row.status(); !status) {
        return fail(std::move(status.error()));
    }
    return step;
}

Result<RowsStep> decode_rows(const Rows& rows) {
    Row row(rows, 0);
    const RowsStep step{.rows = row.integer(0), .done = row.boolean(1)};
    if (auto status = row.status(); !status) {
        return fail(std::move(status.error()));
    }
    return step;
}

Result<CleanupStep> decode_cleanup(const Rows& rows) {
    Row row(rows, 0);
    CleanupStep step;
    step.partitions = row.integer(0);
    if (!row.boolean(1)) {
        step.next = CleanupKey{row.timestamptz(2), row.uuid(3)};
    }
    if (auto status = row.status(); !status) {
        return fail(std::move(status.error()));
    }
    return step;
}

Result<WalkStep> decode_walk(const Rows& rows) {
    Row row(rows, 0);
    WalkStep step{.scanned = row.integer(0), .repaired = row.integer(1), .next = {}};
    if (!row.boolean(3)) {
        step.next = row.uuid(2);
    }
    if (auto status = row.status(); !status) {
        return fail(std::move(status.error()));
    }
    return step;
}

/// A step over one partition's rows from before `cutoff`.
auto cutoff_step(const Statement& statement, Uuid partition_id, WallTime cutoff,
                 std::int32_t rows) {
    return [&statement, partition_id, cutoff, rows](Session& session) {
        Parameters parameters;
        parameters.uuid(partition_id).timestamptz_or_null(cutoff).int4(rows);
        return session.run(statement, parameters);
    };
}

} // namespace

void PgRetentionStore::due(Deadline deadline, DueWork work, std::optional<DueKey> after,
                           std::int32_t limit, Done<std::vector<DuePartition>> done) {
    asker_.ask<std::vector<DuePartition>>(
        Lane::admin, deadline,
        [work, after, limit](Session& session) {
            std::optional<Uuid> queue, partition;
            std::optional<WallTime> at;
            if (after) {
                queue = after->queue_id;
                at = after->oldest_at;
                partition = after->partition_id;
            }
            Parameters parameters;
            parameters.text(name_of(work)).uuid_or_null(queue).timestamptz_or_null(at);
            parameters.uuid_or_null(partition).int4(limit);
            return session.run(sql::kRetentionDue, parameters);
        },
        decode_due, std::move(done), Repeat::once);
}

void PgRetentionStore::retention_step(Deadline deadline, Uuid partition_id,
                                      std::optional<WallTime> cutoff,
                                      std::optional<WallTime> completed_cutoff, std::int32_t rows,
                                      Done<RetentionStep> done) {
    asker_.ask<RetentionStep>(
        Lane::admin, deadline,
        [partition_id, cutoff, completed_cutoff, rows](Session& session) {
            Parameters parameters;
            parameters.uuid(partition_id).timestamptz_or_null(cutoff);
            parameters.timestamptz_or_null(completed_cutoff).int4(rows);
            return session.run(sql::kRetentionStep, parameters);
        },
        decode_retention, std::move(done));
}

void PgRetentionStore::max_wait_step(Deadline deadline, Uuid partition_id, WallTime cutoff,
                                     std::int32_t rows, Done<RetentionStep> done) {
    asker_.ask<RetentionStep>(Lane::admin, deadline,
                              cutoff_step(sql::kRetentionMaxWaitStep, partition_id, cutoff, rows),
                              decode_retention, std::move(done));
}

void PgRetentionStore::purge_step(Deadline deadline, Uuid partition_id, WallTime cutoff,
                                  std::int32_t rows, Done<RowsStep> done) {
    asker_.ask<RowsStep>(Lane::admin, deadline,
                         cutoff_step(sql::kRetentionPurgeStep, partition_id, cutoff, rows),
                         decode_rows, std::move(done));
}

void PgRetentionStore::cleanup_step(Deadline deadline, std::chrono::seconds idle, std::int32_t rows,
                                    std::optional<CleanupKey> after, Done<CleanupStep> done) {
    asker_.ask<CleanupStep>(
        Lane::admin, deadline,
        [idle, rows, after](Session& session) {
            std::optional<WallTime> at;
            std::optional<Uuid> id;
            if (after) {
                at = after->written_at;
                id = after->partition_id;
            }
            Parameters parameters;
            parameters.int8(idle.count()).int4(rows).timestamptz_or_null(at).uuid_or_null(id);
            return session.run(sql::kRetentionCleanupStep, parameters);
        },
        decode_cleanup, std::move(done));
}

void PgRetentionStore::walk_step(Deadline deadline, std::optional<Uuid> after, std::int32_t rows,
                                 Done<WalkStep> done) {
    asker_.ask<WalkStep>(
        Lane::admin, deadline,
        [after, rows](Session& session) {
            Parameters parameters;
            parameters.uuid_or_null(after).int4(rows);
            return session.run(sql::kRetentionWalkStep, parameters);
        },
        decode_walk, std::move(done));
}

void PgRetentionStore::history_step(Deadline deadline, std::chrono::seconds age, std::int32_t rows,
                                    Done<RowsStep> done) {
    asker_.ask<RowsStep>(
        Lane::admin, deadline,
        [age, rows](Session& session) {
            Parameters parameters;
            parameters.int8(age.count()).int4(rows);
            return session.run(sql::kRetentionHistoryStep, parameters);
        },
        decode_rows, std::move(done));
}

} // namespace queen::store
