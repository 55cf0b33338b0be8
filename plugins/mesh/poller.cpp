#include "poller.hpp"

#include <cerrno>
#include <system_error>

namespace queen::mesh {
namespace {

[[noreturn]] void fail(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

} // namespace

Poller::Poller() : set_(epoll_create1(EPOLL_CLOEXEC)) {
    if (!set_) {
        fail("epoll_create1");
    }
}

Poller::Key Poller::add(const Descriptor& descriptor, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = ++last_;
    if (epoll_ctl(set_.get(), EPOLL_CTL_ADD, descriptor.get(), &event) != 0) {
        fail("epoll_ctl");
    }
    return last_;
}

void Poller::change(const Descriptor& descriptor, Key key, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = key;
    if (epoll_ctl(set_.get(), EPOLL_CTL_MOD, descriptor.get(), &event) != 0) {
        fail("epoll_ctl");
    }
}

std::span<const epoll_event> Poller::wait(int timeout_ms) {
    const int count =
        epoll_wait(set_.get(), ready_.data(), static_cast<int>(ready_.size()), timeout_ms);
    if (count < 0 && errno != EINTR) {
        fail("epoll_wait");
    }
    return std::span<const epoll_event>(ready_).first(
        static_cast<std::size_t>(count < 0 ? 0 : count));
}

} // namespace queen::mesh
