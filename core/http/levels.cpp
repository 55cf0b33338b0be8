// The table of levels, beside the table of routes. Of two lines that fit a route the earlier wins.
#include "http/levels.hpp"

#include <string_view>

namespace queen::http {
namespace {

using auth::Level;

struct Line {
    std::string_view method; ///< "*": every method
    std::string_view path;   ///< a pattern, or what patterns under it begin with
    Level level;
};

constexpr Line kLines[] = {
    {"*", "/auth", Level::open},
    {"GET", "/openapi.json", Level::open},
    {"GET", "/health", Level::page},
    {"GET", "/metrics", Level::page}, // and /metrics/prometheus

    {"*", "/api/v1/system", Level::admin},
    {"*", "/internal", Level::admin},
    {"*", "/api/v1/stats/refresh", Level::admin},
    {"DELETE", "/api/v1/consumer-groups", Level::admin},
    {"DELETE", "/api/v1/resources/queues", Level::admin},
    {"DELETE", "/api/v1/resources/tenant", Level::admin},

    {"GET", "/status", Level::read_only},
    {"GET", "/api/v1/status", Level::read_only},
    {"GET", "/api/v1/analytics", Level::read_only},
    {"GET", "/api/v1/resources", Level::read_only},
    {"GET", "/api/v1/messages", Level::read_only},
    {"GET", "/api/v1/consumer-groups", Level::read_only},
    {"GET", "/api/v1/dlq", Level::read_only},
    {"GET", "/api/v1/traces", Level::read_only},
    {"GET", "/api/v1/kv", Level::read_only},
    {"GET", "/api/v1/timers", Level::read_only},
    {"GET", "/api/v1/ephemeral/queues", Level::read_only},
    {"POST", "/api/v1/fetch", Level::read_only},
    {"POST", "/streams/v1/state/get", Level::read_only},

    {"POST", "/api/v1/push", Level::write_only},
    {"POST", "/api/v1/timers", Level::write_only},
    {"POST", "/api/v1/ephemeral/push", Level::write_only},
};

bool fits(const Line& line, const Route& route) {
    return (line.method == "*" || line.method == route.method) &&
           route.pattern.starts_with(line.path) &&
           (route.pattern.size() == line.path.size() || route.pattern[line.path.size()] == '/');
}

} // namespace

Level level_of(const Route& route) {
    for (const Line& line : kLines) {
        if (fits(line, route)) {
            return line.level;
        }
    }
    return Level::read_write;
}

} // namespace queen::http
