// What the sweeper tells: its figures and its log lines.
#include "sweeper.hpp"

#include <utility>

namespace queen::timers {

using plugin::LogLevel;
using plugin::TimerHost;
using plugin::TimerOutcome;

namespace {

/// Backoffs without a lock in the way after which the next is another matter. A guess.
constexpr int kSameLock = 10;

double seconds(Nanoseconds time) {
    return std::chrono::duration<double>(time).count();
}

} // namespace

void Sweeper::say(LogLevel level, std::string line) {
    actions_.push_back({[this, level, line = std::move(line)](TimerHost&) {
        log_(level, line);
        return true;
    }});
}

/// One line a cycle and class, and one for an outage or a lock however long it is.
void Sweeper::complain(TimerOutcome outcome, std::string_view what, std::string_view error) {
    const std::string line = std::string(what) + " failed: " + std::string(error);
    switch (outcome) {
    case TimerOutcome::ok:
    case TimerOutcome::paused:
        return;
    case TimerOutcome::transient:
        if (!std::exchange(outage_, true)) {
            say(LogLevel::warning, line + "; timers wait, and no attempt is counted");
        }
        return;
    case TimerOutcome::contended:
        if (const SteadyTime now = clock_.now();
            std::exchange(contended_at_, now) < now - kSameLock * options_.transient_backoff) {
            say(LogLevel::warning, line + "; that destination waits, and no attempt is counted");
        }
        return;
    case TimerOutcome::permanent:
        if (!std::exchange(cycle_.complained_permanent, true)) {
            say(LogLevel::warning, line);
        }
        return;
    case TimerOutcome::config:
        if (!std::exchange(cycle_.complained_config, true)) {
            say(LogLevel::error, line + "; the database's schema does not fit this broker");
        }
        return;
    }
}

void Sweeper::count_failure(TimerOutcome outcome) {
    switch (outcome) {
    case TimerOutcome::ok:
    case TimerOutcome::paused:
        return;
    case TimerOutcome::transient:
        ++counts_.transient;
        return;
    case TimerOutcome::contended:
        ++counts_.contended;
        return;
    case TimerOutcome::permanent:
        ++counts_.permanent;
        return;
    case TimerOutcome::config:
        ++counts_.config;
        return;
    }
}

void Sweeper::stats(plugin::Stats& out) {
    Counts counts;
    {
        const std::lock_guard lock(mutex_);
        counts = counts_;
    }
    const auto number = [](std::uint64_t value) { return static_cast<double>(value); };
    out.add("enabled", options_.enabled ? 1 : 0);
    out.add("due", number(counts.due));
    out.add("due_capped", counts.due_capped ? 1 : 0);
    out.add("oldest_late_seconds", seconds(counts.late));
    out.add("cycles_total", number(counts.cycles));
    out.add("cycle_milliseconds", seconds(counts.cycle_took) * 1e3);
    out.add("sleep_milliseconds", seconds(counts.sleep) * 1e3);
    out.add("pulled_forward_total", number(counts.pulled));
    out.add("rows_total", number(counts.rows));
    out.add("fired_total", number(counts.fired));
    out.add("duplicate_total", number(counts.duplicate));
    out.add("stale_total", number(counts.stale));
    out.add("failures_transient_total", number(counts.transient));
    out.add("failures_contended_total", number(counts.contended));
    out.add("failures_permanent_total", number(counts.permanent));
    out.add("failures_config_total", number(counts.config));
    out.add("isolations_total", number(counts.isolations));
    out.add("poisoned_total", number(counts.poisoned));
    out.add("handed_back_total", number(counts.handed_back));
    out.add("dlq_total", number(counts.dead_letters));
    out.add("empty_claims_total", number(counts.empty_claims));
    out.add("given_up_total", number(counts.given_up));
    out.add("unknown_answers_total", number(counts.unknown_answers));
}

} // namespace queen::timers
