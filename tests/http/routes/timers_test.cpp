// Setting and cancelling at /api/v1/timers.
#include "base/base64.hpp"
#include "base/text.hpp"
#include "http/routes/timer_routes.hpp"
#include "model/segment.hpp"

namespace queen::test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Kind = TimerVerdict::Kind;

TEST_F(TimerRoutes, ResultsStandWhereTheirOpsDo) {
    const auto reply = post(array(
        {OpText{.delay = "1500"}, OpText{.op = R"("cancel")", .key = R"("gone")"},
         OpText{.op = R"("reschedule")",
                .queue = R"("r")",
                .delay = "-3",
                .more = R"("partition":"p","payloadZstd":false,"encrypted":false,"x":[1])"}}));
    EXPECT_EQ(reply.status, 200);
    ASSERT_EQ(calls.size(), 1u);
    const auto& ops = calls[0].ops;
    ASSERT_EQ(ops.size(), 3u);
    EXPECT_EQ(ops[0].partition, "Default");
    EXPECT_EQ(ops[0].delay, 1500ms);
    EXPECT_EQ(ops[0].payload, "1");
    EXPECT_TRUE(ops[0].message_id.known());
    EXPECT_EQ(ops[1].kind, TimerOp::Kind::cancel);
    EXPECT_EQ(ops[1].key, "gone");
    EXPECT_EQ(ops[2].kind, TimerOp::Kind::reschedule);
    EXPECT_EQ(ops[2].partition, "p");
    EXPECT_EQ(ops[2].delay, -3ms);
    EXPECT_EQ(reply.body,
              R"({"results":[{"ok":true,"status":"scheduled","queue":"q","timerKey":"k","txn":"t",)"
              R"("messageId":")" +
                  to_string(ops[0].message_id) +
                  R"(","deliverAt":"1970-01-01T00:00:01.000001Z"},{"ok":true,"status":"cancelled",)"
                  R"("queue":"q","timerKey":"gone","txn":"its"},{"ok":true,"status":"scheduled",)"
                  R"("queue":"r","timerKey":"k","txn":"t","messageId":")" +
                  to_string(ops[2].message_id) +
                  R"(","deliverAt":"1970-01-01T00:00:01.000001Z"}]})");
}

TEST_F(TimerRoutes, SW4_TheEarliestIsToldAfterTheCommitAndBeforeTheAnswer) {
    Done<std::vector<TimerVerdict>> commit;
    TimerCallOps asked;
    api.timers.on_apply = [&](const TimerCallOps& call, Done<std::vector<TimerVerdict>> done) {
        asked = call;
        commit = std::move(done);
    };
    const auto exchange =
        api.send("POST", kTimerRoute,
                 array({OpText{.delay = "700"}, OpText{.key = R"("l")", .delay = "20"},
                        OpText{.op = R"("cancel")", .key = R"("m")"}}));
    api.workers.run_all();
    EXPECT_THAT(api.rung, IsEmpty()) << "nothing is committed yet";
    commit(answer(asked));
    EXPECT_THAT(api.rung, ElementsAre(api.clock.now() + 20ms));
    EXPECT_TRUE(exchange->answer.has_value());
    commit = nullptr;
    api.rung.clear();
    api.timers.on_apply = [](const TimerCallOps&, const Done<std::vector<TimerVerdict>>& done) {
        done(std::vector<TimerVerdict>{{.kind = Kind::too_late, .transaction_id = "its"}});
    };
    const auto reply = post(array({OpText{}}));
    EXPECT_EQ(at(reply.body, "results.0.ok"), "false");
    EXPECT_EQ(at(reply.body, "results.0.status"), "too_late");
    EXPECT_THAT(api.rung, IsEmpty()) << "nothing was set";
}

