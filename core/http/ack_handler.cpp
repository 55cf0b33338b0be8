#include "base/json.hpp"
#include "http/ack_reader.hpp"
#include "http/error_map.hpp"
#include "http/handlers.hpp"

namespace queen::http {
namespace {

std::string render(const std::vector<std::string>& transaction_ids,
                   const std::vector<broker::AckItemResult>& results) {
    constexpr std::size_t kBytesPerItem = 160; // a guess that spares most of the regrowth
    std::string body;
    body.reserve(results.size() * kBytesPerItem + 2);
    json::Writer writer(body);
    writer.begin_array();
    for (std::size_t i = 0; i < results.size(); ++i) {
        const broker::AckItemResult& result = results[i];
        writer.begin_object();
        writer.key("index").integer(static_cast<std::int64_t>(i));
        writer.key("transactionId").string(transaction_ids.at(i));
        writer.key("success").boolean(result.success);
        writer.key("error");
        if (result.error.empty()) {
            writer.null();
        } else {
            writer.string(result.error);
        }
        writer.key("leaseReleased").boolean(result.lease_released);
        writer.key("dlq").boolean(result.dlq);
        writer.key("noop").boolean(result.noop);
        if (result.success && result.conflated > 0) {
            writer.key("conflated").integer(result.conflated);
        }
        writer.end_object();
    }
    writer.end_array();
    return body;
}

// Outcomes are fields of the items; the status is 200 whatever they are.
void ack(const std::shared_ptr<Call>& call, Result<broker::AckRequest> request) {
    if (!request) {
        call->reply(bad_body_reply(request.error()));
        return;
    }
    if (request->items.empty()) {
        call->reply(json_reply("[]"));
        return;
    }
    std::vector<std::string> ids;
    ids.reserve(request->items.size());
    for (const broker::AckItem& item : request->items) {
        ids.push_back(item.transaction_id);
    }
    call->services().acks.ack(
        std::move(*request),
        [call, ids = std::move(ids)](const std::vector<broker::AckItemResult>& results) {
            call->guard([&] { call->reply(json_reply(render(ids, results))); });
        });
}

} // namespace

void ack_one(const std::shared_ptr<Call>& call) {
    ack(call, read_ack(call->tenant(), call->request().body));
}

void ack_batch(const std::shared_ptr<Call>& call) {
    ack(call, read_ack_batch(call->tenant(), call->request().body));
}

} // namespace queen::http
