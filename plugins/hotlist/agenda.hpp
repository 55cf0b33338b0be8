// plugins/hotlist/agenda.hpp - who wants to be looked at by the next ticks, and when the host is
// told.
#pragma once
#include <queen/plugin/types.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace queen::hotlist {

/// The rings and queues that wait for a time, earliest first, so that a tick touches those that are
/// due and no others: its cost does not grow with the number of queues (F-51, HL-21).
///
/// Invariant: an item is listed once, for `scheduled()`, or not at all and then `scheduled()` is
/// max(). Whoever makes an item due earlier calls note() after publishing the earlier time; a tick
/// unlists an item before it reads the item's times. So one of the two always sees the other.
/// Locks: `mutex_` is a leaf. It may be taken under the map's lock, never under a ring's.
class Agenda {
public:
    /// Ticks come no closer together than this: at a thousand wheel entries a millisecond apart
    /// each of them need not cost a wake of its own thread, and 5 ms is far below what a pad hides.
    static constexpr Nanoseconds kSpacing = std::chrono::milliseconds(5);
    /// Items looked at in one tick, so that ten thousand rings due at once do not hold the ticker
    /// for long; the rest comes with the next tick.
    static constexpr std::size_t kMostPerTick = 512;

    enum class Kind : std::uint8_t { ring, queue };

    class Item : public std::enable_shared_from_this<Item> {
    public:
        explicit Item(Kind kind) : kind_(kind) {}
        virtual ~Item() = default;
        Item(const Item&) = delete;
        Item& operator=(const Item&) = delete;
        Kind kind() const noexcept { return kind_; }
        SteadyTime scheduled() const noexcept {
            return SteadyTime(Nanoseconds(scheduled_.load(std::memory_order_seq_cst)));
        }

    private:
        friend class Agenda;
        using List = std::multimap<SteadyTime, std::weak_ptr<Item>>;
        const Kind kind_;
        std::atomic<std::int64_t> scheduled_{INT64_MAX};
        List::iterator place_{}; ///< guarded by the agenda's mutex_
        bool removed_ = false;   ///< guarded by the agenda's mutex_; stays true
    };

    /// The item wants to be looked at no later than at `when`.
    /// @return the time to give to tick_at(), when the host does not know of one early enough
    std::optional<SteadyTime> note(Item& item, SteadyTime when);
    /// The item is dropped: it is never listed again.
    void remove(Item& item);

    /// Unlists what is due, at most kMostPerTick of it. Until end() no note() asks for a tick.
    std::vector<std::shared_ptr<Item>> begin(SteadyTime now);
    /// @return when the next tick is due; max() when nothing is listed
    SteadyTime end();

private:
    mutable std::mutex mutex_;
    Item::List list_;
    SteadyTime last_tick_ = SteadyTime::min();
    SteadyTime asked_ = SteadyTime::max(); ///< the next tick the host knows of
};

} // namespace queen::hotlist
