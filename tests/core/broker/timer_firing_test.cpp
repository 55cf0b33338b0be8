#include "broker/timer_firing.hpp"
#include "broker_parts.hpp"
#include "model/frame.hpp"
#include "model/names.hpp"
#include "model/segment.hpp"
#include "support/scripted_timer_store.hpp"

#include <gmock/gmock.h>

#include <optional>

namespace queen::broker {
namespace {

using namespace std::chrono_literals;
using plugin::TimerOutcome;
using plugin::TimerResult;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Keeps copies of what it is answered.
struct RecordingDriver final : plugin::TimerDriver {
    struct Answer {
        TimerOutcome outcome{};
        std::string error;
        plugin::TimerBatch batch = 0;
        std::uint64_t due = 0, rows = 0, exhausted = 0;
        Nanoseconds next_in{0};
        std::vector<std::uint32_t> segment_rows;
        std::vector<std::uint64_t> segment_bytes;
        std::vector<std::int32_t> attempts;
        std::vector<TimerResult> results;
        std::size_t announced = 0; ///< calls with marks until then
    };
    explicit RecordingDriver(const test::RecordingSource& source) : source_(source) {}
    void stop() override {}
    void scheduled(SteadyTime) override {}
    void answered(plugin::TimerCall call, const plugin::TimerAnswer& answer) override {
        Answer& kept = answers[call];
        kept = {answer.outcome, std::string(answer.error), answer.batch,  answer.due,
                answer.rows,    answer.exhausted,          answer.next_in};
        for (const auto& segment : answer.segments) {
            kept.segment_rows.push_back(segment.rows);
            kept.segment_bytes.push_back(segment.bytes);
            kept.attempts.push_back(segment.attempts);
        }
        kept.results.assign(answer.results.begin(), answer.results.end());
        kept.announced = source_.origins.size();
    }
    SteadyTime tick(SteadyTime) override { return SteadyTime::max(); }
    std::map<plugin::TimerCall, Answer> answers;

private:
    const test::RecordingSource& source_;
};

class TimerFiringTest : public BrokerParts {
protected:
    TimerFiringTest() {
        firing_->serve(driver_);
        timers_.on_fire = [this](TimerFire fire, Done<std::vector<TimerFired>> done) {
            fires_.push_back(fire);
            std::vector<TimerFired> all(fire.segments.size());
            for (auto& one : all) {
                one = {TimerFired::Kind::fired, test::uuid_of(7), Offset{3}};
            }
            done(all);
        };
        timers_.on_fail = [this](TimerFail fail, Done<TimerFailed> done) {
            fails_.push_back(fail);
            done(TimerFailed{static_cast<std::int64_t>(fail.rows.size()), {}});
        };
    }
    static ClaimedTimer row(std::string key, std::string partition = "p") {
        ClaimedTimer made;
        made.tenant = std::string(kDefaultTenant);
        made.queue = "q";
        made.key = key;
        made.partition = std::move(partition);
        made.token = test::uuid_of(1);
        made.transaction_id = "t-" + key;
        made.message_id = test::uuid_of(9);
        made.payload = "{\"k\":\"" + key + "\"}";
        made.late = 5ms;
        return made;
    }
    RecordingDriver::Answer claim(std::vector<ClaimedTimer> rows) {
        timers_.on_claim = [&](TimerClaim claim, Done<std::vector<ClaimedTimer>> done) {
            claims_.push_back(claim);
            done(std::move(rows));
        };
        EXPECT_TRUE(firing_->claim(++call_, 1, 30s, 200, 50));
        return driver_->answers[call_];
    }
    RecordingDriver::Answer fire(plugin::TimerBatch batch, std::vector<std::uint32_t> places) {
        EXPECT_TRUE(firing_->fire(++call_, batch, places));
        return driver_->answers[call_];
    }
    static std::vector<std::string> keys_of(const TimerFail& fail) {
        std::vector<std::string> keys;
        for (const auto& row : fail.rows) {
            keys.push_back(row.key);
        }
        return keys;
    }
    static std::vector<Frame> frames_of(const TimerFire::Segment& segment, std::string& bytes) {
        bytes = *decompress_segment(segment.blob);
        return *parse_frames(bytes);
    }

