#include "base/assert.hpp"

#include <gtest/gtest.h>

namespace queen {
namespace {

TEST(AssertDeathTest, FailureNamesConditionTextAndPlaceAndAborts) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(QUEEN_ASSERT(1 + 1 == 3, "sums are right"), testing::KilledBySignal(SIGABRT),
                "assert_test.cpp:[0-9]+: assertion failed: 1 \\+ 1 == 3: sums are right");
}

TEST(Assert, SuccessEvaluatesTheConditionOnceAndGoesOn) {
    int evaluated = 0;
    QUEEN_ASSERT(++evaluated == 1, "counts");
    EXPECT_EQ(evaluated, 1);
}

} // namespace
} // namespace queen
