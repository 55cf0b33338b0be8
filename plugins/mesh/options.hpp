// What an operator sets. plugin.cpp fills it from the option table.
#pragma once
#include <queen/plugin/types.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace queen::mesh {

struct Address {
    std::string host; ///< a name or a number; IPv6 without brackets
    std::uint16_t port = 0;
    std::string text() const; ///< host:port, IPv6 in brackets
    friend bool operator==(const Address&, const Address&) = default;
};

inline constexpr std::uint16_t kDefaultPort = 6633;

struct Options {
    bool enabled = true;
    Address listen{"127.0.0.1", kDefaultPort}; ///< a numeric address; port 0: any free one
    std::vector<Address> peers;
    std::string secret; ///< empty: open mode
    std::string server_id;
    std::string instance; ///< no other process's; empty: none is said, as brokers of old do
    bool require_challenge = true;
    Nanoseconds heartbeat = std::chrono::seconds(1);
    Nanoseconds dead_threshold = std::chrono::seconds(5);
    std::size_t connections = 256;                        ///< that are accepted at once
    std::size_t hints_per_second = 200'000;               ///< taken from one peer; it waits beyond
    std::size_t bytes_per_second = std::size_t{64} << 20; ///< likewise

    // Fixed for operators, smaller in tests.
    std::size_t send_queue = 1024; ///< frames for a peer (ME-9)
    std::size_t send_queue_bytes = std::size_t{32} << 20;
    std::size_t dirty = 200'000;                        ///< coalesced hints (ME-10)
    std::size_t dirty_frame = 50'000;                   ///< of them in one frame
    std::size_t receive_bytes = std::size_t{256} << 20; ///< buffers of all accepted connections
    Nanoseconds flush = std::chrono::milliseconds(20);
    Nanoseconds first_retry = std::chrono::milliseconds(250); ///< doubles up to last_retry (ME-8)
    Nanoseconds last_retry = std::chrono::seconds(5);
    Nanoseconds ourselves_again =
        std::chrono::seconds(60); ///< until a peer that is us is asked anew
};

/// `host[:port],…`; http:// and https:// are dropped, IPv6 stands in brackets when a port follows.
/// Blank entries are skipped.
/// @errors ConfigError of `peers` that names the entry. @source ME-17
std::vector<Address> parse_peers(std::string_view list, std::uint16_t default_port);

/// What stands under the older name of an option counts when the newer one was left alone.
/// @errors ConfigError when both are set and differ
std::string older_peers(std::string_view peers, std::string_view older);
std::size_t older_port(std::size_t port, std::size_t older);

/// A number, `localhost`, or `*` for every address. @errors ConfigError of `listen`
std::string parse_listen(std::string_view text);

/// The secret itself, or what the file says that `file:/path` names, without trailing blanks.
/// @errors ConfigError of `secret`, without the secret in it
std::string read_secret(std::string_view text);

/// @errors ConfigError for values that contradict each other
void check(const Options& options);

/// Whether this machine alone can reach the address.
bool is_loopback(std::string_view numeric) noexcept;

} // namespace queen::mesh
