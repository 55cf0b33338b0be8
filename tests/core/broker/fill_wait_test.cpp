#include "broker/fill_wait.hpp"

#include <gtest/gtest.h>

namespace queen::broker {
namespace {

using namespace std::chrono_literals;

class FillWaitTest : public testing::Test {
protected:
    static SteadyTime at(Nanoseconds time) { return SteadyTime(time); }

    metrics::PopCounters counters_;
    FillWait wait_{at(100s), counters_};
};

TEST_F(FillWaitTest, AFullBatchDoesNotWait) {
    EXPECT_FALSE(wait_.until(5s, 10, 10, at(1s)));
    EXPECT_FALSE(wait_.until(5s, 1, 0, at(1s))) << "one message is a full batch of one";
    EXPECT_FALSE(wait_.until(0s, 10, 1, at(1s))) << "the queue has no such time";
    EXPECT_EQ(counters_.fill_waits.value(), 0u);
}

// MW-1: full, over or the deadline, whichever comes first.
TEST_F(FillWaitTest, AWaitCountsFromItsBeginAndEndsOnce) {
    EXPECT_EQ(wait_.until(5s, 10, 1, at(1s)), at(6s));
    EXPECT_EQ(wait_.until(5s, 10, 9, at(4s)), at(6s)) << "more came: it does not begin anew";
    EXPECT_FALSE(wait_.until(5s, 10, 9, at(6s)));
    EXPECT_EQ(wait_.until(5s, 10, 1, at(7s)), at(12s)) << "the next one";
    EXPECT_FALSE(wait_.until(5s, 10, 11, at(8s)));
    EXPECT_EQ(counters_.fill_waits.value(), 2u);
    EXPECT_EQ(counters_.fill_wait_micros.value(), 6'000'000u);
}

TEST_F(FillWaitTest, TheCallersDeadlineEndsIt) {
    EXPECT_EQ(wait_.until(5s, 10, 1, at(98s)), at(100s));
    EXPECT_FALSE(wait_.until(5s, 10, 1, at(100s)));
}

TEST_F(FillWaitTest, WithoutAnEstimateTheTimeIsWaitedOut) {
    EXPECT_EQ(wait_.until(5s, 10, std::nullopt, at(1s)), at(6s));
    EXPECT_TRUE(wait_.waits());
    EXPECT_FALSE(wait_.until(5s, 10, std::nullopt, at(6s)));
    EXPECT_FALSE(wait_.waits());
}

TEST_F(FillWaitTest, AChangedTimeHoldsAtOnce) {
    EXPECT_EQ(wait_.until(5s, 10, 1, at(1s)), at(6s));
    EXPECT_EQ(wait_.until(2s, 10, 1, at(2s)), at(3s));
    EXPECT_FALSE(wait_.until(0s, 10, 1, at(2s)));
}

TEST_F(FillWaitTest, WhatIsTakenByOthersEndsTheWait) {
    wait_.until(5s, 10, 1, at(1s));
    wait_.end(at(3s));
    wait_.end(at(4s));
    EXPECT_FALSE(wait_.waits());
    EXPECT_EQ(counters_.fill_wait_micros.value(), 2'000'000u);
}

} // namespace
} // namespace queen::broker
