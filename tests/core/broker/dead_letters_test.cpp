#include "base/json.hpp"
#include "base/text.hpp"
#include "broker/dead_letters.hpp"
#include "core/broker/broker_parts.hpp"
#include "model/frame.hpp"
#include "model/names.hpp"
#include "support/scripted_letter_store.hpp"

#include <gmock/gmock.h>

namespace queen::broker {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kTenant{kDefaultTenant};
const Uuid kLetter = *parse_uuid("0199f0aa-0000-4000-8000-000000000001");
const Uuid kPartition = *parse_uuid("0199f0aa-0000-4000-8000-000000000002");

DeadLetter letter() {
    DeadLetter out;
    out.id = kLetter;
    out.partition_id = kPartition;
    out.queue = "q";
    out.partition = "p";
    out.group = "g";
    out.offset = Offset{7};
    out.transaction_id = "t";
    out.trace_id = *parse_uuid("0199f0aa-0000-7000-8000-000000000009");
    out.producer_sub = "ada";
    out.payload = R"({"n":1.0})";
    out.encrypted = true;
    return out;
}

class DeadLettersTest : public BrokerParts {
protected:
    DeadLettersTest() {
        letters_.on_find = [this](const std::string& tenant, Uuid id, const auto& done) {
            EXPECT_EQ(tenant, kTenant);
            done(id == kLetter ? found_ : std::nullopt);
        };
        letters_.on_move = [this](LetterMove move, const auto& done) {
            moves_.push_back(std::move(move));
            const Result<LetterMoved> said = moved_.front();
            if (moved_.size() > 1) {
                moved_.erase(moved_.begin());
            }
            done(said);
        };
    }
    Replay replay(ReplayTarget target = {}) {
        std::optional<Replay> out;
        dead_.replay(kTenant, kLetter, std::move(target), [&](Replay result) {
            out = std::move(result);
            marks_when_answered_ = source_->marks.size();
        });
        EXPECT_TRUE(out);
        return out.value_or(Replay{});
    }
    std::string list(LetterQuery query = {}) {
        std::string body;
        query.tenant = kTenant;
        dead_.list(query, [&](const Result<std::optional<std::string>>& answer) {
            body = answer ? **answer : answer.error().message;
        });
        return body;
    }

