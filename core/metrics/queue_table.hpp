// metrics/queue_table.hpp - what each queue did in the last full minute.
//
// Minutes follow each other from the table's making on, by the steady clock. Figures gather in the
// running minute and are read when it is over, so a reader sees the same ones for a whole minute,
// whenever it asks. A queue is a name: those of several tenants that share one share a line.
//
// Names come from clients. The table holds at most so many of them; what it has no room for is
// summed up under kOtherQueues. A queue that did nothing in the last full minute leaves its place,
// so a flood of names costs others their own line for two minutes, never memory.
#pragma once
#include <queen/plugin/types.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace queen::metrics {

/// Where queues without a line of their own are summed up; a queue of this name is among them.
inline constexpr std::string_view kOtherQueues = "__other__";
/// Most names with a line of their own. 500 queues are some 5,000 series of a scrape; a guess at
/// what a dashboard can show, not measured.
inline constexpr std::size_t kMostQueues = 500;

/// How one message of an ack was settled.
enum class AckResult {
    completed = 0,
    failed,
    retry,
    dlq,
    refused, ///< not settled: lease lost, unknown message, the store away
};
inline constexpr std::size_t kAckResults = 5;
std::string_view to_string(AckResult result) noexcept;

/// One queue over one minute.
struct QueueFigures {
    std::uint64_t push_requests = 0;
    std::uint64_t push_messages = 0; ///< stored
    std::uint64_t pop_messages = 0;  ///< delivered
    std::uint64_t pop_empty = 0;     ///< pops answered with nothing
    std::array<std::uint64_t, kAckResults> acks{};
    /// From stored to delivered, over pop_messages; a whole number could overflow.
    std::chrono::duration<double> lag_sum{0};
    Nanoseconds lag_max{0};

    void add(const QueueFigures& other) noexcept;
    friend bool operator==(const QueueFigures&, const QueueFigures&) = default;
};

/// Invariant: no more than `most` names are held.
/// Locks: a shard's mutex is a leaf; one is held at a time, for one line or one walk over its few.
/// @thread any
/// @source MET-3
class QueueTable {
public:
    static constexpr std::chrono::seconds kMinute{60};

    explicit QueueTable(const Clock& clock, std::size_t most = kMostQueues);

    /// Adds to the queue's running minute.
    void add(std::string_view queue, const QueueFigures& figures);

    struct Line {
        std::string queue;
        QueueFigures figures;
    };
    struct LastMinute {
        std::optional<Nanoseconds> age; ///< since it ended; nothing before the first full one
        std::vector<Line> lines;        ///< by name; queues that did nothing are left out
    };
    LastMinute last_minute();
    /// Full minutes since the table was made.
    std::int64_t minute() const noexcept { return minute_of(clock_.now()); }
    /// Names held.
    std::size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }

private:
    struct Entry {
        QueueFigures running, last;
    };
    struct Hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view name) const noexcept {
            return std::hash<std::string_view>{}(name);
        }
    };
    struct Shard {
        std::mutex mutex;
        std::int64_t minute = 0; ///< that `running` belongs to; `last` is the one before
        std::unordered_map<std::string, Entry, Hash, std::equal_to<>> entries;
        Entry other;
    };
    static constexpr std::size_t kShards = 8;

    std::int64_t minute_of(SteadyTime now) const noexcept { return (now - start_) / kMinute; }
    Entry& entry_of(Shard& shard, std::string_view queue); // Requires shard.mutex.
    void roll(Shard& shard, std::int64_t minute);          // Requires shard.mutex.

    const Clock& clock_;
    const SteadyTime start_;
    const std::size_t most_;
    std::atomic<std::size_t> size_{0};
    std::array<Shard, kShards> shards_;
};

/// A number per queue, brought to at most `most` names: the largest keep their own, the rest is
/// summed up under kOtherQueues. Names that repeat are added up.
std::vector<std::pair<std::string, std::uint64_t>>
bounded(std::vector<std::pair<std::string, std::uint64_t>> by_queue,
        std::size_t most = kMostQueues);

} // namespace queen::metrics
