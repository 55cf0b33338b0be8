#include "base/histogram.hpp"

#include <gtest/gtest.h>

namespace queen {
namespace {

using namespace std::chrono_literals;

TEST(LatencyHistogram, ABoundBelongsToItsBucket) {
    LatencyHistogram histogram;
    histogram.observe(100us);
    histogram.observe(100us + 1ns);
    histogram.observe(60s);
    histogram.observe(60s + 1ns);
    const auto seen = histogram.snapshot();
    EXPECT_EQ(seen.buckets[0], 1u);
    EXPECT_EQ(seen.buckets[1], 1u);
    EXPECT_EQ(seen.buckets[LatencyHistogram::kBuckets - 2], 1u);
    EXPECT_EQ(seen.buckets[LatencyHistogram::kBuckets - 1], 1u);
    EXPECT_EQ(seen.count(), 4u);
    EXPECT_DOUBLE_EQ(seen.sum.count(), 120.000200002);
}

TEST(LatencyHistogram, BoundsGrow) {
    const auto& bounds = LatencyHistogram::kBoundsMicroseconds;
    for (std::size_t i = 1; i < bounds.size(); ++i) {
        EXPECT_LT(bounds[i - 1], bounds[i]);
    }
}

TEST(LatencyHistogram, OneObservationMayStandForMany) {
    LatencyHistogram histogram;
    histogram.observe(2ms, 5);
    histogram.observe(-1s, 2);
    histogram.observe(24h, 0);
    const auto seen = histogram.snapshot();
    EXPECT_EQ(seen.count(), 7u);
    EXPECT_EQ(seen.buckets[0], 2u) << "a negative length counts as none";
    EXPECT_DOUBLE_EQ(seen.sum.count(), 0.010);
}

TEST(LatencyHistogram, ASumOfDaysDoesNotOverflow) {
    LatencyHistogram histogram;
    histogram.observe(24h * 365, 1'000'000'000);
    EXPECT_DOUBLE_EQ(histogram.snapshot().sum.count(), 365.0 * 86400 * 1e9);
}

} // namespace
} // namespace queen
