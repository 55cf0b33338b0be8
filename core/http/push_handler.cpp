#include "base/json.hpp"
#include "base/text.hpp"
#include "http/error_map.hpp"
#include "http/handlers.hpp"
#include "http/push_reader.hpp"

#include <algorithm>

namespace queen::http {
namespace {

std::string_view word_of(broker::PushStatus status) noexcept {
    switch (status) {
    case broker::PushStatus::queued:
        return "queued";
    case broker::PushStatus::duplicate:
        return "duplicate";
    case broker::PushStatus::buffered:
        return "buffered";
    case broker::PushStatus::failed:
        return "failed";
    case broker::PushStatus::error:
        return "error";
    }
    return "error"; // a number outside the enum
}

std::string render(const std::vector<std::string>& queues,
                   const std::vector<broker::PushItemResult>& results) {
    constexpr std::size_t kBytesPerItem = 192; // a guess that spares most of the regrowth
    std::string body;
    body.reserve(results.size() * kBytesPerItem + 2);
    json::Writer writer(body);
    writer.begin_array();
    for (std::size_t i = 0; i < results.size(); ++i) {
        const broker::PushItemResult& result = results[i];
        writer.begin_object();
        writer.key("index").integer(static_cast<std::int64_t>(i));
        writer.key("message_id").string(to_string(result.message_id));
        writer.key("transaction_id").string(result.transaction_id);
        writer.key("queueName").string(queues.at(i));
        writer.key("status").string(word_of(result.status));
        if (result.offset) {
            writer.key("offset").integer(result.offset->value());
        }
        if (!result.error.empty()) {
            writer.key("error").string(result.error);
        }
        writer.end_object();
    }
    writer.end_array();
    return body;
}

// 500 only when the disk refused and nothing of the request was stored (PUSH-4).
int status_of(const std::vector<broker::PushItemResult>& results) {
    bool failed = false;
    for (const broker::PushItemResult& result : results) {
        switch (result.status) {
        case broker::PushStatus::queued:
        case broker::PushStatus::duplicate:
        case broker::PushStatus::buffered:
            return 201;
        case broker::PushStatus::failed:
            failed = true;
            break;
        case broker::PushStatus::error:
            break;
        }
    }
    return failed ? 500 : 201;
}

} // namespace

void push(const std::shared_ptr<Call>& call) {
    auto body = std::make_shared<const std::string>(std::move(call->request().body));
    auto request = read_push(call->tenant(), std::move(body));
    if (!request) {
        call->reply(bad_body_reply(request.error()));
        return;
    }
    if (request->items.empty()) {
        call->reply(json_reply("[]", 201));
        return;
    }
    request->producer_sub = call->subject();
    std::vector<std::string> queues; // the answer names them after the items moved on
    queues.reserve(request->items.size());
    for (const broker::PushItem& item : request->items) {
        queues.push_back(item.queue);
    }
    call->services().push.push(
        std::move(*request),
        [call, queues = std::move(queues)](const std::vector<broker::PushItemResult>& results) {
            call->guard(
                [&] { call->reply(json_reply(render(queues, results), status_of(results))); });
        });
}

} // namespace queen::http
