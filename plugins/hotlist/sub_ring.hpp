// plugins/hotlist/sub_ring.hpp - every S-th partition of a ring: the states of its slots.
//
//            mark, reseed row            take                 settle
//     IDLE ------------------> READY ----------> IN FLIGHT -----------> READY   not evaluated,
//     acked
//       |                        ^                   |                  WHEEL   leased, deferred
//       | deferred               | due, released     |                  IDLE    empty, and nothing
//       +--------> WHEEL --------+                   |                          came meanwhile
//                    ^                               |
//                    +-------------------------------+
//
// A slot is cleared (to IDLE) in two places only: an empty verdict whose epoch is the one of the
// checkout, and a covered release of a drained claim. Everything else keeps it, which is the safe
// side.
#pragma once
#include "figures.hpp"
#include "segmented.hpp"

#include <queen/plugin/candidates.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

namespace queen::hotlist {

using Local = std::uint32_t; ///< place of a slot in its sub-ring

/// What stands in the options and what the queue is configured to, for the length of one call.
struct Rules {
    Nanoseconds pad{0};             ///< added to delays and lease ends: clocks differ
    std::uint64_t window_batch = 1; ///< messages that end a window early
    Nanoseconds delay{0};           ///< delayedProcessing
    Nanoseconds window{0};          ///< windowBuffer
    bool config_fresh = false;      ///< read lately enough to claim that the window was held

    bool deferred() const noexcept { return delay.count() > 0 || window.count() > 0; }
    bool only_window() const noexcept { return delay.count() <= 0 && window.count() > 0; }
};

/// A lease is never believed for longer: the release that ends it may have been told before the
/// verdict arrived, and then nobody else brings the partition back (F-1).
/// @source HL-3, F-1
inline constexpr Nanoseconds kMostLeasePark = std::chrono::milliseconds(1000);
/// Bounds of the next look at an empty partition of a deferred queue.
inline constexpr Nanoseconds kLeastEmptyRevisit = std::chrono::milliseconds(50);
inline constexpr Nanoseconds kMostEmptyRevisit = std::chrono::milliseconds(1000);
/// What only a walk told of is looked at again after this part of the time since: late by as much
/// at most, and a hundred thousand of them after a restart are not looked at each second. A guess.
inline constexpr int kWalkedRevisitPart = 16;
inline constexpr Nanoseconds kMostWalkedRevisit = std::chrono::seconds(30);
/// Beyond delay or window and twice the pad, how long an empty partition of a deferred queue stays
/// under suspicion. @source HL-10, F-7
inline constexpr Nanoseconds kGhostSlack = std::chrono::milliseconds(1000);

/// The time part of a place in line: rises with every entry that becomes ready, in a whole ring, so
/// it is an age and an order in one.
/// @thread any
class ReadyOrder {
public:
    std::int64_t next(SteadyTime now) noexcept {
        const std::int64_t wanted = now.time_since_epoch().count();
        std::int64_t last = last_.load(std::memory_order_relaxed);
        std::int64_t mine;
        do {
            mine = wanted > last ? wanted : last + 1;
        } while (!last_.compare_exchange_weak(last, mine, std::memory_order_relaxed));
        return mine;
    }
    /// The last place given out: what becomes ready later is behind it.
    std::int64_t newest() const noexcept { return last_.load(std::memory_order_relaxed); }

private:
    std::atomic<std::int64_t> last_{INT64_MIN};
};

/// A slot that a take checked out.
struct CheckedOut {
    std::uint32_t epoch; ///< when it was checked out: a clear with an older one is void
    Local local;
    std::uint16_t visit; ///< tells this checkout from a later one of the same slot
    std::uint16_t shard;
};

/// Lists, wheel and slots of one shard of a ring.
///
/// Invariant: a slot is linked into the ready list exactly while READY; a wheel cell counts only
/// while its slot is WHEEL and due at the cell's time, other cells are dropped when they surface,
/// and swept out when they outnumber the live ones. Locks: `mutex_` is a leaf, taken by each
/// function. The figures below are read without it.
/// @thread any
/// @source HL-2 to HL-10
class alignas(64) SubRing {
public:
    static constexpr Local kNoSlot = UINT32_MAX;

    SubRing() = default;
    ~SubRing();
    SubRing(const SubRing&) = delete;
    SubRing& operator=(const SubRing&) = delete;
    /// Once the ring is dropped: its entries are no longer part of the sums.
    void retire();
    /// Once, before anything else. `totals` must outlive it.
    void count_in(Totals& totals, std::size_t stripe) {
        totals_ = &totals;
        stripe_ = stripe;
    }
    static constexpr std::int64_t kNever = INT64_MAX;

    struct Marked {
        Local local;
        std::uint32_t frames;
    };
    /// What a take still wants, over all sub-rings.
    struct Wanted {
        std::size_t names = 0;      ///< at most this many more
        std::uint64_t messages = 0; ///< stops once this many are thought to be taken
        bool first = true;          ///< none taken yet: one is taken whatever it is thought to hold
        bool held = false;          ///< of the first: its window was held
        bool differs = false;       ///< the next one in line differs from the first in that
    };

