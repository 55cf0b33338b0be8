#include "model/queue_options.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace queen {
namespace {

using Type = QueueOption::Type;

// The contract: names, order of the echo, defaults. Written out again on purpose.
TEST(QueueOptions, AreThoseOfTheContractInTheOrderOfTheEcho) {
    const struct {
        std::string_view name;
        Type type;
        std::string_view unit;
        std::int64_t fallback;
    } kContract[] = {
        {"priority", Type::integer, "", 0},
        {"leaseTime", Type::integer, "s", 300},
        {"retryLimit", Type::integer, "", 3},
        {"retryDelay", Type::integer, "ms", 1000},
        {"maxSize", Type::integer, "", 0},
        {"ttl", Type::integer, "s", 3600},
        {"deadLetterQueue", Type::boolean, "", 1},
        {"dlqAfterMaxRetries", Type::boolean, "", 1},
        {"delayedProcessing", Type::integer, "s", 0},
        {"windowBuffer", Type::integer, "s", 0},
        {"retentionSeconds", Type::integer, "s", 0},
        {"completedRetentionSeconds", Type::integer, "s", 0},
        {"retentionEnabled", Type::boolean, "", 0},
        {"encryptionEnabled", Type::boolean, "", 0},
        {"maxWaitTimeSeconds", Type::integer, "s", 0},
        {"minPopWaitTime", Type::integer, "ms", 0},
        {"dedupWindowSeconds", Type::integer, "s", 3600},
        {"retentionSinkHold", Type::text, "", 0},
        {"retentionSinkHoldMaxSeconds", Type::integer, "s", 604'800},
    };
    const auto options = queue_options();
    ASSERT_EQ(options.size(), std::size(kContract));
    for (std::size_t i = 0; i < options.size(); ++i) {
        EXPECT_EQ(options[i].name, kContract[i].name);
        EXPECT_EQ(options[i].type, kContract[i].type) << options[i].name;
        EXPECT_EQ(options[i].unit, kContract[i].unit) << options[i].name;
        EXPECT_EQ(options[i].fallback, kContract[i].fallback) << options[i].name;
    }
}

TEST(QueueOptions, BoundsHoldTheDefaultAndFitTheirColumn) {
    for (const QueueOption& option : queue_options()) {
        EXPECT_LE(option.min, option.fallback) << option.name;
        EXPECT_LE(option.fallback, option.max) << option.name;
        EXPECT_GE(option.min, INT32_MIN) << option.name;
        EXPECT_LE(option.max, INT32_MAX) << option.name;
        if (option.type == Type::boolean) {
            EXPECT_EQ(option.min, 0) << option.name;
            EXPECT_EQ(option.max, 1) << option.name;
        }
        EXPECT_TRUE(option.doc.ends_with('.')) << option.name;
    }
}

TEST(QueueOptions, StatedBoundsAreKept) {
    const auto& pop_wait = *find_queue_option("minPopWaitTime");
    EXPECT_EQ(pop_wait.min, 0);
    EXPECT_EQ(pop_wait.max, 60'000);
    EXPECT_TRUE(pop_wait.clamps);
    const auto& window = *find_queue_option("dedupWindowSeconds");
    EXPECT_EQ(window.min, 0);
    EXPECT_TRUE(window.clamps);
    const auto& hold = *find_queue_option("retentionSinkHold");
    EXPECT_EQ(hold.max, 64);
    EXPECT_FALSE(hold.clamps);
    const auto& longest = *find_queue_option("retentionSinkHoldMaxSeconds");
    EXPECT_EQ(longest.min, 60);
    EXPECT_EQ(longest.max, 31'536'000);
    EXPECT_FALSE(longest.clamps);
    EXPECT_EQ(find_queue_option("leaseTime")->min, 1);
}

// K37: a misspelt option must be noticed, so only the exact name is found.
TEST(QueueOptions, OnlyExactNamesAreFound) {
    EXPECT_EQ(find_queue_option("leaseTime"), &queue_options()[1]);
    for (const std::string_view name :
         {"", "leasetime", "LEASETIME", "lease_time", "leaseTime ", "namespace", "task"}) {
        EXPECT_EQ(find_queue_option(name), nullptr) << name;
    }
}

} // namespace
} // namespace queen
