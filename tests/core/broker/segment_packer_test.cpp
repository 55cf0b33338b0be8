#include "base/text.hpp"
#include "broker/segment_packer.hpp"
#include "core/broker/broker_parts.hpp"
#include "model/frame.hpp"
#include "model/segment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace queen::broker {
namespace {

using test::uuid_of;
using testing::ElementsAre;

TEST(SegmentPackerTest, LanesKeepTheOrderOfTheRequestAndLeaveRepeatsOut) {
    Uuid7 ids;
    std::vector<PushItem> items{
        {"q", "b", "t1", "1"}, {"q", "a", "t1", "2"}, {"q", "b", "t1", "3"}, {"q", "b", "", "4"}};
    const auto layout = lay_out(items, ids);
    ASSERT_EQ(layout.groups.size(), 2u);
    EXPECT_EQ(layout.groups[0].partition, "b");
    EXPECT_THAT(layout.groups[0].items, ElementsAre(0, 3));
    EXPECT_THAT(layout.groups[1].items, ElementsAre(1));
    EXPECT_EQ(layout.slots[2].leader, 0u);
    EXPECT_EQ(layout.slots[1].leader, 1u) << "another partition is another identity";
    EXPECT_EQ(items[3].transaction_id, to_string(layout.slots[3].message_id));
}

TEST(SegmentPackerTest, AFrameHoldsWhatTheItemSays) {
    Uuid7 ids;
    std::vector<PushItem> items{{"q", "p", "t1", R"({"n":1e400})", uuid_of(9)},
                                {"q", "p", "t2", "null"}};
    const auto layout = lay_out(items, ids);
    const auto segment = SegmentPacker(3).pack("tenant", layout.groups[0], items, layout);
    EXPECT_EQ(segment.tenant, "tenant");
    EXPECT_EQ(segment.queue, "q");
    EXPECT_EQ(segment.partition, "p");
    EXPECT_EQ(segment.count, 2u);
    EXPECT_EQ(segment.hashes, std::string(hash_transaction_id("t1").view()) +
                                  std::string(hash_transaction_id("t2").view()));
    const auto bytes = decompress_segment(segment.blob);
    ASSERT_TRUE(bytes);
    const auto frames = parse_frames(*bytes);
    ASSERT_TRUE(frames);
    ASSERT_EQ(frames->size(), 2u);
    EXPECT_EQ((*frames)[0].message_id, layout.slots[0].message_id);
    EXPECT_EQ((*frames)[0].trace_id, uuid_of(9));
    EXPECT_EQ((*frames)[0].payload, R"({"n":1e400})");
    EXPECT_FALSE((*frames)[1].trace_id.known());
    EXPECT_EQ((*frames)[1].transaction_id, "t2");
}

} // namespace
} // namespace queen::broker
