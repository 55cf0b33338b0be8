#pragma once
#include "base/workers.hpp"
#include "broker/parking.hpp"
#include "pluginhost/plugin_host.hpp"

#include <memory>
#include <mutex>

namespace queen::app {

/// What the host gives its plugins, over the real parking, workers and ticker; and the driver of
/// their ticks. The plugin host is attached once it exists: it needs the services first.
///
/// Locks: `mutex_` is a leaf.
class PluginServices {
public:
    PluginServices(broker::Parking& parking, Workers& workers, Ticker& ticker, const Clock& clock);
    pluginhost::HostServices services();
    void attach(pluginhost::PluginHost& host); ///< starts the ticks
    void detach();                             ///< the host is about to go

private:
    void wake(const plugin::Queue& queue, std::string_view group, std::uint64_t ready);
    void reseed(std::string_view source, const plugin::Scope& scope, plugin::Ticket ticket);
    void tick_at(SteadyTime when);
    void tick();

    broker::Parking& parking_;
    Workers& workers_;
    Ticker& ticker_;
    const Clock& clock_;
    std::mutex mutex_;
    pluginhost::PluginHost* host_ = nullptr;
    Ticker::Id timer_ = 0; ///< 0: none
    SteadyTime due_ = SteadyTime::max();
};

} // namespace queen::app
