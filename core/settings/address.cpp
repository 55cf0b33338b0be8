#include "settings/address.hpp"

#include "base/text.hpp"
#include "settings/values.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>

namespace queen::settings {

bool Address::loopback() const {
    if (host == "localhost") {
        return true;
    }
    in_addr v4{};
    if (inet_pton(AF_INET, host.c_str(), &v4) == 1) {
        return (ntohl(v4.s_addr) >> 24) == 127;
    }
    in6_addr v6{};
    return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6) != 0;
}

Result<Address> parse_address(std::string_view text) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos || text.ends_with(']')) {
        return fail(Errc::invalid_argument, shown(text) + " has no port");
    }
    std::string_view host = text.substr(0, colon);
    const std::string_view port_text = text.substr(colon + 1);
    const bool digits = !port_text.empty() && port_text.size() <= 5 &&
                        std::all_of(port_text.begin(), port_text.end(),
                                    [](char c) { return c >= '0' && c <= '9'; });
    const auto port = digits ? parse_int(port_text) : std::nullopt;
    if (!port || *port > 65535) {
        return fail(Errc::invalid_argument, shown(text) + " has no port from 0 to 65535");
    }
    Address address;
    address.port = static_cast<std::uint16_t>(*port);
    const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
    address.host = bracketed ? host.substr(1, host.size() - 2) : host;
    in_addr v4{};
    in6_addr v6{};
    const bool ok = bracketed ? inet_pton(AF_INET6, address.host.c_str(), &v6) == 1
                              : address.host == "localhost" ||
                                    inet_pton(AF_INET, address.host.c_str(), &v4) == 1;
    if (!ok) {
        return fail(Errc::invalid_argument, shown(text) + " names no IP address");
    }
    return address;
}

std::string format_address(const Address& address) {
    const bool v6 = address.host.find(':') != std::string::npos;
    return (v6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

} // namespace queen::settings
