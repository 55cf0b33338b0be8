// Slow, idle, many and greedy clients: every limit is stated, and met on a clock the test moves.
#include "http/front/front_fixture.hpp"
#include "http/front/loop.hpp"

#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

namespace queen::test {
namespace {

using namespace std::chrono_literals;

class Limits : public FrontTest {
protected:
    void advance(Nanoseconds by) {
        clock_.advance(by);
        one_turn();
    }
    /// The front has read what was sent before, at the present time.
    void settle() { one_turn(); }
    static std::size_t threads() {
        return static_cast<std::size_t>(
            std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
    }
};

/// State letter of the front's thread: 'S' while it sleeps in epoll_wait.
char front_thread_state() {
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
        std::string line;
        std::getline(std::ifstream(task.path() / "stat"), line);
        if (line.find("(queen-front)") != std::string::npos) {
            return line[line.find(") ") + 2];
        }
    }
    return '?';
}

/// True as soon as the front's thread sleeps. One that is told of the same event again and again
/// never does.
bool comes_to_rest() {
    const auto give_up = SystemClock::instance().now() + 10s;
    while (front_thread_state() != 'S') {
        if (SystemClock::instance().now() > give_up) {
            return false;
        }
        std::this_thread::yield();
    }
    return true;
}

/// True while the connection neither ended nor got bytes.
bool quiet(const RawClient& client) {
    char byte = 0;
    return ::recv(client.descriptor(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN;
}

TEST_F(Limits, K27AHeadMustBeWholeInTimeHoweverItTrickles) {
    RawClient silent = connect(), trickling = connect();
    silent.send("GET /echo HTT");
    trickling.send("G");
    settle();
    for (int second = 1; second < 10; ++second) {
        advance(1s);
        trickling.send("E");
        settle();
        EXPECT_TRUE(quiet(silent));
        EXPECT_TRUE(quiet(trickling));
    }
    advance(1s);
    for (RawClient* client : {&silent, &trickling}) {
        const Answer answer = client->read();
        EXPECT_EQ(answer.status, 408);
        EXPECT_NE(answer.body.find("10000 ms"), std::string::npos) << answer.body;
        EXPECT_TRUE(client->ended());
    }
    EXPECT_EQ(front_->statistics().timed_out, 2u);
}

TEST_F(Limits, K27ABodyMustMakeProgress) {
    RawClient silent = connect(), slow = connect(), chunked = connect();
    silent.send("POST /echo HTTP/1.1\r\nHost: b\r\nContent-Length: 10\r\n\r\n");
    slow.send("POST /echo HTTP/1.1\r\nHost: b\r\nContent-Length: 3\r\n\r\n");
    chunked.send("POST /echo HTTP/1.1\r\nHost: b\r\nTransfer-Encoding: chunked\r\n\r\n");
    settle();
    advance(29s);
    slow.send("a");
    chunked.send("1");
    settle();
    EXPECT_TRUE(quiet(silent));
    advance(1s);
    EXPECT_EQ(silent.read().status, 408);
    advance(28s);
    slow.send("b");
    settle();
    EXPECT_TRUE(quiet(chunked));
    advance(1s);
    EXPECT_EQ(chunked.read().status, 408);
    EXPECT_EQ(slow.ask("c").body, "POST /echo?\nabc");
    EXPECT_EQ(front_->statistics().timed_out, 2u);
}

TEST_F(Limits, K27AnIdleConnectionEndsInOrder) {
    RawClient fresh = connect(), used = connect();
    used.ask(get("/echo"));
    settle();
    advance(74s);
    EXPECT_TRUE(quiet(fresh));
    EXPECT_EQ(used.ask(get("/echo")).status, 200) << "and is fresh again";
    advance(1s);
    EXPECT_TRUE(fresh.ended());
    advance(73s);
    EXPECT_TRUE(quiet(used));
    advance(1s);
    EXPECT_TRUE(used.ended());
}

TEST_F(Limits, ARequestInFlightHasNoTimeLimitOfTheFront) {
    RawClient client = connect();
    client.send(get("/hold"));
    Held held = handler_.held.get();
    advance(1h);
    held.exchange->reply({.body = "patience"});
    EXPECT_EQ(client.read().body, "patience");
}

TEST_F(Limits, K27AReaderWithoutProgressIsDroppedAndItsAnswerGivenBack) {
    RawClient reader = connect(4096);
    reader.send(get("/big?67108864"));
    EXPECT_FALSE(reader.read_some(100).empty());
    settle();
    advance(59s);
    EXPECT_EQ(handler_.undelivered.size(), 0u);
    advance(1s);
    EXPECT_EQ(handler_.undelivered.get(), "/big");
    EXPECT_EQ(front_->statistics().timed_out, 1u);
    settle();
    EXPECT_EQ(handler_.undelivered.size(), 0u);
}

TEST_F(Limits, K27AReaderThatMakesProgressIsServedToTheEnd) {
    RawClient reader = connect(4096);
    constexpr std::size_t kBytes = 16u << 20;
    reader.send(get("/big?" + std::to_string(kBytes), "Connection: close\r\n"));
    std::size_t got = 0;
    while (true) {
        std::size_t part = 0;
        while (part < (1u << 20)) {
            const std::size_t bytes = reader.read_some(65536).size();
            if (bytes == 0) {
                break;
            }
            part += bytes;
        }
        got += part;
        if (part < (1u << 20)) {
            break;
        }
        advance(50s); // in sum far beyond the limit
    }
    EXPECT_GT(got, kBytes);
    EXPECT_EQ(handler_.undelivered.size(), 0u);
}

TEST_F(Limits, K27SlowClientsHoldNobodyUp) {
    std::vector<RawClient> slow;
    for (int i = 0; i < 20; ++i) {
        slow.push_back(connect(4096));
        slow.back().send(get("/big?8388608"));
        slow.push_back(connect());
        slow.back().send("GET /e");
        slow.push_back(connect());
        slow.back().send("POST /echo HTTP/1.1\r\nHost: b\r\nContent-Length: 1000000\r\n\r\n");
    }
    const std::size_t before = threads();
    for (int i = 0; i < 100; ++i) {
        RawClient client = connect();
        EXPECT_EQ(client.ask(get("/echo")).status, 200);
        EXPECT_EQ(client.ask(post("/echo", "x")).status, 200);
    }
    EXPECT_EQ(threads(), before);
}

TEST_F(Limits, AThousandParkedConnectionsCostLittleAndNoThread) {
    const std::size_t threads_before = threads();
    constexpr std::size_t kClients = 1000;
    std::vector<RawClient> clients;
    std::vector<Held> held;
    clients.reserve(kClients);
    held.reserve(kClients);
    connect().ask(get("/echo")); // what is made once is made
    const std::size_t heap_before = ::mallinfo2().uordblks;
    // Buffers of every kind are in use before the clients park: a head in pieces, a body, an
    // answer.
    const std::string head = get("/empty", "A: " + std::string(7000, 'a') + "\r\n");
    for (std::size_t i = 0; i < kClients; ++i) {
        clients.push_back(connect());
        clients.back().ask(post("/empty", std::string(20'000, 'x')));
        clients.back().ask(get("/big?20000"));
        clients.back().send(head.substr(0, 6000));
    }
    settle();
    for (std::size_t i = 0; i < kClients; ++i) {
        clients[i].ask(head.substr(6000));
        clients[i].send(get("/park?" + std::to_string(i)));
        held.push_back(handler_.held.get());
    }
    // Counts the test's own requests and clients too.
    EXPECT_LT((::mallinfo2().uordblks - heap_before) / kClients, 4096u);
    EXPECT_EQ(front_->statistics().open, kClients);
    EXPECT_EQ(threads(), threads_before);
    for (std::size_t i = kClients; i-- > 0;) {
        held[i].exchange->reply({.body = std::to_string(i)});
    }
    for (std::size_t i = 0; i < kClients; ++i) {
        EXPECT_EQ(clients[i].read().body, std::to_string(i));
    }
}

TEST_F(Limits, ClientsThatAreWaitedForDoNotKeepTheThreadBusy) {
    EXPECT_TRUE(comes_to_rest());

    RawClient ahead = connect();
    ahead.send(get("/park"));
    Held parked = handler_.held.get();
    ahead.send(get("/echo") + get("/echo"));
    settle();
    EXPECT_TRUE(comes_to_rest()) << "bytes behind a parked request";

    RawClient half_closed = connect();
    half_closed.send(get("/hold"));
    Held held = handler_.held.get();
    half_closed.finish_sending();
    settle();
    EXPECT_TRUE(comes_to_rest()) << "a FIN while a request is in flight";

    RawClient slow = connect(4096);
    slow.send(get("/big?16777216") + get("/echo"));
    EXPECT_FALSE(slow.read_some(100).empty());
    settle();
    EXPECT_TRUE(comes_to_rest()) << "a reader that does not read";

    RawClient refused = connect();
    refused.send("nonsense\r\n");
    EXPECT_EQ(refused.read().status, 400);
    settle();
    EXPECT_TRUE(comes_to_rest()) << "a refused client that stays";

    RawClient waits = connect();
    waits.send("POST /echo HTTP/1.1\r\nHost: b\r\nExpect: 100-continue\r\n"
               "Content-Length: 10\r\n\r\n");
    EXPECT_EQ(waits.read().status, 100);
    EXPECT_TRUE(comes_to_rest()) << "a body that does not come";
}

TEST_F(Limits, ConnectionsOverTheLimitAreToldSo) {
    start({.connections = 3});
    std::optional<RawClient> first(connect());
    RawClient second = connect(), third = connect();
    for (RawClient* client : {&*first, &second, &third}) {
        EXPECT_EQ(client->ask(get("/echo")).status, 200);
    }
    for (int i = 0; i < 100; ++i) {
        RawClient over = connect();
        over.send(get("/echo"));
        const Answer answer = over.read();
        EXPECT_EQ(answer.status, 503);
        EXPECT_EQ(answer.field("Retry-After"), "1");
        EXPECT_NE(answer.body.find("limit of 3 connections"), std::string::npos) << answer.body;
        EXPECT_TRUE(over.ended());
    }
    EXPECT_EQ(handler_.count, 3u);
    EXPECT_EQ(front_->statistics().refused, 100u);
    EXPECT_EQ(front_->statistics().open, 3u);
    first.reset();
    second.ask(get("/echo")); // a turn later the place is free
    EXPECT_EQ(connect().ask(get("/echo")).status, 200);
}

TEST_F(Limits, BodiesBeyondTheBudgetAreAskedToComeBack) {
    start({.body_bytes = 1 << 20, .bodies_in_flight_bytes = 1'000'000});
    const std::string body(600'000, 'b');
    RawClient first = connect(), second = connect();
    first.send(post("/hold", body));
    Held held = handler_.held.get();
    const Answer refused = second.ask(post("/echo", body));
    EXPECT_EQ(refused.status, 503);
    EXPECT_EQ(refused.field("Retry-After"), "1");
    EXPECT_NE(refused.body.find("1000000 bytes"), std::string::npos) << refused.body;
    EXPECT_TRUE(second.ended());
    first.reset(); // the route still holds the body
    one_turn();
    EXPECT_EQ(connect().ask(post("/echo", body)).status, 503);
    held.exchange.reset();
    EXPECT_EQ(connect().ask(post("/echo", body)).status, 200);

    RawClient third = connect(), fourth = connect();
    third.send(post("/hold", body));
    held = handler_.held.get();
    held.exchange->reply({.status = 204});
    held.exchange->reply({.status = 204}, [this] { handler_.undelivered.put("again"); });
    handler_.undelivered.get();
    EXPECT_EQ(third.read().status, 204);
    third.send(post("/hold", body));
    held = handler_.held.get();
    EXPECT_EQ(fourth.ask(post("/echo", body)).status, 503) << "a second answer gave back twice";
}

TEST_F(Limits, ABodyGivenUpDoesNotCountAgainstTheBudget) {
    start({.body_bytes = 1 << 20, .bodies_in_flight_bytes = 1'000'000});
    const std::string request = post("/echo", std::string(900'000, 'b'));
    RawClient slow = connect();
    slow.send(request.substr(0, 600'000));
    settle();
    do { // so many bytes may take more than one turn, and each of them is progress
        advance(30s);
    } while (front_->statistics().timed_out == 0);
    EXPECT_EQ(slow.read().status, 408);
    EXPECT_EQ(connect().ask(request).status, 200) << "though the slow one is still connected";
}

TEST_F(Limits, K14ClientsThatAreRefusedTakeNoDescriptorOfOthers) {
    for (const std::size_t limit : {192u, 256u, 512u, 1024u, 20'000u}) {
        const auto served = http::Loop::connections_for(0, limit);
        EXPECT_LE(served + http::Loop::kRefusedAtOnce + http::Loop::kOtherDescriptors, limit)
            << limit;
        EXPECT_EQ(http::Loop::connections_for(1 << 20, limit), served);
    }
    EXPECT_EQ(http::Loop::connections_for(5, 1024), 5u);
}

TEST_F(Limits, WithoutDescriptorsAClientIsRefusedAndTheFrontGoesOn) {
    RawClient before = connect();
    before.ask(get("/echo"));
    // Unconnected sockets first: the front is to run dry, not the test.
    std::vector<int> sockets;
    for (int i = 0; i < 4; ++i) {
        sockets.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    }
    rlimit limit{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
    rlimit low = limit;
    low.rlim_cur = static_cast<rlim_t>(sockets.back()) + 8;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
    std::vector<int> fillers;
    for (int filler; (filler = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) {
        fillers.push_back(filler);
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(sockets[0], reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    char bytes[512];
    const ssize_t got = ::recv(sockets[0], bytes, sizeof bytes, 0);
    const std::string answer(bytes, got > 0 ? static_cast<std::size_t>(got) : 0);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 503 ")) << answer;
    EXPECT_NE(answer.find("out of descriptors"), std::string::npos) << answer;
    EXPECT_EQ(before.ask(get("/echo")).status, 200) << "those who are in are served";
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
    for (const int descriptor : fillers) {
        ::close(descriptor);
    }
    clock_.advance(1s); // the pause is over
    EXPECT_EQ(before.ask(get("/echo")).status, 200);
    EXPECT_EQ(connect().ask(get("/echo")).status, 200);
    for (const int socket : sockets) {
        ::close(socket);
    }
}

} // namespace
} // namespace queen::test
