// Brokers over one real database. Time is moved by hand; turns are made until something is so.
#include "meshpg/channel.hpp"
#include "meshpg/meshpg.hpp"
#include "support/postgres.hpp"
#include "support/sql_session.hpp"

#include <queen/plugin/testing.hpp>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <thread>

namespace queen::meshpg {
namespace {

using namespace std::chrono_literals;
using plugin::Hint;
using plugin::HintKind;
using plugin::ManualClock;
using plugin::OwnedHint;
using plugin::RecordingMeshHost;
using test::SqlSession;
using test::TestPostgres;

Hint stored(std::string_view queue, std::string_view partition) {
    Hint hint;
    hint.queue = queue;
    hint.partition = partition;
    return hint;
}

struct Node {
    Node(Options set, const Clock& clock)
        : options(std::move(set)),
          log([this](plugin::LogLevel, std::string_view line) { lines.emplace_back(line); }),
          channel(options, clock, host, log, "instance of " + options.server_id) {}
    std::size_t heard(std::string_view partition) const {
        const auto hints = host.hints();
        return static_cast<std::size_t>(std::count_if(
            hints.begin(), hints.end(), [&](const auto& h) { return h.partition == partition; }));
    }
    const Options options;
    RecordingMeshHost host;
    std::vector<std::string> lines;
    const Log log;
    Channel channel;
};

class ChannelTest : public testing::Test {
protected:
    Options options(const std::string& id) const {
        Options made;
        made.server_id = id;
        made.conninfo = postgres_.conninfo(database_);
        made.patience = 1h; // a slow machine is no fault
        return made;
    }
    Node& add(Options set) {
        nodes_.push_back(std::make_unique<Node>(std::move(set), clock_));
        return *nodes_.back();
    }
    Node& add(const std::string& id) { return add(options(id)); }
    bool until(const std::function<bool()>& so) {
        constexpr int kTurns = 10'000; // of up to a millisecond, for what never comes
        for (int i = 0; i < kTurns; ++i) {
            if (so()) {
                return true;
            }
            turn();
        }
        return false;
    }
    void turn() {
        for (const auto& node : nodes_) {
            node->channel.turn(1ms);
        }
    }
    /// Two that know of each other.
    bool meet(Node& a, Node& b) {
        return until([&] { return a.channel.listened() && b.channel.listened(); });
    }
    static void publish(Node& node, const Hint& hint) { node.channel.publish(std::span(&hint, 1)); }
    void notify(const std::string& payload) {
        postgres_.execute(database_, "SELECT pg_notify('queen_mesh', $q$" + payload + "$q$)");
    }

