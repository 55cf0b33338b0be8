// GET and DELETE /api/v1/dlq, POST /api/v1/dlq/:id/replay.
#include "base/text.hpp"
#include "http/conformance/conformance.hpp"

#include <set>
#include <thread>

namespace queen::test {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::MatchesRegex;
using testing::SizeIs;
using testing::StartsWith;
using testing::UnorderedElementsAre;

class DlqContract : public ConformanceTest {
protected:
    /// Pushes and dead-letters messages, as each of the groups.
    void bury(const std::string& name, const std::string& partition,
              const std::vector<std::string>& payloads, const std::vector<std::string>& ids,
              const std::vector<std::string>& groups = {"g"}) {
        push(name, partition, payloads, ids);
        for (const auto& group : groups) {
            for (std::size_t left = payloads.size(); left > 0;) {
                for (const auto& message :
                     take(name, "batch=100&consumerGroup=" + percent_encode(group))) {
                    const auto answer = ack(message, "dlq", R"("error":"buried")");
                    if (answer.at("0.dlq") != "true") {
                        EXPECT_EQ(answer.at("0.error"), "invalid or expired lease");
                        break; // a dead letter ends the lease: the rest comes again
                    }
                    --left;
                }
                ASSERT_FALSE(HasFailure());
            }
        }
    }
    Answer list(const std::string& query = {}) {
        return get("/api/v1/dlq?queue=" + percent_encode(queue()) + query);
    }
    static std::string replay(const std::string& id) { return "/api/v1/dlq/" + id + "/replay"; }
};

TEST_F(DlqContract, ALetterHasEveryFieldOfTheContract) {
    bury(queue(), "lane", {R"({"i":9007199254740993,"z":"\u0000"})"}, {"tx"});
    const auto answer = list();
    EXPECT_EQ(answer.status(), 200);
    EXPECT_THAT(answer.keys(), IsSupersetOf({"messages", "pagination", "total"}));
    EXPECT_EQ(answer.at("total"), "1");
    EXPECT_EQ(answer.at("pagination.limit"), "100");
    EXPECT_EQ(answer.at("pagination.offset"), "0");
    EXPECT_THAT(answer.keys("messages.0"),
                IsSupersetOf({"id", "transactionId", "partitionId", "queue", "partition",
                              "consumerGroup", "errorMessage", "retryCount", "data", "producerSub",
                              "createdAt", "failedAt", "offset", "messageId", "payload"}));
    EXPECT_EQ(answer.at("messages.0.transactionId"), "tx");
    EXPECT_EQ(answer.at("messages.0.queue"), queue());
    EXPECT_EQ(answer.at("messages.0.partition"), "lane");
    EXPECT_EQ(answer.at("messages.0.consumerGroup"), "g");
    EXPECT_EQ(answer.at("messages.0.errorMessage"), "buried");
    EXPECT_EQ(answer.at("messages.0.offset"), "0");
    EXPECT_EQ(answer.at("messages.0.producerSub"), "null");
    EXPECT_EQ(answer.at("messages.0.createdAt"), answer.at("messages.0.failedAt"));
    EXPECT_THAT(answer.body(), HasSubstr(R"("data":{"i":9007199254740993,"z":"\u0000"})"));
}

TEST_F(DlqContract, NewestFirstPagedAndFiltered) {
    bury(queue(), "a", {"1"}, {"a1"}, {"g", "h"});
    bury(queue(), "b", {"2"}, {"b1"}, {"g"});
    EXPECT_EQ(list().column("messages", "transactionId").at(0), "b1");
    EXPECT_EQ(list().at("total"), "3");
    const auto first = list("&limit=2&offset=0");
    const auto second = list("&limit=2&offset=2");
    EXPECT_EQ(first.size("messages"), 2u);
    EXPECT_EQ(second.size("messages"), 1u);
    EXPECT_EQ(first.at("total"), "3") << "all that match, not the page";
    std::set<std::string> ids;
    for (const auto* page : {&first, &second}) {
        for (const auto& id : page->column("messages", "id")) {
            ids.insert(id);
        }
    }
    EXPECT_EQ(ids.size(), 3u);
    EXPECT_THAT(list("&consumerGroup=h").column("messages", "consumerGroup"), ElementsAre("h"));
    EXPECT_EQ(list("&consumerGroup=nobody").at("total"), "0");
    EXPECT_EQ(get("/api/v1/dlq?queue=" + queue("-none")).at("total"), "0");
    EXPECT_EQ(call("HEAD", "/api/v1/dlq").status(), 200);
    for (const std::string query : {"&limit=x", "&offset=-1", "&offset=x"}) {
        EXPECT_EQ(list(query).status(), 400) << query;
    }
}

TEST_F(DlqContract, WithoutAQueueAllOfTheTenantAreListed) {
    bury(queue(), "p", {"1"}, {"here"});
    EXPECT_THAT(get("/api/v1/dlq?limit=1000").column("messages", "queue"), Contains(queue()));
}

TEST_F(DlqContract, PurgingNeedsAQueueAndMayNameAGroup) {
    bury(queue(), "p", {"1", "2"}, {"x", "y"}, {"g", "h"});
    const auto group = call("DELETE", "/api/v1/dlq?queue=" + queue() + "&consumerGroup=h");
    EXPECT_EQ(group.status(), 200);
    EXPECT_EQ(group.at("success"), "true");
    EXPECT_EQ(group.at("deleted"), "2");
    EXPECT_EQ(group.at("queue"), queue());
    EXPECT_EQ(group.at("consumerGroup"), "h");
    const auto rest = call("DELETE", "/api/v1/dlq?queue=" + queue());
    EXPECT_EQ(rest.at("deleted"), "2");
    EXPECT_EQ(rest.at("consumerGroup"), "null");
    const auto none = call("DELETE", "/api/v1/dlq?queue=" + queue());
    EXPECT_EQ(none.status(), 200);
    EXPECT_EQ(none.at("deleted"), "0");
    for (const std::string path : {"/api/v1/dlq", "/api/v1/dlq?queue="}) {
        const auto refused = call("DELETE", path);
        EXPECT_EQ(refused.status(), 400);
        EXPECT_EQ(refused.at("success"), "false");
        EXPECT_EQ(refused.at("error"), "queue is required");
    }
}

TEST_F(DlqContract, AReplayPushesTheMessageAgainForEveryGroup) {
    bury(queue(), "lane", {R"({"n":1.0})"}, {"tx"}, {"g"});
    const auto letter = list();
    const std::string id = letter.at("messages.0.id");
    const auto answer = post(replay(id), "");
    EXPECT_EQ(answer.status(), 200) << testing::PrintToString(answer);
    EXPECT_EQ(answer.at("success"), "true");
    EXPECT_EQ(answer.at("result"), "moved");
    EXPECT_EQ(answer.at("queue"), queue());
    EXPECT_EQ(answer.at("partition"), "lane");
    EXPECT_EQ(answer.at("consumerGroup"), "g");
    EXPECT_EQ(answer.at("dlqId"), id);
    EXPECT_EQ(answer.at("originalTransactionId"), "tx");
    EXPECT_EQ(answer.at("dlqRowRemoved"), "true");
    EXPECT_EQ(answer.at("replayedAs.index"), "0");
    EXPECT_EQ(answer.at("replayedAs.transaction_id"), "dlq:" + id);
    EXPECT_EQ(answer.at("replayedAs.queueName"), queue());
    EXPECT_EQ(answer.at("replayedAs.status"), "queued");
    EXPECT_EQ(answer.at("replayedAs.offset"), "1");
    EXPECT_EQ(list().at("total"), "0");
    const auto again = take(queue(), "consumerGroup=g");
    ASSERT_THAT(again, SizeIs(1));
    EXPECT_EQ(again[0].transaction_id, "dlq:" + id);
    EXPECT_THAT(take(queue(), "consumerGroup=other&batch=10"), SizeIs(2));
}

TEST_F(DlqContract, AReplayMayGoElsewhere) {
    bury(queue(), "lane", {"1"}, {"tx"});
    const std::string id = list().at("messages.0.id");
    for (const std::string body :
         {R"({"queue":""})", R"({"partition":"  "})", R"({"queue":5})", "[]"}) {
        const auto refused = post(replay(id), body);
        EXPECT_EQ(refused.status(), 400) << body;
        EXPECT_EQ(refused.at("success"), "false") << body;
    }
    const auto answer =
        post(replay(id), R"({"queue":" )" + queue("-other") + R"( ","partition":"q"})");
    EXPECT_EQ(answer.at("result"), "moved") << testing::PrintToString(answer);
    EXPECT_EQ(answer.at("queue"), queue("-other"));
    EXPECT_EQ(answer.at("partition"), "q");
    EXPECT_THAT(take(queue("-other")), SizeIs(1));
}

// K44, F-38: asked ten times at once, moved once; the letters of other groups stay.
TEST_F(DlqContract, K44_TwoClicksMoveALetterOnce) {
    bury(queue(), "p", {"1"}, {"tx"}, {"a", "b"});
    std::string id;
    const auto letters = list();
    for (std::size_t i = 0; i < letters.size("messages"); ++i) {
        if (letters.at("messages." + std::to_string(i) + ".consumerGroup") == "a") {
            id = letters.at("messages." + std::to_string(i) + ".id");
        }
    }
    std::vector<HttpClient> clients;
    for (int i = 0; i < 10; ++i) {
        clients.push_back(connection(static_cast<std::size_t>(i) % brokers()));
        clients.back().start("POST", replay(id), "{}");
    }
    int moved = 0;
    for (auto& client : clients) {
        const Answer answer("replay", client.read());
        EXPECT_THAT(answer.status(), AnyOf(200, 404, 409)) << testing::PrintToString(answer);
        moved += answer.at("result") == "moved" ? 1 : 0;
    }
    EXPECT_EQ(moved, 1);
    EXPECT_THAT(list().column("messages", "consumerGroup"), ElementsAre("b"));
    const auto late = post(replay(id), "{}");
    EXPECT_EQ(late.status(), 404);
    EXPECT_EQ(late.at("success"), "false");
    EXPECT_EQ(late.at("result"), "gone");
    EXPECT_EQ(late.at("error"), "Message not found");
}

TEST_F(DlqContract, AnUnknownLetterIsNotFound) {
    const auto unknown = post(replay("0199f0d1-0000-7000-8000-000000000777"), "");
    EXPECT_EQ(unknown.status(), 404);
    EXPECT_EQ(unknown.at("result"), "gone");
    EXPECT_THAT(post(replay("7"), "").status(), AnyOf(400, 404));
}

TEST_F(DlqContract, ALetterOfQueueModeIsReplayedToo) {
    push(queue(), "p", {"1"});
    const auto message = take(queue()).at(0);
    EXPECT_EQ(ack(message, "dlq").at("0.dlq"), "true");
    EXPECT_EQ(list().at("messages.0.consumerGroup"), "__QUEUE_MODE__");
    EXPECT_EQ(post(replay(list().at("messages.0.id")), "").at("result"), "moved");
    EXPECT_THAT(take(queue()), SizeIs(1));
}

TEST_F(DlqContract, DeletingTheQueueDeletesItsLetters) {
    bury(queue(), "p", {"1"}, {"tx"});
    const std::string id = list().at("messages.0.id");
    call("DELETE", "/api/v1/resources/queues/" + queue());
    EXPECT_EQ(list().at("total"), "0");
    EXPECT_EQ(post(replay(id), "").status(), 404);
}

// K45: names and ids that need care go through the whole life of a letter.
TEST_F(DlqContract, K45_OddNamesAreListedAndReplayed) {
    const std::string name = queue("-a\"b/c\xc3\xa9");
    const std::string lane = "l'\\ane";
    bury(name, lane, {"1"}, {"id \"odd\""}, {"g&h"});
    const auto letters = get("/api/v1/dlq?queue=" + percent_encode(name) +
                             "&consumerGroup=" + percent_encode("g&h"));
    ASSERT_EQ(letters.at("total"), "1") << testing::PrintToString(letters);
    EXPECT_EQ(letters.at("messages.0.partition"), lane);
    EXPECT_EQ(letters.at("messages.0.transactionId"), "id \"odd\"");
    EXPECT_EQ(post(replay(letters.at("messages.0.id")), "{}").at("result"), "moved");
}

} // namespace
} // namespace queen::test
