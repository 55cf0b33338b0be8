// Dead letters and messages over HTTP of a real broker on a server of its own, so that the test can
// file letters itself.
#include "base/json.hpp"
#include "support/api.hpp"
#include "support/broker_process.hpp"
#include "support/candidate_source.hpp"
#include "support/postgres.hpp"
#include "support/sql_session.hpp"
#include "support/temp_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <thread>

namespace queen::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

/// What K23 wants back digit by digit, and K20's escape of NUL.
constexpr const char* kOddPayload =
    R"({"i":9007199254740993,"j":18446744073709551616,"e":1e400,)"
    R"("d":0.1000000000000000055511151231257827,"z":-0.0,"f":1.0,"nul":"\u0000","é" : [ 1,2 ]})";

/// One broker for all tests of the program; each has queues of its own. The floor of parked pops is
/// a minute: whoever is answered sooner was woken.
class LettersTest : public testing::Test {
protected:
    struct World {
        World() {
            auto& postgres = TestPostgres::shared();
            database = postgres.create_database();
            broker.emplace(
                BrokerOptions{.config = "database: {url: \"" + postgres.conninfo(database) +
                                        "\", sessions: 6}\n"
                                        "pop: {backoff_initial: 60s, backoff_max: 60s}\n" +
                                        serving(source_under_test()),
                              .data_directory = directory.path() + "/data"});
        }
        TempDirectory directory;
        std::string database;
        std::optional<BrokerProcess> broker;
    };
    static void SetUpTestSuite() {
        if (!world_) {
            world_ = new World;
        }
    }
    class End final : public testing::Environment {
        void TearDown() override { delete std::exchange(world_, nullptr); }
    };
    static inline World* world_ = nullptr;
    static inline const auto* const kEnd = testing::AddGlobalTestEnvironment(new End);

    static std::uint16_t port() { return world_->broker->port(); }
    std::string queue() const {
        return testing::UnitTest::GetInstance()->current_test_info()->name();
    }

    /// Files a message of a queue as a dead letter, as a group that gave up on it would.
    std::string file(const std::string& queue, const std::string& partition, const std::string& txn,
                     const std::string& group, const std::string& payload = "{}",
                     std::int64_t offset = 0, const std::string& error = "it broke") {
        return sql.one("insert into queen.log_dlq (queue_id, partition_id, consumer_group, "
                       "\"offset\", message_id, transaction_id, payload, error, retry_count, "
                       "created_at) select q.id, p.id, $3, $4, gen_random_uuid(), $5, "
                       "convert_to($6, 'UTF8'), $7, 3, now() from queen.queues q join "
                       "queen.log_partitions p on p.queue_id = q.id where q.name = $1 and p.name "
                       "= $2 returning id",
                       {queue, partition, group, offset, txn, payload, error});
    }
    std::string pid(const std::string& queue, const std::string& partition) {
        return sql.one("select p.id from queen.log_partitions p join queen.queues q on q.id = "
                       "p.queue_id where q.name = $1 and p.name = $2",
                       {queue, partition});
    }
    static std::string replay_target(const std::string& id) {
        return "/api/v1/dlq/" + id + "/replay";
    }
    /// A member of the answer by a path such as "messages.0.id".
    static std::string at(const HttpResponse& response, std::string path) {
        const auto document = json::Document::parse(response.body);
        if (!document) {
            return "not JSON: " + response.body;
        }
        json::Value value = document->root();
        while (!path.empty()) {
            const std::size_t dot = path.find('.');
            const std::string step = path.substr(0, dot);
            path.erase(0, dot == std::string::npos ? path.size() : dot + 1);
            value = value.is(json::Kind::array) ? value.at(std::stoul(step)) : value[step];
        }
        return value.is(json::Kind::string)    ? std::string(value.string())
               : value.is(json::Kind::boolean) ? (*value.boolean() ? "true" : "false")
               : value.is(json::Kind::null)    ? "null"
               : value.is(json::Kind::missing) ? "missing"
               : value.is(json::Kind::number)  ? std::string(value.raw_number())
                                               : std::to_string(value.size());
    }
    static std::vector<std::string> rows(const HttpResponse& response, std::string_view member) {
        std::vector<std::string> all;
        const auto document = json::Document::parse(response.body);
        for (std::size_t i = 0; document && i < document->root()["messages"].size(); ++i) {
            all.emplace_back(document->root()["messages"].at(i)[member].string());
        }
        return all;
    }
    HttpResponse messages(const std::string& query = {}) {
        return api.http.get("/api/v1/messages?queue=" + percent_encode(queue()) + query);
    }
    HttpResponse letters(const std::string& query = {}) {
        return api.http.get("/api/v1/dlq?queue=" + percent_encode(queue()) + query);
    }

