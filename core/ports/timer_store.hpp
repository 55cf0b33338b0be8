// ports/timer_store.hpp - what the broker asks of the store about timers: messages that wait
// outside the log for their time. Asynchronous as ports/store.hpp is: `done` runs exactly once, on
// a worker thread.
//
// Now is the database's clock; what comes back are times left, and instants only to be shown.
#pragma once
#include "ports/store.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace queen {

/// One wish about one timer. A key that waits already is replaced.
struct TimerOp {
    enum class Kind { schedule, reschedule, cancel } kind = Kind::schedule;
    std::string queue, key;
    std::string transaction_id; ///< of the future message; cancel: the caller's, perhaps empty
    // Of schedule and reschedule:
    std::string partition;
    std::chrono::microseconds delay{0}; ///< from now; negative: due already
    Uuid message_id;                    ///< minted by the broker
    std::string payload;                ///< as it is stored: packed and sealed as the flags say
    bool payload_zstd = false;
    bool encrypted = false;
};

/// What became of a wish. `absent` means that nothing waits under that key, perhaps because it was
/// delivered.
struct TimerVerdict {
    enum class Kind { scheduled, rescheduled, cancelled, absent, too_late } kind = Kind::absent;
    /// Whether a timer waits now that was set by this wish.
    bool set() const noexcept { return kind == Kind::scheduled || kind == Kind::rescheduled; }
    std::string transaction_id; ///< of the timer; absent: the caller's
    // Of one that was set:
    Uuid message_id;
    WallTime deliver_at{};
    std::chrono::microseconds left{0}; ///< until then
};

struct TimerCallOps {
    std::string tenant;
    std::string producer_sub; ///< of the token it came with; empty: none
    std::vector<TimerOp> ops; ///< each (queue, key) once
};

/// A timer that waits, as it is shown.
struct WaitingTimer {
    std::string key, partition;
    WallTime deliver_at{};
    std::string transaction_id;
    Uuid message_id;
    std::string payload; ///< as stored; empty in lists
    bool payload_zstd = false, encrypted = false;
    std::string producer_sub;
    std::int32_t attempts = 0;
    std::optional<std::string> last_error;
    bool claimed = false; ///< the fire has it right now
    WallTime created_at{}, updated_at{};
};

struct TimerPage {
    std::vector<WaitingTimer> rows; ///< in byte order of the key, without payloads
    bool truncated = false;         ///< more follow the last row
};

/// Bit n: shard n of 64. Shards spread contention; nobody owns one.
using TimerShardSet = std::uint64_t;

struct TimersDue {
    std::optional<std::chrono::microseconds> next_in; ///< negative: since; nullopt: no timers
    std::int64_t due = 0;                             ///< no more than the cap
    bool capped = false;                              ///< more are due than that
    std::chrono::microseconds late{0};                ///< of the oldest
};

/// A row in this broker's hands until its lease ends.
struct ClaimedTimer {
    std::string tenant, queue, key, partition;
    Uuid token; ///< of the claim
    std::string transaction_id;
    Uuid message_id;
    std::string payload; ///< as stored
    bool payload_zstd = false, encrypted = false;
    std::string producer_sub;
    std::int32_t attempts = 0;
    std::chrono::microseconds late{0};
};

struct TimerClaim {
    TimerShardSet shards = ~TimerShardSet{0};
    std::chrono::milliseconds lease{30'000};
    std::int32_t rows = 200; ///< in all
    std::int32_t rows_per_tenant = 50;
    std::int64_t bytes = std::int64_t{32} << 20; ///< of payloads as stored; the last may exceed it
};

/// Identity of a claimed row.
struct TimerClaimKey {
    std::string tenant, queue, key;
    Uuid token;
};

/// Segments to be stored and the rows that they are made of. At most one segment per (tenant,
/// queue, partition).
struct TimerFire {
    struct Segment {
        std::string tenant, queue, partition;
        std::int32_t count = 0;
        std::string hashes; ///< 16 bytes a frame, in the order of the frames
        std::string blob;
        std::vector<TimerClaimKey> rows; ///< every one has to be in hand still
    };
    std::vector<Segment> segments;
};

struct TimerFired {
    enum class Kind { fired, duplicate, stale } kind = Kind::stale;
    Uuid partition_id; ///< fired
    Offset first{-1};  ///< fired
};

struct TimerFail {
    std::vector<TimerClaimKey> rows;
    std::chrono::milliseconds backoff{1'000};
    std::string error;
    bool counted = false;      ///< this was an attempt
    std::int32_t attempts = 5; ///< the most that a row has
};

struct TimerFailed {
    std::int64_t failed = 0;
    std::vector<TimerClaimKey> exhausted; ///< their attempts are used up; their tokens are gone
};

/// An error with 40001, 40P01, 23503 or 55P03 is a race that was lost, as one of the classes 08,
/// 53, 57 and 58 or without any SQLSTATE is an outage: no attempt in either case. After one without
/// an SQLSTATE what was asked for may have been done.
/// @thread any. Every error is a value; no call throws.
class TimerStore {
public:
    virtual ~TimerStore() = default;
    using Deadline = SteadyTime;

    /// All of it or nothing; verdicts by op (log_timers_apply_v1).
    virtual void apply(Deadline, TimerCallOps, Done<std::vector<TimerVerdict>>) = 0;
    /// log_timers_peek_v1
    virtual void peek(Deadline, std::string tenant, std::string queue, std::string key,
                      Done<std::optional<WaitingTimer>>) = 0;
    /// Keys after `after` in byte order (log_timers_list_v1).
    virtual void list(Deadline, std::string tenant, std::string queue, std::string after,
                      std::int32_t limit, Done<TimerPage>) = 0;
    /// How many keys begin with `prefix` (log_timers_count_v1).
    virtual void count(Deadline, std::string tenant, std::string queue, std::string prefix,
                       Done<std::int64_t>) = 0;

    /// log_timers_due_v1
    virtual void due(Deadline, TimerShardSet, std::int32_t cap, Done<TimersDue>) = 0;
    /// Oldest first within a shard, fairly over tenants (log_timers_claim_v1).
    virtual void claim(Deadline, TimerClaim, Done<std::vector<ClaimedTimer>>) = 0;
    /// Pushes and deletes in one transaction; by segment (log_timers_fire_v1).
    virtual void fire(Deadline, TimerFire, Done<std::vector<TimerFired>>) = 0;
    /// Hands rows back, to be visible again after the backoff (log_timers_fail_v1).
    virtual void fail(Deadline, TimerFail, Done<TimerFailed>) = 0;
    /// Rows whose attempts are used up become dead letters of the group __timer__; how many
    /// (log_timers_dlq_v1).
    virtual void dead_letter(Deadline, std::vector<TimerClaimKey>, std::int32_t attempts,
                             Done<std::int64_t>) = 0;
};

} // namespace queen
