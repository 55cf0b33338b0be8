// The page of a real broker: exact after known traffic, well formed, and there without a database.
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

namespace queen::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A broker of its own for each test, so that figures are exact. Its backoff is a minute and nobody
/// looks for timers: nothing happens but what the test does.
class MetricsTest : public testing::Test {
protected:
    void start(const TestPostgres& postgres, const std::string& database,
               const std::string& source = "sqlscan") {
        broker_ = std::make_unique<BrokerProcess>(
            BrokerOptions{.config = "database: {url: \"" + postgres.conninfo(database) +
                                    "\", sessions: 4}\n"
                                    "pop: {backoff_initial: 60s, backoff_max: 60s}\n"
                                    "plugins:\n"
                                    "  - {name: hotlist, path: hotlist.so}\n"
                                    "  - {name: sqlscan, path: sqlscan.so}\n" +
                                    serving(source),
                          .data_directory = directory_.path() + "/data"});
        api_ = std::make_unique<Api>(broker_->port());
    }
    void start(const std::string& source = "sqlscan") {
        auto& postgres = TestPostgres::shared();
        database_ = postgres.create_database();
        start(postgres, database_, source);
    }

    Exposition page() {
        const auto response = HttpClient(broker_->port()).get("/metrics/prometheus");
        EXPECT_EQ(response.status, 200);
        auto read = parse_exposition(response.body);
        EXPECT_THAT(read.problems, IsEmpty());
        return read;
    }
    /// Scrapes until `wanted` holds: figures of what other threads do come a moment later.
    Exposition await(const std::function<bool(const Exposition&)>& wanted) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
        auto seen = page();
        bool holds = wanted(seen);
        while (!holds && std::chrono::steady_clock::now() < end) {
            seen = page();
            holds = wanted(seen);
        }
        EXPECT_TRUE(holds) << "not within a minute";
        return seen;
    }
    static void expect(const Exposition& page,
                       const std::vector<std::pair<std::string, std::string>>& figures) {
        for (const auto& [series, value] : figures) {
            EXPECT_EQ(page.value(series), value) << series;
        }
    }

    TempDirectory directory_;
    std::string database_;
    std::unique_ptr<BrokerProcess> broker_;
    std::unique_ptr<Api> api_;
};

TEST_F(MetricsTest, FiguresAreExactAfterKnownTraffic) {
    start();
    const auto before = page();
    expect(before, {{"queen_process_push_messages_total", "0"},
                    {"queen_db_pool_size", "4"},
                    {"queen_store_statements_total{statement=\"push_multi\"}", "<missing>"},
                    {"queen_queue_metrics_age_seconds", "<missing>"}});

    api_->push("q", {{"a", "t1", "1"}, {"b", "t2", "2"}, {"a", "t3", "3"}, {"a", "t1", "1"}});
    api_->push("r", {{"a", "t1", "1"}});
    const auto popped = api_->pop("q", "consumerGroup=g&partitions=5");
    ASSERT_EQ(popped.messages.size(), 3u);
    EXPECT_EQ(api_->pop("q", "consumerGroup=g").status, 204);
    const auto& part = // of the two in its partition
        popped.messages[popped.messages[0].partition == "a" ? 0 : 1];
    EXPECT_EQ(api_->ack(part, "completed", "g"), "true");
    EXPECT_NE(api_->ack(part, "failed", "g", "0199f0d1-0000-7000-8000-000000000777"), "true");

    const auto after = page();
    expect(after, {{"queen_process_push_requests_total", "2"},
                   {"queen_process_push_messages_total", "4"},
                   {"queen_process_push_duplicates_total", "1"},
                   {"queen_process_push_failed_total", "0"},
                   {"queen_process_pop_requests_total", "2"},
                   {"queen_process_pop_messages_total", "3"},
                   {"queen_process_pop_empty_total", "1"},
                   {"queen_process_pop_failed_total", "0"},
                   {"queen_process_pop_lag_seconds_count", "3"},
                   {"queen_process_ack_requests_total", "2"},
                   {"queen_process_ack_messages_total", "1"},
                   {"queen_process_ack_refused_total", "1"},
                   {"queen_pop_first_contacts_total", "1"},
                   {"queen_store_statements_total{statement=\"push_multi\"}", "2"},
                   {"queen_store_statements_total{statement=\"ack_by_hash\"}", "2"},
                   {"queen_store_statement_duration_seconds_count{statement=\"push_multi\"}", "2"},
                   {"queen_admission_wait_seconds_count{lane=\"push\"}", "2"},
                   {"queen_admission_wait_seconds_count{lane=\"ack\"}", "2"},
                   {"queen_candidates_marks_total{source=\"sqlscan\"}", "3"},
                   {"queen_candidates_queues{source=\"sqlscan\"}", "2"},
                   {"queen_plugin_paused{plugin=\"sqlscan\"}", "0"},
                   {"queen_queue_metrics_tracked", "2"},
                   {"queen_parked_pops", "0"},
                   {"queen_db_outage", "0"},
                   {"queen_http_responses_total{code=\"201\"}", "2"},
                   {"queen_http_responses_total{code=\"204\"}", "1"},
                   {"queen_http_responses_total{code=\"200\"}", "4"},
                   {"queen_http_requests_total", "8"},
                   {"queen_connections_total{event=\"accepted\"}", "3"},
                   {"queen_connections{state=\"in_flight\"}", "1"}});
    EXPECT_EQ(after.families.at("queen_process_push_messages_total").type, "counter");
    // The sources' own figures are counted as they are named.
    EXPECT_EQ(after.families.at("queen_candidates_scans_total").type, "counter");
    EXPECT_EQ(after.families.at("queen_candidates_queues").type, "gauge");
    EXPECT_GT(after.by_series.at("queen_process_resident_memory_bytes"), 1e6);
    EXPECT_GT(after.by_series.at("queen_store_statement_seconds_total{statement=\"push_multi\"}"),
              0);
}