    TestPostgres& postgres_ = TestPostgres::shared();
    const std::string database_ = postgres_.create_database();
    ManualClock clock_;
    std::vector<std::unique_ptr<Node>> nodes_;
};

TEST_F(ChannelTest, HintsOfEveryKindReachTheOtherAndNobodyHearsItself) {
    Node& a = add("a");
    Node& b = add("b");
    ASSERT_TRUE(meet(a, b));
    std::vector<OwnedHint> sent;
    for (HintKind kind : {HintKind::stored, HintKind::moved, HintKind::configured,
                          HintKind::deleted, HintKind::switched}) {
        Hint hint;
        hint.kind = kind;
        if (kind == HintKind::switched) {
            hint.subject = "maintenance";
            hint.enabled = true;
        } else {
            hint.tenant = "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b";
            hint.queue = "q '\"\\ü";
        }
        if (kind == HintKind::stored || kind == HintKind::moved) {
            hint.partition = "p{},\"";
        }
        if (kind == HintKind::moved) {
            hint.group = "g";
        }
        sent.emplace_back(hint);
        publish(a, hint);
    }
    ASSERT_TRUE(until([&] { return b.host.hints().size() == sent.size(); }));
    EXPECT_EQ(b.host.hints(), sent);
    publish(b, stored("q", "from b"));
    ASSERT_TRUE(until([&] { return a.heard("from b") == 1; }));
    EXPECT_EQ(a.host.hints().size(), 1u);
}

// MESH-4
TEST_F(ChannelTest, AfterEachNewSessionAndEachNewBrokerHintsMayHaveBeenMissed) {
    Node& a = add("a");
    ASSERT_TRUE(until([&] { return a.host.times_missed() == 1; })) << "its session";
    Node& b = add("b");
    ASSERT_TRUE(meet(a, b));
    EXPECT_TRUE(until([&] { return a.host.times_missed() >= 2; })) << "another broker came";
    clock_.advance(a.options.heartbeat);
    ASSERT_TRUE(until([&] {
        return a.channel.figures().notifications_received.value() >= 2 &&
               b.channel.figures().notifications_received.value() >= 2;
    }));
    const auto before = b.host.times_missed();
    clock_.advance(a.options.heartbeat);
    const auto received = b.channel.figures().notifications_received.value();
    ASSERT_TRUE(
        until([&] { return b.channel.figures().notifications_received.value() > received; }));
    EXPECT_EQ(b.host.times_missed(), before) << "not for each sign of life";
    postgres_.execute("postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                                  "application_name = 'queen-meshpg' AND datname = '" +
                                      database_ + "'");
    ASSERT_TRUE(until([&] {
        return b.channel.figures().connects.value() == 1 && !b.channel.figures().connected.load();
    }));
    clock_.advance(b.options.last_retry);
    EXPECT_TRUE(until([&] { return b.host.times_missed() > before; }));
}

// MESH-4: the session of who hears was there all the time.
TEST_F(ChannelTest, WhoLostHintsForOthersTellsThem) {
    Options small = options("a");
    small.pending = 2;
    Node& a = add(small);
    ASSERT_TRUE(until([&] { return a.channel.figures().connected.load(); })); // the oldest session
    Node& b = add("b");
    ASSERT_TRUE(meet(a, b));
    for (Node* node : {&a, &b}) { // past what brokers that meet say
        clock_.advance(node->options.heartbeat);
        const auto received = node->channel.figures().notifications_received.value();
        ASSERT_TRUE(until(
            [&] { return node->channel.figures().notifications_received.value() > received; }));
    }
    auto before = b.host.times_missed();
    publish(a, stored("q", "first"));
    ASSERT_TRUE(until([&] { return b.heard("first") == 1; }));
    EXPECT_EQ(b.host.times_missed(), before);
    for (const char* partition : {"1", "2", "3"}) {
        publish(a, stored("q", partition));
    }
    clock_.advance(20ms);
    EXPECT_TRUE(until([&] { return b.host.times_missed() == before + 1; })) << "too many waited";
    EXPECT_EQ(b.heard("3"), 0u);

    before = b.host.times_missed();
    const std::string oldest = SqlSession(postgres_.conninfo(database_))
                                   .one("SELECT pid FROM pg_stat_activity WHERE application_name = "
                                        "'queen-meshpg' AND datname = current_database() "
                                        "ORDER BY backend_start LIMIT 1");
    postgres_.execute(database_, "SELECT pg_terminate_backend(" + oldest + ")");
    ASSERT_TRUE(until([&] { return !a.channel.listened(); }));
    publish(a, stored("q", "lost"));
    clock_.advance(a.options.last_retry);
    EXPECT_TRUE(until([&] { return b.host.times_missed() > before; })) << "its session was cut";
    EXPECT_EQ(b.channel.figures().reconnects.value(), 0u);
}

// Brokers may be set differently while an operator changes them one by one.
TEST_F(ChannelTest, WhoWasNotHeardForAWhileIsToldThatThereWasMore) {
    Options slow = options("b");
    slow.heartbeat = 20s;
    slow.dead_threshold = 60s;
    Node& a = add("a");
    Node& b = add(slow);
    ASSERT_TRUE(meet(a, b));
    publish(a, stored("q", "first"));
    ASSERT_TRUE(until([&] { return b.heard("first") == 1; }));
    clock_.advance(a.options.dead_threshold + 1s);
    ASSERT_TRUE(until([&] { return !a.channel.listened(); }));
    publish(a, stored("q", "dropped"));
    const auto before = b.host.times_missed();
    clock_.advance(slow.heartbeat);
    EXPECT_TRUE(until([&] { return b.host.times_missed() > before; }));
    EXPECT_EQ(b.heard("dropped"), 0u);
    EXPECT_EQ(b.channel.alive(), 1u) << "it heard of a all the time";
}

TEST_F(ChannelTest, WithoutOthersNothingIsSent) {
    Node& a = add("a");
    ASSERT_TRUE(until([&] { return a.channel.figures().notifications_sent.value() == 1; }));
    EXPECT_FALSE(a.channel.listened());
    publish(a, stored("q", "p"));
    EXPECT_EQ(a.channel.figures().notifications_sent.value(), 1u) << "its heartbeat";
    Node& b = add("b");
    EXPECT_TRUE(meet(a, b)) << "a heard b's first heartbeat and said its own at once";
    b.channel.close();
    const auto silence = b.options.dead_threshold;
    nodes_.pop_back();
    EXPECT_TRUE(until([&] {
        clock_.advance(silence); // again, for what b said last may be heard after the first time
        return !a.channel.listened();
    }));
}

TEST_F(ChannelTest, TheFirstHintGoesAtOnceAndTheNextOnesTogether) {
    Node& a = add("a");
    Node& b = add("b");
    ASSERT_TRUE(meet(a, b));
    publish(a, stored("q", "first"));
    ASSERT_TRUE(until([&] { return b.heard("first") == 1; })) << "no time has passed";
    const auto sent = a.channel.figures().notifications_sent.value();
    for (int i = 0; i < 1'000; ++i) {
        publish(a, stored("q", std::to_string(i % 10)));
    }
    for (int i = 0; i < 20; ++i) {
        turn();
    }
    EXPECT_EQ(b.host.hints().size(), 1u);
    clock_.advance(20ms);
    ASSERT_TRUE(until([&] { return b.host.hints().size() == 11; }));
    EXPECT_EQ(a.channel.figures().notifications_sent.value(), sent + 1);
}

TEST_F(ChannelTest, ManyHintsAreCutIntoPayloadsThatPostgresqlTakes) {
    Node& a = add("a");
    Node& b = add("b");
    ASSERT_TRUE(meet(a, b));
    std::vector<std::string> names;
    for (int i = 0; i < 2'000; ++i) {
        names.push_back(std::to_string(i) + std::string(240, '"')); // two bytes each
    }
    for (const std::string& name : names) {
        publish(a, stored("q", name));
    }
    ASSERT_TRUE(until([&] {
        clock_.advance(20ms);
        return b.host.hints().size() == 2'000;
    }));
    EXPECT_GT(a.channel.figures().notifications_sent.value(), 5u);
    EXPECT_EQ(a.channel.figures().reconnects.value(), 0u);
}

TEST_F(ChannelTest, ALostSessionIsMadeAnewAndWhatWaitedIsDiscarded) {
    Node& a = add("a");
    Node& b = add("b");
    ASSERT_TRUE(meet(a, b));
    clock_.advance(6s);
    publish(a, stored("q", "before"));
    ASSERT_TRUE(until([&] { return b.heard("before") == 1; }));
    publish(a, stored("q", "waits"));
    postgres_.execute(database_,
                      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                      "application_name = 'queen-meshpg' AND datname = current_database()");
    ASSERT_TRUE(until([&] { return !a.channel.listened() && !b.channel.listened(); }));
    EXPECT_EQ(a.channel.figures().dropped_stale.value(), 1u);
    publish(a, stored("q", "meanwhile"));
    clock_.advance(250ms);
    ASSERT_TRUE(until([&] { return a.channel.listened() && b.channel.listened(); }));
    EXPECT_EQ(a.channel.figures().reconnects.value(), 1u);
    publish(a, stored("q", "after"));
    ASSERT_TRUE(until([&] { return b.heard("after") == 1; }));
    EXPECT_EQ(b.heard("waits") + b.heard("meanwhile"), 0u);
}

TEST_F(ChannelTest, ADatabaseThatIsAwayIsAskedAgainMoreAndMoreSeldom) {
    Options away = options("a");
    away.conninfo = "host=/nonexistent user=x password=hush";
    Node& a = add(away);
    ASSERT_TRUE(until([&] { return a.channel.figures().connects_failed.value() == 1; }));
    for (const auto wait : {250ms, 500ms, 1'000ms, 2'000ms, 4'000ms, 5'000ms, 5'000ms}) {
        const auto failed = a.channel.figures().connects_failed.value();
        clock_.advance(wait - 1ms);
        turn();
        EXPECT_EQ(a.channel.figures().connects_failed.value(), failed);
        clock_.advance(1ms);
        ASSERT_TRUE(until([&] { return a.channel.figures().connects_failed.value() > failed; }));
    }
    ASSERT_EQ(a.lines.size(), 1u) << "one line, however long it lasts";
    EXPECT_EQ(a.lines[0].find("hush"), std::string::npos);
}

TEST_F(ChannelTest, ADatabaseThatDoesNotAnswerIsGivenUp) {
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&at), size), 0);
    ASSERT_EQ(::listen(listener, 8), 0);
    ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&at), &size), 0);
    Options mute = options("a");
    mute.conninfo = "host=127.0.0.1 sslmode=disable port=" + std::to_string(ntohs(at.sin_port));
    mute.patience = 10s;
    Node& a = add(mute);
    for (int i = 0; i < 20; ++i) {
        turn();
    }
    clock_.advance(9'999ms);
    turn();
    EXPECT_EQ(a.channel.figures().connects_failed.value(), 0u);
    clock_.advance(1ms);
    EXPECT_TRUE(until([&] { return a.channel.figures().connects_failed.value() == 1; }));
    ::close(listener);
}

