#include "broker/dedup_cache.hpp"
#include "support/manual_clock.hpp"
#include "support/manual_ticker.hpp"
#include "support/scripted_store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>
#include <thread>

namespace queen::broker {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kWorth = 100; ///< probed offsets that make an entry pay, in these tests

/// A store of many partitions that believes every vouch: what it must not believe is tested
/// elsewhere. Its clock is the test's.
class DedupCacheTest : public testing::Test {
protected:
    struct Partition {
        Uuid id;
        std::deque<HashRow> rows;
        std::int64_t last = -1;
        WallTime newest{};
    };

    DedupCacheTest() {
        store_.on_window_hashes = [this](HashPage page, Done<std::vector<HashRow>> done) {
            reads_.emplace_back(page, std::move(done));
            if (answer_reads_) {
                run_reads();
            }
        };
    }
    void make(std::size_t bytes) {
        cache_ = std::make_unique<DedupCache>(
            store_, ticker_, clock_,
            DedupCache::Options{
                .bytes = bytes,
                .worth = kWorth,
                .page_bytes = 4096,
                .aux_entries = 1600,
                .warn = [this](const std::string& text) { warnings_.push_back(text); }});
    }
    void SetUp() override { make(16u << 20); }

    void pass(Nanoseconds by) {
        ticker_.advance(by);
        db_now_ += std::chrono::duration_cast<std::chrono::microseconds>(by);
    }
    void run_reads() {
        while (!reads_.empty()) {
            auto [page, done] = std::move(reads_.front());
            reads_.pop_front();
            done(rows_of(page));
        }
    }
    std::vector<HashRow> rows_of(const HashPage& page) const {
        std::vector<HashRow> out;
        std::int64_t left = page.bytes;
        for (const auto& [key, partition] : partitions_) {
            if (partition.id != page.partition_id) {
                continue;
            }
            const auto take = [&](const HashRow& row) {
                const bool inside = page.downwards
                                        ? row.base <= page.edge && row.created_at >= start()
                                        : row.end >= page.edge;
                if (inside && left > 0) {
                    left -= out.empty() ? 0 : static_cast<std::int64_t>(row.hashes.size());
                    out.push_back(row);
                }
            };
            page.downwards
                ? (void)std::for_each(partition.rows.rbegin(), partition.rows.rend(), take)
                : (void)std::for_each(partition.rows.begin(), partition.rows.end(), take);
        }
        return out;
    }
    WallTime start() const { return db_now_ - window_; }

    /// Appends `count` fresh hashes; by another broker when `own` is false. @return the vouch sent
    std::optional<Vouch> push(const std::string& key, std::size_t count, bool own = true) {
        std::string hashes(count * 16, '\0');
        for (std::size_t i = 0; i < hashes.size(); i += 8) {
            const auto word = random_();
            std::copy_n(reinterpret_cast<const char*>(&word), 8,
                        hashes.begin() + static_cast<std::ptrdiff_t>(i));
        }
        auto& partition = partitions_[key];
        if (!partition.id.known()) {
            partition.id.bytes[0] = static_cast<std::uint8_t>(++made_ >> 16);
            partition.id.bytes[1] = static_cast<std::uint8_t>(made_ >> 8);
            partition.id.bytes[2] = static_cast<std::uint8_t>(made_);
        }
        while (!partition.rows.empty() && partition.rows.front().created_at < start()) {
            partition.rows.pop_front();
        }
        const auto fingerprints = fingerprints_of(hashes);
        const auto vouch = own ? cache_->vouch(key, fingerprints) : std::nullopt;
        PushOutcome outcome;
        outcome.partition_id = partition.id;
        outcome.window = window_;
        outcome.base = Offset{partition.last + 1};
        outcome.created_at = db_now_;
        outcome.after = partition.newest;
        outcome.probed = vouch ? partition.last - vouch->upto.value()
                         : partition.rows.empty()
                             ? 0
                             : partition.last - partition.rows[0].base.value() + 1;
        partition.last += static_cast<std::int64_t>(count);
        partition.newest = db_now_;
        partition.rows.push_back({outcome.base, Offset{partition.last}, db_now_, hashes});
        if (own) {
            cache_->told(key, fingerprints, vouch, outcome);
        }
        probed_ += outcome.probed;
        return vouch;
    }
    std::size_t stored() const {
        std::size_t hashes = 0;
        for (const auto& [key, partition] : partitions_) {
            for (const auto& row : partition.rows) {
                hashes += row.created_at >= start() ? row.hashes.size() / 16 : 0;
            }
        }
        return hashes;
    }

