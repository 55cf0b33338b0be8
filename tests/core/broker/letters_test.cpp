// Dead letters on the broker's side: what the store asks for is read, brought, and told to the
// client.
#include "broker/letter_reader.hpp"
#include "core/broker/ack_parts.hpp"
#include "model/frame.hpp"
#include "model/segment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace queen::broker {
namespace {

using namespace std::chrono_literals;
using test::uuid_of;
using testing::ElementsAre;
using testing::IsEmpty;

class LettersTest : public AckParts {
protected:
    LettersTest() {
        store_.on_segment_at = [this](const Uuid&, Offset offset, const auto& done) {
            ++reads_;
            const auto found = segments_.upper_bound(offset.value());
            if (found == segments_.begin() || std::prev(found)->second.end < offset) {
                done(std::optional<StoredSegment>{});
            } else {
                done(std::optional<StoredSegment>(std::prev(found)->second));
            }
        };
        store_.on_ack_by_hash = [this](const HashAcks& acks, const auto& done) {
            calls_.push_back(acks);
            const auto i = std::min(calls_.size(), answers_.size()) - 1;
            done(answers_.at(i));
        };
    }

    /// A segment of that many messages, "m<offset>" with the payload {"n":<offset>}.
    void store(std::int64_t base, int count, std::size_t padding = 0) {
        std::string frames;
        for (int i = 0; i < count; ++i) {
            const auto offset = base + i;
            const auto id = "m" + std::to_string(offset);
            const auto payload =
                "{\"n\":" + std::to_string(offset) + "}" + std::string(padding, ' ');
            Frame frame;
            frame.message_id = uuid_of(static_cast<std::uint8_t>(offset % 200 + 1));
            frame.trace_id = offset % 2 == 0 ? uuid_of(7) : Uuid{};
            frame.transaction_id = id;
            frame.producer_sub = offset % 2 == 0 ? "somebody" : "";
            frame.payload = payload;
            frame.encrypted = offset % 2 == 0;
            ASSERT_TRUE(append_frame(frames, frame));
        }
        segments_[base] = {.base = Offset{base},
                           .end = Offset{base + count - 1},
                           .created_at = WallTime{std::chrono::microseconds(base)},
                           .blob = compress_segment(frames)};
    }
    std::vector<Letter> read(std::vector<std::int64_t> offsets) {
        std::vector<Offset> wanted;
        for (const auto offset : offsets) {
            wanted.emplace_back(offset);
        }
        std::optional<std::vector<Letter>> letters;
        read_letters(store_, clock_, 30s, uuid_of(1), wanted,
                     [&](Result<std::vector<Letter>> read) { letters = std::move(*read); });
        EXPECT_TRUE(letters);
        return letters.value_or(std::vector<Letter>{});
    }
    static std::string places(const std::vector<Letter>& letters) {
        std::string text;
        for (const auto& letter : letters) {
            text += std::to_string(letter.offset.value()) + "=" + letter.transaction_id + " ";
        }
        return text;
    }
    static HashAckOutcome wants(std::vector<std::int64_t> offsets) {
        HashAckOutcome outcome;
        outcome.ok = true;
        for (const auto offset : offsets) {
            outcome.wanted.emplace_back(offset);
        }
        return outcome;
    }
    static HashAckOutcome filed(std::vector<std::size_t> items,
                                std::vector<std::size_t> rejected = {}) {
        auto outcome = settled(true, false);
        outcome.filed = std::move(items);
        outcome.rejected = std::move(rejected);
        return outcome;
    }

