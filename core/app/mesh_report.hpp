#pragma once
#include "base/json.hpp"
#include "broker/meshes.hpp"
#include "broker/peer_hints.hpp"
#include "pluginhost/plugin_host.hpp"

#include <vector>

namespace queen::app {

/// The answer of GET /internal/api/inter-instance/stats, of all meshes together:
/// {messages_sent, messages_received, messages_dropped, handshake_failures, servers_alive,
/// servers_dead, peers: [{mesh, address, server_id, connected, alive, silent_ms, sent, received,
/// dropped, queued}], hints: {published, heard, refused, ...}, meshes: [{name, id, version, loaded,
/// paused, verdict, faults, stats}]}. Messages are frames, as the peers' figures sum up to; failed
/// handshakes and servers are the figures handshake_failures_total, servers_alive and servers_dead
/// where a mesh has them, else no failures, and its peers counted. Asks each mesh.
/// @param waiting hints that wait for a worker
/// @thread any but the network's: it calls plugins
/// @source ME-18
void write_mesh(json::Writer& writer, const broker::Meshes& meshes,
                const broker::PeerHints::Stats& hints, std::size_t waiting,
                const std::vector<pluginhost::PluginStatus>& plugins);

} // namespace queen::app