    test::ManualClock clock_;
    test::ManualTicker ticker_{clock_};
    test::ScriptedStore store_;
    std::unique_ptr<DedupCache> cache_;
    std::map<std::string, Partition> partitions_;
    std::deque<std::pair<HashPage, Done<std::vector<HashRow>>>> reads_;
    std::vector<std::string> warnings_;
    bool answer_reads_ = true;
    std::chrono::seconds window_{3600};
    WallTime db_now_{std::chrono::hours(24)};
    std::mt19937_64 random_{1};
    std::uint32_t made_ = 0;
    std::int64_t probed_ = 0;
};

TEST_F(DedupCacheTest, ASecondLargeProbeWithinAMinuteHydrates) {
    push("p", 1000);
    push("p", 10);
    EXPECT_EQ(cache_->stats().hydrations, 0u) << "once is not worth it";
    pass(61s);
    push("p", 10);
    EXPECT_EQ(cache_->stats().hydrations, 0u) << "long ago is not often";
    pass(59s);
    push("p", 10);
    EXPECT_EQ(cache_->stats().hydrations, 1u);
    EXPECT_EQ(cache_->stats().hashes, 1030u);
    const auto vouch = push("p", 10);
    ASSERT_TRUE(vouch);
    EXPECT_EQ(vouch->from, Offset{-1});
    EXPECT_EQ(vouch->upto, Offset{1029});
}

TEST_F(DedupCacheTest, ASmallWindowIsLeftToTheStore) {
    for (int i = 0; i < 10; ++i) {
        push("p", 9);
    }
    EXPECT_EQ(cache_->stats().hydrations, 0u);
    EXPECT_EQ(cache_->stats().bytes, 0u);
}

TEST_F(DedupCacheTest, AWindowOfZeroCostsNothingAndFreesWhatWasHeld) {
    for (int i = 0; i < 4; ++i) {
        push("p", 200);
    }
    EXPECT_GT(cache_->stats().bytes, 0u);
    window_ = 0s;
    push("p", 200);
    EXPECT_EQ(cache_->stats().bytes, 0u);
    EXPECT_EQ(cache_->stats().partitions, 0u);
}

// A push never waits for a hydration, and there is one of a partition at a time.
TEST_F(DedupCacheTest, PushesGoOnUnvouchedWhileOnePageAtATimeIsRead) {
    answer_reads_ = false;
    push("p", 5000);
    push("p", 10);
    for (int i = 0; i < 5; ++i) {
        EXPECT_FALSE(push("p", 10));
        EXPECT_EQ(reads_.size(), 1u);
    }
    answer_reads_ = true;
    run_reads();
    EXPECT_TRUE(push("p", 10));
    EXPECT_EQ(cache_->stats().hydrations, 1u);
}

TEST_F(DedupCacheTest, AReadThatFailsIsNotTriedAgainForAWhile) {
    answer_reads_ = false;
    push("p", 1000);
    push("p", 10);
    push("p", 10);
    ASSERT_EQ(reads_.size(), 1u);
    reads_.front().second(fail(Errc::unavailable, "away"));
    reads_.clear();
    EXPECT_EQ(cache_->stats().bytes, 0u);
    answer_reads_ = true;
    push("p", 10);
    push("p", 10);
    EXPECT_EQ(cache_->stats().hydrations, 1u);
    EXPECT_EQ(cache_->stats().suppressed, 2u);
    pass(31s);
    push("p", 10);
    push("p", 10);
    EXPECT_EQ(cache_->stats().hydrations, 2u);
}

// DED-4: what the cache finds is for the store to decide.
TEST_F(DedupCacheTest, AKnownHashIsSentWithoutAVouch) {
    for (int i = 0; i < 4; ++i) {
        push("p", 200);
    }
    auto fingerprints = fingerprints_of(partitions_["p"].rows[0].hashes);
    EXPECT_FALSE(cache_->vouch("p", std::span(fingerprints).last(1)));
    EXPECT_EQ(cache_->stats().suspects, 1u);
}

TEST_F(DedupCacheTest, WhatAnotherBrokerPushedIsReadOnceItPays) {
    for (int i = 0; i < 4; ++i) {
        push("p", 200);
    }
    push("p", 40, false);
    EXPECT_EQ(push("p", 1)->upto, Offset{799}) << "the store compares the 40";
    EXPECT_EQ(push("p", 1)->upto, Offset{799});
    EXPECT_EQ(cache_->stats().topups, 0u);
    push("p", 70, false);
    push("p", 1);
    EXPECT_EQ(cache_->stats().topups, 1u);
    EXPECT_EQ(push("p", 1)->upto, Offset{912});
}

// The page ends where the database did when it was read. What came later is another gap.
TEST_F(DedupCacheTest, APageMayEndBelowWhatWasToldWhileItWasRead) {
    for (int i = 0; i < 4; ++i) {
        push("p", 200);
    }
    answer_reads_ = false;
    push("p", 150, false);
    push("p", 1);
    ASSERT_EQ(reads_.size(), 1u);
    const auto [page, done] = std::move(reads_.front());
    reads_.pop_front();
    const auto rows = rows_of(page);
    push("p", 150, false);
    push("p", 1); // is told before the page is
    answer_reads_ = true;
    done(rows);
    EXPECT_EQ(cache_->stats().surprises, 0u);
    EXPECT_EQ(cache_->stats().topups, 2u);
    EXPECT_EQ(push("p", 1)->upto, Offset{1101});
    EXPECT_EQ(cache_->stats().hydrations, 1u);
}

// What was told before the page was asked for is in it, or the database was set back meanwhile:
// then no page will ever fill the gap.
TEST_F(DedupCacheTest, APageThatEndsBelowWhatWasToldBeforeIsAnotherHistory) {
    for (int i = 0; i < 4; ++i) {
        push("p", 200);
    }
    answer_reads_ = false;
    push("p", 100, false);
    push("p", 50, false);
    push("p", 1);
    ASSERT_EQ(reads_.size(), 1u);
    partitions_["p"].rows.pop_back();
    partitions_["p"].rows.pop_back();
    run_reads();
    EXPECT_EQ(cache_->stats().surprises, 1u);
    EXPECT_EQ(cache_->stats().partitions, 0u);
    EXPECT_TRUE(reads_.empty());
}

// A widened window is read from where the span ends, and once.
TEST_F(DedupCacheTest, AWidenedWindowIsReadDownwards) {
    push("p", 500);
    pass(100s);
    window_ = 50s;
    for (int i = 0; i < 4; ++i) {
        push("p", 200);
    }
    ASSERT_TRUE(push("p", 1));
    EXPECT_EQ(cache_->stats().hashes, 801u);
    window_ = 200s;
    auto& partition = partitions_["p"];
    const auto vouch = cache_->vouch("p", {});
    PushOutcome outcome{.partition_id = partition.id,
                        .base = Offset{partition.last + 1},
                        .created_at = db_now_,
                        .window = window_,
                        .probed = partition.last + 1, // not believed
                        .after = partition.newest};
    partition.rows.push_front({Offset{0}, Offset{499}, db_now_ - 100s, std::string(8000, 'x')});
    partition.rows.push_back({outcome.base, outcome.base, db_now_, std::string(16, 'y')});
    partition.last += 1;
    cache_->told("p", fingerprints_of(std::string(16, 'y')), vouch, outcome);
    EXPECT_EQ(cache_->stats().disbelieved, 1u);
    EXPECT_EQ(cache_->stats().hashes, 1302u);
    EXPECT_EQ(cache_->vouch("p", {})->from, Offset{-1});
}

// F-14: the window bounds memory, not the number of partitions.
TEST_F(DedupCacheTest, F14_SparsePartitionsHoldTheirWindowAndNoMore) {
    window_ = 60s;
    constexpr int kPartitions = 1000;
    for (int round = 0; round < 20; ++round) {
        for (int p = 0; p < kPartitions; ++p) {
            push("p" + std::to_string(p), round % 4 == 3 ? 1 : 60);
        }
        pass(15s);
        const auto stats = cache_->stats();
        const auto inside = stored();
        EXPECT_LE(stats.hashes, inside + inside / 32 + kPartitions * 60) << "one push late";
        EXPECT_LE(stats.bytes, stats.hashes * 24 + stats.partitions * 1024) << round;
    }
    EXPECT_GT(cache_->stats().vouched, 0u);
    pass(5min);
    EXPECT_EQ(cache_->stats().bytes, 0u) << "without pushes it goes by itself";
    EXPECT_EQ(cache_->stats().partitions, 0u);
    EXPECT_EQ(ticker_.pending(), 0u) << "and nothing is left that ticks";
}

// F-16: two working sets that do not fit together do not take turns.
TEST_F(DedupCacheTest, F16_WorkingSetsOverTheBudgetDoNotPingPong) {
    make(1u << 20); // some 75,000 hashes
    for (const std::string key : {"a", "b"}) {
        for (int i = 0; i < 50; ++i) {
            push(key, 1000, false);
        }
    }
    for (int second = 0; second < 300; ++second) {
        push("a", 10);
        push("b", 10);
        pass(1s);
    }
    const auto stats = cache_->stats();
    EXPECT_EQ(stats.partitions, 1u);
    EXPECT_LE(stats.hydrations, 1u);
    EXPECT_EQ(stats.evictions, 0u);
    EXPECT_GE(stats.suppressed, 200u);
    EXPECT_LE(stats.bytes, 1u << 20);
    EXPECT_GE(stats.vouched, 290u);
    EXPECT_TRUE(warnings_.size() >= 4 && warnings_.size() <= 6) << warnings_.size();
}

TEST_F(DedupCacheTest, F16_WhatIsColdMakesRoom) {
    make(1u << 20);
    for (const std::string key : {"a", "b"}) {
        for (int i = 0; i < 30; ++i) {
            push(key, 1000, false);
        }
        push(key, 10);
        push(key, 10);
        pass(6s);
    }
    EXPECT_EQ(cache_->stats().partitions, 2u) << "both fit";
    for (int i = 0; i < 80; ++i) {
        push("b", 500);
    }
    EXPECT_EQ(cache_->stats().evictions, 1u) << "a made room for b's growth";
    EXPECT_EQ(cache_->stats().partitions, 1u);
    EXPECT_TRUE(push("b", 1));
    EXPECT_FALSE(push("a", 1));
}

// Over the budget with what is in use, the cache bears a quarter more, then gives up what grows.
TEST_F(DedupCacheTest, F17_WhatIsInUseCannotGrowWithoutBound) {
    make(1u << 20);
    for (int i = 0; i < 2000; ++i) {
        push("p", 1000);
        EXPECT_LE(cache_->stats().bytes, (1u << 20) * 5 / 4);
    }
    EXPECT_EQ(cache_->stats().evictions, 1u);
    EXPECT_EQ(warnings_.size(), 1u);
}

// F-17: steady traffic over many windows.
TEST_F(DedupCacheTest, F17_SizesAreFlatOverManyWindows) {
    window_ = 60s;
    std::size_t most = 0, settled = 0;
    for (int second = 0; second < 60 * 20; ++second) {
        push("p", 100);
        pass(1s);
        const auto bytes = cache_->stats().bytes;
        (second < 180 ? settled : most) = std::max(second < 180 ? settled : most, bytes);
        EXPECT_LE(cache_->stats().hashes, 6300u);
    }
    EXPECT_LE(most, settled + settled / 4);
    EXPECT_EQ(cache_->stats().hydrations, 1u) << "and is kept up, not read again";
    EXPECT_EQ(cache_->stats().surprises, 0u);
    EXPECT_EQ(cache_->stats().disbelieved, 0u);
    EXPECT_LT(probed_, 100 * 60);
}

TEST_F(DedupCacheTest, PartitionsWithoutAnEntryAreRememberedInBoundedNumber) {
    answer_reads_ = false;
    for (int p = 0; p < 20'000; ++p) {
        push("p" + std::to_string(p), 100);
        push("p" + std::to_string(p), 1);
    }
    EXPECT_LE(cache_->stats().remembered, 1600u);
}

// For the sanitizers: pushes of four threads over a budget that makes them evict each other.
TEST_F(DedupCacheTest, ThreadsPushReadEvictAndSweepAtOnce) {
    make(64u << 10);
    store_.on_window_hashes = [](const HashPage&, const auto& done) {
        done(std::vector<HashRow>{});
    };
    std::vector<std::thread> threads;
    for (std::uint8_t t = 0; t < 4; ++t) {
        threads.emplace_back([this, t] {
            std::mt19937_64 random(t);
            for (int i = 0; i < 2000; ++i) {
                const auto key = "k" + std::to_string(random() % 8);
                const std::vector<std::uint64_t> fingerprints{random(), random()};
                const auto vouch = cache_->vouch(key, fingerprints);
                PushOutcome outcome{.base = Offset{1000 + 2 * i},
                                    .created_at = WallTime{std::chrono::seconds(i)},
                                    .window = window_,
                                    .probed = vouch ? 0 : 1000,
                                    .after = WallTime{std::chrono::seconds(i - 1)}};
                outcome.partition_id.bytes[0] = random() % 50 == 0 ? 2 : 1;
                cache_->told(key, fingerprints, vouch, outcome);
                if (i % 10 == 0) {
                    clock_.advance(10s);
                    ticker_.run_due();
                }
            }
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    EXPECT_GT(cache_->stats().hydrations, 0u);
    for (int i = 0; i < 200; ++i) {
        ticker_.advance(1min);
    }
    const auto stats = cache_->stats();
    EXPECT_EQ(stats.partitions, 0u);
    EXPECT_EQ(stats.bytes, 0u) << "counted down as it was counted up";
    EXPECT_EQ(stats.hashes, 0u);
    EXPECT_EQ(stats.remembered, 0u);
}

TEST(DedupSpan, ManyShortGenerationsRunOutOfTagsAndGoOn) {
    DedupSpan span(Offset{-1}, WallTime{});
    WallTime after{};
    std::mt19937_64 random(1);
    std::vector<std::uint64_t> all;
    for (int i = 0; i < 1000; ++i) { // none expires, and each is older than a second's 64th
        const auto fingerprint = random();
        all.push_back(fingerprint);
        const WallTime at{std::chrono::seconds(i)};
        ASSERT_EQ(span.add_above({Offset{i}, at, std::span(&fingerprint, 1)}, after, 1s),
                  DedupSpan::Told::fits);
        after = at;
    }
    for (const auto& fingerprint : all) {
        EXPECT_TRUE(span.contains_any(std::span(&fingerprint, 1)));
    }
    span.expire(WallTime{std::chrono::seconds(2000)});
    EXPECT_EQ(span.size(), 0u);
    EXPECT_EQ(span.from(), Offset{999});
}

// F-15: what is asked for is found, whatever was inserted, dropped, split and merged around it.
TEST(Fingerprints, EveryLiveMemberIsFoundThroughSplitsDropsAndReuseOfTags) {
    FingerprintSet set;
    std::mt19937_64 random(5);
    std::deque<std::pair<FingerprintSet::Tag, std::vector<std::uint64_t>>> live;
    for (int round = 0; round < 600; ++round) {
        const std::size_t count = round < 300 ? 1500 : 3;
        std::vector<std::uint64_t> members(count);
        std::generate(members.begin(), members.end(), std::ref(random));
        const auto tag = set.open();
        ASSERT_TRUE(tag);
        for (const auto member : members) {
            set.insert(member, *tag);
        }
        live.emplace_back(*tag, std::move(members));
        if (live.size() > 60) {
            set.drop(live.front().first, live.front().second.size());
            const auto gone = live.front().second;
            live.pop_front();
            EXPECT_FALSE(set.contains_any(gone)) << round;
        }
        std::size_t size = 0;
        for (const auto& [t, expected] : live) {
            size += expected.size();
            for (std::size_t i = 0; i < expected.size(); i += 97) {
                ASSERT_TRUE(set.contains(expected[i])) << round;
            }
        }
        EXPECT_EQ(set.size(), size);
        EXPECT_LE(set.bytes(), size * 40 + 4096) << round;
    }
}

} // namespace
} // namespace queen::broker