    std::map<std::int64_t, StoredSegment> segments_;
    std::vector<HashAckOutcome> answers_;
    std::vector<HashAcks> calls_;
    int reads_ = 0;
};

TEST_F(LettersTest, AMessageIsReadAsItIsStored) {
    store(4, 3);
    const auto letters = read({5, 6});
    ASSERT_EQ(places(letters), "5=m5 6=m6 ");
    EXPECT_EQ(letters[0].payload, "{\"n\":5}");
    EXPECT_FALSE(letters[0].encrypted || letters[0].trace_id.known());
    EXPECT_EQ(letters[0].producer_sub, "");
    EXPECT_EQ(letters[1].message_id, uuid_of(7));
    EXPECT_EQ(letters[1].trace_id, uuid_of(7));
    EXPECT_EQ(letters[1].producer_sub, "somebody");
    EXPECT_TRUE(letters[1].encrypted);
    EXPECT_EQ(letters[1].created_at, WallTime{4us});
}

TEST_F(LettersTest, EachSegmentIsReadOnce) {
    store(0, 4);
    store(4, 4);
    store(10, 2);
    EXPECT_EQ(places(read({0, 3, 4, 7, 11})), "0=m0 3=m3 4=m4 7=m7 11=m11 ");
    EXPECT_EQ(reads_, 3);
}

TEST_F(LettersTest, WhatIsGoneOrDamagedIsLeftOut) {
    store(0, 2);
    store(4, 2);
    store(8, 2);
    segments_[4].blob = "no zstd";
    segments_[8].end = Offset{12}; // says more than it has
    EXPECT_EQ(places(read({1, 2, 4, 5, 9, 11})), "1=m1 9=m9 ");
}

TEST_F(LettersTest, PayloadsOfOneAckAreBounded) {
    for (std::int64_t base = 0; base < 6; ++base) {
        store(base, 1, kMostLetterBytes / 4);
    }
    EXPECT_EQ(places(read({0, 1, 2, 3, 4, 5})), "0=m0 1=m1 2=m2 3=m3 ");
}

TEST_F(LettersTest, WhatTheStoreAsksForIsBroughtAndToldItemByItem) {
    store(0, 4);
    answers_ = {wants({1, 2}), filed({1, 2})};
    auto failed = item("m2", "L", AckStatus::failed);
    failed.error = "broken";
    const auto results = ack({item("m0"), item("m1", "L", AckStatus::dlq), failed, item("m3")});
    ASSERT_EQ(calls_.size(), 2u);
    EXPECT_THAT(calls_[0].letters, IsEmpty());
    EXPECT_EQ(calls_[0].items[2].reason, "broken");
    EXPECT_EQ(places(calls_[1].letters), "1=m1 2=m2 ");
    EXPECT_FALSE(calls_[1].no_further_letters);
    EXPECT_EQ(calls_[1].items.size(), 4u);
    for (std::size_t i = 0; i < results.size(); ++i) {
        EXPECT_TRUE(results[i].success) << i;
        EXPECT_EQ(results[i].dlq, i == 1 || i == 2) << i;
    }
    EXPECT_EQ(activity_->ack.dead_letters.value(), 2u);
    EXPECT_THAT(source_->releases, ElementsAre("q g"));
}

// DQ-2
TEST_F(LettersTest, AMessageThatIsGoneIsRejectedAndTheRestSettled) {
    store(0, 1);
    answers_ = {wants({0, 7}), filed({0}, {1})};
    const auto results =
        ack({item("m0", "L", AckStatus::dlq), item("m7", "L", AckStatus::dlq), item("m8")});
    ASSERT_EQ(calls_.size(), 2u);
    EXPECT_EQ(places(calls_[1].letters), "0=m0 ");
    EXPECT_TRUE(calls_[1].no_further_letters);
    EXPECT_TRUE(results[0].dlq && results[0].success);
    EXPECT_FALSE(results[1].dlq || results[1].success);
    EXPECT_EQ(results[1].error, "dlq rejected");
    EXPECT_TRUE(results[2].success);
}

TEST_F(LettersTest, AStoreThatAsksForMoreAndMoreIsAnsweredThreeTimes) {
    store(0, 8);
    answers_ = {wants({0}), wants({0, 1}), wants({0, 1, 2}), wants({0, 1, 2, 3}), filed({})};
    ack({item("m0", "L", AckStatus::dlq)});
    ASSERT_EQ(calls_.size(), 5u);
    EXPECT_EQ(places(calls_[3].letters), "0=m0 1=m1 2=m2 ");
    EXPECT_FALSE(calls_[3].no_further_letters);
    EXPECT_EQ(places(calls_[4].letters), "0=m0 1=m1 2=m2 ");
    EXPECT_TRUE(calls_[4].no_further_letters);
}

TEST_F(LettersTest, AStoreThatGoesAwayMeanwhileFailsTheItems) {
    answers_ = {wants({0})};
    store_.on_segment_at = [](const Uuid&, Offset, const auto& done) {
        done(fail(Errc::unavailable, "no database"));
    };
    const auto results = ack({item("m0", "L", AckStatus::dlq), item("m1")});
    EXPECT_EQ(results[0].error, "no database");
    EXPECT_FALSE(results[1].success);
    EXPECT_EQ(calls_.size(), 1u);
    EXPECT_THAT(source_->releases, IsEmpty());
}

TEST_F(LettersTest, ManyGroupsWithLettersStillEndOnce) {
    store(0, 1);
    store_.on_ack_by_hash = [](const HashAcks& acks, const auto& done) {
        done(acks.letters.empty() ? wants({0}) : filed({0}));
    };
    std::vector<AckItem> items;
    for (int i = 1; i <= 40; ++i) {
        items.push_back(item("m0", "L", AckStatus::dlq, i));
    }
    for (const auto& result : ack(items)) {
        EXPECT_TRUE(result.dlq);
    }
    EXPECT_EQ(activity_->ack.dead_letters.value(), 40u);
}

// A delay that an ack ended leaves something to be had, though no lease was released.
TEST_F(LettersTest, ADelayThatEndedIsAnnounced) {
    answers_ = {settled(false, false)};
    answers_[0].freed = true;
    EXPECT_FALSE(ack({item("m0", "")})[0].lease_released);
    EXPECT_THAT(source_->releases, ElementsAre("q g"));
}

} // namespace
} // namespace queen::broker