TEST_F(TimerRoutes, BodiesAreAnArrayOrAnObjectWithOne) {
    for (const auto& body :
         {std::string("[]"), std::string(R"({"operations":[]})"),
          R"({"operations":)" + array({OpText{}}) + R"(,"operations":[],"x":{"a":[]}})"}) {
        const auto reply = post(body);
        EXPECT_EQ(reply.status, 200) << body;
        EXPECT_EQ(reply.body, R"({"results":[]})");
    }
    EXPECT_THAT(calls, IsEmpty());
    EXPECT_EQ(at(post(R"({"x":1,"operations":)" + array({OpText{}}) + "}").body, "results"), "[1]");
    for (const std::string body :
         {"", "{", "{}", "7", "null", R"("x")", R"({"operations":null})", R"({"operations":{}})",
          R"({"operations":7})", R"({"ops":[]})", "[] []"}) {
        expect_bad(body, "timers_bad_body");
    }
    for (const std::string body : {"[7]", "[null]", "[[]]", R"({"operations":["x"]})"}) {
        expect_bad(body, "timers_bad_op");
    }
}

TEST_F(TimerRoutes, EachFaultOfAnOpHasItsReason) {
    struct Case {
        OpText op;
        const char* reason;
    };
    const std::string control = R"("a\u0000b")";
    for (const auto& [op, reason] : std::vector<Case>{
             {{.op = ""}, "timers_bad_op"},
             {{.op = R"("fire")"}, "timers_bad_op"},
             {{.op = "null"}, "timers_bad_op"},
             {{.queue = ""}, "timers_queue_required"},
             {{.queue = R"("")"}, "timers_queue_required"},
             {{.queue = "7"}, "timers_queue_required"},
             {{.queue = "null"}, "timers_queue_required"},
             {{.queue = control}, "timers_bad_name"},
             {{.queue = R"("..")"}, "timers_bad_name"},
             {{.key = ""}, "timers_key_required"},
             {{.key = R"("")"}, "timers_key_required"},
             {{.key = "[]"}, "timers_key_required"},
             {{.key = control}, "timers_bad_name"},
             {{.txn = ""}, "timers_txn_required"},
             {{.txn = R"("")"}, "timers_txn_required"},
             {{.txn = "7"}, "timers_txn_required"},
             {{.txn = control}, "timers_bad_txn"},
             {{.delay = ""}, "timers_delay_required"},
             {{.delay = "null"}, "timers_delay_required"},
             {{.delay = R"("5")"}, "timers_delay_required"},
             {{.delay = "true"}, "timers_delay_required"},
             {{.delay = "[5]"}, "timers_delay_required"},
             {{.payload = ""}, "timers_payload_required"},
             {{.payload = "null"}, "timers_payload_required"},
             {{.payload = R"("")"}, "timers_payload_required"},
             {{.payload = "7"}, "timers_payload_not_base64"},
             {{.payload = R"({"a":1})"}, "timers_payload_not_base64"},
             {{.payload = R"("MQ")"}, "timers_payload_not_base64"},
             {{.payload = R"("M Q=")"}, "timers_payload_not_base64"},
             {{.payload = R"("e30x")"}, "timers_payload_not_json"},
             {{.payload = R"("/w==")"}, "timers_payload_not_json"},
             {{.more = R"("payloadZstd":true)"}, "timers_payload_not_zstd"},
             {{.more = R"("payloadZstd":1)"}, "timers_bad_op"},
             {{.more = R"("encrypted":"yes")"}, "timers_bad_op"},
             {{.more = R"("partition":7)"}, "timers_bad_op"},
             {{.more = R"("partition":".")"}, "timers_bad_name"},
         }) {
        expect_bad(array({op}), reason);
    }
    EXPECT_EQ(refused(metrics::TimerRefused::shape), 36u);
    EXPECT_THAT(at(post(array({OpText{}, OpText{.queue = ""}})).body, "detail"),
                HasSubstr("operation 1: queue"));
    const auto reply = post(array({OpText{.more = R"("partition":"","payloadZstd":null)"}}));
    EXPECT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(calls.back().ops.at(0).partition, "Default");
}

TEST_F(TimerRoutes, WhatTheServerOwnsIsRefusedInEveryOp) {
    for (const std::string name :
         {"_messageId", "_", "producerSub", "producer_sub", "messageId", "message_id", "tenant",
          "tenantId", "tenant_id", "deliverAt", "deliver_at", "delaySeconds", "delay_seconds",
          "attempts", "claimToken", "claim_token", "claimedUntil", "claimed_until"}) {
        for (const char* op : {R"("schedule")", R"("cancel")"}) {
            for (const char* value : {"null", "7", "{}"}) {
                expect_bad(array({OpText{.op = op, .more = "\"" + name + "\":" + value}}),
                           "timers_server_owned_field");
            }
        }
    }
}