/// A name service that does not answer.
struct Hanging {
    pg_conn* operator()(const std::string&) const {
        ++*calls;
        over.wait();
        return nullptr;
    }
    std::shared_ptr<std::atomic<int>> calls;
    std::shared_future<void> over;
};

TEST_F(ChannelTest, ANameServiceThatHangsHoldsNeitherTurnsNorTheStopUp) {
    std::promise<void> over;
    const Hanging hanging{std::make_shared<std::atomic<int>>(0), over.get_future().share()};
    Options set = options("a");
    set.patience = 10s;
    RecordingMeshHost host;
    const Log log = [](plugin::LogLevel, std::string_view) {};
    {
        Channel channel(set, clock_, host, log, "a", hanging);
        channel.turn(1ms);
        clock_.advance(10s);
        channel.turn(1ms);
        EXPECT_EQ(channel.figures().connects_failed.value(), 1u);
        for (int i = 0; i < 10; ++i) {
            clock_.advance(10s);
            channel.turn(1ms);
        }
        EXPECT_EQ(channel.figures().connects_failed.value(), 11u);
    }
    std::vector<std::string> lines; // written before there is a thread
    MeshPg mesh(
        set, clock_, host,
        [&](plugin::LogLevel, std::string_view line) { lines.emplace_back(line); }, hanging);
    mesh.start();
    EXPECT_EQ(lines.size(), 1u);
    EXPECT_NE(lines.at(0).find("whoever may connect to this database can read the channel"),
              std::string::npos);
    ASSERT_TRUE(plugin::eventually([&] { return *hanging.calls == 2; }))
        << "one attempt waits at a time";
    mesh.stop();
    over.set_value();
}

