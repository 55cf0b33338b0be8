#include "base/json.hpp"
#include "base/text.hpp"
#include "broker/message_browser.hpp"
#include "broker/message_status.hpp"
#include "broker/page_cursor.hpp"
#include "model/frame.hpp"
#include "model/names.hpp"
#include "model/segment.hpp"
#include "support/manual_clock.hpp"
#include "support/scripted_letter_store.hpp"
#include "support/scripted_message_store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace queen::broker {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kTenant{kDefaultTenant};
const Uuid kPartition = *parse_uuid("0199f0aa-0000-4000-8000-000000000002");

WallTime second(int n) {
    return WallTime{std::chrono::seconds(n)};
}

/// A partition whose segments have `size` messages "m<offset>" each.
class MessageBrowserTest : public testing::Test {
protected:
    MessageBrowserTest() {
        place_.partition_id = kPartition;
        place_.queue = "q";
        place_.partition = "p";
        messages_.on_slices = [this](MessageQuery query, const auto& done) {
            asked_.push_back(query);
            done(slices(query));
        };
        messages_.on_segments = [this](const auto& wanted, const auto& done) {
            std::vector<std::optional<std::string>> blobs;
            for (const auto& [id, base] : wanted) {
                fetched_.push_back(base.value());
                blobs.push_back(gone_ == base ? std::nullopt
                                              : std::optional(segment(base.value())));
            }
            fetches_.push_back(wanted.size());
            done(std::move(blobs));
        };
    }
    std::string segment(std::int64_t base) const {
        std::string frames;
        for (std::int64_t at = base; at < base + size_; ++at) {
            EXPECT_TRUE(append_frame(
                frames, {.transaction_id = "m" + std::to_string(at), .payload = payload_}));
        }
        return compress_segment(frames);
    }
    /// What the store would say: whole segments below the position, `want` messages or a few more.
    MessageSlices slices(const MessageQuery& query) const {
        MessageSlices out;
        out.places = {place_};
        std::int64_t top = query.after ? query.after->offset.value() - 1 : last_;
        for (std::int64_t count = 0; top >= 0 && count < query.want;) {
            const std::int64_t base = top - top % size_;
            out.slices.push_back({0, Offset{base}, second(static_cast<int>(base)), Offset{base},
                                  Offset{top}, bytes_});
            count += top - base + 1;
            top = base - 1;
        }
        for (const auto offset : dead_) {
            out.dead.emplace_back(0, Offset{offset});
        }
        return out;
    }
    std::string list(BrowseQuery query) {
        query.filter.tenant = kTenant;
        std::string body;
        browser_.list(query, [&](const Result<std::optional<std::string>>& answer) {
            body = answer ? **answer : answer.error().message;
        });
        return body;
    }
    static std::vector<std::string> txns(const std::string& body) {
        std::vector<std::string> all;
        const auto document = json::Document::parse(body);
        for (std::size_t i = 0; document && i < document->root()["messages"].size(); ++i) {
            all.emplace_back(document->root()["messages"].at(i)["transactionId"].string());
        }
        return all;
    }
    static std::string next(const std::string& body) {
        const auto document = json::Document::parse(body);
        return document ? std::string(document->root()["pagination"]["next"].string()) : body;
    }

    test::ManualClock clock_;
    test::ScriptedMessageStore messages_;
    test::ScriptedLetterStore letters_;
    FigureReads reads_{clock_, 30s};
    MessageBrowser browser_{messages_, letters_, reads_, clock_};
    MessagePlace place_;
    std::int64_t size_ = 4;
    std::int64_t last_ = 11;
    std::int64_t bytes_ = 100;
    std::string payload_ = "1";
    std::vector<std::int64_t> dead_;
    std::optional<Offset> gone_;
    std::vector<MessageQuery> asked_;
    std::vector<std::int64_t> fetched_;
    std::vector<std::size_t> fetches_;
};

TEST_F(MessageBrowserTest, APageIsCutOutOfItsSegmentsAndNoOthersAreFetched) {
    const std::string body = list({.limit = 3, .offset = 2});
    EXPECT_THAT(txns(body), ElementsAre("m9", "m8", "m7"));
    EXPECT_THAT(fetched_, ElementsAre(8, 4));
    EXPECT_EQ(asked_[0].want, 6) << "one more tells whether there are more";
    EXPECT_EQ(next(body), write_cursor(MessageKey{second(4), kPartition, Offset{7}}));
    EXPECT_EQ(next(list({.limit = 12})), "") << "all of it";
}

