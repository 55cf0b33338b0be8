#include "outbox.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace queen::mesh {
namespace {

using plugin::Hint;
using plugin::HintKind;

constexpr char kSeparator = '\x1f'; // in no name of the broker

/// What coalesces: tenant, queue, partition and group.
void write_key(std::string& key, const Hint& hint) {
    key.clear();
    for (const std::string_view part : {hint.tenant, hint.queue, hint.partition, hint.group}) {
        key += part;
        key += kSeparator;
    }
}

Hint hint_of(std::string_view key) {
    std::array<std::string_view, 4> parts;
    for (std::string_view& part : parts) {
        const std::size_t end = key.find(kSeparator);
        part = key.substr(0, end);
        key.remove_prefix(end + 1);
    }
    Hint hint;
    hint.tenant = parts[0];
    hint.queue = parts[1];
    hint.partition = parts[2];
    hint.group = parts[3];
    return hint;
}

/// Peers look at a partition for a stored hint, and for a group's when its cursor was moved there.
bool is_dirty(const Hint& hint) {
    return (hint.kind == HintKind::stored || hint.kind == HintKind::moved) &&
           !hint.partition.empty();
}

} // namespace

Outbox::Outbox(const Options& options, Figures& figures, std::function<void()> wake)
    : options_(options), figures_(figures), wake_(std::move(wake)), queues_(options.peers.size()) {}

void Outbox::publish(std::span<const Hint> hints) {
    if (!listened() || hints.empty()) {
        return;
    }
    const std::vector<OutFrame> frames = frames_of(hints);
    {
        const std::lock_guard lock(mutex_);
        for (const OutFrame& frame : frames) {
            append(frame);
        }
    }
    mark_dirty(hints);
    signal();
}

void Outbox::append(const OutFrame& frame) {
    for (Queue& queue : queues_) {
        if (!queue.connected) {
            continue;
        }
        if (queue.frames.size() >= options_.send_queue ||
            queue.bytes + frame.bytes->size() > options_.send_queue_bytes) {
            ++queue.dropped;
            queue.lost = true;
            figures_.dropped_full.add();
            continue;
        }
        queue.bytes += frame.bytes->size();
        queue.frames.push_back(frame);
    }
}

void Outbox::mark_dirty(std::span<const Hint> hints) {
    thread_local std::string key; // a partition that is in the set already costs no allocation
    for (const Hint& hint : hints) {
        if (!is_dirty(hint)) {
            continue;
        }
        Hint named = hint;
        if (hint.kind == HintKind::stored) {
            named.group = {};
        }
        write_key(key, named);
        const std::lock_guard lock(mutex_);
        if (marked_.contains(key)) {
            continue;
        }
        if (dirty_count_.load(std::memory_order_relaxed) >= options_.dirty) {
            figures_.dropped_dirty.add();
            std::for_each(queues_.begin(), queues_.end(), [](Queue& queue) { queue.lost = true; });
            continue;
        }
        marked_.insert(key);
        dirty_count_.fetch_add(1, std::memory_order_relaxed);
    }
}

void Outbox::signal() {
    if (!woken_.exchange(true)) {
        wake_();
    }
}

std::deque<OutFrame> Outbox::discard(Queue& queue) {
    queue.dropped += queue.frames.size();
    figures_.dropped_stale.add(queue.frames.size());
    queue.bytes = 0;
    return std::exchange(queue.frames, {});
}

void Outbox::set_connected(std::size_t peer, bool connected) {
    std::deque<OutFrame> gone; // up to 32 MiB: workers must not wait for their end
    const std::lock_guard lock(mutex_);
    Queue& queue = queues_[peer];
    gone = discard(queue);
    queue.lost = false; // a new connection says so by itself
    if (queue.connected != connected) {
        queue.connected = connected;
        connected_.fetch_add(connected ? 1 : std::size_t(-1), std::memory_order_relaxed);
    }
}

void Outbox::take(std::size_t peer, std::size_t most, std::vector<OutFrame>& out) {
    constexpr std::size_t kBytes = std::size_t{1} << 20;
    std::size_t taken = 0;
    const std::lock_guard lock(mutex_);
    Queue& queue = queues_[peer];
    for (; most > 0 && taken < kBytes && !queue.frames.empty(); --most) {
        const std::size_t size = queue.frames.front().bytes->size();
        queue.bytes -= size;
        taken += size;
        out.push_back(std::move(queue.frames.front()));
        queue.frames.pop_front();
    }
    if (queue.frames.empty() && std::exchange(queue.lost, false)) {
        out.push_back(
            {std::make_shared<const std::string>(make_frame(FrameType::missed, "{}")), 0});
    }
}

bool Outbox::flush_dirty() {
    if (taken_.empty()) {
        const std::lock_guard lock(mutex_);
        taken_.swap(marked_);
    }
    BatchFrame batch(FrameType::dirty_batch, options_.dirty_frame);
    std::size_t count = 0;
    while (!taken_.empty() && !batch.full()) {
        batch.add(hint_of(*taken_.begin()));
        taken_.erase(taken_.begin());
        ++count;
    }
    if (count > 0) {
        const OutFrame frame = batch.finish();
        const std::lock_guard lock(mutex_);
        append(frame);
    }
    dirty_count_.fetch_sub(count, std::memory_order_relaxed);
    return dirty();
}

std::size_t Outbox::queued(std::size_t peer) const {
    const std::lock_guard lock(mutex_);
    return queues_[peer].frames.size();
}

std::size_t Outbox::queued() const {
    const std::lock_guard lock(mutex_);
    std::size_t sum = 0;
    for (const Queue& queue : queues_) {
        sum += queue.frames.size();
    }
    return sum;
}

std::uint64_t Outbox::dropped(std::size_t peer) const {
    const std::lock_guard lock(mutex_);
    return queues_[peer].dropped;
}

} // namespace queen::mesh
