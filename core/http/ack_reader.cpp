#include "http/ack_reader.hpp"

#include "base/json.hpp"
#include "http/ack_fields.hpp"
#include "http/request_names.hpp"

#include <utility>

namespace queen::http {
namespace {

using json::Kind;
using json::Value;

// A string member; missing and null read as "".
Result<std::string_view> text_of(Value object, std::string_view name) {
    const Value value = object[name];
    switch (value.kind()) {
    case Kind::missing:
    case Kind::null:
        return std::string_view();
    case Kind::string:
        return value.string();
    case Kind::boolean:
    case Kind::number:
    case Kind::array:
    case Kind::object:
        break;
    }
    return fail(Errc::invalid_argument, std::string(name) + " is not a string");
}

void write_value(json::Writer& writer, Value value) {
    switch (value.kind()) {
    case Kind::missing:
    case Kind::null:
        writer.null();
        break;
    case Kind::boolean:
        writer.boolean(value.boolean().value_or(false));
        break;
    case Kind::number:
        writer.raw(value.raw_number());
        break;
    case Kind::string:
        writer.string(value.string());
        break;
    case Kind::array:
        writer.begin_array();
        for (std::size_t i = 0; i < value.size(); ++i) {
            write_value(writer, value.at(i));
        }
        writer.end_array();
        break;
    case Kind::object:
        writer.begin_object();
        for (std::size_t i = 0; i < value.size(); ++i) {
            writer.key(value.key_at(i));
            write_value(writer, value.value_at(i));
        }
        writer.end_object();
        break;
    }
}

Result<void> read_status(Value value, broker::AckItem& item) {
    if (value.is(Kind::missing) || value.is(Kind::null)) {
        return {};
    }
    if (!value.is(Kind::string)) {
        return fail(bad_ack_status());
    }
    return read_ack_status(value.string(), item);
}

Result<broker::AckItem> read_item(Value value) {
    if (!value.is(Kind::object)) {
        return fail(Errc::invalid_argument, "an acknowledgment is not an object");
    }
    broker::AckItem item;
    for (const auto& [name, field] : {std::pair{"transactionId", &item.transaction_id},
                                      {"partitionId", &item.partition_id},
                                      {"leaseId", &item.lease_id}}) {
        const auto text = text_of(value, name);
        if (!text) {
            return fail(text.error());
        }
        *field = *text;
    }
    if (!item.lease_id.empty()) {
        item.lease_id = read_lease_id(item.lease_id);
    }
    if (auto ok = read_status(value["status"], item); !ok) {
        return fail(ok.error());
    }
    item.error = read_reason(value["error"]);
    return item;
}

Result<json::Document> read_object(std::string_view body) {
    if (body.size() > kMaxAckBodyBytes) {
        return fail(Errc::too_large, "an acknowledgment body may have " +
                                         std::to_string(kMaxAckBodyBytes) + " bytes, got " +
                                         std::to_string(body.size()));
    }
    auto document = json::Document::parse(body);
    if (document && !document->root().is(Kind::object)) {
        return fail(Errc::invalid_argument, "the body is not an object");
    }
    return document;
}

Result<broker::AckRequest> request_for(std::string_view tenant, Value root) {
    const auto text = text_of(root, "consumerGroup");
    if (!text) {
        return fail(text.error());
    }
    auto group = read_group(*text);
    if (!group) {
        return fail(group.error());
    }
    broker::AckRequest request;
    request.tenant = tenant;
    request.group = std::move(*group);
    return request;
}

} // namespace

std::string read_reason(Value value) {
    std::string text;
    if (value.is(Kind::string)) {
        text = value.string();
    } else if (!value.is(Kind::missing) && !value.is(Kind::null)) {
        json::Writer writer(text);
        write_value(writer, value);
    }
    // NUL is nothing that PostgreSQL's text can hold.
    std::string kept;
    for (const char c : text) {
        kept.append(c == '\0' ? "\xEF\xBF\xBD" : std::string_view(&c, 1));
        if (kept.size() > kMaxReasonBytes) {
            break;
        }
    }
    if (kept.size() > kMaxReasonBytes) {
        auto end = kMaxReasonBytes;
        while (end > 0 && (static_cast<unsigned char>(kept[end]) & 0xC0) == 0x80) {
            --end; // inside a character
        }
        kept.resize(end);
    }
    return kept;
}

Result<broker::AckRequest> read_ack(std::string_view tenant, std::string_view body) {
    const auto document = read_object(body);
    if (!document) {
        return fail(document.error());
    }
    auto request = request_for(tenant, document->root());
    if (!request) {
        return request;
    }
    auto item = read_item(document->root());
    if (!item) {
        return fail(item.error());
    }
    request->items.push_back(std::move(*item));
    return request;
}

Result<broker::AckRequest> read_ack_batch(std::string_view tenant, std::string_view body) {
    const auto document = read_object(body);
    if (!document) {
        return fail(document.error());
    }
    auto request = request_for(tenant, document->root());
    if (!request) {
        return request;
    }
    const Value items = document->root()["acknowledgments"];
    if (items.is(Kind::missing) || items.is(Kind::null)) {
        return fail(Errc::invalid_argument, "acknowledgments is required");
    }
    if (!items.is(Kind::array)) {
        return fail(Errc::invalid_argument, "acknowledgments is not an array");
    }
    request->items.reserve(items.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
        auto item = read_item(items.at(i));
        if (!item) {
            return fail(item.error().code,
                        "item " + std::to_string(i) + ": " + item.error().message);
        }
        request->items.push_back(std::move(*item));
    }
    return request;
}

} // namespace queen::http
