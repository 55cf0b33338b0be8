// One sub-ring with a clock that stands still.
#pragma once
#include "sub_ring.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace queen::hotlist {

using namespace std::chrono_literals;
using plugin::Verdict;
using plugin::VerdictKind;

enum class Is { idle, ready, wheel, in_flight };

inline constexpr Local kSlot = 0;

class SubRingTest : public testing::Test {
protected:
    SubRingTest() {
        rules.pad = 300ms;
        rules.window_batch = 100;
        rules.config_fresh = true;
    }

    void mark(std::uint32_t frames = 1, Local local = kSlot) {
        const SubRing::Marked one{local, frames};
        ring.mark({&one, 1}, now, rules, order);
    }
    struct Taken {
        std::vector<CheckedOut> slots;
        bool held = false;
        SteadyTime at{};
    };
    Taken take(std::size_t names = 16, std::uint64_t messages = 1'000'000) {
        Taken taken;
        taken.at = now;
        SubRing::Wanted wanted;
        wanted.names = names;
        wanted.messages = messages;
        ring.take(wanted, SubRing::kNever, 0, now, rules, ages, taken.slots);
        taken.held = wanted.held && !taken.slots.empty();
        return taken;
    }
    void settle(const Taken& taken, VerdictKind kind, bool drained = false,
                std::optional<SteadyTime> until = std::nullopt) {
        Verdict verdict;
        verdict.kind = kind;
        verdict.drained = drained;
        verdict.until = until.value_or(now + 60s);
        for (const CheckedOut& slot : taken.slots) {
            ring.settle(slot, taken.at, verdict, now, rules, order);
        }
    }
    void found(VerdictKind kind, bool drained = false) {
        Verdict verdict;
        verdict.kind = kind;
        verdict.drained = drained;
        verdict.until = now + 60s;
        ring.found(kSlot, verdict, now, rules, order);
    }
    std::size_t reseed() {
        const Local local = kSlot;
        return ring.reseed({&local, 1}, now, rules, order);
    }
    bool released(bool covered) { return ring.released(kSlot, covered, now, order); }
    std::size_t drain() { return ring.drain(now, order, 1000); }

    /// Of the only slot that is not idle.
    Is state() const {
        EXPECT_LE(ring.ready() + ring.wheel() + ring.in_flight(), 1u);
        return ring.ready() > 0       ? Is::ready
               : ring.wheel() > 0     ? Is::wheel
               : ring.in_flight() > 0 ? Is::in_flight
                                      : Is::idle;
    }
    Nanoseconds due_in() const { return SteadyTime(Nanoseconds(ring.due())) - now; }

    /// READY; with its only message counted.
    void make_ready() {
        mark();
        ASSERT_EQ(state(), Is::ready);
    }
    Taken make_in_flight() {
        mark();
        drain_after_deferral();
        Taken taken = take();
        EXPECT_EQ(taken.slots.size(), 1u);
        return taken;
    }
    /// WHEEL by a lease of our own, for a second.
    void make_leased(bool drained) { settle(make_in_flight(), VerdictKind::took_leased, drained); }
    void drain_after_deferral() {
        now += rules.delay + rules.window + rules.pad;
        drain();
    }

    SteadyTime now{1000s};
    Rules rules;
    ReadyOrder order;
    ReadyAges ages;
    SubRing ring;
};

} // namespace queen::hotlist
