#pragma once
#include "broker/queue_holders.hpp"

#include <queen/plugin/candidates.hpp>

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

namespace queen::broker {

/// Settings of a queue that its pops go by.
struct QueueSettings {
    plugin::QueueConfig visible; ///< delay and window, and when the store was asked
    Nanoseconds min_pop_wait{0}; ///< minPopWaitTime
};

/// Settings of queues as the store last told them, for decisions that may rest on a value a few
/// seconds old.
/// Locks: `mutex_` is a leaf.
/// @thread any
class QueueConfigs {
public:
    void learn(const std::string& queue_key, const QueueSettings& settings);
    /// nullopt when nothing is known, or what is known is older than `age` at `now`.
    std::optional<QueueSettings> known(const std::string& queue_key, SteadyTime now,
                                       Nanoseconds age) const;
    /// The last one known, however old; zero when none is. While no queue ever had one this is one
    /// atomic load (MW-2).
    Nanoseconds min_pop_wait(const std::string& queue_key) const;
    void forget(const std::string& queue_key);
    /// Adds the tenants of whose queues something is known. Locks for a part at a time.
    void add_holders(QueueHolders& holders) const;

    static constexpr std::size_t kMaxQueues = 100'000; ///< beyond: start over

private:
    std::atomic<bool> any_min_pop_wait_{false}; ///< set once, never cleared
    mutable std::mutex mutex_;
    std::unordered_map<std::string, QueueSettings> settings_;
};

} // namespace queen::broker
