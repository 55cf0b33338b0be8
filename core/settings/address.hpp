#pragma once
#include "base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace queen::settings {

struct Address {
    std::string host; ///< IPv4 or IPv6 without brackets, or localhost
    std::uint16_t port = 0;
    bool loopback() const; ///< reachable from this machine only
};

/// `127.0.0.1:6632`, `[::1]:6632`, `localhost:0`. Names other than localhost are refused: where a
/// broker listens must not depend on a name service.
/// @errors invalid_argument
Result<Address> parse_address(std::string_view text);
std::string format_address(const Address& address);

} // namespace queen::settings
