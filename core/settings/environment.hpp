// settings/environment.hpp - variables of the contract that are no option of this version.
#pragma once
#include "settings/settings.hpp"

#include <string_view>

namespace queen::settings {

/// Name of the plugin that QUEEN_HOTLIST=0 asks for.
inline constexpr std::string_view kScanSource = "sqlscan";

/// A variable that asks for protection this version cannot give is a problem: a broker that looks
/// protected and is not must not start. One that only tunes a missing part is a warning.
/// @source ENV-2, ENV-6
void check_other_variables(const Environment& env, Problems& problems,
                           std::vector<std::string>& warnings);

} // namespace queen::settings
