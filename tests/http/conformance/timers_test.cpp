// /api/v1/timers..., timers in a transaction, /api/v1/system/kv-timers. Nothing fires here: what is
// set lies a day ahead, or is due and waits for a driver.
#include "base/base64.hpp"
#include "base/text.hpp"
#include "http/conformance/conformance.hpp"
#include "support/exposition.hpp"

namespace queen::test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;

constexpr const char* kUuid = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
constexpr const char* kTime = "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{6}Z";
constexpr const char* kDay = "86400000";
const std::string kSwitches = "/api/v1/system/kv-timers";

class TimersContract : public ConformanceTest {
protected:
    void TearDown() override {
        for (std::size_t i = 0; i < brokers(); ++i) {
            call_at(i, "POST", kSwitches, R"({"timersSchedule":true,"timersFire":true})");
        }
    }
    static std::string payload(const std::string& message) {
        return R"("payload":")" + to_base64(message) + "\"";
    }
    /// Raw JSON in, so that a test can write what it likes.
    std::string op(const std::string& word, const std::string& key, const std::string& more) {
        return R"({"op":")" + word + R"(","queue":)" + json::quoted(queue()) + R"(,"timerKey":)" +
               json::quoted(key) + (more.empty() ? "" : "," + more) + "}";
    }
    std::string schedule(const std::string& key, const std::string& txn = "t",
                         const std::string& delay = kDay, const std::string& message = "1") {
        return op("schedule", key,
                  R"("delayMs":)" + delay + R"(,"txn":")" + txn + "\"," + payload(message));
    }
    Answer change(const std::string& ops) { return post("/api/v1/timers", "[" + ops + "]"); }
    std::string path(const std::string& key) const {
        return "/api/v1/timers/" + percent_encode(queue()) + "/" + percent_encode(key);
    }
    Answer peek(const std::string& key) { return get(path(key)); }
    Answer list(const std::string& query = {}) {
        return get("/api/v1/timers/" + percent_encode(queue()) + (query.empty() ? "" : "?") +
                   query);
    }
    void expect_refused(const Answer& answer, int status, const std::string& error,
                        const std::string& reason) {
        EXPECT_EQ(answer.status(), status) << testing::PrintToString(answer);
        EXPECT_EQ(answer.at("error"), error) << testing::PrintToString(answer);
        EXPECT_EQ(answer.at("code"), error);
        EXPECT_EQ(answer.at("reason"), reason) << testing::PrintToString(answer);
    }
};

