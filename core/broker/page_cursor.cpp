#include "broker/page_cursor.hpp"

#include "base/text.hpp"

namespace queen::broker {
namespace {

/// Takes the text before the next dot off the front.
std::string_view take_part(std::string_view& text) {
    const std::size_t dot = text.find('.');
    const std::string_view part = text.substr(0, dot);
    text.remove_prefix(dot == std::string_view::npos ? text.size() : dot + 1);
    return part;
}

/// The years 1 to 9999: what the store's timestamps take without becoming something else.
std::optional<WallTime> take_time(std::string_view& text) {
    constexpr std::int64_t kLow = -62'135'596'800'000'000, kHigh = 253'402'300'799'999'999;
    const auto micros = parse_int(take_part(text));
    if (!micros || *micros < kLow || *micros > kHigh) {
        return std::nullopt;
    }
    return WallTime{std::chrono::microseconds(*micros)};
}

std::string micros(WallTime at) {
    return std::to_string(at.time_since_epoch().count());
}

} // namespace

std::string write_cursor(const MessageKey& key) {
    return micros(key.created_at) + "." + to_string(key.partition_id) + "." +
           std::to_string(key.offset.value());
}

std::string write_cursor(const LetterKey& key) {
    return micros(key.failed_at) + "." + to_string(key.id);
}

std::optional<MessageKey> read_message_cursor(std::string_view text) {
    const auto at = take_time(text);
    const auto id = parse_uuid(take_part(text));
    const auto offset = parse_int(text);
    if (!at || !id || !offset || *offset < 0) {
        return std::nullopt;
    }
    return MessageKey{*at, *id, Offset{*offset}};
}

std::optional<LetterKey> read_letter_cursor(std::string_view text) {
    const auto at = take_time(text);
    const auto id = parse_uuid(text);
    if (!at || !id) {
        return std::nullopt;
    }
    return LetterKey{*at, *id};
}

} // namespace queen::broker
