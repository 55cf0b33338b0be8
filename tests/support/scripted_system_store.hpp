#pragma once
#include "ports/system_store.hpp"
#include "support/hook.hpp"

#include <string>
#include <utility>

namespace queen::test {

/// A system store whose answers the test writes; a call without a hook fails with `unsupported`.
class ScriptedSystemStore final : public SystemStore {
public:
    Hook<Done<SwitchStates>> on_read_switches;
    Hook<SwitchKey, bool, Done<void>> on_set_switch;
    Hook<Done<StatisticsState>> on_statistics_state;
    Hook<std::optional<Uuid>, std::int32_t, Done<StatisticsStep>> on_refresh_statistics;
    Hook<std::chrono::milliseconds, Done<void>> on_statistics_refreshed;
    Hook<Done<void>> on_refresh_timer_statistics;
    Hook<std::string, Done<std::string>> on_cached_queues;
    Hook<std::string, Done<std::string>> on_cached_overview;
    Hook<CountDelta, Done<void>> on_add_counts;
    Hook<std::int32_t, Done<ClusterFigures>> on_cluster_figures;

    void read_switches(Deadline, Done<SwitchStates> done) override {
        call_hook(on_read_switches, std::move(done));
    }
    void set_switch(Deadline, SwitchKey key, bool enabled, Done<void> done) override {
        call_hook(on_set_switch, key, enabled, std::move(done));
    }
    void statistics_state(Deadline, Done<StatisticsState> done) override {
        call_hook(on_statistics_state, std::move(done));
    }
    void refresh_statistics(Deadline, std::optional<Uuid> after, std::int32_t queues,
                            Done<StatisticsStep> done) override {
        call_hook(on_refresh_statistics, after, queues, std::move(done));
    }
    void statistics_refreshed(Deadline, std::chrono::milliseconds took, Done<void> done) override {
        call_hook(on_statistics_refreshed, took, std::move(done));
    }
    void refresh_timer_statistics(Deadline, Done<void> done) override {
        call_hook(on_refresh_timer_statistics, std::move(done));
    }
    void cached_queues(Deadline, std::string tenant, Done<std::string> done) override {
        call_hook(on_cached_queues, std::move(tenant), std::move(done));
    }
    void cached_overview(Deadline, std::string tenant, Done<std::string> done) override {
        call_hook(on_cached_overview, std::move(tenant), std::move(done));
    }
    void add_counts(Deadline, CountDelta delta, Done<void> done) override {
        call_hook(on_add_counts, std::move(delta), std::move(done));
    }
    void cluster_figures(Deadline, std::int32_t most, Done<ClusterFigures> done) override {
        call_hook(on_cluster_figures, most, std::move(done));
    }
};

} // namespace queen::test
