#include "agenda.hpp"

#include <algorithm>

namespace queen::hotlist {

std::optional<SteadyTime> Agenda::note(Item& item, SteadyTime when) {
    if (when >= item.scheduled()) {
        return std::nullopt;
    }
    const std::lock_guard lock(mutex_);
    const SteadyTime before = item.scheduled();
    if (item.removed_ || when >= before) {
        return std::nullopt;
    }
    if (before != SteadyTime::max()) {
        auto node = list_.extract(item.place_);
        node.key() = when;
        item.place_ = list_.insert(std::move(node));
    } else {
        item.place_ = list_.emplace(when, item.weak_from_this());
    }
    item.scheduled_.store(when.time_since_epoch().count(), std::memory_order_seq_cst);
    const SteadyTime tick = std::max(when, last_tick_ + kSpacing);
    if (tick >= asked_) {
        return std::nullopt;
    }
    asked_ = tick;
    return tick;
}

void Agenda::remove(Item& item) {
    const std::lock_guard lock(mutex_);
    if (!item.removed_ && item.scheduled() != SteadyTime::max()) {
        list_.erase(item.place_);
        item.scheduled_.store(INT64_MAX, std::memory_order_seq_cst);
    }
    item.removed_ = true;
}

std::vector<std::shared_ptr<Agenda::Item>> Agenda::begin(SteadyTime now) {
    std::vector<std::shared_ptr<Item>> due;
    const std::lock_guard lock(mutex_);
    last_tick_ = now;
    asked_ = SteadyTime::min();
    while (!list_.empty() && list_.begin()->first <= now && due.size() < kMostPerTick) {
        if (auto item = list_.begin()->second.lock()) {
            item->scheduled_.store(INT64_MAX, std::memory_order_seq_cst);
            due.push_back(std::move(item));
        }
        list_.erase(list_.begin());
    }
    return due;
}

SteadyTime Agenda::end() {
    const std::lock_guard lock(mutex_);
    asked_ =
        list_.empty() ? SteadyTime::max() : std::max(list_.begin()->first, last_tick_ + kSpacing);
    return asked_;
}

} // namespace queen::hotlist
