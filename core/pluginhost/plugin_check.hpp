#pragma once
#include "pluginhost/library.hpp"
#include "settings/settings.hpp"

#include <string>
#include <vector>

namespace queen::pluginhost {

/// What a broker with these settings would say of one of its plugins.
struct PluginCheck {
    std::string name; ///< as in YAML
    settings::Place place;
    Inspection inspection;
    bool found = false;          ///< the file is on this machine
    settings::Problems problems; ///< ready to print: its options, and what stands beside it. Nobody
                                 ///< looks before the library fits
};

/// Finds and judges each plugin and its options as load() would, in YAML's order, without making an
/// instance: before a database is touched, or where there is none.
/// @thread main
std::vector<PluginCheck> check_plugins(const settings::Loaded& loaded,
                                       const settings::Environment& environment);

} // namespace queen::pluginhost
