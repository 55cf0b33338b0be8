// settings/environment.hpp - variables of the contract that are no option of this version.
#pragma once
#include "settings/settings.hpp"

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace queen::settings {

/// Name of the plugin that QUEEN_HOTLIST=0 asks for.
inline constexpr std::string_view kScanSource = "sqlscan";

/// Names variables that would only tune a part this version lacks.
/// @source ENV-6
void check_other_variables(const Environment& env, std::vector<std::string>& warnings);

/// A variable that asks for something only a plugin could give is a problem when none takes it: a
/// broker that looks connected and is not must not start. One that would only tune is a warning.
/// @param taken variables of the options of this broker's plugins
/// @source ENV-2, ENV-6
void check_plugin_variables(const Environment& env, const std::set<std::string>& taken,
                            Problems& problems, std::vector<std::string>& warnings);

} // namespace queen::settings