    /// @return slots that became ready
    std::size_t mark(std::span<const Marked> marks, SteadyTime now, const Rules& rules,
                     ReadyOrder& order);
    /// Makes at most `most` due wheel entries ready. @return how many became so
    std::size_t drain(SteadyTime now, ReadyOrder& order, std::size_t most);
    /// Checks out from the head while entries are no younger in line than `no_younger_than`.
    void take(Wanted& wanted, std::int64_t no_younger_than, std::uint16_t shard, SteadyTime now,
              const Rules& rules, ReadyAges& ages, std::vector<CheckedOut>& out);
    /// @param taken_at when it was checked out: a verdict speaks of a moment after that
    void settle(const CheckedOut& entry, SteadyTime taken_at, const plugin::Verdict& verdict,
                SteadyTime now, const Rules& rules, ReadyOrder& order);
    /// A verdict on a partition that the store found itself.
    void found(Local local, const plugin::Verdict& verdict, SteadyTime now, const Rules& rules,
               ReadyOrder& order);
    /// A lease ended. @return whether the slot became ready
    bool released(Local local, bool covered, SteadyTime now, ReadyOrder& order);
    /// Rows of a walk. @return slots that became ready
    std::size_t reseed(std::span<const Local> locals, SteadyTime now, const Rules& rules,
                       ReadyOrder& order);

    // Estimates that are exact when nobody is inside.
    std::uint64_t ready() const noexcept { return ready_.load(std::memory_order_relaxed); }
    std::uint64_t wheel() const noexcept { return wheel_.load(std::memory_order_relaxed); }
    std::uint64_t in_flight() const noexcept { return in_flight_.load(std::memory_order_relaxed); }
    std::uint64_t ready_messages() const noexcept {
        return ready_messages_.load(std::memory_order_relaxed);
    }
    /// Place in line of the head of the ready list; kNever: empty.
    std::int64_t head() const noexcept { return head_.load(std::memory_order_acquire); }
    /// When the first wheel entry is due; kNever: none.
    std::int64_t due() const noexcept { return due_.load(std::memory_order_seq_cst); }
    /// Delay or window became shorter: whatever waits is looked at by the next drain.
    void hasten(SteadyTime now);
    std::size_t bytes() const;
    static constexpr std::size_t slot_bytes() noexcept { return sizeof(Slot); }

private:
    enum class State : std::uint8_t { idle = 0, ready, wheel, in_flight };

    /// All zero: idle, never heard of.
    struct Slot {
        std::int64_t at;         ///< READY: place in line. WHEEL: when it is due.
        std::int64_t first_mark; ///< since nothing was known to wait: the window counts from it
        std::int64_t last_news;  ///< last mark, delivery or reseed row: the pending clock
        std::int64_t lease_end;  ///< of the last leased claim: `drained` is of that lease
        std::uint32_t epoch;
        std::uint32_t batch; ///< messages marked since the last claim, biased low
        /// Messages of the last claim if it left more behind, so about what the next will take:
        /// without it a pop on a backlog that is not marked any more would take all candidates it
        /// may.
        std::uint32_t left;
        Local next; ///< in the ready list
        /// READY: the window it was held for. WHEEL: the one it will have been, once due. 0: none.
        std::uint32_t held_ms;
        std::uint16_t visit;
        State state;
        bool drained : 1; ///< the last claim reached the partition's end
        /// Delayed queue: only a walk told of it, so its age is not known.
        bool walked : 1;
    };
    static_assert(sizeof(Slot) <= 56, "a million of them are held");

    struct Cell {
        std::int64_t due;
        Local local;
    };

    // All below require mutex_.
    Slot& slot(Local local);
    /// Messages a claim is thought to find, biased low.
    static std::uint32_t thought(const Slot& slot) noexcept {
        return std::max(slot.batch, slot.left);
    }
    void make_ready(Local local, SteadyTime now, std::uint32_t held_ms, ReadyOrder& order);
    void park(Local local, SteadyTime until, std::uint32_t held_ms = 0);
    bool window_over(const Slot& slot, SteadyTime now, const Rules& rules) const;
    void clear(Slot& slot);
    void unlink_head();
    void enter(Slot& slot, State to);
    bool live(const Cell& cell) const {
        const Slot& slot = slots_[cell.local];
        return slot.state == State::wheel && slot.at == cell.due;
    }
    void sweep_wheel();
    void pop_cell();
    void publish();
    void settle_empty(Local local, bool quiet, SteadyTime taken_at, SteadyTime now,
                      const Rules& rules, ReadyOrder& order);

    Totals* totals_ = nullptr;
    std::size_t stripe_ = 0;
    mutable std::mutex mutex_;
    Segmented<Slot> slots_;
    std::vector<Cell> cells_; ///< min-heap by due
    Local first_ = kNoSlot, last_ = kNoSlot;
    std::uint32_t ready_count_ = 0, wheel_count_ = 0, in_flight_count_ = 0;
    std::uint64_t ready_messages_count_ = 0;

    std::atomic<std::uint32_t> ready_{0}, wheel_{0}, in_flight_{0};
    std::atomic<std::uint64_t> ready_messages_{0};
    std::atomic<std::int64_t> head_{kNever}, due_{kNever};
};

} // namespace queen::hotlist
