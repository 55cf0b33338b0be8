// queen/plugin/timers.hpp - what a timer driver implements: when messages that wait for their time
// are put into the log. The table, its procedures and the routes are the broker's; cadence,
// batches, backoff and fairness are the driver's. No ABI in sight; entry.hpp turns the class into
// the C table of abi.h, and the plugin host turns a loaded table back into it.
#pragma once
#include <queen/plugin/common.hpp>
#include <queen/plugin/types.hpp>

#include <cstdint>
#include <span>
#include <string_view>

namespace queen::plugin {

inline constexpr unsigned kTimerShards = 64;  ///< for good: shards spread contention only
inline constexpr unsigned kTimerBatches = 16; ///< that a driver has at once, claims included
using TimerShards = std::uint64_t;            ///< bit n: shard n
using TimerCall = std::uint64_t;              ///< the driver's name for a call, until its answer
using TimerBatch = std::uint64_t;             ///< claimed rows; 0: none

enum class TimerOutcome {
    ok = 0,
    transient, ///< the database was away, busy or cut the call off: nothing counts
    permanent, ///< it would fail again: counts as an attempt of what was fired
    config,    ///< as permanent, and the schema is at fault (SQLSTATE class 42)
    paused,    ///< firing is switched off: nothing was done
    contended  ///< others were in the way of this call: nothing counts, and what is for another
               ///< destination may go
};

enum class TimerResult {
    fired = 1, ///< in the log, and its rows are gone, in one transaction
    duplicate, ///< was in the log already; its rows are gone
    stale      ///< a row was cancelled or claimed by another: released, not fired
};

/// Claimed rows of one destination that become one segment of the log.
struct TimerSegment {
    std::string_view tenant;
    std::uint32_t rows = 0;
    std::int32_t attempts = 0; ///< the most of its rows
    std::uint64_t bytes = 0;   ///< of the packed segment; 0: it cannot be packed, and fails
    Nanoseconds late{0};       ///< the most of its rows
};

/// The answer to one call of TimerHost. What does not belong to that call is empty.
struct TimerAnswer {
    TimerOutcome outcome = TimerOutcome::ok;
    std::string_view error; ///< what the store said
    // due
    Nanoseconds next_in = Nanoseconds::max(); ///< negative: due since; max(): no timers
    std::uint64_t due = 0;                    ///< no more than the cap
    Nanoseconds late{0};                      ///< of the oldest
    bool capped = false;                      ///< more are due than were counted
    // claim
    TimerBatch batch = 0; ///< 0: nothing was claimed
    std::span<const TimerSegment> segments;
    // fire, by segment asked for
    std::span<const TimerResult> results;
    // fail, dead_letter
    std::uint64_t rows = 0;      ///< that were handed back, or filed
    std::uint64_t exhausted = 0; ///< fail: rows whose attempts are used up
};

/// The store, for a driver. Every call returns at once; its answer comes as one answered(call) on a
/// worker, perhaps before the call has returned. False: the broker stops, or the call makes no
/// sense (a batch or segment that the driver does not have, one batch too many, a time below 0),
/// which is counted; no answer comes. Times are judged by the database's clock alone.
/// @thread any, with no lock of the driver's held: the answer may come inside the call
class TimerHost {
public:
    virtual ~TimerHost() = default;
    virtual bool due(TimerCall call, TimerShards shards, std::uint32_t cap) = 0;
    /// Rows whose time has come, oldest first within a shard, fairly over tenants; they are this
    /// driver's for `lease`.
    virtual bool claim(TimerCall call, TimerShards shards, Nanoseconds lease, std::uint32_t rows,
                       std::uint32_t rows_per_tenant) = 0;
    /// Segments of a batch, by place, in one transaction.
    virtual bool fire(TimerCall call, TimerBatch batch,
                      std::span<const std::uint32_t> segments) = 0;
    /// Hands rows back; they become visible again `backoff` from now, with 0 at once and in their
    /// old place. counted: this was an attempt, of which a row has `most`.
    virtual bool fail(TimerCall call, TimerBatch batch, std::span<const std::uint32_t> segments,
                      Nanoseconds backoff, std::string_view error, bool counted,
                      std::int32_t most) = 0;
    /// Files what fail() found exhausted in this batch.
    virtual bool dead_letter(TimerCall call, TimerBatch batch, std::int32_t most) = 0;
    /// Forgets a batch. Rows of it that were neither fired nor handed back are handed back by the
    /// broker, uncounted and without a backoff.
    virtual void release(TimerBatch batch) = 0;
    /// Pulls the next tick() forward to `when`.
    virtual void tick_at(SteadyTime when) = 0;
};

class TimerDriver {
public:
    virtual ~TimerDriver() = default;
    /// From here on no call into the store is begun; answers under way still come. @thread main
    virtual void stop() = 0;
    /// After the commit: a timer of this broker's becomes due at `earliest`. @thread worker
    virtual void scheduled(SteadyTime earliest) = 0;
    /// @thread worker, once for each call that was taken. After an exception the call is over: a
    /// batch that it brought is released, and tick() comes within a second.
    virtual void answered(TimerCall call, const TimerAnswer& answer) = 0;
    /// @thread ticker. @return when it wants to be called next; max() for never
    virtual SteadyTime tick(SteadyTime now) = 0;
    virtual void stats(Stats&) {} ///< @thread any
};

} // namespace queen::plugin
