#include "roster.hpp"

#include <set>

namespace queen::mesh {

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

std::optional<std::size_t> Roster::find(std::string_view server_id) const {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < dialled_.size(); ++i) {
        if (dialled_[i].server_id == server_id) {
            return i;
        }
    }
    return std::nullopt;
}

void Roster::sent(std::size_t peer, std::uint64_t frames) {
    const std::lock_guard lock(mutex_);
    dialled_[peer].sent += frames;
}

void Roster::heard(std::string_view server_id, std::string_view from, std::uint64_t frames,
                   SteadyTime now) {
    const std::lock_guard lock(mutex_);
    Server& server = servers_.heard(server_id).row.second;
    server.from = from;
    server.last = now;
    server.received += frames;
}

bool Roster::is_alive(const Server& server, SteadyTime now) const noexcept {
    return now - server.last < options_.dead_threshold;
}

std::vector<Roster::Change> Roster::monitor(SteadyTime now) {
    std::vector<Change> changes;
    const std::lock_guard lock(mutex_);
    servers_.forget(now);
    for (auto& [id, server] : servers_.rows()) {
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
    out.alive = servers_.alive(now, options_.dead_threshold);
    out.dead = servers_.rows().size() - out.alive;
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
        const auto server = servers_.rows().find(dialled_[i].server_id);
        if (server != servers_.rows().end() && told.insert(server->first).second) {
            hear(row, server->second);
        }
        out.add(row);
    }
    for (const auto& [id, server] : servers_.rows()) {
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
