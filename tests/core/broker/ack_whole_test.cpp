// Batches that are acked whole: one step of the cursor, with the outcome of the long way.
#include "core/broker/ack_parts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace queen::broker {
namespace {

using namespace std::chrono_literals;
using test::uuid_of;
using testing::ElementsAre;
using testing::IsEmpty;

class AckWhole : public AckParts {
protected:
    AckWhole() {
        store_.on_ack_positions = [this](const std::vector<PositionAck>& all, const auto& done) {
            std::vector<PositionAckOutcome> outcomes;
            calls_.emplace_back();
            for (const auto& ack : all) {
                calls_.back() += to_string(ack.partition_id).substr(35) + ack.group + ack.worker +
                                 std::to_string(ack.first.value()) + "-" +
                                 std::to_string(ack.last.value()) + " ";
                PositionAckOutcome outcome;
                outcome.ok = ack.worker != "gone";
                outcome.error = outcome.ok ? "" : "invalid or expired lease";
                outcome.lease_released = outcome.covered = outcome.ok;
                outcome.queue = "q";
                outcome.partition = "p";
                outcomes.push_back(outcome);
            }
            done(std::move(outcomes));
        };
        store_.on_ack_by_hash = [this](const HashAcks& acks, const auto& done) {
            calls_.push_back("hash " + to_string(acks.partition_id).substr(35) + acks.worker +
                             std::to_string(acks.items.size()));
            auto outcome = settled();
            outcome.ok = acks.worker != "gone";
            outcome.error = outcome.ok ? "" : "invalid or expired lease";
            done(outcome);
        };
    }

    static PoppedPartition batch(int partition, std::int64_t base, std::uint32_t start,
                                 std::uint32_t take) {
        PoppedPartition popped;
        popped.partition = "p";
        popped.partition_id = uuid_of(static_cast<std::uint8_t>(partition));
        popped.lease_left = 60s;
        popped.segments.push_back(
            {.base = Offset{base}, .start = start, .take = take, .created_at = {}, .blob = {}});
        return popped;
    }
    void deliver(int partition, const std::string& lease, const std::vector<std::string>& ids) {
        std::vector<TxnHash> hashes;
        for (const auto& id : ids) {
            hashes.push_back(hash_transaction_id(id));
        }
        acks_.delivered(std::string(kDefaultTenant), "g", lease,
                        batch(partition, 10, 2, static_cast<std::uint32_t>(ids.size())), hashes);
    }

    std::vector<std::string> calls_;
};

TEST_F(AckWhole, TheWholeBatchGoesByItsPositionWithTheOutcomeOfTheHashes) {
    deliver(1, "L", {"a", "b"});
    const auto whole = ack({item("b"), item("a")});
    EXPECT_THAT(calls_, ElementsAre("1gL12-13 "));
    EXPECT_THAT(source_->releases, ElementsAre("q g covered"));
    EXPECT_EQ(activity_->ack.messages.value(), 2u);
    calls_.clear();
    const auto by_hash = ack({item("b"), item("a")});
    EXPECT_THAT(calls_, ElementsAre("hash 1L2"));
    EXPECT_THAT(source_->releases, ElementsAre("q g covered", "q g covered"));
    EXPECT_EQ(activity_->ack.messages.value(), 4u);
    for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(whole[i].success, by_hash[i].success);
        EXPECT_EQ(whole[i].error, by_hash[i].error);
        EXPECT_EQ(whole[i].lease_released, by_hash[i].lease_released);
        EXPECT_EQ(whole[i].dlq, by_hash[i].dlq);
        EXPECT_EQ(whole[i].noop, by_hash[i].noop);
    }
    EXPECT_TRUE(whole[0].success && whole[0].lease_released);
}

TEST_F(AckWhole, BatchesOfOneRequestGoInOneStatementAndTheRestByHash) {
    deliver(1, "L", {"a"});
    deliver(2, "L", {"a", "b"});
    deliver(3, "L", {"a"});
    ack({item("a"), item("a", "L", AckStatus::completed, 2),
         item("b", "L", AckStatus::completed, 2), item("a", "L", AckStatus::completed, 3),
         item("x", "L", AckStatus::completed, 3)});
    EXPECT_THAT(calls_, ElementsAre("1gL12-12 2gL12-13 ", "hash 3L2"));
}

