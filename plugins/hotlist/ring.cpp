#include "ring.hpp"

#include <algorithm>
#include <functional>

namespace queen::hotlist {

// ---- QueueRules ---------------------------------------------------------------------------------

bool QueueRules::set(const plugin::QueueConfig& config) {
    const std::lock_guard lock(mutex_);
    const std::int64_t read_at = config.read_at.time_since_epoch().count();
    if (read_at < read_at_.load(std::memory_order_relaxed)) {
        return false;
    }
    const bool shorter = config.delay.count() < delay_.load(std::memory_order_relaxed) ||
                         config.window.count() < window_.load(std::memory_order_relaxed);
    delay_.store(config.delay.count(), std::memory_order_relaxed);
    window_.store(config.window.count(), std::memory_order_release);
    read_at_.store(read_at, std::memory_order_release);
    return shorter;
}

void QueueRules::fill(Rules& rules, SteadyTime now) const noexcept {
    const SteadyTime read_at(Nanoseconds(read_at_.load(std::memory_order_acquire)));
    rules.delay = Nanoseconds(delay_.load(std::memory_order_relaxed));
    rules.window = Nanoseconds(window_.load(std::memory_order_relaxed));
    rules.config_fresh = read_at >= now - kFresh;
}

// ---- Ring ---------------------------------------------------------------------------------------

namespace {

std::uint64_t spread_of(const QueueFacts& queue, std::string_view group) {
    const std::hash<std::string_view> hash;
    return hash(queue.key) * 31 + hash(group);
}

} // namespace

Ring::Ring(std::shared_ptr<QueueFacts> queue, std::string_view group, std::size_t shards,
           ReseedFloor::Intervals intervals, SteadyTime now, Totals& totals)
    : Item(Agenda::Kind::ring), queue_(std::move(queue)), group_(group), shards_(shards),
      floor_(intervals, spread_of(*queue_, group)), served_(now.time_since_epoch().count()) {
    const std::uint64_t spread = spread_of(*queue_, group_);
    for (std::size_t at = 0; at < shards_.size(); ++at) {
        shards_[at].count_in(totals, spread + at);
    }
}

void Ring::retire() {
    for (SubRing& one : shards_) {
        one.retire();
    }
}

std::size_t Ring::mark(std::span<const Marked> marks, SteadyTime now, const Rules& rules) {
    std::size_t made_ready = 0;
    std::vector<SubRing::Marked> locals;
    locals.reserve(marks.size());
    for (std::size_t from = 0; from < marks.size();) {
        const std::size_t at = marks[from].index % shards_.size();
        locals.clear();
        std::size_t to = from;
        for (; to < marks.size() && marks[to].index % shards_.size() == at; ++to) {
            locals.push_back({local_of(marks[to].index), marks[to].frames});
        }
        made_ready += shard(at).mark(locals, now, rules, order_);
        from = to;
    }
    return made_ready;
}

Ring::Taken Ring::take(std::size_t limit, std::uint64_t messages, SteadyTime now,
                       const Rules& rules, ReadyAges& ages) {
    Taken taken;
    for (SubRing& one : shards_) { // all of them first: what is due now came before what follows
        one.drain(now, order_, kDrainAtOnce);
    }
    SubRing::Wanted wanted;
    wanted.names = limit;
    wanted.messages = messages;
    // The entry longest in line, whatever sub-ring it is in: so the cursor of the round robin is
    // the place in line, every entry comes round equally often, and a sub-ring with many is visited
    // more often than one with few. Somebody else may empty a sub-ring between look and lock; the
    // number of looks in vain is bounded. What becomes ready from the first checkout on is left for
    // the next take: it may be what a row of a walk took back from this very one, and no name is
    // offered twice.
    std::size_t vain = 0;
    std::int64_t newest = SubRing::kNever;
    while (wanted.names > 0 && (wanted.first || wanted.messages > 0) && !wanted.differs &&
           vain <= shards_.size()) {
        std::size_t oldest = 0;
        std::int64_t head = SubRing::kNever, next = SubRing::kNever;
        for (std::size_t at = 0; at < shards_.size(); ++at) {
            const std::int64_t other = shards_[at].head();
            if (other < head) {
                next = head;
                head = other;
                oldest = at;
            } else {
                next = std::min(next, other);
            }
        }
        if (wanted.first) {
            newest = std::max(head, order_.newest());
        }
        if (head == SubRing::kNever || head > newest) {
            break;
        }
        const std::size_t before = taken.slots.size();
        shard(oldest).take(wanted, std::min(next, newest), static_cast<std::uint16_t>(oldest), now,
                           rules, ages, taken.slots);
        vain = taken.slots.size() == before ? vain + 1 : 0;
    }
    taken.held = wanted.held && !taken.slots.empty();
    return taken;
}

std::size_t Ring::reseed(std::span<const Interner::Index> indices, SteadyTime now,
                         const Rules& rules) {
    std::vector<std::vector<Local>> parts(shards_.size());
    for (std::vector<Local>& part : parts) {
        part.reserve(indices.size() / shards_.size() + 16);
    }
    const auto divisor = static_cast<Interner::Index>(shards_.size());
    for (const Interner::Index index : indices) {
        parts[index % divisor].push_back(index / divisor);
    }
    std::size_t made_ready = 0;
    for (std::size_t at = 0; at < shards_.size(); ++at) {
        if (!parts[at].empty()) {
            made_ready += shard(at).reseed(parts[at], now, rules, order_);
        }
    }
    return made_ready;
}

void Ring::hasten(SteadyTime now) {
    for (SubRing& one : shards_) {
        one.hasten(now);
    }
}

std::size_t Ring::drain(SteadyTime now) {
    std::size_t made_ready = 0;
    for (SubRing& one : shards_) {
        made_ready += one.drain(now, order_, kDrainAtOnce);
    }
    return made_ready;
}

Ring::Depth Ring::depth(SteadyTime now) const noexcept {
    Depth sum;
    for (const SubRing& one : shards_) {
        sum.ready += one.ready();
        sum.wheel += one.wheel();
        sum.in_flight += one.in_flight();
        sum.ready_messages += one.ready_messages();
        const SteadyTime due(Nanoseconds(one.due()));
        sum.next_due = std::min(sum.next_due, due);
        sum.due_shards += due <= now ? 1 : 0;
    }
    return sum;
}

SteadyTime Ring::wheel_due() const noexcept {
    std::int64_t due = SubRing::kNever;
    for (const SubRing& one : shards_) {
        due = std::min(due, one.due());
    }
    return SteadyTime(Nanoseconds(due));
}

std::int64_t Ring::oldest() const noexcept {
    std::int64_t first = SubRing::kNever;
    for (const SubRing& one : shards_) {
        first = std::min(first, one.head());
    }
    return first;
}

std::size_t Ring::bytes() const {
    std::size_t sum = sizeof(*this) + group_.capacity();
    for (const SubRing& one : shards_) {
        sum += one.bytes();
    }
    return sum;
}

} // namespace queen::hotlist
