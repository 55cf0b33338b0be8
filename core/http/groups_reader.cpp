#include "http/groups_reader.hpp"

#include "base/json.hpp"
#include "base/text.hpp"
#include "http/query.hpp"

#include <string>

namespace queen::http {
namespace {

using json::Kind;
using json::Value;

constexpr std::string_view kTimes = "a time such as \"2026-11-03T09:15:27Z\"";

tl::unexpected<GroupBodyError> refuse(std::string text) {
    return tl::unexpected(GroupBodyError{{Errc::invalid_argument, std::move(text), {}}});
}

bool absent(Value value) noexcept {
    return value.is(Kind::missing) || value.is(Kind::null);
}

bool blank(std::string_view body) noexcept {
    return body.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

tl::expected<json::Document, GroupBodyError> read_object(std::string_view body) {
    if (body.size() > kMaxGroupBodyBytes) {
        return tl::unexpected(
            GroupBodyError{{Errc::too_large,
                            "the body may have " + std::to_string(kMaxGroupBodyBytes) +
                                " bytes, got " + std::to_string(body.size()),
                            {}},
                           true});
    }
    auto document = json::Document::parse(body);
    if (!document) {
        return tl::unexpected(GroupBodyError{std::move(document.error()), true});
    }
    if (!document->root().is(Kind::object)) {
        return tl::unexpected(
            GroupBodyError{{Errc::invalid_argument, "the body is not an object", {}}, true});
    }
    return std::move(*document);
}

/// Times are texts: a number says neither its unit nor where it counts from.
std::optional<WallTime> time_of(Value value) {
    return value.is(Kind::string) ? parse_time(value.string()) : std::nullopt;
}

} // namespace

tl::expected<SeekTarget, GroupBodyError> read_seek(std::string_view body, bool empty_is_end) {
    const std::string neither = "Must specify toEnd=true or a timestamp";
    if (blank(body)) {
        return empty_is_end ? tl::expected<SeekTarget, GroupBodyError>(SeekTarget{})
                            : refuse(neither);
    }
    const auto document = read_object(body);
    if (!document) {
        return tl::unexpected(document.error());
    }
    const Value to_end = document->root()["toEnd"];
    const Value timestamp = document->root()["timestamp"];
    if (!absent(to_end) && !to_end.boolean()) {
        return refuse("toEnd must be true or false");
    }
    const bool end = to_end.boolean().value_or(false);
    if (absent(timestamp)) {
        return end ? tl::expected<SeekTarget, GroupBodyError>(SeekTarget{}) : refuse(neither);
    }
    if (end) {
        return refuse("Must specify toEnd=true or a timestamp, not both");
    }
    const auto to = time_of(timestamp);
    if (!to) {
        return tl::unexpected(GroupBodyError{
            not_allowed("timestamp", kTimes,
                        timestamp.is(Kind::string) ? timestamp.string() : timestamp.raw_number())});
    }
    return SeekTarget{to};
}

tl::expected<WallTime, GroupBodyError> read_subscription(std::string_view body) {
    if (blank(body)) {
        return refuse("subscriptionTimestamp is required");
    }
    const auto document = read_object(body);
    if (!document) {
        return tl::unexpected(document.error());
    }
    const Value timestamp = document->root()["subscriptionTimestamp"];
    if (absent(timestamp)) {
        return refuse("subscriptionTimestamp is required");
    }
    const auto from = time_of(timestamp);
    if (!from) {
        return refuse("subscriptionTimestamp is invalid; allowed: " + std::string(kTimes));
    }
    return *from;
}

} // namespace queen::http