    Api api{port()};
    SqlSession sql{TestPostgres::shared().conninfo(world_->database)};
};

TEST_F(LettersTest, ALetterIsListedReplayedAndDeliveredByteForByte) {
    api.push(queue(), {{"p", "t", "1"}});
    const std::string id = file(queue(), "p", "t", "g", kOddPayload);
    const auto listed = letters();
    EXPECT_EQ(listed.status, 200);
    EXPECT_EQ(at(listed, "total"), "1");
    EXPECT_EQ(at(listed, "messages.0.id"), id);
    EXPECT_EQ(at(listed, "messages.0.consumerGroup"), "g");
    EXPECT_EQ(at(listed, "messages.0.errorMessage"), "it broke");
    EXPECT_EQ(at(listed, "messages.0.retryCount"), "3");
    EXPECT_EQ(at(listed, "messages.0.partitionId"), pid(queue(), "p"));
    EXPECT_EQ(at(listed, "messages.0.createdAt"), at(listed, "messages.0.failedAt"));
    EXPECT_THAT(listed.body, HasSubstr(std::string("\"data\":") + kOddPayload +
                                       ",\"payload\":" + kOddPayload + ","));

    const auto moved = api.http.post(replay_target(id), "");
    EXPECT_EQ(moved.status, 200) << moved.body;
    EXPECT_EQ(at(moved, "success"), "true");
    EXPECT_EQ(at(moved, "result"), "moved");
    EXPECT_EQ(at(moved, "originalTransactionId"), "t");
    EXPECT_EQ(at(moved, "replayedAs.transaction_id"), "dlq:" + id);
    EXPECT_EQ(at(moved, "replayedAs.offset"), "1");
    EXPECT_EQ(at(moved, "dlqRowRemoved"), "true");
    const auto popped = api.pop(queue(), "consumerGroup=h");
    ASSERT_THAT(popped.ids(), ElementsAre("t", "dlq:" + id));
    EXPECT_EQ(popped.messages[1].data, kOddPayload);
    EXPECT_EQ(popped.messages[1].id, at(moved, "replayedAs.message_id"));
    EXPECT_EQ(at(letters(), "total"), "0");
    EXPECT_EQ(api.http.post(replay_target(id), "{}").status, 404);
}

TEST_F(LettersTest, AReplayWakesWhoWaitsAtOnce) {
    api.push(queue(), {{"p", "t", "1"}});
    ASSERT_THAT(api.pop(queue(), "consumerGroup=g&autoAck=true").ids(), ElementsAre("t"));
    const std::string id = file(queue(), "p", "t", "g");
    HttpClient waiting(port());
    waiting.start("GET", Api::pop_target(queue(), "consumerGroup=g&wait=true&timeout=50000"));
    EXPECT_EQ(api.http.post(replay_target(id), "").status, 200);
    EXPECT_THAT(Api::read_pop(waiting.read()).ids(), ElementsAre("dlq:" + id));
}

