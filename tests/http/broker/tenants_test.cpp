// What one tenant learnt, tried by another on every route of a real broker.
#include "http/broker/security_fixture.hpp"
#include "http/route_table.hpp"

#include <map>

namespace queen::test {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kOne = "3f2504e0-4f89-11d3-9a0c-0305e82c3301";
const std::string kTwo = "3f2504e0-4f89-11d3-9a0c-0305e82c3302";

/// What tenant one learnt; tenant two tries it.
struct Learnt {
    std::string queue, partition, partition_id, transaction_id, message_id, lease_id, dead;
    std::string name_space, task; ///< of the queue
    std::string partitions;       ///< how many the tenant has
};

/// How each route is asked with the ids of somebody else. `:queue` and the other names of a pattern
/// are filled in; a body likewise. `own` is what the answer shows to whom it belongs; without it,
/// anything that was learnt.
struct Probe {
    std::string query{};
    std::string body{};
    std::string own{};
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
        {"GET /api/v1/pop", {"namespace=$namespace&consumerGroup=h3"}},
        {"POST /api/v1/ack", {"", ack}},
        {"POST /api/v1/ack/batch",
         {"", R"({"consumerGroup":"g","acknowledgments":[)" + ack + "]}"}},
        {"POST /api/v1/lease/:leaseId/extend", {"", R"({"seconds":7200})"}},
        {"POST /api/v1/configure", {"", R"({"queue":"$queue","options":{"leaseTime":7}})"}},
        {"GET /api/v1/resources/queues", {}},
        {"GET /api/v1/resources/queues/:queue", {}},
        {"DELETE /api/v1/resources/queues/:queue", {}},
        {"GET /api/v1/resources/queues/:queue/depth", {}},
        {"GET /api/v1/resources/queues/:queue/sizes", {}},
        {"GET /api/v1/resources/overview", {"", "", R"("partitions": $count)"}},
        {"GET /api/v1/resources/namespaces", {"", "", R"("$namespace")"}},
        {"GET /api/v1/resources/tasks", {"", "", R"("$task")"}},
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
        {"GET /api/v1/consumer-groups/lagging", {"minLagSeconds=0"}},
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
         {"", R"([{"op":"reschedule","queue":"$queue","timerKey":"k","delayMs":86400000,)"
              R"("txn":"two","payload":"MQ=="}])"}},
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
    return path.starts_with("/api/v1/system/") || path.starts_with("/internal/") ||
           path.starts_with("/auth/") || path == "/health" || path == "/status" ||
           path.starts_with("/metrics") || path == "/api/v1/stats/refresh" ||
           path == "/api/v1/status/buffers" || path == "/openapi.json";
}

std::string filled(std::string text, const Learnt& learnt) {
    for (const auto& [name, value] : {std::pair{"$queue", learnt.queue},
                                      {"$part", learnt.partition},
                                      {"$pid", learnt.partition_id},
                                      {"$txn", learnt.transaction_id},
                                      {"$namespace", learnt.name_space},
                                      {"$task", learnt.task},
                                      {"$count", learnt.partitions},
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
    out += sql.one("select coalesce(string_agg(t::text, E'\\n' order by t::text), '') from "
                   "queen.log_timers t where t.tenant_id = $1",
                   {tenant});
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

class TenantsTest : public SecurityTest {
protected:
    TenantsTest() : broker_(start({"QUEEN_TENANCY_HEADER=1", "QUEEN_KV_TRUSTED_PROXY=1"})) {}

    /// A queue of tenant one with a message under lease, which is a dead letter of the group too.
    Learnt learn(const std::string& queue) {
        Learnt learnt;
        learnt.queue = queue;
        learnt.name_space = queue.substr(0, queue.find('.'));
        learnt.task = queue.substr(queue.find('.') + 1);
        learnt.partition = "mine";
        const auto pushed =
            http.request("POST", "/api/v1/push",
                         R"({"items":[{"queue":")" + queue +
                             R"(","partition":"mine",)"
                             R"("transactionId":"tenant-one-txn","payload":"sesame"}]})",
                         one);
        EXPECT_EQ(pushed.status, 201);
        const auto held = Api::read_pop(http.request(
            "GET", "/api/v1/pop/queue/" + queue + "?consumerGroup=g&leaseSeconds=3600", "", one));
        EXPECT_EQ(held.messages.size(), 1u);
        learnt.partition_id = held.messages.at(0).partition_id;
        learnt.transaction_id = held.messages.at(0).transaction_id;
        learnt.message_id = held.messages.at(0).id;
        learnt.lease_id = held.lease_id;
        // A dead letter, as a route that makes one would leave it.
        learnt.dead = session.one(
            "insert into queen.log_dlq (queue_id, partition_id, consumer_group, \"offset\", "
            "transaction_id, payload) select p.queue_id, p.id, 'g', 0, 'tenant-one-txn', "
            "'\"sesame\"' from queen.log_partitions p where p.id = $1 returning id",
            {learnt.partition_id});
        // A timer whose message is "sesame" as well.
        EXPECT_EQ(http.request("POST", "/api/v1/timers",
                               R"([{"op":"schedule","queue":")" + queue +
                                   R"(","timerKey":"k","delayMs":86400000,"txn":"one",)"
                                   R"("payload":"InNlc2FtZSI="}])",
                               one)
                      .status,
                  200);
        learnt.partitions =
            session.one("select count(*) from queen.log_partitions p join queen.queues q on q.id = "
                        "p.queue_id where q.tenant_id = $1",
                        {kOne});
        return learnt;
    }
    HttpResponse ask(const http::Route& route, const Probe& probe, const Learnt& learnt,
                     const Headers& tenant) {
        return http.request(route.method,
                            path_of(route, learnt) +
                                (probe.query.empty() ? "" : "?" + filled(probe.query, learnt)),
                            filled(probe.body, learnt), tenant);
    }

    std::unique_ptr<BrokerProcess> broker_;
    HttpClient http{broker_->port()};
    const Headers one{{"x-queen-tenant", kOne}};
    const Headers two{{"x-queen-tenant", kTwo}};
    SqlSession session = sql();
};

