#include "settings/values.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace queen::settings {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST(Values, DurationsNeedAWholeNumberAndAUnit) {
    EXPECT_EQ(parse_duration("30s"), 30s);
    EXPECT_EQ(parse_duration("250ms"), 250ms);
    EXPECT_EQ(parse_duration("5m"), 5min);
    EXPECT_EQ(parse_duration("1h"), 1h);
    EXPECT_EQ(parse_duration("2d"), 48h);
    EXPECT_EQ(parse_duration("7us"), 7us);
    EXPECT_EQ(parse_duration("7ns"), 7ns);
    EXPECT_EQ(parse_duration("0s"), 0s);
    for (const char* text : {"", "30", "s", "-1s", "1.5s", "30 s", " 30s", "30S", "30sec", "1h30m",
                             "0x1s", "+1s", "99999999999999999999s", "300000000d"}) {
        const auto result = parse_duration(text);
        ASSERT_FALSE(result.has_value()) << text;
        EXPECT_EQ(result.error().code, Errc::invalid_argument);
    }
    EXPECT_THAT(parse_duration("30").error().message, HasSubstr("\"30\" has no unit"));
    EXPECT_THAT(parse_duration("300000000d").error().message, HasSubstr("is too large"));
}

TEST(Values, SizesNeedAWholeNumberAndAUnit) {
    EXPECT_EQ(parse_size("512B"), 512);
    EXPECT_EQ(parse_size("16KiB"), 16 * 1024);
    EXPECT_EQ(parse_size("64MiB"), 64 << 20);
    EXPECT_EQ(parse_size("2GiB"), 2LL << 30);
    EXPECT_EQ(parse_size("1TiB"), 1LL << 40);
    for (const char* text :
         {"", "64", "MiB", "64M", "64MB", "64mib", "1.5MiB", "-1B", "9999999TiB"}) {
        EXPECT_FALSE(parse_size(text).has_value()) << text;
    }
}

TEST(Values, WhatIsWrittenReadsBackTheSame) {
    std::mt19937_64 random(7);
    for (int i = 0; i < 2000; ++i) {
        const auto value =
            static_cast<std::int64_t>(random() >> (1 + random() % 62)); // all magnitudes
        EXPECT_EQ(parse_duration(format_duration(std::chrono::nanoseconds(value))).value().count(),
                  value);
        EXPECT_EQ(parse_size(format_size(value)).value(), value);
    }
    EXPECT_EQ(format_duration(90s), "90s");
    EXPECT_EQ(format_duration(60s), "1m");
    EXPECT_EQ(format_duration(0s), "0s");
    EXPECT_EQ(format_size(0), "0B");
    EXPECT_EQ(format_size(64 << 20), "64MiB");
}

TEST(Values, EnvironmentBooleansHaveEightWordsInEitherCase) {
    for (const char* text : {"true", "TRUE", "1", "yes", "Yes", "on", "ON"}) {
        EXPECT_EQ(parse_env_boolean(text), true) << text;
    }
    for (const char* text : {"false", "False", "0", "no", "NO", "off", "Off"}) {
        EXPECT_EQ(parse_env_boolean(text), false) << text;
    }
    for (const char* text : {"", "2", "y", "t", "enabled", " true", "tru"}) {
        EXPECT_FALSE(parse_env_boolean(text).has_value()) << text;
    }
}

TEST(Values, YamlBooleansHaveTwo) {
    EXPECT_EQ(parse_yaml_boolean("true"), true);
    EXPECT_EQ(parse_yaml_boolean("false"), false);
    for (const char* text : {"yes", "True", "1", "on", ""}) {
        EXPECT_FALSE(parse_yaml_boolean(text).has_value()) << text;
    }
}

TEST(Values, RealNumbersAreFinite) {
    EXPECT_EQ(parse_real("2.5"), 2.5);
    EXPECT_EQ(parse_real("1e2"), 100.0);
    for (const char* text : {"", "nan", "inf", "1e999", "2x", ".nan"}) {
        EXPECT_FALSE(parse_real(text).has_value()) << text;
    }
}

TEST(Values, ShownTextIsOneLineAndBounded) {
    EXPECT_EQ(shown("a\nb\x7f"), "\"a\\x0ab\\x7f\"");
    EXPECT_EQ(shown(std::string(100, 'x')), "\"" + std::string(60, 'x') + "...\"");
    // An e with an accent is two bytes; the cut comes after both.
    const std::string accented = std::string(59, 'x') + "\xc3\xa9" + "tail";
    EXPECT_EQ(shown(accented), "\"" + std::string(59, 'x') + "\xc3\xa9...\"");
}

TEST(Values, TheNearestWordIsOneThatCouldHaveBeenMeant) {
    const std::vector<std::string> known{"listen", "limits", "log", "all", "new"};
    EXPECT_EQ(nearest("lsiten", known), "listen");
    EXPECT_EQ(nearest("limit", known), "limits");
    EXPECT_EQ(nearest("nwe", known), "new");
    EXPECT_EQ(nearest("port", known), "");
    EXPECT_EQ(nearest("", known), "");
    EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
    EXPECT_EQ(edit_distance("ab", "ba"), 1u);
    EXPECT_EQ(edit_distance("", "abc"), 3u);
    EXPECT_EQ(edit_distance(std::string(5000, 'a'), "b"), 5000u);
}

} // namespace
} // namespace queen::settings
