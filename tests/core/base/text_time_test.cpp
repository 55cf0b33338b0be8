#include "base/text.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace queen {
namespace {

using namespace std::chrono_literals;

WallTime at(int year, unsigned month, unsigned day, std::chrono::microseconds time = 0us) {
    return std::chrono::sys_days(std::chrono::year(year) / static_cast<int>(month) /
                                 static_cast<int>(day)) +
           time;
}

TEST(TextTime, MicrosAreAlwaysWritten) {
    EXPECT_EQ(format_micros(WallTime{}), "1970-01-01T00:00:00.000000Z");
    EXPECT_EQ(format_micros(at(2026, 2, 28, 23h + 59min + 58s + 7us)),
              "2026-02-28T23:59:58.000007Z");
    EXPECT_EQ(format_micros(at(1969, 12, 31, 23h + 59min + 59s + 999'999us)),
              "1969-12-31T23:59:59.999999Z");
    EXPECT_EQ(format_micros(at(1, 1, 1)), "0001-01-01T00:00:00.000000Z");
    EXPECT_EQ(format_micros(at(9999, 12, 31)), "9999-12-31T00:00:00.000000Z");
}

// K19: all readable forms of one moment are one moment.
TEST(TextTime, FormsOfOneMomentAreOneMoment) {
    const WallTime moment = at(2026, 1, 31, 9h + 30min);
    for (const std::string_view text : {"2026-01-31T09:30:00Z",
                                        "2026-01-31 09:30:00Z",
                                        "2026-01-31t09:30:00z",
                                        "2026-01-31T09:30:00",
                                        "2026-01-31 09:30:00",
                                        "2026-01-31T09:30Z",
                                        "2026-01-31T09:30",
                                        "2026-01-31T09:30:00.000Z",
                                        "2026-01-31T09:30:00.000000000Z",
                                        "2026-01-31T09:30:00,0Z",
                                        "2026-01-31T09:30:00+00:00",
                                        "2026-01-31T09:30:00-00:00",
                                        "2026-01-31T15:00:00+05:30",
                                        "2026-01-31T15:00:00 05:30",
                                        "2026-01-31T15:00:00+0530",
                                        "2026-01-31T15:00:00 0530",
                                        "2026-01-31T15:00+05:30",
                                        "2026-01-31T06:00:00-03:30",
                                        "2026-01-31T06:00:00.000-0330",
                                        "2026-01-31T19:30:00+10",
                                        "2026-01-31T19:30:00 10",
                                        "2026-01-30T23:30:00-10",
                                        "2026-01-31 09:30:00+00"}) {
        const auto time = parse_time(text);
        ASSERT_TRUE(time.has_value()) << text;
        EXPECT_EQ(format_micros(*time), format_micros(moment)) << text;
    }
}

TEST(TextTime, AFractionIsCutToMicros) {
    EXPECT_EQ(parse_time("2026-01-31T00:00:00.1Z"), at(2026, 1, 31, 100ms));
    EXPECT_EQ(parse_time("2026-01-31T00:00:00.123Z"), at(2026, 1, 31, 123ms));
    EXPECT_EQ(parse_time("2026-01-31T00:00:00.123456Z"), at(2026, 1, 31, 123'456us));
    EXPECT_EQ(parse_time("2026-01-31T00:00:00.123456999Z"), at(2026, 1, 31, 123'456us));
    EXPECT_EQ(parse_time("2026-01-31T00:00:00.0000009" + std::string(1000, '9')), at(2026, 1, 31));
}

TEST(TextTime, ZonesCarryIntoTheNextDayAndYear) {
    EXPECT_EQ(parse_time("2025-12-31T23:30:00-01:00"), at(2026, 1, 1, 30min));
    EXPECT_EQ(parse_time("2024-03-01T00:30:00+01:00"), at(2024, 2, 29, 23h + 30min));
    EXPECT_EQ(parse_time("2026-01-01T00:00:00+15:59"), at(2025, 12, 31, 8h + 1min));
}

// As ISO-8601 (2004) and PostgreSQL have it.
TEST(TextTime, TwentyFourHoursIsTheMidnightThatEndsTheDay) {
    EXPECT_EQ(parse_time("2026-01-31T24:00:00Z"), at(2026, 2, 1));
    EXPECT_EQ(parse_time("2026-01-31T24:00"), at(2026, 2, 1));
    EXPECT_EQ(parse_time("2026-12-31 24:00:00.000+01"), at(2026, 12, 31, 23h));
    EXPECT_EQ(parse_time("2026-01-31T24:00:01Z"), std::nullopt);
    EXPECT_EQ(parse_time("2026-01-31T24:01:00Z"), std::nullopt);
    EXPECT_EQ(parse_time("2026-01-31T24:00:00.000001Z"), std::nullopt);
    EXPECT_EQ(parse_time("2026-01-31T25:00:00Z"), std::nullopt);
}

TEST(TextTime, ADateAloneIsItsMidnightInUtc) {
    EXPECT_EQ(parse_time("2026-01-31"), at(2026, 1, 31));
}

TEST(TextTime, TheCalendarIsKept) {
    EXPECT_EQ(parse_time("2024-02-29T00:00:00Z"), at(2024, 2, 29));
    EXPECT_EQ(parse_time("2000-02-29T00:00:00Z"), at(2000, 2, 29));
    for (const std::string_view text :
         {"2026-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2026-04-31T00:00:00Z",
          "2026-00-01T00:00:00Z", "2026-13-01T00:00:00Z", "2026-01-00T00:00:00Z",
          "2026-01-32T00:00:00Z", "2026-01-31T09:60:00Z", "2026-01-31T09:30:60Z",
          "2026-01-31T23:59:60Z", "2026-01-31T09:30:61Z"}) {
        EXPECT_EQ(parse_time(text), std::nullopt) << text;
    }
}

TEST(TextTime, YearsAreOneTo9999InUtc) {
    EXPECT_EQ(parse_time("0001-01-01T00:00:00Z"), at(1, 1, 1));
    EXPECT_EQ(parse_time("9999-12-31T23:59:59.999999Z"), at(10000, 1, 1, -1us));
    for (const std::string_view text :
         {"0000-12-31T23:59:59Z", "0000-01-01", "0001-01-01T00:00:00+00:01", "9999-12-31T24:00:00Z",
          "9999-12-31T23:59:59-00:01", "10000-01-01T00:00:00Z", "+2026-01-31T00:00:00Z",
          "-0001-01-01T00:00:00Z", "026-01-31T00:00:00Z"}) {
        EXPECT_EQ(parse_time(text), std::nullopt) << text;
    }
}

TEST(TextTime, WhatIsNoTimeIsRefused) {
    for (const std::string_view text : {"",
                                        " ",
                                        "now",
                                        "yesterday",
                                        "today",
                                        "epoch",
                                        "infinity",
                                        "1769851800",
                                        "1769851800000",
                                        "1769851800.5",
                                        "2026",
                                        "2026-01",
                                        "2026-1-31",
                                        "2026-01-31T",
                                        "2026-01-31T09",
                                        "2026-01-31T9:30",
                                        "2026-01-31T09:3",
                                        "2026-01-31T09:30:",
                                        "2026-01-31T09:30:0",
                                        "2026-01-31T09:30:00.",
                                        "2026-01-31T09:30:00.Z",
                                        "2026-01-31T09:30.5",
                                        "2026-01-31T09:30:00ZZ",
                                        "2026-01-31T09:30:00Z ",
                                        " 2026-01-31T09:30:00Z",
                                        "2026-01-31  09:30:00Z",
                                        "2026-01-31T09:30:00 Z",
                                        "2026-01-31T09:30:00 ",
                                        "2026-01-31T09:30:00+",
                                        "2026-01-31T09:30:00+5",
                                        "2026-01-31T09:30:00+5:30",
                                        "2026-01-31T09:30:00+05:",
                                        "2026-01-31T09:30:00+05:3",
                                        "2026-01-31T09:30:00+053",
                                        "2026-01-31T09:30:00+05:60",
                                        "2026-01-31T09:30:00+16:00",
                                        "2026-01-31T09:30:00+05:30:00",
                                        "2026-01-31T09:30:00 +05:30",
                                        "2026-01-31T09:30:00+05:30Z",
                                        "2026-01-31T09:30:00 UTC",
                                        "2026-01-31T09:30:00 Europe/Rome",
                                        "20260131T093000Z",
                                        "2026/01/31 09:30:00",
                                        "31-01-2026T09:30:00Z",
                                        "2026-W05-6",
                                        "2026-031",
                                        "2026-01-31_09:30:00Z",
                                        "Sat, 31 Jan 2026 09:30:00 GMT",
                                        "2026-01-31Z",
                                        "2026-01-31+05:30",
                                        "2O26-01-31"}) {
        EXPECT_EQ(parse_time(text), std::nullopt) << text;
    }
    EXPECT_EQ(parse_time(std::string_view("2026-01-31T09:30:00Z\0", 21)), std::nullopt);
}

} // namespace
} // namespace queen
