// Keys, tokens and tenants over real brokers on one database.
#include "base/base64.hpp"
#include "http/route_table.hpp"
#include "support/api.hpp"
#include "support/broker_process.hpp"
#include "support/candidate_source.hpp"
#include "support/postgres.hpp"
#include "support/sql_session.hpp"
#include "support/temp_directory.hpp"
#include "support/tokens.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

namespace queen::test {
namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const std::string kSecret = "0123456789abcdef0123456789abcdef";
const std::string kKey(64, '7');
const std::string kOne = "3f2504e0-4f89-11d3-9a0c-0305e82c3301";
const std::string kTwo = "3f2504e0-4f89-11d3-9a0c-0305e82c3302";

class SecurityTest : public testing::Test {
protected:
    SecurityTest() : database_(TestPostgres::shared().create_database()) {}

    /// Another broker on the database of the test.
    std::unique_ptr<BrokerProcess> start(const std::vector<std::string>& environment) {
        directories_.push_back(std::make_unique<TempDirectory>());
        return std::make_unique<BrokerProcess>(
            BrokerOptions{.config = config(),
                          .data_directory = directories_.back()->path() + "/data",
                          .environment = environment});
    }
    std::string config() const {
        return "database: {url: \"" + TestPostgres::shared().conninfo(database_) +
               "\", sessions: 4}\n" + serving("sqlscan");
    }
    std::string refusal(const std::vector<std::string>& environment) {
        TempDirectory directory;
        const auto end =
            BrokerProcess::run_to_end(BrokerOptions{.config = config(),
                                                    .data_directory = directory.path() + "/data",
                                                    .environment = environment});
        EXPECT_NE(end.status, 0);
        return end.output;
    }
    SqlSession sql() const { return SqlSession(TestPostgres::shared().conninfo(database_)); }

