// In which form the segments of a transaction go to the store, whose word is scripted here.
#include "base/text.hpp"
#include "broker/transaction.hpp"
#include "core/broker/broker_parts.hpp"
#include "model/frame.hpp"
#include "model/names.hpp"
#include "model/segment.hpp"
#include "support/scripted_transaction_store.hpp"

#include <gmock/gmock.h>

#include <map>

namespace queen::broker {
namespace {

using test::uuid_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Verdict = TransactionResult::Verdict;

class TransactionEncryption : public BrokerParts {
protected:
    TransactionEncryption() {
        transaction_store_.on_transact = [this](const TransactionCall& call) {
            TransactionOutcome refused;
            for (std::size_t i = 0; i < call.segments.size(); ++i) {
                const PushSegment& segment = call.segments[i];
                if (before_each) {
                    before_each(segment);
                }
                if (segment.encrypted != wanted_[segment.queue]) {
                    refused.kind = TransactionOutcome::Kind::form;
                    refused.forms.push_back({i, wanted_[segment.queue]});
                }
            }
            return refused.forms.empty() ? test::ScriptedTransactionStore::commit(call) : refused;
        };
    }

    TransactionResult run(std::vector<PushItem> pushes, std::string subject = {}) {
        std::optional<TransactionResult> result;
        TransactionRequest request;
        request.tenant = kDefaultTenant;
        request.pushes = std::move(pushes);
        AckItem item;
        item.transaction_id = "x";
        item.partition_id = to_string(uuid_of(1));
        item.lease_id = "L";
        request.acks = {{item, "g"}};
        request.producer_sub = std::move(subject);
        transactions_->run(std::move(request),
                           [&](TransactionResult answer) { result = std::move(answer); });
        EXPECT_TRUE(result.has_value());
        return result.value_or(TransactionResult{});
    }
    void give_key() {
        auto cipher = Cipher::from_hex(std::string(64, '7'));
        ASSERT_TRUE(cipher.has_value());
        key_ = std::make_shared<const Cipher>(std::move(*cipher));
        make();
    }
    void make() {
        transactions_.emplace(
            transaction_store_, store_, announcer_, clock_,
            Transactions::Options{.activity = activity_,
                                  .encryption = std::make_shared<Encryption>(key_)});
    }
    const std::vector<TransactionCall>& calls() const { return transaction_store_.calls; }
    static std::vector<Frame> frames_of(const std::string& bytes) { return *parse_frames(bytes); }
    /// The payloads of a segment as a reader with the key sees them.
    std::vector<std::string> payloads_of(const PushSegment& segment) const {
        std::vector<std::string> out;
        const auto bytes = decompress_segment(segment.blob);
        for (const Frame& frame : frames_of(*bytes)) {
            EXPECT_EQ(frame.encrypted, segment.encrypted) << "frames carry their own flag";
            std::string scratch;
            out.emplace_back(
                render_payload(frame.payload, frame.encrypted, key_.get(), scratch).json);
        }
        return out;
    }

