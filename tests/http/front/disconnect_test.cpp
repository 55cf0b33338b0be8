// Clients that go: what their exchanges learn, and what becomes of the answers (K28).
#include "http/front/front_fixture.hpp"

namespace queen::test {
namespace {

class Disconnect : public FrontTest {
protected:
    std::function<void()> report(const std::string& what) {
        return [this, what] { handler_.undelivered.put(what); };
    }
};

TEST_F(Disconnect, K28AFinWhileWatchedMeansGone) {
    for (int round = 0; round < 200; ++round) {
        RawClient client = connect();
        client.send(get("/park?" + std::to_string(round)));
        const Held held = handler_.held.get();
        EXPECT_FALSE(held.exchange->gone());
        client.close();
        EXPECT_EQ(handler_.gone.get(), std::to_string(round));
        EXPECT_TRUE(held.exchange->gone());
        held.exchange->reply({.body = "a batch"}, report("batch"));
        EXPECT_EQ(handler_.undelivered.get(), "batch");
    }
    EXPECT_EQ(handler_.gone.size(), 0u) << "told twice";
    EXPECT_EQ(handler_.undelivered.size(), 0u) << "given back twice";
}

TEST_F(Disconnect, K28ARstWhileWatchedMeansGone) {
    for (int round = 0; round < 200; ++round) {
        RawClient client = connect();
        client.send(get("/park?" + std::to_string(round)));
        const Held held = handler_.held.get();
        client.reset();
        EXPECT_EQ(handler_.gone.get(), std::to_string(round));
        EXPECT_TRUE(held.exchange->gone());
    }
}

TEST_F(Disconnect, K28AFinInTheVeryMomentOfTheAnswerGivesTheAnswerBack) {
    // The front's thread is busy when both arrive, so it has not heard of the FIN.
    for (int round = 0; round < 50; ++round) {
        RawClient client = connect();
        client.send(get("/park"));
        const Held held = handler_.held.get();
        Events<int> busy, go_on;
        RawClient other = connect();
        other.send(get("/park?blocker"));
        const Held blocker = handler_.held.get();
        blocker.exchange->watch([&] {
            busy.put(1);
            go_on.get();
        });
        one_turn(); // the watch above took the place of the handler's
        other.close();
        busy.get();
        client.close();
        held.exchange->reply({.body = "a batch"}, report("batch"));
        go_on.put(1);
        EXPECT_EQ(handler_.undelivered.get(), "batch");
    }
}

TEST_F(Disconnect, AFinBeforeTheWatchMeansGoneAtTheWatch) {
    RawClient client = connect();
    client.send(get("/park?early"));
    client.finish_sending();
    EXPECT_EQ(handler_.gone.get(), "early");
    EXPECT_TRUE(handler_.held.get().exchange->gone());
    EXPECT_EQ(client.read_all(), "");
}

TEST_F(Disconnect, AWatchOnAClientThatIsGoneRunsAtOnce) {
    RawClient client = connect();
    client.send(get("/hold"));
    const Held held = handler_.held.get();
    client.reset();
    one_turn();
    EXPECT_TRUE(held.exchange->gone());
    held.exchange->watch([&] { handler_.gone.put("late"); });
    EXPECT_EQ(handler_.gone.get(), "late");
}

TEST_F(Disconnect, AnAnsweredExchangeIsNotWatchedAnyMore) {
    RawClient client = connect();
    client.send(get("/park"));
    const Held held = handler_.held.get();
    held.exchange->reply({.body = "done"}, report("done"));
    EXPECT_EQ(client.read().body, "done");
    client.close();
    one_turn();
    EXPECT_EQ(handler_.gone.size(), 0u);
    EXPECT_EQ(handler_.undelivered.size(), 0u) << "delivered and given back";
}

TEST_F(Disconnect, BytesBehindAParkedRequestDoNotHideItsFin) {
    RawClient client = connect();
    client.send(get("/park?first"));
    const Held held = handler_.held.get();
    client.send(get("/echo") + get("/echo"));
    one_turn();
    client.close();
    EXPECT_EQ(handler_.gone.get(), "first");
}

TEST_F(Disconnect, AnUnwatchedAnswerToAResetClientIsGivenBackOnce) {
    RawClient client = connect();
    client.send(get("/hold"));
    const Held held = handler_.held.get();
    client.reset();
    held.exchange->reply({.body = "lost"}, report("lost"));
    EXPECT_EQ(handler_.undelivered.get(), "lost");
    one_turn();
    EXPECT_EQ(handler_.undelivered.size(), 0u);
}

TEST_F(Disconnect, AnAnswerCutOffHalfWayIsGivenBackOnce) {
    RawClient client = connect(4096);
    client.send(get("/big?67108864"));
    EXPECT_FALSE(client.read_some(1000).empty());
    client.reset();
    EXPECT_EQ(handler_.undelivered.get(), "/big");
    one_turn();
    EXPECT_EQ(handler_.undelivered.size(), 0u);
}

TEST_F(Disconnect, ADeliveredAnswerIsNeverGivenBack) {
    for (int round = 0; round < 50; ++round) {
        RawClient client = connect();
        client.send(get("/hold"));
        handler_.held.get().exchange->reply({.body = "kept"}, report("kept"));
        EXPECT_EQ(client.read().body, "kept");
        client.reset();
    }
    one_turn();
    EXPECT_EQ(handler_.undelivered.size(), 0u);
}

TEST_F(Disconnect, ALateAnswerFindsNobodyNotTheNextOwnerOfThePlace) {
    RawClient gone = connect();
    gone.send(get("/hold?old"));
    const Held old = handler_.held.get();
    RawClient gone_too = connect();
    gone_too.send(get("/hold?dropped"));
    const Held dropped = handler_.held.get();
    gone.reset();
    gone_too.reset();
    one_turn();
    std::vector<RawClient> clients; // two of them sit where the old ones sat
    std::vector<Held> held;
    for (int i = 0; i < 4; ++i) {
        clients.push_back(connect());
        clients.back().send(get("/hold?new"));
        held.push_back(handler_.held.get());
    }
    old.exchange->reply({.body = "old"}, report("old"));
    EXPECT_EQ(handler_.undelivered.get(), "old");
    old.exchange->watch([&] { handler_.gone.put("old, but answered"); });
    dropped.exchange->watch([&] { handler_.gone.put("dropped"); });
    EXPECT_EQ(handler_.gone.get(), "dropped") << "its place is taken, and yet it is gone";
    for (std::size_t i = 0; i < held.size(); ++i) {
        held[i].exchange->reply({.body = "new"});
        EXPECT_EQ(clients[i].read().body, "new");
    }
}

TEST_F(Disconnect, ClosedConnectionsLeaveNothingOpen) {
    {
        std::vector<RawClient> clients;
        for (int i = 0; i < 50; ++i) {
            clients.push_back(connect());
            clients.back().ask(get("/echo"));
        }
        EXPECT_EQ(front_->statistics().open, 50u);
    }
    one_turn();
    one_turn();
    EXPECT_LE(front_->statistics().open, 1u);
    EXPECT_EQ(front_->statistics().accepted, 52u);
}

} // namespace
} // namespace queen::test
