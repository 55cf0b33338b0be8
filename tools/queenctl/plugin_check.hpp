#pragma once
#include "pluginhost/library.hpp"
#include "settings/settings.hpp"

#include <string>
#include <vector>

namespace queen::ctl {

/// What a broker with these settings would say of one of its plugins.
struct PluginCheck {
    std::string name; ///< as in YAML
    settings::Place place;
    pluginhost::Inspection inspection;
    bool found = false;         ///< the file is on this machine
    settings::Problems options; ///< ready to print; nobody looks at them before the library fits
};

/// Finds, judges and loads each plugin as the broker would, in YAML's order.
std::vector<PluginCheck> check_plugins(const settings::Loaded& loaded,
                                       const settings::Environment& environment);

} // namespace queen::ctl
