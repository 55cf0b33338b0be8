#pragma once
#include "ports/system_store.hpp"
#include "store/asker.hpp"

namespace queen::store {

/// SystemStore on PostgreSQL. The executor outlives it and all calls under way.
class PgSystemStore final : public SystemStore {
public:
    explicit PgSystemStore(const Asker& asker) : asker_(asker) {}

    void read_switches(Deadline, Done<SwitchStates>) override;
    void set_switch(Deadline, SwitchKey, bool enabled, Done<void>) override;
    void statistics_state(Deadline, Done<StatisticsState>) override;
    void refresh_statistics(Deadline, std::optional<Uuid> after, std::int32_t queues,
                            Done<StatisticsStep>) override;
    void statistics_refreshed(Deadline, std::chrono::milliseconds took, Done<void>) override;
    void refresh_timer_statistics(Deadline, Done<void>) override;
    void cached_queues(Deadline, std::string tenant, Done<std::string>) override;
    void cached_overview(Deadline, std::string tenant, Done<std::string>) override;
    void add_counts(Deadline, CountDelta, Done<void>) override;
    void cluster_figures(Deadline, std::int32_t most, Done<ClusterFigures>) override;

private:
    void ask_text(const Statement& statement, Deadline deadline, std::string tenant,
                  Done<std::string> done);

    const Asker asker_;
};

} // namespace queen::store
