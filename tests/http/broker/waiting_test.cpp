// Clients that wait, go away or read slowly, against the real broker.
#include "http/broker/broker_fixture.hpp"

#include <thread>

namespace queen::test {
namespace {

using testing::ElementsAre;

class WaitingClientTest : public BrokerTest {
protected:
    Api api{port()};

    std::unique_ptr<HttpClient> park(const std::string& query) {
        auto client = std::make_unique<HttpClient>(port());
        client->start("GET", Api::pop_target(queue(), query));
        return client;
    }
};

// K28: a batch must not be leased to a socket that is gone, ahead of a live waiter.
TEST_F(WaitingClientTest, K28_AClientThatWentIsPassedOver) {
    for (int round = 0; round < 20; ++round) {
        auto first = park("wait=true&timeout=50000&consumerGroup=g");
        EXPECT_FALSE(first->readable(std::chrono::milliseconds(30)));
        auto second = park("wait=true&timeout=50000&consumerGroup=g");
        EXPECT_FALSE(second->readable(std::chrono::milliseconds(30)));
        if (round % 2 == 0) {
            first->close();
        } else {
            first->reset();
        }
        const auto id = "t" + std::to_string(round);
        api.push_ids(queue(), "p", {id});
        const auto popped = Api::read_pop(second->read());
        ASSERT_THAT(popped.ids(), ElementsAre(id));
        EXPECT_EQ(popped.messages[0].attempt, 1);
        ASSERT_EQ(api.ack(popped.messages[0], "completed", "g"), "true");
    }
}

// K28, GB-1, F-6: a batch that was taken and cannot be written goes to the next waiter at once, and
// nobody's attempts are spent. The answer is larger than what the sockets between can swallow.
TEST_F(WaitingClientTest, K28_ABatchThatCannotBeWrittenGoesToTheNextWaiter) {
    const std::string payload = "\"" + std::string(7'000'000, 'x') + "\"";
    const std::vector<std::string> ids{"1", "2", "3", "4", "5"};
    for (const auto end : {&HttpClient::close, &HttpClient::reset}) {
        const auto q = queue() + (end == &HttpClient::close ? ".fin" : ".rst");
        for (const auto& id : ids) {
            ASSERT_EQ(api.push(q, {{"p", id, payload}}).status, 201);
        }
        HttpClient first(port());
        first.start("GET", Api::pop_target(q, "leaseSeconds=3600&consumerGroup=g"));
        ASSERT_TRUE(first.readable(std::chrono::seconds(30))); // it was taken; nobody reads on
        HttpClient second(port());
        second.start("GET", Api::pop_target(q, "wait=true&timeout=50000&consumerGroup=g"));
        EXPECT_FALSE(second.readable(std::chrono::milliseconds(30)));
        (first.*end)();
        const auto popped = Api::read_pop(second.read());
        ASSERT_EQ(popped.ids(), ids);
        EXPECT_EQ(popped.messages[0].attempt, 1);
    }
}

// K14: whoever waits on the queue is woken, and nobody else.
TEST_F(WaitingClientTest, K14_OfManyWhoWaitTheRightOneIsAnswered) {
    const auto name = [&](int i) { return queue() + std::to_string(i); };
    std::vector<std::unique_ptr<HttpClient>> waiting;
    for (int i = 0; i < 300; ++i) {
        waiting.push_back(std::make_unique<HttpClient>(port()));
        waiting.back()->start("GET", Api::pop_target(name(i), "wait=true&timeout=50000"));
    }
    EXPECT_FALSE(waiting.back()->readable(std::chrono::milliseconds(50)));
    api.push_ids(name(171), "p", {"t"});
    EXPECT_THAT(Api::read_pop(waiting[171]->read()).ids(), ElementsAre("t"));
    for (int i = 0; i < 300; ++i) {
        EXPECT_FALSE(i != 171 && waiting[static_cast<std::size_t>(i)]->readable({})) << i;
    }
}

// One message is one delivery for each group: of those who wait, one in each is answered.
TEST_F(WaitingClientTest, OfManyWhoWaitOnOneQueueOneInEachGroupIsAnswered) {
    constexpr int kGroups = 3, kEach = 20;
    std::vector<std::unique_ptr<HttpClient>> waiting;
    for (int i = 0; i < kGroups * kEach; ++i) {
        waiting.push_back(
            park("wait=true&timeout=50000&consumerGroup=g" + std::to_string(i % kGroups)));
    }
    EXPECT_FALSE(waiting.back()->readable(std::chrono::milliseconds(50)));
    api.push_ids(queue(), "p", {"t"});
    std::vector<int> answered(kGroups, 0);
    for (int total = 0; total < kGroups;) { // ends with the program's time-out when one is missing
        for (int i = 0; i < kGroups * kEach; ++i) {
            auto& client = waiting[static_cast<std::size_t>(i)];
            if (client && client->readable({})) {
                EXPECT_THAT(Api::read_pop(client->read()).ids(), ElementsAre("t"));
                client.reset();
                ++answered[static_cast<std::size_t>(i % kGroups)];
                ++total;
            }
        }
    }
    EXPECT_THAT(answered, testing::Each(1));
    for (const auto& client : waiting) {
        EXPECT_FALSE(client && client->readable(std::chrono::milliseconds(1)));
    }
}

// K29: no sooner than asked, and what is not a wait returns at once.
TEST_F(WaitingClientTest, K29_AnEmptyWaitEndsWithItsTimeout) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(api.pop(queue(), "wait=true&timeout=300").status, 204);
    EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(300));
    EXPECT_EQ(api.pop(queue(), "wait=true&timeout=0").status, 204);
    EXPECT_EQ(api.pop(queue(), "wait=true&timeout=-1").status, 204);
}

