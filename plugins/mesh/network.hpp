// mesh/network.hpp - all connections of the mesh, one turn at a time. Knows no thread: Mesh runs it
// on one, tests by hand.
#pragma once
#include "context.hpp"
#include "incoming.hpp"
#include "outgoing.hpp"
#include "resolver.hpp"
#include "shared/wakeup.hpp"

#include <queen/plugin/mesh.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace queen::mesh {

/// One turn: what is due; wait; serve what is ready; flush coalesced hints; write what waits.
/// Locks: mail_mutex_ is a leaf, held to append names that were resolved.
/// @thread its owner's, but for what is tagged
class Network {
public:
    /// @errors throws when the kernel gives no epoll set
    Network(const Options& options, const Clock& clock, plugin::MeshHost& host, const Log& log,
            Resolver& resolver, std::uint64_t seed);
    ~Network();
    Network(const Network&) = delete;
    Network& operator=(const Network&) = delete;

    /// Listens and begins to dial. An address that cannot be had is a warning (ME-2).
    void open();
    /// @param most to wait for; less when something is due
    void turn(Nanoseconds most);
    /// Writes what waits for peers that are connected, and hears nothing more: the last thing
    /// before close(). Waits only while a peer's buffer is full, and for `most` in all.
    void drain(Nanoseconds most);
    void close_all();                        ///< after a fault; connections come back by themselves
    void close();                            ///< for good: nothing is heard or sent any more
    void wake() noexcept { wakeup_.wake(); } ///< ends a turn's wait. @thread any

    std::uint16_t port() const noexcept { return port_; }        ///< 0: not listening
    Outbox& outbox() noexcept { return outbox_; }                ///< @thread as the outbox says
    const Roster& roster() const noexcept { return roster_; }    ///< @thread any
    const Figures& figures() const noexcept { return figures_; } ///< @thread any
    Figures& figures() noexcept { return figures_; }             ///< @thread any

private:
    void listen();
    void tick(SteadyTime now);
    Nanoseconds until_due(SteadyTime now, Nanoseconds most) const;
    void serve(const epoll_event& event, SteadyTime now);
    void dial_back(const Incoming& connection, SteadyTime now);
    void accept_all(SteadyTime now);
    bool make_room(SteadyTime now);
    void take_mail(SteadyTime now);
    void flush(SteadyTime now);
    void drop(Poller::Key key);
    void drop_largest(SteadyTime now);

    const Options& options_;
    const Clock& clock_;
    const Log& log_;
    Resolver& resolver_;
    Figures figures_;
    shared::Wakeup wakeup_;
    Outbox outbox_;
    Roster roster_;
    Poller poller_;
    Complaints complaints_;
    Namesakes namesakes_;
    Budgets budgets_;
    Context context_;
    Poller::Key wakeup_key_ = 0, listener_key_ = 0;
    Descriptor listener_;
    std::uint16_t port_ = 0;
    bool listener_paused_ = false;
    SteadyTime listen_again_;
    SteadyTime flush_at_ = SteadyTime::max();
    SteadyTime monitor_at_ = SteadyTime::min();
    bool busy_ = false; ///< something stopped for others' sake: the next turn does not wait
    std::vector<std::unique_ptr<Outgoing>> outgoing_;
    std::unordered_map<Poller::Key, std::unique_ptr<Incoming>> incoming_;
    std::size_t memory_ = 0; ///< of incoming_'s buffers

    std::mutex mail_mutex_;
    std::vector<std::pair<std::uint64_t, Resolved>> mail_;
};

} // namespace queen::mesh
