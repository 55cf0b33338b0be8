// Where the front listens, and how it ends (K33).
#include "http/front/front_fixture.hpp"

#include <thread>

namespace queen::test {
namespace {

using namespace std::chrono_literals;

class Stop : public FrontTest {};

TEST_F(Stop, K33AnswersInFlightGoOutAndTheRestEndsInOrder) {
    RawClient idle = connect(), half = connect(), parked = connect(), next = connect();
    idle.ask(get("/echo"));
    half.send("POST /echo HTTP/1.1\r\nHost: b\r\nContent-Length: 10\r\n\r\nabc");
    parked.send(get("/park"));
    const Held held = handler_.held.get();
    next.send(get("/hold") + get("/echo"));
    const Held second = handler_.held.get();
    one_turn();

    std::thread stopper([&] { front_->stop(30s); });
    EXPECT_TRUE(idle.ended()); // so the stop has begun
    const Answer told = half.read();
    EXPECT_EQ(told.status, 503);
    EXPECT_TRUE(told.body.ends_with("\"code\":\"shutting_down\"}")) << told.body;
    EXPECT_EQ(told.field("Retry-After"), "1");
    EXPECT_TRUE(half.ended());
    EXPECT_THROW(connect(), Ended);

    held.exchange->reply({.status = 204}, [&] { handler_.undelivered.put("parked"); });
    const Answer last = parked.read();
    EXPECT_EQ(last.status, 204);
    EXPECT_EQ(last.field("Connection"), "Close");
    EXPECT_TRUE(parked.ended());
    second.exchange->reply({.body = "second"}, [&] { handler_.undelivered.put("second"); });
    EXPECT_EQ(next.read().body, "second");
    EXPECT_TRUE(next.ended());
    for (RawClient* client : {&idle, &half, &parked, &next}) {
        client->close();
    }
    stopper.join();
    EXPECT_EQ(handler_.undelivered.size(), 0u);
    EXPECT_EQ(front_->statistics().open, 0u);
}

TEST_F(Stop, K33AnAnswerHalfSentGoesOutWhole) {
    RawClient idle = connect(), slow = connect(4096);
    idle.ask(get("/echo"));
    constexpr std::size_t kBytes = 16u << 20;
    slow.send(get("/big?" + std::to_string(kBytes)));
    const std::size_t first = slow.read_some(1000).size();
    EXPECT_GT(first, 0u);
    std::thread stopper([&] { front_->stop(30s); });
    EXPECT_TRUE(idle.ended());
    EXPECT_GT(first + slow.read_all().size(), kBytes);
    idle.close();
    slow.close();
    stopper.join();
    EXPECT_EQ(handler_.undelivered.size(), 0u);
}

TEST_F(Stop, AfterTheGraceWaitersAreGoneAndLateAnswersAreGivenBackToTheCaller) {
    RawClient parked = connect(), held_one = connect();
    parked.send(get("/park?p"));
    const Held first = handler_.held.get();
    held_one.send(get("/hold"));
    const Held second = handler_.held.get();
    front_->stop(0s);
    EXPECT_EQ(handler_.gone.get(), "p");
    EXPECT_TRUE(first.exchange->gone());
    EXPECT_TRUE(second.exchange->gone());
    bool given_back = false;
    second.exchange->reply({}, [&] { given_back = true; });
    EXPECT_TRUE(given_back);
    bool gone = false;
    first.exchange->watch([&] { gone = true; });
    EXPECT_TRUE(gone);
    front_.reset();
    first.exchange->reply({}, [&] { handler_.undelivered.put("after the front"); });
    EXPECT_EQ(handler_.undelivered.get(), "after the front");
}

TEST_F(Stop, ARestartFindsItsPortFree) {
    RawClient client = connect();
    client.ask(get("/echo"));
    const std::uint16_t port = front_->port();
    front_->stop(0s);
    front_.reset();
    auto again = http::Front::listen("127.0.0.1", port, {}, handler_);
    ASSERT_TRUE(again.has_value()) << again.error().message;
    (*again)->start();
    EXPECT_EQ(RawClient(port).ask(get("/echo")).status, 200);
}

TEST_F(Stop, AFrontThatNeverStartedEndsToo) {
    auto front = http::Front::listen("127.0.0.1", 0, {}, handler_);
    ASSERT_TRUE(front.has_value());
    (*front)->stop(1s);
}

TEST_F(Stop, StopsOnTheRealClockToo) {
    auto front = http::Front::listen("127.0.0.1", 0, {}, handler_);
    ASSERT_TRUE(front.has_value());
    (*front)->start();
    RawClient parked((*front)->port());
    parked.send(get("/hold"));
    const Held held = handler_.held.get();
    (*front)->stop(10ms);
    EXPECT_TRUE(held.exchange->gone());
}

TEST_F(Stop, SaysInOneLineWhyItCannotListen) {
    const auto error = [&](const std::string& address, std::uint16_t port) {
        auto front = http::Front::listen(address, port, {}, handler_);
        EXPECT_FALSE(front.has_value());
        EXPECT_EQ(front.error().code, Errc::unavailable);
        return front.error().message;
    };
    EXPECT_EQ(error("127.0.0.1", port()),
              "port " + std::to_string(port()) + " on 127.0.0.1 is in use");
    EXPECT_EQ(error("203.0.113.7", 0), "203.0.113.7 is not an address of this machine");
    EXPECT_NE(error("no such host", 0).find("host name no such host cannot be resolved"),
              std::string::npos);
}

TEST_F(Stop, ListensOnNamesAndBothFamilies) {
    for (const std::string address : {"localhost", "0.0.0.0", "*", ""}) {
        auto front = http::Front::listen(address, 0, {}, handler_);
        ASSERT_TRUE(front.has_value()) << address << ": " << front.error().message;
        (*front)->start();
        EXPECT_EQ(RawClient((*front)->port()).ask(get("/echo")).status, 200) << address;
    }
    auto six = http::Front::listen("[::1]", 0, {}, handler_);
    if (!six) {
        GTEST_SKIP() << "no IPv6 here: " << six.error().message;
    }
    (*six)->start();
    EXPECT_EQ(RawClient((*six)->port(), 0, AF_INET6).ask(get("/echo")).status, 200);
}

} // namespace
} // namespace queen::test
