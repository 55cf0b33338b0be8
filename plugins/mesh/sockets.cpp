#include "sockets.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>

namespace queen::mesh {
namespace {

void set_flag(int fd, int level, int option, int value) noexcept {
    // Refused at worst, and then hints come later or a dead peer is noticed later.
    static_cast<void>(setsockopt(fd, level, option, &value, sizeof value));
}

std::uint16_t port_of(int fd) noexcept {
    Endpoint own;
    own.size = sizeof own.address;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&own.address), &own.size) != 0) {
        return 0;
    }
    const auto* at = &own.address;
    return ntohs(at->ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(at)->sin6_port
                                           : reinterpret_cast<const sockaddr_in*>(at)->sin_port);
}

std::string text_of(const Endpoint& endpoint) {
    std::array<char, NI_MAXHOST> host{};
    std::array<char, NI_MAXSERV> port{};
    if (getnameinfo(reinterpret_cast<const sockaddr*>(&endpoint.address), endpoint.size,
                    host.data(), host.size(), port.data(), port.size(),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
        return "?";
    }
    const bool v6 = endpoint.address.ss_family == AF_INET6;
    return std::string(v6 ? "[" : "") + host.data() + (v6 ? "]:" : ":") + port.data();
}

Flow flow_of(int error) noexcept {
    return error == EAGAIN || error == EWOULDBLOCK ? Flow::blocked : Flow::closed;
}

} // namespace

std::string error_text(int error) {
    return std::generic_category().message(error);
}

std::string host_of(const Endpoint& endpoint) {
    constexpr std::string_view kMapped = "::ffff:"; // IPv4 by a socket of IPv6
    std::array<char, NI_MAXHOST> host{};
    if (getnameinfo(reinterpret_cast<const sockaddr*>(&endpoint.address), endpoint.size,
                    host.data(), host.size(), nullptr, 0, NI_NUMERICHOST) != 0) {
        return {};
    }
    const std::string_view text(host.data());
    const bool mapped = text.starts_with(kMapped) && text.find('.') != text.npos;
    return std::string(mapped ? text.substr(kMapped.size()) : text);
}

Resolved resolve(const Address& address, bool numeric) {
    addrinfo wanted{};
    wanted.ai_socktype = SOCK_STREAM;
    wanted.ai_flags = AI_NUMERICSERV | (numeric ? AI_NUMERICHOST : 0);
    addrinfo* raw = nullptr;
    const int error =
        getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &wanted, &raw);
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(raw, freeaddrinfo);
    Resolved out;
    if (error != 0) {
        out.error = gai_strerror(error);
        return out;
    }
    for (const addrinfo* at = list.get(); at != nullptr; at = at->ai_next) {
        Endpoint endpoint;
        endpoint.size = std::min<socklen_t>(at->ai_addrlen, sizeof endpoint.address);
        std::memcpy(&endpoint.address, at->ai_addr, endpoint.size);
        out.endpoints.push_back(endpoint);
    }
    if (out.endpoints.empty()) {
        out.error = "the name has no address";
    }
    return out;
}

Descriptor listen_at(const Endpoint& endpoint, std::uint16_t& port, std::string& error) {
    Descriptor socket(
        ::socket(endpoint.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket) {
        error = error_text(errno);
        return {};
    }
    set_flag(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
    if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&endpoint.address), endpoint.size) !=
            0 ||
        listen(socket.get(), SOMAXCONN) != 0) {
        error = error_text(errno);
        return {};
    }
    port = port_of(socket.get());
    return socket;
}

Descriptor connect_to(const Endpoint& endpoint, Nanoseconds user_timeout, std::string& error) {
    Descriptor socket(
        ::socket(endpoint.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket) {
        error = error_text(errno);
        return {};
    }
    set_flag(socket.get(), IPPROTO_TCP, TCP_NODELAY, 1);
    const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(user_timeout);
    set_flag(socket.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(milliseconds.count()));
    if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&endpoint.address),
                endpoint.size) != 0 &&
        errno != EINPROGRESS) {
        error = error_text(errno);
        return {};
    }
    return socket;
}

int connect_error(const Descriptor& socket) noexcept {
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
        return errno;
    }
    return error;
}

Accepted accept_from(const Descriptor& listener) {
    Accepted out;
    Endpoint from;
    from.size = sizeof from.address;
    out.socket = Descriptor(accept4(listener.get(), reinterpret_cast<sockaddr*>(&from.address),
                                    &from.size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (out.socket) {
        set_flag(out.socket.get(), IPPROTO_TCP, TCP_NODELAY, 1);
        out.from = text_of(from);
        out.host = host_of(from);
    } else {
        out.exhausted = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    }
    return out;
}

Flow receive(const Descriptor& socket, std::span<char> into, std::size_t& size) noexcept {
    size = 0;
    ssize_t got = 0;
    do {
        got = recv(socket.get(), into.data(), into.size(), 0);
    } while (got < 0 && errno == EINTR);
    if (got > 0) {
        size = static_cast<std::size_t>(got);
        return Flow::done;
    }
    return got == 0 ? Flow::closed : flow_of(errno);
}

Flow send(const Descriptor& socket, std::span<const std::string_view> pieces,
          std::size_t& size) noexcept {
    constexpr std::size_t kMost = 64;
    std::array<iovec, kMost> parts;
    const std::size_t count = std::min(pieces.size(), kMost);
    for (std::size_t i = 0; i < count; ++i) {
        // sendmsg does not write to it.
        parts[i] = {const_cast<char*>(pieces[i].data()), pieces[i].size()};
    }
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = count;
    size = 0;
    ssize_t sent = 0;
    do {
        sent = sendmsg(socket.get(), &message, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent >= 0) {
        size = static_cast<std::size_t>(sent);
        return Flow::done;
    }
    return flow_of(errno);
}

} // namespace queen::mesh
