// ports/system_store.hpp - what the broker keeps in PostgreSQL about itself: the switches of all
// brokers, the statistics of all queues, and what all brokers have counted since the beginning.
// Asynchronous as ports/store.hpp is, and in its administrative lane.
#pragma once
#include "ports/store.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace queen {

/// The switches of all brokers, as they are when they were never set.
struct SwitchStates {
    bool maintenance = false;     ///< pushes go to a disk spool
    bool pop_maintenance = false; ///< pops are answered with nothing
    bool timers_schedule = true;  ///< timers are taken
    bool timers_fire = true;      ///< timers that are due are put into the log
    friend bool operator==(const SwitchStates&, const SwitchStates&) = default;
};
enum class SwitchKey { maintenance, pop_maintenance, timers_schedule, timers_fire };

/// One step of a refresh of the statistics.
struct StatisticsStep {
    std::int64_t queues = 0;     ///< looked at
    std::int64_t partitions = 0; ///< of them
    std::int64_t written = 0;    ///< rows that differed from what was stored
    std::optional<Uuid> next;    ///< where the next step goes on; nothing: that was the last
};

/// When statistics were made last.
struct StatisticsState {
    std::optional<std::chrono::milliseconds> age; ///< since the last refresh ended; nothing: never
    std::chrono::milliseconds took{0};            ///< that refresh
};

/// What one broker counted since it told last. Told again with the same number it counts once.
struct CountDelta {
    Uuid source;             ///< of the broker's process
    std::int64_t number = 0; ///< grows with each delta of the source
    std::vector<std::pair<std::string, std::int64_t>> counts; ///< by name, each once
};

/// What the page of metrics shows of all brokers and all queues.
struct ClusterFigures {
    struct Queue {
        std::string queue;
        std::int64_t dead_letters = 0;
    };
    struct Group {
        std::string queue, group;
        std::int64_t behind = 0;              ///< messages
        std::chrono::duration<double> age{0}; ///< of the oldest of them
    };
    std::vector<std::pair<std::string, std::int64_t>> counts; ///< since the beginning, by name
    std::int64_t dead_letters = 0;
    std::vector<Queue> queues;                        ///< those with dead letters, the most first
    std::vector<Group> groups;                        ///< those that are behind, the farthest first
    std::optional<std::chrono::duration<double>> age; ///< of all but the counts; nothing: unknown
};

/// @thread any. Every error is a value; no call throws.
class SystemStore {
public:
    virtual ~SystemStore() = default;
    using Deadline = SteadyTime;

    virtual void read_switches(Deadline, Done<SwitchStates>) = 0;
    virtual void set_switch(Deadline, SwitchKey, bool enabled, Done<void>) = 0;

    virtual void statistics_state(Deadline, Done<StatisticsState>) = 0;
    /// Refreshes the statistics of the next `queues` queues by id (ST-6).
    virtual void refresh_statistics(Deadline, std::optional<Uuid> after, std::int32_t queues,
                                    Done<StatisticsStep>) = 0;
    /// A refresh reached its end.
    virtual void statistics_refreshed(Deadline, std::chrono::milliseconds took, Done<void>) = 0;
    /// Counts the timers of all tenants, unless that was done a moment ago (ST-11).
    virtual void refresh_timer_statistics(Deadline, Done<void>) = 0;
    // As the live ones of Store, from the statistics.
    virtual void cached_queues(Deadline, std::string tenant, Done<std::string>) = 0;
    virtual void cached_overview(Deadline, std::string tenant, Done<std::string>) = 0;

    virtual void add_counts(Deadline, CountDelta, Done<void>) = 0;
    /// @param most queues, and groups, that are listed
    virtual void cluster_figures(Deadline, std::int32_t most, Done<ClusterFigures>) = 0;
};

} // namespace queen
