#include "roster.hpp"

#include <algorithm>
#include <set>

namespace queen::mesh {
namespace {

constexpr std::chrono::hours kForgotten{1}; // silence after which an id is no dead broker any more

} // namespace

Roster::Roster(const Options& options, const Outbox& outbox)
    : options_(options), outbox_(outbox), dialled_(options.peers.size()) {}

void Roster::set_connected(std::size_t peer, bool connected) {
    const std::lock_guard lock(mutex_);
    dialled_[peer].connected = connected;
}

void Roster::learnt(std::size_t peer, std::string_view server_id) {
    const std::lock_guard lock(mutex_);
    dialled_[peer].server_id = server_id;
}

void Roster::sent(std::size_t peer, std::uint64_t frames) {
    const std::lock_guard lock(mutex_);
    dialled_[peer].sent += frames;
}

void Roster::heard(std::string_view server_id, std::string_view from, std::uint64_t frames,
                   SteadyTime now) {
    const std::lock_guard lock(mutex_);
    auto found = servers_.find(server_id);
    if (found == servers_.end()) {
        if (servers_.size() >= kMostServers) {
            servers_.erase(std::min_element(
                servers_.begin(), servers_.end(),
                [](const auto& a, const auto& b) { return a.second.last < b.second.last; }));
        }
        found = servers_.emplace(std::string(server_id), Server{}).first;
    }
    found->second.from = from;
    found->second.last = now;
    found->second.received += frames;
}

bool Roster::is_alive(const Server& server, SteadyTime now) const noexcept {
    return now - server.last < options_.dead_threshold;
}

std::vector<Roster::Change> Roster::monitor(SteadyTime now) {
    std::vector<Change> changes;
    const std::lock_guard lock(mutex_);
    std::erase_if(servers_, [&](const auto& row) { return now - row.second.last > kForgotten; });
    for (auto& [id, server] : servers_) {
        const bool alive = is_alive(server, now);
        if (alive != server.alive) {
            server.alive = alive;
            changes.push_back({id, alive});
        }
    }
    return changes;
}

Roster::Counts Roster::counts(SteadyTime now) const {
    Counts out;
    const std::lock_guard lock(mutex_);
    for (const Dialled& peer : dialled_) {
        out.connected += peer.connected ? 1 : 0;
    }
    for (const auto& [id, server] : servers_) {
        ++(is_alive(server, now) ? out.alive : out.dead);
    }
    return out;
}

void Roster::report(plugin::Peers& out, SteadyTime now) const {
    const std::lock_guard lock(mutex_);
    const auto hear = [&](plugin::Peer& row, const Server& server) {
        row.alive = is_alive(server, now);
        row.silent = now - server.last;
        row.received = server.received;
    };
    std::set<std::string_view> told;
    for (std::size_t i = 0; i < dialled_.size(); ++i) {
        const std::string address = options_.peers[i].text();
        plugin::Peer row;
        row.address = address;
        row.server_id = dialled_[i].server_id;
        row.connected = dialled_[i].connected;
        row.sent = dialled_[i].sent;
        row.dropped = outbox_.dropped(i);
        row.queued = outbox_.queued(i);
        const auto server = servers_.find(dialled_[i].server_id);
        if (server != servers_.end() && told.insert(server->first).second) {
            hear(row, server->second);
        }
        out.add(row);
    }
    for (const auto& [id, server] : servers_) {
        if (!told.contains(id)) {
            plugin::Peer row;
            row.address = server.from;
            row.server_id = id;
            hear(row, server);
            out.add(row);
        }
    }
}

} // namespace queen::mesh
