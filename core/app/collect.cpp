#include "app/collect.hpp"

#include <array>
#include <limits>
#include <map>
#include <string>

namespace queen::app {
namespace {

using metrics::Page;
namespace m = metrics;

double number(std::uint64_t count) {
    return static_cast<double>(count);
}

template <class Duration>
double seconds(Duration time) {
    return std::chrono::duration<double>(time).count();
}

template <class Duration>
double milliseconds(Duration time) {
    return std::chrono::duration<double, std::milli>(time).count();
}

/// As the contract of the page names the executor's lanes, by Lane.
constexpr std::array<std::string_view, store::kLanes> kLanes{"ack", "push", "pop", "maint"};

} // namespace

void collect_process(Page& page, Nanoseconds uptime, const m::ProcessFigures& process) {
    page.add(m::kUptime, seconds(uptime));
    page.add(m::kResidentMemory, number(process.resident_bytes));
    page.add(m::kCpu, {"user"}, seconds(process.cpu_user));
    page.add(m::kCpu, {"system"}, seconds(process.cpu_system));
}

void collect_activity(Page& page, m::Activity& activity) {
    const auto& push = activity.push;
    page.add(m::kPushRequests, number(push.requests.value()));
    page.add(m::kPushMessages, number(push.messages.value()));
    page.add(m::kPushDuplicates, number(push.duplicates.value()));
    page.add(m::kPushFailed, number(push.failed.value()));
    const auto& pop = activity.pop;
    page.add(m::kPopRequests, number(pop.requests.value()));
    page.add(m::kPopMessages, number(pop.messages.value()));
    page.add(m::kPopEmpty, number(pop.empty.value()));
    page.add(m::kPopFailed, number(pop.failed.value()));
    page.add(m::kPopLag, {}, pop.lag.snapshot());
    page.add(m::kFirstContacts, number(pop.first_contacts.value()));
    page.add(m::kProbes, {"yes"}, number(pop.probes_pending.value()));
    page.add(m::kProbes, {"no"}, number(pop.probes_none.value()));
    page.add(m::kProbes, {"unknown"}, number(pop.probes_failed.value()));
    page.add(m::kFillWaits, number(pop.fill_waits.value()));
    page.add(m::kFillWaitMicros, number(pop.fill_wait_micros.value()));
    page.add(m::kGivenBack, number(pop.given_back.value()));
    const auto& ack = activity.ack;
    page.add(m::kAckRequests, number(ack.requests.value()));
    page.add(m::kAckMessages, number(ack.messages.value()));
    page.add(m::kAckRefused, number(ack.refused.value()));
    page.add(m::kAckDeadLetters, number(ack.dead_letters.value()));
    const auto& transaction = activity.transaction;
    page.add(m::kTransactions, {"committed"}, number(transaction.committed.value()));
    page.add(m::kTransactions, {"duplicate"}, number(transaction.duplicate.value()));
    page.add(m::kTransactions, {"rejected"}, number(transaction.rejected.value()));
    page.add(m::kTransactions, {"failed"}, number(transaction.failed.value()));

    for (std::size_t i = 0; i < m::kTimerRefusals; ++i) {
        page.add(m::kTimersRefused, {to_string(static_cast<m::TimerRefused>(i))},
                 number(activity.timers.refused[i].value()));
    }

    const auto minute = activity.queues.last_minute();
    page.add(m::kQueuesTracked, number(activity.queues.size()));
    if (minute.age) {
        page.add(m::kQueueMetricsAge, seconds(*minute.age));
    }
    for (const auto& [queue, figures] : minute.lines) {
        page.add(m::kQueuePushRequests, {queue}, number(figures.push_requests));
        page.add(m::kQueuePushMessages, {queue}, number(figures.push_messages));
        page.add(m::kQueuePopMessages, {queue}, number(figures.pop_messages));
        page.add(m::kQueuePopEmpty, {queue}, number(figures.pop_empty));
        for (std::size_t i = 0; i < m::kAckResults; ++i) {
            page.add(m::kQueueAcks, {queue, to_string(static_cast<m::AckResult>(i))},
                     number(figures.acks[i]));
        }
        if (figures.pop_messages > 0) { // else there is no lag to speak of
            page.add(m::kQueuePopLag, {queue, "avg"},
                     milliseconds(figures.lag_sum) / number(figures.pop_messages));
            page.add(m::kQueuePopLag, {queue, "max"}, milliseconds(figures.lag_max));
        }
    }
}

void collect_rates(Page& page, const m::RateWatch& watch) {
    page.add(m::kLoopLagAverage, milliseconds(watch.rates().loop_lag));
    for (const auto& [queue, parked] : watch.parked_at_minute()) {
        page.add(m::kQueueParked, {queue}, number(parked));
    }
}

namespace {

constexpr std::string_view kCluster = "cluster"; ///< the one value of the label scope

/// A counter that all brokers add up: its name in the database, its family, what to read.
struct ClusterCounter {
    std::string_view name;
    const m::Family* family;
    std::uint64_t (*read)(const m::Activity&);
};
constexpr std::array kClusterCounters{
    ClusterCounter{"push_requests", &m::kClusterPushRequests,
                   [](const m::Activity& a) { return a.push.requests.value(); }},
    ClusterCounter{"push_messages", &m::kClusterPushMessages,
                   [](const m::Activity& a) { return a.push.messages.value(); }},
    ClusterCounter{"pop_requests", &m::kClusterPopRequests,
                   [](const m::Activity& a) { return a.pop.requests.value(); }},
    ClusterCounter{"pop_messages", &m::kClusterPopMessages,
                   [](const m::Activity& a) { return a.pop.messages.value(); }},
    ClusterCounter{"ack_requests", &m::kClusterAckRequests,
                   [](const m::Activity& a) { return a.ack.requests.value(); }},
    ClusterCounter{"ack_messages", &m::kClusterAckMessages,
                   [](const m::Activity& a) { return a.ack.messages.value(); }},
    ClusterCounter{"transactions", &m::kClusterTransactions,
                   [](const m::Activity& a) { return a.transaction.committed.value(); }},
    ClusterCounter{"dlq", &m::kClusterDeadLetters,
                   [](const m::Activity& a) { return a.ack.dead_letters.value(); }},
};
constexpr std::string_view kDbErrorsName = "db_errors";
constexpr std::string_view kAckName = "ack_"; ///< and the result

} // namespace

std::vector<std::pair<std::string, std::uint64_t>>
cluster_counts(const m::Activity& activity, const store::StatementCounters& statements) {
    std::vector<std::pair<std::string, std::uint64_t>> counts;
    for (const auto& counter : kClusterCounters) {
        counts.emplace_back(counter.name, counter.read(activity));
    }
    for (std::size_t i = 0; i < m::kAckResults; ++i) {
        counts.emplace_back(std::string(kAckName).append(to_string(static_cast<m::AckResult>(i))),
                            activity.ack.by_result[i].value());
    }
    std::uint64_t errors = 0;
    for (const auto& [sqlstate_class, count] : statements.errors()) {
        errors += count;
    }
    counts.emplace_back(kDbErrorsName, errors);
    return counts;
}

void collect_cluster(Page& page, const ClusterFigures& figures) {
    const std::map<std::string_view, std::int64_t> counts(figures.counts.begin(),
                                                          figures.counts.end());
    const auto count = [&](std::string_view name) {
        const auto found = counts.find(name);
        return static_cast<double>(found == counts.end() ? 0 : found->second);
    };
    for (const auto& counter : kClusterCounters) {
        page.add(*counter.family, {kCluster}, count(counter.name));
    }
    for (std::size_t i = 0; i < m::kAckResults; ++i) {
        const auto result = to_string(static_cast<m::AckResult>(i));
        page.add(m::kClusterAcks, {kCluster, result}, count(std::string(kAckName).append(result)));
    }
    page.add(m::kClusterDbErrors, {kCluster}, count(kDbErrorsName));
    if (!figures.age) {
        return; // nobody has made statistics yet: zeros would say that there is nothing
    }
    page.add(m::kStatisticsAge, seconds(*figures.age));
    page.add(m::kDeadLetters, {kCluster}, static_cast<double>(figures.dead_letters));
    for (const auto& line : figures.queues) {
        page.add(m::kDeadLettersByQueue, {line.queue}, static_cast<double>(line.dead_letters));
    }
    for (const auto& line : figures.groups) {
        page.add(m::kGroupLag, {line.queue, line.group}, static_cast<double>(line.behind));
        page.add(m::kGroupAge, {line.queue, line.group}, seconds(line.age));
    }
}

void collect_switches(Page& page, const broker::Switches& switches) {
    page.add(m::kPopMaintenance, switches.pops_paused() ? 1 : 0);
}

void collect_parking(Page& page, const broker::Parking& parking) {
    page.add(m::kParked, number(parking.parked()));
    for (const auto& [queue, parked] : m::bounded(parking.parked_by_queue())) {
        page.add(m::kParkedByQueue, {queue}, number(parked));
    }
    const auto statistics = parking.statistics();
    page.add(m::kWakes, {"event"}, number(statistics.woken));
    page.add(m::kWakes, {"passed_on"}, number(statistics.passed_on));
    page.add(m::kWakes, {"floor"}, number(statistics.floor_looks));
    page.add(m::kParkRefused, number(statistics.park_refused));
}

void collect_ack_registry(Page& page, const broker::AckRegistry::Stats& registry) {
    page.add(m::kAckRegistryEntries, number(registry.entries));
    page.add(m::kAckRegistryBytes, number(registry.bytes));
    page.add(m::kAckRegistryHits, number(registry.hits));
    page.add(m::kAckRegistryMisses, number(registry.misses));
    page.add(m::kAckRegistryRefused, number(registry.refused));
    page.add(m::kAckRegistryEvictions, number(registry.evictions));
}

void collect_dedup(Page& page, const broker::DedupCache::Stats& dedup) {
    page.add(m::kDedupBytes, number(dedup.bytes));
    page.add(m::kDedupPartitions, number(dedup.partitions));
    page.add(m::kDedupHashes, number(dedup.hashes));
    page.add(m::kDedupVouched, number(dedup.vouched));
    page.add(m::kDedupSuspects, number(dedup.suspects));
    page.add(m::kDedupDisbelieved, number(dedup.disbelieved));
    page.add(m::kDedupHydrations, number(dedup.hydrations));
    page.add(m::kDedupTopups, number(dedup.topups));
    page.add(m::kDedupSuppressed, number(dedup.suppressed));
    page.add(m::kDedupEvictions, number(dedup.evictions));
    page.add(m::kDedupSurprises, number(dedup.surprises));
}

void collect_source(Page& page, std::string_view name, broker::CountedSource& source) {
    const auto& counters = source.counters();
    for (std::size_t i = 0; i < broker::kReadyStates; ++i) {
        page.add(m::kPeeks, {name, broker::to_string(static_cast<plugin::ReadyState>(i))},
                 number(counters.peeks[i].value()));
    }
    for (std::size_t i = 0; i < broker::kPicks; ++i) {
        page.add(m::kTakes, {name, broker::to_string(static_cast<plugin::Pick>(i))},
                 number(counters.takes[i].value()));
    }
    for (std::size_t i = 0; i < broker::kVerdicts; ++i) {
        page.add(m::kClaims,
                 {name, broker::to_string(static_cast<broker::SourceCounters::Claim>(i))},
                 number(counters.claims[i].value()));
    }
    page.add(m::kNames, {name}, number(counters.names.value()));
    page.add(m::kMarks, {name}, number(counters.marks.value()));
    m::PluginFigures figures(page, m::kSourceFigures, name);
    source.stats(figures);
    page.add(m::kFiguresDropped, {name}, number(figures.dropped()));
}

void collect_meshes(Page& page, const broker::Meshes& meshes, const broker::PeerHints::Stats& stats,
                    std::size_t waiting) {
    for (const auto kind : broker::kHintKinds) {
        page.add(m::kHintsPublished, {broker::to_string(kind)},
                 number(meshes.published().value(kind)));
        page.add(m::kHintsHeard, {broker::to_string(kind)}, number(stats.heard.value(kind)));
    }
    page.add(m::kHintsRefused, {"malformed"}, number(stats.malformed.value()));
    page.add(m::kHintsRefused, {"other_tenant"}, number(stats.foreign.value()));
    page.add(m::kHintsRefused, {"no_tenant"}, number(stats.nobody.value()));
    page.add(m::kHintsRefused, {"overflow"}, number(stats.overflowed.value()));
    page.add(m::kHintsFannedOut, number(stats.fanned_out.value()));
    page.add(m::kHintsMissed, number(stats.missed.value()));
    page.add(m::kHintsWaiting, number(waiting));
    page.add(m::kHintConfigReads, {"failed"}, number(stats.config_reads_failed.value()));
    page.add(m::kHintConfigReads, {"done"}, number(stats.config_reads_done.value()));
    for (const auto& entry : meshes.all()) {
        m::PluginFigures figures(page, m::kMeshFigures, entry.name);
        entry.link->stats(figures);
        page.add(m::kMeshFiguresDropped, {entry.name}, number(figures.dropped()));
    }
}

void collect_reseeds(Page& page, const broker::Reseeder::Stats& reseeds) {
    page.add(m::kWalks, {"full"}, number(reseeds.full));
    page.add(m::kWalks, {"window"}, number(reseeds.window));
    page.add(m::kWalks, {"incomplete"}, number(reseeds.failed));
    page.add(m::kWalksNow, {"walking"}, number(reseeds.walking));
    page.add(m::kWalksNow, {"waiting"}, number(reseeds.waiting));
    page.add(m::kWalkPages, number(reseeds.pages));
    page.add(m::kWalkPartitions, number(reseeds.rows));
    page.add(m::kForgotten, number(reseeds.forgotten));
}

void collect_plugins(Page& page, const std::vector<pluginhost::PluginStatus>& plugins) {
    for (const auto& plugin : plugins) {
        if (!plugin.loaded) {
            continue;
        }
        page.add(m::kPaused, {plugin.name}, plugin.paused ? 1 : 0);
        for (std::size_t i = 0; i < pluginhost::kFaultKinds; ++i) {
            page.add(m::kFaults,
                     {plugin.name, pluginhost::to_string(static_cast<pluginhost::Fault>(i))},
                     number(plugin.faults.by_kind[i]));
        }
    }
}

void collect_tasks(Page& page, const std::vector<broker::Scheduler::TaskStats>& tasks) {
    for (const auto& task : tasks) {
        page.add(m::kTurns, {task.name, "done"}, number(task.runs));
        page.add(m::kTurns, {task.name, "failed"}, number(task.failures));
        page.add(m::kTurnDuration, {task.name}, task.duration);
        page.add(m::kTurnLate, {task.name}, seconds(task.late));
        page.add(m::kTurnHeld, {task.name}, task.held ? 1 : 0);
    }
}

void collect_retention(Page& page, const broker::Retention::Stats& retention) {
    constexpr std::array<std::string_view, broker::Retention::kTypes> kTypes{
        "retention", "completed_retention", "max_wait_time_eviction"};
    for (std::size_t i = 0; i < kTypes.size(); ++i) {
        const auto& removed = retention.removed[i];
        page.add(m::kRemovedSegments, {kTypes[i]}, static_cast<double>(removed.segments));
        page.add(m::kRemovedMessages, {kTypes[i]}, static_cast<double>(removed.messages));
        page.add(m::kRemovedBytes, {kTypes[i]}, static_cast<double>(removed.bytes));
    }
    page.add(m::kRemovedHashRows, static_cast<double>(retention.hash_rows));
    page.add(m::kRemovedPartitions, static_cast<double>(retention.partitions));
    page.add(m::kRemovedRecords, static_cast<double>(retention.records));
    page.add(m::kRetentionSteps, {"done"}, number(retention.steps));
    page.add(m::kRetentionSteps, {"failed"}, number(retention.failed_steps));
    page.add(m::kRetentionStepDuration, {}, retention.step_duration);
    constexpr std::array<std::string_view, 3> kWork{"retention", "max_wait", "hashes"};
    for (std::size_t i = 0; i < kWork.size(); ++i) {
        page.add(m::kRetentionDue, {kWork[i]}, number(retention.due[i]));
    }
    page.add(m::kRetentionBackedOff, number(retention.backed_off));
    page.add(m::kRetentionRepaired, number(retention.repaired));
}

namespace {

/// Upper bound of the bucket in which that part of all observations ends.
double quantile(const LatencyHistogram::Snapshot& snapshot, double part) {
    const auto wanted = part * number(snapshot.count());
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < LatencyHistogram::kBoundsMicroseconds.size(); ++i) {
        seen += snapshot.buckets[i];
        if (number(seen) >= wanted) {
            return number(LatencyHistogram::kBoundsMicroseconds[i]) / 1e6;
        }
    }
    return std::numeric_limits<double>::infinity();
}

} // namespace