TEST_F(LettersTest, K44_TenClicksAreOneNewDeliveryAndOtherGroupsLettersStay) {
    api.push(queue(), {{"p", "t", "1"}});
    const std::string a = file(queue(), "p", "t", "A");
    const std::string b = file(queue(), "p", "t", "B");
    std::vector<std::unique_ptr<HttpClient>> clients;
    for (int i = 0; i < 10; ++i) {
        clients.push_back(std::make_unique<HttpClient>(port()));
        clients.back()->start("POST", replay_target(a), "{}");
    }
    std::map<std::string, int> results;
    for (const auto& client : clients) {
        const auto response = client->read();
        ++results[std::to_string(response.status) + " " + at(response, "result")];
    }
    EXPECT_EQ(results, (std::map<std::string, int>{{"200 moved", 1}, {"404 gone", 9}}));
    EXPECT_THAT(api.pop(queue(), "consumerGroup=x").ids(), ElementsAre("t", "dlq:" + a));
    EXPECT_EQ(at(letters(), "total"), "1");
    EXPECT_EQ(at(letters(), "messages.0.id"), b);

    // By the message's address: the letter that is left.
    const std::string address = "/api/v1/messages/" + pid(queue(), "p") + "/t/retry";
    const auto retried = api.http.post(address, "");
    EXPECT_EQ(retried.status, 200) << retried.body;
    EXPECT_EQ(at(retried, "dlqId"), b);
    EXPECT_EQ(at(retried, "consumerGroup"), "B");
    const auto again = api.http.post(address, "");
    EXPECT_EQ(again.status, 404);
    EXPECT_EQ(at(again, "result"), "gone");
    EXPECT_EQ(at(again, "transactionId"), "t");
}

// With a queue go its letters: there is nothing left to replay, and it says so.
TEST_F(LettersTest, K44_AReplayOnADeletedQueueIsAClearError) {
    api.push(queue(), {{"p", "t", "1"}});
    const std::string id = file(queue(), "p", "t", "A");
    api.remove(queue());
    const auto gone = api.http.post(replay_target(id), R"({"queue":"elsewhere"})");
    EXPECT_EQ(gone.status, 404);
    EXPECT_EQ(gone.body, R"({"success":false,"result":"gone","error":"Message not found",)"
                         R"("code":"not_found","dlqId":")" +
                             id + R"(","dlqRowRemoved":false})");
}

TEST_F(LettersTest, ARedirectedLetterGoesWhereItIsToldAndMakesTheQueue) {
    api.push(queue(), {{"p", "t", "1"}});
    const std::string other = queue() + " repaired";
    for (const std::string bad : {R"({"queue":" "})", R"({"partition":""})", R"({"queue":7})", "[]",
                                  "{", R"({"queue":".."})"}) {
        const auto refused = api.http.post(replay_target(file(queue(), "p", "x", "g")), bad);
        EXPECT_EQ(refused.status, 400) << bad;
        EXPECT_EQ(at(refused, "success"), "false");
    }
    const std::string id = file(queue(), "p", "t", "g", "[1]");
    const auto moved =
        api.http.post(replay_target(id),
                      R"({"queue":)" + json::quoted(" " + other + " ") + R"(,"partition":"r"})");
    EXPECT_EQ(at(moved, "queue"), other);
    EXPECT_EQ(at(moved, "partition"), "r");
    EXPECT_THAT(api.pop(other).ids(), ElementsAre("dlq:" + id));
}

TEST_F(LettersTest, LettersOfTimersAreNotReplayedThoseOfQueueModeAre) {
    api.push(queue(), {{"p", "t", "1"}});
    const std::string timer = file(queue(), "p", "t", "__timer__", "{}", -1);
    const auto refused = api.http.post(replay_target(timer), "");
    EXPECT_EQ(refused.status, 409);
    EXPECT_EQ(at(refused, "reason"), "not_replayable");
    EXPECT_EQ(at(refused, "dlqRowRemoved"), "false");
    EXPECT_EQ(at(letters(), "total"), "1");
    const std::string plain = file(queue(), "p", "t", "__QUEUE_MODE__");
    EXPECT_EQ(at(api.http.post(replay_target(plain), ""), "result"), "moved");
}

