#include "base/text.hpp"
#include "broker/dedup_cache.hpp"
#include "broker/push.hpp"
#include "core/broker/broker_parts.hpp"
#include "model/frame.hpp"
#include "model/names.hpp"
#include "model/segment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace queen::broker {
namespace {

using test::uuid_of;
using testing::ElementsAre;

class PushTest : public BrokerParts {
protected:
    std::vector<PushItemResult> push(std::vector<PushItem> items) {
        std::optional<std::vector<PushItemResult>> results;
        pushes_.push({.tenant = std::string(kDefaultTenant), .items = std::move(items), .hold = {}},
                     [&](std::vector<PushItemResult> all) { results = std::move(all); });
        EXPECT_TRUE(results.has_value());
        return results.value_or(std::vector<PushItemResult>{});
    }

    /// Every segment is stored at offset 10.
    void store_everything() {
        store_.on_push = [this](const std::vector<PushSegment>& segments, const auto& done) {
            sent_.push_back(segments);
            std::vector<PushOutcome> outcomes(segments.size());
            for (auto& outcome : outcomes) {
                outcome.base = Offset{10};
                outcome.partition_id = uuid_of(7);
            }
            done(outcomes);
        };
    }

    static std::vector<std::string> transactions_of(const PushSegment& segment) {
        const auto bytes = decompress_segment(segment.blob);
        std::vector<std::string> ids;
        const auto frames = parse_frames(*bytes);
        for (const auto& frame : *frames) {
            ids.emplace_back(frame.transaction_id);
        }
        return ids;
    }

