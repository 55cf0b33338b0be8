// meshpg/channel.hpp - all that the mesh over NOTIFY does, one turn at a time. Knows no thread:
// MeshPg runs it on one, tests by hand.
//
//   away -> connecting -> listening (a session that sends and hears) -> away, with a longer wait
//
// Others are known by what they say. While none was heard within the dead threshold nothing but
// heartbeats is sent; a broker that hears a new one says its own heartbeat at once, so that both
// know of each other within one exchange.
#pragma once
#include "options.hpp"
#include "outbox.hpp"
#include "session.hpp"
#include "shared/counter.hpp"
#include "shared/hint_list.hpp"
#include "shared/namesakes.hpp"
#include "shared/servers.hpp"
#include "shared/wakeup.hpp"

#include <queen/plugin/mesh.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace queen::meshpg {

using Log = std::function<void(plugin::LogLevel, std::string_view)>;

using shared::Counter;

struct Figures {
    Counter notifications_sent, notifications_received;
    Counter hints_sent, hints_received;
    Counter dropped_full;  ///< hints: too many waited
    Counter dropped_stale; ///< hints: the session was lost, or nobody else listens any more
    Counter dropped_flood; ///< hints received beyond hints_per_second
    Counter bad;           ///< notifications: no JSON object, or without a server id
    Counter items_skipped; ///< received, of kinds we do not know or with names that cannot be
    Counter connects, connects_failed, reconnects;
    Counter faults; ///< exceptions in the mesh's own thread
    std::atomic<bool> connected{false};
};

/// Locks: servers_mutex_ is a leaf.
/// @thread its owner's, but for what is tagged
class Channel {
public:
    /// @param instance no other broker's; tells our own notifications from others'
    Channel(const Options& options, const Clock& clock, plugin::MeshHost& host, const Log& log,
            std::string instance, Session::Connect connect = Session::by_libpq);
    Channel(const Channel&) = delete;
    Channel& operator=(const Channel&) = delete;

    void turn(Nanoseconds most);
    /// Sends what waits: the last thing before close(). Waits for the database's answer to it, for
    /// `most` at most.
    void drain(Nanoseconds most);
    void close();
    void fault(const std::string& why);      ///< an exception went through turn()
    void wake() noexcept { wakeup_.wake(); } ///< ends a turn's wait. @thread any

    bool listened() const noexcept { return outbox_.listened(); } ///< @thread any
    void publish(std::span<const plugin::Hint> hints);            ///< @thread any
    void stats(plugin::Stats& out) const;                         ///< @thread any
    void peers(plugin::Peers& out) const;                         ///< @thread any
    const Figures& figures() const noexcept { return figures_; }  ///< @thread any
    std::size_t alive() const;                                    ///< other brokers. @thread any

private:
    struct Server {
        SteadyTime last;
        std::uint64_t received = 0;
        bool new_here = false; ///< said one thing since it came
        std::string instance, former;
    };

    void connect(SteadyTime now);
    void lose(const std::string& why, SteadyTime now);
    void serve(SteadyTime now);
    void hear(std::string_view payload, int sender, SteadyTime now);
    /// @return whether it may have said more than was heard
    bool meet(std::string_view server_id, std::string_view instance, int sender, SteadyTime now);
    void tell_of_namesake(const std::string& who, std::string_view instance, int sender);
    bool allowed(int sender, std::size_t hints, SteadyTime now);
    void send(SteadyTime now);
    void look_after(SteadyTime now);
    SteadyTime due() const;
    bool wait(Nanoseconds most); ///< @return whether the session's socket is ready

    const Options& options_;
    const Clock& clock_;
    plugin::MeshHost& host_;
    const Log& log_;
    const std::string head_; ///< of each payload, up to the first item
    const std::string instance_;
    Figures figures_;
    shared::Wakeup wakeup_;
    Outbox outbox_;
    Session session_;

    bool was_connected_ = false;
    bool listening_ = false;
    bool lost_ = false;           ///< hints for others, since they were told so
    std::uint64_t told_full_ = 0; ///< of dropped_full
    Nanoseconds retry_;
    SteadyTime retry_at_ = SteadyTime::min();
    SteadyTime patience_until_ = SteadyTime::max(); ///< while something is asked of the database
    SteadyTime connected_at_;
    SteadyTime heartbeat_at_ = SteadyTime::max();
    SteadyTime flush_at_ = SteadyTime::min(); ///< not before
    std::string told_error_;
    struct Allowance {
        double left; ///< hints
        SteadyTime filled;
    };
    std::map<int, Allowance> allowances_; ///< by the sender's session

    shared::Namesakes namesakes_;
    hint_json::Reading reading_;
    hint_json::HintList hints_;

    mutable std::mutex servers_mutex_;
    shared::Servers<Server> servers_;
};

} // namespace queen::meshpg
