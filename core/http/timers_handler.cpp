// http/timers_handler.cpp - messages that wait for their time: set, cancelled, shown.
#include "base/json.hpp"
#include "http/error_map.hpp"
#include "http/handlers.hpp"
#include "http/timer_reader.hpp"
#include "http/timer_writer.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace queen::http {
namespace {

constexpr std::size_t kMaxPrefixBytes = 128; // of a count
constexpr std::int32_t kListed = 100, kMostListed = 1'000;

void refuse(const std::shared_ptr<Call>& call, const TimerRefusal& refusal) {
    call->reply(timer_refusal_reply(refusal));
}

/// The same of a request that was to set timers, which is counted.
void refuse_change(const std::shared_ptr<Call>& call, const TimerRefusal& refusal) {
    call->services().timers.count_refused(refusal.why);
    refuse(call, refusal);
}

/// Timers are not taken (SWI-3). A batch is refused whole; the header tells a client that cancels
/// with it that those would have gone through.
void refuse_switched_off(const std::shared_ptr<Call>& call, const std::vector<TimerOp>& ops) {
    const TimerRefusal refusal{.status = 503,
                               .error = "timers_unavailable",
                               .reason = "timers_schedule_disabled",
                               .detail = "timers are switched off; cancels are not",
                               .why = metrics::TimerRefused::disabled,
                               .retry = true};
    call->services().timers.count_refused(refusal.why);
    auto reply = timer_refusal_reply(refusal);
    if (std::any_of(ops.begin(), ops.end(),
                    [](const TimerOp& op) { return op.kind == TimerOp::Kind::cancel; })) {
        reply.headers.emplace_back("x-queen-timers-hint",
                                   "send cancels in a request of their own, or by DELETE");
    }
    call->reply(std::move(reply));
}

std::string results_of(const std::vector<TimerName>& names,
                       const std::vector<TimerVerdict>& verdicts) {
    constexpr std::size_t kBytesPerResult = 256; // a guess that spares most of the regrowth
    std::string body;
    body.reserve(names.size() * kBytesPerResult + 16);
    json::Writer writer(body);
    writer.begin_object().key("results").begin_array();
    for (std::size_t i = 0; i < names.size(); ++i) {
        writer.begin_object();
        write_timer_result(writer, names[i], verdicts.at(i));
        writer.end_object();
    }
    writer.end_array().end_object();
    return body;
}

/// The key of the path; answers the call when it is none.
std::optional<std::string> key_of(const std::shared_ptr<Call>& call) {
    std::string key(call->parameter("timerKey"));
    if (key.empty()) {
        refuse(call, {.reason = "timers_key_required", .detail = "the path names no timerKey"});
        return std::nullopt;
    }
    if (auto ok = check_timer_key(key); !ok) {
        refuse(call, timer_name_refusal(ok.error()));
        return std::nullopt;
    }
    return key;
}

/// A question that is not one.
TimerRefusal bad_query(std::string reason, std::string detail) {
    return {.reason = std::move(reason), .detail = std::move(detail)};
}

/// The prefix of a count.
tl::expected<std::string, TimerRefusal> read_prefix(const Query& query) {
    for (const char* name : {"after", "limit"}) {
        const auto given = query.text(name);
        if (!given || *given) {
            return tl::unexpected(
                bad_query("timers_count_page_parameters", "a count takes no after and no limit"));
        }
    }
    const auto prefix = query.text("prefix");
    if (!prefix) {
        return tl::unexpected(bad_query("timers_count_prefix_invalid", prefix.error().message));
    }
    if (!*prefix || (*prefix)->empty()) {
        return tl::unexpected(
            bad_query("timers_count_prefix_required", "prefix must have 1 to 128 bytes"));
    }
    if ((*prefix)->find('\0') != std::string_view::npos) {
        return tl::unexpected(bad_query("timers_count_prefix_invalid", "prefix has a NUL"));
    }
    if ((*prefix)->size() > kMaxPrefixBytes) {
        return tl::unexpected(
            bad_query("timers_count_prefix_too_long", "prefix must have 1 to 128 bytes"));
    }
    return std::string(**prefix);
}

void count_timers(const std::shared_ptr<Call>& call) {
    auto prefix = read_prefix(call->query());
    if (!prefix) {
        refuse(call, prefix.error());
        return;
    }
    call->services().timers.count(
        std::string(call->tenant()), std::string(call->parameter("queue")), std::move(*prefix),
        [call](const Result<std::int64_t>& count) {
            call->guard([&] {
                if (!count) {
                    refuse(call, timer_refusal(count.error()));
                    return;
                }
                Reply reply;
                json::Writer(reply.body).begin_object().key("count").integer(*count).end_object();
                call->reply(std::move(reply));
            });
        });
}

std::string page_of(const std::string& queue, const TimerPage& page) {
    std::string body;
    json::Writer writer(body);
    writer.begin_object().key("rows").begin_array();
    for (const auto& timer : page.rows) {
        writer.begin_object();
        write_waiting_timer(writer, queue, timer, false);
        writer.end_object();
    }
    writer.end_array().key("truncated").boolean(page.truncated).key("nextAfter");
    if (page.truncated && !page.rows.empty()) {
        writer.string(page.rows.back().key);
    } else {
        writer.null();
    }
    writer.end_object();
    return body;
}

} // namespace

