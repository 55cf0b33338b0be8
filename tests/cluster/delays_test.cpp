// K42: what is withheld for a while is delivered when it is due and never before, to a pop that is
// parked on the broker that withholds it or on another, though nothing else happens. Where somebody
// says when (the ring, after a hint on another broker), the cluster is so patient that nothing else
// can have answered the pop; else brokers look for themselves as they do by default.
#include "cluster/cluster.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace queen::test {
namespace {

using testing::ElementsAre;

constexpr std::size_t kA = 0, kB = 1;
constexpr int kRounds = 2;
constexpr std::chrono::seconds kDelay{2};

/// sqlscan remembers nothing: it finds what is due when it looks.
bool somebody_knows() {
    return source_under_test() != "sqlscan";
}

/// What a pop that was parked before `since` is answered with, once that is due.
Popped when_due(HttpClient& parked, std::chrono::steady_clock::time_point since) {
    auto popped = Api::read_pop(parked.read());
    EXPECT_GE(std::chrono::steady_clock::now() - since, kDelay) << "before it was due";
    return popped;
}

/// Pushes on a to a queue with these settings, for a pop on each broker, each of a group of its
/// own.
void pushes(const std::string& settings) {
    Cluster cluster({.patient = somebody_knows()});
    ASSERT_EQ(cluster[kA].api->configure("q", settings).status, 200);
    for (int number = 0; number < kRounds; ++number) {
        auto on_a = cluster.park(kA, "q", "consumerGroup=a&autoAck=true");
        auto on_b = cluster.park(kB, "q", "consumerGroup=b&autoAck=true");
        const Cause a(cluster, kA), b(cluster, kB);
        const auto id = std::to_string(number);
        const auto start = std::chrono::steady_clock::now();
        ASSERT_EQ(cluster[kA].api->push_ids("q", "p", {id}).status, 201);
        EXPECT_THAT(when_due(on_a, start).ids(), ElementsAre(id));
        EXPECT_THAT(when_due(on_b, start).ids(), ElementsAre(id));
        if (somebody_knows()) {
            EXPECT_GE(a.grown("queen_wakes_total{cause=\"event\"}"), 1);
        }
        b.was_a_hint("stored");
    }
}

TEST(Delays, K42_DelayedProcessingEndsOnEitherBroker) {
    pushes(R"({"delayedProcessing":2})");
}

TEST(Delays, K42_AWindowEndsOnEitherBroker) {
    pushes(R"({"windowBuffer":2})");
}

/// A message that fails on a, for a pop on `at`. @return the least that `cause` resumed one
double failed(Cluster& cluster, std::size_t at, const std::string& series) {
    double least = 1e9;
    EXPECT_EQ(cluster[kA].api->configure("q", R"({"retryDelay":2000})").status, 200);
    for (int number = 0; number < kRounds; ++number) {
        const std::string id = std::to_string(number);
        EXPECT_EQ(cluster[kA].api->push_ids("q", "p", {id}).status, 201);
        const auto first = cluster[kA].api->pop("q", "consumerGroup=g");
        EXPECT_THAT(first.ids(), ElementsAre(id));
        auto parked = cluster.park(at, "q", "consumerGroup=g");
        const Cause cause(cluster, at);
        const auto start = std::chrono::steady_clock::now();
        EXPECT_EQ(cluster[kA].api->ack(first.messages.at(0), "failed", "g"), "true");
        const auto again = when_due(parked, start);
        EXPECT_THAT(again.ids(), ElementsAre(id));
        EXPECT_EQ(again.messages.at(0).attempt, 2);
        EXPECT_EQ(cluster[at].api->ack(again.messages.at(0), "completed", "g"), "true");
        least = std::min(least, cause.grown(series));
    }
    return least;
}

TEST(Delays, K42_ARetryDelayEndsOnTheBrokerThatWasTold) {
    Cluster cluster({.patient = somebody_knows()});
    const std::string who = somebody_knows() ? "event" : "floor";
    EXPECT_GE(failed(cluster, kA, "queen_wakes_total{cause=\"" + who + "\"}"), 1);
}

// A failure is not announced: the other broker knows of a lease that may last for minutes yet.
TEST(Delays, K42_ARetryDelayIsFoundByTheFloorOfAnotherBroker) {
    Cluster cluster({.patient = false});
    EXPECT_GE(failed(cluster, kB, "queen_wakes_total{cause=\"floor\"}"), 1);
}

} // namespace
} // namespace queen::test
