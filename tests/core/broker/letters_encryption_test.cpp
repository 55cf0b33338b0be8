// Dead letters and messages of encrypted queues: how they are shown, and in which form they go
// back.
#include "broker/dead_letters.hpp"
#include "broker/message_browser.hpp"
#include "core/broker/broker_parts.hpp"
#include "model/frame.hpp"
#include "model/names.hpp"
#include "support/scripted_letter_store.hpp"
#include "support/scripted_message_store.hpp"

#include <gmock/gmock.h>

namespace queen::broker {
namespace {

using namespace std::chrono_literals;
using test::uuid_of;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::shared_ptr<const Cipher> key(char digit) {
    return std::make_shared<const Cipher>(std::move(*Cipher::from_hex(std::string(64, digit))));
}

const std::string kClear = R"({"card":42})";

class LettersEncryption : public BrokerParts {
protected:
    LettersEncryption() {
        letter_.id = uuid_of(3);
        letter_.partition_id = uuid_of(4);
        letter_.queue = "q";
        letter_.partition = "p";
        letter_.group = "g";
        letter_.transaction_id = "t";
        letter_.payload = kClear;
        letters_.on_find = [this](const auto&, Uuid, const auto& done) {
            done(std::optional(letter_));
        };
        letters_.on_newest = [this](const auto&, Uuid, const auto&, const auto& done) {
            done(std::optional(letter_));
        };
        letters_.on_list = [this](const LetterQuery&, const auto& done) {
            done(LetterPage{1, {letter_}});
        };
        letters_.on_move = [this](LetterMove move, const auto& done) {
            moves_.push_back(move);
            if (before_each) {
                before_each();
            }
            LetterMoved moved;
            moved.result = move.encrypted == wanted_ ? LetterMoved::Result::moved
                                                     : LetterMoved::Result::other_form;
            moved.wants_encrypted = wanted_;
            done(moved);
        };
    }
    void seal(char digit) {
        letter_.payload = key(digit)->seal(kClear);
        letter_.encrypted = true;
    }
    void have_key(char digit) { key_ = key(digit); }

    Replay replay() {
        DeadLetters dead(letters_, announcer_, reads_, clock_,
                         {.encryption = std::make_shared<Encryption>(key_)});
        std::optional<Replay> out;
        dead.replay(std::string(kDefaultTenant), letter_.id, {},
                    [&](Replay result) { out = std::move(result); });
        EXPECT_TRUE(out);
        return out.value_or(Replay{});
    }
    std::string list() {
        DeadLetters dead(letters_, announcer_, reads_, clock_,
                         {.encryption = std::make_shared<Encryption>(key_)});
        std::string body;
        dead.list({.tenant = std::string(kDefaultTenant)},
                  [&](const Result<std::optional<std::string>>& answer) { body = **answer; });
        return body;
    }
    /// The payload of a frame that was moved, opened when it is marked as encrypted.
    std::string opened(const LetterMove& move) const {
        const auto bytes = decompress_segment(move.blob);
        const auto frames = parse_frames(*bytes);
        EXPECT_EQ(frames->at(0).encrypted, move.encrypted) << "frames carry their own flag";
        std::string scratch;
        return std::string(
            render_payload(frames->at(0).payload, frames->at(0).encrypted, key('7').get(), scratch)
                .json);
    }