TEST_F(TimersContract, ATimerIsSetSeenReplacedAndCancelled) {
    const auto set = change(schedule("k", "first", kDay, R"({"a": 1})"));
    EXPECT_EQ(set.status(), 200);
    EXPECT_THAT(set.keys("results.0"),
                ElementsAre("deliverAt", "messageId", "ok", "queue", "status", "timerKey", "txn"));
    EXPECT_EQ(set.at("results.0.ok"), "true");
    EXPECT_EQ(set.at("results.0.status"), "scheduled");
    EXPECT_EQ(set.at("results.0.queue"), queue());
    EXPECT_EQ(set.at("results.0.timerKey"), "k");
    EXPECT_EQ(set.at("results.0.txn"), "first");
    EXPECT_THAT(set.at("results.0.messageId"), MatchesRegex(kUuid));
    EXPECT_THAT(set.at("results.0.deliverAt"), MatchesRegex(kTime));

    const auto seen = peek("k");
    EXPECT_EQ(seen.status(), 200);
    EXPECT_THAT(seen.keys(),
                ElementsAre("attempts", "claimed", "createdAt", "deliverAt", "encrypted", "found",
                            "lastError", "messageId", "partition", "payload", "payloadZstd",
                            "producerSub", "queue", "timerKey", "txn", "updatedAt"));
    EXPECT_EQ(seen.at("found"), "true");
    EXPECT_EQ(seen.at("partition"), "Default");
    EXPECT_EQ(seen.at("deliverAt"), set.at("results.0.deliverAt"));
    EXPECT_EQ(seen.at("messageId"), set.at("results.0.messageId"));
    EXPECT_EQ(seen.at("txn"), "first");
    EXPECT_EQ(from_base64(seen.at("payload")), R"({"a": 1})") << "byte for byte";
    EXPECT_EQ(seen.at("payloadZstd"), "false");
    EXPECT_EQ(seen.at("encrypted"), "false");
    EXPECT_EQ(seen.at("producerSub"), "null");
    EXPECT_EQ(seen.at("attempts"), "0");
    EXPECT_EQ(seen.at("lastError"), "null");
    EXPECT_EQ(seen.at("claimed"), "false");
    EXPECT_THAT(seen.at("createdAt"), MatchesRegex(kTime));

    const auto again = change(
        op("reschedule", "k", R"("delayMs":1e7,"txn":"second","partition":"p",)" + payload("2")));
    EXPECT_EQ(again.at("results.0.status"), "rescheduled");
    EXPECT_EQ(again.at("results.0.ok"), "true");
    EXPECT_NE(again.at("results.0.messageId"), set.at("results.0.messageId"));
    EXPECT_EQ(peek("k").at("txn"), "second");
    EXPECT_EQ(peek("k").at("partition"), "p");
    EXPECT_EQ(change(schedule("k", "third")).at("results.0.status"), "rescheduled");

    const auto cancelled = call("DELETE", path("k") + "?txn=mine");
    EXPECT_EQ(cancelled.status(), 200);
    EXPECT_THAT(cancelled.keys(), ElementsAre("ok", "queue", "status", "timerKey", "txn"));
    EXPECT_EQ(cancelled.at("ok"), "true");
    EXPECT_EQ(cancelled.at("status"), "cancelled");
    EXPECT_EQ(cancelled.at("txn"), "third");
    const auto gone = peek("k");
    EXPECT_EQ(gone.status(), 200);
    EXPECT_THAT(gone.keys(), ElementsAre("found", "queue", "timerKey"));
    EXPECT_EQ(gone.at("found"), "false");
    const auto absent = call("DELETE", path("k") + "?txn=mine");
    EXPECT_EQ(absent.status(), 200);
    EXPECT_EQ(absent.at("ok"), "false");
    EXPECT_EQ(absent.at("status"), "absent");
    EXPECT_EQ(absent.at("txn"), "mine");
    EXPECT_EQ(change(op("reschedule", "k", R"("delayMs":5e7,"txn":"t",)" + payload("1")))
                  .at("results.0.status"),
              "scheduled")
        << "the two words are one";
}

TEST_F(TimersContract, TheDestinationIsNotMadeByATimer) {
    EXPECT_EQ(change(schedule("k")).status(), 200);
    EXPECT_EQ(get("/api/v1/resources/queues/" + percent_encode(queue())).status(), 404);
}

TEST_F(TimersContract, ResultsStandInTheOrderOfTheRequestInOneTransaction) {
    change(schedule("b") + "," + schedule("c"));
    const auto mixed =
        post("/api/v1/timers", R"({"operations":[)" + op("cancel", "c", "") + "," + schedule("z") +
                                   "," + op("cancel", "none", R"("txn":"mine")") + "," +
                                   schedule("a") + "," + schedule("b") + "]}");
    EXPECT_EQ(mixed.status(), 200);
    EXPECT_THAT(mixed.column("results", "timerKey"), ElementsAre("c", "z", "none", "a", "b"));
    EXPECT_THAT(mixed.column("results", "status"),
                ElementsAre("cancelled", "scheduled", "absent", "scheduled", "rescheduled"));
    EXPECT_EQ(mixed.at("results.2.txn"), "mine");
    expect_refused(change(schedule("new") + "," + op("schedule", "bad", R"("txn":"t")")), 400,
                   "timers_bad_request", "timers_delay_required");
    EXPECT_EQ(peek("new").at("found"), "false") << "all of it or nothing";
    expect_refused(change(schedule("new") + "," + op("cancel", "new", "")), 400,
                   "timers_bad_request", "timers_duplicate_key");
    EXPECT_EQ(change("").body(), R"({"results":[]})");
}

