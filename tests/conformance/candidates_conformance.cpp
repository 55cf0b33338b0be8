#include "candidates_conformance.hpp"

#include <atomic>
#include <chrono>
#include <cmath>
#include <set>
#include <thread>
#include <vector>

namespace queen::conformance {
namespace {

using namespace std::chrono_literals;
using plugin::Mark;
using plugin::NameList;
using plugin::Origin;
using plugin::Pick;
using plugin::ReadyState;
using plugin::Scope;
using plugin::Selection;
using plugin::Take;
using plugin::Verdict;
using plugin::VerdictKind;

constexpr std::string_view kTenant = "00000000-0000-0000-0000-000000000000";

/// A queue that owns its texts.
struct OwnedQueue {
    explicit OwnedQueue(std::string queue_name)
        : name(std::move(queue_name)), key(std::string(kTenant) + '\x1f' + name) {}
    plugin::Queue view() const { return {key, kTenant, name}; }
    Scope scope(std::string_view group) const { return {view(), group}; }
    std::string name, key;
};

Uuid id_of(std::uint8_t n) {
    Uuid id;
    id.bytes.fill(n);
    return id;
}

struct Taken {
    Pick pick = Pick::none;
    std::vector<NameList::Entry> names;
    std::size_t refused = 0;
    std::unique_ptr<plugin::Cookie> cookie;
};

Taken take(plugin::CandidateSource& source, const Scope& scope, std::uint32_t round = 0,
           std::uint64_t limit = 64) {
    NameList names(limit);
    Selection made = source.take(Take{scope, round, 1, 10, limit}, names);
    return {made.pick, names.entries(), names.refused(), std::move(made.cookie)};
}

void settle(plugin::CandidateSource& source, const Scope& scope, Taken taken,
            const std::vector<Verdict>& verdicts) {
    if (taken.cookie != nullptr || !taken.names.empty()) {
        source.settle(scope, std::move(taken.cookie), verdicts);
    }
}

/// The same verdict for each name of a take.
std::vector<Verdict> all(const Taken& taken, VerdictKind kind, SteadyTime until = {},
                         bool drained = false) {
    std::vector<Verdict> verdicts;
    for (const auto& name : taken.names) {
        verdicts.push_back({name.token, name.partition, id_of(7), kind, drained, 1, until});
    }
    return verdicts;
}

void mark(plugin::CandidateSource& source, const OwnedQueue& queue, std::string_view partition,
          std::string_view group = {}) {
    const Mark one{partition, {}, 1};
    source.mark(queue.view(), group, Origin::push, {&one, 1});
}

/// A pop would not park: there are names, or the store is asked.
bool looks(plugin::CandidateSource& source, const Scope& scope) {
    return source.peek(scope).state != ReadyState::nothing;
}

TEST_P(CandidateConformance, AScopeNeverHeardOfIsNotAnsweredWithNothing) {
    const OwnedQueue queue("orders");
    EXPECT_TRUE(looks(source(), queue.scope("g")));
    Taken taken = take(source(), queue.scope("g"));
    EXPECT_EQ(taken.pick, Pick::scan) << "it knows no names, and nobody told it there are none";
    settle(source(), queue.scope("g"), std::move(taken), {});
}

TEST_P(CandidateConformance, PeekChangesNothing) {
    const OwnedQueue queue("orders");
    mark(source(), queue, "p1");
    const auto first = source().peek(queue.scope("g"));
    for (int i = 0; i < 100; ++i) {
        const auto again = source().peek(queue.scope("g"));
        ASSERT_EQ(again.state, first.state);
        ASSERT_EQ(again.partitions, first.partitions);
    }
}

TEST_P(CandidateConformance, AMarkedQueueIsLookedAtByEveryGroup) {
    const OwnedQueue queue("orders");
    mark(source(), queue, "p1");
    for (const std::string_view group : {"a", "b", "c"}) {
        EXPECT_TRUE(looks(source(), queue.scope(group))) << group;
        Taken taken = take(source(), queue.scope(group));
        EXPECT_NE(taken.pick, Pick::none) << group;
        const auto verdicts = all(taken, VerdictKind::took_acked, {}, true);
        settle(source(), queue.scope(group), std::move(taken), verdicts);
    }
}

TEST_P(CandidateConformance, AMarkForOneGroupIsLookedAtByIt) {
    const OwnedQueue queue("orders");
    mark(source(), queue, "p1", "a");
    EXPECT_TRUE(looks(source(), queue.scope("a")));
}

TEST_P(CandidateConformance, NamesAreOnesThatWereMarkedByteForByte) {
    const OwnedQueue queue("orders");
    const std::set<std::string> marked{
        "p", "P", " p", "p ", "äöü-日本", std::string(255, 'x'), "a/b?c=d&e"};
    for (const std::string& name : marked) {
        mark(source(), queue, name);
    }
    Taken taken = take(source(), queue.scope("g"));
    EXPECT_EQ(taken.refused, 0u);
    for (const auto& name : taken.names) {
        EXPECT_TRUE(marked.contains(name.partition)) << name.partition;
    }
    settle(source(), queue.scope("g"), std::move(taken), {});
}

TEST_P(CandidateConformance, NamesOfAnotherQueueTenantOrAlikeKeyAreNotOffered) {
    const OwnedQueue orders("orders"), other("order"), longer("orders2");
    mark(source(), other, "p-other");
    mark(source(), longer, "p-longer");
    Taken taken = take(source(), orders.scope("g"));
    EXPECT_TRUE(taken.names.empty());
    settle(source(), orders.scope("g"), std::move(taken), {});
}

TEST_P(CandidateConformance, ATakeStaysWithinItsLimitAndRepeatsNoName) {
    const OwnedQueue queue("orders");
    for (int i = 0; i < 300; ++i) {
        mark(source(), queue, "p" + std::to_string(i));
        mark(source(), queue, "p" + std::to_string(i / 2));
    }
    for (const std::uint64_t limit : {1u, 2u, 16u, 256u}) {
        NameList names(limit);
        Selection made = source().take(Take{queue.scope("g"), 0, 1, 10, limit}, names);
        EXPECT_EQ(names.refused(), 0u) << "limit " << limit;
        EXPECT_EQ(made.pick == Pick::names, !names.entries().empty()) << "limit " << limit;
        if (made.cookie != nullptr || !names.entries().empty()) {
            source().settle(queue.scope("g"), std::move(made.cookie), {});
        }
    }
}

TEST_P(CandidateConformance, RoundsEndInAnAnswerThatIsNotNames) {
    const OwnedQueue queue("orders");
    mark(source(), queue, "p1");
    Pick last = Pick::names;
    for (std::uint32_t round = 0; round < 4 && last == Pick::names; ++round) {
        Taken taken = take(source(), queue.scope("g"), round);
        last = taken.pick;
        const auto verdicts = all(taken, VerdictKind::empty);
        settle(source(), queue.scope("g"), std::move(taken), verdicts);
    }
    EXPECT_NE(last, Pick::names) << "four rounds of one pop, and still names that are empty";
}

TEST_P(CandidateConformance, WhatWasNotEvaluatedIsLookedAtAgain) {
    const OwnedQueue queue("orders");
    mark(source(), queue, "p1");
    Taken taken = take(source(), queue.scope("g"));
    settle(source(), queue.scope("g"), std::move(taken), {}); // the pop died
    EXPECT_TRUE(looks(source(), queue.scope("g")));
    taken = take(source(), queue.scope("g"));
    const auto verdicts = all(taken, VerdictKind::requeue);
    settle(source(), queue.scope("g"), std::move(taken), verdicts);
    EXPECT_TRUE(looks(source(), queue.scope("g")));
}

TEST_P(CandidateConformance, AnUndrainedPartitionIsLookedAtAgain) {
    const OwnedQueue queue("orders");
    mark(source(), queue, "p1");
    Taken taken = take(source(), queue.scope("g"));
    const auto verdicts = all(taken, VerdictKind::took_acked, {}, false);
    settle(source(), queue.scope("g"), std::move(taken), verdicts);
    EXPECT_TRUE(looks(source(), queue.scope("g")));
}

TEST_P(CandidateConformance, AForeignLeaseIsLookedAtWhenItEnds) {
    const OwnedQueue queue("orders");
    mark(source(), queue, "p1");
    const SteadyTime until = clock().now() + 5s;
    Taken taken = take(source(), queue.scope("g"));
    const auto verdicts = all(taken, VerdictKind::leased, until);
    settle(source(), queue.scope("g"), std::move(taken), verdicts);
    const auto held = source().peek(queue.scope("g"));
    if (held.state == ReadyState::nothing) {
        EXPECT_LE(held.next_due, until) << "it says nothing, and not when to ask again";
    }
    clock().advance(5s + 1ms);
    (void)source().tick(clock().now());
    EXPECT_TRUE(looks(source(), queue.scope("g")));
}

TEST_P(CandidateConformance, AForgottenScopeIsUnknownAgain) {
    const OwnedQueue queue("orders");
    mark(source(), queue, "p1");
    Taken taken = take(source(), queue.scope("g"));
    const auto verdicts = all(taken, VerdictKind::empty);
    settle(source(), queue.scope("g"), std::move(taken), verdicts);
    source().forget(kTenant, queue.name, "g");
    EXPECT_TRUE(looks(source(), queue.scope("g")));
    source().forget(kTenant, queue.name, "");
    EXPECT_TRUE(looks(source(), queue.scope("g")));
    source().forget(kTenant, "", "");
    EXPECT_TRUE(looks(source(), queue.scope("g")));
}

TEST_P(CandidateConformance, ASelectionTakenBeforeAForgetSettlesAfterIt) {
    const OwnedQueue queue("orders");
    mark(source(), queue, "p1");
    Taken taken = take(source(), queue.scope("g"));
    const auto verdicts = all(taken, VerdictKind::requeue);
    source().forget(kTenant, "", "");
    settle(source(), queue.scope("g"), std::move(taken), verdicts);
    EXPECT_TRUE(looks(source(), queue.scope("g")));
}

TEST_P(CandidateConformance, VerdictsOnNamesItDidNotOfferAreHarmless) {
    const OwnedQueue queue("orders");
    mark(source(), queue, "p1");
    Taken taken = take(source(), queue.scope("g"));
    std::vector<Verdict> verdicts = all(taken, VerdictKind::took_leased, clock().now() + 60s);
    verdicts.push_back({0, "found by the store", id_of(1), VerdictKind::took_acked, true, 3, {}});
    verdicts.push_back({~0ull, "no such token", {}, VerdictKind::leased, false, 0, {}});
    verdicts.push_back({12345, "", {}, VerdictKind::empty, false, 0, {}});
    settle(source(), queue.scope("g"), std::move(taken), verdicts);
    EXPECT_TRUE(looks(source(), queue.scope("g")) ||
                source().peek(queue.scope("g")).next_due != SteadyTime::max());
}

TEST_P(CandidateConformance, NewsAboutWhatItDoesNotKnowIsHarmless) {
    const OwnedQueue queue("orders");
    source().released(queue.view(), "g", id_of(9), true);
    source().released(queue.view(), "g", {}, false);
    source().learn(queue.view(), "p1", id_of(9));
    source().configured(queue.view(), {5s, 3s, clock().now()});
    source().forget(kTenant, "no such queue", "g");
    const plugin::ReseedRow row{"p1", id_of(9)};
    (void)source().reseed_page(queue.scope("g"), 4711, {&row, 1});
    source().reseed_done(queue.scope("g"), 4711, false);
    EXPECT_TRUE(looks(source(), queue.scope("g")));
}

TEST_P(CandidateConformance, ATickAsksForALaterOne) {
    const SteadyTime now = clock().now();
    EXPECT_GT(source().tick(now), now);
}

TEST_P(CandidateConformance, FiguresAreNumbersWithNames) {
    struct Figures final : plugin::Stats {
        void add(std::string_view name, double value) override {
            EXPECT_FALSE(name.empty());
            EXPECT_TRUE(std::isfinite(value)) << name;
        }
    } figures;
    const OwnedQueue queue("orders");
    mark(source(), queue, "p1");
    source().stats(figures);
}

// Each thread settles each of its selections once, also those another thread forgets under it. What
// this looks for is found by the sanitizers; that no pop is answered "nothing" for good is checked
// at the end.
TEST_P(CandidateConformance, CallsFromManyThreadsAtOnce) {
    const OwnedQueue queues[] = {OwnedQueue("q0"), OwnedQueue("q1"), OwnedQueue("q2")};
    constexpr int kRounds = 400;
    std::atomic<int> wrong{0};
    const auto work = [&](unsigned seed) {
        for (int i = 0; i < kRounds; ++i) {
            seed = seed * 1664525u + 1013904223u;
            const OwnedQueue& queue = queues[(seed >> 8) % 3];
            const Scope scope = queue.scope((seed >> 12) % 2 == 0 ? "a" : "b");
            switch ((seed >> 16) % 8) {
            case 0:
                source().forget(kTenant, queue.name, (seed >> 24) % 2 == 0 ? "a" : "");
                break;
            case 1:
                source().released(queue.view(), scope.group, id_of(7), true);
                break;
            case 2:
                clock().advance(1ms);
                break;
            case 3:
            case 4: {
                const std::string partition = "p" + std::to_string((seed >> 20) % 16);
                mark(source(), queue, partition);
                break;
            }
            default: {
                (void)source().peek(scope);
                Taken taken = take(source(), scope, 0, 16);
                wrong += taken.refused > 0 ? 1 : 0;
                wrong += (taken.pick == Pick::names) != !taken.names.empty() ? 1 : 0;
                const auto kind = static_cast<VerdictKind>(1 + (seed >> 24) % 5);
                const auto verdicts = all(taken, kind, clock().now() + 2ms, (seed & 1) != 0);
                settle(source(), scope, std::move(taken), verdicts);
            }
            }
        }
    };
    {
        std::vector<std::jthread> threads;
        for (unsigned seed = 1; seed <= 4; ++seed) {
            threads.emplace_back(work, seed);
        }
    }
    EXPECT_EQ(wrong, 0);
    for (const OwnedQueue& queue : queues) {
        mark(source(), queue, "last");
        EXPECT_TRUE(looks(source(), queue.scope("a"))) << queue.name;
    }
}

} // namespace

} // namespace queen::conformance
