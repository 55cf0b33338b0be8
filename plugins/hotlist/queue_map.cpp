#include "queue_map.hpp"

#include <algorithm>

namespace queen::hotlist {
namespace {

Rings::const_iterator place_of(const Rings& rings, std::string_view group) {
    return std::lower_bound(
        rings.begin(), rings.end(), group,
        [](const RingPtr& ring, std::string_view name) { return ring->group() < name; });
}

} // namespace

const RingPtr& find_ring(const Rings& rings, std::string_view group) {
    static const RingPtr kNone;
    const auto at = place_of(rings, group);
    return at != rings.end() && (*at)->group() == group ? *at : kNone;
}

QueueMap::Found QueueMap::find(std::string_view key) const {
    const Shard& shard = shard_of(key);
    const std::shared_lock lock(shard.mutex);
    const auto at = shard.queues.find(key);
    return at == shard.queues.end() ? Found{} : Found{at->second.queue, at->second.rings};
}

QueueMap::Registered
QueueMap::enlist(const plugin::Scope& scope, const std::function<QueuePtr()>& make_queue,
                 const std::function<RingPtr(std::shared_ptr<QueueFacts>)>& make_ring) {
    Registered made;
    Shard& shard = shard_of(scope.queue.key);
    const std::lock_guard lock(shard.mutex);
    auto at = shard.queues.find(scope.queue.key);
    if (at == shard.queues.end()) {
        Entry entry{make_queue(), std::make_shared<const Rings>()};
        at = shard.queues.emplace(std::string(scope.queue.key), std::move(entry)).first;
        made.new_queue = true;
        totals_.add(Totals::queues, 1);
    }
    Entry& entry = at->second;
    made.queue = entry.queue;
    made.ring = find_ring(*entry.rings, scope.group);
    if (made.ring == nullptr) {
        made.ring = make_ring(entry.queue->facts);
        Rings rings = *entry.rings;
        rings.insert(place_of(rings, scope.group), made.ring);
        entry.rings = std::make_shared<const Rings>(std::move(rings));
        made.new_ring = true;
        totals_.add(Totals::rings, 1);
    }
    return made;
}

void QueueMap::drop_ring(Entry& entry, const Ring& ring, Agenda& agenda) {
    Rings rings = *entry.rings;
    const auto at = std::find_if(rings.begin(), rings.end(),
                                 [&](const RingPtr& one) { return one.get() == &ring; });
    if (at == rings.end()) {
        return;
    }
    (*at)->dropped.store(true, std::memory_order_relaxed);
    agenda.remove(**at);
    rings.erase(at);
    entry.rings = std::make_shared<const Rings>(std::move(rings));
    totals_.add(Totals::rings, -1);
}

QueueMap::Queues::node_type QueueMap::drop_queue(Queues& queues, Queues::iterator at,
                                                 Agenda& agenda) {
    for (const RingPtr& ring : *at->second.rings) {
        ring->dropped.store(true, std::memory_order_relaxed);
        agenda.remove(*ring);
        totals_.add(Totals::rings, -1);
    }
    agenda.remove(*at->second.queue);
    totals_.add(Totals::queues, -1);
    return queues.extract(at);
}

void QueueMap::forget_in(Queues& queues, Queues::iterator at, std::string_view group,
                         Agenda& agenda, Rings& dropped) {
    if (group.empty()) {
        dropped.insert(dropped.end(), at->second.rings->begin(), at->second.rings->end());
        drop_queue(queues, at, agenda); // its rings live on in `dropped`
    } else if (const RingPtr ring = find_ring(*at->second.rings, group)) {
        dropped.push_back(ring);
        drop_ring(at->second, *ring, agenda);
    }
}

Rings QueueMap::forget(std::string_view tenant, std::string_view queue, std::string_view group,
                       Agenda& agenda) {
    Rings dropped;
    if (!queue.empty()) {
        std::string key(tenant);
        key += '\x1f';
        key += queue;
        Shard& shard = shard_of(key);
        const std::lock_guard lock(shard.mutex);
        if (const auto at = shard.queues.find(key); at != shard.queues.end()) {
            forget_in(shard.queues, at, group, agenda, dropped);
        }
        return dropped;
    }
    for (Shard& shard : shards_) {
        const std::lock_guard lock(shard.mutex);
        for (auto at = shard.queues.begin(); at != shard.queues.end();) {
            const auto next = std::next(at);
            if (at->second.queue->facts->tenant == tenant) {
                forget_in(shard.queues, at, group, agenda, dropped);
            }
            at = next;
        }
    }
    return dropped;
}

bool QueueMap::trim(Ring& ring, SteadyTime unserved_since, Agenda& agenda) {
    const auto in_use = [&] { return ring.last_served() > unserved_since; };
    if (in_use()) {
        return false; // the rule: a tick of a ring in use keeps nobody else from the map
    }
    Shard& shard = shard_of(ring.queue()->key);
    Queues::node_type dropped; // ends after the lock
    const std::lock_guard lock(shard.mutex);
    const auto at = shard.queues.find(ring.queue()->key);
    if (at == shard.queues.end() || ring.dropped.load(std::memory_order_relaxed) || in_use() ||
        ring.depth(unserved_since).in_flight > 0) {
        return false;
    }
    drop_ring(at->second, ring, agenda);
    if (at->second.rings->empty() && at->second.queue.use_count() == 1) {
        dropped = drop_queue(shard.queues, at, agenda);
    }
    return true;
}

bool QueueMap::sweep(std::string_view key, const TrackedQueue* queue, Agenda& agenda) {
    Shard& shard = shard_of(key);
    // Ends after the lock: with it go the rings, whose sub-rings have locks, and every name.
    Queues::node_type dropped;
    const std::lock_guard lock(shard.mutex);
    const auto at = shard.queues.find(key);
    // Holding the lock alone, a count of one is exact: whoever is in the middle of something took
    // its reference under this lock.
    if (at == shard.queues.end() || at->second.queue.get() != queue ||
        at->second.queue.use_count() != 1 || at->second.queue->touched()) {
        return false;
    }
    for (const RingPtr& ring : *at->second.rings) {
        if (!ring->depth(SteadyTime::min()).idle()) {
            return false;
        }
    }
    dropped = drop_queue(shard.queues, at, agenda);
    return true;
}

std::vector<QueueMap::Found> QueueMap::all() const {
    std::vector<Found> found;
    for (const Shard& shard : shards_) {
        const std::shared_lock lock(shard.mutex);
        for (const auto& [key, entry] : shard.queues) {
            found.push_back({entry.queue, entry.rings});
        }
    }
    return found;
}

} // namespace queen::hotlist
