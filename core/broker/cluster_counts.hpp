// broker/cluster_counts.hpp - what this broker counted, added to what all have counted.
//
// Counters of a process begin at zero. Each interval, and when the broker stops, what was counted
// since the last time goes to the database, which adds it up. A delta whose answer was lost is sent
// again as it is, under its number, and counts once; what was counted meanwhile waits for the next.
#pragma once
#include "base/workers.hpp"
#include "ports/system_store.hpp"

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace queen::broker {

/// Invariant: what was told and what is in the delta on its way is exactly what was counted up to
/// the last reading: nothing is told twice or left out while the process lives.
/// Locks: `mutex_` is a leaf; nothing is called while it is held.
/// @thread any
/// @source CNT-1
class ClusterCounts {
public:
    /// The counters by name, since the start; they only grow.
    using Read = std::function<std::vector<std::pair<std::string, std::uint64_t>>()>;
    struct Options {
        std::chrono::milliseconds every{60'000};
        std::chrono::milliseconds wait{30'000}; ///< for a session
    };

    /// @param source of this process, never used before
    ClusterCounts(SystemStore& store, Ticker& ticker, const Clock& clock, Uuid source, Read read,
                  Options options);

    void start();
    /// Tells what is left and begins nothing after it. `done` when that was tried.
    void stop(std::function<void()> done);

private:
    void arm();
    void flush();
    void told(const Result<void>& outcome);

    SystemStore& store_;
    Ticker& ticker_;
    const Clock& clock_;
    const Uuid source_;
    const Read read_;
    const Options options_;
    std::mutex mutex_;
    std::map<std::string, std::uint64_t> read_so_far_; ///< told, or in `delta_`
    std::optional<CountDelta> delta_;                  ///< not known to be told
    std::int64_t number_ = 0;
    bool flushing_ = false;
    bool running_ = false;
    std::function<void()> stopped_; ///< set: stop() waits
    Ticker::Id timer_ = 0;
};

} // namespace queen::broker
