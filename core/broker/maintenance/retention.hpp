// broker/maintenance/retention.hpp - the task that removes what is not wanted any more.
//
// A turn goes through its phases one after the other, page by page of the work lists:
//
//   retention -> hashes -> waited too long -> partitions nobody uses -> old records
//                                             \__ each 60 s at most __/
//
// Partitions of a page are worked on by `parallel` steps at a time, each one transaction over one
// partition; a partition that has more left goes to the end of the page, so that one with a large
// backlog keeps nobody waiting. A step that fails leaves its partition to a later turn.
//
// A partition may be due and yet lose nothing: its old messages wait for a group that does not come
// (RT-10). Such a partition is left alone for 8 turns, twice as many each time it happens again, up
// to 512; one that the plain age limit would take is never left alone. A turn looks at
// `Options::due_cap` entries of a list and the next one goes on where it ended, so that whoever
// waits in vain in front keeps nobody behind from his turn.
#pragma once
#include "base/counter.hpp"
#include "base/histogram.hpp"
#include "broker/maintenance/scheduler.hpp"
#include "ports/retention_store.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace queen::broker {

/// Invariant: at most `parallel` steps of a turn are on their way.
/// Locks: `mutex_` and that of a turn are leaves; the store is called with nothing held.
/// @source RT-2, RT-10, RT-11, RT-12
class Retention {
public:
    struct Options {
        std::int32_t batch = 1000;    ///< segments or rows a step may remove
        std::size_t parallel = 1;     ///< steps at a time
        std::size_t due_cap = 0;      ///< entries of a work list a turn; 0: 5 × batch × parallel
        bool cleanup = true;          ///< of partitions that nobody uses
        std::chrono::seconds idle;    ///< since when they are not used
        std::chrono::seconds history; ///< age of records that go
        std::chrono::milliseconds wait{30'000}; ///< of a statement for a session
    };
    /// By the types of the records that steps leave.
    enum class Type { retention, completed, max_wait };
    static constexpr std::size_t kTypes = 3;

    struct Stats {
        std::array<Removed, kTypes> removed; ///< by Type
        std::int64_t hash_rows = 0, partitions = 0, records = 0;
        std::uint64_t steps = 0;          ///< that the store answered
        std::uint64_t failed_steps = 0;   ///< a row was locked for too long, or the store failed
        std::uint64_t backed_off = 0;     ///< entries left alone since they lost nothing lately
        std::uint64_t repaired = 0;       ///< times of oldest messages set right by the walk
        std::array<std::size_t, 3> due{}; ///< by DueWork: entries seen in the last turn, capped
        LatencyHistogram::Snapshot step_duration{};
    };

    Retention(RetentionStore& store, const Clock& clock, Options options);
    ~Retention();
    Retention(const Retention&) = delete;
    Retention& operator=(const Retention&) = delete;

    /// One turn of the task `retention`. It must be over before this object ends.
    void run(TaskTurnPtr turn);
    /// One turn of the task `retention_watermark`: sets right for all partitions what the work
    /// lists go by; the first one after an upgrade fills it in. @source RT-11
    void walk(TaskTurnPtr turn);

    /// @thread any
    Stats stats() const;

private:
    struct Run;
    struct Backoff {
        WallTime oldest_at{};    ///< of the entry that lost nothing
        std::uint64_t until = 0; ///< the turn that looks again
        std::uint64_t turns = 0; ///< left alone for
    };
    /// Of partitions left alone; beyond that they are looked at in each turn. A guess.
    static constexpr std::size_t kMostBackoffs = 100'000;
    static constexpr std::uint64_t kFirstBackoff = 8, kLongestBackoff = 512; ///< turns
    static constexpr std::chrono::milliseconds kCleanupEvery{60'000};

    std::size_t due_cap() const;
    bool left_alone(const DuePartition& entry);
    void lost(const DuePartition& entry, bool anything);
    void walk_on(const TaskTurnPtr& turn, std::optional<Uuid> after);

    RetentionStore& store_;
    const Clock& clock_;
    const Options options_;

    mutable std::mutex mutex_;
    std::uint64_t turn_ = 0;
    std::optional<SteadyTime> cleaned_;          ///< when the last cleanup began
    std::array<std::optional<DueKey>, 3> ended_; ///< by DueWork: where the last turn's cap fell
    std::array<std::size_t, 3> due_{};
    std::unordered_map<Uuid, Backoff> backoffs_;

    struct Counted {
        Counter segments, messages, bytes;
    };
    std::array<Counted, kTypes> removed_;
    Counter hash_rows_, partitions_, records_, steps_, failed_steps_, backed_off_, repaired_;
    LatencyHistogram step_duration_;
};

} // namespace queen::broker