TEST_F(LettersTest, DeletingAndPurging) {
    api.push(queue(), {{"p", "t", "1"}, {"p", "u", "1"}});
    file(queue(), "p", "t", "a");
    file(queue(), "p", "t", "b");
    file(queue(), "p", "u", "a");
    file(queue(), "p", "u", "b");
    const std::string address = "/api/v1/messages/" + pid(queue(), "p") + "/t";
    const auto deleted = api.http.request("DELETE", address);
    EXPECT_EQ(deleted.status, 200);
    EXPECT_EQ(at(deleted, "deleted"), "2");
    EXPECT_EQ(at(deleted, "message"), "Message deleted successfully");
    const auto again = api.http.request("DELETE", address);
    EXPECT_EQ(again.status, 404);
    EXPECT_EQ(at(again, "error"), "Message not found");
    EXPECT_EQ(api.http.get(address).status, 200) << "the message itself is still in the queue";

    const auto unnamed = api.http.request("DELETE", "/api/v1/dlq");
    EXPECT_EQ(unnamed.status, 400);
    EXPECT_EQ(at(unnamed, "error"), "queue is required");
    const std::string purge = "/api/v1/dlq?queue=" + percent_encode(queue());
    EXPECT_EQ(at(api.http.request("DELETE", purge + "&consumerGroup=a"), "deleted"), "1");
    const auto rest = api.http.request("DELETE", purge);
    EXPECT_EQ(rest.body,
              R"({"success":true,"deleted":1,"queue":")" + queue() + R"(","consumerGroup":null})");
    EXPECT_EQ(at(letters(), "total"), "0");
}

// K21: names that need care, through list, filter, replay and delete.
TEST_F(LettersTest, K21_OddNamesAreListedReplayedAndDeleted) {
    for (const std::string name :
         {"a&b", "a\"b", "a\\b", "a/b", "é", "日本", "🐝", "'", "<x>", "a b+c%"}) {
        const std::string own = queue() + name;
        api.push(own, {{name, name, "1"}});
        const std::string id = file(own, name, name, name);
        const std::string q = "/api/v1/dlq?queue=" + percent_encode(own) +
                              "&consumerGroup=" + percent_encode(name) +
                              "&partition=" + percent_encode(name);
        const auto listed = api.http.get(q);
        EXPECT_EQ(at(listed, "total"), "1") << listed.body;
        for (const std::string member : {"partition", "transactionId", "consumerGroup"}) {
            EXPECT_EQ(at(listed, "messages.0." + member), name) << member;
        }
        EXPECT_EQ(at(api.http.post(replay_target(id), ""), "result"), "moved") << name;
        EXPECT_THAT(api.pop(own).ids(), ElementsAre(name, "dlq:" + id));

        file(own, name, name, name);
        const std::string address =
            "/api/v1/messages/" + pid(own, name) + "/" + percent_encode(name);
        const auto shown = api.http.get(address);
        EXPECT_EQ(at(shown, "transactionId"), name) << shown.body;
        EXPECT_EQ(at(shown, "queuePath"), own + "/" + name);
        EXPECT_EQ(at(shown, "status"), "dead_letter");
        EXPECT_EQ(at(api.http.request("DELETE", address), "deleted"), "1");
        const auto seen = api.http.get("/api/v1/messages?queue=" + percent_encode(own) +
                                       "&partition=" + percent_encode(name));
        EXPECT_THAT(rows(seen, "transactionId"), ElementsAre("dlq:" + id, name));
    }
}

