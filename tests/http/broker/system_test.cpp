// Switches, statistics and totals of real brokers over one database.
#include "support/api.hpp"
#include "support/broker_process.hpp"
#include "support/candidate_source.hpp"
#include "support/exposition.hpp"
#include "support/postgres.hpp"
#include "support/sql_session.hpp"
#include "support/temp_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

namespace queen::test {
namespace {

using testing::HasSubstr;

/// Brokers with a backoff of a minute: whoever is answered sooner was told.
class SystemTest : public testing::Test {
protected:
    std::unique_ptr<BrokerProcess> broker(const std::string& more = {}) {
        return std::make_unique<BrokerProcess>(BrokerOptions{
            .config = "database: {url: \"" + TestPostgres::shared().conninfo(database_) +
                      "\", sessions: 4}\n"
                      "pop: {backoff_initial: 60s, backoff_max: 60s}\n" +
                      more + serving("hotlist"),
            .data_directory = directory_.path() + "/data"});
    }
    static HttpResponse pause(const BrokerProcess& broker, bool paused) {
        return HttpClient(broker.port())
            .post("/api/v1/system/maintenance/pop",
                  paused ? R"({"enabled":true})" : R"({"enabled":false})");
    }
    static Exposition page(const BrokerProcess& broker) {
        const auto response = HttpClient(broker.port()).get("/metrics/prometheus");
        EXPECT_EQ(response.status, 200);
        return parse_exposition(response.body);
    }
    static void await(const std::function<bool()>& holds) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
        while (!holds()) {
            ASSERT_LT(std::chrono::steady_clock::now(), end) << "not within a minute";
        }
    }
    static void await(const BrokerProcess& broker, const std::string& series,
                      const std::string& value) {
        await([&] { return page(broker).value(series) == value; });
    }

