// plugins/hotlist/floor.hpp - when a ring's partitions are walked anew, and what a walk's end
// means.
#pragma once
#include <queen/plugin/candidates.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

namespace queen::hotlist {

/// The reseed floor of one ring: what a mark, a hint or a clear lost is found again by the next
/// walk of the store (HL-12).
///
///   no walk yet --start--> walking --done, complete--> waits interval + jitter --start--> ...
///                            \--done, failed--> waits a growing time, stays full --start--> ...
///
/// hasten() has the next walk come soon after the last; one under way may have passed already what
/// it is for.
///
/// A walk is full while the last full one needed one page at most (a small queue), when none was
/// ever complete, when the last full one failed, and each full interval; else it is windowed.
///
/// Invariant: at most one walk is under way; only its own ticket can end it, so the end of a walk
/// for a ring that was replaced stamps nothing. A windowed walk never moves the clock of full ones.
/// Locks: `mutex_` is a leaf. @thread any
/// @source HL-12, HL-13, F-45
class ReseedFloor {
public:
    struct Intervals {
        Nanoseconds reseed;      ///< between walks
        Nanoseconds reseed_full; ///< between full walks of a large queue; 0: every walk is full
        Nanoseconds window;      ///< of a windowed walk; 0: derived from `reseed`
    };
    struct Walk {
        plugin::Ticket ticket;
        Nanoseconds window; ///< zero: full
    };
    enum class Ended { unknown_ticket, complete, failed };
    struct Outcome {
        Ended ended = Ended::unknown_ticket;
        bool full = false;
        std::uint32_t failures = 0; ///< in a row, with failed
    };

    /// @param spread any number that differs between scopes: it fixes the ring's jitter
    ReseedFloor(Intervals intervals, std::uint64_t spread);

    /// A walk to ask for, if one is due and none is under way.
    std::optional<Walk> start(SteadyTime now, plugin::Ticket ticket);
    /// @return whether the page belongs to the walk under way
    bool page(plugin::Ticket ticket);
    Outcome done(plugin::Ticket ticket, bool complete, SteadyTime now);
    /// The next walk is due at once; one under way may have passed what it is for, so another one
    /// follows it. Of what kind it is does not change: a windowed one reaches back to before the
    /// last.
    void hurry(SteadyTime now);

    /// There may be partitions that nobody can name: the next walk comes soon, and not before this.
    void hasten(SteadyTime now);

    /// When start() has something to ask for; max() while a walk is under way.
    SteadyTime due() const noexcept {
        return SteadyTime(Nanoseconds(due_.load(std::memory_order_seq_cst)));
    }
    /// A full walk was complete: the ring knows what there is.
    bool warm() const noexcept { return warm_.load(std::memory_order_acquire); }
    Nanoseconds jitter() const noexcept { return jitter_; }
    /// Walks that failed in a row.
    std::uint32_t failures() const noexcept { return failures_.load(std::memory_order_relaxed); }
    /// Time since the last walk, and the last full one, was begun; nothing before the first.
    std::optional<SteadyTime> last_full() const;

    /// Most that a ring's jitter adds to its interval; at most half of the interval. Rings that
    /// were registered together must not walk together for ever.
    static constexpr Nanoseconds kMostJitter = std::chrono::seconds(15);
    /// Least window that is derived, so that a short interval does not make a window too narrow for
    /// a slow walk.
    static constexpr Nanoseconds kLeastWindow = std::chrono::seconds(120);
    static constexpr Nanoseconds kMostWindow = std::chrono::hours(24 * 7);
    /// First wait after a failed walk; doubles with each, up to the interval. A guess.
    static constexpr Nanoseconds kFirstRetry = std::chrono::seconds(1);
    /// From the beginning of a walk to one that was hastened. A guess: a sixth of the usual
    /// interval.
    static constexpr Nanoseconds kHastened = std::chrono::seconds(5);
    /// Least rest between the end of a walk and the next, when walks take longer than the interval.
    static constexpr Nanoseconds kLeastRest = std::chrono::seconds(1);

private:
    void set_due(SteadyTime when) noexcept {
        due_.store(when.time_since_epoch().count(), std::memory_order_seq_cst);
    }
    bool full_is_due(SteadyTime now) const; // Requires mutex_.

    const Intervals intervals_;
    const Nanoseconds jitter_;
    const Nanoseconds window_;
    std::atomic<std::int64_t> due_{0}; ///< at once: the first walk is owed from the start
    std::atomic<bool> warm_{false};
    std::atomic<std::uint32_t> failures_{0};

    mutable std::mutex mutex_;
    std::optional<Walk> walk_;
    bool hastened_ = false; ///< since the walk under way began
    SteadyTime walk_began_{};
    std::uint64_t walk_pages_ = 0;
    bool again_ = false;     ///< hurried during the walk
    SteadyTime last_full_{}; ///< when it was begun; meaningful once warm
    bool small_ = true;      ///< the last full walk needed one page at most
};

} // namespace queen::hotlist
