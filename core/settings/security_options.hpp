#pragma once
#include "settings/layers.hpp"

#include <span>
#include <string_view>

namespace queen::settings {

/// What an option says that may have no value.
inline constexpr std::string_view kNone = "none";

/// The part of the table about keys, tokens and tenants.
std::span<const Option> security_options();

/// What must fit together before anything starts: a protection that was asked for and cannot be
/// given is a fault, one that is prepared and switched off a warning.
/// @source CFG-10
void check_security(Layers& layers);

} // namespace queen::settings