// K43
TEST_F(TimerRoutes, K43_DelaysAreNumbersThatNeverWrap) {
    struct Case {
        const char* delay;
        std::chrono::microseconds stored;
    };
    const auto horizon = std::chrono::microseconds(90 * 24h);
    for (const auto& [delay, stored] : std::vector<Case>{{"-1", -1ms},
                                                         {"0", 0us},
                                                         {"-0", 0us},
                                                         {"1", 1ms},
                                                         {"1.5", 1500us},
                                                         {"0.0001", 1us},
                                                         {"1e3", 1s},
                                                         {"1e-400", 0us},
                                                         {"2147483647", 2'147'483'647ms},
                                                         {"2147483648", 2'147'483'648ms},
                                                         {"4294967296", 4'294'967'296ms},
                                                         {"7776000000", horizon},
                                                         {"-9007199254740992", -horizon},
                                                         {"-1e30", -horizon},
                                                         {"-1e400", -horizon}}) {
        calls.clear();
        EXPECT_EQ(post(array({OpText{.delay = delay}})).status, 200) << delay;
        ASSERT_EQ(calls.size(), 1u) << delay;
        EXPECT_EQ(calls[0].ops.at(0).delay, stored) << delay;
    }
    for (const char* delay :
         {"7776000001", "7776000000.1", "9007199254740992", "1e30", "1e308", "1e400"}) {
        expect_refusal(array({OpText{.delay = delay}}), 403, "timer_horizon_exceeded",
                       "timers_horizon");
    }
    EXPECT_EQ(refused(metrics::TimerRefused::horizon), 6u);
}

TEST_F(TimerRoutes, LimitsAreThoseOfTheSettings) {
    api.settings.timers = {.max_payload = 6, .max_horizon = 1s, .max_ops = 2};
    const auto payload = [](const std::string& bytes) { return "\"" + to_base64(bytes) + "\""; };
    EXPECT_EQ(post(array({OpText{.delay = "1000", .payload = payload("123456")}})).status, 200);
    expect_refusal(array({OpText{.payload = payload("1234567")}}), 413, "payload_too_large",
                   "timers_payload_too_large");
    expect_refusal(array({OpText{.delay = "1001"}}), 403, "timer_horizon_exceeded",
                   "timers_horizon");
    std::vector<std::string> ops{OpText{.key = R"("a")"}, OpText{.key = R"("b")"}};
    EXPECT_EQ(post(array(ops)).status, 200);
    ops.push_back(OpText{.key = R"("c")"});
    expect_bad(array(ops), "timers_too_many_ops");
    expect_refusal(array({OpText{.queue = "\"" + std::string(256, 'q') + "\""}}), 413,
                   "name_too_long", "timers_name_too_long");
    expect_refusal(array({OpText{.key = "\"" + std::string(256, 'q') + "\""}}), 413,
                   "name_too_long", "timers_name_too_long");
    EXPECT_EQ(refused(metrics::TimerRefused::payload_too_large), 1u);
}

TEST_F(TimerRoutes, OneKeyStandsOnceInARequest) {
    expect_bad(array({OpText{}, OpText{.op = R"("cancel")"}}), "timers_duplicate_key");
    EXPECT_EQ(post(array({OpText{}, OpText{.queue = R"("r")"}})).status, 200);
}

TEST_F(TimerRoutes, APackedPayloadIsStoredAsItCame) {
    const std::string packed = compress_segment(R"({"a":1})");
    const auto op = [](const std::string& bytes) {
        return array(
            {OpText{.payload = "\"" + to_base64(bytes) + "\"", .more = R"("payloadZstd":true)"}});
    };
    EXPECT_EQ(post(op(packed)).status, 200);
    EXPECT_EQ(calls.at(0).ops.at(0).payload, packed);
    EXPECT_TRUE(calls.at(0).ops.at(0).payload_zstd);
    expect_bad(op(compress_segment("no JSON")), "timers_payload_not_json");
    api.settings.timers.max_payload = 100; // a bomb is let off only so far
    expect_bad(op(compress_segment("\"" + std::string(1000, 'x') + "\"")),
               "timers_payload_not_zstd");
}

TEST_F(TimerRoutes, TheSwitchHoldsNewTimersBackAndNoCancel) {
    const std::string off = R"({"timersSchedule":false})";
    EXPECT_EQ(api.ask("POST", "/api/v1/system/kv-timers", off).status, 200);
    auto reply = post(array({OpText{}}));
    EXPECT_EQ(reply.status, 503);
    EXPECT_EQ(header(reply, "Retry-After"), "1");
    EXPECT_EQ(at(reply.body, "error"), "timers_unavailable");
    EXPECT_EQ(at(reply.body, "reason"), "timers_schedule_disabled");
    EXPECT_EQ(header(reply, "x-queen-timers-hint"), "");
    reply = post(array({OpText{}, OpText{.op = R"("cancel")", .key = R"("c")"}}));
    EXPECT_EQ(reply.status, 503) << "refused whole";
    EXPECT_THAT(header(reply, "x-queen-timers-hint"), HasSubstr("cancels"));
    EXPECT_THAT(calls, IsEmpty());
    EXPECT_EQ(refused(metrics::TimerRefused::disabled), 2u);
    EXPECT_EQ(post(array({OpText{.op = R"("cancel")"}})).status, 200);
    EXPECT_EQ(api.ask("DELETE", "/api/v1/timers/q/k").status, 200);
    EXPECT_EQ(post("[]").status, 200);
}

TEST_F(TimerRoutes, ErrorsOfTheStoreAreNamedByTheirClass) {
    struct Case {
        Error error;
        int status;
        const char* word;
        std::string reason;
    };
    const std::vector<Case> cases{
        {{Errc::unavailable, "pool", {}}, 503, "timers_unavailable", "timers_pool_exhausted"},
        {{Errc::unavailable, "no route to host", {}}, 503, "timers_unavailable", "connection"},
        {{Errc::timeout, "57014", "57014"}, 503, "timers_unavailable", "timers_timeout"},
        {{Errc::transient, "the link went", {}}, 503, "timers_unavailable", "connection"},
        {{Errc::transient, "disk full", "53100"}, 503, "timers_unavailable", "disk full"},
        {{Errc::shutting_down, "stops", {}}, 503, "timers_unavailable", "stops"},
        {{Errc::store_failed, "QTIMER: no", "22023"}, 400, "timers_bad_request", "QTIMER: no"},
        {{Errc::store_failed, "no function", "42883"}, 500, "timers_misconfigured", "no function"},
        {{Errc::store_failed, "boom", "XX000"}, 500, "timers_error", "boom"},
        {{Errc::internal, "broken", {}}, 500, "timers_error", "broken"},
    };
    for (const auto& [error, status, word, reason] : cases) {
        const auto failed = tl::unexpected(error);
        api.timers.on_apply = [&](auto&&, const auto& done) { done(failed); };
        api.timers.on_peek = [&](auto&&, auto&&, auto&&, const auto& done) { done(failed); };
        api.timers.on_list = [&](auto&&, auto&&, auto&&, auto, const auto& done) { done(failed); };
        api.timers.on_count = [&](auto&&, auto&&, auto&&, const auto& done) { done(failed); };
        for (const auto& [method, target, body] :
             {std::tuple{"POST", kTimerRoute, array({OpText{}})},
              {"DELETE", "/api/v1/timers/q/k", ""},
              {"GET", "/api/v1/timers/q/k", ""},
              {"GET", "/api/v1/timers/q", ""},
              {"GET", "/api/v1/timers/q?mode=count&prefix=a", ""}}) {
            const auto reply = api.ask(method, target, body);
            EXPECT_EQ(reply.status, status) << method << target << error.message;
            EXPECT_EQ(at(reply.body, "error"), word) << reply.body;
            EXPECT_EQ(at(reply.body, "reason"), reason) << reply.body;
            EXPECT_EQ(header(reply, "Retry-After"), status == 503 ? "1" : "");
        }
    }
    EXPECT_EQ(refused(metrics::TimerRefused::unavailable), 9u);
}

TEST_F(TimerRoutes, ALostRaceIsRunAgain) {
    int tries = 0;
    api.timers.on_apply = [&](const TimerCallOps& call,
                              const Done<std::vector<TimerVerdict>>& done) {
        if (++tries < 3) {
            done(fail(Errc::transient, "deadlock", "40P01"));
        } else {
            done(answer(call));
        }
    };
    EXPECT_EQ(post(array({OpText{}})).status, 200);
    EXPECT_EQ(tries, 3);
}

TEST_F(TimerRoutes, AnAnswerForAnotherNumberIsAFaultOfOurs) {
    api.timers.on_apply = [](auto&&, const auto& done) { done(std::vector<TimerVerdict>{}); };
    const auto reply = post(array({OpText{}}));
    EXPECT_EQ(reply.status, 500);
    EXPECT_EQ(at(reply.body, "error"), "timers_error");
}

TEST_F(TimerRoutes, ENC1_AnEncryptedQueueTakesNoTimerWithoutAKey) {
    api.forms.on_encrypted = [](const std::string& queue) { return queue == "vault"; };
    expect_bad(array({OpText{}, OpText{.queue = R"("vault")"}}), "timers_encrypted_conflict");
    EXPECT_EQ(post(array({OpText{.op = R"("cancel")", .queue = R"("vault")"}})).status, 200);
    expect_bad(array({OpText{.more = R"("encrypted":true)"}}), "timers_encrypted_conflict");
}

class TimerRoutesWithKey : public TimerRoutes {
protected:
    TimerRoutesWithKey() : TimerRoutes({.cipher = cipher()}) {}
    static std::shared_ptr<const Cipher> cipher() {
        static const auto kCipher =
            std::make_shared<const Cipher>(std::move(*Cipher::from_hex(std::string(64, 'a'))));
        return kCipher;
    }
};

TEST_F(TimerRoutesWithKey, ENC4_PayloadsAreSealedAsTheirQueueWantsItNow) {
    bool encrypted = true;
    api.forms.on_encrypted = [&](const std::string& queue) { return encrypted && queue == "v"; };
    const std::string packed = "\"" + to_base64(compress_segment("22")) + "\"";
    EXPECT_EQ(post(array({OpText{.queue = R"("v")"},
                          OpText{.queue = R"("v")",
                                 .key = R"("z")",
                                 .payload = packed,
                                 .more = R"("payloadZstd":true,"encrypted":true)"},
                          OpText{}}))
                  .status,
              200);
    const auto& ops = calls.at(0).ops;
    for (const std::size_t i : {0u, 1u}) {
        EXPECT_TRUE(ops.at(i).encrypted);
        EXPECT_FALSE(ops[i].payload_zstd);
        EXPECT_EQ(cipher()->open(ops[i].payload).value_or("sealed"), i == 0 ? "1" : "22");
    }
    EXPECT_FALSE(ops.at(2).encrypted);
    EXPECT_EQ(ops[2].payload, "1");
    encrypted = false; // nothing that was known is believed
    EXPECT_EQ(post(array({OpText{.queue = R"("v")"}})).status, 200);
    EXPECT_FALSE(calls.back().ops.at(0).encrypted);
    EXPECT_EQ(api.forms.asked.size(), 2u);
    EXPECT_THAT(api.forms.asked[0], ElementsAre("q", "v"));
}

TEST_F(TimerRoutes, AQueueWhoseFormIsUnknownTakesNoTimer) {
    api.forms.on_encrypted = [](const std::string&) -> Result<bool> {
        return fail(Errc::unavailable, "pool");
    };
    const auto reply = post(array({OpText{}}));
    EXPECT_EQ(reply.status, 503);
    EXPECT_EQ(at(reply.body, "reason"), "timers_pool_exhausted");
    EXPECT_THAT(calls, IsEmpty());
}

} // namespace
} // namespace queen::test
