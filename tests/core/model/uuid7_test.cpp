#include "base/text.hpp"
#include "model/uuid7.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <mutex>
#include <thread>
#include <unordered_set>
#include <vector>

namespace queen {
namespace {

using namespace std::chrono_literals;

constexpr WallTime kNow{1'769'851'800'123'456us}; // 2026-01-31T09:30:00.123456Z

std::uint64_t millis_of(const Uuid& id) {
    std::uint64_t ms = 0;
    for (std::size_t i = 0; i < 6; ++i) {
        ms = ms << 8 | id.bytes[i];
    }
    return ms;
}

TEST(Uuid7, CarriesMillisecondsVersionAndVariant) {
    Uuid7 source;
    const Uuid id = source.next(kNow);
    EXPECT_EQ(millis_of(id), 1'769'851'800'123u);
    EXPECT_EQ(to_string(id).substr(0, 15), "019c1363-4a3b-7");
    EXPECT_EQ(id.bytes[6] >> 4, 7);
    EXPECT_EQ(id.bytes[8] >> 6, 2);
}

TEST(Uuid7, IdsOfOneMillisecondAreOrderedAndDistinct) {
    Uuid7 source;
    Uuid last = source.next(kNow);
    for (int i = 0; i < 100'000; ++i) {
        const Uuid id = source.next(kNow);
        ASSERT_LT(last, id);
        ASSERT_EQ(id.bytes[6] >> 4, 7);
        ASSERT_EQ(id.bytes[8] >> 6, 2);
        last = id;
    }
    EXPECT_EQ(millis_of(last), 1'769'851'800'123u);
}

TEST(Uuid7, AFullSequenceBorrowsFromTheNextMillisecond) {
    Uuid7 source;
    const Uuid first = source.next(kNow);
    Uuid last = first;
    for (int i = 0; i < 600'000; ++i) { // over twice as many as a millisecond has
        const Uuid id = source.next(kNow);
        ASSERT_LT(last, id);
        last = id;
    }
    EXPECT_GT(millis_of(last), millis_of(first) + 1);
    EXPECT_LT(millis_of(last), millis_of(first) + 5);
    const Uuid caught_up = source.next(kNow + 10ms);
    EXPECT_LT(last, caught_up);
    EXPECT_EQ(millis_of(caught_up), millis_of(first) + 10);
}

TEST(Uuid7, AClockThatStepsBackDoesNotBreakTheOrder) {
    Uuid7 source;
    const Uuid first = source.next(kNow);
    const Uuid second = source.next(kNow - 1h);
    const Uuid third = source.next(kNow - 1ms);
    const Uuid fourth = source.next(kNow + 1ms);
    EXPECT_LT(first, second);
    EXPECT_LT(second, third);
    EXPECT_LT(third, fourth);
    EXPECT_EQ(millis_of(third), millis_of(first));
    EXPECT_EQ(millis_of(fourth), millis_of(first) + 1);
}

TEST(Uuid7, TimesOutsideFortyEightBitsAreCutToThem) {
    Uuid7 source;
    EXPECT_EQ(millis_of(source.next(WallTime(-1us))), 0u);
    EXPECT_EQ(millis_of(source.next(WallTime::max())), (std::uint64_t{1} << 48) - 1);
}

TEST(Uuid7, SourcesDifferInTheSameMillisecond) {
    Uuid7 a;
    Uuid7 b;
    std::unordered_set<Uuid> ids;
    for (int i = 0; i < 1'000; ++i) {
        ids.insert(a.next(kNow));
        ids.insert(b.next(kNow));
    }
    EXPECT_EQ(ids.size(), 2'000u);
}

// Two brokers must not meet in the low bits either: the random part may not repeat or stand still.
TEST(Uuid7, TheRandomPartUsesAllItsBits) {
    Uuid7 source;
    std::array<int, 56> ones{};
    constexpr int kIds = 4'096;
    for (int i = 0; i < kIds; ++i) {
        const Uuid id = source.next(kNow);
        for (std::size_t bit = 0; bit < 56; ++bit) {
            ones[bit] += id.bytes[9 + bit / 8] >> (bit % 8) & 1;
        }
    }
    for (const int count : ones) { // 2048 expected; 12 standard deviations is 384
        EXPECT_GT(count, kIds / 2 - 384);
        EXPECT_LT(count, kIds / 2 + 384);
    }
}

TEST(Uuid7, ThreadsGetDistinctIdsThatGrowForEachOfThem) {
    Uuid7 source;
    std::mutex mutex;
    std::vector<Uuid> all;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            std::vector<Uuid> mine;
            for (int i = 0; i < 5'000; ++i) {
                mine.push_back(source.next());
            }
            EXPECT_TRUE(std::is_sorted(mine.begin(), mine.end()));
            const std::lock_guard lock(mutex);
            all.insert(all.end(), mine.begin(), mine.end());
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(std::unordered_set<Uuid>(all.begin(), all.end()).size(), 20'000u);
}

} // namespace
} // namespace queen
