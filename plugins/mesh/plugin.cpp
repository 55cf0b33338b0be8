// The only file of this plugin that knows how it is loaded.
#include "mesh.hpp"

#include <queen/plugin/entry.hpp>

#include <utility>

namespace {

namespace plugin = queen::plugin;
namespace mesh = queen::mesh;
using namespace std::chrono_literals;

constexpr queen_option kOptions[] = {
    plugin::boolean("enabled", {.fallback = "true", .env = "QUEEN_SYNC_ENABLED"},
                    "Whether hints go to peers and are heard from them."),
    plugin::text("peers", {.fallback = "", .env = "QUEEN_MESH_PEERS"},
                 "The other brokers: host[:port], separated by commas; without any it is off."),
    plugin::text("listen", {.fallback = "127.0.0.1"},
                 "Address to be reached at: a number, localhost, or * for all of the machine."),
    plugin::integer(
        "port", {.unit = "", .fallback = "6633", .min = 1, .max = 65'535, .env = "QUEEN_MESH_PORT"},
        "Port to be reached at, and that of peers that name none."),
    plugin::text("secret", {.fallback = "", .env = "QUEEN_SYNC_SECRET"},
                 "What brokers prove to know, or file:/path of it; empty: nobody is asked."),
    plugin::boolean(
        "require_challenge", {.fallback = "true"},
        "Refuse brokers of the old protocol, whose proof can be recorded and repeated."),
    plugin::duration("heartbeat",
                     {.fallback = "1s", .min = 100ms, .max = 60s, .env = "QUEEN_SYNC_HEARTBEAT_MS"},
                     "Between signs of life to each peer."),
    plugin::duration(
        "dead_threshold",
        {.fallback = "5s", .min = 200ms, .max = 300s, .env = "QUEEN_SYNC_DEAD_THRESHOLD_MS"},
        "Silence after which a peer counts as dead, and its connection is ended."),
    plugin::integer("connections",
                    {.unit = "connections", .fallback = "256", .min = 1, .max = 10'000},
                    "Accepted at once; beyond it, who has not said who it is makes room."),
    plugin::integer("hints_per_second",
                    {.unit = "hints", .fallback = "200000", .min = 1'000, .max = 100'000'000},
                    "Taken from one peer; what is beyond waits on its side."),
    plugin::integer("bytes_per_second",
                    {.unit = "bytes", .fallback = "67108864", .min = 65'536, .max = 10'000'000'000},
                    "Taken from one peer; what is beyond waits on its side."),
    plugin::text("server_id", {.inherits = "server_id"},
                 "What this broker is called by its peers; each needs a name of its own."),
    plugin::text("udp_peers", {.fallback = "", .env = "QUEEN_UDP_PEERS"}, "Older name of peers."),
    plugin::integer("udp_notify_port",
                    {.unit = "", .fallback = "0", .max = 65'535, .env = "QUEEN_UDP_NOTIFY_PORT"},
                    "Older name of port; 0: not used."),
};

std::unique_ptr<plugin::MeshLink> make(plugin::MeshPluginHost& host) {
    mesh::Options options;
    options.enabled = host.boolean("enabled");
    const std::size_t port = mesh::older_port(host.size("port"), host.size("udp_notify_port"));
    options.listen = {mesh::parse_listen(host.string("listen")), static_cast<std::uint16_t>(port)};
    options.peers = mesh::parse_peers(
        mesh::older_peers(host.string("peers"), host.string("udp_peers")), options.listen.port);
    options.secret = mesh::read_secret(host.string("secret"));
    options.require_challenge = host.boolean("require_challenge");
    options.heartbeat = host.duration("heartbeat");
    options.dead_threshold = host.duration("dead_threshold");
    options.connections = host.size("connections");
    options.hints_per_second = host.size("hints_per_second");
    options.bytes_per_second = host.size("bytes_per_second");
    options.server_id = host.string("server_id");
    const auto log = [&host](plugin::LogLevel level, std::string_view line) {
        host.log(level, line);
    };
    return std::make_unique<mesh::Mesh>(std::move(options), host.clock(), host, log);
}

} // namespace

QUEEN_PLUGIN("queen.mesh", "1.0.0", kOptions, QUEEN_MESH, plugin::mesh<make>)
