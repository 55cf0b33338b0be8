#include "base/base64.hpp"

#include <array>
#include <cstdint>

namespace queen {
namespace {

constexpr std::string_view kStandard =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kUrl =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

constexpr std::uint8_t kNone = 0xFF;
using Values = std::array<std::uint8_t, 256>;

constexpr Values values_of(std::string_view alphabet) {
    Values values{};
    values.fill(kNone);
    for (std::size_t i = 0; i < alphabet.size(); ++i) {
        values[static_cast<unsigned char>(alphabet[i])] = static_cast<std::uint8_t>(i);
    }
    return values;
}

constexpr Values kStandardValues = values_of(kStandard);
constexpr Values kUrlValues = values_of(kUrl);

std::uint32_t byte_at(std::string_view bytes, std::size_t at) {
    return static_cast<unsigned char>(bytes[at]);
}

std::string encode(std::string_view bytes, std::string_view alphabet, bool padded) {
    std::string out;
    out.reserve((bytes.size() + 2) / 3 * 4);
    std::size_t at = 0;
    for (; at + 3 <= bytes.size(); at += 3) {
        const std::uint32_t group =
            byte_at(bytes, at) << 16 | byte_at(bytes, at + 1) << 8 | byte_at(bytes, at + 2);
        for (const int shift : {18, 12, 6, 0}) {
            out += alphabet[group >> shift & 63];
        }
    }
    const std::size_t left = bytes.size() - at;
    if (left > 0) {
        const std::uint32_t group =
            byte_at(bytes, at) << 16 | (left == 2 ? byte_at(bytes, at + 1) << 8 : 0);
        out += alphabet[group >> 18 & 63];
        out += alphabet[group >> 12 & 63];
        if (left == 2) {
            out += alphabet[group >> 6 & 63];
        }
        out.append(padded ? 3 - left : 0, '=');
    }
    return out;
}

/// Without padding.
std::optional<std::string> decode(std::string_view text, const Values& values) {
    if (text.size() % 4 == 1) {
        return std::nullopt;
    }
    std::string out;
    out.reserve(text.size() / 4 * 3 + 2);
    std::uint32_t group = 0;
    unsigned bits = 0;
    for (const char c : text) {
        const std::uint8_t value = values[static_cast<unsigned char>(c)];
        if (value == kNone) {
            return std::nullopt;
        }
        group = group << 6 | value;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            out += static_cast<char>(group >> bits & 0xFF);
            group &= (1u << bits) - 1;
        }
    }
    if (group != 0) { // bits that no byte takes
        return std::nullopt;
    }
    return out;
}

} // namespace

std::string to_base64(std::string_view bytes) {
    return encode(bytes, kStandard, true);
}

std::optional<std::string> from_base64(std::string_view text) {
    if (text.size() % 4 != 0) {
        return std::nullopt;
    }
    for (int padding = 0; padding < 2 && text.ends_with('='); ++padding) {
        text.remove_suffix(1);
    }
    return decode(text, kStandardValues);
}

std::string to_base64url(std::string_view bytes) {
    return encode(bytes, kUrl, false);
}

std::optional<std::string> from_base64url(std::string_view text) {
    return decode(text, kUrlValues);
}

} // namespace queen
