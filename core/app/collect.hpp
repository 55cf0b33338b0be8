// app/collect.hpp - from the counters of each component to the page. One function a component, so
// that a new one costs its families (metrics/families.hpp), a function here and a row in
// docs/metrics.md.
#pragma once
#include "broker/ack_registry.hpp"
#include "broker/counted_source.hpp"
#include "broker/dedup_cache.hpp"
#include "broker/maintenance/retention.hpp"
#include "broker/maintenance/scheduler.hpp"
#include "broker/meshes.hpp"
#include "broker/parking.hpp"
#include "broker/peer_hints.hpp"
#include "broker/reseed.hpp"
#include "broker/switches.hpp"
#include "broker/timer_firing.hpp"
#include "http/front.hpp"
#include "metrics/activity.hpp"
#include "metrics/page.hpp"
#include "metrics/process.hpp"
#include "metrics/rates.hpp"
#include "pluginhost/plugin_host.hpp"
#include "ports/system_store.hpp"
#include "store/executor.hpp"
#include "store/statement_counters.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace queen::app {

void collect_process(metrics::Page& page, Nanoseconds uptime,
                     const metrics::ProcessFigures& process);
void collect_activity(metrics::Page& page, metrics::Activity& activity);
/// @param rates and the parked pops of the end of the last minute
void collect_rates(metrics::Page& page, const metrics::RateWatch& watch);
/// Cluster-wide counters and figures, as the database has them.
void collect_cluster(metrics::Page& page, const ClusterFigures& figures);
/// What of this broker's counters is added to those of all brokers: names as the database has them.
std::vector<std::pair<std::string, std::uint64_t>>
cluster_counts(const metrics::Activity& activity, const store::StatementCounters& statements);
void collect_switches(metrics::Page& page, const broker::Switches& switches);
void collect_parking(metrics::Page& page, const broker::Parking& parking);
void collect_ack_registry(metrics::Page& page, const broker::AckRegistry::Stats& registry);
void collect_dedup(metrics::Page& page, const broker::DedupCache::Stats& dedup);
/// Asks the source for its own figures: a call into a plugin, measured as all are.
void collect_source(metrics::Page& page, std::string_view name, broker::CountedSource& source);
/// What was told to other brokers and heard of them. Asks each mesh for its own figures, as above.
void collect_meshes(metrics::Page& page, const broker::Meshes& meshes,
                    const broker::PeerHints::Stats& stats, std::size_t waiting);
void collect_reseeds(metrics::Page& page, const broker::Reseeder::Stats& reseeds);
void collect_plugins(metrics::Page& page, const std::vector<pluginhost::PluginStatus>& plugins);
void collect_tasks(metrics::Page& page, const std::vector<broker::Scheduler::TaskStats>& tasks);
void collect_retention(metrics::Page& page, const broker::Retention::Stats& retention);
/// Asks the driver for its own figures, as above.
void collect_timers(metrics::Page& page, const broker::TimerFiring::Stats& stats,
                    plugin::TimerDriver& driver);
void collect_executor(metrics::Page& page, const store::Executor::Statistics& executor);
void collect_statements(metrics::Page& page, const store::StatementCounters& statements);
void collect_front(metrics::Page& page, const http::FrontStatistics& front);

} // namespace queen::app