    std::map<std::string, bool> wanted_;                 ///< by queue
    std::function<void(const PushSegment&)> before_each; ///< it is judged
    std::shared_ptr<metrics::Activity> activity_ = std::make_shared<metrics::Activity>(clock_);
    test::ScriptedTransactionStore transaction_store_;
    std::shared_ptr<const Cipher> key_;
    std::optional<Transactions> transactions_;
};

TEST_F(TransactionEncryption, ENC5_EverySegmentIsPackedAsItsQueueWantsItAndAllIsRunAgain) {
    give_key();
    wanted_["vault"] = true;
    const auto result = run({{"plain", "p", "t1", R"({"card":1})"},
                             {"vault", "p", "t2", R"({"card":42})"},
                             {"vault", "r", "t3", R"({"card":43})"}});
    EXPECT_EQ(result.verdict, Verdict::committed);
    ASSERT_EQ(calls().size(), 2u) << "the hint did not know the queue yet";
    const auto& segments = calls()[1].segments;
    ASSERT_EQ(segments.size(), 3u);
    EXPECT_FALSE(segments[0].encrypted);
    EXPECT_THAT(payloads_of(segments[0]), ElementsAre(R"({"card":1})"));
    EXPECT_THAT(payloads_of(segments[1]), ElementsAre(R"({"card":42})"));
    EXPECT_THAT(payloads_of(segments[2]), ElementsAre(R"({"card":43})"));
    EXPECT_THAT(*decompress_segment(segments[1].blob), Not(HasSubstr("card")));
    EXPECT_EQ(calls()[1].acks.size(), 1u) << "what was not stored was not settled either";
    EXPECT_EQ(segments[1].hashes, calls()[0].segments[1].hashes);
    const auto bytes = decompress_segment(segments[1].blob);
    EXPECT_EQ(frames_of(*bytes).at(0).message_id, result.pushes.at(1).message_id);
    EXPECT_THAT(source_->marks, ElementsAre("plain/p*1", "vault/p*1", "vault/r*1"))
        << "announced once";

    EXPECT_EQ(run({{"vault", "p", "t4", "4"}}).verdict, Verdict::committed);
    EXPECT_EQ(calls().size(), 3u) << "sealed at the first try from then on";
}

TEST_F(TransactionEncryption, ENC5_AStaleHintNeverStoresClearTextNorSealsForAQueueThatDoesNotWant) {
    give_key();
    for (const bool wanted : {true, false, true, true, false, false}) {
        wanted_["q"] = wanted;
        transaction_store_.calls.clear();
        EXPECT_EQ(run({{"q", "p", "", "1"}}).verdict, Verdict::committed);
        EXPECT_LE(calls().size(), 2u);
        EXPECT_EQ(calls().back().segments.at(0).encrypted, wanted);
        EXPECT_THAT(payloads_of(calls().back().segments.at(0)), ElementsAre("1"));
    }
}

TEST_F(TransactionEncryption, ENC1_WithoutAKeyNothingOfATransactionIsDone) {
    make();
    wanted_["vault"] = true;
    const auto result = run({{"plain", "p", "t1", "1"}, {"vault", "p", "t2", "2"}});
    EXPECT_EQ(result.verdict, Verdict::no_key);
    EXPECT_EQ(result.error.message, "queue 'vault': the queue is encrypted and this broker has no "
                                    "encryption key");
    EXPECT_EQ(calls().size(), 1u) << "asked once, never again";
    EXPECT_THAT(source_->marks, IsEmpty());
    EXPECT_THAT(source_->releases, IsEmpty());
    EXPECT_EQ(activity_->transaction.failed.value(), 1u);
    EXPECT_EQ(activity_->push.messages.value(), 0u);
}

TEST_F(TransactionEncryption, ENC5_AQueueThatChangesBetweenTheTriesIsGivenUpAfterAFew) {
    give_key();
    before_each = [this](const PushSegment& segment) {
        wanted_[segment.queue] = !segment.encrypted;
    };
    const auto result = run({{"q", "p", "t", "1"}});
    EXPECT_EQ(result.verdict, Verdict::failed);
    EXPECT_THAT(result.error.message, HasSubstr("try again"));
    EXPECT_EQ(calls().size(), 5u);
    EXPECT_THAT(source_->marks, IsEmpty());
}

TEST_F(TransactionEncryption, PUSH6_TheSubjectOfTheTokenIsInEveryFrame) {
    make();
    run({{"q", "p", "t1", "1"}, {"r", "p", "t2", "2"}}, "service-a");
    for (const PushSegment& segment : calls().at(0).segments) {
        const auto bytes = decompress_segment(segment.blob);
        EXPECT_EQ(frames_of(*bytes).at(0).producer_sub, "service-a") << segment.queue;
    }
}

} // namespace
} // namespace queen::broker