    test::ScriptedLetterStore letters_;
    FigureReads reads_{clock_, 30s};
    DeadLetters dead_{letters_, announcer_, reads_, clock_, {}};
    std::optional<DeadLetter> found_ = letter();
    std::vector<Result<LetterMoved>> moved_{
        LetterMoved{LetterMoved::Result::moved, "g", kPartition, Offset{12}}};
    std::vector<LetterMove> moves_;
    std::size_t marks_when_answered_ = 0;
};

TEST_F(DeadLettersTest, AReplayIsANewFrameOfTheSameMessage) {
    const Replay replay = this->replay();
    EXPECT_EQ(replay.result, Replay::Result::moved);
    ASSERT_EQ(moves_.size(), 1u);
    const std::string txn = "dlq:" + to_string(kLetter);
    EXPECT_EQ(moves_[0].hash, hash_transaction_id(txn));
    EXPECT_EQ(moves_[0].queue, "q");
    EXPECT_EQ(moves_[0].partition, "p");
    const auto bytes = decompress_segment(moves_[0].blob);
    ASSERT_TRUE(bytes);
    const auto frames = parse_frames(*bytes);
    ASSERT_TRUE(frames);
    ASSERT_EQ(frames->size(), 1u);
    const Frame& frame = frames->front();
    EXPECT_EQ(frame.transaction_id, txn);
    EXPECT_EQ(frame.payload, R"({"n":1.0})");
    EXPECT_EQ(frame.producer_sub, "ada");
    EXPECT_EQ(frame.trace_id, letter().trace_id);
    EXPECT_TRUE(frame.encrypted);
    EXPECT_EQ(frame.message_id, replay.message_id);
    EXPECT_EQ(replay.offset, Offset{12});
    EXPECT_EQ(replay.original_transaction_id, "t");
}

// POST-3: marks, then the gate, then the answer.
TEST_F(DeadLettersTest, WhatWasMovedIsAnnouncedBeforeTheAnswer) {
    replay();
    ASSERT_EQ(source_->marks.size(), 1u);
    EXPECT_EQ(marks_when_answered_, 1u);
}

TEST_F(DeadLettersTest, OnlyWhatWasMovedIsAnnounced) {
    moved_ = {LetterMoved{LetterMoved::Result::duplicate, "g", kPartition, Offset{3}}};
    Replay again = replay();
    EXPECT_EQ(again.result, Replay::Result::duplicate);
    EXPECT_FALSE(again.message_id.known()) << "the first message's id is not looked up";
    moved_ = {LetterMoved{}};
    EXPECT_EQ(replay().result, Replay::Result::gone);
    moved_ = {LetterMoved{.result = LetterMoved::Result::other_form, .wants_encrypted = false}};
    EXPECT_EQ(replay().result, Replay::Result::refused) << "nothing opens this payload";
    EXPECT_THAT(source_->marks, IsEmpty());
}

TEST_F(DeadLettersTest, ATargetTakesThePlaceOfWhereItCameFrom) {
    replay({.queue = "r"});
    replay({.partition = "x"});
    EXPECT_EQ(moves_[0].queue + "/" + moves_[0].partition, "r/p");
    EXPECT_EQ(moves_[1].queue + "/" + moves_[1].partition, "q/x");
}

TEST_F(DeadLettersTest, WhatTheEngineGaveUpIsNotReplayedQueueModeIs) {
    found_->group = "__timer__";
    found_->offset = Offset{-1};
    const Replay refused = replay();
    EXPECT_EQ(refused.result, Replay::Result::refused);
    EXPECT_EQ(refused.error.code, Errc::conflict);
    EXPECT_THAT(moves_, IsEmpty());
    found_->offset = Offset{0};
    EXPECT_EQ(replay().result, Replay::Result::moved) << "a message, of a group with such a name";
    found_->group = kQueueModeGroup;
    EXPECT_EQ(replay().result, Replay::Result::moved);
    found_->partition.clear();
    EXPECT_EQ(replay().result, Replay::Result::refused) << "nowhere to go";
    found_.reset();
    EXPECT_EQ(replay().result, Replay::Result::gone);
}

TEST_F(DeadLettersTest, ALostRaceIsRunAgainThreeTimesInAll) {
    const auto lost = fail(Errc::transient, "deadlock", "40P01");
    moved_ = {Result<LetterMoved>(lost), Result<LetterMoved>(lost),
              LetterMoved{LetterMoved::Result::moved, "g", kPartition, Offset{1}}};
    EXPECT_EQ(replay().result, Replay::Result::moved);
    EXPECT_EQ(moves_.size(), 3u);
    EXPECT_EQ(moves_[0].blob, moves_[2].blob) << "the same frame, whichever try stored it";
    moves_.clear();
    moved_ = {Result<LetterMoved>(lost)};
    const Replay failed = replay();
    EXPECT_EQ(failed.result, Replay::Result::failed);
    EXPECT_FALSE(failed.unknown) << "each try was rolled back";
    EXPECT_EQ(moves_.size(), 3u);
}

// A link that broke says nothing about the commit: neither sent again nor called kept.
TEST_F(DeadLettersTest, ABrokenLinkLeavesItOpenWhetherItWasMoved) {
    moved_ = {Result<LetterMoved>(fail(Errc::transient, "the link broke"))};
    const Replay failed = replay();
    EXPECT_EQ(failed.result, Replay::Result::failed);
    EXPECT_TRUE(failed.unknown);
    EXPECT_EQ(moves_.size(), 1u);
    moved_ = {Result<LetterMoved>(fail(Errc::unavailable, "no session"))};
    EXPECT_FALSE(replay().unknown);
    moved_ = {Result<LetterMoved>(fail(Errc::timeout, "cancelled", "57014"))};
    EXPECT_FALSE(replay().unknown);
}

TEST_F(DeadLettersTest, K41_APageByOffsetGoesOnWhereTheOneBeforeEnded) {
    std::vector<LetterQuery> asked;
    letters_.on_list = [&](LetterQuery query, const auto& done) {
        asked.push_back(query);
        LetterPage page;
        page.total = 9;
        for (int i = 0; i < query.limit; ++i) {
            DeadLetter row = letter();
            row.failed_at = WallTime{std::chrono::microseconds(100 - i)};
            page.letters.push_back(row);
        }
        done(std::move(page));
    };
    const std::string body = list({.queue = "q", .limit = 2});
    EXPECT_THAT(body, HasSubstr(R"("total":9)"));
    EXPECT_THAT(body, HasSubstr(R"("pagination":{"limit":2,"offset":0,"next":"99.)"));
    list({.queue = "q", .limit = 2, .offset = 2});
    ASSERT_TRUE(asked[1].after);
    EXPECT_EQ(*asked[1].after, (LetterKey{WallTime{99us}, kLetter}));
    EXPECT_EQ(asked[1].offset, 0);
    list({.queue = "q", .limit = 2, .offset = 1});
    EXPECT_FALSE(asked[2].after) << "no page ended there: counted";
    EXPECT_EQ(asked[2].offset, 1);
    list({.queue = "r", .limit = 2, .offset = 2});
    EXPECT_FALSE(asked[3].after) << "another question";
    clock_.advance(5min + 1s);
    list({.queue = "q", .limit = 2, .offset = 2});
    EXPECT_FALSE(asked[4].after) << "a mark ages";
}

TEST_F(DeadLettersTest, TM11_ATimersLetterAloneHasATimersKey) {
    letters_.on_list = [&](const LetterQuery&, const auto& done) {
        LetterPage page;
        page.letters = {letter(), letter()};
        page.letters[0].partition = "there";
        page.letters[0].timer_key = "a/\"b\"";
        page.letters[1].partition = "here";
        done(std::move(page));
    };
    const std::string body = list();
    EXPECT_THAT(body, HasSubstr(R"("partition":"there","timerKey":"a/\"b\"","consumerGroup")"));
    EXPECT_THAT(body, HasSubstr(R"("partition":"here","consumerGroup")"));
}

TEST_F(DeadLettersTest, FMT10_PayloadsAreShownAsTheyWereStored) {
    letters_.on_list = [&](const LetterQuery& query, const auto& done) {
        EXPECT_EQ(query.bytes, DeadLetters::kPageBytes);
        LetterPage page;
        page.letters = {letter(), letter()};
        page.letters[0].payload = R"({ "b" : 1.10, "a" : 1e400 })";
        page.letters[1].payload.clear();
        page.letters[1].available = false;
        done(std::move(page));
    };
    const std::string body = list();
    EXPECT_THAT(body, HasSubstr(R"("data":{ "b" : 1.10, "a" : 1e400 },)"
                                R"("payload":{ "b" : 1.10, "a" : 1e400 },)"
                                R"("payloadAvailable":true,"isEncrypted":true})"));
    EXPECT_THAT(body, HasSubstr(R"("data":null,"payload":null,"payloadAvailable":false)"));
}

} // namespace
} // namespace queen::broker
