// plugins/hotlist/ring.hpp - the hot-list of one (tenant, queue, group), over its sub-rings.
#pragma once
#include "agenda.hpp"
#include "figures.hpp"
#include "floor.hpp"
#include "interner.hpp"
#include "sub_ring.hpp"

#include <queen/plugin/candidates.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace queen::hotlist {

/// What is configured for a queue, as last told. Read without a lock on the hot paths.
/// @thread any
class QueueRules {
public:
    /// An answer that is older than what is known changes nothing.
    /// @return whether delay or window became shorter
    bool set(const plugin::QueueConfig& config);
    void fill(Rules& rules, SteadyTime now) const noexcept;

    /// A window is claimed as held only under a configuration read this lately.
    static constexpr Nanoseconds kFresh = std::chrono::seconds(30);

private:
    std::mutex mutex_; ///< of writers; a leaf
    std::atomic<std::int64_t> delay_{0}, window_{0};
    std::atomic<std::int64_t> read_at_{INT64_MIN}; ///< stored last, so that it is never too new
};

/// A queue's names, which outlive the queue's entry in the map while a selection refers to them.
struct QueueFacts {
    QueueFacts(const plugin::Queue& queue, bool is_traced)
        : key(queue.key), tenant(queue.tenant), name(queue.name), traced(is_traced) {}
    plugin::Queue view() const noexcept { return {key, tenant, name}; }

    const std::string key, tenant, name;
    const bool traced; ///< leaves breadcrumbs in the log
    QueueRules rules;
};

/// Locks: none of its own; each function takes the sub-rings' one after the other, never two.
/// @thread any
/// @source HL-1, HL-2b, HL-20
class Ring final : public Agenda::Item {
public:
    Ring(std::shared_ptr<QueueFacts> queue, std::string_view group, std::size_t shards,
         ReseedFloor::Intervals intervals, SteadyTime now, Totals& totals);
    /// It was dropped from the map: what is left in it counts no longer.
    void retire();

    struct Marked {
        Interner::Index index;
        std::uint32_t frames;
    };
    /// @param marks ordered by index % shards
    /// @return partitions that became ready
    std::size_t mark(std::span<const Marked> marks, SteadyTime now, const Rules& rules);
    struct Taken {
        bool held = false; ///< all were held for the queue's window
        std::vector<CheckedOut> slots;
    };
    Taken take(std::size_t limit, std::uint64_t messages, SteadyTime now, const Rules& rules,
               ReadyAges& ages);
    void settle(const CheckedOut& entry, SteadyTime taken_at, const plugin::Verdict& verdict,
                SteadyTime now, const Rules& rules) {
        shard(entry.shard).settle(entry, taken_at, verdict, now, rules, order_);
    }
    void found(Interner::Index index, const plugin::Verdict& verdict, SteadyTime now,
               const Rules& rules) {
        shard(index % shards_.size()).found(local_of(index), verdict, now, rules, order_);
    }
    bool released(Interner::Index index, bool covered, SteadyTime now) {
        return shard(index % shards_.size()).released(local_of(index), covered, now, order_);
    }
    Interner::Index index_of(const CheckedOut& slot) const noexcept {
        return static_cast<Interner::Index>(slot.local * shards_.size() + slot.shard);
    }
    /// @return partitions that became ready
    std::size_t reseed(std::span<const Interner::Index> indices, SteadyTime now,
                       const Rules& rules);
    void hasten(SteadyTime now);
    /// Makes due wheel entries ready, at most kDrainAtOnce a sub-ring. @return how many
    std::size_t drain(SteadyTime now);

    struct Depth {
        std::uint64_t ready = 0, wheel = 0, in_flight = 0, ready_messages = 0;
        std::uint64_t due_shards = 0;            ///< sub-rings with a wheel entry that is due
        SteadyTime next_due = SteadyTime::max(); ///< of the wheel
        bool idle() const noexcept { return ready + wheel + in_flight == 0; }
    };
    /// Reads no lock, allocates nothing.
    Depth depth(SteadyTime now) const noexcept;
    SteadyTime wheel_due() const noexcept;
    /// Place in line of the oldest ready entry; SubRing::kNever: none.
    std::int64_t oldest() const noexcept;
    std::size_t bytes() const;

    /// A consumer came by. @source HL-16
    void served(SteadyTime now) noexcept {
        const std::int64_t at = now.time_since_epoch().count();
        // Not for every look: a line that all consumers write would be the ring's one hot spot.
        if (at - served_.load(std::memory_order_relaxed) > kServedGrain.count()) {
            served_.store(at, std::memory_order_relaxed);
        }
    }
    SteadyTime last_served() const noexcept {
        return SteadyTime(Nanoseconds(served_.load(std::memory_order_relaxed)));
    }

    const std::shared_ptr<QueueFacts>& queue() const noexcept { return queue_; }
    const std::string& group() const noexcept { return group_; }
    plugin::Scope scope() const noexcept { return {queue_->view(), group_}; }
    ReseedFloor& floor() noexcept { return floor_; }
    std::size_t shards() const noexcept { return shards_.size(); }
    /// Names were answered this often in a row although the ring does not know all; a scan is due
    /// now and then.
    std::atomic<std::uint32_t> names_in_a_row{0};
    std::atomic<bool> dropped{false}; ///< no longer in the map: it wakes nobody

    static constexpr Nanoseconds kServedGrain = std::chrono::milliseconds(100);
    /// Wheel entries made ready per sub-ring under one hold of its lock: a hundred thousand that
    /// fall due together must not hold up marks and takes. A guess, about 50 us.
    static constexpr std::size_t kDrainAtOnce = 1024;

private:
    SubRing& shard(std::size_t at) noexcept { return shards_[at]; }
    Local local_of(Interner::Index index) const noexcept { // Slots of a shard lie without gaps.
        return static_cast<Local>(index / shards_.size());
    }

    const std::shared_ptr<QueueFacts> queue_;
    const std::string group_;
    std::vector<SubRing> shards_;
    ReadyOrder order_;
    ReseedFloor floor_;
    std::atomic<std::int64_t> served_;
};

} // namespace queen::hotlist
