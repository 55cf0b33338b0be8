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
    const Stamp& stamp = (*library)->stamp();
    for (const Plugin& other : plugins_) {
        // One file twice is two instances; two files of one id are two builds, and one is not
        // meant.
        if (other.instance != nullptr && !other.instance->library().same_file(**library) &&
            other.instance->library().stamp().plugin_id == stamp.plugin_id) {
            return refused(*path + " has the plugin id '" + stamp.plugin_id + "' (version " +
                           stamp.plugin_version + "), which " + other.instance->library().path() +
                           " (version " + other.instance->library().stamp().plugin_version +
                           ") has already");
        }
    }
    auto values =
        check_options(settings, (*library)->options(), config_.environment, config_.inherited);
    if (!values) {
        return tl::unexpected(std::move(values.error()));
    }
    auto instance = CandidateInstance::create(settings.name, std::move(*library), *values,
                                              config_.limits, services_);
    if (!instance) {
        const auto& [option, message] = instance.error();
        const auto value = values->find(option);
        return tl::unexpected(settings::Problems{
            problem(value == values->end() ? settings.place : value->second.place, settings.name,
                    option, message)});
    }
    auto source = std::make_shared<CandidateAdapter>(*instance);
    return Plugin{settings.name, settings.place, std::move(*instance), std::move(source), {}};
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
        Plugin refused;
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

std::vector<PluginStatus> PluginHost::status() const {
    const std::lock_guard lock(mutex_);
    std::vector<PluginStatus> out;
    for (const Plugin& plugin : plugins_) {
        if (plugin.instance == nullptr) {
            out.push_back(plugin.refused);
            continue;
        }
        const Library& library = plugin.instance->library();
        out.push_back({plugin.name, library.path(), library.stamp().plugin_id,
                       library.stamp().plugin_version, library.kinds(), true,
                       plugin.instance->guard().paused(), "loaded",
                       plugin.instance->guard().counts()});
    }
    return out;
}

std::vector<std::shared_ptr<CandidateInstance>> PluginHost::instances() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<CandidateInstance>> out;
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
