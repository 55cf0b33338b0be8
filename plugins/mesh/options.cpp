#include "options.hpp"

#include "shared/hint_json.hpp"

#include <queen/plugin/common.hpp>

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>

namespace queen::mesh {
namespace {

using plugin::ConfigError;

constexpr std::string_view kBlanks = " \t\r\n";

std::string_view trimmed(std::string_view text) {
    const std::size_t from = text.find_first_not_of(kBlanks);
    if (from == text.npos) {
        return {};
    }
    return text.substr(from, text.find_last_not_of(kBlanks) - from + 1);
}

bool is_ipv4(const std::string& text) {
    in_addr address{};
    return inet_pton(AF_INET, text.c_str(), &address) == 1;
}

bool is_ipv6(const std::string& text) {
    in6_addr address{};
    return inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

bool is_host_name(std::string_view text) {
    constexpr std::size_t kLongest = 253; // RFC 1035, as text
    return !text.empty() && text.size() <= kLongest &&
           std::all_of(text.begin(), text.end(), [](unsigned char c) {
               return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_';
           });
}

class Entry {
public:
    Entry(std::string_view text, std::uint16_t default_port) : text_(text), port_(default_port) {}

    Address address() {
        std::string_view rest = text_;
        for (const std::string_view scheme : {"http://", "https://"}) {
            if (rest.starts_with(scheme)) {
                rest.remove_prefix(scheme.size());
            }
        }
        if (rest.ends_with('/')) {
            rest.remove_suffix(1);
        }
        if (rest.starts_with('[')) {
            return bracketed(rest);
        }
        const std::size_t colon = rest.find(':');
        if (colon != rest.rfind(':')) {
            return numeric_v6(rest, port_); // without a port
        }
        if (colon == rest.npos) {
            return named(rest, port_);
        }
        return named(rest.substr(0, colon), port_of(rest.substr(colon + 1)));
    }

private:
    [[noreturn]] void fail(const std::string& why) const {
        throw ConfigError("peers", "'" + std::string(text_) + "' " + why +
                                       "; allowed is host, host:port or [IPv6]:port");
    }
    Address bracketed(std::string_view rest) const {
        const std::size_t end = rest.find(']');
        if (end == rest.npos) {
            fail("has no closing bracket");
        }
        const std::string_view after = rest.substr(end + 1);
        if (!after.empty() && !after.starts_with(':')) {
            fail("has something else than a port behind its bracket");
        }
        return numeric_v6(rest.substr(1, end - 1),
                          after.empty() ? port_ : port_of(after.substr(1)));
    }
    Address numeric_v6(std::string_view host, std::uint16_t port) const {
        std::string text(host);
        if (!is_ipv6(text)) {
            fail("is no IPv6 address");
        }
        return {std::move(text), port};
    }
    Address named(std::string_view host, std::uint16_t port) const {
        if (!is_host_name(host)) {
            fail(host.empty() ? "has no host" : "has a host that cannot be a name");
        }
        return {std::string(host), port};
    }
    std::uint16_t port_of(std::string_view text) const {
        std::uint16_t port = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
        if (error != std::errc{} || end != text.data() + text.size() || port == 0) {
            fail("has a port that is not 1 to 65535");
        }
        return port;
    }

    std::string_view text_;
    std::uint16_t port_;
};

} // namespace

std::string Address::text() const {
    const bool v6 = host.find(':') != host.npos;
    return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::vector<Address> parse_peers(std::string_view list, std::uint16_t default_port) {
    std::vector<Address> out;
    while (!list.empty()) {
        const std::size_t comma = std::min(list.find(','), list.size());
        const std::string_view entry = trimmed(list.substr(0, comma));
        list.remove_prefix(std::min(comma + 1, list.size()));
        if (entry.empty()) {
            continue;
        }
        Address address = Entry(entry, default_port).address();
        if (std::find(out.begin(), out.end(), address) != out.end()) {
            throw ConfigError("peers", "'" + std::string(entry) + "' is named twice");
        }
        out.push_back(std::move(address));
    }
    return out;
}

std::string older_peers(std::string_view peers, std::string_view older) {
    if (!peers.empty() && !older.empty() && peers != older) {
        throw ConfigError("udp_peers",
                          "is the older name of peers, which is set to something else");
    }
    return std::string(peers.empty() ? older : peers);
}

std::size_t older_port(std::size_t port, std::size_t older) {
    if (older != 0 && port != kDefaultPort && port != older) {
        throw ConfigError("udp_notify_port",
                          "is the older name of port, which is set to something else");
    }
    return older != 0 ? older : port;
}

std::string parse_listen(std::string_view text) {
    std::string host(trimmed(text));
    if (host == "*") {
        return "0.0.0.0";
    }
    if (host == "localhost") {
        return "127.0.0.1";
    }
    if (host.starts_with('[') && host.ends_with(']')) {
        host = host.substr(1, host.size() - 2);
    }
    if (!is_ipv4(host) && !is_ipv6(host)) {
        throw ConfigError("listen", "'" + host +
                                        "' is no numeric address; allowed are those, localhost and "
                                        "* for all of this machine (the port is an option of its "
                                        "own)");
    }
    return host;
}

std::string read_secret(std::string_view text) {
    constexpr std::string_view kFile = "file:";
    if (!text.starts_with(kFile)) {
        return std::string(text);
    }
    const std::string path(text.substr(kFile.size()));
    if (!path.starts_with('/')) {
        throw ConfigError("secret", "'file:" + path + "' is no absolute path");
    }
    std::ifstream in(path, std::ios::binary);
    std::string content((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    content.erase(content.find_last_not_of(kBlanks) + 1);
    if (!in.is_open() || content.empty()) {
        throw ConfigError("secret", "the file '" + path + "' cannot be read, or is empty");
    }
    return content;
}

void check(const Options& options) {
    if (options.dead_threshold < 2 * options.heartbeat) {
        throw ConfigError("dead_threshold", "is less than two heartbeats, so that one late "
                                            "heartbeat would end a connection");
    }
    if (!hint_json::is_server_id(options.server_id)) {
        throw ConfigError("server_id", std::string(hint_json::kNoServerId));
    }
}

bool is_loopback(std::string_view numeric) noexcept {
    return numeric.starts_with("127.") || numeric == "::1";
}

} // namespace queen::mesh
