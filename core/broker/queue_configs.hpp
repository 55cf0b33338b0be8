#pragma once
#include <queen/plugin/candidates.hpp>

#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

namespace queen::broker {

/// Delay and window of queues as the store last told them, for decisions that may rest on a value a
/// few seconds old.
/// Locks: `mutex_` is a leaf.
/// @thread any
class QueueConfigs {
public:
    void learn(const std::string& queue_key, const plugin::QueueConfig& config);
    /// nullopt when nothing is known, or what is known is older than `age` at `now`.
    std::optional<plugin::QueueConfig> known(const std::string& queue_key, SteadyTime now,
                                             Nanoseconds age) const;
    void forget(const std::string& queue_key);

    static constexpr std::size_t kMaxQueues = 100'000; ///< beyond: start over

private:
    mutable std::mutex mutex_;
    std::unordered_map<std::string, plugin::QueueConfig> configs_;
};

} // namespace queen::broker
