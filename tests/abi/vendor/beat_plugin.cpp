#include "beat.hpp"

#include <queen/plugin/entry.hpp>

namespace {

namespace plugin = queen::plugin;
using namespace std::chrono_literals;

constexpr queen_option kOptions[] = {
    plugin::duration("every", {.fallback = "1s", .min = 10ms, .max = 60s}, "Between two looks."),
    plugin::integer("attempts", {.fallback = "5", .min = 1, .max = 1000},
                    "Of a timer that cannot be fired."),
};

std::unique_ptr<plugin::TimerDriver> make(plugin::TimerPluginHost& host) {
    return std::make_unique<acme::beat::Beat>(
        acme::beat::Options{host.duration("every"),
                            static_cast<std::int32_t>(host.integer("attempts"))},
        host.clock(), host);
}

} // namespace

QUEEN_PLUGIN("com.acme.beat", "1.0.0", kOptions, QUEEN_TIMERS, plugin::timers<make>)
