// K42: what comes again after a delay is delivered when it is due, to whoever waits, though nothing
// else happens; and by whom it was noticed.
#include "support/api.hpp"
#include "support/broker_process.hpp"
#include "support/candidate_source.hpp"
#include "support/exposition.hpp"
#include "support/temp_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace queen::test {
namespace {

using testing::ElementsAre;

constexpr std::chrono::milliseconds kDelay{1200};

class RetryDelayTest : public testing::Test {
protected:
    static double wakes(std::uint16_t port, const std::string& cause) {
        const auto page = parse_exposition(HttpClient(port).get("/metrics/prometheus").body);
        const auto found = page.by_series.find("queen_wakes_total{cause=\"" + cause + "\"}");
        return found == page.by_series.end() ? 0 : found->second;
    }

    /// Fails a message and waits for it. @return how often what waits was resumed by `cause`
    static double redeliver(const std::string& source, const std::string& backoff,
                            const std::string& cause) {
        TempDirectory directory;
        BrokerProcess broker({.config = "pop: {" + backoff + "}\n" + serving(source),
                              .data_directory = directory.path() + "/data"});
        Api api(broker.port());
        EXPECT_EQ(
            api.configure("q", "{\"retryDelay\":" + std::to_string(kDelay.count()) + "}").status,
            200);
        api.push_ids("q", "p", {"t"});
        const auto first = api.pop("q", "consumerGroup=g");
        EXPECT_THAT(first.ids(), ElementsAre("t"));
        HttpClient waiting(broker.port());
        waiting.start("GET", Api::pop_target("q", "consumerGroup=g&wait=true&timeout=50000"));
        EXPECT_FALSE(waiting.readable(std::chrono::milliseconds(100)));
        const auto failed = std::chrono::steady_clock::now();
        EXPECT_EQ(api.ack(first.messages.at(0), "failed", "g"), "true");
        EXPECT_EQ(api.pop("q", "consumerGroup=g").status, 204);
        EXPECT_THAT(api.pop("q", "consumerGroup=h").ids(), ElementsAre("t"));
        const auto before = wakes(broker.port(), cause);
        const auto again = Api::read_pop(waiting.read());
        EXPECT_GE(std::chrono::steady_clock::now() - failed, kDelay) << "before it was due";
        EXPECT_THAT(again.ids(), ElementsAre("t"));
        EXPECT_EQ(again.messages.at(0).attempt, 2);
        const auto woken = wakes(broker.port(), cause) - before;
        EXPECT_EQ(api.ack(again.messages.at(0), "completed", "g"), "true");
        EXPECT_EQ(broker.stop(), 0);
        return woken;
    }
};

// The backoff floor is a minute off: only the ring can have known.
TEST_F(RetryDelayTest, K42_TheRingWakesWhoWaitsWhenItIsDue) {
    EXPECT_GE(redeliver("hotlist", "backoff_initial: 60s, backoff_max: 60s", "event"), 1);
}

TEST_F(RetryDelayTest, K42_TheFloorFindsItForASourceWithoutAMemory) {
    EXPECT_GE(redeliver("sqlscan", "backoff_initial: 100ms, backoff_max: 1s", "floor"), 1);
}

} // namespace
} // namespace queen::test
