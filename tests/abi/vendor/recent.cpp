#include "recent.hpp"

#include <algorithm>

namespace acme::recent {

namespace plugin = queen::plugin;

plugin::Readiness Recent::peek(const plugin::Scope& scope) {
    const std::lock_guard lock(mutex_);
    plugin::Readiness found;
    found.state = plugin::ReadyState::ask_store;
    if (const auto queue = queues_.find(scope.queue.key); queue != queues_.end()) {
        found.partitions = static_cast<std::uint64_t>(
            std::count_if(queue->second.begin(), queue->second.end(),
                          [&](const Entry& entry) { return fresh(entry); }));
        if (found.partitions > 0) {
            found.state = plugin::ReadyState::ready;
        }
    }
    return found;
}

plugin::Selection Recent::take(const plugin::Take& take, plugin::Names& out) {
    const std::lock_guard lock(mutex_);
    plugin::Selection selection;
    selection.pick = plugin::Pick::scan;
    const auto queue = queues_.find(take.scope.queue.key);
    if (take.round > 0 || queue == queues_.end()) {
        return selection;
    }
    std::uint64_t offered = 0;
    for (auto entry = queue->second.rbegin();
         entry != queue->second.rend() && offered < take.limit && fresh(*entry); ++entry) {
        ++offered;
        if (!out.add(entry->partition, 0)) {
            break;
        }
    }
    if (offered > 0) {
        selection.pick = plugin::Pick::names;
    }
    return selection;
}

void Recent::mark(const plugin::Queue& queue, std::string_view, plugin::Origin,
                  std::span<const plugin::Mark> marks) {
    const std::lock_guard lock(mutex_);
    if (queues_.size() >= kMostQueues && !queues_.contains(queue.key)) {
        queues_.clear(); // a scan finds what is lost
    }
    auto& entries = queues_[std::string(queue.key)];
    for (const plugin::Mark& mark : marks) {
        std::erase_if(entries,
                      [&](const Entry& entry) { return entry.partition == mark.partition; });
        entries.push_back({std::string(mark.partition), clock_.now()});
        if (entries.size() > options_.capacity) {
            entries.pop_front();
        }
    }
}

} // namespace acme::recent
