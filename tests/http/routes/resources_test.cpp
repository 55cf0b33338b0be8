#include "http/routes/api.hpp"

namespace queen::test {
namespace {

TEST(Resources, DeleteIs200WhetherOrNotThereWasAQueue) {
    Api api;
    auto reply = api.ask("DELETE", "/api/v1/resources/queues/q");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, R"({"deleted":true,"existed":true,"queue":"q"})");
    api.store.existed = false;
    reply = api.ask("DELETE", "/api/v1/resources/queues/q");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, R"({"deleted":false,"existed":false,"queue":"q",)"
                          R"("message":"Queue not found, nothing was deleted"})");
    api.store.broken = Error{Errc::timeout, "too slow", {}};
    EXPECT_EQ(api.ask("DELETE", "/api/v1/resources/queues/q").status, 500);
}

TEST(Resources, DetailIsTheStoresJsonOr404) {
    Api api;
    api.store.detail = R"({"name":"q" , "partitions":[]})";
    auto reply = api.ask("GET", "/api/v1/resources/queues/q");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, *api.store.detail);
    api.store.detail.reset();
    reply = api.ask("GET", "/api/v1/resources/queues/q");
    EXPECT_EQ(reply.status, 404);
    EXPECT_EQ(reply.body, R"({"error":"Queue not found","code":"not_found"})");
    api.store.broken = Error{Errc::unavailable, "no session", {}};
    reply = api.ask("GET", "/api/v1/resources/queues/q");
    EXPECT_EQ(reply.status, 500);
    EXPECT_EQ(at(reply.body, "error"), "pool");
}

TEST(Resources, TheListIsTheStoresJsonWhateverTheQuery) {
    Api api;
    api.store.list = R"({"queues":[{"name":"q"}]})";
    for (const char* target : {"/api/v1/resources/queues", "/api/v1/resources/queues?stats=live",
                               "/api/v1/resources/queues?namespace=x&task=y"}) {
        const auto reply = api.ask("GET", target);
        EXPECT_EQ(reply.status, 200);
        EXPECT_EQ(reply.body, api.store.list);
    }
    api.store.broken = Error{Errc::store_failed, "boom", {}};
    EXPECT_EQ(at(api.ask("GET", "/api/v1/resources/queues").body, "error"), "list failed: boom");
}

TEST(Health, FollowsTheDatabase) {
    Api api;
    auto reply = api.ask("GET", "/health");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, R"({"status":"healthy","database":"connected",)"
                          R"("engine":"queen-broker","version":"1.2.3"})");
    api.store.broken = Error{Errc::unavailable, "connection refused at secret-host", {}};
    reply = api.ask("GET", "/health");
    EXPECT_EQ(reply.status, 503);
    EXPECT_EQ(reply.body, R"({"status":"unhealthy","database":"disconnected",)"
                          R"("engine":"queen-broker","version":"1.2.3"})");
}

TEST(Status, AsksNobody) {
    Api api;
    const auto reply = api.ask("GET", "/status");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body,
              R"({"status":"ok","engine":"queen-broker","version":"1.2.3","plugins":[7]})");
    EXPECT_EQ(api.store.calls, 0u);
}

} // namespace
} // namespace queen::test
