#pragma once
#include "app/child_process.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <mutex>
#include <string>
#include <thread>

namespace queen::test {

/// A link between two brokers that a test can spoil: it listens on a port of its own and passes
/// what comes to the port of its target, both ways.
/// Locks: `mutex_` is a leaf.
/// @thread any
class TcpProxy {
public:
    explicit TcpProxy(std::uint16_t target); ///< throws std::runtime_error
    ~TcpProxy();
    TcpProxy(const TcpProxy&) = delete;
    TcpProxy& operator=(const TcpProxy&) = delete;

    std::uint16_t port() const noexcept { return port_; }

    void pass(); ///< all is well again; what was swallowed meanwhile stays lost
    void cut();  ///< resets every connection, and each new one
    /// Nothing arrives at either end, and nobody is told: new connections are accepted, buffers
    /// fill up.
    void black_hole();
    /// The target's side is reset; whoever dialled goes on talking to nobody.
    void half_open();
    /// Each piece arrives that much later, in order.
    void delay(std::chrono::milliseconds time);

private:
    enum class Mode { pass, cut, black_hole, half_open };
    using Time = std::chrono::steady_clock::time_point;
    struct Piece {
        Time due;
        std::string bytes;
    };
    /// One way of a connection.
    struct Way {
        std::deque<Piece> pieces;
        std::size_t held = 0; ///< bytes in pieces
        bool ended = false;   ///< the sender has closed
    };
    struct Pair {
        app::UniqueFd dialler, target;
        Way to_target, to_dialler;
        bool broken = false;
    };

    void set(Mode mode);
    void wake() const;
    void run();
    // Requires mutex_, all of these.
    void accept_one();
    bool connect_target(Pair& pair) const;
    void receive(const app::UniqueFd& from, Way& way, Pair& pair);
    void send(const app::UniqueFd& to, Way& way, Pair& pair, Time now);

    const std::uint16_t target_;
    std::uint16_t port_ = 0;
    app::UniqueFd listener_, wakeup_;

    mutable std::mutex mutex_;
    Mode mode_ = Mode::pass;
    bool stopping_ = false;
    std::chrono::milliseconds delay_{0};
    std::list<Pair> pairs_;
    std::thread thread_;
};

/// A TCP port of the loopback that nobody uses; somebody may take it before you do.
std::uint16_t free_port();

} // namespace queen::test
