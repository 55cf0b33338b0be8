#include "http/front/listener.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>
#include <utility>

namespace queen::http {
namespace {

std::string where(const std::string& address, std::uint16_t port) {
    return "port " + std::to_string(port) + " on " + (address.empty() ? "*" : address);
}

Error bind_error(int error, const std::string& address, std::uint16_t port) {
    switch (error) {
    case EADDRINUSE:
        return {Errc::unavailable, where(address, port) + " is in use"};
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
        return {Errc::unavailable, address + " is not an address of this machine"};
    case EACCES:
        return {Errc::unavailable, where(address, port) + " needs more rights than this user has"};
    default:
        return {Errc::unavailable, where(address, port) + " cannot be listened on: " +
                                       std::generic_category().message(error)};
    }
}

void set_option(int socket, int level, int name, int value) {
    // A refusal costs a nicety, never correctness; bind and listen report what matters.
    static_cast<void>(::setsockopt(socket, level, name, &value, sizeof value));
}

void set_port(sockaddr& address, std::uint16_t port) {
    if (address.sa_family == AF_INET6) {
        reinterpret_cast<sockaddr_in6&>(address).sin6_port = htons(port);
    } else {
        reinterpret_cast<sockaddr_in&>(address).sin_port = htons(port);
    }
}

std::uint16_t bound_port(int socket) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
        return 0;
    }
    return ntohs(address.ss_family == AF_INET6
                     ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                     : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

/// True when an earlier entry of the list has the same address: resolvers repeat themselves.
bool repeated(const addrinfo* list, const addrinfo* info) {
    for (; list != info; list = list->ai_next) {
        if (list->ai_addrlen == info->ai_addrlen &&
            std::memcmp(list->ai_addr, info->ai_addr, info->ai_addrlen) == 0) {
            return true;
        }
    }
    return false;
}

/// @return the socket, or none and the errno in `error`
Descriptor listen_on(const addrinfo& info, std::uint16_t port, bool only_v6, int& error) {
    sockaddr_storage address{};
    std::memcpy(&address, info.ai_addr, info.ai_addrlen);
    set_port(reinterpret_cast<sockaddr&>(address), port);
    Descriptor socket(::socket(info.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket) {
        error = errno;
        return {};
    }
    set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1); // K33: a restart finds its port free
    if (info.ai_family == AF_INET6) {
        set_option(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, only_v6 ? 1 : 0);
    }
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), info.ai_addrlen) != 0 ||
        ::listen(socket.get(), SOMAXCONN) != 0) {
        error = errno;
        return {};
    }
    return socket;
}

} // namespace

Descriptor::Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
    if (this != &other) {
        reset();
        value_ = std::exchange(other.value_, -1);
    }
    return *this;
}

void Descriptor::reset() noexcept {
    if (value_ >= 0) {
        ::close(value_);
        value_ = -1;
    }
}

Result<Listeners> open_listeners(const std::string& address, std::uint16_t port) {
    std::string host = address;
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
        host = host.substr(1, host.size() - 2);
    }
    const bool everywhere = host.empty() || host == "*";
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    addrinfo* found = nullptr;
    const int failed = ::getaddrinfo(everywhere ? nullptr : host.c_str(), "0", &hints, &found);
    if (failed != 0) {
        return fail(Errc::unavailable,
                    "host name " + host + " cannot be resolved: " + ::gai_strerror(failed));
    }
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(found, &::freeaddrinfo);

    const bool several = list->ai_next != nullptr;
    Listeners result;
    result.port = port;
    int first_error = 0;
    for (const addrinfo* info = list.get(); info != nullptr; info = info->ai_next) {
        if (repeated(list.get(), info)) {
            continue;
        }
        int error = 0;
        // "::" alone means both families; beside an IPv4 socket it must keep to its own.
        Descriptor socket = listen_on(*info, result.port, several, error);
        if (socket) {
            result.port = bound_port(socket.get());
            result.sockets.push_back(std::move(socket));
            continue;
        }
        if (error != EADDRNOTAVAIL && error != EAFNOSUPPORT) {
            return fail(bind_error(error, host, result.port));
        }
        first_error = first_error == 0 ? error : first_error;
    }
    if (result.sockets.empty()) {
        return fail(bind_error(first_error, host, port));
    }
    return result;
}

std::size_t raise_descriptor_limit() noexcept {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return 1024;
    }
    if (limit.rlim_cur < limit.rlim_max) {
        rlimit raised = limit;
        raised.rlim_cur = raised.rlim_max;
        if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) {
            limit = raised;
        }
    }
    return static_cast<std::size_t>(std::min<rlim_t>(limit.rlim_cur, 1u << 30));
}

} // namespace queen::http
