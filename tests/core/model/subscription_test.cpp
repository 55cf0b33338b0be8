#include "base/text.hpp"
#include "model/subscription.hpp"

#include <gtest/gtest.h>

#include <string>

namespace queen {
namespace {

using Mode = Subscription::Mode;

Subscription subscription(std::string_view mode, std::string_view from, Mode fallback = Mode::all) {
    const auto parsed = parse_subscription(mode, from, fallback);
    EXPECT_TRUE(parsed.has_value()) << mode << "|" << from;
    return parsed.value_or(Subscription{});
}

TEST(SubscriptionTest, NothingSaidIsTheFallback) {
    EXPECT_EQ(subscription("", "").mode, Mode::all);
    EXPECT_EQ(subscription("", "", Mode::fresh).mode, Mode::fresh);
}

// POP-3
TEST(SubscriptionTest, NewHasFourSpellings) {
    for (const std::string_view mode : {"new", "new-only", "new_only", "newonly"}) {
        EXPECT_EQ(subscription(mode, "").mode, Mode::fresh) << mode;
        EXPECT_EQ(subscription(mode, "").sql_mode(), "new");
        EXPECT_EQ(subscription(mode, "").sql_from(), "");
    }
    EXPECT_EQ(subscription("all", "", Mode::fresh).mode, Mode::all);
    EXPECT_EQ(subscription("all", "").sql_mode(), "all");
}

TEST(SubscriptionTest, NowIsNew) {
    EXPECT_EQ(subscription("", "now").mode, Mode::fresh);
    EXPECT_EQ(subscription("all", "now").sql_mode(), "new");
    EXPECT_EQ(subscription("new", "now").sql_from(), "");
}

TEST(SubscriptionTest, ATimeWinsOverTheMode) {
    for (const std::string_view mode : {"", "all", "new"}) {
        const Subscription from = subscription(mode, "2026-01-31T15:00:00.5 05:30");
        EXPECT_EQ(from.mode, Mode::from);
        EXPECT_EQ(from.from, parse_time("2026-01-31T09:30:00.5Z"));
        EXPECT_EQ(from.sql_mode(), "all");
        EXPECT_EQ(from.sql_from(), "2026-01-31T09:30:00.500000Z");
    }
}

// K19: what cannot be read is an error; it is never taken as "everything".
TEST(SubscriptionTest, UnreadableWordsAreErrorsThatNameTheField) {
    for (const std::string_view mode :
         {"New", "NEW", "ALL", "latest", "earliest", "new ", " all", "from", "0", "now"}) {
        const auto parsed = parse_subscription(mode, "", Mode::all);
        ASSERT_FALSE(parsed.has_value()) << mode;
        EXPECT_EQ(parsed.error().code, Errc::invalid_argument);
        EXPECT_TRUE(parsed.error().message.starts_with("subscriptionMode "));
        EXPECT_FALSE(parse_subscription(mode, "2026-01-31T09:30:00Z", Mode::all).has_value());
    }
    for (const std::string_view from :
         {"yesterday", "NOW", "Now", "all", "new", "1769851800000", "0", " ",
          "2026-13-01T00:00:00Z", "2026-01-31T25:00:00Z", "10000-01-01T00:00:00Z"}) {
        for (const std::string_view mode : {"", "all", "new"}) {
            const auto parsed = parse_subscription(mode, from, Mode::all);
            ASSERT_FALSE(parsed.has_value()) << from;
            EXPECT_EQ(parsed.error().code, Errc::invalid_argument);
            EXPECT_TRUE(parsed.error().message.starts_with("subscriptionFrom "));
        }
    }
}

} // namespace
} // namespace queen