    TempDirectory directory_;
    std::string database_ = TestPostgres::shared().create_database();
};

// SWI-1, SWI-2
TEST_F(SystemTest, APauseHoldsAtOnceHereSoonElsewhereAndAfterARestart) {
    auto here = broker();
    auto there = broker("switches: {refresh: 100ms}\n");
    Api api(here->port());
    api.push_ids("q", "p", {"t"});
    api.pop("r", "consumerGroup=g"); // the group is known: the next pop parks
    HttpClient parked(here->port());
    parked.start("GET", Api::pop_target("r", "consumerGroup=g&wait=true&timeout=60000"));
    await(*here, "queen_parked_pops", "1");

    EXPECT_EQ(pause(*here, true).status, 200);
    EXPECT_EQ(parked.read().status, 204);
    EXPECT_EQ(api.pop("q").status, 204);
    EXPECT_EQ(api.pop("q", "wait=true&timeout=60000").status, 204);
    EXPECT_EQ(page(*here).value("queen_pop_maintenance_mode_enabled"), "1");
    EXPECT_EQ(api.push_ids("q", "p", {"u"}).status, 201);

    Api other(there->port());
    await([&] {
        return other.http.get("/api/v1/system/shared-state")
                   .body.find(R"("pop_maintenance_mode":true)") != std::string::npos;
    });
    EXPECT_EQ(other.pop("q").status, 204);

    here->stop();
    here = broker();
    Api again(here->port());
    EXPECT_EQ(again.pop("q").status, 204) << "the first pop after a start";
    EXPECT_EQ(pause(*here, false).status, 200);
    EXPECT_EQ(again.pop("q").ids(), (std::vector<std::string>{"t", "u"}));
}

TEST_F(SystemTest, CountsOfAllBrokersOutliveThem) {
    auto first = broker();
    auto second = broker();
    Api(first->port()).push_ids("q", "p", {"a", "b", "c"});
    Api two(second->port());
    two.push_ids("q", "p", {"d"});
    const auto popped = two.pop("q", "consumerGroup=g&batch=2");
    ASSERT_EQ(popped.messages.size(), 2u);
    EXPECT_EQ(two.ack(popped.messages[1], "completed", "g"), "true");
    const auto bad = two.pop("q", "consumerGroup=g&batch=1");
    ASSERT_EQ(bad.messages.size(), 1u);
    EXPECT_EQ(two.ack(bad.messages[0], "dlq", "g"), "true");
    EXPECT_EQ(two.http
                  .post("/api/v1/transaction",
                        R"({"operations":[{"type":"push","queue":"r","payload":1}]})")
                  .status,
              200);
    EXPECT_EQ(page(*first).value("queen_cluster_push_messages_total{scope=\"cluster\"}"), "0");
    first->stop(); // tells what is left
    second->stop();
    const auto third = broker();
    const auto seen = page(*third);
    for (const auto& [series, value] :
         {std::pair{"queen_cluster_push_messages_total{scope=\"cluster\"}", "5"},
          {"queen_cluster_push_requests_total{scope=\"cluster\"}", "2"},
          {"queen_cluster_pop_messages_total{scope=\"cluster\"}", "3"},
          {"queen_cluster_ack_messages_total{scope=\"cluster\"}", "2"},
          {"queen_cluster_ack_total{scope=\"cluster\",result=\"dlq\"}", "1"},
          {"queen_cluster_dlq_total{scope=\"cluster\"}", "1"},
          {"queen_cluster_transactions_total{scope=\"cluster\"}", "1"},
          {"queen_cluster_ack_total{scope=\"cluster\",result=\"completed\"}", "1"},
          {"queen_cluster_ack_total{scope=\"cluster\",result=\"refused\"}", "0"},
          {"queen_process_push_messages_total", "0"}}) {
        EXPECT_EQ(seen.value(series), value) << series;
    }
}

// One of the brokers makes statistics by itself; a refresh makes them now.
TEST_F(SystemTest, StatisticsAreMadeAndServed) {
    const auto here = broker();
    Api api(here->port());
    await([&] {
        return api.http.get("/api/v1/resources/overview?stats=cached")
                   .body.find("\"statsAge\": -1") == std::string::npos;
    });
    api.push_ids("q", "p", {"a", "b", "c"});
    const auto popped = api.pop("q", "consumerGroup=g&batch=1&autoAck=true");
    ASSERT_EQ(popped.messages.size(), 1u);
    const auto refreshed = api.http.post("/api/v1/stats/refresh", "");
    EXPECT_EQ(refreshed.status, 200);
    EXPECT_THAT(refreshed.body,
                HasSubstr(R"("success":true,"refreshed":true,"queues":1,"partitions":1)"));
    EXPECT_THAT(api.http.get("/api/v1/resources/queues?stats=cached").body,
                HasSubstr(R"("messages": {"total": 3, "pending": 2, "completed": 1, )"));
    EXPECT_THAT(api.http.get("/api/v1/resources/overview?stats=cached").body,
                HasSubstr(R"("ingestedPerSecond": 0.01, "processedPerSecond": 0.003)"));
    await(*here, "queen_group_lag_messages{queue=\"q\",group=\"g\"}", "2");
    EXPECT_EQ(page(*here).value("queen_dlq_depth{scope=\"cluster\"}"), "0");
}

// K30: two hundred dashboards whose questions hang, on a pool of four. What decides is shown, not
// the time: their statements have one session, and pushes and pops never waited behind them.
TEST_F(SystemTest, K30_DashboardsNeverTakeThePool) {
    const auto here = broker("statistics: {interval: 1h}\nmaintenance: {retention_interval: 1h}\n");
    Api api(here->port());
    api.push_ids("q", "p", {"first"});
    EXPECT_EQ(api.pop("q", "consumerGroup=g&autoAck=true").status, 200);
    SqlSession locker(TestPostgres::shared().conninfo(database_));
    locker.query("begin");
    locker.query(
        "lock table queen.log_dlq in access exclusive mode"); // figures read it, pops do not

    const char* kViews[] = {"/api/v1/resources/overview", "/api/v1/resources/queues",
                            "/api/v1/resources/queues/q", "/api/v1/resources/namespaces"};
    std::vector<std::unique_ptr<HttpClient>> dashboards;
    for (std::size_t i = 0; i < 200; ++i) {
        dashboards.push_back(std::make_unique<HttpClient>(here->port()));
        dashboards.back()->start("GET", kViews[i % 4]);
    }
    await([&] { return page(*here).value("queen_connections{state=\"in_flight\"}") == "201"; });
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(api.push_ids("q", "p", {"m" + std::to_string(i)}).status, 201);
        EXPECT_EQ(api.pop("q", "consumerGroup=g&autoAck=true").messages.size(), 1u);
    }
    const auto stuck = page(*here);
    EXPECT_EQ(stuck.value("queen_admission_inflight{lane=\"maint\"}"), "1");
    // One more of their questions, this page's, and the broker's own tasks; not two hundred.
    EXPECT_LE(stuck.by_series.at("queen_admission_waiting{lane=\"maint\"}"), 8);
    for (const std::string lane : {"push", "pop", "ack"}) {
        EXPECT_EQ(
            stuck.value("queen_admission_unrun_total{lane=\"" + lane + "\",reason=\"no_session\"}"),
            "0");
    }
    locker.query("rollback");
    for (const auto& dashboard : dashboards) {
        EXPECT_EQ(dashboard->read().status, 200);
    }
    // A crowd with one question costs the run under way and one more.
    const auto after = page(*here);
    for (const std::string name : {"overview", "list_queues", "queue_detail", "list_labels"}) {
        EXPECT_LE(after.by_series.at("queen_store_statements_total{statement=\"" + name + "\"}"), 2)
            << name;
    }
}

} // namespace
} // namespace queen::test
