#include "options.hpp"

#include "shared/hint_json.hpp"

#include <queen/plugin/common.hpp>

#include <algorithm>

namespace queen::meshpg {

using plugin::ConfigError;

void check(const Options& options) {
    constexpr std::size_t kLongest = 63; // an identifier of PostgreSQL
    const std::string& channel = options.channel;
    const auto plain = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    };
    if (channel.empty() || channel.size() > kLongest ||
        !std::all_of(channel.begin(), channel.end(), plain)) {
        throw ConfigError("channel",
                          "'" + channel + "' is no channel; allowed are 1 to 63 of a-z, 0-9 and _");
    }
    if (options.dead_threshold < 2 * options.heartbeat) {
        throw ConfigError("dead_threshold", "is less than two heartbeats, so that one late "
                                            "heartbeat would make a broker count as dead");
    }
    if (!hint_json::is_server_id(options.server_id)) {
        throw ConfigError("server_id", std::string(hint_json::kNoServerId));
    }
    if (options.conninfo.empty()) {
        throw ConfigError("", "this broker does not let plugins into its database");
    }
}

} // namespace queen::meshpg
