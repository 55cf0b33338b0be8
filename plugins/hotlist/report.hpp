// plugins/hotlist/report.hpp - the hot-list's figures and log lines.
#pragma once
#include "figures.hpp"
#include "hotlist.hpp"
#include "queue_map.hpp"

#include <queen/plugin/candidates.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace queen::hotlist {

/// Locks: none; the log is called with none held.
class Report {
public:
    /// Between two summaries, which are written only when something happened.
    static constexpr Nanoseconds kSummaryEvery = std::chrono::seconds(30);
    /// Rings named in a summary, those with most entries first.
    static constexpr std::size_t kRingsNamed = 10;
    /// Failed walks of a ring in a row from which on a warning is written, at powers of two.
    static constexpr std::uint32_t kFirstWarning = 3;

    /// Rings of which one call of stats() looks for the oldest entry, about: with more, calls take
    /// turns. It has a budget of a millisecond and a ring costs some cache misses.
    static constexpr std::size_t kRingsLookedAt = 1024;

    Report(Counters& counters, const Totals& totals, const Log& log)
        : counters_(counters), totals_(totals), log_(log) {}

    /// @thread any
    void count(plugin::VerdictKind kind);
    /// @thread any. For queues that are traced.
    void breadcrumb(std::string_view what, const QueueFacts& queue, std::string_view group,
                    std::size_t count, std::string_view partition);
    /// @thread any
    void walk_failed(const Ring& ring, std::uint32_t failures);
    /// @thread ticker
    bool summary_due(SteadyTime now);
    void summary(SteadyTime now, const QueueMap& queues);
    /// @thread any
    void stats(plugin::Stats& out, const QueueMap& queues, const ReadyAges& ages, SteadyTime now);

private:
    std::uint64_t walks() const;
    std::uint64_t activity() const;

    Counters& counters_;
    const Totals& totals_;
    std::atomic<std::size_t> look_from_{0};
    const Log& log_;
    // Of the ticker alone.
    SteadyTime last_summary_{};
    std::uint64_t last_activity_ = 0, last_walks_ = 0, last_rows_ = 0;
};

} // namespace queen::hotlist
