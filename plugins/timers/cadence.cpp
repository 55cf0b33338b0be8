// When the sweeper looks next: how a cycle ends and how long it sleeps then.
#include "sweeper.hpp"

#include <algorithm>

namespace queen::timers {

using plugin::LogLevel;
using plugin::TimerOutcome;

void Sweeper::cut_cycle(End end) {
    if (!cycle_.cut) {
        cycle_.cut = true;
        cycle_.end = end;
    }
}

void Sweeper::end_cycle(End end) {
    const SteadyTime now = clock_.now();
    running_ = false;
    ++counts_.cycles;
    counts_.cycle_took = now - cycle_.began;
    if (outage_ && end != End::transient && end != End::stopping) {
        outage_ = false;
        say(LogLevel::info, "the database answers again");
    }
    const Nanoseconds sleep = sleep_after(end);
    const bool patient = end == End::paused || end == End::transient || end == End::refused;
    not_before_ = now + (patient ? sleep : options_.min_sleep);
    const SteadyTime earliest{Nanoseconds(earliest_.load())};
    wake_ = std::max(std::min(now + sleep, earliest), not_before_);
    counts_.sleep = wake_ - now;
    if (!stopped_) {
        ask_for_tick();
    }
}

Sweeper::End Sweeper::end_after(TimerOutcome failure) {
    switch (failure) {
    case TimerOutcome::paused:
        return End::paused;
    case TimerOutcome::transient:
        return End::transient;
    case TimerOutcome::contended:
        return End::nothing_claimed;
    case TimerOutcome::ok:
    case TimerOutcome::permanent:
    case TimerOutcome::config:
        break;
    }
    return End::refused;
}

/// SW-3, and SW-7 for a store that refuses.
Nanoseconds Sweeper::sleep_after(End end) {
    idle_cycles_ = end == End::nothing_due ? idle_cycles_ + 1 : 0;
    refusals_ = end == End::refused ? std::min(refusals_ + 1, 30) : 0;
    switch (end) {
    case End::worked:
        return options_.min_sleep; // there may be more
    case End::nothing_claimed: {
        ++counts_.empty_claims;
        std::uniform_int_distribution<Nanoseconds::rep> between(options_.empty_claim_min.count(),
                                                                options_.empty_claim_max.count());
        return Nanoseconds(between(random_));
    }
    case End::paused:
    case End::stopping:
        return options_.max_sleep;
    case End::transient:
        return options_.transient_backoff;
    case End::refused:
        return backoff_after(refusals_ - 1);
    case End::nothing_due:
        break;
    }
    if (cycle_.next_in <= options_.max_sleep) {
        idle_cycles_ = 0;
        return std::max(cycle_.next_in, options_.min_sleep);
    }
    Nanoseconds most = options_.max_sleep;
    for (std::uint32_t i = options_.idle_after; i <= idle_cycles_ && most < options_.idle_max_sleep;
         ++i) {
        most = std::min(most * 2, options_.idle_max_sleep);
    }
    return std::min(cycle_.next_in, most);
}

Nanoseconds Sweeper::backoff_after(std::int32_t attempts) const {
    Nanoseconds backoff = options_.backoff_min;
    for (std::int32_t i = 0; i < attempts && backoff < options_.backoff_max; ++i) {
        backoff *= 2;
    }
    return std::min(backoff, options_.backoff_max);
}

} // namespace queen::timers