void collect_timers(Page& page, const broker::TimerFiring::Stats& stats,
                    plugin::TimerDriver& driver) {
    constexpr std::array<std::string_view, 3> kResults{"fired", "duplicate", "stale"};
    constexpr std::array<std::string_view, 3> kClasses{"transient", "permanent", "config"};
    page.add(m::kTimersDue, number(stats.due));
    page.add(m::kTimersDueCapped, stats.due_capped ? 1 : 0);
    page.add(m::kTimersOldestLate, std::chrono::duration<double>(stats.oldest_late).count());
    for (std::size_t i = 0; i < kResults.size(); ++i) {
        page.add(m::kTimersFired, {kResults[i]}, number(stats.results[i]));
    }
    for (std::size_t i = 0; i < kClasses.size(); ++i) {
        page.add(m::kTimersFireFailures, {kClasses[i]}, number(stats.failures[i]));
    }
    page.add(m::kTimersDeadLetters, number(stats.dead_letters));
    page.add(m::kTimersPoisoned, number(stats.poisoned));
    for (const auto& [tenant, lag] : stats.lag) {
        page.add(m::kTimersFireLag, {tenant, "0.5"}, quantile(lag, 0.5));
        page.add(m::kTimersFireLag, {tenant, "0.95"}, quantile(lag, 0.95));
        page.add(m::kTimersFireLag, {tenant, "0.99"}, quantile(lag, 0.99));
    }
    page.add(m::kTimersLagDropped, number(stats.tenants_dropped));
    m::PluginFigures figures(page, m::kSweeperFigures, "timers");
    driver.stats(figures);
    page.add(m::kSweeperFiguresDropped, number(figures.dropped()));
}

