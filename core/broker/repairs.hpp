// broker/repairs.hpp - how this broker learns that another one moved cursors by hand.
//
// Whoever moves cursors leaves a row, in the same transaction (ports/group_store.hpp). This reads
// all rows each few seconds, and takes each that is not as it was at the last look for a repair:
//
//   start -> read -> told whatever changed -> a pause with jitter -> read -> ...
//
// It compares rows one by one, never with the latest time seen: a row's time is taken before its
// commit, so one that commits late is older than what was seen meanwhile (F-44). The broker's own
// repairs come by once more: candidates are forgotten twice, which is cheaper than to know them.
// This is the path that needs no mesh; where there is one, its hints pull the next read forward
// (peer_hints.hpp), so that what is believed still comes from the database.
#pragma once
#include "base/workers.hpp"
#include "broker/groups.hpp"
#include "ports/group_store.hpp"

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

namespace queen::broker {

/// Shared, because a task or an answer may come after the end.
///
/// Invariant: from start() to stop() one read or one timer is under way, never two, and never both,
/// whatever store and `tell` throw.
/// Locks: `mutex_` is a leaf; store, ticker, workers and `tell` are called with nothing held.
/// @source GRP-9, F-43, F-44, HL-15
class RepairReader final : public std::enable_shared_from_this<RepairReader> {
public:
    struct Options {
        std::chrono::milliseconds interval{5'000};
        std::chrono::milliseconds wait{30'000}; ///< for a session
        /// A number in [0, 1) for each pause: it is three to five quarters of the interval, so
        /// that brokers that started together do not read together.
        std::function<double()> jitter{};
    };
    using Tell = std::function<void(const Repair&)>;

    static std::shared_ptr<RepairReader> make(GroupStore& store, Ticker& ticker, Workers& workers,
                                              const Clock& clock, Tell tell, Options options);
    RepairReader(const RepairReader&) = delete;
    RepairReader& operator=(const RepairReader&) = delete;
    ~RepairReader() = default;

    /// Reads at once: what was repaired before this broker listened is told as well.
    void start();
    /// Reads now, or once more after the read that is under way: that one may have begun before
    /// whatever the caller knows of. @thread any
    void poke();
    /// Nothing is read or armed after it; a `tell` that runs goes on.
    void stop();

private:
    struct Seen {
        WallTime at;
        std::optional<std::string> partition;
        bool operator==(const Seen&) const = default;
    };
    using Key = std::tuple<std::string, std::string, std::string>; ///< tenant, queue, group

    RepairReader(GroupStore& store, Ticker& ticker, Workers& workers, const Clock& clock, Tell tell,
                 Options options)
        : store_(store), ticker_(ticker), workers_(workers), clock_(clock), tell_(std::move(tell)),
          options_(std::move(options)) {}
    void read();
    void got(const Result<std::vector<Repair>>& repairs);
    void over() noexcept;
    void finish();
    void due(std::uint64_t turn);

    GroupStore& store_;
    Ticker& ticker_;
    Workers& workers_;
    const Clock& clock_;
    const Tell tell_;
    const Options options_;

    std::mutex mutex_;
    bool running_ = false;
    bool reading_ = false;
    bool again_ = false;     ///< once more after this read
    std::uint64_t turn_ = 0; ///< of the timer: an older one that comes late is void
    Ticker::Id timer_ = 0;
    std::map<Key, Seen> seen_; ///< as of the last read that succeeded, without what was not told
    std::map<Key, Seen>::node_type failed_; ///< whose telling threw: of the next it is the last
};

} // namespace queen::broker
