// http/front/listener.hpp - addresses to listening sockets, with one clear line when it fails.
#pragma once
#include "base/result.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace queen::http {

/// A descriptor that closes itself.
class Descriptor {
public:
    Descriptor() = default;
    explicit Descriptor(int value) noexcept : value_(value) {}
    Descriptor(Descriptor&& other) noexcept;
    Descriptor& operator=(Descriptor&& other) noexcept;
    ~Descriptor() { reset(); }
    int get() const noexcept { return value_; }
    explicit operator bool() const noexcept { return value_ >= 0; }
    void reset() noexcept;

private:
    int value_ = -1;
};

struct Listeners {
    std::vector<Descriptor> sockets;
    std::uint16_t port = 0; ///< the real one
};

/// Binds every address that `address` stands for: a numeric one, "[::1]", a host name, or "*" and
/// "" for all. Address families this machine lacks are skipped as long as one socket remains.
/// @errors unavailable: "port 6632 on 127.0.0.1 is in use" and the like
Result<Listeners> open_listeners(const std::string& address, std::uint16_t port);

/// Raises the soft limit of descriptors to the hard one. @return the limit in force
std::size_t raise_descriptor_limit() noexcept;

} // namespace queen::http
