#include "core/store/relay.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

namespace queen::store::test {
namespace {

sockaddr_un address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    return address;
}

void check(int result, const char* what) {
    if (result < 0) {
        throw std::system_error(errno, std::generic_category(), what);
    }
}

} // namespace

Relay::Relay(std::string listen_path, std::string server_path)
    : server_path_(std::move(server_path)), listener_(::socket(AF_UNIX, SOCK_STREAM, 0)),
      wake_(::eventfd(0, EFD_NONBLOCK)) {
    const sockaddr_un address = address_of(listen_path);
    check(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address), "bind");
    check(::listen(listener_, 16), "listen");
    thread_ = std::thread([this] { work(); });
}

Relay::~Relay() {
    stop_ = true;
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake_, &one, sizeof one);
    thread_.join();
    for (const Link& link : links_) {
        ::close(link.client);
        ::close(link.server);
    }
    ::close(listener_);
    ::close(wake_);
}

void Relay::go_silent() {
    const std::lock_guard lock(mutex_);
    for (Link& link : links_) {
        link.silent = true;
    }
}

bool Relay::pass(int from, int to, bool silent) {
    char buffer[16384];
    const ssize_t size = ::read(from, buffer, sizeof buffer);
    if (size <= 0) {
        return false;
    }
    return silent || ::send(to, buffer, static_cast<std::size_t>(size), MSG_NOSIGNAL) == size;
}

void Relay::work() {
    while (!stop_) {
        std::vector<pollfd> ends{{listener_, POLLIN, 0}, {wake_, POLLIN, 0}};
        {
            const std::lock_guard lock(mutex_);
            for (const Link& link : links_) {
                ends.push_back({link.client, POLLIN, 0});
                ends.push_back({link.server, POLLIN, 0});
            }
        }
        ::poll(ends.data(), ends.size(), -1);
        const std::lock_guard lock(mutex_);
        for (std::size_t i = (ends.size() - 2) / 2; i-- > 0;) {
            Link& link = links_[i];
            const bool alive =
                (ends[2 + 2 * i].revents == 0 || pass(link.client, link.server, link.silent)) &&
                (ends[3 + 2 * i].revents == 0 || pass(link.server, link.client, link.silent));
            if (!alive) {
                ::close(link.client);
                ::close(link.server);
                links_.erase(links_.begin() + static_cast<std::ptrdiff_t>(i));
            }
        }
        if (ends[0].revents != 0) {
            const int client = ::accept(listener_, nullptr, nullptr);
            const int server = ::socket(AF_UNIX, SOCK_STREAM, 0);
            const sockaddr_un address = address_of(server_path_);
            if (client >= 0 && ::connect(server, reinterpret_cast<const sockaddr*>(&address),
                                         sizeof address) == 0) {
                links_.push_back({client, server});
            } else {
                ::close(client);
                ::close(server);
            }
        }
    }
}

} // namespace queen::store::test
