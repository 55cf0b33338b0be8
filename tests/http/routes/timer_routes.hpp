// What the tests of /api/v1/timers share: the routes over a timer store that takes everything.
#pragma once
#include "http/routes/api.hpp"

namespace queen::test {

inline constexpr const char* kTimerRoute = "/api/v1/timers";
/// An op as text; each member may be replaced, "" leaves it out.
struct OpText {
    std::string op = R"("schedule")", queue = R"("q")", key = R"("k")", delay = "5", txn = R"("t")",
                payload = R"("MQ==")", more;

    operator std::string() const { // NOLINT(google-explicit-constructor)
        std::string out = "{";
        for (const auto& [name, value] : {std::pair{"op", &op},
                                          {"queue", &queue},
                                          {"timerKey", &key},
                                          {"delayMs", &delay},
                                          {"txn", &txn},
                                          {"payload", &payload}}) {
            if (!value->empty()) {
                out += (out.size() > 1 ? ",\"" : "\"") + std::string(name) + "\":" + *value;
            }
        }
        return out + (more.empty() ? "" : "," + more) + "}";
    }
};

inline std::string array(const std::vector<std::string>& ops) {
    std::string out = "[";
    for (const auto& op : ops) {
        out += (out.size() > 1 ? "," : "") + op;
    }
    return out + "]";
}

class TimerRoutes : public testing::Test {
protected:
    explicit TimerRoutes(Api::Security security = {}) : api(std::move(security)) {
        api.timers.on_apply = [this](const TimerCallOps& call,
                                     const Done<std::vector<TimerVerdict>>& done) {
            calls.push_back(call);
            done(answer(call));
        };
        api.system.on_set_switch = [](SwitchKey, bool, const Done<void>& done) { done({}); };
    }
    /// Every timer is new and every cancel finds one.
    static std::vector<TimerVerdict> answer(const TimerCallOps& call) {
        std::vector<TimerVerdict> verdicts;
        for (const auto& op : call.ops) {
            const bool cancel = op.kind == TimerOp::Kind::cancel;
            verdicts.push_back(
                {.kind = cancel ? TimerVerdict::Kind::cancelled : TimerVerdict::Kind::scheduled,
                 .transaction_id = cancel ? "its" : op.transaction_id,
                 .message_id = op.message_id,
                 .deliver_at = WallTime(std::chrono::microseconds(1'000'001)),
                 .left = op.delay});
        }
        return verdicts;
    }
    http::Reply post(const std::string& body) { return api.ask("POST", kTimerRoute, body); }
    void expect_refusal(const std::string& body, int status, const std::string& error,
                        const std::string& reason) {
        calls.clear();
        const auto reply = post(body);
        EXPECT_EQ(reply.status, status) << body;
        EXPECT_EQ(at(reply.body, "error"), error) << body << reply.body;
        EXPECT_EQ(at(reply.body, "code"), error);
        EXPECT_EQ(at(reply.body, "reason"), reason) << body << reply.body;
        EXPECT_NE(at(reply.body, "detail"), "<missing>");
        EXPECT_THAT(calls, testing::IsEmpty()) << body;
    }
    void expect_bad(const std::string& body, const std::string& reason) {
        expect_refusal(body, 400, "timers_bad_request", reason);
    }
    std::uint64_t refused(metrics::TimerRefused why) { return api.activity->timers[why].value(); }

    Api api;
    std::vector<TimerCallOps> calls;
};

} // namespace queen::test
