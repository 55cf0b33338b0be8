// plugins/hotlist/queue_map.hpp - which queues and groups have rings.
#pragma once
#include "agenda.hpp"
#include "interner.hpp"
#include "ring.hpp"

#include <queen/plugin/candidates.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace queen::hotlist {

using RingPtr = std::shared_ptr<Ring>;
using Rings = std::vector<RingPtr>; ///< ordered by group

/// Null when there is none. The answer lives in `rings`.
const RingPtr& find_ring(const Rings& rings, std::string_view group);

/// A queue that some group polls: its names and its rings.
class TrackedQueue final : public Agenda::Item {
public:
    TrackedQueue(std::shared_ptr<QueueFacts> facts_in, Totals& totals, std::size_t most_hearsay)
        : Item(Agenda::Kind::queue), facts(std::move(facts_in)), names(totals, most_hearsay) {}

    /// Anybody came by: the next sweep leaves it alone.
    void touch() noexcept {
        if (!touched_.load(std::memory_order_relaxed)) {
            touched_.store(true, std::memory_order_relaxed);
        }
    }
    bool touched() const noexcept { return touched_.load(std::memory_order_relaxed); }
    bool take_touch() noexcept { return touched_.exchange(false, std::memory_order_relaxed); }

    const std::shared_ptr<QueueFacts> facts;
    Interner names;

private:
    std::atomic<bool> touched_{true};
};

using QueuePtr = std::shared_ptr<TrackedQueue>;

/// Queues by key, in shards so that queues do not wait for each other.
///
/// Invariant: only registering adds a queue or a ring; looking one up never does, whatever names a
/// client thinks of.
/// Locks: each shard's lock is shared by look-ups and taken alone to register and to drop. Under it
/// the agenda's may be taken; a ring's never is.
/// @thread any
class QueueMap {
public:
    static constexpr std::size_t kShards = 32;

    /// Counts its queues and rings in `totals`, which must outlive it.
    explicit QueueMap(Totals& totals) : totals_(totals) {}

    struct Found {
        QueuePtr queue;
        std::shared_ptr<const Rings> rings; ///< a snapshot; not null when queue is not
        explicit operator bool() const noexcept { return queue != nullptr; }
    };
    struct Registered {
        QueuePtr queue;
        RingPtr ring;
        bool new_queue = false, new_ring = false;
    };

    Found find(std::string_view key) const;
    /// Calls `use(queue, ring)` under the shard's shared lock, without touching a reference count.
    /// `ring` is null when the group has none. @return false when the queue is not tracked
    template <class Use>
    bool look(std::string_view key, std::string_view group, Use use) const {
        const Shard& shard = shard_of(key);
        const std::shared_lock lock(shard.mutex);
        const auto at = shard.queues.find(key);
        if (at == shard.queues.end()) {
            return false;
        }
        use(*at->second.queue, find_ring(*at->second.rings, group).get());
        return true;
    }
    /// @param make_queue, make_ring called under the lock when there is none yet
    Registered enlist(const plugin::Scope& scope, const std::function<QueuePtr()>& make_queue,
                      const std::function<RingPtr(std::shared_ptr<QueueFacts>)>& make_ring);

    /// Drops rings, or whole queues when `group` is empty, of that tenant only (HL-22).
    /// @return the rings that were dropped
    Rings forget(std::string_view tenant, std::string_view queue, std::string_view group,
                 Agenda& agenda);
    /// Drops the ring if no pop came since `unserved_since` and nothing is checked out; a queue
    /// whose last ring goes, goes with it unless somebody is in the middle of something.
    bool trim(Ring& ring, SteadyTime unserved_since, Agenda& agenda);
    /// Drops the queue if nobody touched it, nobody is in the middle of something, and every entry
    /// is idle. `queue` is only compared.
    bool sweep(std::string_view key, const TrackedQueue* queue, Agenda& agenda);

    /// Of one moment per shard.
    std::vector<Found> all() const;
    /// Calls `use(ring)` for rings of one map shard after the other, beginning at shard `from`,
    /// until about `most` were looked at. @return the shard to go on with
    template <class Use>
    std::size_t look_at_some(std::size_t from, std::size_t most, Use use) const {
        std::size_t looked = 0;
        for (std::size_t i = 0; i < kShards; ++i) {
            const Shard& shard = shards_[(from + i) % kShards];
            const std::shared_lock lock(shard.mutex);
            for (const auto& [key, entry] : shard.queues) {
                for (const RingPtr& ring : *entry.rings) {
                    use(*ring);
                    ++looked;
                }
            }
            if (looked >= most) {
                return (from + i + 1) % kShards;
            }
        }
        return from;
    }

private:
    struct Entry {
        QueuePtr queue;
        std::shared_ptr<const Rings> rings; ///< replaced as a whole
    };
    struct TextHash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const noexcept {
            return std::hash<std::string_view>{}(text);
        }
    };
    using Queues = std::unordered_map<std::string, Entry, TextHash, std::equal_to<>>;
    struct alignas(64) Shard {
        mutable std::shared_mutex mutex;
        Queues queues;
    };
    Shard& shard_of(std::string_view key) { return shards_[TextHash{}(key) % kShards]; }
    const Shard& shard_of(std::string_view key) const { return shards_[TextHash{}(key) % kShards]; }
    /// Requires the shard's mutex, alone.
    void drop_ring(Entry& entry, const Ring& ring, Agenda& agenda);
    /// @return what was taken out of the map, for its end outside of the lock
    Queues::node_type drop_queue(Queues& queues, Queues::iterator at, Agenda& agenda);
    void forget_in(Queues& queues, Queues::iterator at, std::string_view group, Agenda& agenda,
                   Rings& dropped);

    Totals& totals_;
    std::array<Shard, kShards> shards_;
};

} // namespace queen::hotlist
