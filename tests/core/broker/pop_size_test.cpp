#include "broker/pop_size.hpp"

#include <gtest/gtest.h>

namespace queen::broker {
namespace {

plugin::Readiness ready(std::uint64_t partitions, std::uint64_t messages) {
    return {.state = plugin::ReadyState::ready, .partitions = partitions, .messages = messages};
}

std::int32_t partitions_for(std::int32_t batch, const plugin::Readiness& readiness) {
    return choose_size({batch, 1}, {.partitions = true}, readiness, false).partitions;
}

TEST(PopSize, WhatIsGivenWins) {
    EXPECT_EQ(choose_size({7, 3}, {}, ready(1000, 100000), false), (PopSize{7, 3}));
    EXPECT_EQ(choose_size({7, 3}, {.batch = true}, ready(1000, 5), false), (PopSize{100, 3}));
    EXPECT_EQ(choose_size({7, 3}, {.partitions = true}, {}, false), (PopSize{7, 8}));
}

// PF-2
TEST(PopSize, PartitionsFillTheBatchAndLeaveHalfToOthers) {
    EXPECT_EQ(partitions_for(100, ready(50, 5'000)), 1) << "one is enough";
    EXPECT_EQ(partitions_for(100, ready(50, 1'000)), 5) << "20 in each";
    EXPECT_EQ(partitions_for(100, ready(50, 50)), 25) << "one in each, and half of them";
    EXPECT_EQ(partitions_for(100, ready(1'000'000, 1'000'000)), 64);
    EXPECT_EQ(partitions_for(100, ready(1, 1)), 1);
    EXPECT_EQ(partitions_for(100, ready(2, 2)), 1);
    EXPECT_EQ(partitions_for(100, ready(3, 3)), 2);
    EXPECT_EQ(partitions_for(1, ready(10, 10)), 1);
    EXPECT_EQ(partitions_for(100, ready(10, 3)), 5) << "an estimate that errs low";
}

TEST(PopSize, ASourceThatCannotTellGetsAFixedNumber) {
    EXPECT_EQ(partitions_for(100, ready(0, 0)), kBlindPartitions);
    EXPECT_EQ(choose_size({1, 1}, {true, true}, std::nullopt, false), (PopSize{100, 8}));
}

TEST(PopSize, WithConflationEachMessageIsAPartition) {
    EXPECT_EQ(choose_size({1, 1}, {true, true}, ready(5, 5), true), (PopSize{100, 64}));
    EXPECT_EQ(choose_size({9, 1}, {.partitions = true}, {}, true), (PopSize{9, 9}));
}

} // namespace
} // namespace queen::broker
