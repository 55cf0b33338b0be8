// The only file of this plugin that knows how it is loaded.
#include "meshpg.hpp"

#include <queen/plugin/entry.hpp>

#include <utility>

namespace {

namespace plugin = queen::plugin;
namespace meshpg = queen::meshpg;
using namespace std::chrono_literals;

constexpr queen_option kOptions[] = {
    plugin::boolean("enabled", {.fallback = "true", .env = "QUEEN_SYNC_ENABLED"},
                    "Whether hints go to other brokers and are heard from them."),
    plugin::text("channel", {.fallback = "queen_mesh"},
                 "Channel of the database that all brokers notify and listen to."),
    plugin::duration("heartbeat", {.fallback = "5s", .min = 500ms, .max = 60s},
                     "Between signs of life; each is a small transaction."),
    plugin::duration(
        "dead_threshold", {.fallback = "15s", .min = 1s, .max = 300s},
        "Silence after which a broker counts as dead; without others nothing is sent."),
    plugin::integer("hints_per_second",
                    {.unit = "hints", .fallback = "200000", .min = 1'000, .max = 100'000'000},
                    "Taken from one session of the database; what is beyond is dropped."),
    plugin::text("server_id", {.inherits = "server_id"},
                 "What this broker is called by the others."),
};

std::unique_ptr<plugin::MeshLink> make(plugin::MeshPluginHost& host) {
    meshpg::Options options;
    options.enabled = host.boolean("enabled");
    options.channel = host.string("channel");
    options.conninfo = host.conninfo();
    options.heartbeat = host.duration("heartbeat");
    options.dead_threshold = host.duration("dead_threshold");
    options.hints_per_second = host.size("hints_per_second");
    options.server_id = host.string("server_id");
    const auto log = [&host](plugin::LogLevel level, std::string_view line) {
        host.log(level, line);
    };
    return std::make_unique<meshpg::MeshPg>(std::move(options), host.clock(), host, log);
}

} // namespace

QUEEN_PLUGIN("queen.meshpg", "1.0.0", kOptions, QUEEN_MESH, plugin::mesh<make>)
