#include "base/json.hpp"
#include "base/text.hpp"
#include "http/error_map.hpp"
#include "http/handlers.hpp"
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

/// A body that cannot be run.
Reply refused(const Error& error) {
    static Uuid7 ids;
    const auto rule = rule_for(error.code);
    const auto reason = error.code == Errc::too_large ? "payload_too_large" : rule.code;
    return failed(rule.status, ids.next(), reason, error.message);
}

std::string committed(const Order& order, const std::vector<std::string>& queues,
                      const std::vector<std::string>& ack_ids,
                      const broker::TransactionResult& result) {
    constexpr std::size_t kBytesPerItem = 192; // a guess that spares most of the regrowth
    std::string body;
    body.reserve(order.size() * kBytesPerItem + 128);
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
    writer.end_array().end_object();
    return body;
}

Reply answer_of(const Order& order, const std::vector<std::string>& queues,
                const std::vector<std::string>& ack_ids, const broker::TransactionResult& result) {
    switch (result.verdict) {
    case Verdict::committed:
        return json_reply(committed(order, queues, ack_ids, result));
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

} // namespace

void transaction(const std::shared_ptr<Call>& call) {
    auto body = std::make_shared<const std::string>(std::move(call->request().body));
    auto read = read_transaction(call->tenant(), std::move(body));
    if (!read) {
        call->reply(refused(read.error()));
        return;
    }
    std::vector<std::string> queues, ack_ids; // the answer names them after the items moved on
    for (const auto& item : read->request.pushes) {
        queues.push_back(item.queue);
    }
    for (const auto& ack : read->request.acks) {
        ack_ids.push_back(ack.item.transaction_id);
    }
    read->request.producer_sub = call->subject();
    call->services().transactions.run(
        std::move(read->request),
        [call, order = std::move(read->order), queues = std::move(queues),
         ack_ids = std::move(ack_ids)](const broker::TransactionResult& result) {
            call->guard([&] { call->reply(answer_of(order, queues, ack_ids, result)); });
        });
}

} // namespace queen::http
