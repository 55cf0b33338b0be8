#pragma once
#include "base/clock.hpp"
#include "base/result.hpp"
#include "http/message.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace queen::http {

/// Stated limits of the front (design record 0004; all in YAML under `limits`).
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

struct FrontStatistics {
    std::uint64_t accepted = 0, open = 0, refused = 0, requests = 0, bad_requests = 0,
                  timed_out = 0;
};

/// The network: one thread, one epoll set, no blocking call. Reads whole requests past the byte
/// gate (http/gate.hpp), parses them with Poco over memory, hands them to the handler, writes
/// answers. Connections are addressed by slot and generation, never by descriptor.
class Front {
public:
    /// Binds and listens; serves after start().
    /// @errors unavailable with one clear line (port taken, address not ours)
    static Result<std::unique_ptr<Front>> listen(const std::string& address, std::uint16_t port,
                                                 Limits limits, Handler& handler,
                                                 const Clock& clock = SystemClock::instance());
    virtual ~Front() = default;
    virtual void start() = 0;
    virtual std::uint16_t port() const noexcept = 0; ///< the real one when 0 was asked for
    /// Stops accepting and reading, lets answers in flight go out for at most `grace`, then closes.
    virtual void stop(std::chrono::milliseconds grace) = 0;
    virtual FrontStatistics statistics() const = 0;
};

} // namespace queen::http
