#include "core/broker/ack_parts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace queen::broker {
namespace {

using namespace std::chrono_literals;
using test::uuid_of;
using testing::ElementsAre;
using testing::HasSubstr;

class AckTest : public AckParts {};

TEST_F(AckTest, ItemsAreGroupedByPartitionAndLease) {
    std::vector<std::string> calls;
    store_.on_ack_by_hash = [&](const HashAcks& acks, const auto& done) {
        calls.push_back(to_string(acks.partition_id).substr(35) + acks.worker +
                        std::to_string(acks.items.size()));
        HashAckOutcome outcome;
        outcome.ok = true;
        done(outcome);
    };
    auto other = item("t3");
    other.partition_id = to_string(uuid_of(2));
    const auto results = ack({item("t1"), other, item("t2"), item("t4", "M")});
    EXPECT_THAT(calls, ElementsAre("1L2", "2L1", "1M1"));
    EXPECT_TRUE(results[3].success);
}

TEST_F(AckTest, ARequestOfManyGroupsSettlesAFewAtATime) {
    std::vector<Done<HashAckOutcome>> under_way;
    store_.on_ack_by_hash = [&](const HashAcks&, Done<HashAckOutcome> done) {
        under_way.push_back(std::move(done));
    };
    std::vector<AckItem> items;
    for (int i = 0; i < 40; ++i) {
        items.push_back(item("t", "L" + std::to_string(i)));
    }
    std::size_t results = 0;
    acks_.ack({std::string(kDefaultTenant), "g", items},
              [&](const std::vector<AckItemResult>& all) { results = all.size(); });
    EXPECT_EQ(under_way.size(), 16u);
    for (std::size_t i = 0; i < under_way.size(); ++i) {
        EXPECT_LE(under_way.size(), i + 16);
        EXPECT_EQ(results, 0u);
        HashAckOutcome outcome;
        outcome.ok = true;
        const auto done = under_way[i]; // the vector grows inside the call
        done(outcome);
    }
    EXPECT_EQ(under_way.size(), 40u);
    EXPECT_EQ(results, 40u);
}

TEST_F(AckTest, ALostLeaseFailsItsGroupOnly) {
    store_.on_ack_by_hash = [&](const HashAcks& acks, const auto& done) {
        HashAckOutcome outcome;
        outcome.ok = acks.worker == "L";
        outcome.error = outcome.ok ? "" : "invalid or expired lease";
        done(outcome);
    };
    const auto results = ack({item("t1"), item("t2", "gone")});
    EXPECT_TRUE(results[0].success);
    EXPECT_FALSE(results[1].success);
    EXPECT_EQ(results[1].error, "invalid or expired lease");
}

// F-35: nothing silently succeeds.
TEST_F(AckTest, NoopStaleAndUnresolvedAreToldApart) {
    store_.on_ack_by_hash = [&](const HashAcks& acks, const auto& done) {
        const auto& all = acks.items;
        HashAckOutcome outcome;
        outcome.ok = true;
        outcome.noop = {all[0].hash, all[1].hash};
        outcome.stale = {all[2].hash};
        outcome.unresolved = {all[3].hash};
        done(outcome);
    };
    const auto results =
        ack({item("done"), item("late-nack", "L", AckStatus::failed), item("beyond"), item("who")});
    EXPECT_TRUE(results[0].success && results[0].noop && results[0].error.empty());
    EXPECT_FALSE(results[1].success);
    EXPECT_THAT(results[1].error, HasSubstr("already committed"));
    EXPECT_THAT(results[2].error, HasSubstr("beyond"));
    EXPECT_THAT(results[3].error, HasSubstr("unresolvable"));
}

TEST_F(AckTest, AReleasedLeaseIsAnnouncedWithWhatTheStoreSaidOfIt) {
    store_.on_ack_by_hash = [&](const HashAcks&, const auto& done) {
        HashAckOutcome outcome;
        outcome.ok = outcome.lease_released = outcome.covered = true;
        outcome.queue = "q";
        outcome.partition = "p";
        done(outcome);
    };
    EXPECT_TRUE(ack({item("t1")})[0].lease_released);
    EXPECT_THAT(source_->releases, ElementsAre("q g covered"));
}

// K37: an unknown word counts as failed, and the answer shows it.
TEST_F(AckTest, AnUnknownWordIsNamedInTheAnswer) {
    store_.on_ack_by_hash = [&](const HashAcks&, const auto& done) {
        HashAckOutcome outcome;
        outcome.ok = true;
        done(outcome);
    };
    auto odd = item("t1", "L", AckStatus::failed);
    odd.unknown_word = "complete";
    EXPECT_THAT(ack({odd})[0].error, HasSubstr("unknown status 'complete' counts as failed"));
}

TEST_F(AckTest, WhatIsNoPartitionIdNeverReachesTheStore) {
    auto odd = item("t1");
    odd.partition_id = "not-a-uuid";
    EXPECT_EQ(ack({odd})[0].error, "partitionId is not a partition id");
}

TEST_F(AckTest, AStoreThatIsAwayFailsTheItemsNotTheRequest) {
    store_.on_ack_by_hash = [&](const HashAcks&, const auto& done) {
        done(fail(Errc::unavailable, "pool"));
    };
    EXPECT_EQ(ack({item("t1")})[0].error, "pool");
}

} // namespace
} // namespace queen::broker
