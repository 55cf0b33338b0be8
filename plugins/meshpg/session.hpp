// meshpg/session.hpp - one session of libpq that never waits: each call does what can be done now.
//
// To connect may take long, and not only on the network: libpq asks the name service in the call,
// for one host after the other. So a thread of its own connects, and hands the session over. Who
// does not want it any more leaves that thread behind; it holds nothing of the mesh, and there is
// one at most.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

struct pg_conn;

namespace queen::meshpg {

class Session {
public:
    enum class State { closed, connecting, busy, idle };

    /// Returns a connection, good or bad, that the caller frees. May block.
    using Connect = std::function<pg_conn*(const std::string& conninfo)>;
    static pg_conn* by_libpq(const std::string& conninfo);

    /// @param wake called once for each open(), when there is something to advance() to. @thread
    /// any
    explicit Session(std::function<void()> wake, Connect connect = by_libpq);
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    /// Begins to connect, and to listen afterwards.
    /// @return false when an earlier attempt that was closed has not come back yet
    bool open(const std::string& conninfo, const std::string& channel);
    void close();
    State state() const noexcept { return state_; }
    int socket() const; ///< -1 when closed
    bool wants_write() const noexcept { return wants_write_; }

    /// Something may have happened on the socket. @return false when the session is over; error()
    /// says why
    /// @param heard gets each notification and the process id of the session that sent it
    bool advance(const std::function<void(std::string_view payload, int sender)>& heard);
    /// Only while idle. @return as advance()
    bool notify(const std::string& channel, const std::vector<std::string>& payloads);
    const std::string& error() const noexcept { return error_; }

private:
    struct Attempt; ///< shared with the thread that connects
    bool adopt();
    bool fail();
    bool flush();

    struct Closer {
        void operator()(pg_conn* connection) const;
    };
    const std::function<void()> wake_;
    const Connect connect_;
    std::shared_ptr<Attempt> attempt_; ///< the last one
    std::thread connecting_;
    std::unique_ptr<pg_conn, Closer> connection_;
    std::string channel_;
    std::string error_;
    State state_ = State::closed;
    bool wants_write_ = false;
};

} // namespace queen::meshpg
