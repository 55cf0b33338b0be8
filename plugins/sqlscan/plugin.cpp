// The only file of this plugin that knows how it is loaded.
#include "sqlscan.hpp"

#include <queen/plugin/entry.hpp>

namespace {

namespace plugin = queen::plugin;
using namespace std::chrono_literals;

constexpr queen_option kOptions[] = {
    plugin::integer("hints", {.unit = "partitions", .fallback = "64", .min = 1, .max = 256},
                    "Partitions just pushed to that are remembered per queue."),
    plugin::integer("queues", {.unit = "queues", .fallback = "1024", .min = 1, .max = 100'000},
                    "Queues with remembered partitions; beyond it the one used least lately goes."),
    plugin::duration("scan_every", {.fallback = "1s", .min = 10ms, .max = 60s},
                     "Time between scans of the store for a group that keeps getting hints."),
};

std::unique_ptr<plugin::CandidateSource> make(plugin::Host& host) {
    return std::make_unique<queen::sqlscan::SqlScan>(
        queen::sqlscan::Options{host.size("hints"), host.size("queues"),
                                host.duration("scan_every")},
        host.clock(), &host);
}

} // namespace

QUEEN_PLUGIN("queen.sqlscan", "1.0.0", kOptions, QUEEN_CANDIDATES, plugin::candidates<make>)