    Push pushes_{store_, announcer_, clock_, {.call_segments = 4}};
    std::vector<std::vector<PushSegment>> sent_;
};

TEST_F(PushTest, PacksOneSegmentPerPartitionInRequestOrder) {
    store_everything();
    const auto results =
        push({{"q", "a", "t1", "1"}, {"q", "b", "t2", "2"}, {"q", "a", "t3", "3"}});
    ASSERT_EQ(sent_.size(), 1u);
    ASSERT_EQ(sent_[0].size(), 2u);
    EXPECT_THAT(transactions_of(sent_[0][0]), ElementsAre("t1", "t3"));
    EXPECT_THAT(transactions_of(sent_[0][1]), ElementsAre("t2"));
    EXPECT_EQ(sent_[0][0].hashes.size(), 32u);
    EXPECT_EQ(results[0].offset, Offset{10});
    EXPECT_EQ(results[2].offset, Offset{11});
    EXPECT_EQ(results[1].offset, Offset{10});
    EXPECT_THAT(source_->marks, ElementsAre("q/a*2", "q/b*1"));
}

TEST_F(PushTest, AnItemWithoutTransactionIdGetsItsMessageId) {
    store_everything();
    const auto results = push({{"q", "a", "", "1"}});
    EXPECT_EQ(results[0].transaction_id, to_string(results[0].message_id));
    EXPECT_EQ(results[0].message_id.bytes[6] >> 4, 7);
}

TEST_F(PushTest, ARepeatInsideTheRequestFollowsItsLeader) {
    store_everything();
    const auto results = push({{"q", "a", "t", "1"}, {"q", "a", "t", "2"}, {"q", "b", "t", "3"}});
    EXPECT_EQ(results[0].status, PushStatus::queued);
    EXPECT_EQ(results[1].status, PushStatus::duplicate);
    EXPECT_EQ(results[1].message_id, results[0].message_id);
    EXPECT_EQ(results[1].offset, results[0].offset);
    EXPECT_EQ(results[2].status, PushStatus::queued) << "another partition is another identity";
}

TEST_F(PushTest, AFollowerInheritsItsLeadersError) {
    store_.on_push = [](const auto&, const auto& done) {
        done(fail(Errc::unavailable, "no session became free"));
    };
    const auto results = push({{"q", "a", "t", "1"}, {"q", "a", "t", "2"}});
    EXPECT_EQ(results[1].status, PushStatus::error);
    EXPECT_EQ(results[1].error, "no session became free");
    EXPECT_TRUE(source_->marks.empty()) << "nothing was stored, nothing is announced";
}

// FUS-9: nothing of a segment with a duplicate was written; its other frames must not be lost.
TEST_F(PushTest, SurvivorsOfADuplicateAreRepackedAndStored) {
    const auto first_id = uuid_of(42);
    std::string stored;
    ASSERT_TRUE(append_frame(stored, {.message_id = uuid_of(41), .transaction_id = "t0"}));
    ASSERT_TRUE(append_frame(stored, {.message_id = first_id, .transaction_id = "t2"}));
    store_.on_push = [this](const std::vector<PushSegment>& segments, const auto& done) {
        sent_.push_back(segments);
        PushOutcome outcome;
        outcome.partition_id = uuid_of(7);
        if (sent_.size() == 1) {
            outcome.duplicate = true;
            outcome.repeats = {{1, Offset{5}}};
        } else {
            outcome.base = Offset{10};
        }
        done(std::vector<PushOutcome>{outcome});
    };
    store_.on_segment_at = [&](const Uuid& id, Offset offset, const auto& done) {
        EXPECT_EQ(id, uuid_of(7));
        EXPECT_EQ(offset, Offset{5});
        done(StoredSegment{Offset{4}, Offset{5}, {}, compress_segment(stored)});
    };
    const auto results =
        push({{"q", "a", "t1", "1"}, {"q", "a", "t2", "2"}, {"q", "a", "t3", "3"}});
    ASSERT_EQ(sent_.size(), 2u);
    EXPECT_THAT(transactions_of(sent_[1][0]), ElementsAre("t1", "t3"));
    EXPECT_EQ(results[0].offset, Offset{10});
    EXPECT_EQ(results[1].status, PushStatus::duplicate);
    EXPECT_EQ(results[1].message_id, first_id);
    EXPECT_EQ(results[1].offset, Offset{5});
    EXPECT_EQ(results[2].offset, Offset{11});
}

// DED-4: the vouch is made when the segment is sent, each answer is told, and what a duplicate left
// over is vouched for on its own.
TEST_F(PushTest, WhatTheCacheComparedIsVouchedForAndSurvivorsAgain) {
    DedupCache cache(store_, ticker_, clock_, {});
    Push pushes(store_, announcer_, clock_, {}, &cache);
    Offset next{1000};
    store_.on_push = [&](const std::vector<PushSegment>& segments, const auto& done) {
        sent_.push_back(segments);
        PushOutcome outcome;
        outcome.partition_id = uuid_of(7);
        outcome.window = std::chrono::seconds(3600);
        outcome.probed = segments[0].vouch ? 0 : next.value();
        if (segments[0].count == 2) {
            outcome.duplicate = true;
            outcome.repeats = {{0, Offset{1001}}};
        } else {
            outcome.base = next;
            outcome.after = WallTime{std::chrono::seconds(next.value() - 1)};
            outcome.created_at = WallTime{std::chrono::seconds(next.value())};
            next = Offset{next.value() + 1};
        }
        done(std::vector<PushOutcome>{outcome});
    };
    store_.on_window_hashes = [](const HashPage&, const auto& done) {
        done(std::vector<HashRow>{}); // the window holds no more
    };
    store_.on_segment_at = [](const auto&, const auto&, const auto& done) { done(std::nullopt); };
    const auto push = [&](std::vector<std::string> ids) {
        std::vector<PushItem> items;
        for (const auto& id : ids) {
            items.push_back({"q", "a", id, "1"});
        }
        std::vector<PushItemResult> results;
        pushes.push({.tenant = std::string(kDefaultTenant), .items = std::move(items), .hold = {}},
                    [&](std::vector<PushItemResult> all) { results = std::move(all); });
        return results;
    };
    push({"t0"});
    push({"t1"});
    push({"t2"});
    EXPECT_EQ(sent_[0][0].vouch, std::nullopt);
    EXPECT_EQ(sent_[1][0].vouch, std::nullopt);
    EXPECT_EQ(sent_[2][0].vouch, (Vouch{uuid_of(7), Offset{1000}, Offset{1001},
                                        WallTime{std::chrono::seconds(1001)}}));
    const auto results = push({"t1", "t3"});
    EXPECT_EQ(sent_[3][0].vouch, std::nullopt) << "the store decides on t1";
    EXPECT_EQ(sent_[4][0].count, 1u);
    EXPECT_EQ(sent_[4][0].vouch, (Vouch{uuid_of(7), Offset{1000}, Offset{1002},
                                        WallTime{std::chrono::seconds(1002)}}));
    EXPECT_EQ(results.at(0).status, PushStatus::duplicate);
    EXPECT_EQ(results.at(1).offset, Offset{1003});
}

TEST_F(PushTest, ADuplicateWhoseSegmentIsGoneHasTheZeroId) {
    store_.on_push = [](const auto&, const auto& done) {
        PushOutcome outcome;
        outcome.duplicate = true;
        outcome.repeats = {{0, Offset{5}}};
        done(std::vector<PushOutcome>{outcome});
    };
    store_.on_segment_at = [](const auto&, const auto&, const auto& done) { done(std::nullopt); };
    const auto results = push({{"q", "a", "t1", "1"}});
    EXPECT_EQ(results[0].status, PushStatus::duplicate);
    EXPECT_FALSE(results[0].message_id.known());
}

TEST_F(PushTest, ASegmentThatDoesNotHoldTheDuplicateIsAskedForOnce) {
    store_.on_push = [](const auto&, const auto& done) {
        PushOutcome outcome;
        outcome.duplicate = true;
        outcome.repeats = {{0, Offset{5}}};
        done(std::vector<PushOutcome>{outcome});
    };
    std::string stored;
    ASSERT_TRUE(append_frame(stored, {.message_id = uuid_of(41), .transaction_id = "t0"}));
    int lookups = 0;
    store_.on_segment_at = [&](const auto&, const auto&, const auto& done) {
        ++lookups == 1 ? done(StoredSegment{Offset{9}, Offset{9}, {}, compress_segment(stored)})
                       : done(std::nullopt);
    };
    const auto results = push({{"q", "a", "t1", "1"}});
    EXPECT_FALSE(results[0].message_id.known());
    EXPECT_EQ(lookups, 1);
}

// One look-up a segment, whatever the order of the items.
TEST_F(PushTest, DuplicatesOfOneSegmentAreLookedUpTogether) {
    store_.on_push = [](const std::vector<PushSegment>& segments, const auto& done) {
        std::vector<PushOutcome> outcomes;
        for (std::uint8_t n = 0; n < segments.size(); ++n) {
            PushOutcome outcome;
            outcome.duplicate = true;
            outcome.partition_id = uuid_of(n);
            outcome.repeats = {{0, Offset{6}}, {1, Offset{5}}, {2, Offset{3}}};
            outcomes.push_back(outcome);
        }
        done(outcomes);
    };
    std::vector<std::pair<Uuid, std::int64_t>> lookups;
    store_.on_segment_at = [&](const Uuid& id, Offset offset, const auto& done) {
        lookups.emplace_back(id, offset.value());
        std::string stored;
        const std::int64_t base = offset.value() < 4 ? 0 : 4;
        for (std::int64_t at = base; at < base + 4; ++at) {
            ASSERT_TRUE(append_frame(stored, {.message_id = uuid_of(static_cast<std::uint8_t>(at)),
                                              .transaction_id = "t"}));
        }
        done(StoredSegment{Offset{base}, Offset{base + 3}, {}, compress_segment(stored)});
    };
    const auto results = push({{"q", "a", "1", "1"},
                               {"q", "b", "1", "1"},
                               {"q", "a", "2", "1"},
                               {"q", "b", "2", "1"},
                               {"q", "a", "3", "1"},
                               {"q", "b", "3", "1"}});
    EXPECT_EQ(lookups.size(), 4u) << "two segments in each of two partitions";
    for (std::size_t i = 0; i < results.size(); ++i) {
        EXPECT_EQ(results[i].message_id,
                  uuid_of(static_cast<std::uint8_t>(results[i].offset->value())))
            << i;
    }
}

TEST_F(PushTest, ADuplicateAnswerThatNamesNobodyIsAnErrorNotALoop) {
    int calls = 0;
    store_.on_push = [&](const auto&, const auto& done) {
        ++calls;
        PushOutcome outcome;
        outcome.duplicate = true;
        done(std::vector<PushOutcome>{outcome});
    };
    const auto results = push({{"q", "a", "t1", "1"}});
    EXPECT_EQ(results[0].status, PushStatus::error);
    EXPECT_EQ(calls, 1);
}

// PUSH-4: one bad group does not fail its neighbours.
TEST_F(PushTest, ABadGroupIsIsolatedByHalving) {
    store_.on_push = [this](const std::vector<PushSegment>& segments, const auto& done) {
        sent_.push_back(segments);
        for (const auto& segment : segments) {
            if (segment.partition == "bad") {
                done(fail(Errc::store_failed, "refused for good", "23514"));
                return;
            }
        }
        std::vector<PushOutcome> outcomes(segments.size());
        for (auto& outcome : outcomes) {
            outcome.base = Offset{0};
        }
        done(outcomes);
    };
    const auto results = push(
        {{"q", "a", "1", "1"}, {"q", "b", "2", "2"}, {"q", "bad", "3", "3"}, {"q", "c", "4", "4"}});
    EXPECT_EQ(results[0].status, PushStatus::queued);
    EXPECT_EQ(results[1].status, PushStatus::queued);
    EXPECT_EQ(results[2].status, PushStatus::error);
    EXPECT_EQ(results[2].error, "refused for good");
    EXPECT_EQ(results[3].status, PushStatus::queued);
}

// PUSH-9: a locked partition costs its own items, and the others wait for it once.
TEST_F(PushTest, ALockedPartitionIsIsolatedAndTriedAgainAlone) {
    std::map<std::string, int> tries;
    store_.on_push = [&](const std::vector<PushSegment>& segments, const auto& done) {
        bool locked = false;
        for (const auto& segment : segments) {
            ++tries[segment.partition];
            locked |= segment.partition == "locked";
        }
        if (locked) {
            done(fail(Errc::transient, "canceling statement due to lock timeout", "55P03"));
            return;
        }
        std::vector<PushOutcome> outcomes(segments.size());
        for (auto& outcome : outcomes) {
            outcome.base = Offset{0};
        }
        done(outcomes);
    };
    const auto results = push({{"q", "a", "1", "1"}, {"q", "locked", "2", "2"}});
    EXPECT_EQ(results[0].status, PushStatus::queued);
    EXPECT_EQ(results[1].status, PushStatus::error);
    EXPECT_EQ(results[1].error, "the partition is locked in the database; try again");
    EXPECT_EQ(tries["a"], 2) << "once with the other, once alone";
    EXPECT_EQ(tries["locked"], 4) << "once with the other, three times alone";
}

TEST_F(PushTest, ALostRaceIsSentAgainAndThenGivenUp) {
    int calls = 0;
    std::vector<std::string> blobs;
    store_.on_push = [&](const std::vector<PushSegment>& segments, const auto& done) {
        ++calls;
        blobs.push_back(segments.at(0).blob + segments.at(1).hashes);
        done(fail(Errc::transient, "deadlock detected", "40P01"));
    };
    EXPECT_EQ(push({{"q", "a", "1", "1"}, {"q", "b", "2", "2"}})[1].status, PushStatus::error);
    EXPECT_EQ(calls, 3);
    EXPECT_THAT(blobs, testing::Each(blobs.at(0))) << "the same bytes each time";
}

TEST_F(PushTest, ATimeOutIsNotSentAgain) {
    int calls = 0;
    store_.on_push = [&](const auto&, const auto& done) {
        ++calls;
        done(fail(Errc::timeout, "the statement ran over its time"));
    };
    push({{"q", "a", "1", "1"}, {"q", "b", "2", "2"}});
    EXPECT_EQ(calls, 1)
        << "it may have committed: only the client's retry with the same id is safe";
}

TEST_F(PushTest, ALostLinkIsNotSentAgain) {
    int calls = 0;
    store_.on_push = [&](const auto&, const auto& done) {
        ++calls;
        done(fail(Errc::transient, "the link to the database broke"));
    };
    EXPECT_EQ(push({{"q", "a", "1", "1"}})[0].status, PushStatus::error);
    EXPECT_EQ(calls, 1) << "it may have committed, and without a dedup window be stored twice";
}

TEST_F(PushTest, ManyPartitionsGoInStatementsOfBoundedSize) {
    store_everything();
    std::vector<PushItem> items;
    for (int i = 0; i < 10; ++i) {
        items.push_back({"q", "p" + std::to_string(i), "t", "1"});
    }
    push(std::move(items));
    ASSERT_EQ(sent_.size(), 3u);
    EXPECT_EQ(sent_[0].size(), 4u);
    EXPECT_EQ(sent_[2].size(), 2u);
}

} // namespace
} // namespace queen::broker
