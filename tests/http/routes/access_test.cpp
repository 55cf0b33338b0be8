// Who may pass. Each route of the table is asked with each role; a route that the list below does
// not know fails the test, so that nobody adds one without saying who may use it.
#include "auth/verifier.hpp"
#include "http/levels.hpp"
#include "http/routes/api.hpp"
#include "model/frame.hpp"
#include "model/segment.hpp"
#include "support/tokens.hpp"

#include <map>

namespace queen::test {
namespace {

using auth::Level;
using testing::HasSubstr;

constexpr std::string_view kSecret = "0123456789abcdef0123456789abcdef";

Api::Security guarded() {
    return {.verifier = std::make_shared<const auth::Verifier>(
                auth::Rules{}, std::vector<auth::Key>{auth::Key::secret(kSecret)}, nullptr)};
}

Headers bearer(const std::string& token) {
    return {{"Authorization", "Bearer " + token}};
}
Headers as(std::string_view role) {
    return bearer(token_of_role(role, kSecret));
}

/// The matrix of the API, written down once more and by hand: the table in levels.cpp is what is
/// tested.
const std::map<std::string, Level>& documented() {
    static const std::map<std::string, Level> kMatrix{
        {"POST /api/v1/push", Level::write_only},
        {"GET /api/v1/pop/queue/:queue", Level::read_write},
        {"GET /api/v1/pop/queue/:queue/partition/:partition", Level::read_write},
        {"GET /api/v1/pop", Level::read_write},
        {"POST /api/v1/ack", Level::read_write},
        {"POST /api/v1/ack/batch", Level::read_write},
        {"POST /api/v1/lease/:leaseId/extend", Level::read_write},
        {"POST /api/v1/configure", Level::read_write},
        {"GET /api/v1/resources/queues", Level::read_only},
        {"GET /api/v1/resources/queues/:queue", Level::read_only},
        {"DELETE /api/v1/resources/queues/:queue", Level::admin},
        {"GET /api/v1/resources/queues/:queue/depth", Level::read_only},
        {"GET /api/v1/resources/queues/:queue/sizes", Level::read_only},
        {"GET /api/v1/resources/overview", Level::read_only},
        {"GET /api/v1/resources/namespaces", Level::read_only},
        {"GET /api/v1/resources/tasks", Level::read_only},
        {"GET /api/v1/system/candidates", Level::admin},
        {"GET /internal/api/inter-instance/stats", Level::admin},
        {"GET /openapi.json", Level::open},
        {"GET /health", Level::page},
        {"GET /status", Level::read_only},
        {"GET /metrics", Level::page},
        {"GET /metrics/prometheus", Level::page},
        {"POST /api/v1/transaction", Level::read_write},
        {"GET /api/v1/messages", Level::read_only},
        {"GET /api/v1/messages/:partitionId/:transactionId", Level::read_only},
        {"DELETE /api/v1/messages/:partitionId/:transactionId", Level::read_write},
        {"POST /api/v1/messages/:partitionId/:transactionId/retry", Level::read_write},
        {"GET /api/v1/dlq", Level::read_only},
        {"DELETE /api/v1/dlq", Level::read_write},
        {"POST /api/v1/dlq/:id/replay", Level::read_write},
        {"GET /api/v1/consumer-groups", Level::read_only},
        {"GET /api/v1/consumer-groups/lagging", Level::read_only},
        {"POST /api/v1/consumer-groups/positions", Level::read_write},
        {"GET /api/v1/consumer-groups/:group", Level::read_only},
        {"DELETE /api/v1/consumer-groups/:group", Level::admin},
        {"DELETE /api/v1/consumer-groups/:group/queues/:queue", Level::admin},
        {"POST /api/v1/consumer-groups/:group/subscription", Level::read_write},
        {"POST /api/v1/consumer-groups/:group/queues/:queue/seek", Level::read_write},
        {"POST /api/v1/consumer-groups/:group/queues/:queue/partitions/:partition/seek",
         Level::read_write},
        {"POST /api/v1/timers", Level::write_only},
        {"GET /api/v1/timers/:queue", Level::read_only},
        {"GET /api/v1/timers/:queue/*timerKey", Level::read_only},
        {"DELETE /api/v1/timers/:queue/*timerKey", Level::read_write},
        {"GET /api/v1/system/kv-timers", Level::admin},
        {"POST /api/v1/system/kv-timers", Level::admin},
        {"POST /api/v1/stats/refresh", Level::admin},
        {"GET /api/v1/status", Level::read_only},
        {"GET /api/v1/status/queues", Level::read_only},
        {"GET /api/v1/status/queues/:queue", Level::read_only},
        {"GET /api/v1/status/analytics", Level::read_only},
        {"GET /api/v1/status/buffers", Level::read_only},
        {"GET /api/v1/analytics/:view", Level::read_only},
        {"GET /api/v1/system/maintenance", Level::admin},
        {"POST /api/v1/system/maintenance", Level::admin},
        {"GET /api/v1/system/maintenance/pop", Level::admin},
        {"POST /api/v1/system/maintenance/pop", Level::admin},
        {"GET /api/v1/system/shared-state", Level::admin},
        {"POST /api/v1/system/reload", Level::admin},
        {"* /api/v1/system/raft/*rest", Level::admin},
        {"* /api/v1/system/*rest", Level::admin},
        {"POST /api/v1/traces", Level::read_write},
        {"GET /api/v1/traces/names", Level::read_only},
        {"GET /api/v1/traces/by-name/:name", Level::read_only},
        {"GET /api/v1/traces/:partitionId/:transactionId", Level::read_only},
        {"POST /api/v1/kv", Level::read_write},
        {"GET /api/v1/kv/:ns/*key", Level::read_only},
        {"PUT /api/v1/kv/:ns/*key", Level::read_write},
        {"DELETE /api/v1/kv/:ns/*key", Level::read_write},
        {"GET /api/v1/resources/kv/namespaces", Level::read_only},
        {"POST /api/v1/resources/kv/list", Level::read_write},
        {"POST /streams/v1/queries", Level::read_write},
        {"POST /streams/v1/state/get", Level::read_only},
        {"POST /streams/v1/cycle", Level::read_write},
        {"POST /api/v1/fetch", Level::read_only},
        {"POST /api/v1/partitions/changed", Level::read_write},
        {"POST /api/v1/locks", Level::read_write},
        {"POST /api/v1/ephemeral/push", Level::write_only},
        {"* /api/v1/ephemeral/*rest", Level::read_write},
        {"GET /auth/me", Level::open},
        {"GET /auth/login", Level::open},
        {"POST /auth/logout", Level::open},
        {"* /internal/api/*rest", Level::admin},
        {"* /api/v1/connectors", Level::read_write},
        {"* /api/v1/connectors/*rest", Level::read_write},
        {"* /api/v1/raft/*rest", Level::read_write},
        {"GET /api/v1/resources/quota", Level::read_only},
        {"DELETE /api/v1/resources/tenant", Level::admin},
    };
    return kMatrix;
}

std::string name_of(const http::Route& route) {
    return std::string(route.method) + " " + std::string(route.pattern);
}

/// A path that the pattern fits.
std::string path_of(const http::Route& route) {
    std::string path;
    std::string_view rest = route.pattern;
    while (!rest.empty()) {
        rest.remove_prefix(1);
        const std::string_view segment = rest.substr(0, rest.find('/'));
        rest.remove_prefix(segment.size());
        path += segment.starts_with(':')   ? "/x"
                : segment.starts_with('*') ? "/y/z"
                                           : "/" + std::string(segment);
    }
    return path;
}

/// What the answer of a request says about the door alone: 0 when it let the request in.
int refusal(Api& api, const std::string& method, const std::string& path, const Headers& headers) {
    const auto exchange = api.send(method, path, "", headers);
    api.workers.run_all();
    if (!exchange->answer || header(*exchange->answer, "WWW-Authenticate").empty()) {
        return 0; // a pop may be parked, and /auth/me says 401 by itself
    }
    return exchange->answer->status;
}

TEST(Access, K39_EveryRouteHasItsLevelInTheDocumentedMatrix) {
    std::size_t known = 0;
    for (const http::Route& route : http::all_routes()) {
        const auto line = documented().find(name_of(route));
        ASSERT_NE(line, documented().end()) << name_of(route) << ": who may call it?";
        EXPECT_EQ(http::level_of(route), line->second) << name_of(route);
        ++known;
    }
    EXPECT_EQ(known, documented().size()) << "a line for a route that is no more";
}

TEST(Access, K39_EachRoleMeetsEachRouteAsTheMatrixSays) {
    struct Caller {
        std::string role; ///< "-": no token at all
        bool page, read, write, both, admin;
    };
    const Caller callers[] = {{"-", true, false, false, false, false},
                              {"", true, false, false, false, false},
                              {"read-only", true, true, false, false, false},
                              {"write-only", true, false, true, false, false},
                              {"read-write", true, true, true, true, false},
                              {"admin", true, true, true, true, true}};
    for (const Caller& caller : callers) {
        Api api(guarded());
        const Headers headers = caller.role == "-" ? Headers{} : as(caller.role);
        for (const http::Route& route : http::all_routes()) {
            const Level level = documented().at(name_of(route));
            const bool may = level == Level::open         ? true
                             : level == Level::page       ? caller.page
                             : level == Level::read_only  ? caller.read
                             : level == Level::write_only ? caller.write
                             : level == Level::read_write ? caller.both
                                                          : caller.admin;
            const int wanted = may ? 0 : caller.role == "-" ? 401 : 403;
            const std::string method(route.method == "*" ? "POST" : route.method);
            EXPECT_EQ(refusal(api, method, path_of(route), headers), wanted)
                << caller.role << " at " << name_of(route);
            if (method == "GET" && route.head) {
                EXPECT_EQ(refusal(api, "HEAD", path_of(route), headers), wanted)
                    << caller.role << " at HEAD " << route.pattern;
            }
        }
    }
}

TEST(Access, ARefusedRequestDoesNothing) {
    Api api(guarded());
    const std::string push = R"({"items":[{"queue":"q","payload":1}]})";
    for (const Headers& headers : {Headers{}, as(""), as("read-only"), bearer("x.y.z")}) {
        api.ask("POST", "/api/v1/push", push, headers);
        api.ask("DELETE", "/api/v1/resources/queues/q", "", headers);
        api.ask("GET", "/api/v1/pop/queue/q", "", headers);
    }
    EXPECT_EQ(api.store.calls, 0u);
    EXPECT_EQ(api.ask("POST", "/api/v1/push", push, as("write-only")).status, 201);
    EXPECT_EQ(api.store.pushed.size(), 1u);
}

TEST(Access, RefusalsHaveTheContractsTexts) {
    Api api(guarded());
    const auto none = api.ask("GET", "/status");
    EXPECT_EQ(none.status, 401);
    EXPECT_EQ(none.body, R"({"error":"Authentication required","code":"unauthorized"})");
    EXPECT_EQ(header(none, "WWW-Authenticate"), R"(Bearer realm="queen")");
    EXPECT_EQ(api.ask("GET", "/status", "", {{"authorization", "Bearer "}}).body, none.body);

    const auto bad = api.ask("GET", "/status", "", bearer("x"));
    EXPECT_EQ(bad.status, 401);
    EXPECT_EQ(at(bad.body, "error"), "Bad token header");
    EXPECT_EQ(
        header(bad, "WWW-Authenticate"),
        R"(Bearer realm="queen", error="invalid_token", error_description="Bad token header")");

    const auto forged = api.ask("GET", "/status", "", bearer(token_of_role("admin", "guess")));
    EXPECT_EQ(at(forged.body, "error"), "Invalid token signature");

    const auto poor = api.ask("GET", "/status", "", as("write-only"));
    EXPECT_EQ(poor.status, 403);
    EXPECT_EQ(poor.body, R"({"error":"Insufficient permissions","code":"forbidden"})");
}

TEST(Access, TheHeaderIsFoundInAnyCaseAndStandsOnce) {
    Api api(guarded());
    const std::string token = token_of_role("read-only", kSecret);
    EXPECT_EQ(api.ask("GET", "/status", "", {{"aUTHORIZATION", "bEaReR " + token}}).status, 200);
    EXPECT_EQ(api.ask("GET", "/status", "", {{"Authorization", token}}).status, 200) << "bare";
    const auto twice = api.ask("GET", "/status", "",
                               {{"Authorization", token}, {"Authorization", "Bearer " + token}});
    EXPECT_EQ(twice.status, 401);
    EXPECT_EQ(at(twice.body, "error"), "Bad token header");
}

TEST(Access, WhatDoesNotExistIsToldToThoseAloneWhoHaveAToken) {
    Api api(guarded());
    for (const std::string_view path : {"/api/v1/nothing", "/x", "/health/x", "/%2F", "//health"}) {
        EXPECT_EQ(api.ask("GET", path).status, 401) << path;
        EXPECT_EQ(api.ask("GET", path, "", as("")).status, 404) << path;
    }
    EXPECT_EQ(api.ask("PUT", "/api/v1/push").status, 401);
    EXPECT_EQ(api.ask("PUT", "/api/v1/push", "", as("read-only")).status, 405);
    EXPECT_EQ(api.ask("GET", "/").status, 404) << "a path that is skipped by default";
}

TEST(Access, PagesThatAreNotSkippedAskForATokenLikeAnyRead) {
    auto security = guarded();
    security.skip_paths = {"/health", "/api/v1/resources/overview"};
    Api api(std::move(security));
    EXPECT_EQ(api.ask("GET", "/health").status, 200);
    EXPECT_EQ(api.ask("GET", "/metrics").status, 401);
    EXPECT_EQ(api.ask("GET", "/metrics", "", as("write-only")).status, 403);
    EXPECT_EQ(api.ask("GET", "/metrics", "", as("read-only")).status, 200);
    EXPECT_EQ(api.ask("GET", "/api/v1/resources/overview").status, 200);
    EXPECT_EQ(api.ask("GET", "/api/v1/resources/overview/").status, 401) << "exactly as written";
}

TEST(Access, WithoutAuthenticationNobodyIsAsked) {
    Api api;
    EXPECT_EQ(api.ask("GET", "/status", "", bearer("nonsense")).status, 200);
    EXPECT_EQ(api.ask("DELETE", "/api/v1/resources/queues/q").status, 200);
}

// PUSH-6
TEST(Access, TheSubjectOfTheTokenIsTheProducerWhateverTheBodySays) {
    Api api(guarded());
    const std::string push = R"({"items":[{"queue":"q","payload":1,"producerSub":"mallory"}]})";
    api.ask("POST", "/api/v1/push", push, bearer(token_of_role("read-write", kSecret, "svc")));
    const auto popped = api.ask("GET", "/api/v1/pop/queue/q", "", as("read-write"));
    EXPECT_EQ(at(popped.body, "messages.0.producerSub"), "svc");

    api.ask("POST", "/api/v1/transaction",
            R"({"operations":[{"type":"push","queue":"q","payload":1,"producerSub":"mallory"}]})",
            bearer(token_of_role("read-write", kSecret, "svc")));
    const auto bytes = decompress_segment(api.transactions.calls.at(0).segments.at(0).blob);
    EXPECT_EQ(parse_frames(*bytes)->at(0).producer_sub, "svc");
}

TEST(Access, IdentityIsToldWithAndWithoutAuthentication) {
    Api open;
    const auto me = open.ask("GET", "/auth/me");
    EXPECT_EQ(me.status, 200);
    EXPECT_EQ(at(me.body, "user_id"), "standalone");
    EXPECT_EQ(at(me.body, "role"), "admin");
    EXPECT_EQ(at(me.body, "standalone"), "true");
    EXPECT_EQ(at(me.body, "clusters.0.tenant_id"), "00000000-0000-0000-0000-000000000001");
    const auto login = open.send("GET", "/auth/login");
    open.workers.run_all();
    EXPECT_EQ(login->answer->status, 302);
    EXPECT_EQ(header(*login->answer, "Location"), "/");
    EXPECT_EQ(open.ask("POST", "/auth/logout").body, R"({"ok":true})");

    Api api(guarded());
    for (const Headers& headers : {Headers{}, bearer("x"), bearer(token_of_role("admin", "no"))}) {
        const auto nobody = api.ask("GET", "/auth/me", "", headers);
        EXPECT_EQ(nobody.status, 401);
        EXPECT_EQ(nobody.body, R"({"error":"auth_required","code":"auth_required"})");
    }
    const auto reader = api.ask("GET", "/auth/me", "", as("read-only"));
    EXPECT_EQ(reader.status, 200);
    EXPECT_EQ(at(reader.body, "user_id"), "tester");
    EXPECT_EQ(at(reader.body, "role"), "read-only");
    EXPECT_EQ(at(reader.body, "is_operator"), "false");
    const auto page = api.send("GET", "/auth/login");
    api.workers.run_all();
    EXPECT_EQ(page->answer->status, 200);
    EXPECT_EQ(page->answer->content_type, "text/html; charset=utf-8");
}

} // namespace
} // namespace queen::test
