#pragma once
#include "base/clock.hpp"
#include "base/histogram.hpp"
#include "base/result.hpp"
#include "http/message.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace queen::http {

/// Stated limits of the front; all in YAML under `limits`, with the reasons in docs/http-api.md.
struct Limits {
    std::size_t head_bytes = 16 * 1024;
    std::size_t uri_bytes = 8 * 1024;
    std::size_t fields = 100;
    std::size_t body_bytes = 64u << 20;
    std::size_t bodies_in_flight_bytes = 512u << 20;
    std::size_t connections = 0;                 ///< 0: what the descriptor limit allows
    std::chrono::milliseconds head_time{10'000}; ///< first byte of a request to its last head byte
    std::chrono::milliseconds body_progress_time{30'000};
    std::chrono::milliseconds idle_time{75'000};
    std::chrono::milliseconds write_time{60'000}; ///< without progress
};

/// Counted since the start; `open` and what a comment says so are levels.
struct FrontStatistics {
    std::uint64_t accepted = 0;     ///< connections taken in
    std::uint64_t open = 0;         ///< of those, still there
    std::uint64_t refused = 0;      ///< connections told 503: over the limit, or no descriptor left
    std::uint64_t requests = 0;     ///< handed to the handler
    std::uint64_t bad_requests = 0; ///< refused by the gate or a limit of size or bodies
    std::uint64_t timed_out = 0;    ///< connections ended by a limit of time, idle ones included
    /// Levels: connections by what they do, those that are told 503 included.
    std::uint64_t reading = 0, in_flight = 0, answering = 0, lingering = 0;
    std::uint64_t body_bytes = 0; ///< level: bodies being received or worked on
    std::vector<std::pair<int, std::uint64_t>> responses; ///< by status, those that were given
    /// From the first answer of a batch to the loop's taking it up.
    LatencyHistogram::Snapshot lag;
};

/// The network: one thread, one epoll set, no blocking call. Reads whole requests past the byte
/// gate (http/front/gate.hpp), parses them with Poco over memory, hands them to the handler, writes
/// answers. Connections are addressed by slot and generation, never by descriptor.
/// One request per connection is out at a time; what a client sends ahead waits in its socket.
class Front {
public:
    /// Binds and listens; serves after start(). `address` is numeric ("127.0.0.1", "::1", "[::1]"),
    /// a host name, or "*" for every address. Raises the descriptor limit to the hard one.
    /// `handler` and `clock` must outlive the front; the clock drives every limit of time.
    /// @errors unavailable with one clear line (port taken, address not ours)
    static Result<std::unique_ptr<Front>> listen(const std::string& address, std::uint16_t port,
                                                 Limits limits, Handler& handler,
                                                 const Clock& clock = SystemClock::instance());
    virtual ~Front() = default;
    virtual void start() = 0;
    virtual std::uint16_t port() const noexcept = 0; ///< the real one when 0 was asked for
    /// Stops accepting and reading (a request half read is told 503), lets answers in flight go out
    /// for at most `grace`, then closes. Waiters that are still there then are gone: their watches
    /// and `undelivered` run. Exchanges may outlive the front: an answer that comes after it runs
    /// its `undelivered` at once, on the caller's thread. @thread the owner's
    virtual void stop(std::chrono::milliseconds grace) = 0;
    virtual FrontStatistics statistics() const = 0;
};

} // namespace queen::http