// K26: answers stay in step with requests on one connection, whatever their kind.
TEST_F(WaitingClientTest, K26_PipelinedAnswersStayInStep) {
    HttpClient client(port());
    const auto q = queue();
    const std::string push_body = R"({"items":[{"queue":")" + q + R"(","payload":1}]})";
    for (int round = 0; round < 50; ++round) {
        client.start("GET", Api::pop_target(q, "autoAck=true"));
        client.start("POST", "/api/v1/push", push_body);
        client.start("GET", Api::pop_target(q, "autoAck=true"));
        client.start("HEAD", "/health");
        client.start("GET", Api::pop_target(q, "autoAck=true&wait=true&timeout=5"));
        client.start("GET", "/status");
        EXPECT_EQ(client.read().status, 204);
        EXPECT_EQ(client.read().status, 201);
        EXPECT_EQ(client.read().status, 200);
        EXPECT_EQ(client.read(true).status, 200);
        EXPECT_EQ(client.read().status, 204);
        EXPECT_EQ(client.read().status, 200);
    }
}

// K22: too large is an answer the client can read, and the next one is served.
TEST_F(WaitingClientTest, K22_ATooLargeBodyIsRefusedReadably) {
    HttpClient client(port());
    client.start("POST", "/api/v1/push", std::string(9u << 20, ' '));
    EXPECT_EQ(client.read().status, 413);
    EXPECT_EQ(Api(port()).http.get("/health").status, 200);
    const std::string large = "\"" + std::string(7u << 20, 'x') + "\"";
    EXPECT_THAT(column(api.push(queue(), {{"p", "t", large}}), "status"), ElementsAre("queued"));
    EXPECT_EQ(api.pop(queue()).messages.at(0).data.size(), large.size());
}

TEST_F(WaitingClientTest, AConnectionServesOnWhileAnotherIsParked) {
    auto parked = park("wait=true&timeout=50000");
    for (int i = 0; i < 100; ++i) {
        ASSERT_EQ(api.http.get("/health").status, 200);
    }
    EXPECT_FALSE(parked->readable(std::chrono::milliseconds(0)));
}

} // namespace
} // namespace queen::test
