#include "report.hpp"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace queen::hotlist {
namespace {

double milliseconds(Nanoseconds time) {
    return std::chrono::duration<double, std::milli>(time).count();
}

class Line {
public:
    explicit Line(std::string_view begin) : text_(begin) {}
    Line& field(std::string_view name, std::uint64_t value) {
        return field(name, std::string_view(std::to_string(value)));
    }
    Line& field(std::string_view name, std::string_view value) {
        text_ += ' ';
        text_ += name;
        text_ += '=';
        text_ += value;
        return *this;
    }
    const std::string& text() const noexcept { return text_; }

private:
    std::string text_;
};

} // namespace

void Report::count(plugin::VerdictKind kind) {
    switch (kind) {
    case plugin::VerdictKind::took_leased:
    case plugin::VerdictKind::took_acked:
        counters_.took.add();
        return;
    case plugin::VerdictKind::empty:
        counters_.empty.add();
        return;
    case plugin::VerdictKind::leased:
        counters_.leased.add();
        return;
    case plugin::VerdictKind::requeue:
        counters_.requeued.add();
        return;
    }
}

void Report::breadcrumb(std::string_view what, const QueueFacts& queue, std::string_view group,
                        std::size_t count, std::string_view partition) {
    if (!log_) {
        return;
    }
    Line line("trace");
    line.field("what", what).field("tenant", queue.tenant).field("queue", queue.name);
    line.field("group", group).field("count", count);
    if (!partition.empty()) {
        line.field("partition", partition);
    }
    log_(plugin::LogLevel::info, line.text());
}

void Report::walk_failed(const Ring& ring, std::uint32_t failures) {
    const bool power_of_two = (failures & (failures - 1)) == 0;
    if (!log_ || (failures != kFirstWarning && (failures < kFirstWarning || !power_of_two))) {
        return;
    }
    Line line("reseed failed");
    line.field("tenant", ring.queue()->tenant).field("queue", ring.queue()->name);
    line.field("group", ring.group()).field("times_in_a_row", failures);
    log_(plugin::LogLevel::warning, line.text());
}

std::uint64_t Report::walks() const {
    return counters_.reseeds_full.value() + counters_.reseeds_window.value();
}

std::uint64_t Report::activity() const {
    return walks() + counters_.reseeds_failed.value() + counters_.reseeds_dropped.value() +
           counters_.marks_local.value() + counters_.marks_remote.value() +
           counters_.names_offered.value() + counters_.trims.value() + counters_.sweeps.value();
}

bool Report::summary_due(SteadyTime now) {
    if (!log_) {
        return false;
    }
    if (last_summary_ == SteadyTime{}) {
        last_summary_ = now; // the first interval begins with the first tick
    }
    return now >= last_summary_ + kSummaryEvery && activity() != last_activity_;
}

void Report::summary(SteadyTime now, const QueueMap& queues) {
    struct Busy {
        RingPtr ring;
        Ring::Depth depth;
    };
    std::vector<Busy> busy;
    std::uint64_t rings = 0, ready = 0, wheel = 0;
    for (const QueueMap::Found& found : queues.all()) {
        for (const RingPtr& ring : *found.rings) {
            const Ring::Depth depth = ring->depth(now);
            ++rings;
            ready += depth.ready;
            wheel += depth.wheel;
            if (depth.ready + depth.wheel > 0) {
                busy.push_back({ring, depth});
            }
        }
    }
    const double seconds = std::chrono::duration<double>(now - last_summary_).count();
    const std::uint64_t walked = walks() - last_walks_;
    const std::uint64_t rows = counters_.reseed_rows.value() - last_rows_;
    char rate[32];
    std::snprintf(rate, sizeof(rate), "%.2f", static_cast<double>(walked) / seconds);
    Line line("reseed floor");
    line.field("walks", walked).field("walks_per_second", rate).field("found", rows);
    line.field("rings", rings).field("ready", ready).field("wheel", wheel);
    line.field("marks_local", counters_.marks_local.value());
    line.field("marks_remote", counters_.marks_remote.value());
    log_(plugin::LogLevel::info, line.text());

    const auto named = std::min(busy.size(), kRingsNamed);
    std::partial_sort(busy.begin(), busy.begin() + static_cast<std::ptrdiff_t>(named), busy.end(),
                      [](const Busy& a, const Busy& b) {
                          return a.depth.ready + a.depth.wheel > b.depth.ready + b.depth.wheel;
                      });
    for (std::size_t i = 0; i < named; ++i) {
        const Busy& one = busy[i];
        Line ring("ring");
        ring.field("tenant", one.ring->queue()->tenant).field("queue", one.ring->queue()->name);
        ring.field("group", one.ring->group()).field("ready", one.depth.ready);
        ring.field("wheel", one.depth.wheel).field("in_flight", one.depth.in_flight);
        log_(plugin::LogLevel::info, ring.text());
    }
    last_summary_ = now;
    last_activity_ = activity();
    last_walks_ = walks();
    last_rows_ = counters_.reseed_rows.value();
}

void Report::stats(plugin::Stats& out, const QueueMap& queues, const ReadyAges& ages,
                   SteadyTime now) {
    const auto add = [&](std::string_view name, std::uint64_t value) {
        out.add(name, static_cast<double>(value));
    };
    add("queues", totals_.value(Totals::queues));
    add("rings", totals_.value(Totals::rings));
    add("partitions", totals_.value(Totals::partitions));
    add("ready", totals_.value(Totals::ready));
    add("wheel", totals_.value(Totals::wheel));
    add("in_flight", totals_.value(Totals::in_flight));
    std::int64_t first = SubRing::kNever;
    look_from_.store(
        queues.look_at_some(look_from_.load(std::memory_order_relaxed), kRingsLookedAt,
                            [&](const Ring& ring) { first = std::min(first, ring.oldest()); }),
        std::memory_order_relaxed);
    const ReadyAges::Percentiles age = ages.percentiles();
    out.add("ready_age_p50_milliseconds", milliseconds(age.p50));
    out.add("ready_age_p95_milliseconds", milliseconds(age.p95));
    const SteadyTime oldest(Nanoseconds(std::min(first, now.time_since_epoch().count())));
    out.add("oldest_ready_milliseconds", milliseconds(now - oldest));
    add("marks_local_total", counters_.marks_local.value());
    add("marks_remote_total", counters_.marks_remote.value());
    add("marks_refused_total", counters_.marks_refused.value());
    add("names_offered_total", counters_.names_offered.value());
    add("claims_took_total", counters_.took.value());
    add("claims_empty_total", counters_.empty.value());
    add("claims_leased_total", counters_.leased.value());
    add("claims_requeue_total", counters_.requeued.value());
    add("scans_total", counters_.scans.value());
    add("reseeds_full_total", counters_.reseeds_full.value());
    add("reseeds_window_total", counters_.reseeds_window.value());
    add("reseeds_failed_total", counters_.reseeds_failed.value());
    add("reseeds_dropped_total", counters_.reseeds_dropped.value());
    add("reseed_rows_total", counters_.reseed_rows.value());
    add("renewals_total", counters_.renewals.value());
    add("trims_total", counters_.trims.value());
    add("sweeps_total", counters_.sweeps.value());
}

} // namespace queen::hotlist
