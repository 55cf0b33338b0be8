#pragma once
#include "broker/parking.hpp"
#include "http/front.hpp"
#include "pluginhost/plugin_host.hpp"
#include "settings/settings.hpp"

#include <cstddef>
#include <vector>

namespace queen::app {

// What settings mean to the parts of a broker.

/// As written, or 8 for each core, 8 to 64.
std::size_t session_count(const settings::Settings& settings);
/// Statements of one kind of background reading that run at once. They share the lane of
/// administration with the health check, which must not stand behind many of them in a small pool.
std::size_t background_reads(std::size_t sessions);

http::Limits front_limits(const settings::LimitSettings& limits);
broker::Backoff backoff(const settings::PopSettings& pop);
/// Values by the name of their option, for the options of plugins that inherit them.
pluginhost::Inherited inherited(const std::vector<settings::Effective>& effective);

} // namespace queen::app
