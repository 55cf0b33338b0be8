#include "http/routes/api.hpp"

#include <set>

namespace queen::test {
namespace {

struct Asked {
    const char* method;
    const char* path;
};

// What clients and dashboards ask for, served or not.
constexpr Asked kLater[] = {
    {"POST", "/api/v1/consumer-groups/positions"},
    {"GET", "/api/v1/status"},
    {"GET", "/api/v1/status/queues"},
    {"GET", "/api/v1/status/queues/q"},
    {"GET", "/api/v1/status/analytics"},
    {"GET", "/api/v1/status/buffers"},
    {"GET", "/api/v1/analytics/queue-lag"},
    {"PUT", "/api/v1/system/anything/else"},
    {"GET", "/api/v1/system/raft/membership"},
    {"POST", "/api/v1/traces"},
    {"GET", "/api/v1/traces/names"},
    {"GET", "/api/v1/traces/by-name/n"},
    {"GET", "/api/v1/traces/p/t"},
    {"POST", "/api/v1/kv"},
    {"GET", "/api/v1/kv/ns/a/b"},
    {"PUT", "/api/v1/kv/ns/a"},
    {"DELETE", "/api/v1/kv/ns/a"},
    {"GET", "/api/v1/resources/kv/namespaces"},
    {"POST", "/api/v1/resources/kv/list"},
    {"POST", "/streams/v1/queries"},
    {"POST", "/streams/v1/state/get"},
    {"POST", "/streams/v1/cycle"},
    {"POST", "/api/v1/fetch"},
    {"POST", "/api/v1/partitions/changed"},
    {"POST", "/api/v1/locks"},
    {"POST", "/api/v1/ephemeral/push"},
    {"GET", "/api/v1/ephemeral/queues/q/depth"},
    {"POST", "/internal/api/notify"},
    {"GET", "/api/v1/connectors"},
    {"GET", "/api/v1/raft/status"},
    {"GET", "/api/v1/resources/quota"},
    {"DELETE", "/api/v1/resources/tenant"},
};

constexpr Asked kServed[] = {
    {"POST", "/api/v1/push"},
    {"GET", "/api/v1/pop/queue/q"},
    {"GET", "/api/v1/pop/queue/q/partition/p"},
    {"GET", "/api/v1/pop?namespace=n"},
    {"POST", "/api/v1/ack"},
    {"POST", "/api/v1/ack/batch"},
    {"POST", "/api/v1/lease/0199f0d1-0000-7000-8000-000000000777/extend"},
    {"POST", "/api/v1/configure"},
    {"GET", "/api/v1/resources/queues"},
    {"GET", "/api/v1/resources/queues/q"},
    {"DELETE", "/api/v1/resources/queues/q"},
    {"GET", "/api/v1/resources/queues/q/depth"},
    {"GET", "/api/v1/resources/queues/q/sizes"},
    {"GET", "/api/v1/resources/overview"},
    {"GET", "/api/v1/resources/namespaces"},
    {"GET", "/api/v1/resources/tasks"},
    {"GET", "/api/v1/consumer-groups"},
    {"GET", "/api/v1/consumer-groups/lagging"},
    {"GET", "/api/v1/consumer-groups/g"},
    {"DELETE", "/api/v1/consumer-groups/g"},
    {"DELETE", "/api/v1/consumer-groups/g/queues/q"},
    {"POST", "/api/v1/consumer-groups/g/subscription"},
    {"POST", "/api/v1/consumer-groups/g/queues/q/seek"},
    {"POST", "/api/v1/consumer-groups/g/queues/q/partitions/p/seek"},
    {"GET", "/api/v1/messages?status=lost"},
    {"GET", "/api/v1/messages/p/t"},
    {"DELETE", "/api/v1/messages/p/t"},
    {"POST", "/api/v1/messages/p/t/retry"},
    {"GET", "/api/v1/dlq?offset=-1"},
    {"DELETE", "/api/v1/dlq"},
    {"POST", "/api/v1/dlq/7/replay"},
    {"GET", "/api/v1/system/candidates"},
    {"GET", "/internal/api/inter-instance/stats"},
    {"POST", "/api/v1/stats/refresh"},
    {"GET", "/api/v1/system/maintenance"},
    {"POST", "/api/v1/system/maintenance"},
    {"GET", "/api/v1/system/maintenance/pop"},
    {"POST", "/api/v1/system/maintenance/pop"},
    {"GET", "/api/v1/system/shared-state"},
    {"POST", "/api/v1/timers"},
    {"GET", "/api/v1/timers/q?mode=none"},
    {"GET", "/api/v1/timers/q/.."},
    {"DELETE", "/api/v1/timers/q/"},
    {"GET", "/api/v1/system/kv-timers"},
    {"POST", "/api/v1/system/kv-timers"},
    {"GET", "/openapi.json"},
    {"GET", "/health"},
    {"GET", "/status"},
    {"GET", "/auth/me"},
    {"POST", "/auth/logout"},
};

TEST(Router, EveryRouteOfTheApiHasAnEntry) {
    Api api;
    // What a scripted store was not told to expect it calls unsupported, which is a 501 as well.
    api.system.on_refresh_statistics = [](const auto&, std::int32_t, const auto& done) {
        done(StatisticsStep{});
    };
    api.system.on_refresh_timer_statistics = [](const Done<void>& done) { done({}); };
    api.system.on_statistics_refreshed = [](auto, const Done<void>& done) { done({}); };
    for (const Asked& asked : kServed) {
        const int status = api.ask(asked.method, asked.path, "{}").status;
        EXPECT_TRUE(status == 200 || status == 204 || status == 400)
            << asked.method << " " << asked.path << ": " << status;
    }
    for (const Asked& asked : kLater) {
        const auto reply = api.ask(asked.method, asked.path, "{}");
        EXPECT_EQ(reply.status, 501) << asked.method << " " << asked.path;
        EXPECT_EQ(at(reply.body, "code"), "not_implemented");
    }
}

TEST(Router, TheTableNamesEachRouteOnceAndSaysWhatItWaitsFor) {
    std::set<std::pair<std::string_view, std::string_view>> seen;
    for (const http::Route& route : http::all_routes()) {
        EXPECT_TRUE(seen.emplace(route.method, route.pattern).second) << route.pattern;
        EXPECT_EQ(route.handle == nullptr, !route.feature.empty()) << route.pattern;
    }
    EXPECT_GE(seen.size(), std::size(kServed) + std::size(kLater) - 12); // some share a `*` line
}

TEST(Router, ARouteOfALaterVersionNamesTheFeatureAndTouchesNoStore) {
    Api api;
    const auto reply = api.ask("POST", "/api/v1/traces", "not even JSON");
    EXPECT_EQ(reply.body, R"({"error":"this version of the broker does not have traces",)"
                          R"("code":"not_implemented"})");
    EXPECT_EQ(api.store.calls, 0u);
}

TEST(Router, AnUnknownRouteIsAJson404) {
    Api api;
    for (const Asked& asked : {Asked{"GET", "/api/v1/nothing"},
                               {"GET", "/api/v1/queues/q/clear"},
                               {"GET", "/api/v1/resources/partitions"},
                               {"POST", "/api/v1/messages/p/t/dlq"},
                               {"GET", "/auth/nothing"},
                               {"POST", "/elsewhere"},
                               {"GET", "/"},
                               {"GET", "/index.html"},
                               {"GET", "/api/v1/push/"},
                               {"GET", "//health"},
                               {"GET", "/api/v1/kv/ns"}}) {
        const auto reply = api.ask(asked.method, asked.path);
        EXPECT_EQ(reply.status, 404) << asked.method << " " << asked.path;
        EXPECT_EQ(reply.body, R"({"error":"Not Found","code":"no_such_route"})");
    }
}

TEST(Router, AWrongMethodIs405WithAllow) {
    Api api;
    const auto push = api.ask("GET", "/api/v1/push");
    EXPECT_EQ(push.status, 405);
    EXPECT_EQ(header(push, "Allow"), "POST");
    EXPECT_EQ(at(push.body, "code"), "method_not_allowed");
    EXPECT_EQ(header(api.ask("PATCH", "/api/v1/resources/queues/q"), "Allow"), "DELETE, GET, HEAD");
    EXPECT_EQ(header(api.ask("POST", "/health"), "Allow"), "GET, HEAD");
}

TEST(Router, HeadIsAnsweredLikeGet) {
    Api api;
    const auto get = api.ask("GET", "/status");
    const auto head = api.ask("HEAD", "/status");
    EXPECT_EQ(head.status, 200);
    EXPECT_EQ(head.body, get.body); // the front drops it
    EXPECT_EQ(api.ask("HEAD", "/health").status, 200);
    EXPECT_EQ(api.ask("HEAD", "/api/v1/nothing").status, 404);
}

TEST(Router, HeadTakesNoMessages) {
    Api api;
    for (const char* path :
         {"/api/v1/pop/queue/q", "/api/v1/pop/queue/q/partition/p", "/api/v1/pop?namespace=n"}) {
        const auto reply = api.ask("HEAD", path);
        EXPECT_EQ(reply.status, 405) << path;
        EXPECT_EQ(header(reply, "Allow"), "GET");
    }
    EXPECT_TRUE(api.store.pops.empty());
}

TEST(Router, LiteralsWinOverParametersAndOtherMethodsStillReachThem) {
    Api api;
    // DELETE exists for `:group` only; a group may be called "lagging".
    EXPECT_EQ(at(api.ask("DELETE", "/api/v1/consumer-groups/lagging").body, "consumerGroup"),
              "lagging");
}

TEST(Router, TheNetworkThreadOnlyMatches) {
    Api api;
    const auto bad_body = api.send("POST", "/api/v1/push", "{");
    const auto bad_query = api.send("GET", "/api/v1/pop/queue/q?batch=x");
    const auto pop = api.send("GET", "/api/v1/pop/queue/q");
    EXPECT_EQ(bad_body->replies + bad_query->replies + pop->replies, 0u);
    EXPECT_EQ(api.store.calls, 0u);
    EXPECT_EQ(api.workers.pending(), 3u);
    api.workers.run_all();
    EXPECT_EQ(bad_body->answer->status, 400);
    EXPECT_EQ(bad_query->answer->status, 400);
    EXPECT_EQ(pop->answer->status, 204);
}

TEST(Router, AQueryThatCannotBeDecodedIs400OnEveryRoute) {
    Api api;
    for (const char* target :
         {"/status?x=%zz", "/api/v1/resources/queues?namespace=%ff", "/api/v1/dlq?%2"}) {
        const auto reply = api.ask("GET", target);
        EXPECT_EQ(reply.status, 400) << target;
        EXPECT_EQ(at(reply.body, "code"), "bad_request");
    }
    EXPECT_EQ(api.ask("POST", "/api/v1/push?%", R"({"items":[]})").status, 400);
    EXPECT_EQ(api.store.calls, 0u);
}

TEST(Router, APathThatCannotBeDecodedIs400) {
    Api api;
    for (const char* path : {"/api/v1/pop/queue/%", "/api/v1/pop/queue/%4", "/api/v1/pop/queue/%zz",
                             "/api/v1/pop/queue/%FF", "/api/v1/pop/queue/%C3", "api/v1/push"}) {
        const auto reply = api.ask("GET", path);
        EXPECT_EQ(reply.status, 400) << path;
        EXPECT_EQ(at(reply.body, "code"), "bad_request");
    }
}

} // namespace
} // namespace queen::test