TEST_F(TimersContract, EveryRefusalHasItsWords) {
    const std::string rest = R"("delayMs":5,"txn":"t",)" + payload("1");
    const std::string bad = "timers_bad_request";
    expect_refused(post("/api/v1/timers", "{"), 400, bad, "timers_bad_body");
    expect_refused(post("/api/v1/timers", R"({"op":"cancel"})"), 400, bad, "timers_bad_body");
    expect_refused(change("7"), 400, bad, "timers_bad_op");
    expect_refused(change(op("fire", "k", rest)), 400, bad, "timers_bad_op");
    expect_refused(change(R"({"op":"schedule","timerKey":"k",)" + rest + "}"), 400, bad,
                   "timers_queue_required");
    expect_refused(change(R"({"op":"schedule","queue":"q",)" + rest + "}"), 400, bad,
                   "timers_key_required");
    expect_refused(change(op("schedule", "k", R"("txn":"t",)" + payload("1"))), 400, bad,
                   "timers_delay_required");
    expect_refused(change(op("schedule", "k", R"("delayMs":"5","txn":"t",)" + payload("1"))), 400,
                   bad, "timers_delay_required");
    expect_refused(change(op("schedule", "k", R"("delayMs":5,)" + payload("1"))), 400, bad,
                   "timers_txn_required");
    expect_refused(change(op("schedule", "k", R"("delayMs":5,"txn":"t")")), 400, bad,
                   "timers_payload_required");
    expect_refused(change(op("schedule", "k", R"("delayMs":5,"txn":"t","payload":"%%")")), 400, bad,
                   "timers_payload_not_base64");
    expect_refused(change(op("schedule", "k", R"("delayMs":5,"txn":"t",)" + payload("{"))), 400,
                   bad, "timers_payload_not_json");
    expect_refused(change(op("schedule", "k", rest + R"(,"encrypted":true)")), 400, bad,
                   "timers_encrypted_conflict");
    for (const std::string field : {"_x", "producerSub", "message_id", "tenant", "deliverAt",
                                    "delaySeconds", "attempts", "claim_token", "claimedUntil"}) {
        expect_refused(change(op("schedule", "k", rest + ",\"" + field + "\":1")), 400, bad,
                       "timers_server_owned_field");
    }
    std::string many;
    for (int i = 0; i < 257; ++i) {
        many += (i == 0 ? "" : ",") + op("cancel", std::to_string(i), "");
    }
    expect_refused(change(many), 400, bad, "timers_too_many_ops");
    expect_refused(change(schedule("k", "t", "7776000001")), 403, "timer_horizon_exceeded",
                   "timers_horizon");
    expect_refused(change(schedule("k", "t", kDay, "\"" + std::string(1 << 20, 'x') + "\"")), 413,
                   "payload_too_large", "timers_payload_too_large");
    EXPECT_THAT(list().column("rows", "timerKey"), IsEmpty()) << "nothing of it was stored";
    EXPECT_EQ(
        change(schedule("k", "t", kDay, "\"" + std::string((1 << 20) - 2, 'x') + "\"")).status(),
        200);
}

// K43
TEST_F(TimersContract, K43_WhateverIsStoredCanBeReadMovedAndCancelled) {
    std::size_t n = 0;
    for (const char* delay : {"-1", "0", "1", "1.5", "2147483647", "2147483648", "4294967296",
                              "7776000000", "-9007199254740992", "-1e30"}) {
        const std::string key = "k" + std::to_string(n++);
        EXPECT_EQ(change(schedule(key, "t", delay)).at("results.0.status"), "scheduled") << delay;
        EXPECT_EQ(peek(key).at("found"), "true") << delay;
        EXPECT_EQ(change(schedule(key, "u", kDay)).at("results.0.status"), "rescheduled") << delay;
        EXPECT_EQ(call("DELETE", path(key)).at("status"), "cancelled") << delay;
    }
    for (const char* delay : {"7776000001", "9007199254740992", "1e30", "1e400"}) {
        EXPECT_EQ(change(schedule("far", "t", delay)).status(), 403) << delay;
    }
    EXPECT_EQ(peek("far").at("found"), "false");
}

