#include "cluster/tcp_proxy.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

namespace queen::test {
namespace {

constexpr std::size_t kMostHeld = 1u << 20; ///< of one way; beyond, its sender has to wait

sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

void must(int result, const char* call) {
    if (result < 0) {
        throw std::runtime_error(std::string(call) + ": " + std::strerror(errno));
    }
}

std::uint16_t port_of(int fd) {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    must(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), "getsockname");
    return ntohs(address.sin_port);
}

app::UniqueFd listening() {
    app::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    must(fd.get(), "socket");
    const auto address = loopback(0);
    must(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), "bind");
    must(::listen(fd.get(), 64), "listen");
    return fd;
}

/// The other end sees a reset.
void reset(app::UniqueFd& fd) {
    if (fd) {
        const linger hard{.l_onoff = 1, .l_linger = 0};
        ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
        fd = app::UniqueFd();
    }
}

void no_delay(const app::UniqueFd& fd) {
    const int on = 1;
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

} // namespace

std::uint16_t free_port() {
    return port_of(listening().get());
}

TcpProxy::TcpProxy(std::uint16_t target)
    : target_(target), listener_(listening()), wakeup_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    must(wakeup_.get(), "eventfd");
    port_ = port_of(listener_.get());
    thread_ = std::thread([this] { run(); });
}

TcpProxy::~TcpProxy() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    wake();
    thread_.join();
}

void TcpProxy::wake() const {
    const std::uint64_t one = 1;
    static_cast<void>(::write(wakeup_.get(), &one, sizeof one));
}

void TcpProxy::set(Mode mode) {
    {
        const std::lock_guard lock(mutex_);
        const Mode before = std::exchange(mode_, mode);
        for (auto& pair : pairs_) {
            switch (mode) {
            case Mode::cut:
                pair.broken = true;
                break;
            case Mode::half_open:
                reset(pair.target);
                break;
            case Mode::pass:
                // Nobody is behind it: it never was connected, or is half open.
                pair.broken = pair.broken || !pair.target;
                break;
            case Mode::black_hole:
                pair.broken = pair.broken || before == Mode::half_open;
                break;
            }
        }
    }
    wake();
}

void TcpProxy::pass() {
    set(Mode::pass);
}
void TcpProxy::cut() {
    set(Mode::cut);
}
void TcpProxy::black_hole() {
    set(Mode::black_hole);
}
void TcpProxy::half_open() {
    set(Mode::half_open);
}

void TcpProxy::delay(std::chrono::milliseconds time) {
    const std::lock_guard lock(mutex_);
    delay_ = time;
}

void TcpProxy::accept_one() {
    app::UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) {
        return;
    }
    if (mode_ == Mode::cut) {
        reset(fd);
        return;
    }
    no_delay(fd);
    auto& pair = pairs_.emplace_back();
    pair.dialler = std::move(fd);
    if (mode_ == Mode::pass && !connect_target(pair)) {
        pair.broken = true;
    }
}

bool TcpProxy::connect_target(Pair& pair) const {
    app::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto address = loopback(target_);
    if (!fd ||
        ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        return false;
    }
    no_delay(fd);
    pair.target = std::move(fd);
    return true;
}

void TcpProxy::receive(const app::UniqueFd& from, Way& way, Pair& pair) {
    std::array<char, 65'536> buffer{};
    const auto got = ::recv(from.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0) {
        pair.broken = pair.broken || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
        return;
    }
    if (got == 0) {
        way.ended = true;
        return;
    }
    if (mode_ == Mode::half_open) {
        return; // to nobody
    }
    way.pieces.push_back({std::chrono::steady_clock::now() + delay_,
                          std::string(buffer.data(), static_cast<std::size_t>(got))});
    way.held += static_cast<std::size_t>(got);
}

void TcpProxy::send(const app::UniqueFd& to, Way& way, Pair& pair, Time now) {
    while (to && !way.pieces.empty() && way.pieces.front().due <= now) {
        auto& bytes = way.pieces.front().bytes;
        const auto sent = ::send(to.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0) {
            pair.broken =
                pair.broken || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
            return;
        }
        way.held -= static_cast<std::size_t>(sent);
        bytes.erase(0, static_cast<std::size_t>(sent));
        if (!bytes.empty()) {
            return;
        }
        way.pieces.pop_front();
    }
    if (to && way.pieces.empty() && way.ended) {
        ::shutdown(to.get(), SHUT_WR);
    }
}

void TcpProxy::run() {
    std::vector<pollfd> watched;
    while (true) {
        int timeout = -1;
        {
            const std::lock_guard lock(mutex_);
            if (stopping_) {
                return;
            }
            const Time now = std::chrono::steady_clock::now();
            watched = {{listener_.get(), POLLIN, 0}, {wakeup_.get(), POLLIN, 0}};
            for (auto pair = pairs_.begin(); pair != pairs_.end();) {
                if (mode_ == Mode::pass) {
                    send(pair->target, pair->to_target, *pair, now);
                    send(pair->dialler, pair->to_dialler, *pair, now);
                }
                const bool over = pair->to_target.ended && pair->to_dialler.ended &&
                                  pair->to_target.pieces.empty() && pair->to_dialler.pieces.empty();
                if (pair->broken || over) {
                    reset(pair->dialler);
                    reset(pair->target);
                    pair = pairs_.erase(pair);
                    continue;
                }
                for (const auto* ends : {&pair->dialler, &pair->target}) {
                    Way& in = ends == &pair->dialler ? pair->to_target : pair->to_dialler;
                    Way& out = ends == &pair->dialler ? pair->to_dialler : pair->to_target;
                    short events = 0;
                    if (mode_ != Mode::black_hole && !in.ended && in.held < kMostHeld) {
                        events |= POLLIN;
                    }
                    if (mode_ == Mode::pass && !out.pieces.empty()) {
                        const auto due = out.pieces.front().due;
                        if (due <= now) {
                            events |= POLLOUT;
                        } else {
                            const auto wait =
                                std::chrono::ceil<std::chrono::milliseconds>(due - now).count();
                            timeout = timeout < 0 ? static_cast<int>(wait)
                                                  : std::min(timeout, static_cast<int>(wait));
                        }
                    }
                    // An end that is not watched: its hang-up would be reported all the same.
                    watched.push_back({events == 0 ? -1 : ends->get(), events, 0});
                }
                ++pair;
            }
        }
        if (::poll(watched.data(), watched.size(), timeout) < 0 && errno != EINTR) {
            return;
        }
        const std::lock_guard lock(mutex_);
        std::uint64_t count = 0;
        static_cast<void>(::read(wakeup_.get(), &count, sizeof count));
        // Only this thread adds or removes pairs, so they are those that were watched.
        auto at = watched.begin() + 2;
        for (auto& pair : pairs_) {
            const auto dialler = *at++;
            const auto target = *at++;
            constexpr short kReadable = POLLIN | POLLHUP | POLLERR;
            if ((dialler.revents & kReadable) != 0 && dialler.fd == pair.dialler.get() &&
                !pair.to_target.ended) {
                receive(pair.dialler, pair.to_target, pair);
            }
            if ((target.revents & kReadable) != 0 && target.fd == pair.target.get() &&
                !pair.to_dialler.ended) {
                receive(pair.target, pair.to_dialler, pair);
            }
        }
        if ((watched[0].revents & POLLIN) != 0) {
            accept_one();
        }
    }
}

} // namespace queen::test
