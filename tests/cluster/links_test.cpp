// What a mesh may do without anybody losing more than time: links that are cut, black holes, half
// open or slow, peers that die, freeze or talk nonsense, and a third broker.
#include "cluster/cluster.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

namespace queen::test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::size_t kA = 0, kB = 1, kC = 2;
const std::string kHeard = "queen_peer_hints_heard_total{kind=\"stored\"}";
const std::string kConnected = "queen_mesh_peers_connected{plugin=\"mesh\"}";
const std::string kReconnects = "queen_mesh_reconnects_total{plugin=\"mesh\"}";
const std::string kPop = "consumerGroup=g&autoAck=true";

/// A push on one broker that wakes a pop on another, by a hint.
void hinted(Cluster& cluster, std::size_t from, std::size_t to, const std::string& id) {
    const Cause cause(cluster, to);
    auto parked = cluster.park(to, "q", kPop);
    ASSERT_EQ(cluster[from].api->push_ids("q", "p", {id}).status, 201);
    EXPECT_THAT(Api::read_pop(parked.read()).ids(), ElementsAre(id));
    cause.was_a_hint("stored");
}

// K34: the fallback that docs/semantics.md states.
TEST(Links, K34_WithoutALinkAPushIsSeenByTheFloor) {
    Cluster cluster({.patient = false});
    cluster.each_link(&TcpProxy::cut);
    cluster.await_at_most(kA, kConnected, 0);
    for (const bool pinned : {true, false}) {
        const Cause cause(cluster, kB);
        auto parked = cluster.park(kB, "q", kPop, pinned ? "p" : "");
        ASSERT_EQ(cluster[kA].api->push_ids("q", "p", {pinned ? "1" : "2"}).status, 201);
        EXPECT_EQ(Api::read_pop(parked.read()).messages.size(), 1u);
        EXPECT_EQ(cause.grown(kHeard), 0);
        if (pinned) {
            EXPECT_GE(cause.grown("queen_wakes_total{cause=\"floor\"}"), 1);
        }
    }
}

// MESH-4: the floors lie an hour away, and nothing is pushed after the heal.
TEST(Links, WhatWasPushedWhileTheMeshWasCutIsFoundRightAfterItHeals) {
    Cluster cluster({});
    hinted(cluster, kA, kB, "before");
    for (const auto& [spoil, name] :
         {std::pair{&TcpProxy::cut, "cut"}, std::pair{&TcpProxy::half_open, "half open"}}) {
        const std::string pinned = std::string(name) + ", pinned";
        cluster.each_link(spoil);
        auto parked = cluster.park(kB, "q", kPop);
        auto parked_at = cluster.park(kB, "r", kPop, "p");
        const Cause cause(cluster, kB);
        ASSERT_EQ(cluster[kA].api->push_ids("q", "p", {name}).status, 201) << "no push waits";
        ASSERT_EQ(cluster[kA].api->push_ids("r", "p", {pinned}).status, 201);
        cluster.each_link(&TcpProxy::pass);
        EXPECT_THAT(Api::read_pop(parked.read()).ids(), ElementsAre(name));
        EXPECT_THAT(Api::read_pop(parked_at.read()).ids(), ElementsAre(pinned));
        EXPECT_GE(cause.grown("queen_peer_hints_missed_total"), 1);
        cluster.connected();
        hinted(cluster, kA, kB, std::string(name) + ", after");
    }
}

// MESH-4: whoever comes back finds by itself what it was not told of; so does who does not wait.
TEST(Links, ACutMeshThatHealsTellsWhoDoesNotWaitAndOfSwitchesToo) {
    Cluster cluster({});
    ASSERT_EQ(cluster[kB].api->pop("q", kPop + "&wait=false").status, 204) << "the ring is known";
    cluster.each_link(&TcpProxy::cut);
    cluster.await_at_most(kA, kConnected, 0);
    cluster.await_at_most(kB, kConnected, 0);
    ASSERT_EQ(cluster[kA].api->push_ids("q", "p", {"m"}).status, 201);
    ASSERT_EQ(
        cluster[kA].api->http.post("/api/v1/system/maintenance/pop", R"({"enabled":true})").status,
        200);
    cluster.each_link(&TcpProxy::pass);
    cluster.await_body(kB, "/api/v1/system/maintenance/pop", R"("popMaintenanceMode":true)");
    ASSERT_EQ(
        cluster[kB].api->http.post("/api/v1/system/maintenance/pop", R"({"enabled":false})").status,
        200);
    cluster.await_body(kB, "/api/v1/pop/queue/q?" + kPop + "&wait=false", "\"m\"");
}

