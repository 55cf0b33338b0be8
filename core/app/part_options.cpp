#include "app/part_options.hpp"

#include <algorithm>
#include <thread>

namespace queen::app {

std::size_t session_count(const settings::Settings& settings) {
    if (settings.database.sessions > 0) {
        return static_cast<std::size_t>(settings.database.sessions);
    }
    const auto cores = std::max(1u, std::thread::hardware_concurrency());
    return std::clamp<std::size_t>(8u * cores, 8, 64);
}

std::size_t background_reads(std::size_t sessions) {
    return std::clamp<std::size_t>(sessions / 4, 1, 4);
}

http::Limits front_limits(const settings::LimitSettings& limits) {
    const auto size = [](std::int64_t value) { return static_cast<std::size_t>(value); };
    return {.head_bytes = size(limits.head_bytes),
            .uri_bytes = size(limits.uri_bytes),
            .fields = size(limits.fields),
            .body_bytes = size(limits.body_bytes),
            .bodies_in_flight_bytes = size(limits.bodies_in_flight_bytes),
            .connections = size(limits.connections),
            .head_time = limits.head_time,
            .body_progress_time = limits.body_progress_time,
            .idle_time = limits.idle_time,
            .write_time = limits.write_time};
}

broker::Backoff backoff(const settings::PopSettings& pop) {
    return {.initial = pop.backoff_initial,
            .threshold = pop.backoff_threshold,
            .multiplier = pop.backoff_multiplier,
            .max = pop.backoff_max};
}

pluginhost::Inherited inherited(const std::vector<settings::Effective>& effective) {
    pluginhost::Inherited by_name;
    for (const auto& option : effective) {
        by_name[option.name] = option.value;
    }
    return by_name;
}

} // namespace queen::app
