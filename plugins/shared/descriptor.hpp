// shared/descriptor.hpp - a descriptor that is closed with its owner.
#pragma once
#include <unistd.h>

#include <utility>

namespace queen::shared {

class Descriptor {
public:
    Descriptor() = default;
    explicit Descriptor(int fd) noexcept : fd_(fd) {}
    Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Descriptor() {
        if (fd_ >= 0) {
            close(fd_);
        }
    }
    int get() const noexcept { return fd_; }
    explicit operator bool() const noexcept { return fd_ >= 0; }
    void reset() noexcept { Descriptor gone(std::exchange(fd_, -1)); }

private:
    int fd_ = -1;
};

} // namespace queen::shared