// Nobody is told that nothing arrives: only the silence says so.
TEST(Links, ABlackHoleIsNoticedByItsSilenceAndHoldsNoPushUp) {
    Cluster cluster({.dead_threshold = "1s"});
    cluster.each_link(&TcpProxy::black_hole);
    for (int i = 0; i < 50; ++i) {
        ASSERT_EQ(cluster[kA].api->push_ids("q", "p", {"m" + std::to_string(i)}).status, 201);
    }
    cluster.await(kA, "queen_mesh_servers_dead{plugin=\"mesh\"}", 1);
    const auto stats = cluster[kA].api->http.get("/internal/api/inter-instance/stats").body;
    EXPECT_THAT(stats, HasSubstr(R"("servers_alive":0,"servers_dead":1)"));
    cluster.each_link(&TcpProxy::pass);
    cluster.await(kA, "queen_mesh_servers_alive{plugin=\"mesh\"}", 1);
    cluster.connected();
    EXPECT_EQ(cluster[kB].api->pop("q", kPop).messages.size(), 50u);
}

TEST(Links, ASlowLinkDelaysHintsAndNothingElse) {
    Cluster cluster({});
    for (const auto& [from, to] : {std::pair{kA, kB}, std::pair{kB, kA}}) {
        cluster.link(from, to).delay(300ms);
    }
    hinted(cluster, kA, kB, "a");
    hinted(cluster, kB, kA, "b");
}

TEST(Links, APeerThatIsKilledIsFoundAgainWhenItComesBack) {
    Cluster cluster({});
    hinted(cluster, kA, kB, "1");
    cluster.kill9(kB);
    cluster.await_at_most(kA, kConnected, 0);
    for (int i = 0; i < 20; ++i) {
        ASSERT_EQ(cluster[kA].api->push_ids("q", "p", {"m" + std::to_string(i)}).status, 201);
    }
    cluster.start(kB);
    cluster.connected();
    EXPECT_EQ(cluster[kB].api->pop("q", kPop).messages.size(), 20u);
    hinted(cluster, kA, kB, "2");
    hinted(cluster, kB, kA, "3");
}

// F-45's sibling: a frozen broker is neither alive nor gone, and its kernel still takes bytes.
TEST(Links, APeerThatFreezesHoldsNobodyUpAndHearsAgainWhenItThaws) {
    Cluster cluster({.dead_threshold = "1s"});
    ASSERT_EQ(cluster[kA].api->push_ids("q", "p", {"first"}).status, 201);
    ASSERT_THAT(cluster[kB].api->pop("q", kPop).ids(), ElementsAre("first"));
    auto parked = cluster.park(kB, "q", kPop);
    cluster[kB].process->signal(SIGSTOP);
    for (int i = 0; i < 20; ++i) {
        const std::string id = "m" + std::to_string(i);
        ASSERT_EQ(cluster[kA].api->push_ids("other", "p" + id, {id}).status, 201);
    }
    cluster.await(kA, "queen_mesh_servers_dead{plugin=\"mesh\"}", 1);
    cluster[kB].process->signal(SIGCONT);
    cluster.connected();
    cluster.await(kA, "queen_mesh_servers_alive{plugin=\"mesh\"}", 1);
    ASSERT_EQ(cluster[kA].api->push_ids("q", "p", {"second"}).status, 201);
    EXPECT_THAT(Api::read_pop(parked.read()).ids(), ElementsAre("second"));
}

