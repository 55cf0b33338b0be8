#include "base/text.hpp"
#include "store/pg_transaction_store.hpp"

#include <gmock/gmock.h>

namespace queen::store {
namespace {

using testing::ElementsAre;
using Kind = TransactionOutcome::Kind;
using Refusal = TransactionOutcome::Refusal;

const std::string kId = "0190a0b0-0000-7000-8000-000000000001";

TEST(TransactionAnswers, ADuplicateNamesSegmentFrameAndOffset) {
    const auto outcome = read_refusal(
        {Errc::store_failed,
         R"(QDUP: 1 pushed before ([{"s": 2, "i": 7, "off": 9007199254740993}]))", "23505"});
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->kind, Kind::duplicate);
    ASSERT_EQ(outcome->repeats.size(), 1u);
    EXPECT_EQ(outcome->repeats[0].segment, 2u);
    EXPECT_EQ(outcome->repeats[0].frame, 7u);
    EXPECT_EQ(outcome->repeats[0].first, Offset{9007199254740993});
}

TEST(TransactionAnswers, ARejectionTellsItsReasonsApart) {
    const auto outcome = read_refusal(
        {Errc::store_failed,
         R"x(QTXN: 5 acks refused ([{"n": 0, "error": "invalid or (expired) lease"}, )x"
         R"x({"n": 1, "error": "unresolved"}, {"n": 2, "error": "stale"}, )x"
         R"x({"n": 3, "error": "noop"}, {"n": 4, "error": "dlq"}]))x",
         "QTXN0"});
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->kind, Kind::rejected);
    ASSERT_EQ(outcome->rejections.size(), 5u);
    EXPECT_EQ(outcome->rejections[0].error, "invalid or (expired) lease");
    std::vector<Refusal> refusals;
    for (const auto& rejection : outcome->rejections) {
        EXPECT_EQ(rejection.ack, refusals.size());
        refusals.push_back(rejection.refusal);
    }
    EXPECT_THAT(refusals, ElementsAre(Refusal::told, Refusal::unresolved, Refusal::stale,
                                      Refusal::committed, Refusal::no_letter));
}

TEST(TransactionAnswers, ENC5_SegmentsOfAnotherFormAreNamedWithWhatTheirQueueWants) {
    const auto outcome =
        read_refusal({Errc::store_failed,
                      R"(QFORM: 2 segments are not as their queues want them )"
                      R"(([{"s": 0, "encrypted": true}, {"s": 3, "encrypted": false}]))",
                      "QFRM0"});
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->kind, Kind::form);
    ASSERT_EQ(outcome->forms.size(), 2u);
    EXPECT_EQ(outcome->forms[0].segment, 0u);
    EXPECT_TRUE(outcome->forms[0].encrypted);
    EXPECT_EQ(outcome->forms[1].segment, 3u);
    EXPECT_FALSE(outcome->forms[1].encrypted);
    for (const std::string detail : {R"([{"s": 0}])", R"([{"encrypted": true}])", "[]"}) {
        EXPECT_FALSE(read_refusal({Errc::store_failed, "QFORM: 1 (" + detail + ")", "QFRM0"}))
            << detail;
    }
}

TEST(TransactionAnswers, LostLeasesAreNamed) {
    const auto outcome =
        read_refusal({Errc::store_failed,
                      R"(QTXN: 1 required leases are not live ([{"lease": "w"}]))", "QTXN0"});
    ASSERT_TRUE(outcome);
    EXPECT_THAT(outcome->lost_leases, ElementsAre("w"));
}

TEST(TransactionAnswers, OtherErrorsStayErrors) {
    for (const auto& error :
         {Error{Errc::store_failed, "duplicate key value ([1])", "23505"},
          Error{Errc::transient, "QTXN", "40001"}, Error{Errc::transient, "QDUP: link", ""}}) {
        const auto outcome = read_refusal(error);
        ASSERT_FALSE(outcome);
        EXPECT_EQ(outcome.error().message, error.message);
        EXPECT_EQ(outcome.error().code, error.code);
    }
}

TEST(TransactionAnswers, ARefusalThatCannotBeReadIsAFaultOfOurs) {
    for (const std::string text :
         {"QTXN: 1 acks refused", "QTXN: 1 acks refused ([])", "QTXN: 1 acks refused ({})",
          "QTXN: 1 acks refused ([{}])", R"(QTXN: 1 acks refused ([{"n": -1, "error": "x"}]))",
          "QTXN: 1 acks refused ([7)"}) {
        const auto outcome = read_refusal({Errc::store_failed, text, "QTXN0"});
        ASSERT_FALSE(outcome) << text;
        EXPECT_EQ(outcome.error().code, Errc::internal) << text;
    }
}

TEST(TransactionAnswers, SettledAcksAreReadWhole) {
    const auto settled = read_settled(
        R"([{"partitionId":")" + kId +
        R"(","group":"g","queue":"q","partition":"p","leaseReleased":true,"freed":false,)"
        R"("covered":true,"dropped":false,"items":[0,3],"filed":[3]}])");
    ASSERT_TRUE(settled);
    ASSERT_EQ(settled->size(), 1u);
    EXPECT_EQ(to_string((*settled)[0].partition_id), kId);
    EXPECT_TRUE((*settled)[0].lease_released);
    EXPECT_FALSE((*settled)[0].freed);
    EXPECT_TRUE((*settled)[0].covered);
    EXPECT_THAT((*settled)[0].acks, ElementsAre(0u, 3u));
    EXPECT_THAT((*settled)[0].filed, ElementsAre(3u));
    EXPECT_FALSE(read_settled("{}"));
    EXPECT_FALSE(read_settled(R"([{"group":"g"}])"));
    EXPECT_FALSE(read_settled("nonsense"));
}

TEST(TransactionAnswers, TimersAreReadWithTheTimeThatIsLeft) {
    const auto timers = read_timers(
        R"({"now": 1000000, "timers": [{"status": "scheduled", "txn": "a", "id": ")" + kId +
            R"(", "at": 3500000}, {"status": "absent", "txn": "b", "id": null, "at": null},)"
            R"({"status": "too_late", "txn": "c", "id": null, "at": null}]})",
        3);
    ASSERT_TRUE(timers) << timers.error().message;
    EXPECT_EQ(timers->at(0).kind, TimerVerdict::Kind::scheduled);
    EXPECT_EQ(timers->at(0).transaction_id, "a");
    EXPECT_EQ(to_string(timers->at(0).message_id), kId);
    EXPECT_EQ(timers->at(0).deliver_at, WallTime{std::chrono::microseconds(3'500'000)});
    EXPECT_EQ(timers->at(0).left, std::chrono::microseconds(2'500'000));
    EXPECT_EQ(timers->at(1).kind, TimerVerdict::Kind::absent);
    EXPECT_EQ(timers->at(2).kind, TimerVerdict::Kind::too_late);
    EXPECT_TRUE(read_timers("{}", 0));
    for (const auto* broken :
         {"{}", "[]", "x", R"({"now": 1, "timers": []})", R"({"timers": [{"status": "absent"}]})",
          R"({"now": 1, "timers": [{"status": "other"}]})",
          R"({"now": 1, "timers": [{"status": "scheduled", "txn": "a", "id": "x", "at": 1}]})"}) {
        const auto refused = read_timers(broken, 1);
        ASSERT_FALSE(refused) << broken;
        EXPECT_EQ(refused.error().code, Errc::internal);
    }
}

} // namespace
} // namespace queen::store
