#include "../../../plugins/sqlscan/sqlscan.hpp"

#include <queen/plugin/testing.hpp>

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <set>
#include <thread>

namespace queen::sqlscan {
namespace {

using namespace std::chrono_literals;
using plugin::Mark;
using plugin::NameList;
using plugin::Origin;
using plugin::Pick;
using plugin::Queue;
using plugin::ReadyState;
using plugin::Scope;
using plugin::Selection;
using plugin::Take;
using plugin::Verdict;
using plugin::VerdictKind;
using Names = std::vector<std::string>;

constexpr Queue kOrders{"t\x1forders", "t", "orders"};
constexpr Queue kInvoices{"t\x1finvoices", "t", "invoices"};
constexpr Scope kA{kOrders, "a"};
constexpr Scope kB{kOrders, "b"};

Uuid id_of(std::uint8_t n) {
    Uuid id;
    id.bytes.fill(n);
    return id;
}

class SqlScanTest : public testing::Test {
protected:
    void remake(Options options) { scan_ = std::make_unique<SqlScan>(options, clock_, &host_); }
    void mark(const Names& partitions, const Queue& queue = kOrders, std::string_view group = {}) {
        std::vector<Mark> marks;
        for (const std::string& partition : partitions) {
            marks.push_back({partition, {}, 1});
        }
        scan_->mark(queue, group, Origin::push, marks);
    }
    struct Taken {
        Selection selection;
        std::vector<NameList::Entry> offered;
        Names names;
    };
    Taken take(const Scope& scope, std::uint64_t limit = 64, std::uint32_t round = 0) {
        NameList list(limit);
        Selection selection = scan_->take(Take{scope, round, 1, 10, limit}, list);
        EXPECT_EQ(list.refused(), 0u);
        EXPECT_EQ(selection.pick == Pick::names, !list.entries().empty());
        return {std::move(selection), list.entries(), list.partitions()};
    }
    void settle(const Scope& scope, Taken taken, VerdictKind kind, SteadyTime until = {},
                bool drained = true, Uuid id = id_of(7)) {
        std::vector<Verdict> verdicts;
        for (const auto& name : taken.offered) {
            verdicts.push_back({name.token, name.partition, id, kind, drained, 1, until});
        }
        scan_->settle(scope, std::move(taken.selection.cookie), verdicts);
    }
    /// Takes and drops: what a group is offered now.
    Names drain(const Scope& scope, std::uint64_t limit = 64) {
        Taken taken = take(scope, limit);
        Names names = taken.names;
        settle(scope, std::move(taken), VerdictKind::empty);
        return names;
    }
    std::map<std::string, double> figures() {
        struct Sink final : plugin::Stats {
            void add(std::string_view name, double value) override {
                all[std::string(name)] = value;
            }
            std::map<std::string, double> all;
        } sink;
        scan_->stats(sink);
        return sink.all;
    }

