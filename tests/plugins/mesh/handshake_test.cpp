// Who may send hints: hello, challenge, answer.
#include "plugins/mesh/mesh_fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace queen::mesh {
namespace {

class Handshake : public MeshBed {
protected:
    static constexpr std::string_view kNonce = "00112233445566778899aabbccddeeff";

    static std::string hello(std::string_view id, std::string_view secret,
                             std::string_view more = ",\"challenge\":1",
                             std::string_view nonce = kNonce) {
        return make_frame(FrameType::hello, "{\"server_id\":\"" + std::string(id) +
                                                "\",\"nonce\":\"" + std::string(nonce) +
                                                "\",\"mac\":\"" + hello_mac(secret, nonce) + "\"" +
                                                std::string(more) + "}");
    }
    static std::string hint() {
        return make_frame(FrameType::message_available, R"({"queue":"q","partition":"p"})");
    }
    static std::string answer(std::string_view challenge, std::string_view id,
                              std::string_view secret) {
        const std::string acceptor = text_field(challenge, "server_id");
        const std::string nonce = text_field(challenge, "nonce");
        return make_frame(FrameType::answer, "{\"mac\":\"" +
                                                 answer_mac(secret, {id, acceptor, kNonce, nonce}) +
                                                 "\"}");
    }
    /// Sends it and waits for the connection's end. @return false when it stays open
    bool ends(Node& node, const std::string& bytes) {
        RawPeer peer(node.network.port());
        return until([&] { return peer.send("") == 0 && node.network.figures().accepted == 1; }) &&
               peer.send(bytes) == static_cast<ssize_t>(bytes.size()) &&
               until([&] { return peer.closed(); });
    }
    Options lax(const std::string& id, const std::vector<std::string>& peers) {
        Options made = options(id, peers);
        made.require_challenge = false;
        return made;
    }
};

TEST_F(Handshake, TwoBrokersProveThemselvesToEachOtherAndHintsGoBothWays) {
    Node& a = add("a", {"b"});
    Node& b = add("b", {"a"});
    ASSERT_TRUE(until([&] { return a.listened() && b.listened(); }));
    const Hint from_a = stored("q", "from a");
    const Hint from_b = stored("q", "from b");
    a.network.outbox().publish(std::span(&from_a, 1));
    b.network.outbox().publish(std::span(&from_b, 1));
    ASSERT_TRUE(until([&] { return !a.host.hints().empty() && !b.host.hints().empty(); }));
    EXPECT_EQ(b.host.hints()[0], OwnedHint(from_a));
    EXPECT_EQ(a.host.hints()[0], OwnedHint(from_b));
    EXPECT_EQ(a.network.figures().handshake_failures(), 0u);
    EXPECT_EQ(b.network.figures().handshake_failures(), 0u);
}

TEST_F(Handshake, ME6_AnotherSecretIsRefusedByBothSides) {
    Node& a = add("a", {"b"});
    Node& b = add("b", {"nobody"}, "quite another secret");
    EXPECT_TRUE(until([&] { return b.network.figures().failed_mac.value() == 1; }));
    EXPECT_TRUE(until([&] { return a.logged("is not reached"); }));
    EXPECT_FALSE(a.listened());
    EXPECT_TRUE(b.logged("has another secret"));
    EXPECT_TRUE(b.host.hints().empty());
    for (const std::string& line : b.lines) {
        EXPECT_EQ(line.find("quite another"), line.npos) << "a secret in a log line";
    }
}

TEST_F(Handshake, ME6_WhatIsNoProperHelloIsRefusedAndCounted) {
    Node& a = add("a", {"nobody"});
    EXPECT_TRUE(ends(a, hint())) << "no hello";
    EXPECT_TRUE(ends(a, make_frame(FrameType::hello, "{")));
    EXPECT_TRUE(ends(a, make_frame(FrameType::hello, "{}")));
    EXPECT_TRUE(ends(a, hello("", kSecret)));
    EXPECT_TRUE(ends(a, hello("a\\nb", kSecret))) << "an id that could forge a mac's message";
    EXPECT_EQ(a.network.figures().failed_hello.value(), 5u);
    EXPECT_TRUE(ends(a, hello("x", "wrong")));
    EXPECT_TRUE(ends(a, hello("x", "")));
    EXPECT_TRUE(ends(a, hello("x", kSecret, ",\"challenge\":1", "short")));
    EXPECT_TRUE(ends(a, make_frame(FrameType::hello, R"({"server_id":"x","challenge":1})")));
    EXPECT_EQ(a.network.figures().failed_mac.value(), 4u);
    EXPECT_EQ(a.network.figures().handshake_failures(), 9u);
    EXPECT_TRUE(a.host.hints().empty());
}

TEST_F(Handshake, HintsCountOnlyAfterTheAnswer) {
    Node& a = add("a", {"nobody"});
    RawPeer peer(a.network.port());
    ASSERT_TRUE(until([&] { return a.network.figures().accepted == 1; }));
    peer.send(hello("x", kSecret) + hint());
    ASSERT_TRUE(until([&] { return peer.frames().size() == 1; }));
    EXPECT_TRUE(until([&] { return a.network.figures().frames_early.value() == 1; }));
    EXPECT_TRUE(a.host.hints().empty());
    const std::string challenge = peer.frames()[0];
    EXPECT_EQ(challenge[0], '\x41');
    EXPECT_EQ(text_field(challenge, "mac"),
              challenge_mac(kSecret, {"x", "a", kNonce, text_field(challenge, "nonce")}));
    peer.send(answer(challenge, "x", kSecret) + hint());
    EXPECT_TRUE(until([&] { return a.host.hints().size() == 1; }));
}

TEST_F(Handshake, ARecordedHelloAndAnswerAreWorthNothing) {
    Node& a = add("a", {"nobody"});
    std::string recorded;
    {
        RawPeer peer(a.network.port());
        ASSERT_TRUE(until([&] { return a.network.figures().accepted == 1; }));
        recorded = hello("x", kSecret);
        peer.send(recorded);
        ASSERT_TRUE(until([&] { return peer.frames().size() == 1; }));
        const std::string answered = answer(peer.frames()[0], "x", kSecret) + hint();
        peer.send(answered);
        recorded += answered;
        ASSERT_TRUE(until([&] { return a.host.hints().size() == 1; })) << "it was a good one";
    }
    ASSERT_TRUE(until([&] { return a.network.figures().accepted == 0; }));
    EXPECT_TRUE(ends(a, recorded));
    EXPECT_EQ(a.network.figures().failed_mac.value(), 1u);
    EXPECT_EQ(a.host.hints().size(), 1u);
}

TEST_F(Handshake, AnAnswerForAnotherBrokerIsWorthNothing) {
    Node& a = add("a", {"nobody"});
    RawPeer peer(a.network.port());
    ASSERT_TRUE(until([&] { return a.network.figures().accepted == 1; }));
    peer.send(hello("x", kSecret));
    ASSERT_TRUE(until([&] { return peer.frames().size() == 1; }));
    const std::string nonce = text_field(peer.frames()[0], "nonce");
    peer.send(make_frame(FrameType::answer,
                         "{\"mac\":\"" + answer_mac(kSecret, {"x", "b", kNonce, nonce}) + "\"}"));
    EXPECT_TRUE(until([&] { return peer.closed(); }));
    EXPECT_EQ(a.network.figures().failed_mac.value(), 1u);
}

TEST_F(Handshake, WithTheChallengeOffARecordedHelloIsTaken) {
    Node& a = add(lax("a", {"nobody"}));
    const std::string recorded = hello("x", kSecret, "");
    for (std::size_t times = 1; times <= 2; ++times) {
        RawPeer peer(a.network.port());
        ASSERT_TRUE(until([&] { return a.network.figures().accepted == 1; }));
        peer.send(recorded + hint());
        EXPECT_TRUE(until([&] { return a.host.hints().size() == times; }));
        EXPECT_EQ(peer.received(), "") << "an old broker is sent nothing";
        peer.shut();
        ASSERT_TRUE(until([&] { return a.network.figures().accepted == 0; }));
    }
}

TEST_F(Handshake, AnOldPeerIsRefusedWhileTheChallengeIsRequired) {
    Node& a = add("a", {"nobody"});
    EXPECT_TRUE(ends(a, hello("x", kSecret, "")));
    EXPECT_TRUE(a.logged("require_challenge"));
}

TEST_F(Handshake, TheSettingCanBeChangedBrokerByBroker) {
    Node& a = add(lax("a", {"b"}));
    Node& b = add("b", {"a"});
    EXPECT_TRUE(until([&] { return a.listened() && b.listened(); }));
    EXPECT_EQ(b.network.figures().frames_early.value(), 0u) << "a waits for b's challenge";
}

TEST_F(Handshake, AListenerThatCannotProveItselfGetsNoHints) {
    const RawListener listener;
    names_.set("b", listener.port());
    Node& a = add("a", {"b"});
    std::unique_ptr<RawPeer> b;
    ASSERT_TRUE(until([&] { return (b = listener.accept()) != nullptr; }));
    ASSERT_TRUE(until([&] { return b->frames().size() == 1; }));
    const std::string hello = b->frames()[0];
    EXPECT_EQ(text_field(hello, "server_id"), "a");
    EXPECT_EQ(text_field(hello, "mac"), hello_mac(kSecret, text_field(hello, "nonce")));
    b->send(make_frame(
        FrameType::challenge,
        "{\"server_id\":\"b\",\"nonce\":\"" + std::string(kNonce) + "\",\"mac\":\"" +
            challenge_mac("a guess", {"a", "b", text_field(hello, "nonce"), kNonce}) + "\"}"));
    EXPECT_TRUE(until([&] { return b->closed(); }));
    EXPECT_EQ(a.network.figures().failed_mac.value(), 1u);
    EXPECT_FALSE(a.listened());
}

TEST_F(Handshake, AListenerThatSaysNothingIsGivenUp) {
    const RawListener listener;
    names_.set("b", listener.port());
    Node& a = add("a", {"b"});
    std::unique_ptr<RawPeer> b;
    ASSERT_TRUE(until([&] { return (b = listener.accept()) != nullptr; }));
    ASSERT_TRUE(until([&] { return b->frames().size() == 1; }));
    advance(4'999ms);
    settle();
    EXPECT_FALSE(b->closed());
    advance(1ms);
    EXPECT_TRUE(until([&] { return b->closed(); }));
    EXPECT_EQ(a.network.figures().failed_late.value(), 1u);
}

TEST_F(Handshake, WithoutASecretNobodyIsAskedForOne) {
    Node& a = add("a", {"b"}, "");
    Node& b = add("b", {"a"}, "");
    ASSERT_TRUE(until([&] { return a.listened() && b.listened(); }));
    const Hint hint = stored("q", "p");
    a.network.outbox().publish(std::span(&hint, 1));
    EXPECT_TRUE(until([&] { return !b.host.hints().empty(); }));
    EXPECT_TRUE(ends(a, make_frame(FrameType::hello, "{}"))) << "but the id is needed";
}

TEST_F(Handshake, APeerThatIsOurselvesIsNoticedAndLeftAlone) {
    for (const std::string_view secret : {kSecret, std::string_view{}}) {
        nodes_.clear();
        Node& a = add("a", {"a", "b"}, secret);
        Node& b = add("b", {"a"}, secret);
        ASSERT_TRUE(until([&] { return a.logged("our own server id"); }));
        ASSERT_TRUE(until([&] { return a.listened() && b.listened(); }));
        const auto dials = a.network.figures().dials.value();
        const Hint hint = stored("q", "p");
        a.network.outbox().publish(std::span(&hint, 1));
        EXPECT_TRUE(until([&] { return !b.host.hints().empty(); }));
        EXPECT_TRUE(a.host.hints().empty());
        EXPECT_EQ(a.network.figures().handshake_failures(), 0u);
        pass(30s);
        EXPECT_EQ(a.network.figures().dials.value(), dials);
        pass(31s);
        EXPECT_EQ(a.network.figures().dials.value(), dials + 1) << "names may point elsewhere now";
    }
}

// ME-22: brokers of old say no instance.
TEST_F(Handshake, ABrokerThatSaysNoInstanceIsKnownByItsServerId) {
    Options old = options("a", {"a"});
    old.instance.clear();
    Node& a = add(old);
    EXPECT_TRUE(until([&] { return a.logged("copy of its data directory"); }));
    EXPECT_FALSE(a.listened());
}

// ME-22: a copied data directory.
TEST_F(Handshake, TwoBrokersWithOneServerIdAreToldOfAndHearEachOther) {
    for (const std::string_view secret : {kSecret, std::string_view{}}) {
        nodes_.clear();
        Node& first = add("a", {"second"}, secret);
        names_.set("first", first.network.port());
        Node& second = add("a", {"first"}, secret);
        names_.set("second", second.network.port());
        advance(5s);
        ASSERT_TRUE(until([&] { return first.listened() && second.listened(); }));
        const Hint hint = stored("q", "p");
        first.network.outbox().publish(std::span(&hint, 1));
        second.network.outbox().publish(std::span(&hint, 1));
        EXPECT_TRUE(
            until([&] { return !first.host.hints().empty() && !second.host.hints().empty(); }));
        pass(10s);
        for (const Node* node : {&first, &second}) {
            EXPECT_EQ(std::count_if(node->lines.begin(), node->lines.end(),
                                    [](const std::string& line) {
                                        return line.find("our own server id a") != line.npos &&
                                               line.find("127.0.0.1:0") != line.npos;
                                    }),
                      1)
                << "one line for the peer, whoever dialled whom";
        }
        second.network.close_all();
        pass(10s);
        EXPECT_EQ(std::count_if(first.lines.begin(), first.lines.end(),
                                [](const std::string& line) {
                                    return line.find("our own server id") != line.npos;
                                }),
                  1)
            << "not for each connection";
    }
}

// ME-20: somebody in between who knows no secret sends a broker's frames back to it, and says that
// they are another process's.
TEST_F(Handshake, ABrokerIsNoWitnessForItself) {
    for (const bool both : {false, true}) { // whose instance is changed on the way back
        nodes_.clear();
        const RawListener middle;
        names_.set("peer", middle.port());
        Node& x = add("x", {"peer"});
        std::unique_ptr<RawPeer> dialled;
        ASSERT_TRUE(until([&] { return (dialled = middle.accept()) != nullptr; }));
        ASSERT_TRUE(until([&] { return !text_field(dialled->received(), "instance").empty(); }));
        const auto swapped = [](std::string_view frames) {
            std::string json(frames.substr(5));
            const std::string own = text_field(json, "instance");
            json.replace(json.find(own), own.size(), std::string(own.size(), 'e'));
            return json;
        };
        RawPeer back(x.network.port());
        const std::string hello = make_frame(FrameType::hello, swapped(dialled->received()));
        ASSERT_TRUE(until([&] { return back.send(hello) == static_cast<ssize_t>(hello.size()); }));
        ASSERT_TRUE(until([&] { return !text_field(back.received(), "nonce").empty(); }));
        dialled->send(both ? make_frame(FrameType::challenge, swapped(back.received()))
                           : back.received());
        EXPECT_TRUE(until([&] { return dialled->closed(); })) << "it is itself, or a stranger";
        EXPECT_FALSE(x.listened());
    }
}

TEST_F(Handshake, TwoOthersWithOneServerIdAreToldOfOnce) {
    Node& a = add("a", {"nobody"});
    add("twin", {"a"});
    ASSERT_TRUE(until([&] { return a.host.times_missed() == 1; }));
    EXPECT_FALSE(a.logged("both have the server id"));
    add("twin", {"a"});
    ASSERT_TRUE(until([&] { return a.host.times_missed() == 2; }));
    pass(5s);
    EXPECT_EQ(std::count_if(a.lines.begin(), a.lines.end(),
                            [](const std::string& line) {
                                return line.find("both have the server id twin") != line.npos;
                            }),
              1);
}

TEST_F(Handshake, ABrokerThatStartsAnewIsNoNamesakeOfItself) {
    Node& a = add("a", {"nobody"});
    Node& b = add("b", {"a"});
    ASSERT_TRUE(until([&] { return a.host.times_missed() == 1; }));
    remove(b);
    add("b", {"a"});
    ASSERT_TRUE(until([&] { return a.host.times_missed() == 2; }));
    pass(5s);
    EXPECT_FALSE(a.logged("both have the server id"));
}

} // namespace
} // namespace queen::mesh
