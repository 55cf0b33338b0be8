#include "http/routes/api.hpp"

namespace queen::test {
namespace {

class MetricsRoute : public testing::Test {
protected:
    Api api;
};

// MET-2: the store in memory is not asked; one that were would have to be scripted.
TEST_F(MetricsRoute, ThePageGoesOutWithItsTypeAndIsNotKept) {
    const auto exchange = api.send("GET", "/metrics/prometheus");
    api.workers.run_all();
    ASSERT_TRUE(exchange->answer.has_value());
    EXPECT_EQ(exchange->answer->status, 200);
    EXPECT_EQ(exchange->answer->content_type, "text/plain; version=0.0.4");
    EXPECT_EQ(exchange->answer->body, "queen_page 1\n");
    EXPECT_EQ(header(*exchange->answer, "Cache-Control"), "no-cache");
}

TEST_F(MetricsRoute, TheFiguresOfTheDashboardAreJson) {
    const auto reply = api.ask("GET", "/metrics");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, R"({"uptime":5})");
    EXPECT_EQ(header(reply, "Cache-Control"), "no-cache");
}

TEST_F(MetricsRoute, ABadQueryIsRefusedHereToo) {
    EXPECT_EQ(api.ask("GET", "/metrics?x=%zz").status, 400);
}

TEST_F(MetricsRoute, OnlyGetAndHeadAreAllowed) {
    const auto reply = api.ask("POST", "/metrics/prometheus");
    EXPECT_EQ(reply.status, 405);
    EXPECT_EQ(header(reply, "Allow"), "GET, HEAD");
    EXPECT_EQ(api.ask("GET", "/metrics/other").status, 404);
}

// The page is made by a worker: nothing of it happens on the network thread.
TEST_F(MetricsRoute, AWorkerMakesThePage) {
    const auto exchange = api.send("GET", "/metrics/prometheus");
    EXPECT_FALSE(exchange->answer.has_value());
    EXPECT_EQ(api.workers.pending(), 1u);
    api.workers.run_all();
    EXPECT_TRUE(exchange->answer.has_value());
}

} // namespace
} // namespace queen::test