// AR-3: the batch that was delivered is one step of the cursor, a part of one is not.
TEST_F(MetricsTest, AckingAWholeBatchTakesTheShortWay) {
    start();
    api_->push_ids("q", "p", {"a"});
    const auto popped = api_->pop("q", "consumerGroup=g");
    ASSERT_EQ(popped.messages.size(), 1u);
    expect(page(), {{"queen_ack_registry_entries", "1"}});
    EXPECT_EQ(api_->ack(popped.messages[0], "completed", "g"), "true");
    expect(page(), {{"queen_store_statements_total{statement=\"ack_multi\"}", "1"},
                    {"queen_store_statements_total{statement=\"ack_by_hash\"}", "<missing>"},
                    {"queen_ack_registry_hits_total", "1"},
                    {"queen_ack_registry_misses_total", "0"},
                    {"queen_ack_registry_refused_total", "0"},
                    {"queen_ack_registry_entries", "0"},
                    {"queen_ack_registry_bytes", "0"},
                    {"queen_process_ack_messages_total", "1"}});
    EXPECT_EQ(api_->pop("q", "consumerGroup=g").status, 204);
}

TEST_F(MetricsTest, DeadLettersAreCounted) {
    start();
    api_->push_ids("q", "p", {"a", "b"});
    const auto popped = api_->pop("q", "consumerGroup=g");
    EXPECT_EQ(api_->ack(popped.messages.at(0), "dlq", "g"), "true");
    expect(page(), {{"queen_process_ack_dead_letters_total", "1"},
                    {"queen_store_statements_total{statement=\"ack_by_hash\"}", "1"},
                    {"queen_store_statements_total{statement=\"segment_at\"}", "1"},
                    {"queen_store_statements_total{statement=\"ack_letters\"}", "1"}});
}

// Both of our sources are loaded, each is counted by itself, and all they say of themselves fits.
TEST_F(MetricsTest, EachSourceHasItsOwnFigures) {
    start("hotlist");
    api_->push_ids("q", "p", {"t"});
    EXPECT_THAT(api_->pop("q", "autoAck=true").ids(), ElementsAre("t"));
    const auto seen = page();
    expect(seen, {{"queen_candidates_marks_total{source=\"hotlist\"}", "1"},
                  {"queen_candidates_marks_total{source=\"sqlscan\"}", "1"},
                  {"queen_candidates_figures_dropped{source=\"hotlist\"}", "0"},
                  {"queen_candidates_figures_dropped{source=\"sqlscan\"}", "0"},
                  {"queen_plugin_paused{plugin=\"hotlist\"}", "0"}});
    EXPECT_TRUE(seen.by_series.contains("queen_candidates_rings{source=\"hotlist\"}"));
    EXPECT_TRUE(seen.by_series.contains("queen_candidates_hints{source=\"sqlscan\"}"));
}

