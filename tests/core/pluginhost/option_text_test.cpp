#include "pluginhost/option_text.hpp"

#include <gtest/gtest.h>

namespace queen::pluginhost {
namespace {

using namespace std::chrono_literals;

TEST(OptionText, ADurationIsAWholeNumberWithItsUnit) {
    EXPECT_EQ(parse_duration("250ms").value(), 250ms);
    EXPECT_EQ(parse_duration("30s").value(), 30s);
    EXPECT_EQ(parse_duration("5m").value(), 5min);
    EXPECT_EQ(parse_duration("2h").value(), 2h);
    EXPECT_EQ(parse_duration("1d").value(), 24h);
    EXPECT_EQ(parse_duration("7us").value(), 7us);
    EXPECT_EQ(parse_duration("9ns").value(), 9ns);
    EXPECT_EQ(parse_duration("0s").value(), 0s);
}

TEST(OptionText, WhatIsNotADurationIsRefused) {
    for (const char* text : {"", "30", "s", "1.5s", "-1s", "+1s", " 1s", "1 s", "1S", "1sec",
                             "1s1ms", "0x1s", "1\xc3\xbcs"}) {
        EXPECT_FALSE(parse_duration(text).has_value()) << text;
    }
    EXPECT_EQ(parse_duration("106751d").value(), 106751 * 24h);
    EXPECT_FALSE(parse_duration("106752d").has_value()) << "over 2^63 ns";
    EXPECT_FALSE(parse_duration("9223372036854775808ns").has_value());
}

TEST(OptionText, ADurationIsShownInTheLargestUnitThatFits) {
    EXPECT_EQ(format_duration(90s), "90s");
    EXPECT_EQ(format_duration(120s), "2m");
    EXPECT_EQ(format_duration(1500ms), "1500ms");
    EXPECT_EQ(format_duration(24h), "1d");
    EXPECT_EQ(format_duration(0ns), "0s");
    EXPECT_EQ(format_duration(-3s), "-3s");
}

TEST(OptionText, AWholeNumberHasNothingAroundIt) {
    EXPECT_EQ(parse_whole("-42").value(), -42);
    EXPECT_EQ(parse_whole("9223372036854775807").value(), INT64_MAX);
    for (const char* text : {"", " 1", "1 ", "1.0", "1e3", "0x10", "9223372036854775808", "+1"}) {
        EXPECT_FALSE(parse_whole(text).has_value()) << text;
    }
}

TEST(OptionText, YamlKnowsTrueAndFalseAndTheEnvironmentMoreWords) {
    EXPECT_TRUE(parse_boolean("true", false).value());
    EXPECT_FALSE(parse_boolean("false", false).value());
    for (const char* text : {"yes", "1", "on", "True", ""}) {
        EXPECT_FALSE(parse_boolean(text, false).has_value()) << text;
    }
    for (const char* text : {"yes", "1", "On", "TRUE"}) {
        EXPECT_TRUE(parse_boolean(text, true).value()) << text;
    }
    for (const char* text : {"no", "0", "OFF", "False"}) {
        EXPECT_FALSE(parse_boolean(text, true).value()) << text;
    }
    EXPECT_FALSE(parse_boolean("maybe", true).has_value());
}

TEST(OptionText, ATextIsShownOnOneLineAndCut) {
    EXPECT_EQ(shown("a\nb\x7f"), "'a\\x0ab\\x7f'");
    EXPECT_EQ(shown(std::string(100, 'x')), "'" + std::string(60, 'x') + "...'");
    EXPECT_EQ(shown(std::string(59, 'x') + "äz"), "'" + std::string(59, 'x') + "ä...'");
}

} // namespace
} // namespace queen::pluginhost
