#include "broker/queue_configs.hpp"

namespace queen::broker {

void QueueConfigs::learn(const std::string& queue_key, const plugin::QueueConfig& config) {
    const std::lock_guard lock(mutex_);
    if (const auto known = configs_.find(queue_key); known != configs_.end()) {
        if (known->second.read_at <= config.read_at) { // answers may overtake each other
            known->second = config;
        }
        return;
    }
    if (configs_.size() >= kMaxQueues) {
        configs_.clear();
    }
    configs_.emplace(queue_key, config);
}

std::optional<plugin::QueueConfig> QueueConfigs::known(const std::string& queue_key, SteadyTime now,
                                                       Nanoseconds age) const {
    const std::lock_guard lock(mutex_);
    const auto found = configs_.find(queue_key);
    if (found == configs_.end() || now - found->second.read_at > age) {
        return std::nullopt;
    }
    return found->second;
}

void QueueConfigs::forget(const std::string& queue_key) {
    const std::lock_guard lock(mutex_);
    configs_.erase(queue_key);
}

} // namespace queen::broker
