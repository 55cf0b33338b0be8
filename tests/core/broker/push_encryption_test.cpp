// What goes to the store in which form. The store's word is scripted here: it alone knows whether a
// queue is encrypted at that moment.
#include "broker/push.hpp"
#include "core/broker/broker_parts.hpp"
#include "model/frame.hpp"
#include "model/names.hpp"
#include "model/segment.hpp"

#include <gmock/gmock.h>

namespace queen::broker {
namespace {

using test::uuid_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class PushEncryption : public BrokerParts {
protected:
    PushEncryption() {
        store_.on_push = [this](const std::vector<PushSegment>& segments, const auto& done) {
            std::vector<PushOutcome> outcomes(segments.size());
            for (std::size_t i = 0; i < segments.size(); ++i) {
                sent_.push_back(segments[i]);
                if (before_each) {
                    before_each();
                }
                if (segments[i].encrypted != wanted_[segments[i].queue]) {
                    outcomes[i].wants_encrypted = wanted_[segments[i].queue];
                } else {
                    outcomes[i].base = Offset{10};
                    outcomes[i].partition_id = uuid_of(7);
                }
            }
            done(outcomes);
        };
    }

    std::vector<PushItemResult> push(std::vector<PushItem> items, std::string subject = {}) {
        std::optional<std::vector<PushItemResult>> results;
        pushes_->push({.tenant = std::string(kDefaultTenant),
                       .items = std::move(items),
                       .hold = {},
                       .producer_sub = std::move(subject)},
                      [&](std::vector<PushItemResult> all) { results = std::move(all); });
        EXPECT_TRUE(results.has_value());
        return results.value_or(std::vector<PushItemResult>{});
    }

    void give_key() {
        auto cipher = Cipher::from_hex(std::string(64, '7'));
        ASSERT_TRUE(cipher.has_value());
        key_ = std::make_shared<const Cipher>(std::move(*cipher));
        make_push();
    }
    void make_push() {
        pushes_.emplace(store_, announcer_, clock_,
                        Push::Options{.encryption = std::make_shared<Encryption>(key_)});
    }

    /// The payloads of a segment as a reader with the key sees them.
    std::vector<std::string> payloads_of(const PushSegment& segment) const {
        std::vector<std::string> out;
        const auto bytes = decompress_segment(segment.blob);
        const auto frames = parse_frames(*bytes);
        for (const Frame& frame : *frames) {
            EXPECT_EQ(frame.encrypted, segment.encrypted) << "frames carry their own flag";
            std::string scratch;
            const auto shown = render_payload(frame.payload, frame.encrypted, key_.get(), scratch);
            EXPECT_FALSE(shown.sealed);
            out.emplace_back(shown.json);
        }
        return out;
    }

    std::map<std::string, bool> wanted_; ///< by queue
    std::function<void()> before_each;   ///< a segment is judged
    std::vector<PushSegment> sent_;
    std::shared_ptr<const Cipher> key_;
    std::optional<Push> pushes_;
};

TEST_F(PushEncryption, ENC5_AnEncryptedQueueGetsSealedFramesAtTheSecondTryAndThenAtTheFirst) {
    give_key();
    wanted_["q"] = true;
    const auto first = push({{"q", "p", "t1", "{\"card\":42}"}, {"q", "p", "t2", "2"}});
    ASSERT_EQ(sent_.size(), 2u) << "the hint did not know the queue yet";
    EXPECT_FALSE(sent_[0].encrypted);
    EXPECT_TRUE(sent_[1].encrypted);
    EXPECT_THAT(payloads_of(sent_[1]), ElementsAre("{\"card\":42}", "2"));
    EXPECT_THAT(*decompress_segment(sent_[1].blob), Not(HasSubstr("card")));
    EXPECT_EQ(sent_[1].hashes, sent_[0].hashes);
    EXPECT_EQ(first[0].status, PushStatus::queued);
    EXPECT_EQ(first[1].offset, Offset{11});
    EXPECT_THAT(source_->marks, ElementsAre("q/p*2")) << "announced once";

    push({{"q", "p", "t3", "3"}});
    ASSERT_EQ(sent_.size(), 3u);
    EXPECT_TRUE(sent_[2].encrypted);
}

TEST_F(PushEncryption, ENC5_AStaleHintNeverStoresClearTextNorSealsForAQueueThatDoesNotWant) {
    give_key();
    for (const bool wanted : {true, false, true, true, false, false}) {
        wanted_["q"] = wanted;
        sent_.clear();
        EXPECT_EQ(push({{"q", "p", "", "1"}})[0].status, PushStatus::queued);
        EXPECT_EQ(sent_.back().encrypted, wanted);
        EXPECT_LE(sent_.size(), 2u);
        EXPECT_THAT(payloads_of(sent_.back()), ElementsAre("1"));
    }
}

TEST_F(PushEncryption, ENC1_WithoutAKeyTheItemsOfAnEncryptedQueueAreInErrorAndItsNeighboursStored) {
    make_push();
    wanted_["secret"] = true;
    const auto results = push({{"secret", "p", "t", "1"},
                               {"plain", "p", "t", "2"},
                               {"secret", "p", "t", "3"},
                               {"secret", "other", "t", "4"}});
    for (const std::size_t i : {0u, 2u, 3u}) {
        EXPECT_EQ(results[i].status, PushStatus::error);
        EXPECT_EQ(results[i].error, "the queue is encrypted and this broker has no encryption key");
        EXPECT_EQ(results[i].offset, std::nullopt);
    }
    EXPECT_EQ(results[1].status, PushStatus::queued);
    EXPECT_EQ(sent_.size(), 3u) << "asked once each, never again";
    EXPECT_THAT(source_->marks, ElementsAre("plain/p*1"));
}

TEST_F(PushEncryption, ENC5_AQueueThatChangesBetweenTheTriesIsGivenUpAfterAFewAndNothingIsStored) {
    give_key();
    before_each = [this] { wanted_["q"] = !sent_.back().encrypted; };
    const auto results = push({{"q", "p", "t", "1"}});
    EXPECT_EQ(results[0].status, PushStatus::error);
    EXPECT_THAT(results[0].error, HasSubstr("try again"));
    EXPECT_EQ(sent_.size(), 5u);
    EXPECT_TRUE(source_->marks.empty());
}

TEST_F(PushEncryption, PUSH6_TheSubjectOfTheTokenIsInEveryFrame) {
    make_push();
    push({{"q", "p", "t1", "1"}, {"q", "p", "t2", "2"}}, "service-a");
    const auto bytes = decompress_segment(sent_.at(0).blob);
    const auto frames = parse_frames(*bytes);
    ASSERT_EQ(frames->size(), 2u);
    for (const Frame& frame : *frames) {
        EXPECT_EQ(frame.producer_sub, "service-a");
    }
}

} // namespace
} // namespace queen::broker
