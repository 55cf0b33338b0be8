// mesh/poller.hpp - an epoll set. Each registration has a key of its own for good, so that an event
// of a descriptor that was closed and whose number is in use again reaches nobody.
#pragma once
#include "sockets.hpp"

#include <sys/epoll.h>

#include <array>
#include <cstdint>
#include <span>

namespace queen::mesh {

class Poller {
public:
    using Key = std::uint64_t;
    static constexpr std::uint32_t kRead = EPOLLIN, kWrite = EPOLLOUT;

    Poller(); ///< @errors throws std::system_error
    Key add(const Descriptor& descriptor, std::uint32_t events); ///< @errors throws likewise
    void change(const Descriptor& descriptor, Key key, std::uint32_t events);
    /// @return what is ready, until the next call; nothing after `timeout_ms`
    std::span<const epoll_event> wait(int timeout_ms);

private:
    Descriptor set_;
    Key last_ = 0;
    std::array<epoll_event, 64> ready_{};
};

} // namespace queen::mesh
