#include "mesh_conformance.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

namespace queen::conformance {
namespace {

using plugin::HintKind;
using plugin::OwnedHint;

const std::string kTenant = "6f2c1d1e-0a4b-4c57-9d0e-3a1f5b7c9e21";

OwnedHint stored(std::string queue, std::string partition) {
    OwnedHint hint;
    hint.tenant = kTenant;
    hint.queue = std::move(queue);
    hint.partition = std::move(partition);
    return hint;
}

OwnedHint of_kind(HintKind kind, std::string queue) {
    OwnedHint hint = stored(std::move(queue), "");
    hint.kind = kind;
    return hint;
}

OwnedHint moved(std::string queue, std::string partition, std::string group) {
    OwnedHint hint = stored(std::move(queue), std::move(partition));
    hint.kind = HintKind::moved;
    hint.group = std::move(group);
    return hint;
}

OwnedHint switched(std::string subject, bool enabled) {
    OwnedHint hint;
    hint.kind = HintKind::switched;
    hint.subject = std::move(subject);
    hint.enabled = enabled;
    return hint;
}

std::vector<OwnedHint> one_of_each() {
    return {stored("orders", "p1"),
            moved("orders", "", "workers"),
            moved("orders", "p1", "workers"),
            of_kind(HintKind::configured, "orders"),
            of_kind(HintKind::deleted, "old orders"),
            switched("maintenance", true),
            switched("pop_maintenance", false),
            switched("timers_schedule", false),
            switched("timers_fire", true),
            switched("whatever comes", true)};
}

struct PeerCount final : plugin::Peers {
    void add(const plugin::Peer& peer) override {
        ++all;
        connected += peer.connected ? 1 : 0;
    }
    std::size_t all = 0, connected = 0;
};

} // namespace

void MeshConformance::start(std::size_t count) {
    loaded_ = GetParam().load(count);
    ASSERT_EQ(loaded_.nodes.size(), count) << "the subject could not be loaded";
    running_.assign(count, false);
    for (std::size_t n = 0; n < count; ++n) {
        link(n).start();
        running_[n] = true;
    }
    const auto connected = [&] {
        if (loaded_.connected) {
            return loaded_.connected();
        }
        return std::all_of(loaded_.nodes.begin(), loaded_.nodes.end(), [&](const MeshNode& node) {
            PeerCount peers;
            node.link->peers(peers);
            return peers.connected >= count - 1;
        });
    };
    ASSERT_TRUE(plugin::eventually(connected)) << "the links do not reach each other";
}

void MeshConformance::TearDown() {
    for (std::size_t n = 0; n < loaded_.nodes.size(); ++n) {
        stop(n);
    }
    if (loaded_.faults) {
        EXPECT_EQ(loaded_.faults(), "");
    }
}

void MeshConformance::stop(std::size_t n) {
    if (n < running_.size() && running_[n]) {
        link(n).stop();
        running_[n] = false;
    }
}

void MeshConformance::publish(std::size_t from, const std::vector<OwnedHint>& hints) {
    std::vector<plugin::Hint> views;
    views.reserve(hints.size());
    for (const OwnedHint& hint : hints) {
        views.push_back(hint.view());
    }
    link(from).publish(views);
}

void MeshConformance::expect_heard(std::size_t n, const std::vector<OwnedHint>& hints) {
    EXPECT_TRUE(host(n).await(hints)) << "link " << n << " misses some";
    for (const OwnedHint& heard : host(n).hints()) {
        EXPECT_NE(std::find(hints.begin(), hints.end(), heard), hints.end())
            << "link " << n << " heard what nobody said: kind " << static_cast<int>(heard.kind)
            << " queue " << heard.queue << " partition " << heard.partition << " group "
            << heard.group << " subject " << heard.subject;
    }
}

TEST_P(MeshConformance, HintsOfEveryKindAreHeardByEachOther) {
    ASSERT_NO_FATAL_FAILURE(start(3));
    const auto hints = one_of_each();
    publish(0, hints);
    expect_heard(1, hints);
    expect_heard(2, hints);
}

TEST_P(MeshConformance, NobodyHearsItselfAndNobodyPassesOn) {
    ASSERT_NO_FATAL_FAILURE(start(3));
    const auto hints = one_of_each();
    publish(0, hints);
    ASSERT_TRUE(host(1).await(hints));
    ASSERT_TRUE(host(2).await(hints));
    // What the two would pass on comes before what they say now.
    publish(1, {stored("last", "1")});
    publish(2, {stored("last", "2")});
    expect_heard(0, {stored("last", "1"), stored("last", "2")});
}

TEST_P(MeshConformance, SomebodyListensOnlyWhereThereIsSomebody) {
    ASSERT_NO_FATAL_FAILURE(start(2));
    EXPECT_TRUE(link(0).listened());
    EXPECT_TRUE(link(1).listened());
}

// Whatever one said before it reached the other is lost; the other's broker has to look.
TEST_P(MeshConformance, WhoIsReachedTellsThatHintsMayHaveBeenMissed) {
    ASSERT_NO_FATAL_FAILURE(start(2));
    EXPECT_TRUE(host(0).await_missed(1));
    EXPECT_TRUE(host(1).await_missed(1));
}

TEST_P(MeshConformance, WithoutPeersItIsSilent) {
    ASSERT_NO_FATAL_FAILURE(start(1));
    EXPECT_FALSE(link(0).listened());
    publish(0, one_of_each());
    publish(0, {});
    EXPECT_TRUE(host(0).hints().empty());
}

TEST_P(MeshConformance, NamesSurviveByteForByte) {
    ASSERT_NO_FATAL_FAILURE(start(2));
    const std::vector<std::string> names{"p",
                                         " p ",
                                         "äöü-日本-\xF0\x9F\x90\x9D",
                                         "a/b?c=d&e",
                                         "\"quoted\\\"",
                                         "{}",
                                         "null",
                                         "\xE2\x80\xA8",
                                         "'; --",
                                         "\\u0000",
                                         "é",
                                         "\x65\xCC\x81",
                                         std::string(255, 'x')};
    std::vector<OwnedHint> hints;
    for (const std::string& name : names) {
        hints.push_back(stored("orders", name));
        hints.push_back(stored(name, "p1"));
        hints.push_back(moved("orders", "", name));
        hints.push_back(of_kind(HintKind::deleted, name));
    }
    hints.push_back(stored("orders", "")); // all partitions
    publish(0, hints);
    expect_heard(1, hints);
}

TEST_P(MeshConformance, ATenantThatIsNotSaidStaysUnsaid) {
    ASSERT_NO_FATAL_FAILURE(start(2));
    OwnedHint hint = stored("orders", "p1");
    hint.tenant.clear();
    publish(0, {hint});
    expect_heard(1, {hint});
}

TEST_P(MeshConformance, AFewHundredHintsAtOnceAllArriveAtAnIdleMesh) {
    ASSERT_NO_FATAL_FAILURE(start(2));
    std::vector<OwnedHint> hints;
    for (int i = 0; i < 300; ++i) {
        hints.push_back(stored("orders", "p" + std::to_string(i)));
    }
    publish(0, hints);
    expect_heard(1, hints);
    publish(1, hints);
    expect_heard(0, hints);
}

TEST_P(MeshConformance, StopEndsHearing) {
    ASSERT_NO_FATAL_FAILURE(start(3));
    stop(1);
    const std::size_t before = host(1).calls();
    publish(0, {stored("orders", "p1")});
    ASSERT_TRUE(host(2).await(std::vector{stored("orders", "p1")}));
    EXPECT_EQ(host(1).calls(), before);
}

// Brokers answer who pushed before they stop, so the last hint is as good as any.
TEST_P(MeshConformance, WhatWasPublishedBeforeTheStopIsHeard) {
    ASSERT_NO_FATAL_FAILURE(start(2));
    const std::vector hints{stored("orders", "last"), of_kind(HintKind::configured, "orders")};
    publish(0, hints);
    stop(0);
    expect_heard(1, hints);
}

TEST_P(MeshConformance, AfterItsStopALinkIsSilent) {
    ASSERT_NO_FATAL_FAILURE(start(2));
    stop(0);
    EXPECT_FALSE(link(0).listened());
    publish(0, one_of_each());
    PeerCount peers;
    link(0).peers(peers);
    EXPECT_EQ(peers.connected, 0u);
}

TEST_P(MeshConformance, ALinkOutlivesItsPeers) {
    ASSERT_NO_FATAL_FAILURE(start(3));
    stop(2);
    stop(1);
    for (int i = 0; i < 100; ++i) {
        publish(0, one_of_each());
    }
    (void)link(0).listened();
}

TEST_P(MeshConformance, FiguresAndPeersAreSound) {
    ASSERT_NO_FATAL_FAILURE(start(2));
    publish(0, one_of_each());
    ASSERT_TRUE(host(1).await(one_of_each()));
    struct Figures final : plugin::Stats {
        void add(std::string_view name, double value) override {
            EXPECT_FALSE(name.empty());
            EXPECT_TRUE(std::isfinite(value)) << name;
        }
    } figures;
    struct Sound final : plugin::Peers {
        void add(const plugin::Peer& peer) override {
            EXPECT_FALSE(peer.address.empty());
            EXPECT_LE(peer.address.size(), 255u);
            EXPECT_LE(peer.server_id.size(), 255u);
            EXPECT_GE(peer.silent.count(), 0);
        }
    } sound;
    for (std::size_t n : {0u, 1u}) {
        link(n).stats(figures);
        link(n).peers(sound);
    }
}

// What this looks for is found by the sanitizers; that nothing is heard once stop() has returned
// is checked at the end.
TEST_P(MeshConformance, ManyThreadsPublishWhileStopComes) {
    ASSERT_NO_FATAL_FAILURE(start(2));
    constexpr int kRounds = 2'000;
    std::atomic<bool> stopped{false};
    const auto work = [&](std::size_t from, int name) {
        const auto hint = stored("orders", "p" + std::to_string(name));
        int after = 100; // that many more when the stop is over
        for (int i = 0; i < kRounds || after > 0; ++i) {
            publish(from, {hint, of_kind(HintKind::configured, "orders")});
            (void)link(from).listened();
            after -= stopped ? 1 : 0;
        }
    };
    std::size_t heard = 0;
    {
        std::vector<std::jthread> threads;
        for (int name = 0; name < 4; ++name) {
            threads.emplace_back(work, name % 2, name);
        }
        EXPECT_TRUE(host(0).await(std::size_t{1}));
        EXPECT_TRUE(host(1).await(std::size_t{1}));
        stop(0);
        heard = host(0).calls();
        stopped = true;
    }
    EXPECT_EQ(host(0).calls(), heard);
}

} // namespace queen::conformance