TEST(Links, StrangersThatTalkNonsenseAreCountedAndTheRestGoesOn) {
    Cluster cluster({});
    const std::string junk(100'000, '\xff');
    for (int i = 0; i < 20; ++i) {
        HttpClient stranger(cluster[kB].mesh_port);
        try {
            stranger.send(junk);
            stranger.reset();
        } catch (const HttpClosed&) { // it had heard enough
            continue;
        }
    }
    const Cause cause(cluster, kB);
    HttpClient stranger(cluster[kB].mesh_port);
    stranger.send(std::string("\0\0\0\0", 4)); // no length at all
    EXPECT_TRUE(stranger.closed_by_peer());
    cluster.await(kB, "queen_mesh_frames_bad_total{plugin=\"mesh\"}", 1);
    EXPECT_EQ(cause.grown(kHeard), 0);
    hinted(cluster, kA, kB, "m");
}

// A flood of true hints: of 4,000 partitions, at a broker that serves none of them.
TEST(Links, AFloodOfPushesLeavesTheOthersServed) {
    Cluster cluster({});
    const Cause cause(cluster, kB);
    for (int request = 0; request < 4; ++request) {
        std::vector<std::array<std::string, 3>> items;
        for (int i = 0; i < 1'000; ++i) {
            const std::string name = std::to_string(request) + "-" + std::to_string(i);
            items.push_back({name, name, "1"});
        }
        ASSERT_EQ(cluster[kA].api->push("flood", items).status, 201);
    }
    hinted(cluster, kA, kB, "m");
    cluster.await(kB, kHeard, 4'001);
    EXPECT_EQ(cause.grown("queen_peer_hints_refused_total{reason=\"overflow\"}"), 0);
    EXPECT_EQ(cluster[kB].api->pop("flood", kPop + "&partitions=1000&batch=10000").status, 200);
}

TEST(Links, OfThreeBrokersEachHearsOfEachAndNobodyPassesOn) {
    Cluster cluster({.brokers = 3});
    auto on_b = cluster.park(kB, "three", "consumerGroup=b&autoAck=true");
    auto on_c = cluster.park(kC, "three", "consumerGroup=c&autoAck=true");
    const Cause b(cluster, kB);
    const Cause c(cluster, kC);
    ASSERT_EQ(cluster[kA].api->push_ids("three", "p", {"m"}).status, 201);
    EXPECT_THAT(Api::read_pop(on_b.read()).ids(), ElementsAre("m"));
    EXPECT_THAT(Api::read_pop(on_c.read()).ids(), ElementsAre("m"));
    for (const auto* cause : {&b, &c}) {
        cause->was_a_hint("stored");
        EXPECT_EQ(cause->grown("queen_peer_hints_published_total{kind=\"stored\"}"), 0);
    }
    hinted(cluster, kB, kC, "from b");
    // One link alone is cut: the third broker does not help out, and neither do the two need it.
    cluster.link(kA, kC).cut();
    hinted(cluster, kA, kB, "past c");
    hinted(cluster, kC, kA, "back");
}

// K34: what no hint tells of is found when its time comes.
TEST(Links, K34_APartitionThatALeaseFreesIsFoundByAnotherBroker) {
    Cluster cluster({.patient = false});
    for (const bool acked : {true, false}) {
        const std::string queue = acked ? "acked" : "expired";
        ASSERT_EQ(cluster[kA].api->configure(queue, R"({"leaseTime":600})").status, 200);
        ASSERT_EQ(cluster[kA].api->push_ids(queue, "p", {"1", "2"}).status, 201);
        const auto held = cluster[kA].api->pop(queue, "consumerGroup=g&batch=1&leaseSeconds=" +
                                                          std::string(acked ? "600" : "2"));
        ASSERT_THAT(held.ids(), ElementsAre("1"));
        auto parked = cluster.park(kB, queue, "consumerGroup=g&autoAck=true&batch=9");
        if (acked) {
            ASSERT_EQ(cluster[kA].api->ack(held.messages[0], "completed", "g"), "true");
        }
        const auto got = Api::read_pop(parked.read()).ids();
        EXPECT_EQ(got,
                  acked ? std::vector<std::string>{"2"} : std::vector<std::string>({"1", "2"}));
    }
}

} // namespace
} // namespace queen::test
