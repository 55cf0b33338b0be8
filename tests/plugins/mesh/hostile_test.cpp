// Peers that mean harm, or are sick: counted and ended, never more memory than the bounds, and
// publishing goes on.
#include "plugins/mesh/mesh_fixture.hpp"

#include <gtest/gtest.h>

#include <random>

namespace queen::mesh {
namespace {

using namespace std::string_literals;

class Hostile : public MeshBed {
protected:
    Node& node(const std::function<void(Options&)>& change = [](Options&) {}) {
        Options made = options("a", {"b"}, "");
        change(made);
        return add(std::move(made));
    }
    static std::string hello(const std::string& id) {
        return make_frame(FrameType::hello, "{\"server_id\":\"" + id + "\"}");
    }
    static std::string hint(const std::string& partition = "p") {
        return make_frame(FrameType::message_available,
                          R"({"queue":"q","partition":")" + partition + "\"}");
    }
    std::unique_ptr<RawPeer> connect(Node& node, const std::string& first) {
        const auto before = node.network.figures().accepted.load();
        auto peer = std::make_unique<RawPeer>(node.network.port());
        EXPECT_TRUE(until([&] { return node.network.figures().accepted.load() > before; }));
        if (!first.empty()) {
            EXPECT_EQ(peer->send(first), static_cast<ssize_t>(first.size()));
        }
        return peer;
    }
};

TEST_F(Hostile, MalformedFramesEndTheConnectionAndAreCounted) {
    Node& a = node();
    std::uint64_t bad = 0;
    for (const std::string& bytes :
         {"\0\0\0\0"s, "\xff\xff\xff\xff"s, "\1\0\0\1\5"s, make_frame(FrameType::dirty_batch, "["),
          make_frame(FrameType::dirty_batch, ""), make_frame(FrameType::message_available, "7"),
          make_frame(FrameType::config_set, std::string(1'000'000, '[')),
          make_frame(FrameType::message_available, "{\"queue\":\"\xff\"}")}) {
        const auto peer = connect(a, hello("x"));
        ASSERT_TRUE(until([&] { // a large one takes several writes
            static std::size_t sent = 0;
            const ssize_t took = peer->send(std::string_view(bytes).substr(sent));
            sent += took > 0 ? static_cast<std::size_t>(took) : 0;
            if (sent < bytes.size()) {
                return false;
            }
            sent = 0;
            return true;
        }));
        ++bad;
        EXPECT_TRUE(until([&] { return peer->closed(); }));
        EXPECT_EQ(a.network.figures().frames_bad.value(), bad);
    }
    const auto peer = connect(a, hello("x") + hint());
    EXPECT_TRUE(until([&] { return a.host.hints().size() == 1; })) << "others are served as ever";
}

TEST_F(Hostile, RandomBytesNeverHurt) {
    Node& a = node();
    std::mt19937 random(5);
    for (int i = 0; i < 60; ++i) {
        std::string bytes(1 + random() % 2'000, '\0');
        for (char& c : bytes) {
            c = static_cast<char>(random());
        }
        if (i % 2 == 0) {
            bytes = hello("x") + make_frame(static_cast<FrameType>(random() % 70), bytes);
        }
        const auto peer = connect(a, bytes);
        turn();
        peer->shut();
        ASSERT_TRUE(until([&] { return a.network.figures().accepted == 0; }));
    }
    EXPECT_EQ(a.network.figures().faults.value(), 0u);
}

TEST_F(Hostile, AStrangerGetsLittleMemoryAndLittleTime) {
    Node& a = node();
    const auto big = connect(a, "\0\0\x10\1"s); // announces 4097 bytes
    EXPECT_TRUE(until([&] { return big->closed(); }));
    EXPECT_EQ(a.network.figures().frames_bad.value(), 1u);
    const auto mute = connect(a, "");
    const auto slow = connect(a, "\0\0"s);
    advance(4'999ms);
    settle();
    EXPECT_FALSE(mute->closed());
    EXPECT_FALSE(slow->closed());
    EXPECT_EQ(slow->send("\0"s), 1);
    advance(1ms);
    EXPECT_TRUE(until([&] { return mute->closed() && slow->closed(); }));
    EXPECT_EQ(a.network.figures().failed_late.value(), 2u);
}

TEST_F(Hostile, StrangersCannotKeepPeersOut) {
    Node& a = node([](Options& o) { o.connections = 3; });
    const auto peer = connect(a, hello("x"));
    ASSERT_TRUE(until([&] { return a.network.figures().frames_received.value() == 1; }));
    const auto first = connect(a, "");
    advance(1ms);
    const auto second = connect(a, "");
    advance(1ms);
    RawPeer third(a.network.port());
    EXPECT_TRUE(until([&] { return first->closed(); })) << "the oldest stranger makes room";
    EXPECT_FALSE(second->closed());
    EXPECT_FALSE(peer->closed());
    third.send(hello("y"));
    second->send(hello("z"));
    ASSERT_TRUE(until([&] { return a.network.figures().frames_received.value() == 3; }));
    RawPeer fourth(a.network.port());
    EXPECT_TRUE(until([&] { return fourth.closed(); })) << "peers do not make room";
    EXPECT_EQ(a.network.figures().refused.value(), 2u);
    EXPECT_EQ(a.network.figures().accepted.load(), 3u);
}

TEST_F(Hostile, AFloodWaitsInsteadOfDrowningTheBroker) {
    Node& a = node([](Options& o) { o.hints_per_second = 100; });
    const auto flood = connect(a, hello("x"));
    std::string many;
    for (int i = 0; i < 50; ++i) {
        many += hint();
    }
    ASSERT_TRUE(until([&] {
        flood->send(many);
        return a.network.figures().throttled.value() == 1;
    }));
    const std::size_t taken = a.host.hints().size();
    EXPECT_LE(taken, 101u);
    flood->send(many);
    settle();
    EXPECT_EQ(a.host.hints().size(), taken) << "nothing is read while it has to wait";

    const RawPeer other(a.network.port(), "127.0.0.2");
    const std::string said = hello("y") + hint("from y");
    ASSERT_TRUE(until([&] { return other.send(said) == static_cast<ssize_t>(said.size()); }));
    EXPECT_TRUE(until([&] { return a.host.hints().size() == taken + 1; })) << "others do not wait";
    EXPECT_EQ(a.host.hints().back().partition, "from y");

    advance(500ms);
    EXPECT_TRUE(until([&] { return a.host.hints().size() >= taken + 40; }));
    settle();
    EXPECT_LE(a.host.hints().size(), taken + 60);
    EXPECT_FALSE(flood->closed());
}

TEST_F(Hostile, AFloodOfNothingIsBoundedToo) {
    Node& a = node([](Options& o) { o.hints_per_second = 100; });
    const auto flood = connect(a, hello("x"));
    const std::string many(make_frame(static_cast<FrameType>(99), ""));
    EXPECT_TRUE(until([&] {
        flood->send(many + many + many);
        return a.network.figures().throttled.value() == 1;
    }));
}

TEST_F(Hostile, WhoDialsAgainHasTheBudgetItHadBefore) {
    Node& a = node([](Options& o) { o.hints_per_second = 100; });
    for (int connection = 0; connection < 3; ++connection) {
        const auto flood = connect(a, hello("x" + std::to_string(connection)));
        ASSERT_TRUE(until([&] {
            flood->send(hint());
            return a.network.figures().throttled.value() > static_cast<unsigned>(connection);
        }));
    }
    EXPECT_LE(a.host.hints().size(), 103u) << "in open mode anybody can say any id";
}

TEST_F(Hostile, AFloodOfBytesWaitsToo) {
    Node& a = node([](Options& o) { o.bytes_per_second = 1'000'000; });
    const auto flood = connect(a, hello("x"));
    const std::string large = make_frame(static_cast<FrameType>(99), std::string(50'000, ' '));
    std::size_t sent = 0;
    ASSERT_TRUE(until([&] {
        const std::string_view rest = std::string_view(large).substr(sent % large.size());
        sent += static_cast<std::size_t>(std::max<ssize_t>(flood->send(rest), 0));
        return a.network.figures().throttled.value() == 1;
    }));
    const auto frames = a.network.figures().frames_unknown.value();
    EXPECT_EQ(frames, 21u);
    settle();
    EXPECT_EQ(a.network.figures().frames_unknown.value(), frames);
}

TEST(MeshBudgets, OneOwnerHasOneHoweverOftenItComesAndItIsForgottenWhenItIsFull) {
    Options options;
    options.hints_per_second = 10;
    options.bytes_per_second = 1'000;
    Budgets budgets(options);
    SteadyTime now(1h);
    auto mine = budgets.of("me", now);
    EXPECT_EQ(budgets.pay(*mine, 10, 10, now), now);
    EXPECT_EQ(budgets.pay(*mine, 5, 10, now), now + 500ms);
    mine.reset();
    mine = budgets.of("me", now);
    EXPECT_EQ(budgets.pay(*mine, 0, 0, now), now + 500ms) << "what it owed it owes";
    EXPECT_EQ(budgets.pay(*budgets.of("you", now), 1, 2'000, now), now + 1s) << "bytes count too";
    mine.reset();
    now += 500ms;
    for (int i = 0; i < 1'000; ++i) {
        budgets.of(std::to_string(i), now);
        EXPECT_LE(budgets.size(), 130u) << "who never paid is full";
    }
    EXPECT_EQ(budgets.pay(*budgets.of("me", now), 1, 0, now), now + 100ms) << "kept: it owed";
}

TEST(MeshBudgets, OfIpv6ANetworkIsOneOwner) {
    EXPECT_NE(owner_at("10.0.0.1"), owner_at("10.0.0.2"));
    EXPECT_EQ(owner_at("2001:db8::1"), owner_at("2001:db8::ffff:1"));
    EXPECT_NE(owner_at("2001:db8::1"), owner_at("2001:db8:0:1::1"));
    EXPECT_EQ(owner_at("fe80::1%eth0"), owner_at("fe80::2%eth0"));
}

TEST_F(Hostile, AFloodThatHangsUpWhileItWaitsIsLetGo) {
    Node& a = node([](Options& o) { o.hints_per_second = 10; });
    const auto flood = connect(a, hello("x"));
    ASSERT_TRUE(until([&] {
        flood->send(hint());
        return a.network.figures().throttled.value() == 1;
    }));
    flood->shut();
    advance(1s); // a hang-up that left unread bytes is seen when reading goes on, at the latest
    EXPECT_TRUE(until([&] {
        advance(10ms);
        return a.network.figures().accepted == 0;
    }));
}

TEST_F(Hostile, BuffersOfAllConnectionsTogetherAreBounded) {
    Node& a = node([](Options& o) { o.receive_bytes = 3 << 20; });
    std::vector<std::unique_ptr<RawPeer>> peers;
    const std::string most = "\0\x20\0\0\5"s; // two megabytes are announced
    for (int i = 0; i < 3; ++i) {
        peers.push_back(connect(a, hello("x" + std::to_string(i)) + most));
    }
    const std::string piece(60'000, ' ');
    EXPECT_TRUE(until([&] {
        for (const auto& peer : peers) {
            peer->send(piece);
        }
        return a.network.figures().crowded.value() > 0 || a.network.figures().accepted == 0;
    }));
    EXPECT_GE(a.network.figures().crowded.value(), 1u);
}

TEST_F(Hostile, WhoHoldsMostUnreadBytesMakesRoom) {
    Node& a = node([](Options& o) { o.receive_bytes = 1 << 20; });
    const std::string most = "\0\x20\0\0\5"s; // two megabytes are announced
    const auto large = connect(a, hello("x") + most);
    const std::string piece(50'000, ' ');
    const auto send = [&](RawPeer& peer, std::size_t bytes) {
        const auto end = a.network.figures().bytes_received.value() + bytes;
        return until([&] {
            const auto missing = end - std::min(end, a.network.figures().bytes_received.value());
            static_cast<void>(peer.send(std::string_view(piece).substr(0, missing)));
            return missing == 0;
        });
    };
    ASSERT_TRUE(send(*large, 600'000));
    const auto small = connect(a, hello("y") + most);
    EXPECT_TRUE(until([&] {
        static_cast<void>(small->send(std::string_view(piece).substr(0, 1'000)));
        return a.network.figures().crowded.value() == 1;
    }));
    EXPECT_TRUE(until([&] { return large->closed(); }));
    EXPECT_FALSE(small->closed()) << "it only came last";
}

TEST_F(Hostile, ME7_APeerThatFallsSilentIsDroppedAndSaidToBeDead) {
    Node& a = node();
    const auto peer = connect(a, hello("x") + heartbeat_frame("x"));
    ASSERT_TRUE(until([&] { return a.network.figures().frames_received.value() == 2; }));
    EXPECT_EQ(a.network.roster().counts(clock_.now()).alive, 1u);
    for (int i = 0; i < 8; ++i) { // heartbeats keep it
        advance(1s);
        peer->send(heartbeat_frame("x"));
        ASSERT_TRUE(until([&, n = a.network.figures().frames_received.value()] {
            static_cast<void>(n);
            return a.network.figures().frames_received.value() == static_cast<unsigned>(3 + i);
        }));
    }
    EXPECT_TRUE(a.logged("broker x is heard from"));
    EXPECT_FALSE(peer->closed());
    advance(4'999ms);
    settle();
    EXPECT_FALSE(peer->closed());
    advance(1ms);
    EXPECT_TRUE(until([&] { return peer->closed(); }));
    EXPECT_EQ(a.network.figures().silent.value(), 1u);
    EXPECT_EQ(a.network.roster().counts(clock_.now()).dead, 1u);
    advance(2'500ms);
    EXPECT_TRUE(until([&] { return a.logged("is not heard from any more"); }));
}

TEST_F(Hostile, ASlowPeerIsDroppedFromAndDroppedAndNobodyWaits) {
    const RawListener listener;
    names_.set("b", listener.port());
    Node& a = node([](Options& o) { o.send_queue = 50; });
    std::unique_ptr<RawPeer> slow;
    ASSERT_TRUE(until([&] { return (slow = listener.accept()) != nullptr; }));
    ASSERT_TRUE(until([&] { return a.listened(); }));
    const std::string wide(200, 'x');
    std::vector<Hint> push(200, stored(wide, wide));
    ASSERT_TRUE(until([&] { // it reads nothing: first the kernel's buffers fill, then the queue
        a.network.outbox().publish(push);
        return a.network.figures().dropped_full.value() > 0;
    }));
    EXPECT_LE(a.network.outbox().queued(), 50u);
    ASSERT_TRUE(a.listened());
    advance(4'999ms);
    settle();
    EXPECT_TRUE(a.listened());
    advance(1ms);
    EXPECT_TRUE(until([&] { return !a.listened(); }));
    EXPECT_EQ(a.network.figures().stalled.value(), 1u);
    EXPECT_EQ(a.network.outbox().queued(), 0u) << "what waited is discarded";
    EXPECT_GT(a.network.figures().dropped_stale.value(), 0u);
}

TEST_F(Hostile, AListenerThatSpeaksIsNotBelieved) {
    const RawListener listener;
    names_.set("b", listener.port());
    Node& a = node();
    std::unique_ptr<RawPeer> b;
    for (const std::string& bytes :
         {"\0\0\0\0"s, std::string(10'000, 'x'), make_frame(FrameType::challenge, "{"),
          make_frame(FrameType::challenge, "{}")}) {
        advance(10s);
        ASSERT_TRUE(until([&] { return (b = listener.accept()) != nullptr; }));
        b->send(bytes);
        EXPECT_TRUE(until([&] { return b->closed(); }));
    }
    advance(10s);
    ASSERT_TRUE(until([&] { return (b = listener.accept()) != nullptr; }));
    EXPECT_TRUE(until([&] {
        b->send(hint());
        return b->closed();
    })) << "it may say a few words";
    EXPECT_TRUE(a.host.hints().empty()) << "hints come on connections that were accepted";
}

} // namespace
} // namespace queen::mesh
