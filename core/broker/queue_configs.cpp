#include "broker/queue_configs.hpp"

namespace queen::broker {

void QueueConfigs::learn(const std::string& queue_key, const QueueSettings& settings) {
    if (settings.min_pop_wait > Nanoseconds::zero()) {
        any_min_pop_wait_.store(true, std::memory_order_relaxed);
    }
    const std::lock_guard lock(mutex_);
    if (const auto known = settings_.find(queue_key); known != settings_.end()) {
        // Answers may overtake each other.
        if (known->second.visible.read_at <= settings.visible.read_at) {
            known->second = settings;
        }
        return;
    }
    if (settings_.size() >= kMaxQueues) {
        settings_.clear();
    }
    settings_.emplace(queue_key, settings);
}

std::optional<QueueSettings> QueueConfigs::known(const std::string& queue_key, SteadyTime now,
                                                 Nanoseconds age) const {
    const std::lock_guard lock(mutex_);
    const auto found = settings_.find(queue_key);
    if (found == settings_.end() || now - found->second.visible.read_at > age) {
        return std::nullopt;
    }
    return found->second;
}

Nanoseconds QueueConfigs::min_pop_wait(const std::string& queue_key) const {
    if (!any_min_pop_wait_.load(std::memory_order_relaxed)) {
        return Nanoseconds::zero();
    }
    const std::lock_guard lock(mutex_);
    const auto found = settings_.find(queue_key);
    return found == settings_.end() ? Nanoseconds::zero() : found->second.min_pop_wait;
}

void QueueConfigs::forget(const std::string& queue_key) {
    const std::lock_guard lock(mutex_);
    settings_.erase(queue_key);
}

void QueueConfigs::add_holders(QueueHolders& holders) const {
    visit_in_slices(
        mutex_, settings_, [] {}, // who was added twice is there once
        [&holders](const auto& entry) { add_holder(holders, entry.first); });
}

} // namespace queen::broker
