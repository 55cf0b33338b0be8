#include "base/text.hpp"
#include "broker/dedup_cache.hpp"
#include "broker/transaction.hpp"
#include "core/broker/broker_parts.hpp"
#include "model/frame.hpp"
#include "model/names.hpp"
#include "model/segment.hpp"
#include "support/scripted_transaction_store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

namespace queen::broker {
namespace {

using test::uuid_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using Verdict = TransactionResult::Verdict;
using Kind = TransactionOutcome::Kind;

class TransactionTest : public BrokerParts {
protected:
    TransactionResult run(std::vector<PushItem> pushes, std::vector<TransactionRequest::Ack> acks,
                          std::vector<std::string> leases = {}) {
        return run_on(transactions_, std::move(pushes), std::move(acks), std::move(leases));
    }
    static TransactionResult run_on(Transactions& transactions, std::vector<PushItem> pushes,
                                    std::vector<TransactionRequest::Ack> acks,
                                    std::vector<std::string> leases = {}) {
        std::optional<TransactionResult> result;
        TransactionRequest request;
        request.tenant = kDefaultTenant;
        request.pushes = std::move(pushes);
        request.acks = std::move(acks);
        request.required_leases = std::move(leases);
        transactions.run(std::move(request),
                         [&](TransactionResult answer) { result = std::move(answer); });
        EXPECT_TRUE(result.has_value());
        return result.value_or(TransactionResult{});
    }
    static TransactionRequest::Ack ack(std::string txn, AckStatus status = AckStatus::completed,
                                       std::string lease = "L") {
        AckItem item;
        item.transaction_id = std::move(txn);
        item.partition_id = to_string(uuid_of(1));
        item.lease_id = std::move(lease);
        item.status = status;
        return {std::move(item), "g"};
    }
    /// Refused for each of the acks given.
    void reject(std::vector<TransactionOutcome::Rejection> rejections) {
        transaction_store_.on_transact = [rejections](const auto&) {
            TransactionOutcome outcome;
            outcome.kind = Kind::rejected;
            outcome.rejections = rejections;
            return outcome;
        };
    }

