#include "floor.hpp"

#include <algorithm>

namespace queen::hotlist {
namespace {

Nanoseconds jitter_of(Nanoseconds interval, std::uint64_t spread) {
    const Nanoseconds most = std::min(interval / 2, ReseedFloor::kMostJitter);
    return most.count() <= 0 ? Nanoseconds(0)
                             : Nanoseconds(static_cast<std::int64_t>(
                                   spread % static_cast<std::uint64_t>(most.count())));
}

Nanoseconds window_of(const ReseedFloor::Intervals& intervals, Nanoseconds jitter) {
    const Nanoseconds wanted = intervals.window.count() > 0
                                   ? intervals.window
                                   : std::max(4 * intervals.reseed, ReseedFloor::kLeastWindow);
    return std::max(std::min(wanted, ReseedFloor::kMostWindow), intervals.reseed + jitter);
}

} // namespace

ReseedFloor::ReseedFloor(Intervals intervals, std::uint64_t spread)
    : intervals_(intervals), jitter_(jitter_of(intervals.reseed, spread)),
      window_(window_of(intervals, jitter_)) {}

bool ReseedFloor::full_is_due(SteadyTime now) const {
    return !warm_.load(std::memory_order_relaxed) || small_ ||
           intervals_.reseed_full.count() == 0 ||
           now >= last_full_ + intervals_.reseed_full + jitter_;
}

std::optional<ReseedFloor::Walk> ReseedFloor::start(SteadyTime now, plugin::Ticket ticket) {
    if (due() > now) {
        return std::nullopt; // the common case, without a lock
    }
    const std::lock_guard lock(mutex_);
    if (walk_ || due() > now) {
        return std::nullopt;
    }
    walk_ = Walk{ticket, full_is_due(now) ? Nanoseconds(0) : window_};
    walk_began_ = now;
    walk_pages_ = 0;
    hastened_ = false;
    again_ = false;
    set_due(SteadyTime::max());
    return walk_;
}

void ReseedFloor::hurry(SteadyTime now) {
    const std::lock_guard lock(mutex_);
    if (walk_) {
        again_ = true;
    } else {
        set_due(std::min(due(), now));
    }
}

bool ReseedFloor::page(plugin::Ticket ticket) {
    const std::lock_guard lock(mutex_);
    if (!walk_ || walk_->ticket != ticket) {
        return false;
    }
    ++walk_pages_;
    return true;
}

ReseedFloor::Outcome ReseedFloor::done(plugin::Ticket ticket, bool complete, SteadyTime now) {
    const std::lock_guard lock(mutex_);
    if (!walk_ || walk_->ticket != ticket) {
        return {};
    }
    const bool full = walk_->window.count() == 0;
    walk_.reset();
    if (!complete) {
        const std::uint32_t failures = failures_.load(std::memory_order_relaxed) + 1;
        failures_.store(failures, std::memory_order_relaxed);
        // A full walk stays due: its clock did not move.
        const Nanoseconds retry = kFirstRetry * (1 << std::min(failures - 1, 20u));
        set_due(now + std::min(retry, std::max(intervals_.reseed, kFirstRetry)));
        return {Ended::failed, full, failures};
    }
    failures_.store(0, std::memory_order_relaxed);
    if (full) {
        // Stamped with the beginning: what was written during the walk may be missing from it.
        last_full_ = walk_began_;
        small_ = walk_pages_ <= 1;
        warm_.store(true, std::memory_order_release);
    }
    const Nanoseconds interval = intervals_.reseed + jitter_;
    const SteadyTime rested = now + kLeastRest;
    const SteadyTime next =
        walk_began_ + (hastened_ ? std::min<Nanoseconds>(interval, kHastened) : interval);
    set_due(again_ ? rested : std::max(next, rested));
    return {Ended::complete, full, 0};
}

void ReseedFloor::hasten(SteadyTime now) {
    const std::lock_guard lock(mutex_);
    if (walk_) {
        hastened_ = true;
    } else if (warm_.load(std::memory_order_relaxed) &&
               failures_.load(std::memory_order_relaxed) == 0) {
        set_due(std::min(due(), std::max(now, walk_began_ + kHastened)));
    } // else one is due at once, or as soon as a failure allows
}

std::optional<SteadyTime> ReseedFloor::last_full() const {
    const std::lock_guard lock(mutex_);
    return warm() ? std::optional(last_full_) : std::nullopt;
}

} // namespace queen::hotlist