TEST_F(AckWhole, WhatTheStoreRefusesIsSettledByHash) {
    deliver(1, "gone", {"a"});
    deliver(2, "L", {"a"});
    const auto results = ack({item("a", "gone"), item("a", "L", AckStatus::completed, 2)});
    EXPECT_THAT(calls_, ElementsAre("1ggone12-12 2gL12-12 ", "hash 1gone1"));
    EXPECT_EQ(results[0].error, "invalid or expired lease");
    EXPECT_TRUE(results[1].success);
    EXPECT_EQ(registry_.stats().refused, 1u);
    EXPECT_EQ(activity_->ack.messages.value(), 1u);
    EXPECT_EQ(activity_->ack.refused.value(), 1u);
}

TEST_F(AckWhole, ManyRefusedBatchesAreSettledAFewAtATime) {
    std::vector<AckItem> items;
    for (int partition = 1; partition <= 40; ++partition) {
        deliver(partition, "gone", {"a"});
        items.push_back(item("a", "gone", AckStatus::completed, partition));
    }
    std::vector<Done<HashAckOutcome>> under_way;
    store_.on_ack_by_hash = [&](const HashAcks&, Done<HashAckOutcome> done) {
        under_way.push_back(std::move(done));
    };
    std::size_t results = 0;
    acks_.ack({std::string(kDefaultTenant), "g", items},
              [&](const std::vector<AckItemResult>& all) { results = all.size(); });
    EXPECT_EQ(under_way.size(), 16u);
    for (std::size_t i = 0; i < under_way.size(); ++i) {
        const auto done = under_way[i]; // the vector grows inside the call
        done(settled());
    }
    EXPECT_EQ(under_way.size(), 40u);
    EXPECT_EQ(results, 40u);
}

TEST_F(AckWhole, VeryManyBatchesGoInStatementsOfABoundedSize) {
    std::vector<AckItem> items;
    for (int i = 0; i < 300; ++i) {
        auto popped = batch(1, 0, 0, 1);
        popped.partition_id.bytes[0] = static_cast<std::uint8_t>(i / 256);
        popped.partition_id.bytes[1] = static_cast<std::uint8_t>(i % 256);
        acks_.delivered(std::string(kDefaultTenant), "g", "L", popped, {hash_transaction_id("a")});
        items.push_back(item("a"));
        items.back().partition_id = to_string(popped.partition_id);
    }
    for (const auto& result : ack(items)) {
        EXPECT_TRUE(result.success);
    }
    ASSERT_EQ(calls_.size(), 2u);
    EXPECT_EQ(std::count(calls_[0].begin(), calls_[0].end(), ' '), 256);
    EXPECT_EQ(std::count(calls_[1].begin(), calls_[1].end(), ' '), 44);
}

// A nack, a part, and an ack without a lease tell the store of it otherwise: the memory goes.
TEST_F(AckWhole, AnyOtherAckOfTheLeaseEndsWhatIsKnown) {
    const std::vector<std::vector<AckItem>> others = {
        {item("a", "L", AckStatus::failed), item("b")},
        {item("a")},
        {item("a"), item("b"), item("c")},
        {item("a", "")},
    };
    for (const auto& other : others) {
        deliver(1, "L", {"a", "b"});
        ack(other);
        EXPECT_EQ(registry_.stats().entries, 0u);
    }
    deliver(1, "L", {"a", "b"});
    ack({item("a", "stale"), item("b", "stale")});
    EXPECT_EQ(registry_.stats().entries, 1u) << "somebody whose lease ended";
    for (const auto& call : calls_) {
        EXPECT_THAT(call, testing::StartsWith("hash"));
    }
}

// AR-2
TEST_F(AckWhole, ABatchThatWasNotDeliveredWholeIsNotKnown) {
    acks_.delivered(std::string(kDefaultTenant), "g", "L", batch(1, 0, 0, 2),
                    {hash_transaction_id("a")});
    acks_.delivered(std::string(kDefaultTenant), "g", "", batch(1, 0, 0, 1),
                    {hash_transaction_id("a")});
    EXPECT_EQ(registry_.stats().entries, 0u);
}

TEST_F(AckWhole, AStoreThatIsAwayFailsTheItems) {
    deliver(1, "L", {"a"});
    store_.on_ack_positions = [](const auto&, const auto& done) {
        done(fail(Errc::unavailable, "no database"));
    };
    EXPECT_EQ(ack({item("a")})[0].error, "no database");
    EXPECT_THAT(calls_, IsEmpty());
}

TEST_F(AckWhole, WithoutARegistryEverythingGoesByHash) {
    Acks plain(store_, announcer_, clock_, 30s);
    plain.delivered(std::string(kDefaultTenant), "g", "L", batch(1, 0, 0, 1),
                    {hash_transaction_id("a")});
    plain.ack({std::string(kDefaultTenant), "g", {item("a")}}, [](const auto&) {});
    EXPECT_THAT(calls_, ElementsAre("hash 1L1"));
}

} // namespace
} // namespace queen::broker
