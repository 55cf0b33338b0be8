#include "base/text.hpp"
#include "store/answers.hpp"

#include <gmock/gmock.h>

namespace queen::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kId = "0190a0b0-0000-7000-8000-000000000001";

TEST(Answers, PushOutcomesInInputOrder) {
    const auto outcomes = read_push(
        R"([{"status":"queued","baseOffset":40,"createdAt":"2026-01-02T03:04:05.000006Z","partitionId":")" +
            kId +
            R"("},{"status":"duplicate","dups":[{"i":2,"off":9007199254740993}],"partitionId":null}])",
        2);
    ASSERT_TRUE(outcomes) << outcomes.error().message;
    EXPECT_FALSE((*outcomes)[0].duplicate);
    EXPECT_EQ((*outcomes)[0].base, Offset{40});
    EXPECT_EQ(to_string((*outcomes)[0].partition_id), kId);
    EXPECT_EQ(format_micros((*outcomes)[0].created_at), "2026-01-02T03:04:05.000006Z");
    EXPECT_TRUE((*outcomes)[1].duplicate);
    ASSERT_EQ((*outcomes)[1].repeats.size(), 1u);
    EXPECT_EQ((*outcomes)[1].repeats[0].frame, 2u);
    EXPECT_EQ((*outcomes)[1].repeats[0].first, Offset{9007199254740993});
}

TEST(Answers, PushAnswersThatBreakTheContractAreNamed) {
    EXPECT_THAT(read_push("[]", 1).error().message, HasSubstr("one element per segment"));
    EXPECT_THAT(read_push(R"([{"status":"odd"}])", 1).error().message, HasSubstr("status"));
    EXPECT_THAT(read_push(R"([{"status":"queued","baseOffset":"4"}])", 1).error().message,
                HasSubstr("baseOffset"));
    EXPECT_EQ(read_push("{", 1).error().code, Errc::internal);
}

std::string pop_meta(const std::string& segments) {
    return R"({"partitions":[{"partition":"p","partitionId":")" + kId +
           R"(","deliveryAttempt":3,"leaseLeftMs":29999,"lastOff":10,"batchEnd":10,"segments":[)" +
           segments + R"(]}],"seeded":false,"delay":5,"window":7})";
}
std::string segment(int seq) {
    return R"({"seq":)" + std::to_string(seq) +
           R"(,"startOff":1,"take":2,"msgCount":5,"createdAt":"2026-01-02T03:04:05Z"})";
}

TEST(Answers, PopJoinsMetaAndBlobs) {
    const auto result = read_pop(pop_meta(segment(0) + "," + segment(5)), {"one", ""});
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_FALSE(result->seeded);
    EXPECT_EQ(result->delay_seconds, 5);
    EXPECT_EQ(result->window_seconds, 7);
    ASSERT_EQ(result->partitions.size(), 1u);
    const PoppedPartition& partition = result->partitions[0];
    EXPECT_EQ(partition.partition, "p");
    EXPECT_EQ(partition.attempt, 3);
    EXPECT_EQ(partition.lease_left, std::chrono::milliseconds{29999});
    EXPECT_TRUE(partition.drained);
    ASSERT_EQ(partition.segments.size(), 2u);
    EXPECT_EQ(partition.segments[1].base, Offset{5});
    EXPECT_EQ(partition.segments[1].start, 1u);
    EXPECT_EQ(partition.segments[1].take, 2u);
    EXPECT_EQ(partition.segments[0].blob, "one");
    EXPECT_EQ(partition.segments[1].blob, "");
}

TEST(Answers, PopWithMoreOrFewerBlobsThanSegmentsIsRefused) {
    EXPECT_FALSE(read_pop(pop_meta(segment(0)), {}));
    EXPECT_FALSE(read_pop(pop_meta(segment(0)), {"a", "b"}));
    EXPECT_TRUE(read_pop(R"({"partitions":[]})", {}));
}

