#include "metrics/queue_table.hpp"

#include <algorithm>
#include <map>

namespace queen::metrics {

std::string_view to_string(AckResult result) noexcept {
    switch (result) {
    case AckResult::completed:
        return "completed";
    case AckResult::failed:
        return "failed";
    case AckResult::retry:
        return "retry";
    case AckResult::dlq:
        return "dlq";
    case AckResult::refused:
        return "refused";
    }
    return "";
}

void QueueFigures::add(const QueueFigures& other) noexcept {
    push_requests += other.push_requests;
    push_messages += other.push_messages;
    pop_messages += other.pop_messages;
    pop_empty += other.pop_empty;
    for (std::size_t i = 0; i < kAckResults; ++i) {
        acks[i] += other.acks[i];
    }
    lag_sum += other.lag_sum;
    lag_max = std::max(lag_max, other.lag_max);
}

QueueTable::QueueTable(const Clock& clock, std::size_t most)
    : clock_(clock), start_(clock.now()), most_(most) {}

void QueueTable::add(std::string_view queue, const QueueFigures& figures) {
    const auto minute = this->minute();
    Shard& shard = shards_[Hash{}(queue) % kShards];
    const std::lock_guard lock(shard.mutex);
    roll(shard, minute);
    entry_of(shard, queue).running.add(figures);
}

QueueTable::Entry& QueueTable::entry_of(Shard& shard, std::string_view queue) {
    if (const auto found = shard.entries.find(queue); found != shard.entries.end()) {
        return found->second;
    }
    if (queue == kOtherQueues) {
        return shard.other;
    }
    if (size_.fetch_add(1, std::memory_order_relaxed) >= most_) {
        size_.fetch_sub(1, std::memory_order_relaxed);
        return shard.other;
    }
    return shard.entries.try_emplace(std::string(queue)).first->second;
}

/// A caller that read its minute before another one rolled the shard changes nothing: what it adds
/// then counts for the new minute.
void QueueTable::roll(Shard& shard, std::int64_t minute) {
    if (minute <= shard.minute) {
        return;
    }
    const bool next = minute == shard.minute + 1; // else at least one minute passed without a call
    shard.minute = minute;
    const auto close = [next](Entry& entry) {
        entry.last = next ? entry.running : QueueFigures{};
        entry.running = {};
    };
    close(shard.other);
    for (auto at = shard.entries.begin(); at != shard.entries.end();) {
        close(at->second);
        if (at->second.last == QueueFigures{}) {
            at = shard.entries.erase(at);
            size_.fetch_sub(1, std::memory_order_relaxed);
        } else {
            ++at;
        }
    }
}

QueueTable::LastMinute QueueTable::last_minute() {
    const auto now = clock_.now();
    const auto minute = minute_of(now);
    LastMinute out;
    if (minute == 0) {
        return out;
    }
    out.age = now - (start_ + minute * kMinute);
    QueueFigures other;
    for (Shard& shard : shards_) {
        const std::lock_guard lock(shard.mutex);
        roll(shard, minute);
        other.add(shard.other.last);
        for (const auto& [name, entry] : shard.entries) {
            if (entry.last != QueueFigures{}) {
                out.lines.push_back({name, entry.last});
            }
        }
    }
    if (other != QueueFigures{}) {
        out.lines.push_back({std::string(kOtherQueues), other});
    }
    std::sort(out.lines.begin(), out.lines.end(),
              [](const Line& a, const Line& b) { return a.queue < b.queue; });
    return out;
}

std::vector<std::pair<std::string, std::uint64_t>>
bounded(std::vector<std::pair<std::string, std::uint64_t>> by_queue, std::size_t most) {
    std::map<std::string, std::uint64_t> sums;
    std::uint64_t other = 0;
    for (auto& [name, count] : by_queue) {
        (name == kOtherQueues ? other : sums[std::move(name)]) += count;
    }
    std::vector<std::pair<std::string, std::uint64_t>> out(sums.begin(), sums.end());
    if (out.size() > most) {
        std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
            return a.second != b.second ? a.second > b.second : a.first < b.first;
        });
        for (std::size_t i = most; i < out.size(); ++i) {
            other += out[i].second;
        }
        out.resize(most);
        std::sort(out.begin(), out.end());
    }
    if (other > 0) {
        out.emplace_back(kOtherQueues, other);
    }
    return out;
}

} // namespace queen::metrics
