#include "broker/queue_configs.hpp"

#include <gtest/gtest.h>

namespace queen::broker {
namespace {

using namespace std::chrono_literals;

TEST(QueueConfigs, AnOlderAnswerChangesNothing) {
    QueueConfigs configs;
    configs.learn("q", {{1s, 2s, SteadyTime(10s)}, 0s});
    configs.learn("q", {{5s, 6s, SteadyTime(9s)}, 0s});
    ASSERT_TRUE(configs.known("q", SteadyTime(11s), 30s));
    EXPECT_EQ(configs.known("q", SteadyTime(11s), 30s)->visible.window, 2s);
    EXPECT_FALSE(configs.known("q", SteadyTime(41s), 30s)) << "too old";
}

TEST(QueueConfigs, AKnownQueueNeverCostsTheOthersTheirPlace) {
    QueueConfigs configs;
    for (std::size_t i = 0; i < QueueConfigs::kMaxQueues; ++i) {
        configs.learn("q" + std::to_string(i), {{0s, 1s, SteadyTime(1s)}, 0s});
    }
    configs.learn("q0", {{0s, 2s, SteadyTime(2s)}, 0s});
    EXPECT_TRUE(configs.known("q1", SteadyTime(2s), 30s));
    configs.learn("one more", {{0s, 1s, SteadyTime(2s)}, 0s});
    EXPECT_FALSE(configs.known("q1", SteadyTime(2s), 30s)) << "bounded";
}

// MW-2
TEST(QueueConfigs, TheTimeToFillABatchIsKnownHoweverOldAndZeroElsewhere) {
    QueueConfigs configs;
    EXPECT_EQ(configs.min_pop_wait("q"), 0s);
    configs.learn("q", {{0s, 0s, SteadyTime(1s)}, 250ms});
    EXPECT_EQ(configs.min_pop_wait("q"), 250ms);
    EXPECT_EQ(configs.min_pop_wait("other"), 0s);
    configs.learn("q", {{0s, 0s, SteadyTime(2s)}, 0s});
    EXPECT_EQ(configs.min_pop_wait("q"), 0s)
        << "and not the latch that says that some queue has one";
    configs.learn("q", {{0s, 0s, SteadyTime(3s)}, 100ms});
    configs.forget("q");
    EXPECT_EQ(configs.min_pop_wait("q"), 0s);
}

} // namespace
} // namespace queen::broker