TEST(Answers, StatesOfAListPop) {
    PopResult result;
    ASSERT_TRUE(read_states(R"([{"p":"a","id":")" + kId +
                                R"(","s":"took","lastOff":4},{"p":"b","s":"empty"},)"
                                R"({"p":"c","s":"leased","until":"x","leftMs":250}])",
                            result));
    ASSERT_EQ(result.states.size(), 3u);
    EXPECT_EQ(result.states[0].kind, CandidateState::Kind::took);
    EXPECT_TRUE(result.states[0].partition_id.known());
    EXPECT_EQ(result.states[1].kind, CandidateState::Kind::empty);
    EXPECT_EQ(result.states[2].kind, CandidateState::Kind::leased);
    EXPECT_EQ(result.states[2].left, std::chrono::milliseconds{250});
    EXPECT_FALSE(read_states(R"([{"p":"a","s":"gone"}])", result));
}

TEST(Answers, HashAck) {
    const std::string hash = "000102030405060708090a0b0c0d0eff";
    const auto outcome = read_hash_ack(
        R"({"ok":true,"acked":3,"off":17,"leaseReleased":true,"covered":true,"queue":"q","partition":"p",)"
        R"("freed":true,"letters":null,"filed":[17],"filedItems":[0,2],"rejectedItems":[1],)"
        R"("noopHashes":[],"staleHashes":[")" +
        hash + R"("],"unresolvedHashes":null})");
    ASSERT_TRUE(outcome) << outcome.error().message;
    EXPECT_TRUE(outcome->ok);
    EXPECT_EQ(outcome->acked, 3);
    EXPECT_EQ(outcome->head, Offset{17});
    EXPECT_TRUE(outcome->lease_released);
    EXPECT_TRUE(outcome->covered);
    EXPECT_TRUE(outcome->freed);
    EXPECT_THAT(outcome->wanted, IsEmpty());
    EXPECT_THAT(outcome->filed, ElementsAre(0u, 2u));
    EXPECT_THAT(outcome->rejected, ElementsAre(1u));
    EXPECT_THAT(read_hash_ack(R"({"ok":true,"letters":[4,9]})")->wanted,
                ElementsAre(Offset{4}, Offset{9}));
    EXPECT_FALSE(read_hash_ack(R"({"ok":true,"letters":["4"]})"));
    ASSERT_EQ(outcome->stale.size(), 1u);
    EXPECT_EQ(to_hex(outcome->stale[0].view()), hash);
    EXPECT_THAT(outcome->unresolved, IsEmpty());
    EXPECT_FALSE(read_hash_ack(R"({"ok":true,"acked":0,"noopHashes":["00"]})"));
    EXPECT_FALSE(read_hash_ack(R"({"ok":false})")) << "a refusal without a reason";
}

TEST(Answers, PositionAcksAndRenewal) {
    const auto acks = read_position_acks(
        R"({"ok":true,"results":[{"ok":true,"acked":2,"leaseReleased":true,"covered":true,"queue":"q","partition":"p"},{"ok":false,"acked":0,"error":"no leased batch"}]})",
        2);
    ASSERT_TRUE(acks);
    EXPECT_EQ((*acks)[0].acked, 2);
    EXPECT_TRUE((*acks)[0].lease_released && (*acks)[0].covered);
    EXPECT_EQ((*acks)[0].queue + (*acks)[0].partition, "qp");
    EXPECT_EQ((*acks)[1].error, "no leased batch");
    EXPECT_FALSE(read_position_acks(R"({"ok":true,"results":[]})", 1));

    const auto renewed = read_renew(R"({"renewed":2,"expiresAt":"2026-01-02T03:04:05.5+00:00"})");
    ASSERT_TRUE(renewed);
    EXPECT_EQ(renewed->renewed, 2);
    EXPECT_EQ(format_micros(*renewed->expires_at), "2026-01-02T03:04:05.500000Z");
    EXPECT_FALSE(read_renew(R"({"renewed":0,"expiresAt":null})")->expires_at);
}

} // namespace
} // namespace queen::store
