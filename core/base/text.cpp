#include "base/text.hpp"

#include <array>
#include <charconv>
#include <cstring>

namespace queen {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

/// -1 when not a hex digit
int hex_value(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return -1;
}

/// -1 when `text` does not hold two hex digits at `at`
int hex_byte(std::string_view text, std::size_t at) {
    if (at + 2 > text.size()) {
        return -1;
    }
    const int high = hex_value(text[at]);
    const int low = hex_value(text[at + 1]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

bool unreserved(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

} // namespace

std::string to_hex(std::string_view bytes) {
    std::string out(bytes.size() * 2, '\0');
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        const auto byte = static_cast<unsigned char>(bytes[i]);
        out[2 * i] = kHexDigits[byte >> 4];
        out[2 * i + 1] = kHexDigits[byte & 15];
    }
    return out;
}

std::optional<std::string> from_hex(std::string_view text) {
    if (text.size() % 2 != 0) {
        return std::nullopt;
    }
    std::string out(text.size() / 2, '\0');
    for (std::size_t i = 0; i < out.size(); ++i) {
        const int byte = hex_byte(text, 2 * i);
        if (byte < 0) {
            return std::nullopt;
        }
        out[i] = static_cast<char>(byte);
    }
    return out;
}

std::string to_string(const Uuid& id) {
    std::string out(36, '-');
    std::size_t at = 0;
    for (std::size_t i = 0; i < id.bytes.size(); ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            ++at;
        }
        out[at++] = kHexDigits[id.bytes[i] >> 4];
        out[at++] = kHexDigits[id.bytes[i] & 15];
    }
    return out;
}

std::optional<Uuid> parse_uuid(std::string_view text) {
    if (text.size() != 36) {
        return std::nullopt;
    }
    Uuid id;
    std::size_t at = 0;
    for (std::size_t i = 0; i < id.bytes.size(); ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            if (text[at++] != '-') {
                return std::nullopt;
            }
        }
        const int byte = hex_byte(text, at);
        if (byte < 0) {
            return std::nullopt;
        }
        id.bytes[i] = static_cast<std::uint8_t>(byte);
        at += 2;
    }
    return id;
}

// Well-formed sequences as the Unicode standard lists them (table 3-7): the second byte carries all
// that keeps overlong forms, surrogates and values over U+10FFFF out.
std::size_t utf8_length(std::string_view text) noexcept {
    const auto byte = [&](std::size_t i) -> unsigned {
        return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
    };
    const auto in = [](unsigned value, unsigned low, unsigned high) {
        return value >= low && value <= high;
    };
    const auto tail = [&](std::size_t i) { return in(byte(i), 0x80, 0xBF); };
    if (text.empty()) {
        return 0;
    }
    const unsigned lead = byte(0);
    if (lead < 0x80) {
        return 1;
    }
    if (in(lead, 0xC2, 0xDF)) {
        return tail(1) ? 2 : 0;
    }
    if (in(lead, 0xE0, 0xEF)) {
        const unsigned low = lead == 0xE0 ? 0xA0 : 0x80;
        const unsigned high = lead == 0xED ? 0x9F : 0xBF;
        return in(byte(1), low, high) && tail(2) ? 3 : 0;
    }
    if (in(lead, 0xF0, 0xF4)) {
        const unsigned low = lead == 0xF0 ? 0x90 : 0x80;
        const unsigned high = lead == 0xF4 ? 0x8F : 0xBF;
        return in(byte(1), low, high) && tail(2) && tail(3) ? 4 : 0;
    }
    return 0;
}

bool valid_utf8(std::string_view text) noexcept {
    constexpr std::uint64_t kHighBits = 0x8080808080808080;
    std::size_t at = 0;
    while (at < text.size()) {
        if (at + sizeof(std::uint64_t) <= text.size()) {
            std::uint64_t word = 0;
            std::memcpy(&word, text.data() + at, sizeof word);
            if ((word & kHighBits) == 0) {
                at += sizeof word;
                continue;
            }
        }
        const std::size_t length = utf8_length(text.substr(at));
        if (length == 0) {
            return false;
        }
        at += length;
    }
    return true;
}

std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size(); ++at) {
        const char c = text[at];
        if (c == '%') {
            const int byte = hex_byte(text, at + 1);
            if (byte < 0) {
                return std::nullopt;
            }
            out += static_cast<char>(byte);
            at += 2;
        } else {
            out += c == '+' && plus_is_space ? ' ' : c;
        }
    }
    return out;
}

std::string percent_encode(std::string_view text) {
    constexpr char kUpperDigits[] = "0123456789ABCDEF"; // RFC 3986, 2.1
    std::string out;
    out.reserve(text.size());
    for (const char c : text) {
        if (unreserved(c)) {
            out += c;
        } else {
            const auto byte = static_cast<unsigned char>(c);
            out += '%';
            out += kUpperDigits[byte >> 4];
            out += kUpperDigits[byte & 15];
        }
    }
    return out;
}

std::optional<std::int64_t> parse_int(std::string_view text) noexcept {
    std::int64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [read, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || read != end) {
        return std::nullopt;
    }
    return value;
}

} // namespace queen
