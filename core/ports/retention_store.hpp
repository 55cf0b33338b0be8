// ports/retention_store.hpp - removing what is not wanted any more, one short transaction a call.
#pragma once
#include "base/result.hpp"
#include "ports/store.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace queen {

/// What a partition can be due for.
enum class DueWork { retention, max_wait, txns };

/// Where a page of a work list ended; only passed on.
struct DueKey {
    Uuid queue_id;
    WallTime oldest_at{};
    Uuid partition_id;
    friend bool operator==(const DueKey&, const DueKey&) = default;
};

/// A partition in which a rule has something to look at, with the moments by the database's clock
/// before which messages are too old; nullopt where the rule is off.
struct DuePartition {
    DueKey key;
    std::optional<WallTime> cutoff;
    std::optional<WallTime> completed_cutoff; ///< retention only: of what everybody has consumed
};

struct Removed {
    std::int64_t segments = 0, messages = 0, bytes = 0; ///< bytes as stored
};

struct RetentionStep {
    Removed aged, consumed;
    bool done = true; ///< nothing is left that these cutoffs would take
};

struct RowsStep {
    std::int64_t rows = 0; ///< removed
    bool done = true;
};

struct CleanupKey {
    WallTime written_at{};
    Uuid partition_id;
};
struct CleanupStep {
    std::int64_t partitions = 0;    ///< removed
    std::optional<CleanupKey> next; ///< when partitions are left to look at
};

struct WalkStep {
    std::int64_t scanned = 0, repaired = 0;
    std::optional<Uuid> next; ///< when partitions are left
};

/// Asynchronous like Store, in the lane that yields to all others. No step holds the lock of more
/// than one busy partition, and none more than moments.
/// @thread any. Every error is a value; no call throws. A step that cannot get a row fails with
/// transient.
/// @source RT-1 to RT-14
class RetentionStore {
public:
    virtual ~RetentionStore() = default;
    using Deadline = SteadyTime;

    /// The next page of a work list; shorter than `limit`: the last (log_due_v1).
    virtual void due(Deadline, DueWork, std::optional<DueKey> after, std::int32_t limit,
                     Done<std::vector<DuePartition>>) = 0;
    /// log_retention_step_v1
    virtual void retention_step(Deadline, Uuid partition_id, std::optional<WallTime> cutoff,
                                std::optional<WallTime> completed_cutoff, std::int32_t rows,
                                Done<RetentionStep>) = 0;
    /// log_evict_max_wait_step_v1
    virtual void max_wait_step(Deadline, Uuid partition_id, WallTime cutoff, std::int32_t rows,
                               Done<RetentionStep>) = 0;
    /// log_txns_purge_step_v1
    virtual void purge_step(Deadline, Uuid partition_id, WallTime cutoff, std::int32_t rows,
                            Done<RowsStep>) = 0;
    /// Partitions that nobody touched for `idle` (log_partition_cleanup_step_v1).
    virtual void cleanup_step(Deadline, std::chrono::seconds idle, std::int32_t rows,
                              std::optional<CleanupKey> after, Done<CleanupStep>) = 0;
    /// log_watermark_walk_step_v1
    virtual void walk_step(Deadline, std::optional<Uuid> after, std::int32_t rows,
                           Done<WalkStep>) = 0;
    /// Records older than `age` (log_history_purge_step_v1).
    virtual void history_step(Deadline, std::chrono::seconds age, std::int32_t rows,
                              Done<RowsStep>) = 0;
};

} // namespace queen
