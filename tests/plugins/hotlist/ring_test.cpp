#include "ring.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace queen::hotlist {
namespace {

using namespace std::chrono_literals;
using plugin::Verdict;
using plugin::VerdictKind;

constexpr plugin::Queue kQueue{"t\x1fq", "t", "q"};

class RingTest : public testing::Test {
protected:
    void remake(std::size_t shards) {
        ring = std::make_shared<Ring>(std::make_shared<QueueFacts>(kQueue, false), "g", shards,
                                      ReseedFloor::Intervals{30s, 300s, 0s}, now, totals);
    }
    void SetUp() override {
        rules.pad = 300ms;
        rules.window_batch = 100;
        remake(8);
    }
    void mark(Interner::Index index, std::uint32_t frames = 1) {
        const Ring::Marked one{index, frames};
        ring->mark({&one, 1}, now, rules);
    }
    std::vector<Interner::Index> take(std::size_t limit, std::uint64_t messages = 1'000'000) {
        last = ring->take(limit, messages, now, rules, ages);
        std::vector<Interner::Index> indices;
        for (const CheckedOut& slot : last.slots) {
            indices.push_back(ring->index_of(slot));
        }
        return indices;
    }
    void settle(VerdictKind kind) {
        Verdict verdict;
        verdict.kind = kind;
        verdict.until = now + 60s;
        for (const CheckedOut& slot : last.slots) {
            ring->settle(slot, now, verdict, now, rules);
        }
    }

