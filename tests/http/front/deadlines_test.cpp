#include "http/front/deadlines.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace queen::http {
namespace {

using namespace std::chrono_literals;

constexpr Deadlines::Durations kDurations = {75'000ms, 10'000ms, 30'000ms, 60'000ms, 5'000ms};

TEST(Deadlines, ExpireInOrderOverAllKinds) {
    Deadlines deadlines(kDurations);
    DeadlineEntry idle, head, linger;
    const SteadyTime start(1h);
    deadlines.start(idle, Wait::idle, start);
    deadlines.start(head, Wait::head, start);
    deadlines.start(linger, Wait::linger, start + 6s);
    EXPECT_EQ(deadlines.next(), start + 10s);
    EXPECT_EQ(deadlines.expired(start + 10s - 1ns), nullptr);
    EXPECT_EQ(deadlines.expired(start + 10s), &head);
    deadlines.end(head);
    EXPECT_EQ(deadlines.expired(start + 11s), &linger);
    deadlines.end(linger);
    EXPECT_EQ(deadlines.next(), start + 75s);
    deadlines.end(idle);
    EXPECT_EQ(deadlines.next(), std::nullopt);
}

TEST(Deadlines, AgreeWithAPlainListWhateverHappens) {
    Deadlines deadlines(kDurations);
    std::vector<DeadlineEntry> entries(12);
    SteadyTime now(1h);
    std::minstd_rand random(3);
    for (int step = 0; step < 20'000; ++step) {
        now += std::chrono::milliseconds(random() % 500);
        DeadlineEntry& entry = entries[random() % entries.size()];
        deadlines.start(entry, static_cast<Wait>(random() % (kWaits + 1)), now);
        if (random() % 4 == 0) {
            deadlines.end(entries[random() % entries.size()]);
        }
        std::optional<SteadyTime> soonest;
        for (const DeadlineEntry& each : entries) {
            if (each.wait != Wait::none && (!soonest || each.due < *soonest)) {
                soonest = each.due;
            }
        }
        ASSERT_EQ(deadlines.next(), soonest);
        while (DeadlineEntry* expired = deadlines.expired(now)) {
            ASSERT_NE(expired->wait, Wait::none);
            ASSERT_LE(expired->due, now);
            deadlines.end(*expired);
        }
        ASSERT_TRUE(std::none_of(entries.begin(), entries.end(), [&](const DeadlineEntry& each) {
            return each.wait != Wait::none && each.due <= now;
        }));
    }
}

} // namespace
} // namespace queen::http
