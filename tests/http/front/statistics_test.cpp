// What the front says of itself, against what was done to it.
#include "http/front/front_fixture.hpp"
#include "http/front/mailbox.hpp"

#include <gmock/gmock.h>

namespace queen::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

class FrontStatisticsTest : public FrontTest {
protected:
    /// A client may have read its answer before the loop has changed the connection's state.
    http::FrontStatistics await(const std::function<bool(const http::FrontStatistics&)>& wanted) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
        auto seen = front_->statistics();
        bool holds = wanted(seen);
        while (!holds && std::chrono::steady_clock::now() < end) {
            one_turn();
            seen = front_->statistics();
            holds = wanted(seen);
        }
        EXPECT_TRUE(holds) << "reading=" << seen.reading << " in_flight=" << seen.in_flight
                           << " answering=" << seen.answering << " bodies=" << seen.body_bytes;
        return seen;
    }
};

TEST_F(FrontStatisticsTest, ConnectionsCountByWhatTheyDo) {
    RawClient idle = connect();
    idle.ask(get("/echo"));
    RawClient parked = connect();
    parked.send(get("/park"));
    const auto held = handler_.held.get();
    await([](const auto& seen) {
        return seen.reading >= 1 && seen.in_flight == 1 && seen.answering == 0;
    });
    held.exchange->reply({.body = "{}"});
    EXPECT_EQ(parked.read().status, 200);
    await([](const auto& seen) {
        return seen.reading >= 2 && seen.in_flight == 0 && seen.answering == 0;
    });
}

TEST_F(FrontStatisticsTest, WhatEndsLeavesNoLevelBehind) {
    for (int i = 0; i < 20; ++i) {
        RawClient client = connect();
        client.ask(get(i % 2 == 0 ? "/echo" : "/close"));
    }
    RawClient refused = connect();
    refused.send("BAD\r\n\r\n");
    EXPECT_EQ(refused.read().status, 400);
    front_->stop(std::chrono::milliseconds(0));
    const auto seen = front_->statistics();
    EXPECT_EQ(seen.reading + seen.in_flight + seen.answering + seen.lingering, 0u);
    EXPECT_EQ(seen.open, 0u);
}

TEST_F(FrontStatisticsTest, AnswersCountByTheirStatus) {
    RawClient client = connect();
    client.ask(get("/echo"));
    client.ask(get("/echo"));
    client.ask(get("/empty"));
    client.ask(get("/drop"));
    RawClient bad = connect();
    bad.send("BAD\r\n\r\n");
    EXPECT_EQ(bad.read().status, 400);
    EXPECT_THAT(front_->statistics().responses,
                ElementsAre(Pair(200, 2), Pair(204, 1), Pair(400, 1), Pair(500, 1)));
}

TEST_F(FrontStatisticsTest, BodiesCountUntilTheyAreAnswered) {
    RawClient client = connect();
    client.send(post("/hold", std::string(1000, 'x')));
    const auto held = handler_.held.get();
    await([](const auto& seen) { return seen.body_bytes == 1000; });
    held.exchange->reply({.body = "{}"});
    client.read();
    await([](const auto& seen) { return seen.body_bytes == 0; });
}

// From the first message that another thread posts to the reader's taking it up.
TEST(MailboxLag, TheFirstOfABatchCounts) {
    ManualClock clock;
    http::Mailbox mailbox(clock);
    std::vector<http::Message> mail;
    EXPECT_EQ(mailbox.take(mail), std::nullopt);
    const auto post = [&] {
        http::Message message;
        EXPECT_TRUE(mailbox.post(message));
    };
    post();
    clock.advance(std::chrono::milliseconds(3));
    post();
    clock.advance(std::chrono::milliseconds(4));
    EXPECT_EQ(mailbox.take(mail), std::chrono::milliseconds(7));
    EXPECT_EQ(mail.size(), 2u);
    clock.advance(std::chrono::seconds(1));
    EXPECT_EQ(mailbox.take(mail), std::nullopt) << "each batch counts once";
    mailbox.adopt_thread(std::this_thread::get_id());
    post();
    clock.advance(std::chrono::seconds(1));
    EXPECT_EQ(mailbox.take(mail), std::nullopt) << "the reader's own mail waits for nobody";
}

TEST_F(FrontStatisticsTest, AnswersOfOtherThreadsAreMeasured) {
    RawClient client = connect();
    client.send(get("/hold"));
    const auto held = handler_.held.get();
    held.exchange->reply({.body = "{}"});
    client.read();
    EXPECT_EQ(front_->statistics().lag.count(), 1u);
    client.ask(get("/echo")); // answered by the loop's own thread
    EXPECT_EQ(front_->statistics().lag.count(), 1u);
}

} // namespace
} // namespace queen::test
