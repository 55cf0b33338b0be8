#include "base/text.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>

namespace queen {
namespace {

RC_GTEST_PROP(TextProperty, HexRoundTrips, (const std::string& bytes)) {
    RC_ASSERT(from_hex(to_hex(bytes)) == bytes);
}

RC_GTEST_PROP(TextProperty, PercentCodingRoundTripsInPathsAndQueries, (const std::string& bytes)) {
    const std::string encoded = percent_encode(bytes);
    RC_ASSERT(percent_decode(encoded, false) == bytes);
    RC_ASSERT(percent_decode(encoded, true) == bytes);
    RC_ASSERT(std::all_of(encoded.begin(), encoded.end(),
                          [](char c) { return c > ' ' && c < 0x7F && c != '+' && c != '/'; }));
}

RC_GTEST_PROP(TextProperty, UuidsRoundTrip, (const std::array<std::uint8_t, 16>& bytes)) {
    const Uuid id{bytes};
    const std::string text = to_string(id);
    RC_ASSERT(parse_uuid(text) == id);
    std::string upper = text;
    std::transform(upper.begin(), upper.end(), upper.begin(), ::toupper);
    RC_ASSERT(parse_uuid(upper) == id);
}

RC_GTEST_PROP(TextProperty, IntegersRoundTrip, (std::int64_t value)) {
    RC_ASSERT(parse_int(std::to_string(value)) == value);
}

RC_GTEST_PROP(TextProperty, TimesRoundTripInEveryZone, ()) {
    constexpr std::int64_t kFirst = -62'135'510'400; // 0001-01-02, room for a zone
    constexpr std::int64_t kLast = 253'402'128'000;  // 9999-12-30
    const std::chrono::seconds second(*rc::gen::inRange<std::int64_t>(kFirst, kLast));
    const std::chrono::microseconds micro(*rc::gen::inRange(0, 1'000'000));
    const std::chrono::minutes zone(*rc::gen::inRange(-959, 960));
    const WallTime time(second + micro);
    RC_ASSERT(parse_time(format_micros(time)) == time);

    std::string local = format_micros(time + zone);
    local.pop_back();
    const auto hours = std::to_string(std::abs(zone.count()) / 60 + 100).substr(1);
    const auto minutes = std::to_string(std::abs(zone.count()) % 60 + 100).substr(1);
    local += zone.count() < 0 ? "-" : *rc::gen::element("+", " ");
    local += hours + *rc::gen::element("", ":") + minutes;
    RC_ASSERT(parse_time(local) == time);
}

RC_GTEST_PROP(TextProperty, NoTextBreaksTheTimeReader, ()) {
    // Near-times: a good one with a few characters changed. Whatever is read must be in range.
    std::string text = "2026-01-31T09:30:00.123456+05:30";
    const auto changes = *rc::gen::inRange(0, 4);
    for (int i = 0; i < changes; ++i) {
        text[*rc::gen::inRange<std::size_t>(0, text.size())] =
            *rc::gen::elementOf(std::string("0123456789-:+ TZ."));
    }
    text.resize(*rc::gen::inRange<std::size_t>(0, text.size() + 1));
    if (const auto time = parse_time(text)) {
        RC_ASSERT(parse_time(format_micros(*time)) == time);
    }
}

/// Code points by their definition: decode, then ask for the shortest form of a scalar value.
bool valid_by_definition(const std::string& text) {
    std::size_t at = 0;
    while (at < text.size()) {
        const auto lead = static_cast<unsigned char>(text[at]);
        const std::size_t size = lead < 0x80             ? 1
                                 : (lead & 0xE0) == 0xC0 ? 2
                                 : (lead & 0xF0) == 0xE0 ? 3
                                 : (lead & 0xF8) == 0xF0 ? 4
                                                         : 0;
        if (size == 0 || at + size > text.size()) {
            return false;
        }
        std::uint32_t code = size == 1 ? lead : lead & (0x7Fu >> size);
        for (std::size_t i = 1; i < size; ++i) {
            const auto next = static_cast<unsigned char>(text[at + i]);
            if ((next & 0xC0) != 0x80) {
                return false;
            }
            code = code << 6 | (next & 0x3Fu);
        }
        const std::size_t shortest = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
        if (size != shortest || (code >= 0xD800 && code <= 0xDFFF) || code > 0x10FFFF) {
            return false;
        }
        at += size;
    }
    return true;
}

RC_GTEST_PROP(TextProperty, Utf8IsJudgedByItsDefinition, ()) {
    // Bytes at the edges of the rules, so that near-misses are common.
    const std::string edges("a\x7F\x80\x8F\x90\x9F\xA0\xBF\xC0\xC1\xC2\xDF\xE0\xE1\xEC\xED\xEE\xEF"
                            "\xF0\xF1\xF3\xF4\xF5\xFF");
    std::string text(*rc::gen::inRange<std::size_t>(0, 12), 'x'); // reaches over the 8-byte steps
    text += *rc::gen::container<std::string>(rc::gen::elementOf(edges));
    RC_ASSERT(valid_utf8(text) == valid_by_definition(text));
}

TEST(TextExhaustive, EveryFourByteStartIsJudgedByItsDefinition) {
    // All pairs of first bytes, with tails at both edges: 65,536 x 9 texts.
    const std::string tails("\x7F\x80\xBF");
    for (int first = 0; first < 256; ++first) {
        for (int second = 0; second < 256; ++second) {
            for (const char third : tails) {
                for (const char fourth : tails) {
                    const std::string text{static_cast<char>(first), static_cast<char>(second),
                                           third, fourth};
                    for (std::size_t size = 1; size <= text.size(); ++size) {
                        const std::string part = text.substr(0, size);
                        ASSERT_EQ(valid_utf8(part), valid_by_definition(part)) << to_hex(part);
                    }
                }
            }
        }
    }
}

} // namespace
} // namespace queen