// K45: much text and odd text; the original's id is inside the dedup window.
TEST_F(LettersTest, K45_HugeErrorsAndManyLettersAreListedAndReplayed) {
    api.push(queue(), {{"p", "t", "1"}});
    const std::string error = "say \"no\"\n\x01 " + std::string(1 << 20, 'e');
    const std::string id = file(queue(), "p", "t", "g", kOddPayload, 0, error);
    EXPECT_EQ(at(letters(), "messages.0.errorMessage"), error);
    EXPECT_EQ(at(api.http.get("/api/v1/messages/" + pid(queue(), "p") + "/t"), "errorMessage"),
              error);
    EXPECT_EQ(at(api.http.post(replay_target(id), ""), "result"), "moved");
    EXPECT_EQ(api.pop(queue()).messages.size(), 2u);
}

// K41 over HTTP, by offsets: letters that arrive meanwhile move nobody.
TEST_F(LettersTest, K41_LettersArePagedByOffsetWhileMoreArrive) {
    api.push(queue(), {{"p", "t", "1"}});
    sql.query("insert into queen.log_dlq (queue_id, partition_id, consumer_group, \"offset\", "
              "transaction_id, failed_at) select p.queue_id, p.id, 'g', i, 'm' || i, now() from "
              "queen.log_partitions p, generate_series(1, 1000) i where p.id = $1",
              {pid(queue(), "p")});
    std::map<std::string, int> seen;
    for (int offset = 0; offset < 1100; offset += 100) {
        const auto page = letters("&limit=100&offset=" + std::to_string(offset));
        for (const auto& txn : rows(page, "transactionId")) {
            ++seen[txn];
        }
        file(queue(), "p", "late", "g");
        file(queue(), "p", "late", "g");
    }
    for (int i = 1; i <= 1000; ++i) {
        EXPECT_EQ(seen["m" + std::to_string(i)], 1) << i;
    }
    EXPECT_EQ(at(letters("&limit=1"), "total"), "1022");
}

class MessagesTest : public LettersTest {};

TEST_F(MessagesTest, AMessageIsShownWithItsPlaceAndItsBytes) {
    api.push(queue(), {{"p", "t1", "1"}, {"p", "t2", kOddPayload}});
    const auto list = messages();
    EXPECT_EQ(list.status, 200);
    EXPECT_THAT(rows(list, "transactionId"), ElementsAre("t2", "t1")) << "newest first";
    EXPECT_THAT(list.body, HasSubstr(std::string("\"data\":") + kOddPayload + ",\"payload\":" +
                                     kOddPayload + ",\"payloadAvailable\":true,"));
    EXPECT_EQ(at(list, "messages.0.queuePath"), queue() + "/p");
    EXPECT_EQ(at(list, "messages.0.offset"), "1");
    EXPECT_EQ(at(list, "messages.0.segment.seq"), "0");
    EXPECT_EQ(at(list, "messages.0.segment.frameIdx"), "1");
    EXPECT_EQ(at(list, "messages.0.status"), "pending");
    EXPECT_EQ(at(list, "messages.0.queueStatus"), "null");
    EXPECT_EQ(at(list, "messages.0.txnHash").size(), 32u);
    EXPECT_EQ(at(list, "mode.type"), "none");
    EXPECT_EQ(at(list, "total"), "2");
    EXPECT_EQ(at(list, "complete"), "true");
    EXPECT_EQ(at(list, "pagination.next"), "null");

    const auto popped = api.pop(queue(), "consumerGroup=g");
    EXPECT_EQ(popped.messages.size(), 2u) << "looking takes nothing";
    EXPECT_EQ(at(list, "messages.1.id"), popped.messages[0].id);
    const std::string created = at(list, "messages.1.createdAt");
    EXPECT_EQ(created, popped.messages[0].created_at.substr(0, created.size() - 1) + "Z");
    const auto one = api.http.get("/api/v1/messages/" + popped.messages[1].partition_id + "/t2");
    EXPECT_THAT(one.body, HasSubstr(std::string("\"data\":") + kOddPayload + ","));
    EXPECT_EQ(at(one, "status"), "processing");
    EXPECT_EQ(at(one, "consumerGroups.0.name"), "g");
    EXPECT_EQ(at(one, "consumerGroups.0.consumed"), "false");
    EXPECT_NE(at(one, "leaseExpiresAt"), "null");
    EXPECT_EQ(at(one, "queueConfig.retryLimit"), "3");
    EXPECT_EQ(at(one, "mode.type"), "bus");
    EXPECT_EQ(api.http.get("/api/v1/messages/" + popped.messages[1].partition_id + "/nope").status,
              404);
    EXPECT_EQ(api.http.get("/api/v1/messages/" + popped.messages[1].lease_id + "/t2").status, 404);
}

