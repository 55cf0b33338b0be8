#pragma once
#include "base/result.hpp"

#include <queen/plugin/timers.hpp>

namespace queen::broker {

/// How the store's error looks to a driver of timers (SW-7). Without an SQLSTATE it was the link's.
plugin::TimerOutcome timer_outcome(const Error& error) noexcept;

} // namespace queen::broker