// A window large enough is read in the background of its second push that is slow.
TEST_F(MetricsTest, TheDedupCacheShowsWhatItHolds) {
    start();
    expect(page(), {{"queen_dedup_bytes", "0"}, {"queen_dedup_vouched_total", "0"}});
    std::vector<std::string> ids;
    for (int i = 0; i < 600; ++i) {
        ids.push_back("t" + std::to_string(i));
    }
    api_->push_ids("q", "p", ids);
    api_->push_ids("q", "p", {"a"});
    api_->push_ids("q", "p", {"b"});
    const auto held = await(
        [](const Exposition& seen) { return seen.by_series.at("queen_dedup_hashes") == 602; });
    expect(held, {{"queen_dedup_partitions", "1"},
                  {"queen_dedup_hydrations_total", "1"},
                  {"queen_dedup_vouched_total", "0"}});
    EXPECT_GT(held.by_series.at("queen_dedup_bytes"), 602 * 8);
    api_->push_ids("q", "p", {"c"});
    api_->push_ids("q", "p", {"t0"});
    expect(page(), {{"queen_dedup_hashes", "603"},
                    {"queen_dedup_vouched_total", "1"},
                    {"queen_dedup_suspects_total", "1"},
                    {"queen_dedup_disbelieved_total", "0"},
                    {"queen_dedup_surprises_total", "0"},
                    {"queen_process_push_duplicates_total", "1"}});
}

// A pop that named its partitions and one that did not, by what the database was asked.
TEST_F(MetricsTest, ClaimsAreToldApart) {
    start();
    api_->push_ids("q", "p", {"t"});
    EXPECT_EQ(api_->http.get("/api/v1/pop/queue/q/partition/p?autoAck=true").status, 200);
    expect(page(), {{"queen_pop_targeted_total", "1"}, {"queen_pop_wildcard_total", "0"}});
    EXPECT_EQ(api_->pop("q").status, 204);
    EXPECT_EQ(page().value("queen_pop_targeted_total"), "1");
    EXPECT_EQ(page().by_series.at("queen_pop_wildcard_total"), 1);
}

