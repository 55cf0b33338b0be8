#include "app/mesh_report.hpp"

#include "app/candidates_report.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace queen::app {
namespace {

/// A mesh is trusted, yet must not fill the answer.
constexpr std::size_t kMostPeers = 1'000; // a guess

std::int64_t integer(std::uint64_t value) {
    return static_cast<std::int64_t>(value);
}

struct KeptPeer {
    std::string address, server_id;
    plugin::Peer peer;
};

/// Copies: what a mesh shows is valid during its call only.
class KeptPeers final : public plugin::Peers {
public:
    void add(const plugin::Peer& peer) override {
        if (all.size() < kMostPeers) {
            all.push_back({std::string(peer.address), std::string(peer.server_id), peer});
        }
    }
    std::vector<KeptPeer> all;
};

struct Totals {
    std::uint64_t sent = 0, received = 0, dropped = 0;
    double handshake_failures = 0, alive = 0, dead = 0;
};

void write_peer(json::Writer& writer, std::string_view mesh, const KeptPeer& kept) {
    const auto& peer = kept.peer;
    writer.begin_object().key("mesh").string(mesh).key("address").string(kept.address);
    writer.key("server_id").string(kept.server_id);
    writer.key("connected").boolean(peer.connected).key("alive").boolean(peer.alive);
    writer.key("silent_ms");
    if (peer.silent == Nanoseconds::max()) {
        writer.null();
    } else {
        writer.integer(std::chrono::duration_cast<std::chrono::milliseconds>(peer.silent).count());
    }
    writer.key("sent").integer(integer(peer.sent));
    writer.key("received").integer(integer(peer.received));
    writer.key("dropped").integer(integer(peer.dropped));
    writer.key("queued").integer(integer(peer.queued)).end_object();
}

void write_hints(json::Writer& writer, const broker::Meshes& meshes,
                 const broker::PeerHints::Stats& stats, std::size_t waiting) {
    const auto by_kind = [&writer](const broker::HintCounts& counts) {
        writer.begin_object();
        for (const auto kind : broker::kHintKinds) {
            writer.key(broker::to_string(kind)).integer(integer(counts.value(kind)));
        }
        writer.end_object();
    };
    writer.begin_object().key("published");
    by_kind(meshes.published());
    writer.key("heard");
    by_kind(stats.heard);
    writer.key("refused").begin_object();
    writer.key("malformed").integer(integer(stats.malformed.value()));
    writer.key("other_tenant").integer(integer(stats.foreign.value()));
    writer.key("no_tenant").integer(integer(stats.nobody.value()));
    writer.key("overflow").integer(integer(stats.overflowed.value())).end_object();
    writer.key("missed").integer(integer(stats.missed.value()));
    writer.key("waiting").integer(integer(waiting)).end_object();
}

} // namespace

void write_mesh(json::Writer& writer, const broker::Meshes& meshes,
                const broker::PeerHints::Stats& hints, std::size_t waiting,
                const std::vector<pluginhost::PluginStatus>& plugins) {
    struct Asked {
        const broker::Meshes::Entry* entry;
        KeptPeers peers;
        CandidateFigures figures;
    };
    std::vector<Asked> asked;
    Totals totals;
    for (const auto& entry : meshes.all()) {
        auto& mesh = asked.emplace_back(Asked{&entry, {}, {}});
        entry.link->peers(mesh.peers);
        entry.link->stats(mesh.figures);
        double alive = 0;
        for (const auto& [address, id, peer] : mesh.peers.all) {
            totals.sent += peer.sent;
            totals.received += peer.received;
            totals.dropped += peer.dropped;
            alive += peer.alive ? 1 : 0;
        }
        const auto figure = [&mesh](std::string_view name, double otherwise) {
            const auto value = mesh.figures.value(name);
            return value && std::isfinite(*value) ? *value : otherwise;
        };
        totals.handshake_failures += figure("handshake_failures_total", 0);
        totals.alive += figure("servers_alive", alive);
        totals.dead += figure("servers_dead", static_cast<double>(mesh.peers.all.size()) - alive);
    }
    writer.begin_object().key("messages_sent").integer(integer(totals.sent));
    writer.key("messages_received").integer(integer(totals.received));
    writer.key("messages_dropped").integer(integer(totals.dropped));
    writer.key("handshake_failures").number(totals.handshake_failures);
    writer.key("servers_alive").number(totals.alive).key("servers_dead").number(totals.dead);
    writer.key("peers").begin_array();
    for (const auto& mesh : asked) {
        for (const auto& peer : mesh.peers.all) {
            write_peer(writer, mesh.entry->name, peer);
        }
    }
    writer.end_array().key("hints");
    write_hints(writer, meshes, hints, waiting);
    writer.key("meshes").begin_array();
    for (const auto& status : plugins) {
        const auto mesh = std::find_if(asked.begin(), asked.end(), [&](const Asked& each) {
            return each.entry->name == status.name;
        });
        if (mesh != asked.end()) {
            write_plugin(writer, status, mesh->figures);
        }
    }
    writer.end_array().end_object();
}

} // namespace queen::app
