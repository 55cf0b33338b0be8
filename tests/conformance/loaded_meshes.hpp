// tests/conformance/loaded_meshes.hpp - the suite of meshes over libraries in the real plugin host.
#pragma once
#include "base/clock.hpp"
#include "loaded_plugin.hpp"
#include "mesh_conformance.hpp"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace queen::conformance {

using Values = std::vector<std::pair<std::string, std::string>>;

/// Options of the n-th of so many.
using OptionsOf = std::function<Values(std::size_t n, std::size_t count)>;

/// Instances of one library in one plugin host, each with a recording host of its own.
/// @param conninfo of the database that the plugin host lets them into
inline LoadedMeshes loaded_meshes(const std::string& path, std::size_t count,
                                  const OptionsOf& options_of, std::string conninfo = {}) {
    struct Kept {
        std::vector<std::shared_ptr<plugin::RecordingMeshHost>> heard;
        std::unique_ptr<pluginhost::PluginHost> host;
    };
    const auto kept = std::make_shared<Kept>();
    std::vector<settings::PluginSettings> plugins;
    for (std::size_t n = 0; n < count; ++n) {
        kept->heard.push_back(std::make_shared<plugin::RecordingMeshHost>());
        plugins.push_back(plugin_settings(std::to_string(n), path));
        for (const auto& [option, value] : options_of(n, count)) {
            plugins.back().options.push_back({option, {value, true, {}, {}}});
        }
    }
    pluginhost::HostServices services;
    services.clock = &SystemClock::instance();
    services.conninfo = std::move(conninfo);
    services.heard = [to = kept->heard](std::string_view plugin,
                                        std::span<const plugin::Hint> hints) {
        to.at(std::stoul(std::string(plugin)))->heard(hints);
    };
    services.missed = [to = kept->heard](std::string_view plugin) {
        to.at(std::stoul(std::string(plugin)))->missed();
    };
    kept->host = std::make_unique<pluginhost::PluginHost>(patient(), services);
    const auto problems = kept->host->load(plugins);
    EXPECT_TRUE(problems.empty()) << problems.front();
    LoadedMeshes all;
    for (const auto& [number, mesh] : kept->host->meshes()) {
        all.nodes.push_back({mesh, kept->heard.at(std::stoul(number))});
    }
    all.keeps = kept;
    all.faults = [kept] { return faults_of(*kept->host); };
    return all;
}

} // namespace queen::conformance