TEST_F(MetricsTest, ThePageIsTextAndNotKept) {
    start();
    for (const std::string method : {"GET", "HEAD"}) {
        HttpClient client(broker_->port());
        client.start(method, "/metrics/prometheus");
        const auto response = client.read(method == "HEAD");
        EXPECT_EQ(response.status, 200);
        EXPECT_EQ(response.header("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
        EXPECT_EQ(response.header("Cache-Control"), "no-cache");
    }
}

TEST_F(MetricsTest, ThePageIsWellFormedWhateverQueuesAreCalled) {
    start();
    const std::string hostile = "a\"b\\c{d=\"e\"} 1 # TYPE \xc3\xbc";
    auto waiting = std::make_unique<HttpClient>(broker_->port());
    waiting->start("GET", Api::pop_target(hostile, "wait=true&timeout=50000"));
    const auto parked =
        await([](const Exposition& seen) { return seen.value("queen_parked_pops") == "1"; });
    const auto& samples = parked.families.at("queen_parked_long_polls").samples;
    ASSERT_EQ(samples.size(), 1u);
    EXPECT_EQ(samples[0].labels.at("queue"), hostile);
    EXPECT_EQ(samples[0].value, 1);

    api_->push_ids(hostile, "p", {"t"});
    EXPECT_EQ(waiting->read().status, 200);
    const auto woken =
        await([](const Exposition& seen) { return seen.value("queen_parked_pops") == "0"; });
    EXPECT_EQ(woken.value("queen_wakes_total{cause=\"event\"}"), "1");
    EXPECT_THAT(woken.families.at("queen_parked_long_polls").samples, IsEmpty());
}

// MET-2: the pushes stand, one in the database and the others before it; the page comes all the
// same. Only what writes the partition waits for its row: the broker's own tasks do not, but each
// takes a session, or waits for one, for a moment now and then.
TEST_F(MetricsTest, AScrapeDoesNotWaitForTheDatabase) {
    start();
    api_->push_ids("q", "p", {"first"});
    SqlSession locker(TestPostgres::shared().conninfo(database_));
    locker.query("begin");
    EXPECT_EQ(locker.query("select from queen.log_partitions for update").size(), 1u);
    std::vector<std::unique_ptr<Api>> pushers;
    for (int i = 0; i < 8; ++i) {
        pushers.push_back(std::make_unique<Api>(broker_->port()));
        pushers.back()->http.start("POST", "/api/v1/push",
                                   R"({"items":[{"queue":"q","partition":"p","payload":1}]})");
    }
    // Four sessions for four lanes: a lane gets one.
    const auto stuck = await([](const Exposition& seen) {
        return seen.value("queen_admission_waiting{lane=\"push\"}") == "7" &&
               seen.value("queen_db_pool_active") == "1";
    });
    expect(stuck, {{"queen_admission_inflight{lane=\"push\"}", "1"}, {"queen_db_pool_idle", "3"}});
    await([this](const Exposition&) {
        const auto document = json::Document::parse(Api(broker_->port()).http.get("/metrics").body);
        return document.has_value() &&
               document->root()["database"]["waitingRequests"].integer() == 7;
    });
    locker.query("rollback");
    for (const auto& pusher : pushers) {
        EXPECT_THAT(column(pusher->http.read(), "status"), ElementsAre("queued"));
    }
    expect(page(), {{"queen_admission_waiting{lane=\"push\"}", "0"},
                    {"queen_process_push_messages_total", "9"}});
}

TEST_F(MetricsTest, ThePageIsThereWhileTheDatabaseIsNot) {
    TestPostgres postgres;
    start(postgres, postgres.create_database());
    api_->push_ids("q", "p", {"t1"});
    postgres.kill9();
    // Sessions outlive the server's head for a moment.
    int failed = 0;
    await([&](const Exposition& seen) {
        failed += column(api_->push_ids("q", "p", {"t"}), "status").front() == "error" ? 1 : 0;
        return failed > 0 && seen.value("queen_db_outage") == "1";
    });
    EXPECT_EQ(page().by_series.at("queen_process_push_failed_total"), failed);
    EXPECT_EQ(api_->http.get("/metrics").status, 200);
}

TEST_F(MetricsTest, TheFiguresOfDashboards) {
    start();
    api_->push_ids("q", "p", {"t1", "t2"});
    api_->pop("q", "autoAck=true");
    const auto response = api_->http.get("/metrics");
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.header("Content-Type"), "application/json");
    const auto document = json::Document::parse(response.body);
    ASSERT_TRUE(document.has_value()) << response.body;
    const auto root = document->root();
    EXPECT_EQ(root["requests"]["total"].integer(), 3);
    EXPECT_EQ(root["requests"]["rate"].integer(), 0);
    EXPECT_EQ(root["messages"]["total"].integer(), 4) << "pushed and popped";
    EXPECT_EQ(root["database"]["poolSize"].integer(), 4);
    // The broker's own tasks take one session, and wait for it, for a moment now and then.
    EXPECT_GE(root["database"]["idleConnections"].integer().value_or(0), 3);
    EXPECT_LE(root["database"]["waitingRequests"].integer().value_or(9), 3);
    EXPECT_GT(root["memory"]["rss"].integer().value_or(0), 1'000'000);
    for (const char* absent : {"heapTotal", "heapUsed", "external", "arrayBuffers"}) {
        EXPECT_EQ(root["memory"][absent].integer(), 0) << absent;
    }
    EXPECT_GT(
        root["cpu"]["user"].integer().value_or(0) + root["cpu"]["system"].integer().value_or(0), 0);
    EXPECT_TRUE(root["uptime"].integer().has_value());
}

} // namespace
} // namespace queen::test
