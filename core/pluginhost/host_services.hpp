// pluginhost/host_services.hpp - what the core gives to the plugin host, and through it to plugins.
#pragma once
#include "base/clock.hpp"

#include <queen/plugin/abi.h>
#include <queen/plugin/candidates.hpp>
#include <queen/plugin/mesh.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace queen::pluginhost {

/// Every function may be called from any thread and returns at once. They must stay callable until
/// the last selection has settled: a selection keeps its plugin instance alive. An empty function
/// is skipped.
struct HostServices {
    const Clock* clock = nullptr; ///< required
    /// What the calling thread has had of a processor. Empty: calls into plugins are judged by the
    /// clock alone.
    Nanoseconds (*thread_time)() noexcept = nullptr;
    /// One line for the log; `plugin` is its name in YAML.
    std::function<void(std::string_view plugin, queen_log_level, std::string_view text)> log;
    /// Wakes parked pops of the queue; an empty group means every group.
    std::function<void(const plugin::Queue&, std::string_view group, std::uint64_t ready)> wake;
    /// Walks the scope's partitions for the source of that name: reseed_page() per page, then
    /// reseed_done() exactly once, on a worker and never inside this call.
    std::function<void(std::string_view source, const plugin::Scope&, plugin::Ticket,
                       Nanoseconds window)>
        reseed;
    /// PluginHost::run_ticks() wants to be called at `when`, earlier than it said last.
    std::function<void(SteadyTime when)> tick_at;
    /// The mesh of that name heard hints of a peer; they are valid during the call. From its
    /// start() to the end of its stop().
    std::function<void(std::string_view plugin, std::span<const plugin::Hint>)> heard = {};
    /// The mesh of that name may have lost hints of peers. From its start() to the end of its
    /// stop().
    std::function<void(std::string_view plugin)> missed = {};
    /// For libpq: lets plugins open connections of their own to the database. Empty: none may.
    std::string conninfo = {};
};

} // namespace queen::pluginhost