// MESH-6
TEST_F(ChannelTest, WhatWasSaidJustBeforeTheStopIsSent) {
    Node& a = add("a");
    Node& b = add("b");
    ASSERT_TRUE(meet(a, b));
    publish(a, stored("q", "first"));
    turn();
    for (int i = 0; i < 3'000; ++i) {
        publish(a, stored("q", std::to_string(i) + std::string(200, '.'))); // several statements
    }
    publish(a, stored("q", "last"));
    a.channel.drain(1h); // the clock stands still, so this ends because all is sent
    a.channel.close();
    EXPECT_EQ(a.channel.figures().dropped_stale.value(), 0u);
    EXPECT_TRUE(until([&] { return b.heard("last") == 1; }));
    EXPECT_EQ(b.host.hints().size(), 3'002u);
}

TEST_F(ChannelTest, WhateverAnyoneNotifiesIsSurvivedAndCounted) {
    Node& a = add("a");
    ASSERT_TRUE(until([&] { return a.channel.figures().notifications_sent.value() == 1; }));
    for (const char* payload : {"", "x", "[]", "{}", R"({"server_id":7})", R"({"server_id":""})"}) {
        notify(payload);
    }
    notify(R"({"server_id":"x","items":[{"kind":"news","queue":"q"},{"queue":""},{"queue":"q"}]})");
    ASSERT_TRUE(until([&] { return a.host.hints().size() == 1; }));
    EXPECT_EQ(a.channel.figures().bad.value(), 6u);
    EXPECT_EQ(a.channel.figures().items_skipped.value(), 2u);
    EXPECT_EQ(a.channel.alive(), 1u);
}

TEST_F(ChannelTest, AFloodIsDroppedBecauseItCannotWaitAndLookedForOnce) {
    Options few = options("a");
    few.hints_per_second = 8;
    Node& a = add(few);
    ASSERT_TRUE(until([&] { return a.channel.figures().notifications_sent.value() == 1; }));
    const auto hint = [](const std::string& partition) {
        return R"({"server_id":"x","items":[{"queue":"q","partition":")" + partition + "\"}]}";
    };
    std::string flood = "SELECT";
    for (int i = 0; i < 5; ++i) {
        flood += (i == 0 ? " " : ", ") + ("pg_notify('queen_mesh', $q$" + hint(std::to_string(i))) +
                 "$q$)";
    }
    SqlSession flooder(postgres_.conninfo(database_));
    flooder.query(flood);
    ASSERT_TRUE(until([&] { return a.channel.figures().notifications_received.value() == 5; }));
    EXPECT_EQ(a.host.hints().size(), 2u) << "a session begins with a quarter of a second's worth";
    EXPECT_EQ(a.channel.figures().dropped_flood.value(), 3u);
    EXPECT_GE(a.host.times_missed(), 3u) << "what was dropped is looked for";
    notify(hint("another"));
    EXPECT_TRUE(until([&] { return a.heard("another") == 1; })) << "others are heard";
    clock_.advance(125ms);
    flooder.query("SELECT pg_notify('queen_mesh', $q$" + hint("later") + "$q$)");
    EXPECT_TRUE(until([&] { return a.heard("later") == 1; }));
}