// Each route is asked by the other tenant, for whom it shows and changes nothing of the first
// one's, and then the same question by the first, for whom it does: so the question was a real one.
TEST_F(TenantsTest, TEN3_WhatOneTenantLearntDoesNothingForAnother) {
    std::size_t walked = 0;
    for (const http::Route& route : http::all_routes()) {
        const std::string name = std::string(route.method) + " " + std::string(route.pattern);
        if (route.handle == nullptr || is_of_the_broker(route)) {
            continue;
        }
        SCOPED_TRACE(name);
        const auto found = probes().find(name);
        ASSERT_NE(found, probes().end()) << "how does another tenant try it?";
        const Probe& probe = found->second;
        const std::string step = std::to_string(++walked);
        const Learnt learnt = learn("walk" + step + ".step" + step);
        const auto before = rows_of(session, kOne);
        ASSERT_THAT(before, HasSubstr(learnt.queue));

        const auto stranger = ask(route, probe, learnt, two);
        EXPECT_LT(stranger.status, 500) << stranger.body;
        EXPECT_NE(stranger.status, 400) << "a question that nobody may ask: " << stranger.body;
        EXPECT_THAT(stranger.body, Not(HasSubstr("sesame")));
        EXPECT_THAT(stranger.body, Not(HasSubstr("InNlc2FtZSI=")));
        EXPECT_THAT(stranger.body, Not(HasSubstr(learnt.message_id)));
        EXPECT_THAT(stranger.body, Not(HasSubstr("\"mine\":"))) << "partitions";
        EXPECT_EQ(rows_of(session, kOne), before) << "changed what is not its own";

        const auto owner = ask(route, probe, learnt, one);
        EXPECT_LT(owner.status, 300) << owner.body;
        const bool shown =
            !probe.own.empty()
                ? owner.body.find(filled(probe.own, learnt)) != std::string::npos &&
                      stranger.body.find(filled(probe.own, learnt)) == std::string::npos
                : owner.body.find("sesame") != std::string::npos ||
                      (owner.body.find(learnt.queue) != std::string::npos &&
                       owner.body != stranger.body);
        EXPECT_TRUE(shown || rows_of(session, kOne) != before)
            << "of no effect for its owner either: " << owner.body
            << "\nand for another: " << stranger.body;
    }
    EXPECT_GE(walked, 36u);
}

TEST_F(TenantsTest, TEN3_IdsOfAnotherTenantAreUnknownIds) {
    const Learnt learnt = learn("walk.it");
    const auto told = [&](const std::string& method, const std::string& target,
                          const std::string& body = {}) {
        const auto answer = http.request(method, target, filled(body, learnt), two);
        return std::to_string(answer.status) + " " + answer.body;
    };
    const std::string message =
        "/api/v1/messages/" + learnt.partition_id + "/" + learnt.transaction_id;
    const auto ack = http.request("POST", "/api/v1/ack",
                                  filled(probes().at("POST /api/v1/ack").body, learnt), two);
    EXPECT_EQ(member(ack, 0, "error"), "partition not owned by tenant");
    EXPECT_THAT(told("POST", "/api/v1/lease/" + learnt.lease_id + "/extend", R"({"seconds":600})"),
                HasSubstr(R"("success":false,"renewed":0)"));
    EXPECT_THAT(told("POST", "/api/v1/transaction", probes().at("POST /api/v1/transaction").body),
                HasSubstr(R"("reason":"rejected_ack")"));
    EXPECT_THAT(told("GET", message), testing::StartsWith("404 "));
    EXPECT_THAT(told("DELETE", message), testing::StartsWith("404 "));
    EXPECT_THAT(told("POST", message + "/retry"), testing::StartsWith("404 "));
    EXPECT_THAT(told("POST", "/api/v1/dlq/" + learnt.dead + "/replay"),
                testing::StartsWith("404 "));
    EXPECT_THAT(told("DELETE", "/api/v1/dlq?queue=walk.it"), HasSubstr(R"("deleted":0)"));
    EXPECT_THAT(told("POST", "/api/v1/consumer-groups/g/queues/walk.it/seek", R"({"toEnd":true})"),
                testing::StartsWith("404 "));
    for (const std::string target :
         {"/api/v1/resources/queues/walk.it", "/api/v1/resources/queues/walk.it/depth",
          "/api/v1/resources/queues/walk.it/sizes", "/api/v1/consumer-groups/g"}) {
        EXPECT_THAT(told("GET", target), testing::StartsWith("404 ")) << target;
    }

    // And its owner still can.
    EXPECT_THAT(http.request("POST", "/api/v1/lease/" + learnt.lease_id + "/extend",
                             R"({"seconds":7200})", one)
                    .body,
                HasSubstr(R"("renewed":1)"));
    const auto mine = http.request("POST", "/api/v1/ack",
                                   filled(probes().at("POST /api/v1/ack").body, learnt), one);
    EXPECT_THAT(mine.body, HasSubstr(R"("success":true)"));
    EXPECT_EQ(http.request("GET", "/status", "", {{"x-queen-tenant", "nobody"}}).status, 400);
}

// Two tenants' queues of one name are two queues; figures by queue name sum over them.
TEST_F(TenantsTest, TEN4_QueuesOfOneNameAreKeptApartAndCountedTogether) {
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
