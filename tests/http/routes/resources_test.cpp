#include "http/routes/api.hpp"
#include "model/names.hpp"

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

TEST(Resources, StatsMayAskForCachedFiguresAndNothingElse) {
    Api api;
    for (const char* stats : {"stats=old", "stats=", "stats=live&stats=live"}) {
        const auto reply = api.ask("GET", std::string("/api/v1/resources/queues?") + stats);
        EXPECT_EQ(reply.status, 400) << stats;
        EXPECT_EQ(at(reply.body, "code"), "bad_request");
    }
    EXPECT_EQ(at(api.ask("GET", "/api/v1/resources/queues?stats=old").body, "error"),
              "stats must be live or cached, got \"old\"");
}

TEST(Resources, DepthAsksForTheQueueOrForOneGroup) {
    Api api;
    const auto asked = [&](const std::string& query) {
        api.store.figures.clear();
        const auto reply = api.ask("GET", "/api/v1/resources/queues/a%2Fb/depth" + query);
        EXPECT_EQ(reply.status, 200) << reply.body;
        EXPECT_EQ(reply.body, *api.store.detail);
        const auto& figures = api.store.figures.at(0);
        EXPECT_EQ(figures.what + " " + figures.queue, "depth a/b");
        EXPECT_EQ(figures.tenant, kDefaultTenant);
        return figures.group;
    };
    EXPECT_EQ(asked(""), std::nullopt);
    EXPECT_EQ(asked("?group=g+1"), "g 1");
    EXPECT_EQ(asked("?group="), kQueueModeGroup);
    EXPECT_EQ(asked("?group=__QUEUE_MODE__"), kQueueModeGroup);
    for (const std::string& bad :
         {std::string("group=."), std::string("group=a%00b"), std::string("group=a&group=b"),
          "group=" + std::string(256, 'g')}) {
        api.store.figures.clear();
        const auto reply = api.ask("GET", "/api/v1/resources/queues/q/depth?" + bad);
        EXPECT_TRUE(reply.status == 400 || reply.status == 413) << bad << ": " << reply.body;
        EXPECT_TRUE(api.store.figures.empty());
    }
    const auto unfit = api.ask("GET", "/api/v1/resources/queues/" + std::string(250, 'q') +
                                          "/depth?group=" + std::string(250, 'g'));
    EXPECT_EQ(unfit.status, 413);
    EXPECT_EQ(at(unfit.body, "code"), "name_too_long");
}

TEST(Resources, ViewsOfAQueueAreTheStoresJsonOr404) {
    Api api;
    for (const std::string view : {"/depth", "/depth?group=g", "/sizes", ""}) {
        api.store.broken.reset();
        api.store.detail = R"({"queue":"q" , "partitions":{}})";
        EXPECT_EQ(api.ask("GET", "/api/v1/resources/queues/q" + view).body, *api.store.detail);
        api.store.detail.reset();
        const auto missing = api.ask("GET", "/api/v1/resources/queues/q" + view);
        EXPECT_EQ(missing.status, 404);
        EXPECT_EQ(missing.body, R"({"error":"Queue not found","code":"not_found"})");
        api.store.broken = Error{Errc::unavailable, "no session", {}};
        const auto pool = api.ask("GET", "/api/v1/resources/queues/q" + view);
        EXPECT_EQ(pool.status, 500);
        EXPECT_EQ(at(pool.body, "error"), "pool");
    }
}

// A bound on every answer, and no silent default for what was given (QRY-1).
TEST(Resources, PagesHaveALimitAndAPlace) {
    Api api;
    for (const std::string view : {"/depth", "/sizes", ""}) {
        const auto page = [&](const std::string& query) {
            api.store.figures.clear();
            const auto reply = api.ask("GET", "/api/v1/resources/queues/q" + view + query);
            if (reply.status != 200) {
                EXPECT_TRUE(api.store.figures.empty());
                return std::to_string(reply.status) + " " + at(reply.body, "error");
            }
            const auto& asked = api.store.figures.at(0).page;
            return std::to_string(asked.limit) + " " + asked.after.value_or("-");
        };
        EXPECT_EQ(page(""), "10000 -");
        EXPECT_EQ(page("?limit=1&after=cust%2F7"), "1 cust/7");
        EXPECT_EQ(page("?limit=10000&after="), "10000 -");
        for (const char* limit : {"0", "-1", "10001", "1000000000", "x", ""}) {
            EXPECT_EQ(page(std::string("?limit=") + limit),
                      std::string("400 limit must be a whole number from 1 to 10000, got \"") +
                          limit + "\"");
        }
        EXPECT_EQ(page("?after=%00").substr(0, 4), "400 ");
        EXPECT_EQ(page("?after=a&after=b").substr(0, 4), "400 ");
    }
}

