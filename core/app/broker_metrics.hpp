#pragma once
#include "app/collect.hpp"
#include "base/json.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace queen::app {

/// The figures of a running broker: reads the components' counters when somebody asks. Nothing here
/// asks the database (what it told is given to the page), and no component is locked for longer
/// than it takes to copy its numbers.
///
/// Locks: none of its own.
/// @source MET-2
class BrokerMetrics {
public:
    struct NamedSource {
        std::string name; ///< as in YAML
        std::shared_ptr<broker::CountedSource> source;
    };
    /// What is read; all of it outlives this.
    struct Parts {
        std::shared_ptr<metrics::Activity> activity;
        const broker::Parking& parking;
        const broker::Switches& switches;
        const broker::AckRegistry* ack_registry; ///< null when switched off
        const broker::DedupCache* dedup;         ///< null when switched off
        std::vector<NamedSource> sources;
        const broker::Meshes& meshes;
        const broker::PeerHints& peer_hints;
        std::function<broker::Reseeder::Stats()> reseeds;
        std::function<std::vector<pluginhost::PluginStatus>()> plugins;
        std::function<std::vector<broker::Scheduler::TaskStats>()> tasks;
        std::function<broker::Retention::Stats()> retention;
        std::function<void(metrics::Page&)> timers; ///< adds nothing when nobody fires them
        std::function<store::Executor::Statistics()> executor;
        const store::StatementCounters& statements;
        std::function<http::FrontStatistics()> front;
    };
    /// @param log takes the lines of the rate watch
    BrokerMetrics(Parts parts, Ticker& ticker, Workers& workers, const Clock& clock,
                  metrics::RateWatch::Log log);

    void start(); ///< the rate watch
    void stop();  ///< it does not run any more

    /// The exposition of GET /metrics/prometheus. @thread worker
    /// @param cluster null: the database did not tell in time
    std::string prometheus(const ClusterFigures* cluster) const;
    /// The value of GET /metrics. @thread worker
    void write_json(json::Writer& writer) const;

private:
    metrics::Sample sample() const;

    const Parts parts_;
    const Clock& clock_;
    const SteadyTime start_;
    const std::shared_ptr<metrics::RateWatch> watch_;
};

} // namespace queen::app