TEST_F(MessageBrowserTest, K41_APageByOffsetGoesOnWhereTheOneBeforeEnded) {
    EXPECT_THAT(txns(list({.limit = 3})), ElementsAre("m11", "m10", "m9"));
    last_ = 19; // more arrive
    EXPECT_THAT(txns(list({.limit = 3, .offset = 3})), ElementsAre("m8", "m7", "m6"));
    EXPECT_THAT(txns(list({.limit = 3, .offset = 6})), ElementsAre("m5", "m4", "m3"));
    EXPECT_THAT(txns(list({.limit = 3})), ElementsAre("m19", "m18", "m17"));
    EXPECT_THAT(list({.limit = 3, .offset = 20'000}), HasSubstr("0 to 10000"));
}

TEST_F(MessageBrowserTest, AStatusIsDecidedMessageByMessage) {
    place_.groups = {{.name = "g",
                      .committed = Offset{3},
                      .leased_to = Offset{5},
                      .lease_expires_at = second(50)}};
    dead_ = {1, 9};
    const auto with = [&](MessageStatus status) {
        BrowseQuery query;
        query.filter.status = status;
        return txns(list(query));
    };
    EXPECT_THAT(with(MessageStatus::completed), ElementsAre("m3", "m2", "m0"));
    EXPECT_THAT(with(MessageStatus::processing), ElementsAre("m5", "m4"));
    EXPECT_THAT(with(MessageStatus::pending), ElementsAre("m11", "m10", "m8", "m7", "m6"));
    EXPECT_THAT(with(MessageStatus::dead_letter), ElementsAre("m9", "m1"));
}

// The work for a status that nothing has is bounded, and the answer says so and where to go on.
TEST_F(MessageBrowserTest, ARareStatusEndsTheSearchAfterFourLooks) {
    last_ = 99'999;
    BrowseQuery query;
    query.filter.status = MessageStatus::dead_letter;
    const std::string body = list(query);
    EXPECT_EQ(asked_.size(), 4u);
    EXPECT_EQ(txns(body).size(), 0u);
    EXPECT_THAT(body, HasSubstr(R"("complete":false)"));
    const auto cursor = read_message_cursor(next(body));
    ASSERT_TRUE(cursor);
    EXPECT_EQ(cursor->offset, Offset{84'000}) << "4 looks at 4,000 messages";
    EXPECT_EQ(asked_[1].after->offset, Offset{96'000});
}

TEST_F(MessageBrowserTest, SegmentsAreFetchedAFewMegabytesAtATime) {
    bytes_ = 3 << 20;
    list({.limit = 12});
    EXPECT_THAT(fetches_, ElementsAre(2u, 1u));
}

TEST_F(MessageBrowserTest, APageThatReadsTooMuchEndsEarlyAndSaysWhereToGoOn) {
    bytes_ = 200 << 20;
    const std::string body = list({.limit = 12});
    EXPECT_EQ(txns(body).size(), 8u);
    EXPECT_THAT(body, HasSubstr(R"("complete":false)"));
    EXPECT_EQ(read_message_cursor(next(body))->offset, Offset{4});
    const std::string rest = list({.limit = 12, .offset = 8});
    EXPECT_THAT(txns(rest), ElementsAre("m3", "m2", "m1", "m0"));
}

TEST_F(MessageBrowserTest, PayloadsBeyondAPagesBytesStayBehind) {
    payload_ = "\"" + std::string(3 << 20, 'x') + "\"";
    const std::string body = list({.limit = 4});
    EXPECT_EQ(txns(body).size(), 4u);
    std::size_t there = 0;
    for (std::size_t at = 0; (at = body.find("\"payloadAvailable\":true", at)) != std::string::npos;
         ++at) {
        ++there;
    }
    EXPECT_EQ(there, 2u);
    EXPECT_THAT(body, HasSubstr(R"("data":null,"payload":null,"payloadAvailable":false)"));
}

TEST_F(MessageBrowserTest, WhatRetentionTookMeanwhileIsNotShown) {
    gone_ = Offset{8};
    EXPECT_THAT(txns(list({.limit = 6})), ElementsAre("m7", "m6"));
}

TEST_F(MessageBrowserTest, ASegmentThatDoesNotParseIsShownAsUnreadable) {
    messages_.on_segments = [](const auto& wanted, const auto& done) {
        done(std::vector<std::optional<std::string>>(wanted.size(), std::string("junk")));
    };
    const std::string body = list({.limit = 1});
    EXPECT_THAT(body, HasSubstr(R"("id":null,"transactionId":null,"txnHash":null)"));
    EXPECT_THAT(body, HasSubstr(R"("payloadAvailable":false)"));
}

TEST_F(MessageBrowserTest, AHashThatAnotherMessageHasFindsNothing) {
    FoundMessage found;
    found.place = place_;
    found.options = "{}";
    found.offset = Offset{2};
    found.segment = StoredSegment{Offset{0}, Offset{3}, second(0), segment(0)};
    messages_.on_find = [&](const std::string&, Uuid, TxnHash, const auto& done) {
        done(std::optional(found));
    };
    letters_.on_newest = [](const std::string&, Uuid, const std::string&, const auto& done) {
        done(std::optional<DeadLetter>{});
    };
    const auto look = [&](const std::string& txn) {
        std::optional<std::string> body;
        browser_.find(kTenant, kPartition, txn,
                      [&](const Result<std::optional<std::string>>& answer) { body = *answer; });
        return body;
    };
    ASSERT_TRUE(look("m2"));
    EXPECT_THAT(*look("m2"), HasSubstr(R"("transactionId":"m2","data":1,)"));
    EXPECT_FALSE(look("another"));
}

// ST-5, in its order.
TEST(MessageStatusTest, ADeadLetterGoesBeforeCompletedBeforeProcessing) {
    MessagePlace place;
    const auto status = [&](int offset, bool dead = false) {
        return standing_of(place, Offset{offset}, dead).status;
    };
    EXPECT_EQ(status(0), MessageStatus::pending);
    EXPECT_EQ(status(0, true), MessageStatus::dead_letter);
    place.groups = {{.name = std::string(kQueueModeGroup), .committed = Offset{4}}};
    EXPECT_EQ(status(4), MessageStatus::completed);
    EXPECT_EQ(status(5), MessageStatus::pending);
    place.groups.push_back({.name = "g",
                            .committed = Offset{1},
                            .leased_to = Offset{6},
                            .lease_expires_at = second(9)});
    EXPECT_EQ(status(4), MessageStatus::processing) << "queue mode no longer counts";
    EXPECT_EQ(status(1), MessageStatus::completed);
    EXPECT_EQ(status(6), MessageStatus::processing);
    EXPECT_EQ(status(7), MessageStatus::pending);
    place.groups.push_back({.name = "h", .committed = Offset{0}});
    EXPECT_EQ(status(1), MessageStatus::pending) << "all named groups, not one";
    EXPECT_EQ(status(0, true), MessageStatus::dead_letter);
    const Standing standing = standing_of(place, Offset{1}, false);
    EXPECT_EQ(standing.consumed_by, 1u);
    EXPECT_EQ(standing.named_groups, 2u);
    EXPECT_EQ(standing.queue_mode, MessageStatus::completed);
    EXPECT_EQ(standing_of(place, Offset{2}, false).lease_expires_at, second(9));
}

TEST(PageCursorTest, AreReadBackAndNothingElseIs) {
    const MessageKey message{second(7), kPartition, Offset{3}};
    EXPECT_EQ(read_message_cursor(write_cursor(message)), message);
    const LetterKey letter{second(7), kPartition};
    EXPECT_EQ(read_letter_cursor(write_cursor(letter)), letter);
    for (const std::string text :
         {"", "7", "7.x", "x.0199f0aa-0000-4000-8000-000000000002.1",
          "7.0199f0aa-0000-4000-8000-000000000002.-1", "7.0199f0aa-0000-4000-8000-000000000002.1.1",
          "9223372036854775807.0199f0aa-0000-4000-8000-000000000002.1"}) {
        EXPECT_FALSE(read_message_cursor(text)) << text;
        EXPECT_FALSE(read_letter_cursor(text)) << text;
    }
}

} // namespace
} // namespace queen::broker
