#include "broker/seeded_groups.hpp"

namespace queen::broker {

bool SeededGroups::contains(const std::string& queue_key, const std::string& group) const {
    const std::lock_guard lock(mutex_);
    const auto queue = groups_.find(queue_key);
    return queue != groups_.end() && queue->second.contains(group);
}

void SeededGroups::add(const std::string& queue_key, const std::string& group) {
    const std::lock_guard lock(mutex_);
    if (size_ >= kMaxGroups) {
        groups_.clear();
        size_ = 0;
    }
    if (groups_[queue_key].insert(group).second) {
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
