// Several brokers: who hears what, who dials when, what is lost with a connection.
#include "plugins/mesh/mesh_fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace queen::mesh {
namespace {

class NetworkTest : public MeshBed {
protected:
    void publish(Node& node, const Hint& hint) {
        node.network.outbox().publish(std::span(&hint, 1));
    }
    static std::size_t count(const Node& node, std::string_view partition) {
        const auto hints = node.host.hints();
        return static_cast<std::size_t>(std::count_if(
            hints.begin(), hints.end(), [&](const auto& h) { return h.partition == partition; }));
    }
    struct Rows final : plugin::Peers {
        struct Row {
            std::string address, server_id;
            bool connected, alive;
            Nanoseconds silent;
            std::uint64_t sent, received;
        };
        void add(const plugin::Peer& peer) override {
            rows.push_back({std::string(peer.address), std::string(peer.server_id), peer.connected,
                            peer.alive, peer.silent, peer.sent, peer.received});
        }
        std::vector<Row> rows;
    };
    Rows peers(Node& node) {
        Rows rows;
        node.network.roster().report(rows, clock_.now());
        return rows;
    }
};

TEST_F(NetworkTest, ME3_EachOfFiveHearsEachOtherAndME12_NobodyRepeats) {
    const std::vector<std::string> ids{"a", "b", "c", "d", "e"};
    for (const std::string& id : ids) {
        std::vector<std::string> others;
        std::copy_if(ids.begin(), ids.end(), std::back_inserter(others),
                     [&](const std::string& other) { return other != id; });
        add(id, others);
    }
    ASSERT_TRUE(until([&] {
        return std::all_of(nodes_.begin(), nodes_.end(), [&](const auto& node) {
            return node->network.roster().counts(clock_.now()).connected == 4;
        });
    }));
    for (const auto& node : nodes_) {
        publish(*node, stored("q", "from " + node->options.server_id));
    }
    ASSERT_TRUE(until([&] {
        return std::all_of(nodes_.begin(), nodes_.end(),
                           [&](const auto& node) { return node->host.hints().size() >= 4; });
    }));
    advance(20ms);
    ASSERT_TRUE(until([&] {
        return std::all_of(nodes_.begin(), nodes_.end(),
                           [&](const auto& node) { return node->host.hints().size() >= 8; });
    }));
    advance(20ms);
    settle();
    for (const auto& node : nodes_) {
        for (const std::string& id : ids) {
            EXPECT_EQ(count(*node, "from " + id), id == node->options.server_id ? 0u : 2u)
                << "availability and dirty hint of each other broker, nothing of its own";
        }
    }
}

TEST_F(NetworkTest, EveryKindOfHintArrivesAsItWasSent) {
    Node& a = add("a", {"b"});
    Node& b = add("b", {"a"});
    ASSERT_TRUE(until([&] { return a.listened(); }));
    std::vector<OwnedHint> sent;
    for (const Hint& hint : {stored("qü\"", "p\\"), moved("q", "", "g"), configured("q"),
                             deleted("q"), switched("maintenance", true)}) {
        publish(a, hint);
        sent.emplace_back(hint);
    }
    ASSERT_TRUE(until([&] { return b.host.hints().size() == sent.size(); }));
    EXPECT_EQ(b.host.hints(), sent);
}

TEST_F(NetworkTest, ME10_APartitionPushedAThousandTimesIsOneDirtyHint) {
    Node& a = add("a", {"b"});
    Node& b = add("b", {"a"});
    ASSERT_TRUE(until([&] { return a.listened(); }));
    for (int i = 0; i < 1'000; ++i) {
        publish(a, stored("q", "p"));
    }
    ASSERT_TRUE(until([&] { return count(b, "p") == 1'000; })) << "availability is not coalesced";
    advance(19ms);
    settle();
    EXPECT_EQ(count(b, "p"), 1'000u);
    advance(1ms);
    ASSERT_TRUE(until([&] { return count(b, "p") == 1'001; }));
    advance(1s);
    settle();
    EXPECT_EQ(count(b, "p"), 1'001u);
}

TEST_F(NetworkTest, ME8_RetriesDoubleUpToFiveSecondsAndTheNameIsAskedEachTime) {
    names_.set("b", 0); // no such name yet
    Node& a = add("a", {"b"});
    ASSERT_TRUE(until([&] { return a.network.figures().dials_failed.value() == 1; }));
    for (const auto wait : {250ms, 500ms, 1'000ms, 2'000ms, 4'000ms, 5'000ms, 5'000ms}) {
        const auto failed = a.network.figures().dials_failed.value();
        advance(wait * 3 / 4 - 1ms);
        settle();
        EXPECT_EQ(a.network.figures().dials_failed.value(), failed) << "before " << wait.count();
        advance(wait / 4 + 1ms);
        ASSERT_TRUE(until([&] { return a.network.figures().dials_failed.value() > failed; }))
            << "after " << wait.count();
    }
    EXPECT_EQ(a.resolver.asked, 8);
    EXPECT_EQ(std::count_if(
                  a.lines.begin(), a.lines.end(),
                  [](const std::string& line) { return line.find("not reached") != line.npos; }),
              1)
        << "a peer that stays away costs one line";
    add("b", {"a"}); // moved to where its name now points
    advance(5s);
    EXPECT_TRUE(until([&] { return a.listened(); }));
}

TEST_F(NetworkTest, ME8_AfterAReconnectNothingOldIsSent) {
    Node& a = add("a", {"b"});
    Node* b = &add("b", {"a"});
    ASSERT_TRUE(until([&] { return a.listened(); }));
    pass(6s); // long enough for the wait to begin anew
    publish(a, stored("q", "old"));
    remove(*b);
    ASSERT_TRUE(until([&] { return !a.listened(); }));
    publish(a, stored("q", "meanwhile"));
    b = &add("b", {"a"});
    advance(250ms);
    ASSERT_TRUE(until([&] { return a.listened(); }));
    EXPECT_EQ(a.network.figures().reconnects.value(), 1u);
    publish(a, stored("q", "new"));
    ASSERT_TRUE(until([&] { return count(*b, "new") == 1; }));
    advance(20ms);
    ASSERT_TRUE(until([&] { return count(*b, "new") == 2; }));
    EXPECT_EQ(count(*b, "meanwhile"), 0u);
    EXPECT_LE(count(*b, "old"), 1u) << "at most the dirty hint, of less than a flush ago";
}

// MESH-4: what one said while there was no link is lost, and the other's broker has to know.
TEST_F(NetworkTest, WhoHearsOnANewLinkTellsThatHintsMayHaveBeenMissed) {
    Node& a = add("a", {"b"});
    Node* b = &add("b", {"nobody"});
    ASSERT_TRUE(until([&] { return b->host.times_missed() == 1; }));
    EXPECT_EQ(a.host.times_missed(), 0u) << "nobody dialled it";
    pass(6s);
    EXPECT_EQ(b->host.times_missed(), 1u) << "once a link, not for each frame";
    b->network.close_all();
    ASSERT_TRUE(until([&] { return !a.listened(); }));
    publish(a, stored("q", "lost"));
    advance(250ms);
    ASSERT_TRUE(until([&] { return b->host.times_missed() == 2; }));
    EXPECT_TRUE(a.listened()) << "whatever is said after it was told arrives";
    EXPECT_EQ(count(*b, "lost"), 0u);
}

TEST_F(NetworkTest, APeerThatWasTooSlowHearsThatThereWasMore) {
    Options set = options("a", {"b"});
    set.send_queue = 2;
    Node& a = add(set);
    Node& b = add("b", {"nobody"});
    ASSERT_TRUE(until([&] { return b.host.times_missed() == 1; }));
    for (int i = 0; i < 3; ++i) {
        publish(a, configured("q" + std::to_string(i)));
    }
    EXPECT_TRUE(until([&] { return b.host.times_missed() == 2; }));
    EXPECT_EQ(b.host.hints().size(), 2u);
}

TEST_F(NetworkTest, AStrangerDoesNotTellThatHintsMayHaveBeenMissed) {
    Node& a = add("a", {"b"});
    RawPeer stranger(a.network.port());
    stranger.send(make_frame(FrameType::hello, R"({"server_id":"b","nonce":")" +
                                                   std::string(32, '0') + R"(","mac":"00"})"));
    ASSERT_TRUE(until([&] { return stranger.closed(); }));
    EXPECT_EQ(a.host.times_missed(), 0u);
}

// MESH-5
TEST_F(NetworkTest, APeerThatDialsUsIsDialledWithoutAWait) {
    for (const bool known : {true, false}) { // by its id, or by its address alone
        const std::string name = known ? "b" : "c";
        Node& a = add(known ? "a" : "z", {name});
        if (known) {
            Node& before = add(name, {"a"});
            ASSERT_TRUE(until([&] { return a.listened() && before.listened(); }));
            remove(before);
        } else {
            names_.set(name, RawListener().port()); // nobody is there, but the machine is
        }
        ASSERT_TRUE(until([&] { return !a.listened(); }));
        const auto failed = a.network.figures().dials_failed.value();
        advance(5s);
        ASSERT_TRUE(until([&] { return a.network.figures().dials_failed.value() > failed; }));
        Node& back = add(name, {known ? "a" : "z"});
        EXPECT_TRUE(until([&] { return a.listened() && back.listened(); })) << "no time has passed";
    }
}

// MESH-5
TEST_F(NetworkTest, WhoDialsUsAgainAndAgainMakesUsDialOnceInTheLongestWait) {
    Options set = options("a", {"b"}, "");
    Node& a = add(set);
    names_.set("b", RawListener().port());
    ASSERT_TRUE(until([&] { return a.network.figures().dials_failed.value() > 0; }));
    const auto come = [&] {
        const auto dialled = a.network.figures().dials.value();
        const auto missed = a.host.times_missed();
        RawPeer peer(a.network.port());
        std::string hello = make_frame(FrameType::hello, R"({"server_id":"b"})");
        hello += heartbeat_frame("b");
        EXPECT_TRUE(until([&] {
            hello.erase(0, static_cast<std::size_t>(std::max<ssize_t>(peer.send(hello), 0)));
            return a.host.times_missed() > missed;
        }));
        settle();
        return a.network.figures().dials.value() - dialled;
    };
    EXPECT_EQ(come(), 1u);
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(come(), 0u);
    }
}

// MESH-6
TEST_F(NetworkTest, WhatWasSaidJustBeforeTheStopIsWritten) {
    Node& a = add("a", {"b", "c", "gone"});
    Node& b = add("b", {"a"});
    Node& c = add("c", {"a"});
    ASSERT_TRUE(until([&] { return a.network.roster().counts(clock_.now()).connected == 2; }));
    for (int i = 0; i < 3'000; ++i) {
        publish(a, stored("q", std::to_string(i))); // more frames than one turn writes
        if (i % 500 == 0) {
            turn();
        }
    }
    publish(a, configured("last"));
    a.network.drain(1h); // the clock stands still, so this ends because all is written
    EXPECT_EQ(a.network.outbox().queued(), 0u);
    EXPECT_EQ(a.network.outbox().dirty_size(), 0u) << "it did not wait for the next flush";
    a.network.close();
    const auto heard_last = [](const Node& node) {
        const auto hints = node.host.hints();
        return std::any_of(hints.begin(), hints.end(),
                           [](const auto& hint) { return hint.queue == "last"; });
    };
    EXPECT_TRUE(until([&] { return heard_last(b) && heard_last(c); }));
    EXPECT_TRUE(until([&] { return count(b, "2999") == 2; })) << "at once and as a dirty hint";
}

// MESH-6
TEST_F(NetworkTest, APeerThatReadsNothingHoldsTheStopUpForItsTimeAndNoLonger) {
    Node& a = add("a", {"mute"}, "");
    RawListener listener;
    names_.set("mute", listener.port());
    std::unique_ptr<RawPeer> mute;
    advance(5s);
    ASSERT_TRUE(until([&] {
        mute = mute ? std::move(mute) : listener.accept();
        return a.listened();
    }));
    const std::string name(255, 'n');
    std::vector<Hint> many(5'000, stored(name, name));
    for (int i = 0; i < 30; ++i) {
        a.network.outbox().publish(many); // 80 MB, of which the queue takes 32
        turn();
    }
    ASSERT_GT(a.network.outbox().queued(), 0u);
    a.network.drain(2ms);
    EXPECT_GT(a.network.outbox().queued(), 0u);
}

TEST_F(NetworkTest, ANameThatIsNotAnsweredKeepsNobodyWaiting) {
    Node& a = add("a", {"never", "b"}); // no answer for the first
    Node& b = add("b", {"a"});
    ASSERT_TRUE(until([&] { return a.listened(); }));
    publish(a, stored("q", "p"));
    EXPECT_TRUE(until([&] { return count(b, "p") == 1; }));
}

TEST_F(NetworkTest, APortThatIsTakenIsAWarningAndHintsStillGoOut) {
    Node& b = add("b", {"a"});
    Options same = options("a", {"b"});
    same.listen.port = b.network.port();
    Node& a = add(same);
    EXPECT_EQ(a.network.port(), 0);
    EXPECT_TRUE(a.logged("cannot listen at 127.0.0.1:"));
    EXPECT_EQ(a.network.figures().listen_failed.value(), 1u);
    ASSERT_TRUE(until([&] { return a.listened(); }));
    publish(a, stored("q", "p"));
    EXPECT_TRUE(until([&] { return count(b, "p") == 1; }));
}

TEST_F(NetworkTest, ConnectionsWithoutTrafficLiveOnHeartbeats) {
    Node& a = add("a", {"b"});
    Node& b = add("b", {"a"});
    ASSERT_TRUE(until([&] { return a.listened() && b.listened(); }));
    pass(20s);
    EXPECT_TRUE(a.listened());
    EXPECT_EQ(a.network.figures().reconnects.value(), 0u);
    EXPECT_EQ(b.network.figures().silent.value(), 0u);
    EXPECT_EQ(a.network.roster().counts(clock_.now()).alive, 1u);
    EXPECT_GE(a.network.figures().frames_sent.value(), 20u);
}

TEST_F(NetworkTest, AfterAFaultEverythingIsBegunAnew) {
    Node& a = add("a", {"b"});
    Node& b = add("b", {"a"});
    ASSERT_TRUE(until([&] { return a.listened() && b.listened(); }));
    publish(a, stored("q", "old"));
    a.network.close_all(); // as the thread does when something was thrown
    EXPECT_FALSE(a.listened());
    ASSERT_TRUE(until([&] { return !b.listened(); }));
    advance(500ms);
    ASSERT_TRUE(until([&] { return a.listened() && b.listened(); }));
    publish(a, stored("q", "new"));
    EXPECT_TRUE(until([&] { return count(b, "new") == 1; }));
    EXPECT_EQ(count(b, "old"), 0u);
}

TEST_F(NetworkTest, PeersAreOneRowEachWithWhatIsKnown) {
    Node& a = add("a", {"b", "gone"}); // "gone" has no answer
    Node* b = &add("b", {"a"});
    ASSERT_TRUE(until([&] { return a.listened() && b->listened() && peers(a).rows[0].alive; }));
    Rows rows = peers(a);
    ASSERT_EQ(rows.rows.size(), 2u);
    EXPECT_EQ(rows.rows[0].address, "b:6633");
    EXPECT_EQ(rows.rows[0].server_id, "b");
    EXPECT_TRUE(rows.rows[0].connected);
    EXPECT_GT(rows.rows[0].sent, 0u);
    EXPECT_GT(rows.rows[0].received, 0u);
    EXPECT_EQ(rows.rows[1].server_id, "");
    EXPECT_FALSE(rows.rows[1].connected);
    EXPECT_EQ(rows.rows[1].silent, Nanoseconds::max());
    remove(*b);
    advance(5s);
    rows = peers(a);
    EXPECT_FALSE(rows.rows[0].alive);
    EXPECT_EQ(rows.rows[0].silent, 5s);
}

TEST_F(NetworkTest, WhoDialsUsAndIsNoConfiguredPeerHasARowOfItsOwn) {
    Node& a = add("a", {"nobody"});
    add("b", {"a"});
    ASSERT_TRUE(until([&] { return peers(a).rows.size() == 2; }));
    const Rows rows = peers(a);
    EXPECT_EQ(rows.rows[1].server_id, "b");
    EXPECT_TRUE(rows.rows[1].address.starts_with("127.0.0.1:"));
    EXPECT_TRUE(rows.rows[1].alive);
}

TEST_F(NetworkTest, TheRosterIsBounded) {
    const Options set = options("a", {"b"});
    Figures figures;
    const Outbox outbox(set, figures, [] {});
    Roster roster(set, outbox);
    for (std::size_t i = 0; i < 2 * shared::kMostServers; ++i) {
        advance(1ms);
        roster.heard("id " + std::to_string(i), "x", 1, clock_.now());
    }
    const Roster::Counts counts = roster.counts(clock_.now());
    EXPECT_EQ(counts.alive + counts.dead, shared::kMostServers);
    advance(2h);
    roster.monitor(clock_.now());
    EXPECT_EQ(roster.counts(clock_.now()).dead, 0u) << "long gone";
}

} // namespace
} // namespace queen::mesh
