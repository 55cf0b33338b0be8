#pragma once
#include "base/base64.hpp"
#include "cluster/cluster.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace queen::test {

/// An item of the list of plugins: a driver of timers with these options.
inline std::string timers_plugin(const std::string& options = {}) {
    return "  - {name: timers, path: timers.so, options: {" + options + "}}\n";
}
/// So rare that only a schedule on the same broker, or a timer that is near, begins a cycle.
constexpr const char* kRareCycles = "max_sleep: 60s, idle_max_sleep: 10m";
/// In the environment of a broker that leaves firing to others.
constexpr const char* kFiresNothing = "QUEEN_SWEEPER=false";
/// In the environment of a broker that looks at the database for what no hint told it of.
constexpr const char* kEarlyFloor = "QUEEN_HOTLIST_RESEED_MS=1000";

struct TimerOpText {
    std::string key, transaction_id;
    std::int64_t delay_ms = 0;
    std::string partition = "p";
    std::string op = "schedule";
};

/// One call. @return its results; fails the test when it was refused
inline json::Document timer_ops(Api& api, const std::string& queue,
                                const std::vector<TimerOpText>& ops) {
    std::string body;
    json::Writer out(body);
    out.begin_array();
    for (const auto& op : ops) {
        out.begin_object().key("op").string(op.op).key("queue").string(queue);
        out.key("timerKey").string(op.key).key("txn").string(op.transaction_id);
        if (op.op != "cancel") {
            out.key("partition").string(op.partition);
            out.key("delayMs").raw(std::to_string(op.delay_ms));
            out.key("payload").string(to_base64("1"));
        }
        out.end_object();
    }
    out.end_array();
    const auto said = api.http.post("/api/v1/timers", body);
    EXPECT_EQ(said.status, 200) << said.body;
    auto document = json::Document::parse(said.body);
    if (!document || document->root()["results"].size() != ops.size()) {
        throw std::runtime_error("timers: " + said.body);
    }
    return std::move(*document);
}

/// Schedules one. @return when it may be delivered, by the database's clock
inline std::string schedule(Api& api, const std::string& queue, const TimerOpText& op) {
    const auto said = timer_ops(api, queue, {op});
    const auto result = said.root()["results"].at(0);
    EXPECT_EQ(result["status"].string(), "scheduled");
    return std::string(result["deliverAt"].string());
}

/// Ids of all that is left of a queue for the group, taken from these brokers in turn.
inline std::vector<std::string> drained(Cluster& cluster, const std::string& queue,
                                        const std::vector<std::size_t>& brokers,
                                        const std::string& group = "g") {
    std::vector<std::string> ids;
    for (std::size_t turn = 0;; ++turn) {
        const auto popped = cluster[brokers[turn % brokers.size()]].api->pop(
            queue, "consumerGroup=" + group + "&autoAck=true&batch=1000&partitions=100");
        EXPECT_THAT(popped.status, testing::AnyOf(200, 204)) << popped.body;
        if (popped.messages.empty()) {
            return ids;
        }
        for (auto& id : popped.ids()) {
            ids.push_back(std::move(id));
        }
    }
}

/// What a driver of timers tells of itself.
inline std::string sweeper(const std::string& name) {
    return "queen_sweeper_" + name + "{kind=\"timers\"}";
}
inline constexpr const char* kNoTimer = "NOT EXISTS (SELECT 1 FROM queen.log_timers)";
/// A fire waits for a lock of somebody.
inline constexpr const char* kFireWaits =
    "EXISTS (SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = "
    "current_database() AND query LIKE '%log_timers_fire_v1%')";
inline const std::string kFired = "queen_timers_fired_total{result=\"fired\"}";

} // namespace queen::test
