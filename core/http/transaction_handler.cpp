#include "base/json.hpp"
#include "base/text.hpp"
#include "http/error_map.hpp"
#include "http/handlers.hpp"
#include "http/timer_writer.hpp"
#include "http/transaction_reader.hpp"
#include "model/uuid7.hpp"

namespace queen::http {
namespace {

using Verdict = broker::TransactionResult::Verdict;
using Order = std::vector<TransactionBody::Kind>;

Reply failed(int status, const Uuid& id, std::string_view reason, std::string_view text) {
    std::string body;
    json::Writer writer(body);
    writer.begin_object().key("transactionId").string(to_string(id));
    writer.key("success").boolean(false).key("reason").string(reason);
    writer.key("error").string(text).key("results").begin_array().end_array().end_object();
    return json_reply(std::move(body), status);
}

/// What was never run.
Reply refused(int status, std::string_view reason, std::string_view text) {
    static Uuid7 ids;
    return failed(status, ids.next(), reason, text);
}

/// A body that cannot be run.
Reply refused(const Error& error) {
    const auto rule = rule_for(error.code);
    return refused(rule.status, error.code == Errc::too_large ? "payload_too_large" : rule.code,
                   error.message);
}

/// The same for its timers.
Reply refused(const TimerRefusal& refusal) {
    return refused(refusal.status, refusal.status == 400 ? "bad_request" : refusal.error,
                   "timers: " + refusal.detail + " (" + refusal.reason + ")");
}

/// What an answer names after the request moved on.
struct Names {
    Order order;
    std::vector<std::string> queues, ack_ids;
    std::vector<TimerName> timers;
};

void write_timers(json::Writer& writer, const Names& names,
                  const broker::TransactionResult& result) {
    for (std::size_t i = 0; i < names.timers.size(); ++i) {
        writer.begin_object();
        writer.key("index").integer(static_cast<std::int64_t>(names.order.size() + i));
        writer.key("opIndex").integer(static_cast<std::int64_t>(i)).key("type").string("timer");
        write_timer_result(writer, names.timers[i], result.timers.at(i));
        writer.end_object();
    }
}

std::string committed(const Names& names, const broker::TransactionResult& result) {
    const auto& [order, queues, ack_ids, timers] = names;
    constexpr std::size_t kBytesPerItem = 192; // a guess that spares most of the regrowth
    std::string body;
    body.reserve((order.size() + timers.size()) * kBytesPerItem + 128);
    json::Writer writer(body);
    writer.begin_object().key("transactionId").string(to_string(result.id));
    writer.key("success").boolean(true).key("results").begin_array();
    std::size_t push = 0, ack = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
        writer.begin_object().key("index").integer(static_cast<std::int64_t>(i));
        switch (order[i]) {
        case TransactionBody::Kind::push: {
            const auto& item = result.pushes.at(push);
            writer.key("type").string("push").key("success").boolean(true);
            writer.key("transactionId").string(item.transaction_id);
            writer.key("messageId").string(to_string(item.message_id));
            writer.key("queueName").string(queues.at(push++));
            if (item.duplicate) {
                writer.key("duplicate").boolean(true);
            }
            break;
        }
        case TransactionBody::Kind::ack: {
            const auto& item = result.acks.at(ack);
            writer.key("type").string("ack").key("success").boolean(true);
            writer.key("transactionId").string(ack_ids.at(ack++)).key("error");
            if (item.error.empty()) {
                writer.null();
            } else {
                writer.string(item.error);
            }
            writer.key("dlq").boolean(item.dlq);
            break;
        }
        }
        writer.end_object();
    }
    write_timers(writer, names, result);
    writer.end_array().end_object();
    return body;
}

Reply answer_of(const Names& names, const broker::TransactionResult& result) {
    switch (result.verdict) {
    case Verdict::committed:
        return json_reply(committed(names, result));
    case Verdict::duplicate:
        return failed(200, result.id, "duplicate", result.error.message);
    case Verdict::rejected_ack:
        return failed(200, result.id, "rejected_ack", result.error.message);
    case Verdict::no_key: {
        const auto rule = rule_for(Errc::invalid_argument); // another broker may have the key
        return failed(rule.status, result.id, rule.code, result.error.message);
    }
    case Verdict::failed:
        break;
    }
    // Nothing was tried: the contract's bare answer, and a status that tells a client to come back.
    if (result.error.code == Errc::unavailable || result.error.code == Errc::shutting_down) {
        return error_reply(result.error);
    }
    return failed(200, result.id, "db_error", result.error.message);
}

/// Timers that could not be made ready: nothing was run.
Reply unstaged(const Error& error) {
    if (error.code == Errc::unavailable || error.code == Errc::shutting_down) {
        return error_reply(error);
    }
    const auto refusal = timer_refusal(error);
    return refusal.status == 400 ? refused(400, "bad_request", "timers: " + error.message)
                                 : refused(200, "db_error", error.message);
}

void run(const std::shared_ptr<Call>& call, broker::TransactionRequest request, Names names) {
    call->services().transactions.run(
        std::move(request),
        [call, names = std::move(names)](const broker::TransactionResult& result) {
            call->guard([&] { call->reply(answer_of(names, result)); });
        });
}

/// Makes the timers ready, then runs the whole.
void stage(const std::shared_ptr<Call>& call, broker::TransactionRequest request, Names names) {
    auto timers = std::move(request.timers);
    const auto tenant = request.tenant;
    call->services().timers.stage(
        tenant, std::move(timers),
        [call, request = std::move(request),
         names = std::move(names)](Result<std::vector<TimerOp>> staged) mutable {
            call->guard([&] {
                if (!staged) {
                    call->services().timers.count_refused(timer_refusal(staged.error()).why);
                    call->reply(unstaged(staged.error()));
                    return;
                }
                request.timers = std::move(*staged);
                run(call, std::move(request), std::move(names));
            });
        });
}

} // namespace

void transaction(const std::shared_ptr<Call>& call) {
    auto body = std::make_shared<const std::string>(std::move(call->request().body));
    auto read = read_transaction(call->tenant(), std::move(body), call->services().settings.timers);
    auto& timers = call->services().timers;
    if (!read) {
        const auto& refusal = read.error();
        if (refusal.timers) {
            timers.count_refused(refusal.timers->why);
        }
        call->reply(refusal.timers ? refused(*refusal.timers) : refused(refusal.error));
        return;
    }
    auto& request = read->request;
    if (!timers.takes(request.timers)) { // SWI-3
        timers.count_refused(metrics::TimerRefused::disabled);
        call->reply(refused(403, "timers_schedule_disabled",
                            "timers: they are switched off; cancels are not"));
        return;
    }
    Names names;
    names.order = std::move(read->order);
    for (const auto& item : request.pushes) {
        names.queues.push_back(item.queue);
    }
    for (const auto& ack : request.acks) {
        names.ack_ids.push_back(ack.item.transaction_id);
    }
    names.timers = names_of(request.timers);
    request.producer_sub = call->subject();
    if (request.timers.empty()) {
        run(call, std::move(request), std::move(names));
    } else {
        stage(call, std::move(request), std::move(names));
    }
}

} // namespace queen::http
