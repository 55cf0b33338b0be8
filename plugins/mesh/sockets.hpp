// mesh/sockets.hpp - the few calls of the socket interface that the mesh needs. Nothing here blocks
// but what says so.
#pragma once
#include "options.hpp"
#include "shared/descriptor.hpp"

#include <queen/plugin/types.hpp>

#include <sys/socket.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace queen::mesh {

using shared::Descriptor;

/// Where a socket can connect to or listen at.
struct Endpoint {
    sockaddr_storage address{};
    socklen_t size = 0;
};

/// Its address as a number; one of IPv4 is the same whatever socket it came by.
std::string host_of(const Endpoint& endpoint);

struct Resolved {
    std::vector<Endpoint> endpoints; ///< in the order of preference
    std::string error;               ///< when there is none
};

/// May block for as long as the name service takes, unless `numeric`.
Resolved resolve(const Address& address, bool numeric);

/// Bound and listening, or none with the reason. @param port what it listens at
Descriptor listen_at(const Endpoint& endpoint, std::uint16_t& port, std::string& error);

/// Under way, or none with the reason. What was written and is not acknowledged for `user_timeout`
/// ends the connection, so that a peer behind a cut line is noticed.
Descriptor connect_to(const Endpoint& endpoint, Nanoseconds user_timeout, std::string& error);
/// What became of a connect that is over: 0, or an errno.
int connect_error(const Descriptor& socket) noexcept;

struct Accepted {
    Descriptor socket;
    std::string from; ///< host:port
    std::string host; ///< without the port, as host_of()
    bool exhausted =
        false; ///< no descriptors or memory are left; else no socket means nobody waits
};
Accepted accept_from(const Descriptor& listener);

enum class Flow { done, blocked, closed };
/// One receive. @param size received, 0 unless done
Flow receive(const Descriptor& socket, std::span<char> into, std::size_t& size) noexcept;
/// One send of several pieces. @param size sent, 0 unless done
Flow send(const Descriptor& socket, std::span<const std::string_view> pieces,
          std::size_t& size) noexcept;

std::string error_text(int error);

} // namespace queen::mesh