    std::string database_;
    std::vector<std::unique_ptr<TempDirectory>> directories_;
};

std::string member(const HttpResponse& response, std::size_t index, std::string_view name) {
    const auto document = json::Document::parse(response.body);
    return document ? std::string(document->root().at(index)[name].string()) : response.body;
}

TEST_F(SecurityTest, ENC5_PayloadsOfAnEncryptedQueueAreNeverStoredInClearTextByAnyBroker) {
    const auto with = start({"QUEEN_ENCRYPTION_KEY=" + kKey});
    const auto without = start({});
    EXPECT_TRUE(with->printed("encryption on", std::chrono::seconds(1)));
    EXPECT_TRUE(without->printed("encryption off", std::chrono::seconds(1)));
    Api a(with->port());
    Api b(without->port());

    // Off, on, off, on: what either broker remembers of the queue is out of date each time.
    ASSERT_EQ(a.push("vault", {{"p", "t0", R"("clear")"}}).status, 201);
    ASSERT_EQ(b.configure("vault", R"({"encryptionEnabled":true})").status, 400);
    ASSERT_EQ(a.configure("vault", R"({"encryptionEnabled":true})").status, 200);
    EXPECT_EQ(member(a.push("vault", {{"p", "t1", R"("sesame")"}}), 0, "status"), "queued");
    const auto refused = b.push("vault", {{"p", "t2", R"("sesame")"}});
    EXPECT_EQ(refused.status, 201);
    EXPECT_EQ(member(refused, 0, "status"), "error");
    EXPECT_THAT(member(refused, 0, "error"), HasSubstr("no encryption key"));
    ASSERT_EQ(b.configure("vault", R"({"encryptionEnabled":false})").status, 200);
    EXPECT_EQ(member(a.push("vault", {{"p", "t3", R"("clear too")"}}), 0, "status"), "queued");
    EXPECT_EQ(member(b.push("vault", {{"p", "t4", R"("clear as well")"}}), 0, "status"), "queued");
    ASSERT_EQ(a.configure("vault", R"({"encryptionEnabled":true})").status, 200);
    EXPECT_EQ(member(a.push("vault", {{"p", "t5", R"({"n":5})"}}), 0, "status"), "queued");

    const auto read = a.pop("vault", "consumerGroup=g&autoAck=true");
    ASSERT_THAT(read.ids(), ElementsAre("t0", "t1", "t3", "t4", "t5"));
    EXPECT_EQ(read.messages[1].data, R"("sesame")");
    EXPECT_EQ(read.messages[4].data, R"({"n":5})");
    const auto sealed = b.pop("vault", "consumerGroup=h&autoAck=true");
    ASSERT_EQ(sealed.messages.size(), 5u);
    EXPECT_EQ(sealed.messages[0].data, R"("clear")");
    for (const std::size_t i : {1u, 4u}) {
        EXPECT_THAT(sealed.messages[i].data, HasSubstr(R"("authTag":)"));
        EXPECT_THAT(sealed.messages[i].data, Not(HasSubstr("sesame")));
    }
}

TEST_F(SecurityTest, K39_ARealBrokerAsksForTokens) {
    const auto broker = start({"JWT_ENABLED=true", "JWT_SECRET=" + kSecret});
    HttpClient http(broker->port());
    const auto ask = [&](std::string_view role, std::string_view method, std::string_view target,
                         std::string_view body = {}) {
        Headers headers;
        if (role != "-") {
            headers.emplace_back("Authorization", "Bearer " + token_of_role(role, kSecret, "svc"));
        }
        return http.request(method, target, body, headers);
    };
    const std::string push = R"({"items":[{"queue":"q","transactionId":"t","payload":1}]})";
    struct Row {
        std::string_view method, target, body;
        int none, reader, producer, user, admin;
    };
    for (const Row& row :
         {Row{"GET", "/health", "", 200, 200, 200, 200, 200},
          Row{"GET", "/metrics/prometheus", "", 200, 200, 200, 200, 200},
          Row{"POST", "/api/v1/push", push, 401, 403, 201, 201, 201},
          Row{"GET", "/api/v1/resources/queues", "", 401, 200, 403, 200, 200},
          Row{"GET", "/api/v1/pop/queue/none", "", 401, 403, 403, 204, 204},
          Row{"GET", "/api/v1/system/candidates", "", 401, 403, 403, 403, 200},
          Row{"DELETE", "/api/v1/resources/queues/none", "", 401, 403, 403, 403, 200}}) {
        EXPECT_EQ(ask("-", row.method, row.target, row.body).status, row.none) << row.target;
        EXPECT_EQ(ask("read-only", row.method, row.target, row.body).status, row.reader)
            << row.target;
        EXPECT_EQ(ask("write-only", row.method, row.target, row.body).status, row.producer)
            << row.target;
        EXPECT_EQ(ask("read-write", row.method, row.target, row.body).status, row.user)
            << row.target;
        EXPECT_EQ(ask("admin", row.method, row.target, row.body).status, row.admin) << row.target;
    }
    const auto popped = ask("read-write", "GET", "/api/v1/pop/queue/q");
    EXPECT_THAT(popped.body, HasSubstr(R"("producerSub":"svc")"));
    EXPECT_THAT(broker->output(), Not(HasSubstr(kSecret)));
}

TEST_F(SecurityTest, CFG10_AProtectionThatCannotTakeEffectStopsTheStart) {
    EXPECT_THAT(refusal({"JWT_ENABLED=true"}), HasSubstr("no key to check tokens with"));
    EXPECT_THAT(refusal({"JWT_ENABLED=true", "JWT_ALGORITHM=RS256", "JWT_PUBLIC_KEY=nonsense"}),
                HasSubstr("auth.public_key: invalid"));
    // Nobody listens on the port of discard.
    EXPECT_THAT(
        refusal({"JWT_ENABLED=true", "JWT_ALGORITHM=auto", "JWT_JWKS_URL=http://127.0.0.1:9/keys"}),
        HasSubstr("auth.jwks_url: http://127.0.0.1:9/keys cannot be read"));
    const auto output = refusal({"QUEEN_ENCRYPTION_KEY=sesame"});
    EXPECT_THAT(output, HasSubstr("64 hex digits"));
    EXPECT_THAT(output, Not(HasSubstr("sesame")));
    EXPECT_THAT(refusal({"QUEEN_TENANCY_HEADER=1"}), HasSubstr("tenancy.trusted_proxy"));
}

/// What tenant one learnt; tenant two tries it.
struct Learnt {
    std::string queue, partition, partition_id, transaction_id, message_id, lease_id, dead;
};

/// How each route is asked with the ids of somebody else. `:queue` and the other names of a pattern
/// are filled in; a body likewise.
struct Probe {
    std::string query{};
    std::string body{};
};

const std::map<std::string, Probe>& probes() {
    const std::string ack = R"({"transactionId":"$txn","partitionId":"$pid","leaseId":"$lease",)"
                            R"("consumerGroup":"g","status":"completed"})";
    const std::string address = R"({"transactionId":"$txn","partitionId":"$pid"})";
    static const std::map<std::string, Probe> kProbes{
        {"POST /api/v1/push",
         {"", R"({"items":[{"queue":"$queue","partition":"$part","transactionId":"$txn",)"
              R"("payload":"two"}]})"}},
        {"GET /api/v1/pop/queue/:queue", {"consumerGroup=h"}},
        {"GET /api/v1/pop/queue/:queue/partition/:partition", {"consumerGroup=h2"}},
        {"GET /api/v1/pop", {"namespace=walk&consumerGroup=h3"}},
        {"POST /api/v1/ack", {"", ack}},
        {"POST /api/v1/ack/batch",
         {"", R"({"consumerGroup":"g","acknowledgments":[)" + ack + "]}"}},
        {"POST /api/v1/lease/:leaseId/extend", {"", R"({"seconds":600})"}},
        {"POST /api/v1/configure", {"", R"({"queue":"$queue","options":{"leaseTime":7}})"}},
        {"GET /api/v1/resources/queues", {}},
        {"GET /api/v1/resources/queues/:queue", {}},
        {"DELETE /api/v1/resources/queues/:queue", {}},
        {"GET /api/v1/resources/queues/:queue/depth", {}},
        {"GET /api/v1/resources/queues/:queue/sizes", {}},
        {"GET /api/v1/resources/overview", {}},
        {"GET /api/v1/resources/namespaces", {}},
        {"GET /api/v1/resources/tasks", {}},
        {"POST /api/v1/transaction",
         {"", R"({"operations":[{"type":"ack","transactionId":"$txn","partitionId":"$pid",)"
              R"("consumerGroup":"g","status":"completed"}],"requiredLeases":["$lease"]})"}},
        {"GET /api/v1/messages", {}},
        {"GET /api/v1/messages/:partitionId/:transactionId", {}},
        {"DELETE /api/v1/messages/:partitionId/:transactionId", {}},
        {"POST /api/v1/messages/:partitionId/:transactionId/retry", {}},
        {"GET /api/v1/dlq", {}},
        {"DELETE /api/v1/dlq", {"queue=$queue"}},
        {"POST /api/v1/dlq/:id/replay", {}},
        {"GET /api/v1/consumer-groups", {}},
        {"GET /api/v1/consumer-groups/lagging", {}},
        {"POST /api/v1/consumer-groups/positions",
         {"", R"({"group":"g","consumerGroup":"g","queue":"$queue","partitionIds":["$pid"]})"}},
        {"GET /api/v1/consumer-groups/:group", {}},
        {"DELETE /api/v1/consumer-groups/:group", {}},
        {"DELETE /api/v1/consumer-groups/:group/queues/:queue", {}},
        {"POST /api/v1/consumer-groups/:group/subscription",
         {"", R"({"subscriptionTimestamp":"2026-01-01T00:00:00Z"})"}},
        {"POST /api/v1/consumer-groups/:group/queues/:queue/seek", {"", R"({"toEnd":true})"}},
        {"POST /api/v1/consumer-groups/:group/queues/:queue/partitions/:partition/seek",
         {"", R"({"toEnd":true})"}},
        {"GET /api/v1/timers/:queue", {}},
        {"GET /api/v1/timers/:queue/*timerKey", {}},
        {"DELETE /api/v1/timers/:queue/*timerKey", {}},
        {"POST /api/v1/timers",
         {"", R"({"queue":"$queue","timerKey":"k","delayMs":86400000,"payload":"two"})"}},
        {"GET /api/v1/status", {}},
        {"GET /api/v1/status/queues", {}},
        {"GET /api/v1/status/queues/:queue", {}},
        {"GET /api/v1/status/analytics", {}},
        {"GET /api/v1/analytics/:view", {}},
        {"GET /api/v1/traces/names", {}},
        {"GET /api/v1/traces/by-name/:name", {}},
        {"GET /api/v1/traces/:partitionId/:transactionId", {}},
        {"POST /api/v1/traces", {"", address}},
    };
    return kProbes;
}

/// Routes that are about the broker, not about anything of a tenant.
bool is_of_the_broker(const http::Route& route) {
    const std::string_view path = route.pattern;
    return path.starts_with("/api/v1/system/") || path.starts_with("/auth/") || path == "/health" ||
           path == "/status" || path.starts_with("/metrics") || path == "/api/v1/stats/refresh" ||
           path == "/api/v1/status/buffers";
}

std::string filled(std::string text, const Learnt& learnt) {
    for (const auto& [name, value] : {std::pair{"$queue", learnt.queue},
                                      {"$part", learnt.partition},
                                      {"$pid", learnt.partition_id},
                                      {"$txn", learnt.transaction_id},
                                      {"$lease", learnt.lease_id}}) {
        for (std::size_t at = 0; (at = text.find(name, at)) != std::string::npos;) {
            text.replace(at, std::string_view(name).size(), value);
        }
    }
    return text;
}

std::string path_of(const http::Route& route, const Learnt& learnt) {
    const std::map<std::string_view, std::string> values{{":queue", learnt.queue},
                                                         {":partition", learnt.partition},
                                                         {":leaseId", learnt.lease_id},
                                                         {":partitionId", learnt.partition_id},
                                                         {":group", "g"},
                                                         {":transactionId", learnt.transaction_id},
                                                         {":id", learnt.dead},
                                                         {"*timerKey", "k"},
                                                         {":view", "queue-lag"},
                                                         {":name", "n"}};
    std::string path;
    std::string_view rest = route.pattern;
    while (!rest.empty()) {
        rest.remove_prefix(1);
        const std::string_view segment = rest.substr(0, rest.find('/'));
        rest.remove_prefix(segment.size());
        const auto value = values.find(segment);
        path += "/" + (value == values.end() ? std::string(segment) : value->second);
    }
    return path;
}

/// Rows of a tenant, of every table that hangs on its queues, as one text.
std::string rows_of(SqlSession& sql, const std::string& tenant) {
    std::string out;
    for (const std::string table :
         {"log_partitions", "log_dlq", "consumer_groups_metadata", "consumer_watermarks"}) {
        out += sql.one("select coalesce(string_agg(t::text, E'\\n' order by t::text), '') from "
                       "queen." +
                           table +
                           " t join queen.queues q on q.id = t.queue_id "
                           "where q.tenant_id = $1",
                       {tenant}) +
               "\n";
    }
    for (const std::string table : {"log_segments", "log_consumers", "log_txns"}) {
        out += sql.one("select coalesce(string_agg(t::text, E'\\n' order by t::text), '') from "
                       "queen." +
                           table +
                           " t join queen.log_partitions p on p.id = t.partition_id "
                           "join queen.queues q on q.id = p.queue_id where q.tenant_id = $1",
                       {tenant}) +
               "\n";
    }
    return out + sql.one("select string_agg(q::text, E'\\n' order by q.name) from queen.queues q "
                         "where q.tenant_id = $1",
                         {tenant});
}

TEST_F(SecurityTest, TEN3_WhatOneTenantLearntDoesNothingForAnother) {
    const auto broker = start({"QUEEN_TENANCY_HEADER=1", "QUEEN_KV_TRUSTED_PROXY=1"});
    HttpClient http(broker->port());
    const Headers one{{"x-queen-tenant", kOne}};
    const Headers two{{"x-queen-tenant", kTwo}};
    const auto pop = [&](const std::string& query) {
        return Api::read_pop(http.request("GET", "/api/v1/pop/queue/walk.it?" + query, "", one));
    };
    ASSERT_EQ(http.request("POST", "/api/v1/push",
                           R"({"items":[{"queue":"walk.it","partition":"mine",)"
                           R"("transactionId":"tenant-one-txn","payload":"sesame"}]})",
                           one)
                  .status,
              201);
    const auto held = pop("consumerGroup=g&leaseSeconds=3600");
    ASSERT_EQ(held.messages.size(), 1u);
    const Message& message = held.messages[0];
    auto session = sql();
    // A dead letter, as a route that makes one would leave it.
    const auto dead = session.one(
        "insert into queen.log_dlq (queue_id, partition_id, consumer_group, \"offset\", "
        "transaction_id, payload) select p.queue_id, p.id, 'g', 0, 'tenant-one-txn', "
        "'\"sesame\"' from queen.log_partitions p where p.id = $1 returning id",
        {message.partition_id});
    const Learnt learnt{
        "walk.it",     "mine", message.partition_id, message.transaction_id, message.id,
        held.lease_id, dead};
    const auto before = rows_of(session, kOne);
    ASSERT_THAT(before, HasSubstr("walk.it"));

    std::size_t walked = 0;
    for (const http::Route& route : http::all_routes()) {
        const std::string name = std::string(route.method) + " " + std::string(route.pattern);
        if (route.handle == nullptr || is_of_the_broker(route)) {
            continue;
        }
        const auto probe = probes().find(name);
        ASSERT_NE(probe, probes().end()) << name << ": how does another tenant try it?";
        const auto& [query, body] = probe->second;
        const auto answer = http.request(route.method,
                                         path_of(route, learnt) +
                                             (query.empty() ? "" : "?" + filled(query, learnt)),
                                         filled(body, learnt), two);
        EXPECT_LT(answer.status, 500) << name << ": " << answer.body;
        EXPECT_THAT(answer.body, Not(HasSubstr("sesame"))) << name;
        EXPECT_THAT(answer.body, Not(HasSubstr(message.id))) << name;
        EXPECT_THAT(answer.body, Not(HasSubstr("\"mine\":"))) << name << ": partitions";
        EXPECT_EQ(rows_of(session, kOne), before) << name << " changed what is not its own";
        ++walked;
    }
    EXPECT_GE(walked, 16u);

    const auto ack = http.request("POST", "/api/v1/ack",
                                  filled(probes().at("POST /api/v1/ack").body, learnt), two);
    EXPECT_EQ(member(ack, 0, "error"), "partition not owned by tenant");
    const auto extended = http.request("POST", "/api/v1/lease/" + held.lease_id + "/extend",
                                       R"({"seconds":600})", two);
    EXPECT_EQ(extended.status, 200);
    EXPECT_THAT(extended.body, HasSubstr(R"("success":false,"renewed":0)"));
    EXPECT_EQ(http.request("GET", "/api/v1/resources/queues/never", "", two).status, 404);

    // And its owner still can.
    EXPECT_THAT(http.request("POST", "/api/v1/lease/" + held.lease_id + "/extend",
                             R"({"seconds":7200})", one)
                    .body,
                HasSubstr(R"("renewed":1)"));
    const auto mine = http.request("POST", "/api/v1/ack",
                                   filled(probes().at("POST /api/v1/ack").body, learnt), one);
    EXPECT_THAT(mine.body, HasSubstr(R"("success":true)"));
    EXPECT_EQ(http.request("GET", "/status", "", {{"x-queen-tenant", "nobody"}}).status, 400);
}

// Two tenants' queues of one name are two queues; figures by queue name sum over them.
TEST_F(SecurityTest, TEN4_QueuesOfOneNameAreKeptApartAndCountedTogether) {
    const auto broker = start({"QUEEN_TENANCY_HEADER=1", "QUEEN_KV_TRUSTED_PROXY=1"});
    HttpClient http(broker->port());
    for (const std::string& tenant : {kOne, kTwo}) {
        http.request("POST", "/api/v1/push",
                     R"({"items":[{"queue":"same","transactionId":"t","payload":")" + tenant +
                         R"("}]})",
                     {{"x-queen-tenant", tenant}});
    }
    for (const std::string& tenant : {kOne, kTwo}) {
        const auto popped = Api::read_pop(http.request("GET", "/api/v1/pop/queue/same?autoAck=true",
                                                       "", {{"x-queen-tenant", tenant}}));
        ASSERT_EQ(popped.messages.size(), 1u);
        EXPECT_EQ(popped.messages[0].data, "\"" + tenant + "\"");
    }
    EXPECT_EQ(http.request("GET", "/api/v1/pop/queue/same", "").status, 204)
        << "nor has the default tenant any of it";
    const auto page = http.get("/metrics/prometheus").body;
    EXPECT_THAT(page, HasSubstr("queen_queue_metrics_tracked 1\n")) << "one name, one series";
    EXPECT_THAT(page, Not(HasSubstr(kOne)));
}

} // namespace
} // namespace queen::test
