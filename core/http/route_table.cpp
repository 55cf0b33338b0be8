#include "http/route_table.hpp"

#include "base/assert.hpp"
#include "http/handlers.hpp"

#include <algorithm>

namespace queen::http {
namespace {

// What later routes wait for, as an answer names it.
constexpr std::string_view kPositions = "positions of consumer groups";
constexpr std::string_view kStatistics = "statistics and dashboards";
constexpr std::string_view kSystem = "maintenance and system switches";
constexpr std::string_view kTraces = "traces";
constexpr std::string_view kKeyValue = "the key-value store";
constexpr std::string_view kStreams = "streams";
constexpr std::string_view kEphemeral = "ephemeral queues";
constexpr std::string_view kFetch = "reading the log by offset";
constexpr std::string_view kLocks = "locks";
constexpr std::string_view kMesh =
    "hints over HTTP (brokers tell each other through a mesh plugin)";
constexpr std::string_view kConnectors = "connectors";
constexpr std::string_view kReplication =
    "replication inside the broker (PostgreSQL does that here)";
constexpr std::string_view kQuota = "quotas";

// The pop routes refuse HEAD: it would lease, or with autoAck consume, messages nobody is shown.
constexpr Route kRoutes[] = {
    {"POST", "/api/v1/push", push, {}},
    {"GET", "/api/v1/pop/queue/:queue", pop_wildcard, {}, false},
    {"GET", "/api/v1/pop/queue/:queue/partition/:partition", pop_pinned, {}, false},
    {"GET", "/api/v1/pop", pop_discovery, {}, false},
    {"POST", "/api/v1/ack", ack_one, {}},
    {"POST", "/api/v1/ack/batch", ack_batch, {}},
    {"POST", "/api/v1/lease/:leaseId/extend", extend_lease, {}},
    {"POST", "/api/v1/transaction", transaction, {}},
    {"POST", "/api/v1/configure", configure, {}},
    {"GET", "/api/v1/resources/queues", list_queues, {}},
    {"GET", "/api/v1/resources/queues/:queue", queue_detail, {}},
    {"DELETE", "/api/v1/resources/queues/:queue", delete_queue, {}},
    {"GET", "/api/v1/resources/queues/:queue/depth", queue_depth, {}},
    {"GET", "/api/v1/resources/queues/:queue/sizes", queue_sizes, {}},
    {"GET", "/api/v1/resources/overview", overview, {}},
    {"GET", "/api/v1/resources/namespaces", list_namespaces, {}},
    {"GET", "/api/v1/resources/tasks", list_tasks, {}},
    {"GET", "/api/v1/system/candidates", candidates, {}},
    {"GET", "/internal/api/inter-instance/stats", mesh, {}},
    {"GET", "/health", health, {}},
    {"GET", "/status", status, {}},
    {"GET", "/metrics", metrics, {}},
    {"GET", "/metrics/prometheus", metrics_prometheus, {}},
    {"GET", "/openapi.json", openapi, {}},

    {"GET", "/api/v1/messages", list_messages, {}},
    {"GET", "/api/v1/messages/:partitionId/:transactionId", message_detail, {}},
    {"DELETE", "/api/v1/messages/:partitionId/:transactionId", delete_message, {}},
    {"POST", "/api/v1/messages/:partitionId/:transactionId/retry", retry_message, {}},

    {"GET", "/api/v1/dlq", list_letters, {}},
    {"DELETE", "/api/v1/dlq", purge_letters, {}},
    {"POST", "/api/v1/dlq/:id/replay", replay_letter, {}},

    {"GET", "/api/v1/consumer-groups", list_groups, {}},
    {"GET", "/api/v1/consumer-groups/lagging", lagging_groups, {}},
    {"POST", "/api/v1/consumer-groups/positions", nullptr, kPositions},
    {"GET", "/api/v1/consumer-groups/:group", group_detail, {}},
    {"DELETE", "/api/v1/consumer-groups/:group", delete_group, {}},
    {"DELETE", "/api/v1/consumer-groups/:group/queues/:queue", delete_group_in_queue, {}},
    {"POST", "/api/v1/consumer-groups/:group/subscription", subscribe_group, {}},
    {"POST", "/api/v1/consumer-groups/:group/queues/:queue/seek", seek_group, {}},
    {"POST",
     "/api/v1/consumer-groups/:group/queues/:queue/partitions/:partition/seek",
     seek_partition,
     {}},

    {"POST", "/api/v1/timers", change_timers, {}},
    {"GET", "/api/v1/timers/:queue", list_timers, {}},
    {"GET", "/api/v1/timers/:queue/*timerKey", peek_timer, {}},
    {"DELETE", "/api/v1/timers/:queue/*timerKey", cancel_timer, {}},
    {"GET", "/api/v1/system/kv-timers", get_kv_timers, {}},
    {"POST", "/api/v1/system/kv-timers", set_kv_timers, {}},

    {"POST", "/api/v1/stats/refresh", refresh_statistics, {}},
    {"GET", "/api/v1/status", nullptr, kStatistics},
    {"GET", "/api/v1/status/queues", nullptr, kStatistics},
    {"GET", "/api/v1/status/queues/:queue", nullptr, kStatistics},
    {"GET", "/api/v1/status/analytics", nullptr, kStatistics},
    {"GET", "/api/v1/status/buffers", nullptr, kStatistics},
    {"GET", "/api/v1/analytics/:view", nullptr, kStatistics},

    {"GET", "/api/v1/system/maintenance", get_maintenance, {}},
    {"POST", "/api/v1/system/maintenance", set_maintenance, {}},
    {"GET", "/api/v1/system/maintenance/pop", get_pop_maintenance, {}},
    {"POST", "/api/v1/system/maintenance/pop", set_pop_maintenance, {}},
    {"GET", "/api/v1/system/shared-state", shared_state, {}},
    {"POST", "/api/v1/system/reload", nullptr, kSystem},
    {"*", "/api/v1/system/raft/*rest", nullptr, kReplication},
    {"*", "/api/v1/system/*rest", nullptr, kSystem},

    {"POST", "/api/v1/traces", nullptr, kTraces},
    {"GET", "/api/v1/traces/names", nullptr, kTraces},
    {"GET", "/api/v1/traces/by-name/:name", nullptr, kTraces},
    {"GET", "/api/v1/traces/:partitionId/:transactionId", nullptr, kTraces},

    {"POST", "/api/v1/kv", nullptr, kKeyValue},
    {"GET", "/api/v1/kv/:ns/*key", nullptr, kKeyValue},
    {"PUT", "/api/v1/kv/:ns/*key", nullptr, kKeyValue},
    {"DELETE", "/api/v1/kv/:ns/*key", nullptr, kKeyValue},
    {"GET", "/api/v1/resources/kv/namespaces", nullptr, kKeyValue},
    {"POST", "/api/v1/resources/kv/list", nullptr, kKeyValue},

    {"POST", "/streams/v1/queries", nullptr, kStreams},
    {"POST", "/streams/v1/state/get", nullptr, kStreams},
    {"POST", "/streams/v1/cycle", nullptr, kStreams},

    {"POST", "/api/v1/fetch", nullptr, kFetch},
    {"POST", "/api/v1/partitions/changed", nullptr, kFetch},
    {"POST", "/api/v1/locks", nullptr, kLocks},

    {"POST", "/api/v1/ephemeral/push", nullptr, kEphemeral},
    {"*", "/api/v1/ephemeral/*rest", nullptr, kEphemeral},

    {"GET", "/auth/me", auth_me, {}},
    {"GET", "/auth/login", auth_login, {}},
    {"POST", "/auth/logout", auth_logout, {}},

    {"*", "/internal/api/*rest", nullptr, kMesh},
    {"*", "/api/v1/connectors", nullptr, kConnectors},
    {"*", "/api/v1/connectors/*rest", nullptr, kConnectors},
    {"*", "/api/v1/raft/*rest", nullptr, kReplication},
    {"GET", "/api/v1/resources/quota", nullptr, kQuota},
    {"DELETE", "/api/v1/resources/tenant", nullptr, kQuota},
};

std::vector<std::string_view> split(std::string_view pattern) {
    std::vector<std::string_view> segments;
    QUEEN_ASSERT(!pattern.empty() && pattern.front() == '/', "a pattern begins with a slash");
    while (!pattern.empty()) {
        pattern.remove_prefix(1);
        const std::size_t slash = pattern.find('/');
        segments.push_back(pattern.substr(0, slash));
        pattern.remove_prefix(slash == std::string_view::npos ? pattern.size() : slash);
    }
    return segments;
}

} // namespace

std::span<const Route> all_routes() {
    return kRoutes;
}

RouteTable::RouteTable(std::span<const Route> routes) {
    entries_.reserve(routes.size());
    for (const Route& route : routes) {
        auto segments = split(route.pattern);
        const bool rest = segments.back().starts_with('*');
        entries_.push_back({&route, std::move(segments), rest});
    }
}

bool RouteTable::fits(const Entry& entry, const std::vector<std::string>& segments) noexcept {
    const std::size_t fixed = entry.segments.size() - (entry.rest ? 1 : 0);
    if (entry.rest ? segments.size() <= fixed : segments.size() != fixed) {
        return false;
    }
    for (std::size_t i = 0; i < fixed; ++i) {
        if (!entry.segments[i].starts_with(':') && entry.segments[i] != segments[i]) {
            return false;
        }
    }
    return true;
}

Parameters RouteTable::parameters_of(const Entry& entry, const std::vector<std::string>& segments) {
    Parameters parameters;
    for (std::size_t i = 0; i < entry.segments.size(); ++i) {
        if (entry.segments[i].starts_with(':')) {
            parameters.emplace_back(entry.segments[i].substr(1), segments[i]);
        } else if (entry.segments[i].starts_with('*')) {
            std::string rest = segments[i];
            for (std::size_t j = i + 1; j < segments.size(); ++j) {
                rest.append("/").append(segments[j]);
            }
            parameters.emplace_back(entry.segments[i].substr(1), std::move(rest));
        }
    }
    return parameters;
}

RouteTable::Match RouteTable::find(std::string_view method,
                                   const std::vector<std::string>& segments) const {
    Match match;
    for (const Entry& entry : entries_) {
        if (!fits(entry, segments)) {
            continue;
        }
        const Route& route = *entry.route;
        const bool head = route.method == "GET" && route.head;
        if (route.method == "*" || route.method == method || (head && method == "HEAD")) {
            match.route = &route;
            match.parameters = parameters_of(entry, segments);
            match.allowed.clear();
            return match;
        }
        match.allowed.push_back(route.method);
        if (head) {
            match.allowed.push_back("HEAD");
        }
    }
    std::sort(match.allowed.begin(), match.allowed.end());
    match.allowed.erase(std::unique(match.allowed.begin(), match.allowed.end()),
                        match.allowed.end());
    return match;
}

} // namespace queen::http