TEST(Resources, LabelsAndOverviewAreTheStoresJson) {
    Api api;
    api.store.list = R"({"namespaces":[]})";
    EXPECT_EQ(api.ask("GET", "/api/v1/resources/namespaces").body, api.store.list);
    EXPECT_EQ(api.ask("GET", "/api/v1/resources/tasks").body, api.store.list);
    EXPECT_EQ(api.store.labels, (std::vector{Label::name_space, Label::task}));
    EXPECT_EQ(api.ask("GET", "/api/v1/resources/overview").body, api.store.overview_answer);
    api.store.broken = Error{Errc::store_failed, "boom", {}};
    EXPECT_EQ(at(api.ask("GET", "/api/v1/resources/overview").body, "error"),
              "overview failed: boom");
    EXPECT_EQ(at(api.ask("GET", "/api/v1/resources/tasks").body, "error"), "list failed: boom");
}

// K30: however many dashboards ask, the store sees each question once at a time, two in all.
TEST(Resources, ACrowdOfDashboardsCostsAFewStatements) {
    Api api;
    std::vector<std::shared_ptr<FakeExchange>> crowd;
    for (int i = 0; i < 50; ++i) {
        for (const char* view :
             {"overview", "queues", "queues/q/depth", "queues/q/depth?group=g"}) {
            crowd.push_back(api.send("GET", std::string("/api/v1/resources/") + view));
        }
    }
    api.workers.run_all();
    EXPECT_EQ(api.store.calls, 6u) << "two at once and again for who came meanwhile, then two more";
    for (const auto& exchange : crowd) {
        ASSERT_EQ(exchange->replies, 1u);
        EXPECT_EQ(exchange->answer->status, 200);
    }
}

// Questions that differ in what they name never share an answer, whatever bytes the names hold.
TEST(Resources, OnlyTheSameQuestionIsShared) {
    Api api;
    const std::vector<std::string> targets{
        "a/depth",
        "a/depth?group=g",
        "a/depth?group=",
        "a/depth?group=after",
        "a/depth?after=g",
        "a/depth?limit=1",
        "b/depth",
        "a/sizes",
        "a",
        "a%201:b/depth",
        "a/depth?after=%202:of",
        "a/depth?group=%202:of",
    };
    std::vector<std::shared_ptr<FakeExchange>> asked;
    for (const auto& target : targets) {
        asked.push_back(api.send("GET", "/api/v1/resources/queues/" + target));
    }
    api.workers.run_all();
    EXPECT_EQ(api.store.figures.size(), targets.size());
}

TEST(Candidates, IsTheReportOfTheSourcesAndAsksNoStore) {
    Api api;
    const auto reply = api.ask("GET", "/api/v1/system/candidates");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, R"({"default":"cold","sources":[]})");
    EXPECT_EQ(api.store.calls, 0u);
}

// ME-18
TEST(Mesh, IsTheReportOfTheMeshesAndAsksNoStore) {
    Api api;
    const auto reply = api.ask("GET", "/internal/api/inter-instance/stats");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, R"({"peers":[]})");
    EXPECT_EQ(api.ask("POST", "/internal/api/notify", "{}").status, 501);
    EXPECT_EQ(api.store.calls, 0u);
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
    EXPECT_EQ(
        reply.body,
        R"({"status":"ok","engine":"queen-broker","version":"1.2.3","plugins":[7],"timers":{"firing":false}})");
    EXPECT_EQ(api.store.calls, 0u);
}

} // namespace
} // namespace queen::test
