#pragma once
#include "base/workers.hpp"
#include "broker/parking.hpp"
#include "pluginhost/plugin_host.hpp"
#include "pluginhost/tick_driver.hpp"

#include <memory>
#include <mutex>

namespace queen::app {

/// What the host gives its plugins, over the real parking, workers and ticker. The plugin host is
/// attached once it exists: it needs the services first.
///
/// Locks: `mutex_` is a leaf.
class PluginServices {
public:
    PluginServices(broker::Parking& parking, Workers& workers, Ticker& ticker, const Clock& clock);
    pluginhost::HostServices services();
    void attach(pluginhost::PluginHost& host); ///< starts the ticks
    void detach();                             ///< the host is about to go

private:
    void reseed(std::string_view source, const plugin::Scope& scope, plugin::Ticket ticket);

    broker::Parking& parking_;
    Workers& workers_;
    const Clock& clock_;
    const std::shared_ptr<pluginhost::TickDriver> ticks_;
    std::mutex mutex_;
    pluginhost::PluginHost* host_ = nullptr;
};

} // namespace queen::app