    plugin::ManualClock clock_;
    plugin::RecordingHost host_;
    std::unique_ptr<SqlScan> scan_ = std::make_unique<SqlScan>(Options{}, clock_, &host_);
};

TEST_F(SqlScanTest, WithoutHintsTheStoreIsAskedAndScans) {
    EXPECT_EQ(scan_->peek(kA).state, ReadyState::ask_store);
    EXPECT_EQ(take(kA).selection.pick, Pick::scan);
    EXPECT_EQ(figures()["groups"], 0.0) << "neither of them made anything";
}

TEST_F(SqlScanTest, RoundZeroNamesTheHintsAndRoundOneScans) {
    mark({"p1", "p2"});
    const auto ready = scan_->peek(kA);
    EXPECT_EQ(ready.state, ReadyState::ready);
    EXPECT_EQ(ready.partitions, 2u);
    Taken taken = take(kA);
    EXPECT_EQ(taken.names, (Names{"p1", "p2"}));
    settle(kA, std::move(taken), VerdictKind::empty);
    EXPECT_EQ(take(kA, 64, 1).selection.pick, Pick::scan);
}

TEST_F(SqlScanTest, LaterRoundsScanThoughThereAreHints) {
    mark({"p1"});
    EXPECT_EQ(take(kA, 64, 1).selection.pick, Pick::scan);
    EXPECT_EQ(take(kA, 64, 3).selection.pick, Pick::scan);
    EXPECT_EQ(take(kA).names, Names{"p1"}) << "and the hint is still there";
}

TEST_F(SqlScanTest, EveryGroupIsOfferedEveryHintOnce) {
    mark({"p1", "p2"});
    EXPECT_EQ(drain(kA), (Names{"p1", "p2"}));
    EXPECT_EQ(drain(kB), (Names{"p1", "p2"}));
    EXPECT_EQ(drain(kA), Names{});
    mark({"p3"});
    EXPECT_EQ(drain(kA), Names{"p3"});
    EXPECT_EQ(drain(kB), Names{"p3"});
    EXPECT_EQ(drain(kB), Names{});
}

TEST_F(SqlScanTest, APushToAPartitionThatWasSeenOffersItAgain) {
    mark({"p1", "p2"});
    drain(kA);
    mark({"p1"});
    EXPECT_EQ(drain(kA), Names{"p1"});
    EXPECT_EQ(drain(kB), (Names{"p2", "p1"})) << "once, in the order of the last marks";
}

TEST_F(SqlScanTest, ALimitLeavesTheRestForTheNextTake) {
    mark({"p1", "p2", "p3"});
    EXPECT_EQ(drain(kA, 2), (Names{"p1", "p2"}));
    EXPECT_EQ(scan_->peek(kA).partitions, 1u);
    EXPECT_EQ(drain(kA, 2), Names{"p3"});
}

TEST_F(SqlScanTest, TheRingDropsTheOldest) {
    remake({.hints = 3});
    mark({"p1", "p2"});
    mark({"p3", "p4"});
    EXPECT_EQ(drain(kA), (Names{"p2", "p3", "p4"}));
    mark({"q1", "q2", "q3", "q4", "q5"});
    EXPECT_EQ(drain(kA), (Names{"q3", "q4", "q5"})) << "of one batch its last";
}

TEST_F(SqlScanTest, QueuesDoNotShareHints) {
    mark({"p1"});
    mark({"i1"}, kInvoices);
    EXPECT_EQ(drain(kA), Names{"p1"});
    EXPECT_EQ(drain({kInvoices, "a"}), Names{"i1"});
}

TEST_F(SqlScanTest, AMarkForOneGroupIsForItAlone) {
    mark({"p1"}, kOrders, "a");
    EXPECT_EQ(scan_->peek(kB).state, ReadyState::ask_store);
    EXPECT_EQ(scan_->peek(kA).state, ReadyState::ready);
    EXPECT_EQ(drain(kA), Names{"p1"});
}

TEST_F(SqlScanTest, WhatWasNotEvaluatedIsOfferedAgainAtOnce) {
    mark({"p1", "p2"});
    settle(kA, take(kA), VerdictKind::requeue);
    EXPECT_EQ(scan_->peek(kA).partitions, 2u);
    Taken died = take(kA);
    EXPECT_EQ(died.names, (Names{"p1", "p2"}));
    scan_->settle(kA, std::move(died.selection.cookie), {}); // without verdicts
    EXPECT_EQ(drain(kA), (Names{"p1", "p2"}));
    EXPECT_EQ(figures()["names_to_offer_again"], 0.0);
}

TEST_F(SqlScanTest, ALeasedPartitionIsOfferedWhenTheLeaseEnds) {
    mark({"p1"});
    const SteadyTime until = clock_.now() + 30s;
    settle(kA, take(kA), VerdictKind::leased, until);
    const auto held = scan_->peek(kA);
    EXPECT_EQ(held.state, ReadyState::ask_store);
    EXPECT_EQ(held.next_due, until);
    EXPECT_EQ(take(kA).selection.pick, Pick::scan);
    clock_.advance(30s);
    EXPECT_EQ(scan_->peek(kA).state, ReadyState::ready);
    EXPECT_EQ(scan_->peek(kA).next_due, SteadyTime::max());
    EXPECT_EQ(drain(kA), Names{"p1"});
}

TEST_F(SqlScanTest, AReleaseOffersAHeldPartitionAtOnceAndWakes) {
    mark({"p1"});
    settle(kA, take(kA), VerdictKind::leased, clock_.now() + 30s, false, id_of(3));
    scan_->released(kOrders, "a", id_of(4), true);
    scan_->released(kOrders, "b", id_of(3), true);
    EXPECT_TRUE(host_.wakes().empty()) << "another partition, another group";
    scan_->released(kOrders, "a", id_of(3), false);
    ASSERT_EQ(host_.wakes().size(), 1u);
    EXPECT_EQ(host_.wakes()[0].queue_key, kOrders.key);
    EXPECT_EQ(host_.wakes()[0].group, "a");
    EXPECT_EQ(drain(kA), Names{"p1"});
    scan_->released(kOrders, "a", id_of(3), true);
    EXPECT_EQ(host_.wakes().size(), 1u) << "nothing held any more";
}

TEST_F(SqlScanTest, AnUnknownIdReleasesNothing) {
    mark({"p1"});
    settle(kA, take(kA), VerdictKind::leased, clock_.now() + 30s, false, Uuid{});
    scan_->released(kOrders, "a", Uuid{}, true);
    EXPECT_TRUE(host_.wakes().empty());
}

TEST_F(SqlScanTest, APushDoesNotOfferAPartitionWhoseReleaseWillBeTold) {
    mark({"p1"});
    settle(kA, take(kA), VerdictKind::leased, clock_.now() + 30s, false, id_of(3));
    mark({"p1", "p2"});
    EXPECT_EQ(scan_->peek(kA).partitions, 1u);
    EXPECT_EQ(drain(kA), Names{"p2"});
    EXPECT_EQ(drain(kB), (Names{"p1", "p2"})) << "the other group may";
    clock_.advance(30s);
    EXPECT_EQ(drain(kA), Names{"p1"}) << "once, though it was hinted at meanwhile";
    EXPECT_EQ(drain(kA), Names{});
}

TEST_F(SqlScanTest, APushOffersAHeldPartitionWhoseReleaseCannotBeMatched) {
    mark({"p1"});
    settle(kA, take(kA), VerdictKind::leased, clock_.now() + 30s, false, Uuid{});
    mark({"p1"});
    EXPECT_EQ(drain(kA), Names{"p1"});
}

TEST_F(SqlScanTest, ATakenPartitionWithMoreInItIsOfferedAgain) {
    mark({"p1"});
    settle(kA, take(kA), VerdictKind::took_acked, {}, false);
    EXPECT_EQ(drain(kA), Names{"p1"}) << "committed: at once";
    mark({"p1"});
    const SteadyTime until = clock_.now() + 60s;
    settle(kA, take(kA), VerdictKind::took_leased, until, false, id_of(3));
    EXPECT_EQ(scan_->peek(kA).next_due, until) << "leased: when our own lease ends";
    scan_->released(kOrders, "a", id_of(3), true);
    EXPECT_EQ(drain(kA), Names{"p1"}) << "or when it was acknowledged";
}

// K12: who was served, and has more, goes behind those who still wait.
TEST_F(SqlScanTest, APartitionWithABacklogDoesNotStandInFrontForEver) {
    mark({"big", "s1", "s2"});
    Names served;
    for (int pop = 0; pop < 6; ++pop) {
        Taken taken = take(kA);
        ASSERT_FALSE(taken.offered.empty());
        // The store claims the first name; a pop of one partition does not look at the others.
        const auto& first = taken.offered.front();
        served.push_back(first.partition);
        const Verdict verdict{first.token,
                              first.partition,
                              id_of(7),
                              VerdictKind::took_leased,
                              first.partition != "big",
                              10,
                              clock_.now() + 60s};
        scan_->settle(kA, std::move(taken.selection.cookie), {&verdict, 1});
        scan_->released(kOrders, "a", id_of(7), true);
    }
    EXPECT_EQ(served, (Names{"big", "s1", "s2", "big", "big", "big"}));
}

TEST_F(SqlScanTest, ADrainedPartitionIsDropped) {
    mark({"p1"});
    settle(kA, take(kA), VerdictKind::took_leased, clock_.now() + 60s, true);
    EXPECT_EQ(scan_->peek(kA).state, ReadyState::ask_store);
    EXPECT_EQ(scan_->peek(kA).next_due, SteadyTime::max());
    mark({"p2"});
    settle(kA, take(kA), VerdictKind::took_acked, {}, true);
    EXPECT_EQ(drain(kA), Names{});
}

TEST_F(SqlScanTest, VerdictsOnPartitionsTheStoreFoundAreNotTakenForOurs) {
    mark({"p1"});
    Taken taken = take(kA);
    const Verdict verdicts[] = {
        {0, "found", id_of(1), VerdictKind::empty, false, 0, {}}, // our token, another name
        {99, "p1", id_of(1), VerdictKind::empty, false, 0, {}},   // our name, no token of ours
        {0, "p1", id_of(1), VerdictKind::requeue, false, 0, {}},  // ours
        {0, "p1", id_of(1), VerdictKind::leased, false, 0, clock_.now() + 1h}, // a second opinion
    };
    scan_->settle(kA, std::move(taken.selection.cookie), verdicts);
    EXPECT_EQ(drain(kA), Names{"p1"});
}

TEST_F(SqlScanTest, ForgettingAGroupDropsWhatItWasToSee) {
    mark({"p1", "p2"});
    settle(kA, take(kA, 1), VerdictKind::requeue);
    scan_->forget("t", "orders", "a");
    EXPECT_EQ(take(kA).selection.pick, Pick::scan);
    EXPECT_EQ(drain(kB), (Names{"p1", "p2"})) << "the other group keeps its own";
    mark({"p3"});
    EXPECT_EQ(drain(kA), Names{"p3"});
}

TEST_F(SqlScanTest, ForgettingAQueueOrATenantDropsAllOfIt) {
    mark({"p1"});
    mark({"i1"}, kInvoices);
    mark({"x1"}, {"u\x1forders", "u", "orders"});
    scan_->forget("t", "orders", "");
    EXPECT_EQ(scan_->peek(kA).state, ReadyState::ask_store);
    EXPECT_EQ(scan_->peek({kInvoices, "a"}).state, ReadyState::ready);
    scan_->forget("t", "", "");
    EXPECT_EQ(figures()["queues"], 1.0) << "the other tenant's";
}

TEST_F(SqlScanTest, ASelectionThatIsSettledAfterAForgetBringsNothingBack) {
    mark({"p1"});
    Taken taken = take(kA);
    scan_->forget("t", "orders", "");
    settle(kA, std::move(taken), VerdictKind::requeue);
    EXPECT_EQ(figures()["names_to_offer_again"], 0.0);
    EXPECT_EQ(figures()["queues"], 0.0);
}

TEST_F(SqlScanTest, HintsThatKeepComingDoNotKeepAGroupFromScanning) {
    int names = 0, scans = 0;
    for (int i = 0; i < 100; ++i) { // ten seconds of pops, one each 100 ms, always with a hint
        mark({"p1"});
        Taken taken = take(kA);
        (taken.selection.pick == Pick::names ? names : scans) += 1;
        settle(kA, std::move(taken), VerdictKind::took_acked);
        clock_.advance(100ms);
    }
    EXPECT_GE(scans, 8);
    EXPECT_LE(scans, 11);
    EXPECT_EQ(names + scans, 100);
}

TEST_F(SqlScanTest, ASteadyStreamOfHintsScansOncePerInterval) {
    int scans = 0;
    for (int i = 0; i < 10'000; ++i) { // ten seconds, one pop each millisecond
        mark({"p1"});
        Taken taken = take(kA);
        scans += taken.selection.pick == Pick::scan ? 1 : 0;
        settle(kA, std::move(taken), VerdictKind::took_acked);
        clock_.advance(1ms);
    }
    EXPECT_GE(scans, 9);
    EXPECT_LE(scans, 10);
}

TEST_F(SqlScanTest, AParkedConsumerIsToldTheNameAfterALongSilence) {
    mark({"p0"});
    drain(kA);
    for (int i = 0; i < 5; ++i) {
        clock_.advance(1h);
        mark({"p" + std::to_string(i)});
        EXPECT_EQ(drain(kA), Names{"p" + std::to_string(i)});
    }
}

// ---- bounds against names that clients choose ---------------------------------------------------

TEST_F(SqlScanTest, TheQueueUsedLeastLatelyGoesFirst) {
    remake({.hints = 4, .queues = 2});
    mark({"p1"});
    mark({"i1"}, kInvoices);
    take(kA);                           // orders was used
    mark({"x1"}, {"t\x1fx", "t", "x"}); // invoices goes
    EXPECT_EQ(figures()["queues"], 2.0);
    EXPECT_EQ(figures()["queues_evicted_total"], 1.0);
    EXPECT_EQ(scan_->peek({kInvoices, "a"}).state, ReadyState::ask_store);
    mark({"p2"});
    EXPECT_EQ(drain(kA), Names{"p2"}) << "its place in the ring was kept";
}

TEST_F(SqlScanTest, ASelectionOfAnEvictedQueueSettlesWithoutHarm) {
    remake({.hints = 4, .queues = 1});
    mark({"p1"});
    Taken taken = take(kA);
    mark({"i1"}, kInvoices);
    settle(kA, std::move(taken), VerdictKind::requeue);
    EXPECT_EQ(figures()["names_to_offer_again"], 0.0);
    EXPECT_EQ(drain({kInvoices, "a"}), Names{"i1"});
}

TEST_F(SqlScanTest, GroupsOfAQueueAreBounded) {
    mark({"p1"});
    for (int i = 0; i < 1000; ++i) {
        const std::string group = "g" + std::to_string(i);
        settle({kOrders, group}, take({kOrders, group}), VerdictKind::requeue);
    }
    EXPECT_EQ(figures()["groups"], static_cast<double>(SqlScan::kMostGroups));
    EXPECT_EQ(figures()["names_to_offer_again"], static_cast<double>(SqlScan::kMostGroups));
    EXPECT_EQ(drain({kOrders, "g999"}), Names{"p1"});
    EXPECT_EQ(drain({kOrders, "g0"}), Names{"p1"}) << "evicted: sees the ring anew";
}

TEST_F(SqlScanTest, NamesToOfferAgainAreBoundedPerGroup) {
    remake({.hints = 2});
    mark({"p1", "p2"});
    settle(kA, take(kA), VerdictKind::leased, clock_.now() + 1h);
    mark({"p3", "p4"});
    settle(kA, take(kA), VerdictKind::leased, clock_.now() + 1h);
    EXPECT_EQ(figures()["names_to_offer_again"], 2.0);
}

TEST_F(SqlScanTest, HostileQueueNamesDoNotGrowIt) {
    remake({.hints = 4, .queues = 16});
    for (int i = 0; i < 20'000; ++i) {
        const std::string name = "q" + std::to_string(i);
        const std::string key = "t\x1f" + name;
        const Queue queue{key, "t", name};
        mark({"p1", "p2"}, queue);
        settle({queue, "g"}, take({queue, "g"}), VerdictKind::requeue);
    }
    EXPECT_EQ(figures()["queues"], 16.0);
    EXPECT_EQ(figures()["hints"], 32.0);
    EXPECT_EQ(figures()["names_to_offer_again"], 32.0);
}

TEST_F(SqlScanTest, NamesToOfferAgainAreBoundedOverAll) {
    remake({.hints = 256, .queues = 100'000});
    Names partitions;
    for (int i = 0; i < 256; ++i) {
        partitions.push_back("p" + std::to_string(i));
    }
    for (int i = 0; i < 300; ++i) { // 76,800 names
        const std::string name = "q" + std::to_string(i);
        const std::string key = "t\x1f" + name;
        const Queue queue{key, "t", name};
        mark(partitions, queue);
        settle({queue, "g"}, take({queue, "g"}, 256), VerdictKind::requeue);
    }
    EXPECT_EQ(figures()["names_to_offer_again"], static_cast<double>(SqlScan::kMostAgain));
    scan_->forget("t", "", "");
    EXPECT_EQ(figures()["names_to_offer_again"], 0.0);
}

TEST_F(SqlScanTest, ManyThreadsLoseNoHint) {
    // Two producers mark partitions of their own, two consumers of one group take until each name
    // was offered to the group at least once. The ring holds all of them.
    constexpr int kEach = 100;
    std::set<std::string> seen;
    std::mutex mutex;
    {
        std::vector<std::jthread> threads;
        remake({.hints = 256, .scan_every = 1h});
        for (int producer = 0; producer < 2; ++producer) {
            threads.emplace_back([this, producer] {
                for (int i = 0; i < kEach; ++i) {
                    mark({std::to_string(producer) + "-" + std::to_string(i)});
                }
            });
        }
        for (int consumer = 0; consumer < 2; ++consumer) {
            threads.emplace_back([&] {
                for (bool done = false; !done;) {
                    Taken taken = take(kA, 8);
                    const std::lock_guard lock(mutex);
                    seen.insert(taken.names.begin(), taken.names.end());
                    settle(kA, std::move(taken), VerdictKind::empty);
                    done = seen.size() == 2 * kEach;
                }
            });
        }
    }
    EXPECT_EQ(seen.size(), 2u * kEach);
}

} // namespace
} // namespace queen::sqlscan
