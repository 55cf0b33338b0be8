// What a client sees on the wire: framing, order, persistence, refusals it can read.
#include "http/front/codec.hpp"
#include "http/front/front_fixture.hpp"

#include <random>
#include <thread>

namespace queen::test {
namespace {

class Protocol : public FrontTest {};

std::string without_date(const std::string& head) {
    const std::size_t begin = head.find("\r\nDate: ");
    EXPECT_NE(begin, std::string::npos) << head;
    return head.substr(0, begin) + head.substr(head.find("\r\n", begin + 2));
}

std::string head_of(const std::string& method, const std::string& target) {
    return method + " " + target + " HTTP/1.1\r\nHost: broker\r\n\r\n";
}

TEST_F(Protocol, AnswersAGetWithExactLengthTypeAndDate) {
    RawClient client = connect();
    const Answer answer = client.ask(get("/echo?a=1&b=%20"));
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "GET /echo?a=1&b=%20\n");
    EXPECT_EQ(answer.field("Content-Type"), "text/plain");
    ASSERT_TRUE(answer.field("Date"));
    EXPECT_TRUE(answer.field("Date")->ends_with(" GMT"));
    EXPECT_FALSE(answer.field("Connection"));
    EXPECT_EQ(client.ask(post("/echo", "again")).body, "POST /echo?\nagain") << "keep-alive";
}

TEST_F(Protocol, Pop8AnEmptyAnswerHasNoBodyNoLengthNoType) {
    RawClient client = connect();
    client.send(get("/empty", "Connection: close\r\n"));
    const std::string raw = client.read_all();
    EXPECT_TRUE(raw.starts_with("HTTP/1.1 204 No Content\r\n")) << raw;
    EXPECT_EQ(raw.find("\r\n\r\n"), raw.size() - 4) << "bytes behind the head: " << raw;
    EXPECT_EQ(raw.find("Content-"), std::string::npos) << raw;
    EXPECT_EQ(raw.find("Transfer-"), std::string::npos) << raw;
}

TEST_F(Protocol, HeadGetsTheHeadOfTheGet) {
    RawClient client = connect();
    for (const std::string target : {"/big?1000", "/empty"}) {
        const Answer to_head = client.ask(head_of("HEAD", target), true);
        const Answer to_get = client.ask(get(target));
        EXPECT_EQ(without_date(to_head.head), without_date(to_get.head));
        EXPECT_EQ(to_head.body, "");
    }
}

TEST_F(Protocol, Http10EndsUnlessAskedToStay) {
    RawClient leaves = connect();
    EXPECT_EQ(leaves.ask("GET /echo HTTP/1.0\r\n\r\n").status, 200);
    EXPECT_TRUE(leaves.ended());
    RawClient stays = connect();
    const std::string request = "GET /echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
    EXPECT_EQ(stays.ask(request).field("Connection"), "Keep-Alive");
    EXPECT_EQ(stays.ask(request).status, 200);
}

TEST_F(Protocol, ConnectionCloseIsSaidAndDone) {
    RawClient asked = connect();
    EXPECT_EQ(asked.ask(get("/echo", "Connection: close\r\n")).field("Connection"), "Close");
    EXPECT_TRUE(asked.ended());
    RawClient told = connect();
    EXPECT_EQ(told.ask(get("/close")).field("Connection"), "Close");
    EXPECT_TRUE(told.ended());
}

TEST_F(Protocol, RequestsBehindAClosingOneAreNotServed) {
    RawClient client = connect();
    client.send(get("/close") + get("/echo") + get("/echo"));
    EXPECT_EQ(client.read().status, 200);
    EXPECT_TRUE(client.ended());
    EXPECT_EQ(handler_.count, 1u);
}

TEST_F(Protocol, AnswersPipelinedRequestsInOrderOneAtATime) {
    RawClient client = connect();
    std::string requests = get("/hold");
    constexpr int kBehind = 5000; // more than one read buffer holds
    for (int i = 0; i < kBehind; ++i) {
        requests += get("/echo?" + std::to_string(i));
    }
    std::thread sender([&] { client.send(requests); });
    Held first = handler_.held.get();
    one_turn();
    EXPECT_EQ(handler_.count, 1u + 2u) << "the held one, and two of one_turn()";
    first.exchange->reply({.body = "first"});
    EXPECT_EQ(client.read().body, "first");
    for (int i = 0; i < kBehind; ++i) {
        ASSERT_EQ(client.read().body, "GET /echo?" + std::to_string(i) + "\n");
    }
    sender.join();
}

TEST_F(Protocol, K26TenThousandPipelinedRoundsStayInStep) {
    RawClient client = connect();
    constexpr int kRounds = 10'000, kAtOnce = 20;
    for (int round = 0; round < kRounds; round += kAtOnce) {
        std::string requests;
        for (int i = round; i < round + kAtOnce; ++i) {
            const std::string number = std::to_string(i);
            requests += get("/empty") + post("/echo", number) + get("/echo?" + number) +
                        get("/empty") + head_of("HEAD", "/echo") + post("/empty", number);
        }
        client.send(requests);
        for (int i = round; i < round + kAtOnce; ++i) {
            const std::string number = std::to_string(i);
            ASSERT_EQ(client.read().status, 204);
            ASSERT_EQ(client.read().body, "POST /echo?\n" + number);
            ASSERT_EQ(client.read().body, "GET /echo?" + number + "\n");
            ASSERT_EQ(client.read().status, 204);
            ASSERT_EQ(client.read(true).status, 200);
            ASSERT_EQ(client.read().status, 204);
        }
    }
    EXPECT_EQ(handler_.count, 6u * kRounds);
    EXPECT_EQ(front_->statistics().requests, 6u * kRounds);
}

TEST_F(Protocol, TakesRequestsCutAtEveryByte) {
    const std::string chunked = "POST /echo HTTP/1.1\r\nHost: b\r\nTransfer-Encoding: chunked\r\n"
                                "\r\n5;x=y\r\nhello\r\n1\r\n!\r\n0\r\nT: t\r\n\r\n";
    RawClient client = connect();
    for (const std::string& request : {get("/echo?q"), post("/echo", "hello!"), chunked}) {
        for (std::size_t cut = 1; cut < request.size(); ++cut) {
            client.send(request.substr(0, cut));
            one_turn(); // the front has read the first part by itself
            client.send(request.substr(cut));
            ASSERT_EQ(client.read().status, 200) << request.substr(0, cut);
        }
        for (const char byte : request) {
            client.send({&byte, 1});
        }
        ASSERT_EQ(client.read().status, 200);
    }
}

TEST_F(Protocol, DecodesChunkedBodies) {
    RawClient client = connect();
    const Answer answer =
        client.ask("POST /echo HTTP/1.1\r\nHost: b\r\nTransfer-Encoding: chunked\r\n\r\n"
                   "3\r\nabc\r\n2;ext=\"1\"\r\nde\r\n0\r\nDigest: x\r\n\r\n" +
                   get("/echo?next"));
    EXPECT_EQ(answer.body, "POST /echo?\nabcde");
    EXPECT_EQ(client.read().body, "GET /echo?next\n");
}

TEST_F(Protocol, GivesLeaveToSendABodyOnceTheHeadPassed) {
    RawClient client = connect();
    const std::string head = "POST /echo HTTP/1.1\r\nHost: b\r\nExpect: 100-continue\r\n";
    const Answer leave = client.ask(head + "Content-Length: 5\r\n\r\n");
    EXPECT_EQ(leave.head, "HTTP/1.1 100 Continue\r\n\r\n");
    EXPECT_EQ(client.ask("hello").body, "POST /echo?\nhello");
    EXPECT_EQ(client.ask(head + "Transfer-Encoding: chunked\r\n\r\n").status, 100);
    EXPECT_EQ(client.ask("1\r\nx\r\n0\r\n\r\n").body, "POST /echo?\nx");
    EXPECT_EQ(client.ask(head + "Content-Length: 99999999999\r\n\r\n").status, 413);
    EXPECT_TRUE(client.ended());
    EXPECT_EQ(handler_.count, 2u);
}

TEST_F(Protocol, RefusesOtherExpectations) {
    RawClient client = connect();
    EXPECT_EQ(client.ask(get("/echo", "Expect: miracles\r\n")).status, 417);
    EXPECT_TRUE(client.ended());
}

TEST_F(Protocol, BodiesThatLookLikeRequestsAreBodies) {
    const std::string bait = get("/hold") + get("/hold");
    RawClient client = connect();
    for (const std::string target : {"/echo", "/empty", "/drop", "/throw"}) {
        const int status = client.ask(post(target, bait)).status;
        EXPECT_EQ(status, target == "/echo" ? 200 : target == "/empty" ? 204 : 500);
        char size[16];
        std::snprintf(size, sizeof size, "%zx", bait.size());
        EXPECT_EQ(client
                      .ask("POST " + target +
                           " HTTP/1.1\r\nHost: b\r\nTransfer-Encoding: chunked\r\n\r\n" + size +
                           "\r\n" + bait + "\r\n0\r\n\r\n")
                      .status,
                  status);
    }
    EXPECT_EQ(handler_.count, 8u);
    EXPECT_EQ(handler_.held.size(), 0u) << "a body was served as a request";
}

TEST_F(Protocol, RefusedRequestsAreToldInJsonAndNothingBehindThemIsServed) {
    const std::string bait = get("/hold");
    const std::vector<std::pair<std::string, int>> cases = {
        {"POST /echo HTTP/1.1\r\nHost: b\r\nContent-Length: 5\r\nTransfer-Encoding: "
         "chunked\r\n\r\n",
         400},
        {"POST /echo HTTP/1.1\r\nHost: b\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\n", 400},
        {"POST /echo HTTP/1.1\r\nHost: b\r\nContent-Length : 0\r\n\r\n", 400},
        {"POST /echo HTTP/1.1\r\nHost: b\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
        {"POST /echo HTTP/1.1\r\nHost: b\nContent-Length: 0\r\n\r\n", 400},
        {"GET /echo HTTP/1.1\r\n\r\n", 400},
        {"GET /" + std::string(9000, 'a') + " HTTP/1.1\r\nHost: b\r\n\r\n", 414},
        {get("/echo", "A: " + std::string(8000, 'a') + "\r\nB: " + std::string(8000, 'b') +
                          "\r\nC: " + std::string(8000, 'c') + "\r\n"),
         431},
        {"GET /echo HTTP/3.0\r\nHost: b\r\n\r\n", 505},
    };
    for (const auto& [request, status] : cases) {
        RawClient client = connect();
        client.send(request + bait + bait);
        const Answer answer = client.read();
        EXPECT_EQ(answer.status, status) << request.substr(0, 100);
        EXPECT_EQ(answer.field("Content-Type"), "application/json");
        EXPECT_EQ(answer.field("Connection"), "Close");
        EXPECT_TRUE(answer.body.starts_with("{\"error\":\"")) << answer.body;
        EXPECT_TRUE(
            answer.body.ends_with("\"code\":\"" + std::string(http::refusal_code(status)) + "\"}"))
            << answer.body;
        EXPECT_TRUE(client.ended());
    }
    EXPECT_EQ(handler_.count, 0u);
    EXPECT_EQ(front_->statistics().bad_requests, cases.size());
}

TEST_F(Protocol, K22AClientThatSendsAllOfATooLargeBodyStillReadsTheRefusal) {
    start({.body_bytes = 1 << 20});
    const std::string mebibyte(1 << 20, 'b');
    for (const bool chunked : {false, true}) {
        RawClient client = connect();
        client.send(chunked ? "POST /echo HTTP/1.1\r\nHost: b\r\nTransfer-Encoding: chunked\r\n\r\n"
                            : "POST /echo HTTP/1.1\r\nHost: b\r\nContent-Length: 33554432\r\n\r\n");
        for (int i = 0; i < 32; ++i) {
            if (chunked) {
                ASSERT_TRUE(client.send("100000\r\n")) << "reset after " << i << " MiB";
            }
            ASSERT_TRUE(client.send(mebibyte)) << "reset after " << i << " MiB";
            if (chunked) {
                client.send("\r\n");
            }
        }
        const Answer answer = client.read();
        EXPECT_EQ(answer.status, 413);
        EXPECT_NE(answer.body.find("1048576 bytes"), std::string::npos) << answer.body;
        EXPECT_TRUE(client.ended());
    }
    EXPECT_EQ(handler_.count, 0u);
}

TEST_F(Protocol, AHalfClosedClientIsStillAnswered) {
    RawClient client = connect();
    client.send(get("/echo?1") + get("/hold") + get("/echo?2"));
    client.finish_sending();
    EXPECT_EQ(client.read().body, "GET /echo?1\n");
    Held held = handler_.held.get();
    EXPECT_FALSE(held.exchange->gone());
    held.exchange->reply({.body = "late"});
    EXPECT_EQ(client.read().body, "late");
    EXPECT_EQ(client.read().body, "GET /echo?2\n");
    EXPECT_TRUE(client.ended());
}

TEST_F(Protocol, AClientThatHalfClosesWhileItsRequestIsInFlightIsStillAnswered) {
    RawClient client = connect();
    client.send(get("/hold"));
    const Held held = handler_.held.get();
    client.finish_sending();
    one_turn();
    EXPECT_FALSE(held.exchange->gone());
    held.exchange->reply({.body = "late"});
    EXPECT_EQ(client.read().body, "late");
    EXPECT_TRUE(client.ended());
}

TEST_F(Protocol, ARequestCutOffByAHalfCloseIsNotServed) {
    for (const std::string& request : {get("/echo"), post("/echo", "body")}) {
        RawClient client = connect();
        client.send(std::string_view(request).substr(0, request.size() - 1));
        client.finish_sending();
        EXPECT_EQ(client.read_all(), "");
    }
    EXPECT_EQ(handler_.count, 0u);
}

TEST_F(Protocol, AnExchangeThatIsDroppedOrThrownIsA500AndTheConnectionGoesOn) {
    RawClient client = connect();
    for (const std::string target : {"/drop", "/throw"}) {
        const Answer answer = client.ask(get(target));
        EXPECT_EQ(answer.status, 500);
        EXPECT_TRUE(answer.body.ends_with("\"code\":\"internal\"}")) << answer.body;
    }
    EXPECT_EQ(client.ask(get("/echo")).status, 200);
    client.send(get("/hold"));
    handler_.held.get().exchange.reset();
    EXPECT_EQ(client.read().status, 500);
}

TEST_F(Protocol, OnlyTheFirstAnswerOfAnExchangeCounts) {
    RawClient client = connect();
    client.send(get("/hold"));
    const Held held = handler_.held.get();
    held.exchange->reply({.body = "first"}, [&] { handler_.undelivered.put("first"); });
    held.exchange->reply({.body = "second"}, [&] { handler_.undelivered.put("second"); });
    EXPECT_EQ(handler_.undelivered.get(), "second");
    EXPECT_EQ(client.read().body, "first");
    EXPECT_EQ(client.ask(get("/echo?in-step")).body, "GET /echo?in-step\n");
    EXPECT_EQ(handler_.undelivered.size(), 0u);
}

TEST_F(Protocol, ARouteWithoutAValidStatusIsA500) {
    RawClient client = connect();
    for (const int status : {0, 100, 999}) {
        client.send(get("/hold"));
        handler_.held.get().exchange->reply({.status = status, .body = "odd"});
        EXPECT_EQ(client.read().status, 500);
    }
}

TEST_F(Protocol, AnswersFromManyThreadsReachTheirOwnClients) {
    constexpr int kThreads = 4, kClients = 8, kRounds = 200;
    std::vector<std::thread> workers;
    for (int i = 0; i < kThreads; ++i) {
        workers.emplace_back([&] {
            for (int j = 0; j < kClients * kRounds / kThreads; ++j) {
                Held held = handler_.held.get();
                held.exchange->reply({.body = held.request.query});
            }
        });
    }
    std::vector<RawClient> clients;
    for (int i = 0; i < kClients; ++i) {
        clients.push_back(connect());
    }
    for (int round = 0; round < kRounds; ++round) {
        for (int i = 0; i < kClients; ++i) {
            clients[i].send(get("/hold?" + std::to_string(i) + "-" + std::to_string(round)));
        }
        for (int i = 0; i < kClients; ++i) {
            EXPECT_EQ(clients[i].read().body, std::to_string(i) + "-" + std::to_string(round));
        }
    }
    for (std::thread& worker : workers) {
        worker.join();
    }
}

TEST_F(Protocol, CarriesLargeBodiesBothWays) {
    RawClient client = connect();
    std::string body(40u << 20, '\0');
    std::minstd_rand random(42);
    for (std::size_t i = 0; i < body.size(); i += 61) {
        body[i] = static_cast<char>(random());
    }
    std::thread sender([&] { client.send(post("/echo", body) + get("/echo?after")); });
    const Answer answer = client.read();
    sender.join();
    EXPECT_TRUE(answer.body == "POST /echo?\n" + body) << "size " << answer.body.size();
    EXPECT_EQ(client.read().body, "GET /echo?after\n");
}

TEST_F(Protocol, GarbageNeitherCrashesNorBecomesARequest) {
    std::minstd_rand random(7);
    for (int i = 0; i < 300; ++i) {
        RawClient client = connect();
        std::string bytes(1 + random() % 400, '\0');
        for (char& byte : bytes) {
            byte = static_cast<char>(random() % (i % 2 == 0 ? 256 : 64));
        }
        client.send(bytes);
        client.finish_sending();
        try {
            while (true) {
                EXPECT_GE(client.read().status, 400);
            }
        } catch (const Ended&) {
            // closed: no answer, or none after the refusal
        }
    }
    EXPECT_EQ(handler_.count, 0u);
    EXPECT_EQ(connect().ask(get("/echo")).status, 200);
}

} // namespace
} // namespace queen::test