    test::ScriptedLetterStore letters_;
    FigureReads reads_{clock_, 30s};
    DeadLetter letter_;
    bool wanted_ = false; ///< by the destination
    std::function<void()> before_each;
    std::vector<LetterMove> moves_;
    std::shared_ptr<const Cipher> key_;
};

TEST_F(LettersEncryption, ENC5_ALetterThatFitsIsMovedAsItIsStoredKeyOrNot) {
    for (const bool encrypted : {false, true}) {
        moves_.clear();
        wanted_ = encrypted;
        if (encrypted) {
            seal('7');
        }
        EXPECT_EQ(replay().result, Replay::Result::moved);
        ASSERT_EQ(moves_.size(), 1u);
        EXPECT_EQ(moves_[0].encrypted, encrypted);
        EXPECT_EQ(opened(moves_[0]), kClear);
    }
}

TEST_F(LettersEncryption, ENC5_ClearTextIsSealedForAQueueThatIsEncryptedByNow) {
    have_key('7');
    wanted_ = true;
    const Replay replayed = replay();
    EXPECT_EQ(replayed.result, Replay::Result::moved);
    ASSERT_EQ(moves_.size(), 2u);
    EXPECT_TRUE(moves_[1].encrypted);
    EXPECT_EQ(opened(moves_[1]), kClear);
    EXPECT_THAT(*decompress_segment(moves_[1].blob), Not(HasSubstr("card")));
    EXPECT_EQ(moves_[1].hash, moves_[0].hash);
    EXPECT_EQ(source_->marks.size(), 1u) << "announced once";
}

TEST_F(LettersEncryption, ENC5_AnEnvelopeIsOpenedForAQueueThatIsNotEncrypted) {
    have_key('7');
    seal('7');
    EXPECT_EQ(replay().result, Replay::Result::moved);
    ASSERT_EQ(moves_.size(), 2u);
    EXPECT_FALSE(moves_[1].encrypted);
    EXPECT_EQ(opened(moves_[1]), kClear);
}

TEST_F(LettersEncryption, ENC5_WhatCannotBeOpenedOrSealedIsRefusedAndNothingIsMoved) {
    wanted_ = true;
    const Replay clear = replay();
    EXPECT_EQ(clear.result, Replay::Result::refused);
    EXPECT_EQ(clear.error.code, Errc::conflict);
    EXPECT_THAT(clear.error.message, HasSubstr("no encryption key"));
    wanted_ = false;
    seal('7');
    EXPECT_EQ(replay().result, Replay::Result::refused) << "no key";
    have_key('8');
    const Replay sealed = replay();
    EXPECT_EQ(sealed.result, Replay::Result::refused) << "another key";
    EXPECT_EQ(sealed.error.code, Errc::conflict);
    EXPECT_THAT(sealed.error.message, HasSubstr("cannot be opened"));
    EXPECT_EQ(moves_.size(), 3u) << "each asked once";
    EXPECT_THAT(source_->marks, IsEmpty());
}

TEST_F(LettersEncryption, ENC5_AQueueThatChangesBetweenTheTriesIsGivenUpAfterAFew) {
    have_key('7');
    before_each = [this] { wanted_ = !moves_.back().encrypted; };
    const Replay replayed = replay();
    EXPECT_EQ(replayed.result, Replay::Result::failed);
    EXPECT_FALSE(replayed.unknown) << "it certainly stayed";
    EXPECT_EQ(moves_.size(), 5u);
}

TEST_F(LettersEncryption, ENC3_AListShowsWhatTheKeyOpensAndTheEnvelopeOtherwise) {
    seal('7');
    EXPECT_THAT(list(), HasSubstr("\"data\":" + letter_.payload));
    have_key('8');
    EXPECT_THAT(list(), HasSubstr("\"data\":" + letter_.payload));
    have_key('7');
    EXPECT_THAT(list(), HasSubstr("\"data\":" + kClear + ",\"payload\":" + kClear +
                                  ",\"payloadAvailable\":true,\"isEncrypted\":true"));
    letter_.encrypted = false;
    EXPECT_THAT(list(), HasSubstr("\"data\":" + letter_.payload)) << "no oracle for envelopes";
}

/// A partition of one segment with one message.
class BrowserEncryption : public LettersEncryption {
protected:
    BrowserEncryption() {
        messages_.on_slices = [this](const MessageQuery&, const auto& done) {
            MessageSlices slices;
            slices.places = {place()};
            slices.slices = {{0, Offset{0}, WallTime{}, Offset{0}, Offset{0}, 100}};
            done(slices);
        };
        messages_.on_segments = [this](const auto&, const auto& done) {
            done(std::vector<std::optional<std::string>>{blob()});
        };
        messages_.on_find = [this](const auto&, Uuid, const auto&, const auto& done) {
            FoundMessage found;
            found.place = place();
            found.options = "{}";
            found.offset = Offset{0};
            found.segment = StoredSegment{Offset{0}, Offset{0}, WallTime{}, blob()};
            done(std::optional(found));
        };
        letters_.on_newest = [](const auto&, Uuid, const auto&, const auto& done) {
            done(std::optional<DeadLetter>{});
        };
    }
    MessagePlace place() const {
        MessagePlace place;
        place.partition_id = letter_.partition_id;
        place.queue = "q";
        place.partition = "p";
        return place;
    }
    std::string blob() const {
        std::string frames;
        EXPECT_TRUE(append_frame(
            frames,
            {.transaction_id = "t", .payload = letter_.payload, .encrypted = letter_.encrypted}));
        return compress_segment(frames);
    }
    std::vector<std::string> shown() {
        std::vector<std::string> bodies;
        const auto keep = [&](const Result<std::optional<std::string>>& answer) {
            bodies.push_back(answer ? **answer : answer.error().message);
        };
        MessageBrowser browser(messages_, letters_, reads_, clock_, key_.get());
        browser.list({.filter = {.tenant = std::string(kDefaultTenant)}}, keep);
        browser.find(std::string(kDefaultTenant), letter_.partition_id, "t", keep);
        return bodies;
    }

    test::ScriptedMessageStore messages_;
};

TEST_F(BrowserEncryption, ENC3_MessagesAreShownOpenedWithTheKeyAndAsEnvelopesWithout) {
    seal('7');
    for (const std::string& body : shown()) {
        EXPECT_THAT(body, HasSubstr("\"data\":" + letter_.payload));
        EXPECT_THAT(body, HasSubstr(R"("isEncrypted":true)"));
    }
    have_key('7');
    for (const std::string& body : shown()) {
        EXPECT_THAT(body, HasSubstr("\"data\":" + kClear + ",\"payload\":" + kClear));
        EXPECT_THAT(body, HasSubstr(R"("isEncrypted":true)")) << "as it is stored";
    }
    letter_.encrypted = false;
    for (const std::string& body : shown()) {
        EXPECT_THAT(body, HasSubstr("\"data\":" + letter_.payload)) << "no oracle for envelopes";
    }
}

TEST_F(BrowserEncryption, ENC3_AMessageOfWhichOnlyTheLetterIsLeftIsOpenedToo) {
    seal('7');
    have_key('7');
    messages_.on_find = [](const auto&, Uuid, const auto&, const auto& done) {
        done(std::optional<FoundMessage>{});
    };
    letters_.on_newest = [this](const auto&, Uuid, const auto&, const auto& done) {
        done(std::optional(letter_));
    };
    EXPECT_THAT(shown().at(1), HasSubstr("\"data\":" + kClear));
}

} // namespace
} // namespace queen::broker