void change_timers(const std::shared_ptr<Call>& call) {
    auto ops = read_timers(call->tenant(), call->request().body, call->services().settings.timers);
    if (!ops) {
        refuse_change(call, ops.error());
        return;
    }
    if (ops->empty()) {
        call->reply(json_reply(R"({"results":[]})"));
        return;
    }
    auto& timers = call->services().timers;
    if (!timers.takes(*ops)) {
        refuse_switched_off(call, *ops);
        return;
    }
    auto names = names_of(*ops);
    timers.apply(
        {.tenant = std::string(call->tenant()),
         .producer_sub = call->subject(),
         .ops = std::move(*ops)},
        [call, names = std::move(names)](const Result<std::vector<TimerVerdict>>& verdicts) {
            call->guard([&] {
                if (verdicts) {
                    call->reply(json_reply(results_of(names, *verdicts)));
                } else {
                    refuse_change(call, timer_refusal(verdicts.error()));
                }
            });
        });
}

void cancel_timer(const std::shared_ptr<Call>& call) {
    auto key = key_of(call);
    if (!key) {
        return;
    }
    TimerOp op;
    op.kind = TimerOp::Kind::cancel;
    op.queue = call->parameter("queue");
    op.key = std::move(*key);
    const auto txn = call->query().text("txn");
    auto fit = txn ? Result<void>{} : fail(txn.error());
    if (txn && *txn && !(*txn)->empty()) {
        op.transaction_id = **txn;
        fit = check_transaction_id("txn", op.transaction_id);
    }
    if (!fit) {
        refuse(call, bad_query("timers_bad_txn", fit.error().message));
        return;
    }
    std::vector<TimerOp> ops{std::move(op)};
    auto names = names_of(ops);
    call->services().timers.apply(
        {.tenant = std::string(call->tenant()),
         .producer_sub = call->subject(),
         .ops = std::move(ops)},
        [call, names = std::move(names)](const Result<std::vector<TimerVerdict>>& verdicts) {
            call->guard([&] {
                if (!verdicts) {
                    refuse(call, timer_refusal(verdicts.error()));
                    return;
                }
                Reply reply;
                json::Writer writer(reply.body);
                writer.begin_object();
                write_timer_result(writer, names.at(0), verdicts->at(0));
                writer.end_object();
                call->reply(std::move(reply));
            });
        });
}

void peek_timer(const std::shared_ptr<Call>& call) {
    auto key = key_of(call);
    if (!key) {
        return;
    }
    call->services().timers.peek(
        std::string(call->tenant()), std::string(call->parameter("queue")), *key,
        [call, key = *key](const Result<std::optional<WaitingTimer>>& timer) {
            call->guard([&] {
                if (!timer) {
                    refuse(call, timer_refusal(timer.error()));
                    return;
                }
                const std::string queue(call->parameter("queue"));
                Reply reply;
                json::Writer writer(reply.body);
                writer.begin_object().key("found").boolean(timer->has_value());
                if (*timer) {
                    write_waiting_timer(writer, queue, **timer, true);
                } else {
                    writer.key("queue").string(queue).key("timerKey").string(key);
                }
                writer.end_object();
                call->reply(std::move(reply));
            });
        });
}

void list_timers(const std::shared_ptr<Call>& call) {
    const Query& query = call->query();
    const auto mode = query.text("mode");
    if (!mode || (*mode && !(*mode)->empty() && **mode != "list" && **mode != "count")) {
        refuse(call, bad_query("timers_read_mode_unknown", "mode must be list or count"));
        return;
    }
    if (*mode && **mode == "count") {
        count_timers(call);
        return;
    }
    const auto after = query.text("after");
    const auto limit = query.integer("limit", "a whole number, of effect from 1 to 1000");
    if (!after || !limit) {
        const auto& error = after ? limit.error() : after.error();
        refuse(call, bad_query("timers_list_page_parameters", error.message));
        return;
    }
    std::string behind(after->value_or(std::string_view()));
    if (behind.find('\0') != std::string::npos) {
        refuse(call, bad_query("timers_list_page_parameters", "after has a NUL"));
        return;
    }
    call->services().timers.list(
        std::string(call->tenant()), std::string(call->parameter("queue")), std::move(behind),
        std::clamp(limit->value_or(kListed), 1, kMostListed),
        [call](const Result<TimerPage>& page) {
            call->guard([&] {
                if (page) {
                    call->reply(json_reply(page_of(std::string(call->parameter("queue")), *page)));
                } else {
                    refuse(call, timer_refusal(page.error()));
                }
            });
        });
}

} // namespace queen::http
