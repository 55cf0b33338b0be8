// meshpg/session.hpp - one session of libpq that never waits: each call does what can be done now.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct pg_conn;

namespace queen::meshpg {

class Session {
public:
    enum class State { closed, connecting, busy, idle };

    Session() = default;
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    /// Begins to connect, and to listen afterwards. Names in the connection string are resolved by
    /// libpq, which waits for the name service.
    void open(const std::string& conninfo, const std::string& channel);
    void close();
    State state() const noexcept { return state_; }
    int socket() const; ///< -1 when closed
    bool wants_write() const noexcept { return wants_write_; }

    /// Something may have happened on the socket. @return false when the session is over; error()
    /// says why
    bool advance(const std::function<void(std::string_view payload)>& heard);
    /// Only while idle. @return as advance()
    bool notify(const std::string& channel, const std::vector<std::string>& payloads);
    const std::string& error() const noexcept { return error_; }

private:
    bool poll_connect();
    bool fail();
    bool flush();

    struct Closer {
        void operator()(pg_conn* connection) const;
    };
    std::unique_ptr<pg_conn, Closer> connection_;
    std::string channel_;
    std::string error_;
    State state_ = State::closed;
    bool wants_write_ = false;
};

} // namespace queen::meshpg
