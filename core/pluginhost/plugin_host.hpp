// pluginhost/plugin_host.hpp - the plugins of one broker: finds, judges, loads, configures and
// keeps them, and tells what became of each. Knows no plugin by name.
#pragma once
#include "pluginhost/candidate_adapter.hpp"
#include "pluginhost/guard.hpp"
#include "pluginhost/host_services.hpp"
#include "pluginhost/mesh_adapter.hpp"
#include "pluginhost/options.hpp"
#include "pluginhost/timers_adapter.hpp"
#include "settings/settings.hpp"

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace queen::pluginhost {

struct NamedSource {
    std::string name; ///< as in YAML
    std::shared_ptr<plugin::CandidateSource> source;
};

struct NamedMesh {
    std::string name; ///< as in YAML
    std::shared_ptr<plugin::MeshLink> mesh;
};

/// What became of a plugin that YAML names. Of a refused one only name, path and verdict are set.
struct PluginStatus {
    std::string name;
    std::string path; ///< as found; as written when it was not found
    std::string id, version;
    std::vector<std::string> kinds;
    bool loaded = false;
    bool paused = false; ///< slow three times in a row and left alone for now
    std::string verdict; ///< "loaded", or the sentence of the refusal
    FaultCounts faults;
};

/// What is wrong with a second driver of timers.
std::string second_driver(std::string_view first, const settings::Place& place);

/// @thread load() and unload() main; the rest any
/// Locks: `mutex_` is a leaf; no plugin and no service is called while it is held.
/// @source PLG-2 to PLG-13, K38
class PluginHost {
public:
    struct Config {
        std::vector<std::string> folders; ///< where relative paths are looked up, in order
        settings::Environment environment;
        Inherited inherited; ///< core settings that options may inherit
        GuardLimits limits;
        HostBuild build = this_build();
    };
    PluginHost(Config config, HostServices services);
    PluginHost(const PluginHost&) = delete;
    PluginHost& operator=(const PluginHost&) = delete;
    /// Sources, meshes and drivers that are still held, and selections not settled yet, stay valid.
    ~PluginHost();

    /// Loads what is named, in order. A plugin that does not fit is refused and the rest goes on;
    /// whether the broker starts without it is the caller's choice. Names that are loaded already
    /// are refused.
    /// @return all problems, ready to print; empty when everything is loaded
    settings::Problems load(const std::vector<settings::PluginSettings>& plugins);

    /// Drops a plugin: it ends when nobody holds it any more and its last selection has settled. A
    /// mesh or a driver that runs is stopped then.
    /// @return false when there is none of that name
    bool unload(std::string_view name);

    std::vector<NamedSource> sources() const; ///< in YAML's order
    std::shared_ptr<plugin::CandidateSource> source(std::string_view name) const; ///< or nullptr
    /// Each loaded mesh, in YAML's order. The core starts them when it is ready to hear.
    std::vector<NamedMesh> meshes() const;
    /// The one driver of timers; nullptr: timers wait and nobody fires them.
    std::shared_ptr<plugin::TimerDriver> timer_driver() const;
    /// Where the driver's calls go from here on. Before, and when the store is gone, they answer
    /// that the broker stops: to be given before the first tick. Its tick_at() is never called.
    /// @thread any
    void serve_timers(std::weak_ptr<plugin::TimerHost> store);

    std::vector<PluginStatus> status() const; ///< loaded and refused, in YAML's order

    /// Calls tick() of each source and driver whose time has come. @return when it wants to be
    /// called next, max() for never; HostServices::tick_at tells when that moves forward.
    /// @thread ticker
    SteadyTime run_ticks(SteadyTime now);

    /// Counts a fault that only the core can see, as a name the store does not know.
    void report(std::string_view name, Fault fault, std::string_view detail);

private:
    struct Plugin {
        std::string name;
        settings::Place place;
        std::shared_ptr<Instance> instance;
        // By its kind, one of them:
        std::shared_ptr<plugin::CandidateSource> source;
        std::shared_ptr<plugin::MeshLink> mesh;
        std::shared_ptr<plugin::TimerDriver> driver;
        PluginStatus refused = {}; ///< when there is no instance
    };
    /// @return the plugin, or its problem, ready to print
    tl::expected<Plugin, settings::Problems> load_one(const settings::PluginSettings& settings,
                                                      std::string& found_path) const;
    /// Why the library cannot stand beside what is loaded already; "" when it can.
    std::string clash_of(const Library& library) const;
    std::vector<std::shared_ptr<Instance>> instances() const;

    const Config config_;
    const HostServices services_;
    const std::shared_ptr<TimerStoreSlot> timer_store_ = std::make_shared<TimerStoreSlot>();
    mutable std::mutex mutex_;
    std::vector<Plugin> plugins_;
};

} // namespace queen::pluginhost
