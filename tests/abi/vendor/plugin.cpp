// The only file that knows how it is loaded.
#include "recent.hpp"

#include <queen/plugin/entry.hpp>

namespace {

namespace plugin = queen::plugin;

constexpr queen_option kOptions[] = {
    plugin::integer("capacity",
                    {.unit = "partitions", .fallback = "4096", .min = 1, .max = 100'000},
                    "Partitions remembered per queue."),
    plugin::duration("max_age", {.fallback = "30s"}, "Older entries are not offered."),
};

std::unique_ptr<plugin::CandidateSource> make(plugin::Host& host) {
    return std::make_unique<acme::recent::Recent>(
        acme::recent::Options{host.size("capacity"), host.duration("max_age")}, host.clock());
}

} // namespace

QUEEN_PLUGIN("com.acme.recent", "1.0.0", kOptions, QUEEN_CANDIDATES, plugin::candidates<make>)
