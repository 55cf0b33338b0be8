#include "pluginhost/plugin_host.hpp"

#include "base/assert.hpp"

#include <algorithm>

namespace queen::pluginhost {
namespace {

/// The sentences without their places, for the status of a refused plugin.
std::string joined(const settings::Problems& problems) {
    std::string text;
    for (const std::string& problem : problems) {
        text += (text.empty() ? "" : "; ") + problem;
    }
    return text;
}

} // namespace

std::string second_driver(std::string_view first, const settings::Place& place) {
    return "is a second timer driver, '" + std::string(first) + "' (" + to_string(place) +
           ") is one already and a broker has one";
}

PluginHost::PluginHost(Config config, HostServices services)
    : config_(std::move(config)), services_(std::move(services)) {
    QUEEN_ASSERT(services_.clock != nullptr, "the plugin host needs a clock");
}

PluginHost::~PluginHost() = default;

tl::expected<PluginHost::Plugin, settings::Problems>
PluginHost::load_one(const settings::PluginSettings& settings, std::string& found_path) const {
    const auto refused = [&](const std::string& why) {
        return tl::unexpected(settings::Problems{problem(settings.place, settings.name, "", why)});
    };
    for (const Plugin& other : plugins_) {
        if (other.name == settings.name) {
            return refused("the name is taken, by " + to_string(other.place));
        }
    }
    const auto path = find_library(config_.folders, settings.path);
    if (!path) {
        return refused(path.error().message);
    }
    found_path = *path;
    auto library = Library::open(*path, config_.build);
    if (!library) {
        return refused(library.error().message);
    }
    if (const std::string clash = clash_of(**library); !clash.empty()) {
        return refused(clash);
    }
    auto values =
        check_options(settings, (*library)->options(), config_.environment, config_.inherited);
    if (!values) {
        return tl::unexpected(std::move(values.error()));
    }
    const std::string kind = (*library)->kind();
    Plugin plugin{settings.name, settings.place, {}, {}, {}, {}};
    Instance::Parts parts{settings.name,      settings.place, std::move(*library),
                          std::move(*values), config_.limits, services_};
    /// Keeps what was made, and says why nothing was.
    const auto keep = [&](auto made, auto wrap) -> std::optional<std::string> {
        if (!made) {
            return std::move(made.error());
        }
        wrap(*made);
        plugin.instance = std::move(*made);
        return std::nullopt;
    };
    std::optional<std::string> refusal;
    if (kind == QUEEN_MESH) {
        refusal = keep(MeshInstance::create(std::move(parts)), [&](auto made) {
            plugin.mesh = std::make_shared<MeshAdapter>(std::move(made));
        });
    } else if (kind == QUEEN_TIMERS) {
        refusal = keep(TimersInstance::create(std::move(parts), timer_store_), [&](auto made) {
            plugin.driver = std::make_shared<TimersAdapter>(std::move(made));
        });
    } else {
        refusal = keep(CandidateInstance::create(std::move(parts)), [&](auto made) {
            plugin.source = std::make_shared<CandidateAdapter>(std::move(made));
        });
    }
    if (refusal) {
        return tl::unexpected(settings::Problems{std::move(*refusal)});
    }
    return plugin;
}

std::string PluginHost::clash_of(const Library& library) const {
    const Stamp& stamp = library.stamp();
    for (const Plugin& other : plugins_) {
        if (other.instance == nullptr) {
            continue;
        }
        const Library& loaded = other.instance->library();
        // One file twice is two instances; two files of one id are two builds, and one is not
        // meant.
        if (!loaded.same_file(library) && loaded.stamp().plugin_id == stamp.plugin_id) {
            return library.path() + " has the plugin id '" + stamp.plugin_id + "' (version " +
                   stamp.plugin_version + "), which " + loaded.path() + " (version " +
                   loaded.stamp().plugin_version + ") has already";
        }
        if (library.kind() == QUEEN_TIMERS && loaded.kind() == QUEEN_TIMERS) {
            return second_driver(other.name, other.place);
        }
    }
    return "";
}

settings::Problems PluginHost::load(const std::vector<settings::PluginSettings>& plugins) {
    settings::Problems all;
    for (const settings::PluginSettings& settings : plugins) {
        std::string path = settings.path;
        auto loaded = load_one(settings, path);
        const std::lock_guard lock(mutex_);
        std::erase_if(plugins_, [&](const Plugin& plugin) { // refused earlier, tried again
            return plugin.instance == nullptr && plugin.refused.name == settings.name;
        });
        if (loaded) {
            plugins_.push_back(std::move(*loaded));
            continue;
        }
        Plugin refused{};
        refused.place = settings.place;
        refused.refused.name = settings.name;
        refused.refused.path = path;
        refused.refused.verdict = joined(loaded.error());
        plugins_.push_back(std::move(refused));
        all.insert(all.end(), loaded.error().begin(), loaded.error().end());
    }
    return all;
}

bool PluginHost::unload(std::string_view name) {
    Plugin dropped; // outlives the lock: its end calls into the plugin
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(plugins_.begin(), plugins_.end(), [&](const Plugin& plugin) {
        return plugin.instance != nullptr && plugin.name == name;
    });
    if (found == plugins_.end()) {
        return false;
    }
    dropped = std::move(*found);
    plugins_.erase(found);
    return true;
}

std::vector<NamedSource> PluginHost::sources() const {
    const std::lock_guard lock(mutex_);
    std::vector<NamedSource> out;
    for (const Plugin& plugin : plugins_) {
        if (plugin.source != nullptr) {
            out.push_back({plugin.name, plugin.source});
        }
    }
    return out;
}

std::shared_ptr<plugin::CandidateSource> PluginHost::source(std::string_view name) const {
    const std::lock_guard lock(mutex_);
    for (const Plugin& plugin : plugins_) {
        if (plugin.source != nullptr && plugin.name == name) {
            return plugin.source;
        }
    }
    return nullptr;
}

std::vector<NamedMesh> PluginHost::meshes() const {
    const std::lock_guard lock(mutex_);
    std::vector<NamedMesh> out;
    for (const Plugin& plugin : plugins_) {
        if (plugin.mesh != nullptr) {
            out.push_back({plugin.name, plugin.mesh});
        }
    }
    return out;
}

std::shared_ptr<plugin::TimerDriver> PluginHost::timer_driver() const {
    const std::lock_guard lock(mutex_);
    for (const Plugin& plugin : plugins_) {
        if (plugin.driver != nullptr) {
            return plugin.driver;
        }
    }
    return nullptr;
}

void PluginHost::serve_timers(std::weak_ptr<plugin::TimerHost> store) {
    timer_store_->set(std::move(store));
}

std::vector<PluginStatus> PluginHost::status() const {
    const std::lock_guard lock(mutex_);
    std::vector<PluginStatus> out;
    for (const Plugin& plugin : plugins_) {
        if (plugin.instance == nullptr) {
            out.push_back(plugin.refused);
            continue;
        }
        const Library& library = plugin.instance->library();
        out.push_back({plugin.name,
                       library.path(),
                       library.stamp().plugin_id,
                       library.stamp().plugin_version,
                       {library.kind()},
                       true,
                       plugin.instance->guard().paused(),
                       "loaded",
                       plugin.instance->guard().counts()});
    }
    return out;
}

std::vector<std::shared_ptr<Instance>> PluginHost::instances() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<Instance>> out;
    for (const Plugin& plugin : plugins_) {
        if (plugin.instance != nullptr) {
            out.push_back(plugin.instance);
        }
    }
    return out;
}

SteadyTime PluginHost::run_ticks(SteadyTime now) {
    const auto all = instances();
    for (const auto& instance : all) {
        instance->tick_if_due(now);
    }
    SteadyTime next = SteadyTime::max();
    for (const auto& instance : all) { // after all calls: one may have pulled another's forward
        next = std::min(next, instance->tick_due());
    }
    return next;
}

void PluginHost::report(std::string_view name, Fault fault, std::string_view detail) {
    for (const auto& instance : instances()) {
        if (instance->name() == name) {
            instance->guard().count(fault, detail);
            return;
        }
    }
}

} // namespace queen::pluginhost