TEST_F(MessagesTest, K40_StatusFollowsTheGroupsAndAStrayPopPinsNothing) {
    std::vector<std::string> ids;
    for (int i = 0; i < 100; ++i) {
        ids.push_back("m" + std::to_string(i));
    }
    api.push_ids(queue(), "p", ids);
    const auto counted = [&](const std::string& status) {
        return at(messages("&limit=1000&status=" + status), "total");
    };
    EXPECT_EQ(counted("pending"), "100");
    const auto held = api.pop(queue(), "consumerGroup=g&batch=60");
    EXPECT_EQ(counted("processing"), "60");
    EXPECT_EQ(counted("pending"), "40");
    EXPECT_EQ(api.ack(held.messages[59], "completed", "g"), "true");
    EXPECT_EQ(counted("completed"), "60");
    EXPECT_EQ(counted("processing"), "0");
    ASSERT_EQ(api.pop(queue(), "consumerGroup=g&autoAck=true").messages.size(), 40u);
    EXPECT_EQ(counted("pending"), "0");
    api.pop(queue(), "batch=1&autoAck=true");
    EXPECT_EQ(counted("pending"), "0") << "a pop without a group pins nothing";
    EXPECT_EQ(counted("completed"), "100");
    EXPECT_EQ(at(messages(), "mode.type"), "hybrid");
    EXPECT_EQ(at(messages(), "messages.99.queueStatus"), "completed");
    EXPECT_EQ(at(messages(), "messages.98.queueStatus"), "pending");
    EXPECT_EQ(at(messages(), "messages.98.busStatus.consumedBy"), "1");
    file(queue(), "p", "m7", "g", "{}", 7);
    EXPECT_EQ(counted("dead_letter"), "1");
    EXPECT_EQ(counted("completed"), "99");
    EXPECT_THAT(rows(messages("&status=dead_letter"), "transactionId"), ElementsAre("m7"));
}

// K41: one request with 5,000 messages has one stamp; more arrive with every page.
TEST_F(MessagesTest, K41_EveryMessageOnceWhileMoreArrive) {
    std::vector<std::string> ids;
    for (int i = 0; i < 5000; ++i) {
        ids.push_back("m" + std::to_string(i));
    }
    std::vector<std::array<std::string, 3>> items;
    for (int i = 0; i < 5000; ++i) {
        items.push_back({i % 2 == 0 ? "p" : "r", "m" + std::to_string(i), "1"});
    }
    api.push(queue(), items);
    const auto expect_once = [&](const std::map<std::string, int>& seen) {
        for (const auto& id : ids) {
            const auto found = seen.find(id);
            ASSERT_TRUE(found != seen.end()) << id;
            ASSERT_EQ(found->second, 1) << id;
        }
    };
    int late = 0;
    const auto arrive = [&] {
        const std::string n = std::to_string(late++);
        api.push(queue(), {{"p", "late" + n, "1"}, {"new" + n, "late" + n, "1"}});
    };
    std::map<std::string, int> by_offset;
    for (int offset = 0; offset < 5500; offset += 100) {
        const auto page = messages("&limit=100&offset=" + std::to_string(offset));
        ASSERT_EQ(page.status, 200) << page.body;
        EXPECT_EQ(at(page, "pagination.offset"), std::to_string(offset));
        const auto txns = rows(page, "transactionId");
        for (const auto& txn : txns) {
            ++by_offset[txn];
        }
        if (txns.size() < 100) {
            break;
        }
        arrive();
    }
    expect_once(by_offset);

    std::map<std::string, int> by_cursor;
    std::string after;
    while (true) {
        const auto page =
            messages("&limit=700" + (after.empty() ? "" : "&after=" + percent_encode(after)));
        for (const auto& txn : rows(page, "transactionId")) {
            ++by_cursor[txn];
        }
        after = at(page, "pagination.next");
        if (after == "null") {
            break;
        }
        arrive();
    }
    expect_once(by_cursor);

    EXPECT_EQ(at(messages("&limit=0"), "total"), "1");
    EXPECT_EQ(at(messages("&limit=-1"), "pagination.limit"), "1");
    EXPECT_EQ(at(messages("&limit=1000000000"), "total"), "1000");
    EXPECT_EQ(messages("&limit=many").status, 400);
    EXPECT_EQ(messages("&offset=-1").status, 400);
    EXPECT_EQ(messages("&offset=10001").status, 400);
    EXPECT_EQ(messages("&after=nonsense").status, 400);
}

