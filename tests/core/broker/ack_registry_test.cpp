#include "broker/ack_registry.hpp"
#include "support/manual_clock.hpp"
#include "support/recording_source.hpp"

#include <gtest/gtest.h>

namespace queen::broker {
namespace {

using namespace std::chrono_literals;
using test::uuid_of;

std::vector<TxnHash> hashes(std::initializer_list<std::string_view> ids) {
    std::vector<TxnHash> all;
    for (const auto id : ids) {
        all.push_back(hash_transaction_id(id));
    }
    return all;
}

class AckRegistryTest : public testing::Test {
protected:
    static AckRegistry::Key key(int partition = 1, std::string_view group = "g",
                                std::string_view tenant = "t") {
        return {tenant, uuid_of(static_cast<std::uint8_t>(partition)), group};
    }
    static constexpr AckRegistry::Span kSpan{Offset{3}, Offset{5}};

    test::ManualClock clock_;
    AckRegistry registry_{clock_, {}};
};

TEST_F(AckRegistryTest, ExactlyTheBatchOfThisWorkerIsAHitAndGone) {
    registry_.remember(key(), "w", kSpan, hashes({"a", "b", "c"}), 60s);
    EXPECT_EQ(registry_.take(key(), "other", hashes({"a", "b", "c"})), std::nullopt);
    EXPECT_EQ(registry_.take(key(), "w", hashes({"a", "b"})), std::nullopt);
    EXPECT_EQ(registry_.take(key(), "w", hashes({"a", "b", "c", "d"})), std::nullopt);
    EXPECT_EQ(registry_.take(key(), "w", hashes({"a", "b", "d"})), std::nullopt);
    EXPECT_EQ(registry_.take(key(), "w", hashes({"c", "a", "b", "a"})), kSpan);
    EXPECT_EQ(registry_.take(key(), "w", hashes({"a", "b", "c"})), std::nullopt);
    const auto stats = registry_.stats();
    EXPECT_EQ(stats.hits, 1u);
    EXPECT_EQ(stats.misses, 5u);
    EXPECT_EQ(stats.entries, 0u);
    EXPECT_EQ(stats.bytes, 0u);
}

TEST_F(AckRegistryTest, TenantPartitionAndGroupAreTheKey) {
    registry_.remember(key(), "w", kSpan, hashes({"a"}), 60s);
    for (const auto& other : {key(2), key(1, "h"), key(1, "g", "u")}) {
        EXPECT_EQ(registry_.take(other, "w", hashes({"a"})), std::nullopt);
    }
    EXPECT_EQ(registry_.take(key(), "w", hashes({"a"})), kSpan);
}

// AR-2: which of two equal ones an ack means is for the store to say.
TEST_F(AckRegistryTest, ABatchWithARepeatedHashIsNotKept) {
    registry_.remember(key(), "w", kSpan, hashes({"a", "b", "a"}), 60s);
    registry_.remember(key(), "w", kSpan, {}, 60s);
    EXPECT_EQ(registry_.stats().entries, 0u);
}

TEST_F(AckRegistryTest, ALaterBatchOfThePartitionReplacesTheOneBefore) {
    registry_.remember(key(), "w1", {Offset{0}, Offset{0}}, hashes({"a"}), 60s);
    registry_.remember(key(), "w2", kSpan, hashes({"a"}), 60s);
    EXPECT_EQ(registry_.stats().entries, 1u);
    EXPECT_EQ(registry_.take(key(), "w1", hashes({"a"})), std::nullopt);
    EXPECT_EQ(registry_.take(key(), "w2", hashes({"a"})), kSpan);
}

TEST_F(AckRegistryTest, OnlyItsWorkerOrALeaselessAckMakesItForget) {
    registry_.remember(key(), "w", kSpan, hashes({"a"}), 60s);
    registry_.forget(key(), "late");
    EXPECT_EQ(registry_.stats().entries, 1u);
    registry_.forget(key(), "w");
    EXPECT_EQ(registry_.stats().entries, 0u);
    registry_.remember(key(), "w", kSpan, hashes({"a"}), 60s);
    registry_.forget(key(), "");
    EXPECT_EQ(registry_.stats().entries, 0u);
}

TEST_F(AckRegistryTest, AnEntryOutlivesItsLeaseByTenSecondsAndAnUnknownOneLastsAMinute) {
    registry_.remember(key(1), "w", kSpan, hashes({"a"}), 30s);
    registry_.remember(key(2), "w", kSpan, hashes({"a"}), std::nullopt);
    clock_.advance(40s - 1ns);
    EXPECT_NE(registry_.take(key(1), "w", hashes({"a"})), std::nullopt);
    registry_.remember(key(1), "w", kSpan, hashes({"a"}), 10s);
    clock_.advance(20s);
    EXPECT_EQ(registry_.take(key(1), "w", hashes({"a"})), std::nullopt);
    clock_.advance(1ns);
    EXPECT_EQ(registry_.take(key(2), "w", hashes({"a"})), std::nullopt);
    EXPECT_EQ(registry_.stats().entries, 2u); // nobody swept yet
}

TEST_F(AckRegistryTest, RememberingSweepsAtMostEachFiveSeconds) {
    registry_.remember(key(1), "w", kSpan, hashes({"a"}), 1s);
    registry_.remember(key(2), "w", kSpan, hashes({"a"}), 1s);
    clock_.advance(4s);
    registry_.remember(key(3), "w", kSpan, hashes({"a"}), 100s);
    EXPECT_EQ(registry_.stats().entries, 3u);
    clock_.advance(7s);
    registry_.remember(key(4), "w", kSpan, hashes({"a"}), 100s);
    EXPECT_EQ(registry_.stats().entries, 2u);
    EXPECT_EQ(registry_.stats().evictions, 0u);
}

TEST_F(AckRegistryTest, MemoryIsBoundedByGivingUpTheLeaseThatEndsFirst) {
    const auto one = [&] {
        registry_.remember(key(1), "w", kSpan, hashes({"a"}), 60s);
        return registry_.stats().bytes;
    }();
    AckRegistry small(clock_, {.bytes = 3 * one});
    for (int partition = 1; partition <= 5; ++partition) {
        small.remember(key(partition), "w", kSpan, hashes({"a"}), 60s);
        clock_.advance(1s);
        EXPECT_LE(small.stats().bytes, 3 * one);
    }
    EXPECT_EQ(small.stats().evictions, 2u);
    EXPECT_EQ(small.take(key(2), "w", hashes({"a"})), std::nullopt);
    EXPECT_NE(small.take(key(3), "w", hashes({"a"})), std::nullopt);
    // What would take all of it is not worth that.
    small.remember(key(9), "w", kSpan, std::vector<TxnHash>(1, hash_transaction_id("z")), 60s);
    std::vector<TxnHash> many;
    for (int i = 0; i < 1000; ++i) {
        many.push_back(hash_transaction_id(std::to_string(i)));
    }
    small.remember(key(10), "w", kSpan, many, 60s);
    EXPECT_EQ(small.take(key(10), "w", many), std::nullopt);
    EXPECT_NE(small.take(key(9), "w", hashes({"z"})), std::nullopt);
}

} // namespace
} // namespace queen::broker