void collect_executor(Page& page, const store::Executor::Statistics& executor) {
    page.add(m::kPoolSize, number(executor.sessions));
    page.add(m::kPoolIdle, number(executor.sessions - executor.in_use));
    page.add(m::kPoolActive, number(executor.in_use));
    page.add(m::kOutage, executor.outage ? 1 : 0);
    page.add(m::kConnects, {"first"}, number(executor.connects));
    page.add(m::kConnects, {"again"}, number(executor.resets));
    page.add(m::kTimeouts, number(executor.timeouts));
    page.add(m::kTasks, number(executor.tasks_waiting));
    for (std::size_t i = 0; i < store::kLanes; ++i) {
        const auto& lane = executor.lanes[i];
        page.add(m::kInflight, {kLanes[i]}, number(lane.running));
        page.add(m::kWaiting, {kLanes[i]}, number(lane.waiting));
        page.add(m::kWait, {kLanes[i]}, lane.waited);
        page.add(m::kUnrun, {kLanes[i], "no_session"}, number(lane.expired));
        page.add(m::kUnrun, {kLanes[i], "no_database"}, number(lane.refused));
    }
}

void collect_statements(Page& page, const store::StatementCounters& statements) {
    namespace sql = store::statements;
    for (const auto& [name, duration] : statements.statements()) {
        page.add(m::kStatements, {name}, number(duration.count()));
        page.add(m::kStatementSeconds, {name}, seconds(duration.sum));
        page.add(m::kStatementDuration, {name}, duration);
    }
    for (const auto& [sqlstate_class, count] : statements.errors()) {
        page.add(m::kStoreErrors, {sqlstate_class}, number(count));
    }
    page.add(m::kPopTargeted,
             number(statements.sent(sql::kPopList) + statements.sent(sql::kPopSpecific)));
    page.add(m::kPopWildcard,
             number(statements.sent(sql::kPopWildcard) + statements.sent(sql::kPopDiscover)));
}

void collect_front(Page& page, const http::FrontStatistics& front) {
    page.add(m::kConnections, {"reading"}, number(front.reading));
    page.add(m::kConnections, {"in_flight"}, number(front.in_flight));
    page.add(m::kConnections, {"answering"}, number(front.answering));
    page.add(m::kConnections, {"lingering"}, number(front.lingering));
    page.add(m::kConnectionEvents, {"accepted"}, number(front.accepted));
    page.add(m::kConnectionEvents, {"refused"}, number(front.refused));
    page.add(m::kConnectionEvents, {"timed_out"}, number(front.timed_out));
    page.add(m::kHttpRequests, number(front.requests));
    page.add(m::kHttpRefused, number(front.bad_requests));
    for (const auto& [status, count] : front.responses) {
        page.add(m::kHttpResponses, {std::to_string(status)}, number(count));
    }
    page.add(m::kBodies, number(front.body_bytes));
    page.add(m::kLoopLag, {}, front.lag);
}

} // namespace queen::app
