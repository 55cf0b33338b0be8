// shared/wakeup.hpp - ends the wait of a thread that waits for descriptors.
#pragma once
#include "shared/descriptor.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

namespace queen::shared {

class Wakeup {
public:
    /// @errors std::system_error when the kernel gives no descriptor
    Wakeup() : event_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
        if (!event_) {
            throw std::system_error(errno, std::generic_category(), "eventfd");
        }
    }
    void wake() noexcept { ///< @thread any
        const std::uint64_t one = 1;
        // Fails only when the counter is full: then the wait ends anyway.
        static_cast<void>(write(event_.get(), &one, sizeof one));
    }
    void reset() noexcept { ///< the next wait does not end by what woke this one
        std::uint64_t count = 0;
        static_cast<void>(read(event_.get(), &count, sizeof count));
    }
    const Descriptor& descriptor() const noexcept { return event_; } ///< readable when woken

private:
    Descriptor event_;
};

} // namespace queen::shared
