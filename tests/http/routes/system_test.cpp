#include "http/routes/api.hpp"

#include <vector>

namespace queen::test {
namespace {

constexpr const char* kMaintenance = "/api/v1/system/maintenance";
constexpr const char* kPop = "/api/v1/system/maintenance/pop";

class SystemRoutes : public testing::Test {
protected:
    SystemRoutes() {
        api.system.on_set_switch = [this](SwitchKey key, bool enabled, const Done<void>& done) {
            set.emplace_back(key, enabled);
            done({});
        };
    }
    void pause(bool paused) {
        EXPECT_EQ(
            api.ask("POST", kPop, paused ? R"({"enabled":true})" : R"({"enabled":false})").status,
            200);
    }

    Api api;
    std::vector<std::pair<SwitchKey, bool>> set;
};

TEST_F(SystemRoutes, MaintenanceIsOffAndItsBufferEmpty) {
    const auto reply = api.ask("GET", kMaintenance);
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body,
              R"({"maintenanceMode":false,"popMaintenanceMode":false,"bufferedMessages":0,)"
              R"("bufferHealthy":true,"bufferStats":{"pendingCount":0,"failedCount":0,)"
              R"("dbHealthy":true}})");
    pause(true);
    EXPECT_EQ(at(api.ask("GET", kMaintenance).body, "popMaintenanceMode"), "true");
}

TEST_F(SystemRoutes, PushMaintenanceWithoutASpoolIsRefusedAndItsEndIsNot) {
    auto reply = api.ask("POST", kMaintenance, R"({"enabled":true})");
    EXPECT_EQ(reply.status, 501);
    EXPECT_EQ(at(reply.body, "code"), "not_implemented");
    EXPECT_THAT(at(reply.body, "error"), testing::HasSubstr("disk spool"));
    reply = api.ask("POST", kMaintenance, R"({"enabled":false})");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body,
              R"({"maintenanceMode":false,"bufferedMessages":0,"bufferHealthy":true,"message":)"
              R"("Maintenance mode DISABLED. Background processor will drain buffer to DB."})");
    EXPECT_TRUE(set.empty());
}

TEST_F(SystemRoutes, ABodyWithoutABooleanIsRefused) {
    for (const char* route : {kMaintenance, kPop}) {
        for (const char* body : {"", "{}", "[]", "{", R"({"enabled":"true"})", R"({"enabled":1})",
                                 R"({"enabled":null})", R"({"Enabled":true})"}) {
            const auto reply = api.ask("POST", route, body);
            EXPECT_EQ(reply.status, 400) << body;
            EXPECT_EQ(at(reply.body, "error"), "enabled (boolean) is required") << body;
            EXPECT_EQ(at(reply.body, "code"), "bad_request");
        }
    }
    EXPECT_TRUE(set.empty());
}

TEST_F(SystemRoutes, PopMaintenanceIsStoredAndTold) {
    EXPECT_EQ(at(api.ask("GET", kPop).body, "popMaintenanceMode"), "false");
    auto reply = api.ask("POST", kPop, R"({"enabled":true})");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(at(reply.body, "popMaintenanceMode"), "true");
    EXPECT_THAT(at(reply.body, "message"), testing::HasSubstr("ENABLED"));
    EXPECT_EQ(at(api.ask("GET", kPop).body, "popMaintenanceMode"), "true");
    reply = api.ask("POST", kPop, R"({"enabled":false})");
    EXPECT_EQ(at(reply.body, "popMaintenanceMode"), "false");
    EXPECT_EQ(at(api.ask("GET", kPop).body, "popMaintenanceMode"), "false");
    EXPECT_EQ(set, (std::vector<std::pair<SwitchKey, bool>>{{SwitchKey::pop_maintenance, true},
                                                            {SwitchKey::pop_maintenance, false}}));
}

TEST_F(SystemRoutes, ASwitchThatWasNotStoredDoesNotHold) {
    api.system.on_set_switch = [](SwitchKey, bool, const Done<void>& done) {
        done(fail(Errc::unavailable, "no session"));
    };
    const auto reply = api.ask("POST", kPop, R"({"enabled":true})");
    EXPECT_EQ(reply.status, 500);
    EXPECT_EQ(at(reply.body, "error"), "pool");
    EXPECT_EQ(at(api.ask("GET", kPop).body, "popMaintenanceMode"), "false");
}

