// The only file of this plugin that knows how it is loaded.
#include "hotlist.hpp"

#include <queen/plugin/entry.hpp>

namespace {

namespace plugin = queen::plugin;
using namespace std::chrono_literals;

constexpr queen_option kOptions[] = {
    plugin::integer(
        "shards",
        {.unit = "sub-rings", .fallback = "8", .min = 1, .max = 256, .env = "QUEEN_HOTLIST_SHARDS"},
        "Parts of a ring with a lock of their own; more help one queue on many cores."),
    plugin::duration(
        "pad", {.fallback = "300ms", .max = 10s, .env = "QUEEN_HOTLIST_PAD_MS"},
        "Added to delays and lease ends before a partition is tried again: clocks differ."),
    plugin::integer("window_batch",
                    {.unit = "messages",
                     .fallback = "100",
                     .min = 1,
                     .max = 1'000'000,
                     .env = "QUEEN_HOTLIST_WINDOW_BATCH"},
                    "Messages of a partition that end its windowBuffer early."),
    plugin::duration("reseed",
                     {.fallback = "30s", .min = 1s, .max = 1h, .env = "QUEEN_HOTLIST_RESEED_MS"},
                     "Between two walks of a ring's partitions in the store."),
    plugin::duration(
        "reseed_full", {.fallback = "300s", .max = 24h, .env = "QUEEN_HOTLIST_RESEED_FULL_MS"},
        "Between walks of all partitions of a queue that needs several pages; 0: every walk."),
    plugin::duration("reseed_window",
                     {.fallback = "0s", .max = 168h, .env = "QUEEN_HOTLIST_RESEED_WINDOW_MS"},
                     "What the other walks look back at; 0: four times reseed, at least 120 s."),
    plugin::duration("idle_sweep",
                     {.fallback = "300s", .max = 24h, .env = "QUEEN_HOTLIST_IDLE_SWEEP_MS"},
                     "A queue nobody touches for one to two of these is dropped; 0: never."),
    plugin::duration("unserved_trim",
                     {.fallback = "30s", .max = 24h, .env = "QUEEN_HOTLIST_UNSERVED_TRIM_MS"},
                     "A ring that no pop came to for this long is dropped; 0: never."),
    plugin::text("trace", {.fallback = "", .env = "QUEEN_HOTLIST_TRACE"},
                 "Queues whose name begins so leave breadcrumbs in the log; empty: none."),
};

std::unique_ptr<plugin::CandidateSource> make(plugin::Host& host) {
    queen::hotlist::Options options;
    options.shards = host.size("shards");
    options.pad = host.duration("pad");
    options.window_batch = host.size("window_batch");
    options.reseed = host.duration("reseed");
    options.reseed_full = host.duration("reseed_full");
    options.reseed_window = host.duration("reseed_window");
    options.idle_sweep = host.duration("idle_sweep");
    options.unserved_trim = host.duration("unserved_trim");
    options.trace = host.string("trace");
    const auto log = [&host](plugin::LogLevel level, std::string_view line) {
        host.log(level, line);
    };
    return std::make_unique<queen::hotlist::HotList>(std::move(options), host.clock(), host, log);
}

} // namespace

QUEEN_PLUGIN("queen.hotlist", "1.0.0", kOptions, QUEEN_CANDIDATES, plugin::candidates<make>)