// K25
TEST_F(TimersContract, K25_KeysOfOddBytesAreReachable) {
    const std::vector<std::string> keys{"a b",   "a+b",       "a%b",      "a%2Fb",
                                        "a/b/c", "a//b/",     "\xC3\xBC", "'\"\\",
                                        "$1",    "a?b=c&d#e", "_x",       std::string(255, 'k')};
    std::string ops;
    for (const auto& key : keys) {
        ops += (ops.empty() ? "" : ",") + schedule(key);
    }
    EXPECT_THAT(change(ops).column("results", "status"), Each("scheduled"));
    for (const auto& key : keys) {
        const auto seen = peek(key);
        EXPECT_EQ(seen.at("found"), "true") << key;
        EXPECT_EQ(seen.at("timerKey"), key);
    }
    EXPECT_EQ(get("/api/v1/timers/" + percent_encode(queue()) + "/a/b/c").at("found"), "true")
        << "a slash as it is";
    EXPECT_EQ(get("/api/v1/timers/" + percent_encode(queue()) + "/a+b").at("timerKey"), "a+b");
    for (const auto& key : keys) {
        EXPECT_EQ(call("DELETE", path(key)).at("status"), "cancelled") << key;
    }
    for (const std::string& odd : {std::string("%00"), std::string(".."), std::string("a%0A")}) {
        const auto answer = get("/api/v1/timers/" + percent_encode(queue()) + "/" + odd);
        expect_refused(answer, 400, "timers_bad_request", "timers_bad_name");
    }
    expect_refused(change(schedule(std::string(256, 'k'))), 413, "name_too_long",
                   "timers_name_too_long");
}

TEST_F(TimersContract, ListsArePagesInByteOrderAndCountsTakeAPrefix) {
    change(schedule("b") + "," + schedule("a") + "," + schedule("B") + "," + schedule("a%") + "," +
           schedule("\xC3\xBC"));
    const auto all = list();
    EXPECT_EQ(all.status(), 200);
    EXPECT_THAT(all.keys(), ElementsAre("nextAfter", "rows", "truncated"));
    EXPECT_THAT(all.column("rows", "timerKey"), ElementsAre("B", "a", "a%", "b", "\xC3\xBC"));
    EXPECT_EQ(all.at("truncated"), "false");
    EXPECT_EQ(all.at("nextAfter"), "null");
    EXPECT_EQ(all.at("rows.0.payload"), "missing");
    EXPECT_THAT(all.keys("rows.0"),
                ElementsAre("attempts", "claimed", "createdAt", "deliverAt", "encrypted",
                            "lastError", "messageId", "partition", "payloadZstd", "producerSub",
                            "queue", "timerKey", "txn", "updatedAt"));
    const auto first = list("limit=2&mode=list");
    EXPECT_THAT(first.column("rows", "timerKey"), ElementsAre("B", "a"));
    EXPECT_EQ(first.at("truncated"), "true");
    EXPECT_EQ(first.at("nextAfter"), "a");
    EXPECT_THAT(list("limit=0&mode=&after=a").column("rows", "timerKey"), ElementsAre("a%"));
    EXPECT_EQ(list("mode=count&prefix=a").body(), R"({"count":2})");
    EXPECT_EQ(list("mode=count&prefix=a%25").body(), R"({"count":1})");
    EXPECT_EQ(list("mode=count&prefix=_").body(), R"({"count":0})");
    for (const auto& [query, reason] :
         {std::pair{"mode=all", "timers_read_mode_unknown"},
          {"mode=count", "timers_count_prefix_required"},
          {"mode=count&prefix=%00", "timers_count_prefix_invalid"},
          {"mode=count&prefix=a&limit=1", "timers_count_page_parameters"}}) {
        expect_refused(list(query), 400, "timers_bad_request", reason);
    }
    expect_refused(list("mode=count&prefix=" + std::string(129, 'x')), 400, "timers_bad_request",
                   "timers_count_prefix_too_long");
}