constexpr const char* kTimers = "/api/v1/system/kv-timers";

// SWI-3
TEST_F(SystemRoutes, TimersAreOnUntilTheyAreSwitchedOff) {
    auto reply = api.ask("GET", kTimers);
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body,
              R"({"kvEnabled":false,"timersScheduleEnabled":true,"timersFireEnabled":true,)"
              R"("quotaTenants":0,"quotaAgeMs":null,"quotaHot":false})");
    reply = api.ask("POST", kTimers, R"({"timersFire":false})");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(at(reply.body, "timersFireEnabled"), "false");
    EXPECT_EQ(at(reply.body, "timersScheduleEnabled"), "true");
    reply =
        api.ask("POST", kTimers, R"({"timersFire":true,"kv":false,"timersSchedule":false,"x":1})");
    EXPECT_EQ(at(reply.body, "timersFireEnabled"), "true");
    EXPECT_EQ(at(reply.body, "timersScheduleEnabled"), "false");
    EXPECT_EQ(reply.body, api.ask("GET", kTimers).body);
    EXPECT_EQ(set, (std::vector<std::pair<SwitchKey, bool>>{{SwitchKey::timers_fire, false},
                                                            {SwitchKey::timers_schedule, false},
                                                            {SwitchKey::timers_fire, true}}));
}

TEST_F(SystemRoutes, ABodyWithoutASwitchOfTimersIsRefused) {
    for (const char* body : {"", "{}", "[]", "{", R"({"TimersFire":true})"}) {
        const auto reply = api.ask("POST", kTimers, body);
        EXPECT_EQ(reply.status, 400) << body;
        EXPECT_EQ(at(reply.body, "error"),
                  "at least one of kv, timersSchedule, timersFire (boolean) is required");
    }
    for (const std::string field : {"kv", "timersSchedule", "timersFire"}) {
        for (const std::string value : {"1", "null", "\"true\"", "{}"}) {
            const auto reply = api.ask(
                "POST", kTimers, R"({"timersSchedule":false,")" + field + "\":" + value + "}");
            EXPECT_EQ(reply.status, 400) << field << value;
            EXPECT_EQ(at(reply.body, "error"), field + " must be a boolean");
        }
    }
    EXPECT_TRUE(set.empty());
}

TEST_F(SystemRoutes, AKeyValueStoreCannotBeSwitchedOn) {
    const auto reply = api.ask("POST", kTimers, R"({"kv":true,"timersSchedule":false})");
    EXPECT_EQ(reply.status, 501);
    EXPECT_EQ(at(reply.body, "code"), "not_implemented");
    EXPECT_TRUE(set.empty()) << "nothing of it was done";
    EXPECT_EQ(api.ask("POST", kTimers, R"({"kv":false})").status, 200);
}

TEST_F(SystemRoutes, OfTwoSwitchesTheFirstHoldsWhenTheSecondFails) {
    api.system.on_set_switch = [](SwitchKey key, bool, const Done<void>& done) {
        done(key == SwitchKey::timers_fire ? Result<void>(fail(Errc::store_failed, "boom"))
                                           : Result<void>{});
    };
    const auto reply = api.ask("POST", kTimers, R"({"timersFire":false,"timersSchedule":false})");
    EXPECT_EQ(reply.status, 500);
    EXPECT_EQ(at(reply.body, "error"), "kv-timers failed: boom");
    EXPECT_EQ(at(api.ask("GET", kTimers).body, "timersScheduleEnabled"), "false");
    EXPECT_EQ(at(api.ask("GET", kTimers).body, "timersFireEnabled"), "true");
}

TEST_F(SystemRoutes, SharedStateSaysWhatHolds) {
    pause(true);
    const auto reply = api.ask("GET", "/api/v1/system/shared-state");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(at(reply.body, "enabled"), "false");
    EXPECT_EQ(at(reply.body, "maintenance_mode"), "false");
    EXPECT_EQ(at(reply.body, "pop_maintenance_mode"), "true");
    EXPECT_NE(at(reply.body, "reason"), "");
}

