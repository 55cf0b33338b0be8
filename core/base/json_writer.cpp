#include "base/assert.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

#include <array>
#include <charconv>
#include <cmath>

namespace queen::json {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD"; // U+FFFD

/// Bytes that can be copied as they stand: printable ASCII but the quote and the backslash.
constexpr std::array<bool, 256> kPlain = [] {
    std::array<bool, 256> plain{};
    for (std::size_t c = 0x20; c < 0x80; ++c) {
        plain[c] = c != '"' && c != '\\';
    }
    return plain;
}();

void append_escape(std::string& out, unsigned char c) {
    switch (c) {
    case '"':
        out += "\\\"";
        return;
    case '\\':
        out += "\\\\";
        return;
    case '\b':
        out += "\\b";
        return;
    case '\f':
        out += "\\f";
        return;
    case '\n':
        out += "\\n";
        return;
    case '\r':
        out += "\\r";
        return;
    case '\t':
        out += "\\t";
        return;
    }
    constexpr char kDigits[] = "0123456789abcdef";
    out += "\\u00";
    out += kDigits[c >> 4];
    out += kDigits[c & 15];
}

void append_quoted(std::string& out, std::string_view text) {
    out += '"';
    std::size_t at = 0;
    while (at < text.size()) {
        std::size_t end = at;
        while (end < text.size() && kPlain[static_cast<unsigned char>(text[end])]) {
            ++end;
        }
        out.append(text, at, end - at);
        at = end;
        if (at == text.size()) {
            break;
        }
        const auto c = static_cast<unsigned char>(text[at]);
        if (c < 0x80) {
            append_escape(out, c);
            ++at;
        } else if (const std::size_t length = utf8_length(text.substr(at)); length > 0) {
            out.append(text, at, length);
            at += length;
        } else {
            out += kReplacement;
            ++at;
        }
    }
    out += '"';
}

} // namespace

void Writer::separate() {
    if (after_key_) {
        after_key_ = false;
        return;
    }
    if (first_.empty()) {
        return;
    }
    if (first_.back()) {
        first_.back() = false;
    } else {
        out_ += ',';
    }
}

Writer& Writer::begin_object() {
    separate();
    out_ += '{';
    first_.push_back(true);
    return *this;
}

Writer& Writer::end_object() {
    QUEEN_ASSERT(!first_.empty() && !after_key_,
                 "an object ends that was not begun or lacks a value");
    out_ += '}';
    first_.pop_back();
    return *this;
}

Writer& Writer::begin_array() {
    separate();
    out_ += '[';
    first_.push_back(true);
    return *this;
}

Writer& Writer::end_array() {
    QUEEN_ASSERT(!first_.empty() && !after_key_, "an array ends that was not begun");
    out_ += ']';
    first_.pop_back();
    return *this;
}

Writer& Writer::key(std::string_view name) {
    separate();
    append_quoted(out_, name);
    out_ += ':';
    after_key_ = true;
    return *this;
}

Writer& Writer::string(std::string_view value) {
    separate();
    append_quoted(out_, value);
    return *this;
}

Writer& Writer::integer(std::int64_t value) {
    separate();
    std::array<char, 20> digits; // "-9223372036854775808"
    const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), value);
    out_.append(digits.data(), written.ptr);
    return *this;
}

Writer& Writer::number(double value) {
    QUEEN_ASSERT(std::isfinite(value), "JSON has no infinity and no NaN");
    separate();
    std::array<char, 32> digits; // the shortest text that reads back equal: at most 24 characters
    const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), value);
    out_.append(digits.data(), written.ptr);
    return *this;
}

Writer& Writer::boolean(bool value) {
    separate();
    out_ += value ? "true" : "false";
    return *this;
}

Writer& Writer::null() {
    separate();
    out_ += "null";
    return *this;
}

Writer& Writer::raw(std::string_view json) {
    separate();
    out_ += json;
    return *this;
}

std::string quoted(std::string_view text) {
    std::string out;
    out.reserve(text.size() + 2);
    append_quoted(out, text);
    return out;
}

} // namespace queen::json