    std::shared_ptr<metrics::Activity> activity_ = std::make_shared<metrics::Activity>(clock_);
    test::ScriptedTransactionStore transaction_store_;
    Transactions transactions_{
        transaction_store_, store_, announcer_, clock_, {.activity = activity_}};
};

TEST_F(TransactionTest, SendsOneSegmentALaneAndEveryAckAsItCame) {
    const auto result =
        run({{"q", "a", "t1", "1", uuid_of(9)}, {"r", "b", "t2", "2"}, {"q", "a", "t3", "3"}},
            {ack("x"), ack("y", AckStatus::failed, "")}, {"R"});
    EXPECT_EQ(result.verdict, Verdict::committed);
    ASSERT_EQ(transaction_store_.calls.size(), 1u);
    const auto& call = transaction_store_.calls[0];
    EXPECT_EQ(call.tenant, kDefaultTenant);
    ASSERT_EQ(call.segments.size(), 2u);
    EXPECT_EQ(call.segments[0].queue, "q");
    EXPECT_EQ(call.segments[0].count, 2u);
    const auto frames = parse_frames(*decompress_segment(call.segments[0].blob));
    EXPECT_EQ(frames.value().at(0).message_id, result.pushes.at(0).message_id);
    EXPECT_EQ(frames.value().at(0).trace_id, uuid_of(9));
    ASSERT_EQ(call.acks.size(), 2u);
    EXPECT_EQ(call.acks[0].partition_id, uuid_of(1));
    EXPECT_EQ(call.acks[0].hash, hash_transaction_id("x"));
    EXPECT_EQ(call.acks[0].lease_id, "L");
    EXPECT_EQ(call.acks[1].group, "g");
    EXPECT_EQ(call.acks[1].status, AckStatus::failed);
    EXPECT_EQ(call.acks[1].lease_id, "");
    EXPECT_THAT(call.required_leases, ElementsAre("R"));
    EXPECT_EQ(result.id.bytes[6] >> 4, 7);
}

TEST_F(TransactionTest, ARepeatInTheBundleIsStoredOnceAndMarked) {
    const auto result = run({{"q", "a", "t", "1"}, {"q", "a", "t", "2"}, {"q", "b", "t", "3"}}, {});
    ASSERT_EQ(transaction_store_.calls[0].segments.size(), 2u);
    EXPECT_EQ(transaction_store_.calls[0].segments[0].count, 1u);
    EXPECT_FALSE(result.pushes.at(0).duplicate);
    EXPECT_TRUE(result.pushes.at(1).duplicate);
    EXPECT_EQ(result.pushes[1].message_id, result.pushes[0].message_id);
    EXPECT_FALSE(result.pushes.at(2).duplicate) << "another partition is another identity";
}

// TX-6: at once, not with the pushes' tick; and an ack that ended a lease frees its partition.
TEST_F(TransactionTest, WhatWasStoredAndFreedIsAnnouncedBeforeTheAnswer) {
    std::optional<std::vector<std::string>> marks_at_answer;
    TransactionRequest request;
    request.tenant = kDefaultTenant;
    request.pushes = {{"q", "a", "t1", "1"}, {"q", "a", "t2", "2"}, {"r", "b", "t3", "3"}};
    request.acks = {ack("x")};
    transactions_.run(std::move(request),
                      [&](const TransactionResult&) { marks_at_answer = source_->marks; });
    EXPECT_THAT(*marks_at_answer, ElementsAre("q/a*2", "r/b*1"));
    EXPECT_THAT(source_->origins,
                ElementsAre(plugin::Origin::transaction, plugin::Origin::transaction));
    EXPECT_THAT(source_->releases, ElementsAre("in g covered"));
}

TEST_F(TransactionTest, ALeaseThatGoesOnIsNotAnnounced) {
    transaction_store_.on_transact = [](const TransactionCall& call) {
        auto outcome = test::ScriptedTransactionStore::commit(call);
        outcome.settled[0].lease_released = false;
        return outcome;
    };
    EXPECT_EQ(run({}, {ack("x")}).verdict, Verdict::committed);
    EXPECT_THAT(source_->releases, IsEmpty());
}

TEST_F(TransactionTest, ADuplicateNamesTheMessagesAndAnnouncesNothing) {
    transaction_store_.on_transact = [](const auto&) {
        TransactionOutcome outcome;
        outcome.kind = Kind::duplicate;
        outcome.repeats = {{1, 1, Offset{12}}};
        return outcome;
    };
    const auto result =
        run({{"q", "a", "t1", "1"}, {"r", "b", "t2", "2"}, {"r", "b", "t3", "3"}}, {ack("x")});
    EXPECT_EQ(result.verdict, Verdict::duplicate);
    EXPECT_EQ(result.error.message, "QDUP: pushed before: transactionId 't3' is at offset 12 of "
                                    "queue 'r', partition 'b'");
    EXPECT_THAT(source_->marks, IsEmpty());
    EXPECT_THAT(source_->releases, IsEmpty());
    EXPECT_EQ(activity_->push.messages.value(), 0u);
    EXPECT_EQ(activity_->transaction.duplicate.value(), 1u);
}

TEST_F(TransactionTest, ARejectionSaysWhichAckAndWhy) {
    using Refusal = TransactionOutcome::Refusal;
    reject({{0, Refusal::told, "invalid or expired lease"},
            {1, Refusal::unresolved, ""},
            {2, Refusal::stale, ""},
            {3, Refusal::committed, ""},
            {4, Refusal::no_letter, ""}});
    const auto result = run({}, {ack("a"), ack("b"), ack("c"), ack("d"), ack("e")});
    EXPECT_EQ(result.verdict, Verdict::rejected_ack);
    const auto& text = result.error.message;
    EXPECT_THAT(text, StartsWith("QTXN: ack of transactionId 'a' in partition " +
                                 to_string(uuid_of(1)) + ": invalid or expired lease; "));
    EXPECT_THAT(text, HasSubstr("'b' in partition " + to_string(uuid_of(1)) + ": unresolvable"));
    EXPECT_THAT(text, HasSubstr(": position beyond leased batch"));
    EXPECT_THAT(text, HasSubstr(": already committed"));
    EXPECT_THAT(text, HasSubstr(": dlq rejected"));
    EXPECT_EQ(activity_->transaction.rejected.value(), 1u);
}

TEST_F(TransactionTest, ALongListIsCutAndSoIsALongId) {
    std::vector<TransactionRequest::Ack> acks;
    std::vector<TransactionOutcome::Rejection> rejections;
    for (std::size_t i = 0; i < 25; ++i) {
        acks.push_back(ack(std::string(199, 'x') + "\xC3\xA9" + std::string(60'000, 'y')));
        rejections.push_back({i, TransactionOutcome::Refusal::told, "no"});
    }
    reject(rejections);
    const auto result = run({}, std::move(acks));
    EXPECT_THAT(result.error.message, HasSubstr("; and 15 more"));
    EXPECT_THAT(result.error.message, HasSubstr("'" + std::string(199, 'x') + "...'"));
}

TEST_F(TransactionTest, ALostRequiredLeaseIsNamed) {
    transaction_store_.on_transact = [](const auto&) {
        TransactionOutcome outcome;
        outcome.kind = Kind::rejected;
        outcome.lost_leases = {"R"};
        return outcome;
    };
    const auto result = run({{"q", "a", "t1", "1"}}, {}, {"R"});
    EXPECT_EQ(result.verdict, Verdict::rejected_ack);
    EXPECT_EQ(result.error.message, "QTXN: required lease 'R': invalid or expired lease");
}

TEST_F(TransactionTest, APartitionIdThatIsNoneIsRefusedWithoutTheStore) {
    auto strange = ack("x");
    strange.item.partition_id = "17";
    const auto result = run({{"q", "a", "t1", "1"}}, {ack("y"), strange});
    EXPECT_EQ(result.verdict, Verdict::rejected_ack);
    EXPECT_EQ(result.error.message,
              "QTXN: ack of transactionId 'x': partitionId is not a partition id");
    EXPECT_THAT(transaction_store_.calls, IsEmpty());
}

TEST_F(TransactionTest, NothingToDoSucceedsWithoutTheStore) {
    EXPECT_EQ(run({}, {}).verdict, Verdict::committed);
    EXPECT_THAT(transaction_store_.calls, IsEmpty());
}

TEST_F(TransactionTest, AGuardAloneIsAsked) {
    EXPECT_EQ(run({}, {}, {"R"}).verdict, Verdict::committed);
    EXPECT_EQ(transaction_store_.calls.size(), 1u);
}

// A statement that lost a race changed nothing: it is sent again, but not for ever.
TEST_F(TransactionTest, LostRacesAreTriedAgainThreeTimesInAll) {
    for (const std::string state : {"40P01", "40001", "23503"}) {
        transaction_store_.calls.clear();
        transaction_store_.on_transact =
            [&](const TransactionCall& call) -> Result<TransactionOutcome> {
            if (transaction_store_.calls.size() < 3) {
                return fail(Errc::transient, "race", state);
            }
            return test::ScriptedTransactionStore::commit(call);
        };
        const auto result = run({{"q", "a", "t1", "1"}}, {ack("x")});
        EXPECT_EQ(result.verdict, Verdict::committed) << state;
        ASSERT_EQ(transaction_store_.calls.size(), 3u);
        EXPECT_EQ(transaction_store_.calls[2].segments.at(0).blob,
                  transaction_store_.calls[0].segments.at(0).blob);
        EXPECT_EQ(transaction_store_.calls[2].acks.size(), 1u);

        transaction_store_.on_transact = [&](const auto&) -> Result<TransactionOutcome> {
            return fail(Errc::transient, "race", state);
        };
        transaction_store_.calls.clear();
        EXPECT_EQ(run({{"q", "a", "t1", "1"}}, {}).verdict, Verdict::failed);
        EXPECT_EQ(transaction_store_.calls.size(), 3u);
    }
}

// ERR-2: without a state the link broke, and it may have committed; so may anything we do not know.
TEST_F(TransactionTest, WhatMayHaveCommittedIsNotSentAgain) {
    for (const auto& error :
         {Error{Errc::transient, "link", ""}, Error{Errc::timeout, "t", "57014"},
          Error{Errc::transient, "stopping", "57P01"}, Error{Errc::transient, "held", "55P03"}}) {
        transaction_store_.calls.clear();
        transaction_store_.on_transact = [&](const auto&) -> Result<TransactionOutcome> {
            return fail(error);
        };
        const auto result = run({{"q", "a", "t1", "1"}}, {});
        EXPECT_EQ(result.verdict, Verdict::failed);
        EXPECT_EQ(transaction_store_.calls.size(), 1u) << error.message;
        EXPECT_THAT(source_->marks, IsEmpty());
    }
    EXPECT_EQ(activity_->transaction.failed.value(), 4u);
}

/// A segment of messages "m0", "m1", ... from offset 4 on.
StoredSegment stored_segment(int messages) {
    std::string frames;
    for (int i = 0; i < messages; ++i) {
        const auto id = "m" + std::to_string(i);
        EXPECT_TRUE(append_frame(frames, {.message_id = uuid_of(static_cast<std::uint8_t>(i + 1)),
                                          .transaction_id = id,
                                          .payload = "7"}));
    }
    return {Offset{4}, Offset{3 + messages}, WallTime{std::chrono::seconds(5)},
            compress_segment(frames)};
}

// TX-9
TEST_F(TransactionTest, WhatIsToBecomeALetterIsReadAndBroughtTogetherWithTheRest) {
    store_.on_segment_at = [](const Uuid& id, Offset, const auto& done) {
        EXPECT_EQ(id, uuid_of(1));
        done(std::optional(stored_segment(3)));
    };
    transaction_store_.on_transact = [](const TransactionCall& call) {
        if (call.letters.empty()) {
            TransactionOutcome outcome;
            outcome.kind = Kind::letters;
            // Two groups give up messages of one partition.
            outcome.wanted = {{uuid_of(1), {Offset{4}, Offset{6}}}, {uuid_of(1), {Offset{6}}}};
            return outcome;
        }
        auto outcome = test::ScriptedTransactionStore::commit(call);
        outcome.settled[1].filed = {1};
        return outcome;
    };
    const auto result = run({{"q", "a", "t1", "1"}}, {ack("x"), ack("m2", AckStatus::dlq)});
    EXPECT_EQ(result.verdict, Verdict::committed);
    EXPECT_FALSE(result.acks.at(0).dlq);
    EXPECT_TRUE(result.acks.at(1).dlq);
    ASSERT_EQ(transaction_store_.calls.size(), 2u);
    const auto& call = transaction_store_.calls[1];
    EXPECT_EQ(call.segments.size(), 1u);
    EXPECT_EQ(call.acks.size(), 2u);
    EXPECT_FALSE(call.no_further_letters);
    ASSERT_EQ(call.letters.size(), 1u);
    ASSERT_EQ(call.letters[0].letters.size(), 2u);
    EXPECT_EQ(call.letters[0].letters[1].transaction_id, "m2");
    EXPECT_EQ(call.letters[0].letters[1].offset, Offset{6});
    EXPECT_EQ(source_->marks.size(), 1u) << "announced once";
}

TEST_F(TransactionTest, LettersThatAreGoneAreSaidToBeSoAndTheRoundsEnd) {
    store_.on_segment_at = [](const Uuid&, Offset, const auto& done) {
        done(std::optional<StoredSegment>{});
    };
    transaction_store_.on_transact = [](const TransactionCall& call) {
        TransactionOutcome outcome;
        outcome.kind = call.no_further_letters ? Kind::rejected : Kind::letters;
        outcome.wanted = {{uuid_of(1), {Offset{4}}}};
        outcome.rejections = {{0, TransactionOutcome::Refusal::no_letter, ""}};
        return outcome;
    };
    EXPECT_THAT(run({}, {ack("x", AckStatus::dlq)}).error.message, HasSubstr("dlq rejected"));
    EXPECT_EQ(transaction_store_.calls.size(), 2u);

    // A store that is never content is not asked for ever.
    transaction_store_.calls.clear();
    store_.on_segment_at = [](const Uuid&, Offset, const auto& done) {
        done(std::optional(stored_segment(1)));
    };
    EXPECT_EQ(run({}, {ack("x", AckStatus::dlq)}).verdict, Verdict::rejected_ack);
    EXPECT_EQ(transaction_store_.calls.size(), 5u);

    store_.on_segment_at = [](const Uuid&, Offset, const auto& done) {
        done(fail(Errc::unavailable, "no session became free"));
    };
    const auto result = run({{"q", "a", "t1", "1"}}, {ack("x", AckStatus::dlq)});
    EXPECT_EQ(result.verdict, Verdict::failed);
    EXPECT_EQ(result.error.code, Errc::unavailable);
    EXPECT_THAT(source_->marks, IsEmpty());
}

TEST_F(TransactionTest, ABatchThatATransactionTouchedIsNoLongerRemembered) {
    AckRegistry registry(clock_, {});
    Transactions transactions(transaction_store_, store_, announcer_, clock_, {}, nullptr,
                              &registry);
    registry.remember({kDefaultTenant, uuid_of(1), "g"}, "L", {Offset{0}, Offset{0}},
                      {hash_transaction_id("x")}, std::nullopt);
    ASSERT_EQ(registry.stats().entries, 1u);
    run_on(transactions, {}, {ack("x")});
    EXPECT_EQ(registry.stats().entries, 0u);
}

TEST_F(TransactionTest, AnUnknownStatusWordIsNamedBesideItsAck) {
    auto strange = ack("x", AckStatus::failed);
    strange.item.unknown_word = "complete";
    const auto result = run({}, {ack("y"), strange});
    EXPECT_EQ(result.acks.at(0).error, "");
    EXPECT_THAT(result.acks.at(1).error, HasSubstr("'complete' counts as failed"));
}

// A transaction that was rolled back is no knowledge about the partition: its hashes are not there.
TEST_F(TransactionTest, TheDedupCacheLearnsFromWhatCommittedOnly) {
    DedupCache cache(store_, ticker_, clock_, {});
    Transactions transactions(transaction_store_, store_, announcer_, clock_, {}, &cache);
    store_.on_window_hashes = [](const HashPage&, const Done<std::vector<HashRow>>& done) {
        done(std::vector<HashRow>{});
    };
    bool commits = true;
    Offset next{1000};
    transaction_store_.on_transact = [&](const TransactionCall& call) {
        if (!commits) {
            TransactionOutcome outcome;
            outcome.kind = Kind::rejected;
            outcome.lost_leases = {"R"};
            return outcome;
        }
        auto outcome = test::ScriptedTransactionStore::commit(call);
        auto& push = outcome.pushes.at(0);
        push.base = next;
        push.window = std::chrono::seconds(3600);
        push.probed = call.segments[0].vouch ? 0 : next.value();
        push.after = WallTime{std::chrono::seconds(next.value() - 1)};
        push.created_at = WallTime{std::chrono::seconds(next.value())};
        next = Offset{next.value() + 1};
        return outcome;
    };
    for (int i = 0; i < 4; ++i) {
        run_on(transactions, {{"q", "a", "t" + std::to_string(i), "1"}}, {});
    }
    ASSERT_TRUE(transaction_store_.calls.back().segments[0].vouch) << "the cache knows the window";
    const auto upto = transaction_store_.calls.back().segments[0].vouch->upto;
    commits = false;
    run_on(transactions, {{"q", "a", "lost", "1"}}, {});
    commits = true;
    run_on(transactions, {{"q", "a", "lost", "1"}}, {});
    const auto& vouch = transaction_store_.calls.back().segments[0].vouch;
    ASSERT_TRUE(vouch) << "the id of the one that was rolled back is new";
    EXPECT_EQ(vouch->upto.value(), upto.value() + 1);
}

TEST_F(TransactionTest, DeadLettersAndAcksCountAsThoseOfAckRequests) {
    transaction_store_.on_transact = [](const TransactionCall& call) {
        auto outcome = test::ScriptedTransactionStore::commit(call);
        outcome.settled.at(1).filed = {1};
        return outcome;
    };
    run({}, {ack("x"), ack("y", AckStatus::dlq)});
    const auto by = [this](metrics::AckResult result) {
        return activity_->ack.by_result[static_cast<std::size_t>(result)].value();
    };
    EXPECT_EQ(activity_->ack.dead_letters.value(), 1u);
    EXPECT_EQ(by(metrics::AckResult::completed), 1u);
    EXPECT_EQ(by(metrics::AckResult::dlq), 1u);
}

TEST_F(TransactionTest, WhatWasDoneCountsAsPushesAndAcks) {
    run({{"q", "a", "t", "1"}, {"q", "a", "t", "2"}, {"q", "a", "u", "3"}},
        {ack("x"), ack("y", AckStatus::retry)});
    EXPECT_EQ(activity_->push.messages.value(), 2u);
    EXPECT_EQ(activity_->push.duplicates.value(), 1u);
    EXPECT_EQ(activity_->ack.messages.value(), 2u);
    EXPECT_EQ(activity_->transaction.committed.value(), 1u);
}

TEST_F(TransactionTest, TimersRideAlongAndTheEarliestIsTold) {
    std::vector<SteadyTime> told;
    Transactions transactions{
        transaction_store_, store_, announcer_, clock_, {.scheduled = [&](SteadyTime earliest) {
            told.push_back(earliest);
        }}};
    const auto run_timers = [&](std::vector<TimerOp> timers) {
        std::optional<TransactionResult> result;
        TransactionRequest request;
        request.tenant = kDefaultTenant;
        request.producer_sub = "sub";
        request.timers = std::move(timers);
        transactions.run(std::move(request), [&](TransactionResult answer) {
            EXPECT_FALSE(result.has_value());
            result = std::move(answer);
        });
        return result.value();
    };
    using std::chrono::seconds;
    const TimerOp late{.queue = "q", .key = "a", .transaction_id = "t1", .delay = seconds(9)};
    const TimerOp soon{.queue = "q", .key = "b", .transaction_id = "t2", .delay = seconds(2)};
    const TimerOp cancel{.kind = TimerOp::Kind::cancel, .queue = "q", .key = "c"};

    const auto set = run_timers({late, soon, cancel});
    EXPECT_EQ(set.verdict, Verdict::committed);
    ASSERT_EQ(transaction_store_.calls.size(), 1u);
    EXPECT_EQ(transaction_store_.calls[0].producer_sub, "sub");
    ASSERT_EQ(transaction_store_.calls[0].timers.size(), 3u);
    EXPECT_EQ(transaction_store_.calls[0].timers[1].key, "b");
    ASSERT_EQ(set.timers.size(), 3u);
    EXPECT_EQ(set.timers[0].transaction_id, "t1");
    EXPECT_EQ(set.timers[2].kind, TimerVerdict::Kind::cancelled);
    EXPECT_THAT(told, ElementsAre(clock_.now() + seconds(2)));

    run_timers({cancel});
    EXPECT_EQ(told.size(), 1u) << "nothing was set";
    transaction_store_.on_transact = [](const TransactionCall&) -> Result<TransactionOutcome> {
        return fail(Errc::store_failed, "no", "22023");
    };
    const auto failed = run_timers({soon});
    EXPECT_EQ(failed.verdict, Verdict::failed);
    EXPECT_THAT(failed.timers, IsEmpty());
    EXPECT_EQ(told.size(), 1u) << "it did not commit";
}

// A race that was lost is run again with all of it, and told once.
TEST_F(TransactionTest, TimersAreSentAgainWithTheRest) {
    int told = 0;
    Transactions transactions{
        transaction_store_, store_, announcer_, clock_, {.scheduled = [&](SteadyTime) { ++told; }}};
    transaction_store_.on_transact =
        [&](const TransactionCall& call) -> Result<TransactionOutcome> {
        if (transaction_store_.calls.size() == 1) {
            return fail(Errc::store_failed, "deadlock", "40P01");
        }
        return test::ScriptedTransactionStore::commit(call);
    };
    TransactionRequest request;
    request.tenant = kDefaultTenant;
    request.timers = {{.queue = "q", .key = "a", .payload = "body"}};
    transactions.run(std::move(request), [](const TransactionResult&) {});
    ASSERT_EQ(transaction_store_.calls.size(), 2u);
    EXPECT_EQ(transaction_store_.calls[1].timers.at(0).payload, "body");
    EXPECT_EQ(told, 1);
}

} // namespace
} // namespace queen::broker
