// /api/v1/system/maintenance..., shared-state, stats/refresh, health, status, metrics, /auth/me.
#include "http/conformance/conformance.hpp"
#include "support/exposition.hpp"

namespace queen::test {
namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::SizeIs;
using testing::StartsWith;

class SystemContract : public ConformanceTest {
protected:
    static inline const std::string kPop = "/api/v1/system/maintenance/pop";
    static inline const std::string kPush = "/api/v1/system/maintenance";
    /// Whatever a test did, the next one finds pops going on.
    void TearDown() override {
        for (std::size_t i = 0; i < brokers(); ++i) {
            call_at(i, "POST", kPop, R"({"enabled":false})");
        }
    }
};

TEST_F(SystemContract, PopMaintenanceHoldsDeliveriesBackAtTheBrokerThatWasAsked) {
    push(queue(), "p", {"1"});
    take(queue(), "consumerGroup=other");
    const auto on = call_at(0, "POST", kPop, R"({"enabled":true})");
    EXPECT_EQ(on.status(), 200);
    EXPECT_EQ(on.at("popMaintenanceMode"), "true");
    EXPECT_NE(on.at("message"), "missing");
    for (const std::string& path :
         {pop_path(queue()), pop_path(queue(), "wait=true&timeout=30000"),
          "/api/v1/pop/queue/" + queue() + "/partition/p", "/api/v1/pop?namespace=" + queue()}) {
        const auto popped = call_at(0, "GET", path);
        EXPECT_EQ(popped.status(), 204) << path;
        EXPECT_EQ(popped.body(), "");
    }
    EXPECT_EQ(call_at(0, "GET", kPop).at("popMaintenanceMode"), "true");
    EXPECT_EQ(call_at(0, "GET", kPush).at("popMaintenanceMode"), "true");
    EXPECT_EQ(call_at(0, "GET", "/api/v1/system/shared-state").at("pop_maintenance_mode"), "true");
    const auto off = call_at(0, "POST", kPop, R"({"enabled":false})");
    EXPECT_EQ(off.at("popMaintenanceMode"), "false");
    EXPECT_THAT(take(queue()), SizeIs(1));
}

TEST_F(SystemContract, PopMaintenanceLetsWhoWaitsGo) {
    get(pop_path(queue()));
    auto parked = connection(0);
    parked.start("GET", pop_path(queue(), "wait=true&timeout=60000"));
    auto conflating = connection(0);
    conflating.start("GET",
                     pop_path(queue(), "wait=true&timeout=60000&conflation=true&consumerGroup=c"));
    call_at(0, "POST", kPop, R"({"enabled":true})");
    EXPECT_EQ(parked.read().status, 204);
    const Answer paused("a conflating pop", conflating.read());
    EXPECT_EQ(paused.status(), 200);
    EXPECT_EQ(paused.at("conflation"), "true");
    EXPECT_EQ(paused.at("messages"), "[0]");
}

TEST_F(SystemContract, PushMaintenanceAnswersThatThereIsNoSpool) {
    const auto state = get(kPush);
    EXPECT_EQ(state.status(), 200);
    EXPECT_THAT(state.keys(), IsSupersetOf({"maintenanceMode", "popMaintenanceMode",
                                            "bufferedMessages", "bufferHealthy", "bufferStats"}));
    EXPECT_EQ(state.at("maintenanceMode"), "false");
    EXPECT_EQ(state.at("bufferedMessages"), "0");
    const auto on = post(kPush, R"({"enabled":true})");
    EXPECT_EQ(on.status(), 501);
    EXPECT_THAT(on.at("error"), HasSubstr("spool"));
    EXPECT_EQ(post(kPush, R"({"enabled":false})").at("maintenanceMode"), "false");
}

TEST_F(SystemContract, ASwitchNeedsABoolean) {
    for (const auto& path : {kPop, kPush}) {
        for (const std::string body :
             {"", "{}", R"({"enabled":"yes"})", R"({"enabled":1})", "[]"}) {
            const auto answer = post(path, body);
            EXPECT_EQ(answer.status(), 400) << path << body;
            EXPECT_THAT(answer.at("error"), HasSubstr("enabled (boolean) is required"));
        }
    }
}

TEST_F(SystemContract, SharedStateTellsTheSwitches) {
    const auto answer = get("/api/v1/system/shared-state");
    EXPECT_EQ(answer.status(), 200);
    EXPECT_THAT(answer.keys(),
                IsSupersetOf({"enabled", "reason", "maintenance_mode", "pop_maintenance_mode"}));
    EXPECT_EQ(answer.at("enabled"), "false");
}

TEST_F(SystemContract, StatisticsAreRefreshedOnDemand) {
    const auto answer = post("/api/v1/stats/refresh", "{}");
    EXPECT_EQ(answer.status(), 200);
    EXPECT_EQ(answer.at("success"), "true");
    EXPECT_EQ(post("/api/v1/stats/refresh", "").status(), 200);
    const auto overview = get("/api/v1/resources/overview");
    EXPECT_NE(overview.at("statsAge"), "-1");
}

TEST_F(SystemContract, HealthAndStatus) {
    const auto health = get("/health");
    EXPECT_EQ(health.status(), 200);
    EXPECT_EQ(health.at("status"), "healthy");
    EXPECT_EQ(health.at("database"), "connected");
    EXPECT_NE(health.at("engine"), "missing");
    EXPECT_NE(health.at("version"), "missing");
    const auto status = get("/status");
    EXPECT_EQ(status.status(), 200);
    EXPECT_EQ(status.at("status"), "ok");
    EXPECT_NE(status.at("engine"), "missing");
    EXPECT_EQ(call("HEAD", "/health").body(), "");
}

TEST_F(SystemContract, MetricsAsJsonAndForAScraper) {
    const auto json = get("/metrics");
    EXPECT_EQ(json.status(), 200);
    EXPECT_THAT(json.keys(),
                IsSupersetOf({"uptime", "requests", "messages", "database", "memory", "cpu"}));
    EXPECT_THAT(json.keys("database"),
                IsSupersetOf({"poolSize", "idleConnections", "waitingRequests"}));
    const auto page = get("/metrics/prometheus");
    EXPECT_EQ(page.status(), 200);
    EXPECT_THAT(page.response().header("Content-Type"), StartsWith("text/plain; version=0.0.4"));
    EXPECT_EQ(page.response().header("Cache-Control"), "no-cache");
    EXPECT_THAT(parse_exposition(page.body()).problems, IsEmpty());
    for (const std::string family :
         {"queen_uptime_seconds", "queen_process_resident_memory_bytes",
          "queen_process_push_requests_total", "queen_process_pop_messages_total",
          "queen_process_ack_messages_total", "queen_parked_long_polls", "queen_db_pool_size",
          "queen_cluster_push_messages_total", "queen_dlq_depth"}) {
        EXPECT_THAT(page.body(), HasSubstr("\n# TYPE " + family + " "));
    }
}

TEST_F(SystemContract, WhoAmIWithoutAuthentication) {
    const auto answer = get("/auth/me");
    EXPECT_EQ(answer.status(), 200);
    EXPECT_EQ(answer.at("user_id"), "standalone");
    EXPECT_EQ(answer.at("email"), "null");
    EXPECT_EQ(answer.at("is_operator"), "true");
    EXPECT_EQ(answer.at("role"), "admin");
    EXPECT_EQ(answer.at("standalone"), "true");
    EXPECT_EQ(post("/auth/logout", "").at("ok"), "true");
}

TEST_F(SystemContract, UnknownRoutesAnswerAsJson) {
    for (const auto& [method, path] :
         std::vector<std::pair<std::string, std::string>>{{"GET", "/api/v1/nothing"},
                                                          {"GET", "/api/v1/queues/q/clear"},
                                                          {"GET", "/api/v1/resources/partitions"},
                                                          {"POST", "/auth/nothing"},
                                                          {"DELETE", "/elsewhere"}}) {
        const auto answer = call(method, path);
        EXPECT_EQ(answer.status(), 404) << method << path;
        EXPECT_EQ(answer.at("code"), "no_such_route");
        EXPECT_NE(answer.at("error"), "missing");
    }
}

TEST_F(SystemContract, TheApiDescribesItself) {
    const auto answer = get("/openapi.json");
    EXPECT_EQ(answer.status(), 200);
    EXPECT_THAT(answer.at("openapi"), StartsWith("3.1."));
    EXPECT_NE(answer.at("paths./api/v1/push"), "missing");
}

} // namespace
} // namespace queen::test