// ME-22
TEST_F(ChannelTest, BrokersThatShareAServerIdAreHeardAndToldOfOnce) {
    Node& a = add("a");
    ASSERT_TRUE(until([&] { return a.channel.figures().notifications_sent.value() == 1; }));
    const auto say = [&](const std::string& id, const std::string& instance) {
        const auto heard = a.channel.figures().notifications_received.value();
        notify(R"({"server_id":")" + id + R"(","instance":")" + instance +
               R"(","items":[{"queue":"q","partition":"p"}]})");
        EXPECT_TRUE(
            until([&] { return a.channel.figures().notifications_received.value() > heard; }));
    };
    const auto told = [&](std::string_view what) {
        return std::count_if(a.lines.begin(), a.lines.end(),
                             [&](const std::string& line) { return line.find(what) != line.npos; });
    };
    say("a", "1");
    say("a", "1");
    EXPECT_EQ(told("our own server id a by the session of process "), 1);
    say("x", "2");
    say("x", "3");
    EXPECT_EQ(told("two brokers have the server id x"), 0) << "it may have started anew";
    say("x", "2");
    say("x", "3");
    say("x", "2");
    EXPECT_LE(told("two brokers have the server id x"), 2) << "one line for each of the two";
    EXPECT_GE(told("two brokers have the server id x"), 1);
    EXPECT_EQ(a.host.hints().size(), 7u);
}

TEST_F(ChannelTest, HeartbeatsKeepBrokersKnown) {
    Node& a = add("a");
    Node& b = add("b");
    ASSERT_TRUE(meet(a, b));
    for (int i = 0; i < 6; ++i) {
        clock_.advance(5s);
        const auto heard = a.channel.figures().notifications_received.value();
        ASSERT_TRUE(
            until([&] { return a.channel.figures().notifications_received.value() > heard; }));
    }
    EXPECT_TRUE(a.channel.listened());
    struct Rows final : plugin::Peers {
        void add(const plugin::Peer& peer) override {
            ids.emplace_back(peer.server_id);
            EXPECT_TRUE(peer.alive);
            EXPECT_TRUE(peer.connected);
        }
        std::vector<std::string> ids;
    } rows;
    a.channel.peers(rows);
    EXPECT_EQ(rows.ids, std::vector<std::string>{"b"});
}

TEST_F(ChannelTest, WorkersPublishWhileTheSessionComesAndGoes) {
    Node& a = add("a");
    Node& b = add("b");
    ASSERT_TRUE(meet(a, b));
    std::atomic<int> running{3};
    std::vector<std::jthread> workers;
    for (int w = 0; w < 3; ++w) {
        workers.emplace_back([&, w] {
            const std::string partition = std::to_string(w);
            for (int i = 0; i < 3'000; ++i) {
                publish(a, stored("q", partition));
            }
            --running;
        });
    }
    for (int i = 0; running > 0; ++i) {
        clock_.advance(20ms);
        turn();
        if (i % 50 == 49) {
            a.channel.close();
        }
    }
    workers.clear();
    publish(a, stored("q", "last"));
    EXPECT_TRUE(until([&] {
        clock_.advance(20ms);
        publish(a, stored("q", "last"));
        return b.heard("last") > 0;
    }));
}

} // namespace
} // namespace queen::meshpg
