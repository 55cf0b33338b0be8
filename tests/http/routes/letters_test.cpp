// Dead letters and messages as routes: what reaches the store, what its answers become.
#include "base/text.hpp"
#include "http/routes/api.hpp"
#include "model/names.hpp"

namespace queen::test {
namespace {

using testing::HasSubstr;

const Uuid kLetter = *parse_uuid("0199f0aa-0000-4000-8000-000000000001");
constexpr std::string_view kLetterText = "0199f0aa-0000-4000-8000-000000000001";

std::string replay() {
    return "/api/v1/dlq/" + std::string(kLetterText) + "/replay";
}
std::string message(std::string_view rest = {}) {
    return "/api/v1/messages/" + std::string(kPartitionId) + "/t%2F1" + std::string(rest);
}

DeadLetter letter() {
    DeadLetter out;
    out.id = kLetter;
    out.partition_id = *parse_uuid(kPartitionId);
    out.queue = "q";
    out.partition = "p";
    out.group = "g";
    out.transaction_id = "t/1";
    out.payload = "{}";
    return out;
}

TEST(LettersRoutes, TheListHandsItsFiltersToTheStore) {
    Api api;
    LetterQuery asked;
    api.letters.on_list = [&](LetterQuery query, const auto& done) {
        asked = std::move(query);
        done(LetterPage{});
    };
    const auto reply =
        api.ask("GET", "/api/v1/dlq?queue=a%20b&consumerGroup=__QUEUE_MODE__&partition=p"
                       "&from=2026-01-01T00:00:00Z&to=2026-01-01T10:15:20Z&limit=7"
                       "&offset=3");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body,
              R"({"messages":[],"pagination":{"limit":7,"offset":3,"next":null},"total":0})");
    EXPECT_EQ(asked.tenant, kDefaultTenant);
    EXPECT_EQ(asked.queue, "a b");
    EXPECT_EQ(asked.group, kQueueModeGroup);
    EXPECT_EQ(asked.partition, "p");
    EXPECT_EQ(format_micros(*asked.from), "2026-01-01T00:00:00.000000Z");
    EXPECT_EQ(format_micros(*asked.to), "2026-01-01T10:16:00.000000Z") << "its whole minute";
    EXPECT_EQ(asked.limit, 7);
    EXPECT_EQ(asked.offset, 3);
    api.ask("GET", "/api/v1/dlq");
    EXPECT_FALSE(asked.queue);
    EXPECT_EQ(asked.limit, 100);
}

TEST(LettersRoutes, WhatCannotBeReadIs400AndTouchesNoStore) {
    Api api; // its stores refuse every call
    for (const std::string bad :
         {"limit=x", "limit=99999999999", "offset=-1", "offset=1.5", "from=soon", "to=2026-13-01",
          "after=x", "queue=..", "queue=a&queue=b", "from=2026-01-02&to=2026-01-01"}) {
        const auto reply = api.ask("GET", "/api/v1/dlq?" + bad);
        EXPECT_EQ(reply.status, 400) << bad;
        EXPECT_EQ(at(reply.body, "code"), "bad_request");
        EXPECT_EQ(api.ask("GET", "/api/v1/messages?" + bad).status, 400) << bad;
    }
    EXPECT_EQ(api.ask("POST", "/api/v1/dlq/7/replay").status, 400);
    EXPECT_EQ(api.ask("GET", "/api/v1/messages/p/t").status, 400);
    EXPECT_EQ(api.ask("DELETE", "/api/v1/messages/p/t").status, 400);
    EXPECT_EQ(api.ask("POST", "/api/v1/messages/p/t/retry").status, 400);
    EXPECT_EQ(api.ask("GET", "/api/v1/messages/" + std::string(kPartitionId) + "/a%00b").status,
              400);
    EXPECT_THAT(api.ask("GET", "/api/v1/messages?status=done").body,
                HasSubstr("pending, processing, completed or dead_letter"));
}

// A limit out of bounds is moved, as clients of this API expect; so it is told.
TEST(LettersRoutes, K41_LimitsAreMovedIntoTheirBounds) {
    Api api;
    api.letters.on_list = [](const LetterQuery&, const auto& done) { done(LetterPage{}); };
    for (const auto& [given, used] :
         {std::pair{"0", "1"}, {"-1", "1"}, {"1000000000", "1000"}, {"1000", "1000"}}) {
        EXPECT_EQ(
            at(api.ask("GET", std::string("/api/v1/dlq?limit=") + given).body, "pagination.limit"),
            used);
    }
}

TEST(LettersRoutes, AReplayAnswersByItsOutcome) {
    Api api;
    api.letters.on_find = [](const std::string& tenant, Uuid id, const auto& done) {
        EXPECT_EQ(tenant, kDefaultTenant);
        done(id == kLetter ? std::optional(letter()) : std::nullopt);
    };
    Result<LetterMoved> outcome =
        LetterMoved{LetterMoved::Result::moved, "g", *parse_uuid(kPartitionId), Offset{7}};
    LetterMove moved;
    api.letters.on_move = [&](LetterMove move, const auto& done) {
        moved = std::move(move);
        done(outcome);
    };
    auto reply = api.ask("POST", replay(), R"({"queue":" r "})");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(moved.queue + "/" + moved.partition, "r/p");
    EXPECT_EQ(at(reply.body, "result"), "moved");
    EXPECT_EQ(at(reply.body, "replayedAs.offset"), "7");
    EXPECT_EQ(at(reply.body, "dlqRowRemoved"), "true");

    outcome->result = LetterMoved::Result::duplicate;
    reply = api.ask("POST", replay());
    EXPECT_EQ(at(reply.body, "replayedAs.message_id"), "00000000-0000-0000-0000-000000000000");
    EXPECT_EQ(at(reply.body, "replayedAs.status"), "duplicate");
    EXPECT_EQ(at(reply.body, "dlqRowRemoved"), "false");

    outcome->result = LetterMoved::Result::gone;
    reply = api.ask("POST", replay());
    EXPECT_EQ(reply.status, 404);
    EXPECT_EQ(at(reply.body, "dlqId"), kLetterText);

    outcome = fail(Errc::transient, "the link broke");
    reply = api.ask("POST", replay());
    EXPECT_EQ(reply.status, 503);
    EXPECT_EQ(at(reply.body, "dlqRowRemoved"), "null");
    outcome = fail(Errc::unavailable, "no session");
    reply = api.ask("POST", replay());
    EXPECT_EQ(reply.status, 500);
    EXPECT_EQ(header(reply, "Retry-After"), "1");
    EXPECT_EQ(at(reply.body, "dlqRowRemoved"), "false");
}

TEST(LettersRoutes, ARetryIsAReplayOfTheNewestLetterOfAnAddress) {
    Api api;
    api.letters.on_newest = [](const std::string&, Uuid id, const std::string& txn,
                               const auto& done) {
        EXPECT_EQ(to_string(id), kPartitionId);
        EXPECT_EQ(txn, "t/1") << "decoded once";
        done(std::optional<DeadLetter>{});
    };
    const auto reply = api.ask("POST", message("/retry"));
    EXPECT_EQ(reply.status, 404);
    EXPECT_EQ(at(reply.body, "result"), "gone");
    EXPECT_EQ(at(reply.body, "transactionId"), "t/1");
}

TEST(LettersRoutes, DeleteAndPurgeSayWhatTheyRemoved) {
    Api api;
    std::int64_t there = 2;
    api.letters.on_remove = [&](const std::string&, Uuid, const std::string& txn,
                                const auto& done) {
        EXPECT_EQ(txn, "t/1");
        done(std::exchange(there, 0));
    };
    EXPECT_EQ(at(api.ask("DELETE", message()).body, "deleted"), "2");
    const auto gone = api.ask("DELETE", message());
    EXPECT_EQ(gone.status, 404);
    EXPECT_EQ(at(gone.body, "success"), "false");
    EXPECT_EQ(at(gone.body, "error"), "Message not found");

    std::optional<std::string> group = "unset";
    api.letters.on_purge = [&](const std::string&, const std::string& queue,
                               std::optional<std::string> of, const auto& done) {
        EXPECT_EQ(queue, "q");
        group = std::move(of);
        done(std::int64_t{5});
    };
    EXPECT_EQ(api.ask("DELETE", "/api/v1/dlq?queue=q").body,
              R"({"success":true,"deleted":5,"queue":"q","consumerGroup":null})");
    EXPECT_FALSE(group);
    EXPECT_EQ(at(api.ask("DELETE", "/api/v1/dlq?queue=q&consumerGroup=g").body, "consumerGroup"),
              "g");
    EXPECT_EQ(group, "g");
    const auto refused = api.ask("DELETE", "/api/v1/dlq?consumerGroup=g");
    EXPECT_EQ(refused.status, 400);
    EXPECT_EQ(at(refused.body, "success"), "false");
}

TEST(LettersRoutes, AMessageThatNobodyKnowsIs404AndAFaultIsOurs) {
    Api api;
    Result<std::optional<FoundMessage>> found = std::optional<FoundMessage>{};
    api.messages.on_find = [&](const std::string& tenant, Uuid, TxnHash hash, const auto& done) {
        EXPECT_EQ(tenant, kDefaultTenant);
        EXPECT_EQ(hash, hash_transaction_id("t/1"));
        done(found);
    };
    api.letters.on_newest = [](const std::string&, Uuid, const std::string&, const auto& done) {
        done(std::optional<DeadLetter>{});
    };
    const auto missing = api.ask("GET", message());
    EXPECT_EQ(missing.status, 404);
    EXPECT_EQ(missing.body, R"({"error":"Message not found","code":"not_found"})");
    found = fail(Errc::store_failed, "no");
    EXPECT_EQ(api.ask("GET", message()).status, 500);
}

} // namespace
} // namespace queen::test
