#pragma once
#include "base/workers.hpp"
#include "broker/parking.hpp"
#include "broker/peer_hints.hpp"
#include "broker/reseed.hpp"
#include "pluginhost/plugin_host.hpp"
#include "pluginhost/tick_driver.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

namespace queen::app {

/// What the host gives its plugins, over the real parking, store, workers and ticker. The plugin
/// host is attached once it exists: it needs the services first. What plugins ask for before that
/// waits until then.
///
/// At shutdown: stop(), then the workers end, then detach(). In between plugins may still ask, and
/// hear that a walk ended incomplete.
class PluginServices {
public:
    /// @param conninfo for plugins that connect to the database themselves
    PluginServices(broker::Parking& parking, Store& store, Workers& workers, Ticker& ticker,
                   const Clock& clock, broker::Reseeder::Options walks, std::string conninfo = {});
    pluginhost::HostServices services();
    void attach(pluginhost::PluginHost& host); ///< starts the ticks and the walks
    /// Where hints of peers go from here on; before, there are none. It outlives the meshes.
    void hear(broker::PeerHints& hints) noexcept { hints_ = &hints; }
    void stop();   ///< no tick and no walk begins from here on
    void detach(); ///< the host is about to go: no worker runs any more

    /// @thread any
    broker::Reseeder::Stats reseeds() const { return reseeder_.stats(); }

private:
    broker::Parking& parking_;
    const Clock& clock_;
    const std::shared_ptr<pluginhost::TickDriver> ticks_;
    std::atomic<pluginhost::PluginHost*> host_ = nullptr;
    std::atomic<broker::PeerHints*> hints_ = nullptr;
    const std::string conninfo_;
    broker::Reseeder reseeder_;
};

} // namespace queen::app