    SteadyTime now{1000s};
    Rules rules;
    Totals totals;
    ReadyAges ages;
    std::shared_ptr<Ring> ring;
    Ring::Taken last;
};

TEST_F(RingTest, EveryEntryIsInOneSubRingAndFindsBack) {
    std::set<Interner::Index> marked;
    for (Interner::Index i = 0; i < 100; ++i) {
        mark(i * 7);
        marked.insert(i * 7);
    }
    const auto taken = take(1000);
    EXPECT_EQ(std::set<Interner::Index>(taken.begin(), taken.end()), marked);
}

TEST_F(RingTest, SubRingsAreServedInOneLine) {
    for (const Interner::Index index : {8u, 16u, 3u, 24u, 5u}) {
        mark(index);
    }
    EXPECT_EQ(take(3), (std::vector<Interner::Index>{8, 16, 3}));
    EXPECT_EQ(take(3), (std::vector<Interner::Index>{24, 5})) << "it goes on where it stopped";
}

TEST_F(RingTest, HL20_EntriesOfSubRingsOfAllSizesComeRoundEquallyOften) {
    std::size_t entries = 0;
    for (Interner::Index i = 0; i < 400; ++i) {
        mark(i * 8); // all in the first sub-ring
        ++entries;
    }
    for (Interner::Index shard = 1; shard < 8; ++shard) {
        mark(shard);
        ++entries;
    }
    std::map<Interner::Index, int> visits;
    const int rounds = 5;
    for (std::size_t taken = 0; taken < entries * rounds;) {
        const auto some = take(std::min<std::size_t>(16, entries * rounds - taken));
        taken += some.size();
        for (const Interner::Index index : some) {
            ++visits[index];
        }
        settle(VerdictKind::took_acked);
    }
    for (const auto& [index, count] : visits) {
        EXPECT_EQ(count, rounds) << index;
    }
    EXPECT_EQ(visits.size(), entries);
}

TEST_F(RingTest, WhatIsDueInAnySubRingIsTakenWithoutATick) {
    rules.delay = 1s;
    for (Interner::Index i = 0; i < 8; ++i) {
        mark(i);
    }
    EXPECT_TRUE(take(100).empty());
    now += 1s + 300ms;
    EXPECT_EQ(take(100).size(), 8u);
}

TEST_F(RingTest, HL1_TheBudgetOfMessagesEndsATakeAcrossSubRings) {
    for (Interner::Index i = 0; i < 16; ++i) {
        mark(i, 10);
    }
    EXPECT_EQ(take(16, 1).size(), 1u);
    EXPECT_EQ(take(16, 25).size(), 3u);
    EXPECT_EQ(take(2, 1000).size(), 2u);
    EXPECT_EQ(ring->depth(now).ready, 10u);
}

TEST_F(RingTest, F52_ManyPopsOnManyPartitionsAllGetWork) {
    for (Interner::Index i = 0; i < 100; ++i) {
        mark(i, 50);
    }
    for (int pop = 0; pop < 100; ++pop) {
        EXPECT_EQ(take(80, 50).size(), 1u) << "pop " << pop;
    }
}

TEST_F(RingTest, F52_ManyPopsOnBacklogsThatNobodyMarksAnyMoreAllGetWork) {
    for (Interner::Index i = 0; i < 100; ++i) {
        mark(i);
    }
    ASSERT_EQ(take(100, 1'000'000).size(), 100u);
    Verdict verdict;
    verdict.kind = VerdictKind::took_leased;
    verdict.frames = 50;
    verdict.until = now + 60s;
    for (const CheckedOut& slot : last.slots) {
        ring->settle(slot, now, verdict, now, rules);
        ASSERT_TRUE(ring->released(ring->index_of(slot), true, now));
    }
    for (int pop = 0; pop < 100; ++pop) {
        EXPECT_EQ(take(80, 50).size(), 1u) << "pop " << pop;
    }
}

TEST_F(RingTest, WhatWasFoundEmptyIsNotThoughtToHoldWhatItOnceHeld) {
    mark(0);
    mark(1);
    take(1);
    Verdict verdict;
    verdict.kind = VerdictKind::took_acked;
    verdict.frames = 50;
    ring->settle(last.slots[0], now, verdict, now, rules);
    EXPECT_EQ(take(16, 40).size(), 2u) << "one message of the second, then the rest";
    mark(0); // while it is out
    settle(VerdictKind::empty);
    EXPECT_EQ(ring->depth(now).ready, 1u);
    mark(1);
    EXPECT_EQ(take(16, 40).size(), 2u);
}

TEST_F(RingTest, ATakeEndsBeforeACandidateOfTheOtherKind) {
    rules.window = 1s;
    rules.config_fresh = true;
    mark(0, 100);
    mark(1, 100);
    const Interner::Index reseeded = 2;
    ring->reseed({&reseeded, 1}, now, rules);
    mark(3, 100);
    EXPECT_EQ(take(16), (std::vector<Interner::Index>{0, 1}));
    EXPECT_TRUE(last.held);
    EXPECT_EQ(take(16), (std::vector<Interner::Index>{2}));
    EXPECT_FALSE(last.held);
    EXPECT_EQ(take(16), (std::vector<Interner::Index>{3}));
}

TEST_F(RingTest, DepthCountsAllSubRings) {
    rules.delay = 1s;
    for (Interner::Index i = 0; i < 5; ++i) {
        mark(i, 2);
    }
    rules.delay = 0s;
    for (Interner::Index i = 5; i < 8; ++i) {
        mark(i, 2);
    }
    take(1);
    const auto depth = ring->depth(now);
    EXPECT_EQ(depth.ready, 2u);
    EXPECT_EQ(depth.ready_messages, 4u);
    EXPECT_EQ(depth.wheel, 5u);
    EXPECT_EQ(depth.in_flight, 1u);
    EXPECT_EQ(depth.next_due, now + 1s + 300ms);
    EXPECT_EQ(depth.due_shards, 0u);
    EXPECT_EQ(ring->depth(now + 2s).due_shards, 5u);
    EXPECT_EQ(totals.value(Totals::ready), 2u);
    EXPECT_EQ(totals.value(Totals::wheel), 5u);
    EXPECT_EQ(totals.value(Totals::in_flight), 1u);
    ring.reset();
    EXPECT_EQ(totals.value(Totals::ready) + totals.value(Totals::wheel) +
                  totals.value(Totals::in_flight) + totals.value(Totals::rings),
              0u);
}

TEST_F(RingTest, OneSubRingIsEnough) {
    remake(1);
    for (Interner::Index i = 0; i < 50; ++i) {
        mark(i);
    }
    EXPECT_EQ(take(100).size(), 50u);
}

TEST(QueueRules, AnOlderAnswerChangesNothing) {
    QueueRules rules;
    Rules read;
    rules.set({5s, 2s, SteadyTime(100s)});
    rules.set({1s, 1s, SteadyTime(99s)});
    rules.fill(read, SteadyTime(100s));
    EXPECT_EQ(read.delay, 5s);
    EXPECT_EQ(read.window, 2s);
}

TEST(QueueRules, AConfigurationIsFreshForThirtySeconds) {
    QueueRules rules;
    Rules read;
    rules.fill(read, SteadyTime(100s));
    EXPECT_FALSE(read.config_fresh) << "nothing was ever told";
    EXPECT_FALSE(read.deferred());
    rules.set({0s, 2s, SteadyTime(100s)});
    rules.fill(read, SteadyTime(130s));
    EXPECT_TRUE(read.config_fresh);
    rules.fill(read, SteadyTime(130s) + 1ns);
    EXPECT_FALSE(read.config_fresh);
    EXPECT_EQ(read.window, 2s) << "it still schedules";
}

} // namespace
} // namespace queen::hotlist
