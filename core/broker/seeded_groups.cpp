#include "broker/seeded_groups.hpp"

namespace queen::broker {

std::optional<bool> SeededGroups::conflates(const std::string& queue_key,
                                            const std::string& group) const {
    const std::lock_guard lock(mutex_);
    const auto queue = groups_.find(queue_key);
    if (queue == groups_.end()) {
        return std::nullopt;
    }
    const auto known = queue->second.find(group);
    return known == queue->second.end() ? std::nullopt : std::optional(known->second);
}

void SeededGroups::add(const std::string& queue_key, const std::string& group, bool conflates) {
    const std::lock_guard lock(mutex_);
    if (size_ >= kMaxGroups) {
        groups_.clear();
        size_ = 0;
    }
    if (groups_[queue_key].insert_or_assign(group, conflates).second) {
        ++size_;
    }
}

void SeededGroups::forget(const std::string& queue_key, const std::string& group) {
    const std::lock_guard lock(mutex_);
    const auto queue = groups_.find(queue_key);
    if (queue != groups_.end()) {
        size_ -= queue->second.erase(group);
        if (queue->second.empty()) {
            groups_.erase(queue);
        }
    }
}

void SeededGroups::forget(const std::string& queue_key) {
    const std::lock_guard lock(mutex_);
    const auto queue = groups_.find(queue_key);
    if (queue != groups_.end()) {
        size_ -= queue->second.size();
        groups_.erase(queue);
    }
}

} // namespace queen::broker