TEST_F(SystemRoutes, PopsAreAnsweredWithNothingAndLeaveMessagesAlone) {
    api.ask("POST", "/api/v1/push", R"({"items":[{"queue":"q","payload":1}]})");
    pause(true);
    const auto calls = api.store.calls;
    for (const char* target : {"/api/v1/pop/queue/q", "/api/v1/pop/queue/q?wait=true&timeout=30000",
                               "/api/v1/pop/queue/q/partition/Default?autoAck=true",
                               "/api/v1/pop?namespace=n", "/api/v1/pop/queue/q?conflation=false"}) {
        EXPECT_EQ(api.ask("GET", target).status, 204) << target;
    }
    EXPECT_EQ(api.store.calls, calls) << "the store was asked";
    EXPECT_EQ(api.ask("POST", "/api/v1/push", R"({"items":[{"queue":"q","payload":2}]})").status,
              201);
    pause(false);
    EXPECT_EQ(at(api.ask("GET", "/api/v1/pop/queue/q").body, "messages"), "[2]");
}

TEST_F(SystemRoutes, APausedPopOfTheNewestIsToldThatItIsPaused) {
    pause(true);
    const auto reply = api.ask("GET", "/api/v1/pop/queue/q?conflation=true&consumerGroup=g");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, R"({"messages":[],"paused":true,"conflation":true})");
}

TEST_F(SystemRoutes, ParkedPopsAreAnsweredWhenPopsArePaused) {
    const auto plain = api.send("GET", "/api/v1/pop/queue/q?wait=true&timeout=60000");
    const auto newest = api.send(
        "GET", "/api/v1/pop/queue/q?wait=true&timeout=60000&conflation=true&consumerGroup=g");
    api.workers.run_all();
    ASSERT_FALSE(plain->answer || newest->answer);
    pause(true);
    api.workers.run_all();
    ASSERT_TRUE(plain->answer && newest->answer);
    EXPECT_EQ(plain->answer->status, 204);
    EXPECT_EQ(newest->answer->status, 200);
}

TEST_F(SystemRoutes, ARefreshGoesOverAllQueuesAndSaysWhatItDid) {
    const Uuid half = FakeStore::partition_id("q", "p");
    std::vector<std::optional<Uuid>> asked;
    api.system.on_refresh_statistics = [&](std::optional<Uuid> after, std::int32_t,
                                           const Done<StatisticsStep>& done) {
        asked.push_back(after);
        done(StatisticsStep{.queues = 500,
                            .partitions = 900,
                            .written = 3,
                            .next = after ? std::nullopt : std::optional(half)});
    };
    api.system.on_refresh_timer_statistics = [](const Done<void>& done) { done({}); };
    api.system.on_statistics_refreshed = [](std::chrono::milliseconds, const Done<void>& done) {
        done({});
    };
    auto reply = api.ask("POST", "/api/v1/stats/refresh");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(at(reply.body, "success"), "true");
    EXPECT_EQ(at(reply.body, "refreshed"), "true");
    EXPECT_EQ(at(reply.body, "queues"), "1000");
    EXPECT_EQ(at(reply.body, "partitions"), "1800");
    EXPECT_EQ(at(reply.body, "written"), "6");
    EXPECT_EQ(asked, (std::vector<std::optional<Uuid>>{std::nullopt, half}));
    api.system.on_refresh_statistics = [](std::optional<Uuid>, std::int32_t,
                                          const Done<StatisticsStep>& done) {
        done(fail(Errc::store_failed, "boom"));
    };
    reply = api.ask("POST", "/api/v1/stats/refresh");
    EXPECT_EQ(reply.status, 500);
    EXPECT_EQ(at(reply.body, "error"), "stats refresh failed: boom");
}

TEST_F(SystemRoutes, CachedFiguresComeFromTheStatistics) {
    api.system.on_cached_queues = [](const std::string&, const Done<std::string>& done) {
        done(std::string(R"({"queues":["cached"]})"));
    };
    api.system.on_cached_overview = [](const std::string&, const Done<std::string>& done) {
        done(std::string(R"({"statsAge":4})"));
    };
    EXPECT_EQ(api.ask("GET", "/api/v1/resources/queues?stats=cached").body,
              R"({"queues":["cached"]})");
    EXPECT_EQ(api.ask("GET", "/api/v1/resources/overview?stats=cached").body, R"({"statsAge":4})");
    EXPECT_EQ(api.ask("GET", "/api/v1/resources/overview?stats=live").body,
              api.store.overview_answer);
    EXPECT_EQ(api.ask("GET", "/api/v1/resources/overview").body, api.store.overview_answer);
    EXPECT_EQ(api.ask("GET", "/api/v1/resources/overview?stats=now").status, 400);
}

} // namespace
} // namespace queen::test
