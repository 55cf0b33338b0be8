#include "base/text.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace queen {
namespace {

TEST(Text, HexIsLowerCaseAndReadInEitherCase) {
    EXPECT_EQ(to_hex(std::string_view("\x00\x7f\xff\xa0", 4)), "007fffa0");
    EXPECT_EQ(to_hex(""), "");
    EXPECT_EQ(from_hex("007fFFa0"), std::string("\x00\x7f\xff\xa0", 4));
    EXPECT_EQ(from_hex(""), "");
    for (const std::string_view text : {"0", "0g", "g0", "0 ", "0x00", "00\n", "-1"}) {
        EXPECT_EQ(from_hex(text), std::nullopt) << text;
    }
}

TEST(Text, UuidsAreInTextOrder) {
    Uuid id;
    for (std::size_t i = 0; i < id.bytes.size(); ++i) {
        id.bytes[i] = static_cast<std::uint8_t>(0xA0 + i);
    }
    EXPECT_EQ(to_string(id), "a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf");
    EXPECT_EQ(parse_uuid("a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf"), id);
    EXPECT_EQ(parse_uuid("A0A1A2A3-A4A5-A6A7-A8A9-AAABACADAEAF"), id);
    EXPECT_EQ(to_string(Uuid{}), "00000000-0000-0000-0000-000000000000");
}

TEST(Text, OtherSpellingsOfUuidsAreRefused) {
    for (const std::string_view text :
         {"", "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf", "{a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf}",
          "a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaea", "a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaff",
          "g0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf", "a0a1a2a3_a4a5-a6a7-a8a9-aaabacadaeaf",
          "a0a1a2a-3a4a5-a6a7-a8a9-aaabacadaeaf", " a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaea",
          "a0a1a2a3-a4a5-a6a7-a8a9-aaabacadae-f"}) {
        EXPECT_EQ(parse_uuid(text), std::nullopt) << text;
    }
}

TEST(Text, Utf8IsWellFormedOrNot) {
    for (const std::string_view text :
         {"", "ascii only, longer than a word", "\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80",
          "\xED\x9F\xBF", "\xEE\x80\x80", "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF",
          "12345678\xC3\xA9",
          "1234567\xC3\xA9"
          "abcdefgh"}) {
        EXPECT_TRUE(valid_utf8(text)) << to_hex(text);
    }
    EXPECT_TRUE(valid_utf8(std::string_view("\0", 1)));
    for (const std::string_view text : {"\x80",
                                        "\xBF",
                                        "\xC0\x80",
                                        "\xC1\xBF",
                                        "\xC2",
                                        "\xC2\x41",
                                        "\xC2\xC2",
                                        "\xE0\x9F\xBF",
                                        "\xE0\xA0",
                                        "\xE1\x80\x7F",
                                        "\xED\xA0\x80",
                                        "\xED\xBF\xBF",
                                        "\xF0\x8F\xBF\xBF",
                                        "\xF0\x90\x80",
                                        "\xF4\x90\x80\x80",
                                        "\xF5\x80\x80\x80",
                                        "\xFF",
                                        "12345678\x80",
                                        "1234567\xC3",
                                        "\xE2\x82\xACxxxxx\x80"}) {
        EXPECT_FALSE(valid_utf8(text)) << to_hex(text);
    }
}

TEST(Text, Utf8LengthIsThatOfTheFirstCharacter) {
    EXPECT_EQ(utf8_length("ab"), 1u);
    EXPECT_EQ(utf8_length("\xC3\xA9x"), 2u);
    EXPECT_EQ(utf8_length("\xE2\x82\xACx"), 3u);
    EXPECT_EQ(utf8_length("\xF0\x9F\x98\x80x"), 4u);
    EXPECT_EQ(utf8_length("\xF0\x9F\x98"), 0u);
    EXPECT_EQ(utf8_length(""), 0u);
}

// K25: decoding happens once; a plus is a space in a query only.
TEST(Text, PercentDecodingHappensOnce) {
    EXPECT_EQ(percent_decode("a%20b+c%2Bd%25%2f", false), "a b+c+d%/");
    EXPECT_EQ(percent_decode("a%20b+c%2Bd%25%2f", true), "a b c+d%/");
    EXPECT_EQ(percent_decode("%2525", false), "%25");
    EXPECT_EQ(percent_decode("%C3%bc%00", false), std::string("\xC3\xBC\0", 3));
    EXPECT_EQ(percent_decode("", true), "");
}

TEST(Text, ABadEscapeIsRefused) {
    for (const std::string_view text :
         {"%", "%2", "a%", "a%2", "%2G", "%G2", "%%20", "% 2", "%+1", "%-1", "%u0041"}) {
        EXPECT_EQ(percent_decode(text, true), std::nullopt) << text;
        EXPECT_EQ(percent_decode(text, false), std::nullopt) << text;
    }
}

TEST(Text, PercentEncodingKeepsUnreservedCharactersOnly) {
    EXPECT_EQ(percent_encode("AZaz09-._~"), "AZaz09-._~");
    EXPECT_EQ(percent_encode("a b+c%d/e?f&g=h:i"), "a%20b%2Bc%25d%2Fe%3Ff%26g%3Dh%3Ai");
    EXPECT_EQ(percent_encode(std::string_view("\0\xC3\xBC", 3)), "%00%C3%BC");
}

TEST(Text, IntegersAreWholeTexts) {
    EXPECT_EQ(parse_int("0"), 0);
    EXPECT_EQ(parse_int("-0"), 0);
    EXPECT_EQ(parse_int("007"), 7);
    EXPECT_EQ(parse_int("-42"), -42);
    EXPECT_EQ(parse_int("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
    EXPECT_EQ(parse_int("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
    for (const std::string_view text :
         {"", "-", "+1", " 1", "1 ", "1.0", "1e3", "0x10", "--1", "9223372036854775808",
          "-9223372036854775809", "1,000", "\xD9\xA1"}) {
        EXPECT_EQ(parse_int(text), std::nullopt) << text;
    }
    EXPECT_EQ(parse_int(std::string_view("1\0", 2)), std::nullopt);
}

} // namespace
} // namespace queen
