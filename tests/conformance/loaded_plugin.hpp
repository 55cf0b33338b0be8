// tests/conformance/loaded_plugin.hpp - what it takes to run a suite over a library in the real
// plugin host.
#pragma once
#include "pluginhost/plugin_host.hpp"

#include <chrono>
#include <string>

namespace queen::conformance {

/// One thread moves the clock while another is inside a call: no call is slow here.
inline pluginhost::PluginHost::Config patient() {
    pluginhost::PluginHost::Config config;
    config.limits.budget = std::chrono::hours(1);
    return config;
}

inline settings::PluginSettings plugin_settings(std::string name, std::string path) {
    settings::PluginSettings plugin;
    plugin.name = std::move(name);
    plugin.path = std::move(path);
    return plugin;
}

/// What the host counted against its plugins, "" for nothing.
inline std::string faults_of(const pluginhost::PluginHost& host) {
    std::string text;
    for (const auto& status : host.status()) {
        for (std::size_t i = 0; i < pluginhost::kFaultKinds; ++i) {
            const auto kind = static_cast<pluginhost::Fault>(i);
            if (const auto count = status.faults[kind]; count > 0) {
                text += status.name + " " + std::string(to_string(kind)) + "=" +
                        std::to_string(count) + " ";
            }
        }
    }
    return text;
}

} // namespace queen::conformance