TEST_F(MessagesTest, FiltersAndTimes) {
    api.configure(queue(), "{}");
    api.http.post("/api/v1/configure",
                  R"({"queue":")" + queue() + R"(","namespace":"FiltersN","task":"FiltersT"})");
    api.push(queue(), {{"p", "a", "1"}, {"r", "b", "1"}});
    EXPECT_THAT(rows(messages("&partition=r"), "transactionId"), ElementsAre("b"));
    const auto total = [&](const std::string& query) {
        return at(api.http.get("/api/v1/messages?" + query), "total");
    };
    EXPECT_EQ(total("namespace=FiltersN"), "2");
    EXPECT_EQ(total("ns=FiltersN&task=FiltersT"), "2");
    EXPECT_EQ(total("ns=FiltersN&task=other"), "0");
    EXPECT_EQ(total("queue=nope"), "0");
    EXPECT_EQ(total("ns=FiltersN&to=2020-01-01"), "0");
    EXPECT_EQ(total("ns=FiltersN&from=2020-01-01&to=2020-01-02"), "0");
    EXPECT_EQ(total("ns=FiltersN&from=2020-01-01T00:00:00Z"), "2");
    // The whole minute of `to`.
    const std::string minute = at(messages(), "messages.0.createdAt").substr(0, 16);
    EXPECT_EQ(total("ns=FiltersN&from=2020-01-01&to=" + minute + ":00Z"), "2");
    for (const std::string bad :
         {"status=lost", "from=yesterday", "to=1767225600000", "from=2026-01-02&to=2026-01-01",
          "queue=..", "ns=a&namespace=b", "limit=1&limit=2"}) {
        EXPECT_EQ(api.http.get("/api/v1/messages?" + bad).status, 400) << bad;
    }
}

TEST_F(MessagesTest, AMessageWhoseSegmentIsGoneIsShownFromItsLetter) {
    api.push(queue(), {{"p", "t", "1"}});
    file(queue(), "p", "t", "g", "[7]");
    sql.query("delete from queen.log_segments where partition_id = $1", {pid(queue(), "p")});
    sql.query("update queen.log_partitions set log_start = 1, segment_count = 0, stored_bytes = 0 "
              "where id = $1",
              {pid(queue(), "p")});
    EXPECT_EQ(at(messages(), "total"), "0");
    const auto one = api.http.get("/api/v1/messages/" + pid(queue(), "p") + "/t");
    EXPECT_EQ(one.status, 200);
    EXPECT_EQ(at(one, "status"), "dead_letter");
    EXPECT_EQ(at(one, "data.0"), "7");
    EXPECT_EQ(at(one, "errorMessage"), "it broke");
    EXPECT_EQ(at(one, "retryCount"), "3");
}

} // namespace
} // namespace queen::test
