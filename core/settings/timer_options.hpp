#pragma once
#include "settings/table.hpp"

#include <span>

namespace queen::settings {

/// The part of the table about timers.
std::span<const Option> timer_options();

} // namespace queen::settings