    test::ScriptedTimerStore timers_;
    bool enabled_ = true;
    std::shared_ptr<RecordingDriver> driver_ = std::make_shared<RecordingDriver>(*source_);
    std::shared_ptr<TimerFiring> firing_ = std::make_shared<TimerFiring>(
        timers_, announcer_, clock_, TimerFiring::Options{.enabled = [this] { return enabled_; }});
    plugin::TimerCall call_ = 0;
    std::vector<TimerClaim> claims_;
    std::vector<TimerFire> fires_;
    std::vector<TimerFail> fails_;
};

TEST_F(TimerFiringTest, RowsOfADestinationBecomeOneSegmentInTheOrderOfTheClaim) {
    auto sealed = row("b", "other");
    sealed.encrypted = true;
    sealed.producer_sub = "alice";
    const auto claimed = claim({row("z"), sealed, row("a")});
    EXPECT_THAT(claimed.segment_rows, ElementsAre(2, 1));
    EXPECT_THAT(fire(claimed.batch, {0, 1}).results,
                ElementsAre(TimerResult::fired, TimerResult::fired));
    ASSERT_EQ(fires_.size(), 1U);
    const auto& segments = fires_[0].segments;
    EXPECT_EQ(segments[0].count, 2);
    EXPECT_EQ(segments[0].rows[1].key, "a");
    EXPECT_EQ(segments[0].hashes, std::string(hash_transaction_id("t-z").view()) +
                                      std::string(hash_transaction_id("t-a").view()));
    std::string bytes;
    auto frames = frames_of(segments[0], bytes);
    EXPECT_EQ(frames[0].transaction_id, "t-z");
    EXPECT_EQ(frames[1].payload, R"({"k":"a"})");
    EXPECT_EQ(frames[1].message_id, test::uuid_of(9));
    frames = frames_of(segments[1], bytes);
    EXPECT_TRUE(frames[0].encrypted);
    EXPECT_EQ(frames[0].producer_sub, "alice");
}

TEST_F(TimerFiringTest, CompressedPayloadsAreDeliveredUnpacked) {
    auto packed = row("a");
    packed.payload = compress_segment(R"({"x":1})");
    packed.payload_zstd = true;
    fire(claim({packed}).batch, {0});
    std::string bytes;
    EXPECT_EQ(frames_of(fires_.at(0).segments.at(0), bytes).at(0).payload, R"({"x":1})");
}

TEST_F(TimerFiringTest, SW10_WhatWasFiredIsAnnouncedAsAPushBeforeTheDriverHears) {
    const auto answer = fire(claim({row("a"), row("b"), row("c", "r")}).batch, {0, 1});
    EXPECT_EQ(answer.announced, 1U);
    EXPECT_THAT(source_->origins, ElementsAre(plugin::Origin::timer));
    EXPECT_THAT(source_->marks, ElementsAre("q/p*2", "q/r*1"));
}

TEST_F(TimerFiringTest, WhatWasNotFiredIsNotAnnounced) {
    timers_.on_fire = [](TimerFire, Done<std::vector<TimerFired>> done) {
        done(std::vector<TimerFired>{{TimerFired::Kind::stale, {}, Offset{-1}},
                                     {TimerFired::Kind::duplicate, {}, Offset{-1}}});
    };
    const auto answer = fire(claim({row("a"), row("c", "r")}).batch, {0, 1});
    EXPECT_THAT(answer.results, ElementsAre(TimerResult::stale, TimerResult::duplicate));
    EXPECT_THAT(source_->marks, IsEmpty());
    EXPECT_THAT(firing_->stats().results, ElementsAre(0, 1, 1));
}

TEST_F(TimerFiringTest, ARowOfWhichNoFrameCanBeMadeFailsAlone) {
    auto corrupt = row("bad");
    corrupt.payload_zstd = true;
    const auto claimed = claim({row("a"), corrupt, row("b")});
    EXPECT_THAT(claimed.segment_rows, ElementsAre(2, 1));
    EXPECT_EQ(claimed.segment_bytes[1], 0U);
    const auto refused = fire(claimed.batch, {1});
    EXPECT_EQ(refused.outcome, TimerOutcome::permanent);
    EXPECT_THAT(refused.error, HasSubstr("'bad'"));
    EXPECT_THAT(fires_, IsEmpty());
    EXPECT_EQ(fire(claimed.batch, {0}).outcome, TimerOutcome::ok);
    const std::vector<std::uint32_t> bad{1};
    EXPECT_TRUE(firing_->fail(++call_, claimed.batch, bad, 2s, "why", true, 5));
    ASSERT_EQ(fails_.size(), 1U);
    EXPECT_EQ(fails_[0].rows.at(0).key, "bad");
    EXPECT_EQ(fails_[0].backoff, 2s);
    EXPECT_TRUE(fails_[0].counted);
    EXPECT_EQ(firing_->stats().poisoned, 1U);
}

TEST_F(TimerFiringTest, ExhaustedRowsAreFiledOnce) {
    const auto claimed = claim({row("a")});
    timers_.on_fail = [](TimerFail fail, Done<TimerFailed> done) {
        done(TimerFailed{1, fail.rows});
    };
    std::vector<std::size_t> filed;
    timers_.on_dead_letter = [&](std::vector<TimerClaimKey> keys, std::int32_t,
                                 Done<std::int64_t> done) {
        filed.push_back(keys.size());
        done(static_cast<std::int64_t>(keys.size()));
    };
    const std::vector<std::uint32_t> all{0};
    EXPECT_TRUE(firing_->fail(++call_, claimed.batch, all, 1s, "why", true, 1));
    EXPECT_EQ(driver_->answers[call_].exhausted, 1U);
    EXPECT_TRUE(firing_->dead_letter(++call_, claimed.batch, 1));
    EXPECT_EQ(driver_->answers[call_].rows, 1U);
    EXPECT_TRUE(firing_->dead_letter(++call_, claimed.batch, 1));
    EXPECT_THAT(filed, ElementsAre(1, 0));
    EXPECT_EQ(firing_->stats().dead_letters, 1U);
}

TEST_F(TimerFiringTest, PausedNothingIsClaimedOrFired) {
    const auto claimed = claim({row("a")});
    enabled_ = false;
    EXPECT_EQ(fire(claimed.batch, {0}).outcome, TimerOutcome::paused);
    EXPECT_EQ(claim({row("b")}).outcome, TimerOutcome::paused);
    EXPECT_EQ(claims_.size(), 1U);
    EXPECT_THAT(fires_, IsEmpty());
}

TEST_F(TimerFiringTest, ABatchIsBoundedInBytesAndTheRestIsHandedBackUncounted) {
    std::vector<ClaimedTimer> rows;
    for (int i = 0; i < 10; ++i) {
        rows.push_back(row(std::to_string(i)));
        rows.back().payload = std::string(10 << 20, '1');
    }
    const auto claimed = claim(rows);
    EXPECT_THAT(claimed.segment_rows, ElementsAre(4));
    ASSERT_EQ(fails_.size(), 1U);
    EXPECT_EQ(fails_[0].rows.size(), 6U);
    EXPECT_FALSE(fails_[0].counted);
    EXPECT_EQ(fails_[0].backoff, 0ms);
    EXPECT_EQ(claims_.back().bytes, 32 << 20) << "nor does the store send much more";
    claim({row("a"), row("b"), row("c"), row("d")});
    EXPECT_EQ(claims_.back().rows, 4) << "no more than fitted";
    claim({});
    EXPECT_EQ(claims_.back().rows, 8) << "they did: twice as many";
}

TEST_F(TimerFiringTest, WhatIsReleasedWithoutHavingBeenDealtWithIsHandedBack) {
    timers_.on_fire = [](const TimerFire&, const Done<std::vector<TimerFired>>& done) {
        done(std::vector{TimerFired{TimerFired::Kind::fired, test::uuid_of(7), Offset{3}},
                         TimerFired{}}); // the second is stale
    };
    const auto claimed = claim({row("a", "1"), row("b", "2"), row("c", "3"), row("d", "4")});
    fire(claimed.batch, {0, 1});
    ASSERT_TRUE(
        firing_->fail(++call_, claimed.batch, std::vector<std::uint32_t>{2}, 1s, "x", false, 5));
    fails_.clear();
    firing_->release(claimed.batch);
    ASSERT_EQ(fails_.size(), 1U);
    EXPECT_THAT(keys_of(fails_[0]), ElementsAre("b", "d"));
    EXPECT_FALSE(fails_[0].counted);
    EXPECT_EQ(fails_[0].backoff, 0ms) << "they keep their place";
    firing_->due(++call_, 1, 1);
    EXPECT_EQ(fails_.size(), 1U) << "they were all there";
}

TEST_F(TimerFiringTest, ABatchWhoseRowsAreAllGoneIsReleasedWithoutACall) {
    const auto claimed = claim({row("a")});
    fire(claimed.batch, {0});
    firing_->release(claimed.batch);
    EXPECT_THAT(fails_, IsEmpty());
}

TEST_F(TimerFiringTest, RowsThatAreLockedWhenTheyAreHandedBackAreTriedAgainWithTheNextProbes) {
    timers_.on_fail = [this](const TimerFail& fail, const Done<TimerFailed>& done) {
        fails_.push_back(fail);
        done(TimerFailed{});
    };
    const auto claimed = claim({row("a")});
    firing_->release(claimed.batch);
    for (int i = 0; i < 2 * TimerFiring::kTries; ++i) {
        firing_->due(++call_, 1, 1);
    }
    ASSERT_EQ(fails_.size(), static_cast<std::size_t>(TimerFiring::kTries)) << "an end";
    EXPECT_THAT(keys_of(fails_.back()), ElementsAre("a"));
}

TEST_F(TimerFiringTest, ABatchThatIsReleasedDuringACallIsHandedBackWhenItEnds) {
    Done<std::vector<TimerFired>> answer;
    timers_.on_fire = [&](const TimerFire&, Done<std::vector<TimerFired>> done) {
        answer = std::move(done);
    };
    const auto claimed = claim({row("a")});
    fire(claimed.batch, {0});
    firing_->release(claimed.batch);
    EXPECT_THAT(fails_, IsEmpty()) << "it may be fired yet";
    answer(fail(Errc::timeout, "no answer"));
    ASSERT_EQ(fails_.size(), 1U);
    EXPECT_THAT(keys_of(fails_[0]), ElementsAre("a"));
}

TEST_F(TimerFiringTest, AStopHandsBackWhatIsInHandAndWhatAClaimStillBrings) {
    claim({row("a")});
    Done<std::vector<ClaimedTimer>> late;
    timers_.on_claim = [&](const TimerClaim&, Done<std::vector<ClaimedTimer>> done) {
        late = std::move(done);
    };
    ASSERT_TRUE(firing_->claim(++call_, 1, 30s, 200, 50));
    bool handed_back = false;
    firing_->stop([&] { handed_back = true; });
    ASSERT_EQ(fails_.size(), 1U);
    EXPECT_THAT(keys_of(fails_[0]), ElementsAre("a"));
    EXPECT_FALSE(handed_back);
    late(std::vector{row("b")});
    ASSERT_EQ(fails_.size(), 2U);
    EXPECT_THAT(keys_of(fails_[1]), ElementsAre("b"));
    EXPECT_TRUE(handed_back);
    EXPECT_EQ(driver_->answers[call_].batch, 0U);
}

TEST_F(TimerFiringTest, CallsThatMakeNoSenseAreRefused) {
    const auto claimed = claim({row("a")});
    const std::vector<std::uint32_t> none, far{1}, twice{0, 0}, first{0};
    EXPECT_FALSE(firing_->fire(++call_, claimed.batch, none));
    EXPECT_FALSE(firing_->fire(++call_, claimed.batch, far));
    EXPECT_FALSE(firing_->fire(++call_, claimed.batch, twice));
    EXPECT_FALSE(firing_->fail(++call_, claimed.batch, far, 1s, "", false, 5));
    firing_->release(claimed.batch);
    EXPECT_FALSE(firing_->fire(++call_, claimed.batch, first));
    EXPECT_FALSE(firing_->dead_letter(++call_, claimed.batch, 5));
}

TEST_F(TimerFiringTest, AfterStopEveryCallIsRefused) {
    const auto claimed = claim({row("a")});
    const std::vector<std::uint32_t> first{0};
    firing_->stop([] {});
    EXPECT_FALSE(firing_->due(++call_, 1, 1));
    EXPECT_FALSE(firing_->claim(++call_, 1, 1s, 1, 1));
    EXPECT_FALSE(firing_->fire(++call_, claimed.batch, first));
    EXPECT_FALSE(firing_->fail(++call_, claimed.batch, first, 1s, "", false, 5));
    EXPECT_FALSE(firing_->dead_letter(++call_, claimed.batch, 5));
    firing_->release(claimed.batch);
}

TEST_F(TimerFiringTest, AnEmptyClaimHasNoBatch) {
    EXPECT_EQ(claim({}).batch, 0U);
}

TEST_F(TimerFiringTest, WhatIsDueIsToldAsTheStoreHasIt) {
    timers_.on_due = [](TimerShardSet, std::int32_t, Done<TimersDue> done) {
        done(TimersDue{.next_in = -2ms, .due = 3, .capped = true, .late = 2ms});
    };
    EXPECT_TRUE(firing_->due(++call_, 1, 3));
    EXPECT_EQ(driver_->answers[call_].due, 3U);
    EXPECT_EQ(driver_->answers[call_].next_in, Nanoseconds(-2ms));
    EXPECT_EQ(firing_->stats().due, 3U);
    EXPECT_TRUE(firing_->stats().due_capped);
}

TEST_F(TimerFiringTest, SW11_LagIsKeptForAThousandTenantsAndTheRestIsCounted) {
    std::vector<ClaimedTimer> rows;
    for (std::size_t i = 0; i <= TimerFiring::kMostTenants; ++i) {
        rows.push_back(row("k"));
        rows.back().tenant = std::to_string(i);
    }
    const auto claimed = claim(rows);
    clock_.advance(10ms);
    std::vector<std::uint32_t> all(rows.size());
    for (std::uint32_t i = 0; i < all.size(); ++i) {
        all[i] = i;
    }
    fire(claimed.batch, all);
    const auto stats = firing_->stats();
    EXPECT_EQ(stats.lag.size(), TimerFiring::kMostTenants);
    EXPECT_EQ(stats.tenants_dropped, 1U);
    EXPECT_DOUBLE_EQ(stats.lag.at("0").sum.count(), 0.015) << "late when claimed, and since";
}

TEST(TimerOutcomes, SW7_ErrorsAreWhoseFaultTheyAre) {
    const auto of = [](Errc code, std::string state) {
        return timer_outcome(Error{code, "x", std::move(state)});
    };
    EXPECT_EQ(of(Errc::transient, ""), TimerOutcome::transient);
    for (const char* lost : {"40001", "40P01", "23503", "55P03"}) {
        EXPECT_EQ(of(Errc::transient, lost), TimerOutcome::contended) << lost;
        EXPECT_EQ(of(Errc::store_failed, lost), TimerOutcome::contended) << lost;
    }
    EXPECT_EQ(of(Errc::timeout, "57014"), TimerOutcome::transient);
    EXPECT_EQ(of(Errc::unavailable, ""), TimerOutcome::transient);
    EXPECT_EQ(of(Errc::corrupt, ""), TimerOutcome::transient);
    EXPECT_EQ(of(Errc::store_failed, "42883"), TimerOutcome::transient) << "while versions differ";
    EXPECT_EQ(of(Errc::store_failed, "42703"), TimerOutcome::config);
    EXPECT_EQ(of(Errc::store_failed, "22023"), TimerOutcome::permanent);
    EXPECT_EQ(of(Errc::invalid_argument, "22021"), TimerOutcome::permanent);
    EXPECT_EQ(of(Errc::invalid_argument, ""), TimerOutcome::permanent);
}

} // namespace
} // namespace queen::broker