TEST_F(TimersContract, TimersOfATransactionComeAndGoWithIt) {
    const auto run = [&](const std::string& operations, const std::string& timers) {
        return post("/api/v1/transaction",
                    R"({"operations":[)" + operations + R"(],"timers":[)" + timers + "]}");
    };
    const std::string item = R"({"type":"push","queue":)" + json::quoted(queue()) +
                             R"(,"transactionId":"once","payload":1})";
    const auto done = run(item, schedule("k") + "," + op("cancel", "none", R"("txn":"mine")"));
    EXPECT_EQ(done.at("success"), "true") << testing::PrintToString(done);
    EXPECT_THAT(done.column("results", "type"), ElementsAre("push", "timer", "timer"));
    EXPECT_THAT(done.column("results", "index"), ElementsAre("0", "1", "2"));
    EXPECT_EQ(done.at("results.1.opIndex"), "0");
    EXPECT_EQ(done.at("results.2.opIndex"), "1");
    EXPECT_EQ(done.at("results.1.status"), "scheduled");
    EXPECT_EQ(done.at("results.2.status"), "absent") << "an answer, not a failure";
    EXPECT_EQ(peek("k").at("messageId"), done.at("results.1.messageId"));
    const auto undone = run(item, schedule("l") + "," + op("cancel", "k", ""));
    EXPECT_EQ(undone.status(), 200);
    EXPECT_EQ(undone.at("reason"), "duplicate") << testing::PrintToString(undone);
    EXPECT_EQ(undone.at("results"), "[0]");
    EXPECT_EQ(peek("l").at("found"), "false");
    EXPECT_EQ(peek("k").at("found"), "true");
    const auto far = run("", schedule("l", "t", "7776000001"));
    EXPECT_EQ(far.status(), 403);
    EXPECT_EQ(far.at("reason"), "timer_horizon_exceeded");
    EXPECT_EQ(run("", "7").at("reason"), "bad_request");
}

TEST_F(TimersContract, SwitchesHoldNewTimersBackAtTheBrokerThatWasAsked) {
    change(schedule("k"));
    const auto off = call_at(0, "POST", kSwitches, R"({"timersSchedule":false})");
    EXPECT_EQ(off.status(), 200);
    EXPECT_THAT(off.keys(), ElementsAre("kvEnabled", "quotaAgeMs", "quotaHot", "quotaTenants",
                                        "timersFireEnabled", "timersScheduleEnabled"));
    EXPECT_EQ(off.at("timersScheduleEnabled"), "false");
    EXPECT_EQ(off.at("timersFireEnabled"), "true");
    EXPECT_EQ(off.at("kvEnabled"), "false");
    const auto refused = call_at(0, "POST", "/api/v1/timers", "[" + schedule("l") + "]");
    expect_refused(refused, 503, "timers_unavailable", "timers_schedule_disabled");
    EXPECT_EQ(refused.response().header("Retry-After"), "1");
    const auto mixed = call_at(0, "POST", "/api/v1/timers",
                               "[" + schedule("l") + "," + op("cancel", "k", "") + "]");
    EXPECT_EQ(mixed.status(), 503);
    EXPECT_THAT(mixed.response().header("x-queen-timers-hint"), HasSubstr("cancels"));
    EXPECT_EQ(call_at(0, "POST", "/api/v1/transaction",
                      R"({"operations":[],"timers":[)" + schedule("l") + "]}")
                  .status(),
              403);
    EXPECT_EQ(call_at(0, "DELETE", path("k")).at("status"), "cancelled");
    EXPECT_THAT(call_at(0, "GET", "/metrics/prometheus").body(),
                HasSubstr("queen_timers_schedule_rejected_total{reason=\"disabled\"} 3\n"));
    call_at(0, "POST", kSwitches, R"({"timersSchedule":true})");
    EXPECT_EQ(call_at(0, "POST", "/api/v1/timers", "[" + schedule("l") + "]").status(), 200);
    EXPECT_EQ(call_at(0, "GET", kSwitches).at("timersScheduleEnabled"), "true");
    EXPECT_EQ(post(kSwitches, "{}").at("error"),
              "at least one of kv, timersSchedule, timersFire (boolean) is required");
    EXPECT_EQ(post(kSwitches, R"({"timersFire":1})").at("error"), "timersFire must be a boolean");
    EXPECT_EQ(post(kSwitches, R"({"kv":true})").status(), 501);
}

} // namespace
} // namespace queen::test
