// mesh/roster.hpp - who the other brokers are and when they were heard of.
#pragma once
#include "options.hpp"
#include "outbox.hpp"
#include "shared/servers.hpp"

#include <queen/plugin/mesh.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace queen::mesh {

/// A configured peer is an address; who answers there is known once it said its id, which brokers
/// of the old protocol never do. Whom we hear is known by id. Both are one row where the ids agree.
/// Locks: mutex_ is taken before the outbox's.
class Roster {
public:
    Roster(const Options& options, const Outbox& outbox);

    // The mesh's thread.
    void set_connected(std::size_t peer, bool connected);
    void learnt(std::size_t peer, std::string_view server_id);
    /// Which configured peer said that id last.
    std::optional<std::size_t> find(std::string_view server_id) const;
    void sent(std::size_t peer, std::uint64_t frames);
    void heard(std::string_view server_id, std::string_view from, std::uint64_t frames,
               SteadyTime now);
    struct Change {
        std::string server_id;
        bool alive = false;
    };
    /// Who came to life or fell silent since the last call (ME-7).
    std::vector<Change> monitor(SteadyTime now);

    struct Counts {
        std::size_t connected = 0, alive = 0, dead = 0;
    };
    Counts counts(SteadyTime now) const;                   ///< @thread any
    void report(plugin::Peers& out, SteadyTime now) const; ///< @thread any

private:
    struct Dialled {
        bool connected = false;
        std::string server_id;
        std::uint64_t sent = 0;
    };
    struct Server {
        std::string from;
        SteadyTime last;
        std::uint64_t received = 0;
        bool alive = false; ///< as monitor() told last
    };
    bool is_alive(const Server& server, SteadyTime now) const noexcept;

    const Options& options_;
    const Outbox& outbox_;
    mutable std::mutex mutex_;
    std::vector<Dialled> dialled_;
    shared::Servers<Server> servers_;
};

} // namespace queen::mesh
