// A broker that dies with pops in flight, and what its successor offers: it starts with nothing in
// memory, whatever its candidate source knew before.
#include "support/api.hpp"
#include "support/broker_process.hpp"
#include "support/candidate_source.hpp"
#include "support/temp_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <set>

namespace queen::test {
namespace {

using namespace std::chrono_literals;
using testing::Each;
using testing::Gt;

class RestartTest : public testing::TestWithParam<const char*> {
protected:
    BrokerOptions options() const {
        return {.config = serving(GetParam()), .data_directory = directory_.path() + "/data"};
    }
    /// Deliveries of one waiting pop, by transaction id.
    static std::map<std::string, std::int64_t> pop(Api& api, const std::string& timeout_ms) {
        std::map<std::string, std::int64_t> attempts;
        for (const auto& message : api.pop("q", "wait=true&batch=100&partitions=100&timeout=" +
                                                    timeout_ms + "&consumerGroup=g")
                                       .messages) {
            attempts[message.transaction_id] = message.attempt;
            EXPECT_EQ(api.ack(message, "completed", "g"), "true");
        }
        return attempts;
    }

    TempDirectory directory_;
};

TEST_P(RestartTest, EverythingPendingIsOfferedAgainAndLeasedBatchesAfterTheirLease) {
    std::set<std::string> leased, pending;
    std::chrono::steady_clock::time_point asked; // for the first lease, or before
    {
        BrokerProcess broker(options());
        Api api(broker.port());
        std::vector<std::array<std::string, 3>> items;
        for (int i = 0; i < 60; ++i) {
            items.push_back({"p" + std::to_string(i), std::to_string(i), "1"});
            pending.insert(std::to_string(i));
        }
        ASSERT_EQ(api.push("q", items).status, 201);
        // Consumers that hold twenty partitions when the broker dies, and others that wait.
        asked = std::chrono::steady_clock::now();
        for (const auto& id :
             api.pop("q", "batch=20&partitions=20&leaseSeconds=4&consumerGroup=g").ids()) {
            leased.insert(id);
            pending.erase(id);
        }
        ASSERT_EQ(leased.size(), 20u);
        std::vector<std::unique_ptr<HttpClient>> parked;
        for (int i = 0; i < 20; ++i) {
            parked.push_back(std::make_unique<HttpClient>(broker.port()));
            parked.back()->start(
                "GET", Api::pop_target("empty" + std::to_string(i % 5), "wait=true&timeout=60000"));
        }
        EXPECT_FALSE(parked.back()->readable(50ms));
        // Claims under way: whichever of them commits, nobody is there to get the batch.
        for (int i = 0; i < 10; ++i) {
            parked.push_back(std::make_unique<HttpClient>(broker.port()));
            parked.back()->start("GET",
                                 Api::pop_target("q", "leaseSeconds=4&consumerGroup=g&batch=1"));
        }
        broker.kill9();
    }
    BrokerProcess broker(options());
    Api api(broker.port());
    std::set<std::string> first, all;
    std::vector<std::int64_t> attempts;
    for (;;) { // the first pops that look, not a later floor
        const auto popped = api.pop("q", "batch=100&partitions=100&consumerGroup=g");
        if (popped.messages.empty()) {
            break;
        }
        for (const auto& message : popped.messages) {
            all.insert(message.transaction_id);
            if (message.attempt == 1) {
                first.insert(message.transaction_id);
            } else { // on a slow machine leases have ended by now; never before their time
                EXPECT_GE(std::chrono::steady_clock::now() - asked, 4s);
            }
            if (leased.contains(message.transaction_id)) {
                attempts.push_back(message.attempt);
            }
            EXPECT_EQ(api.ack(message, "completed", "g"), "true");
        }
    }
    EXPECT_TRUE(std::includes(pending.begin(), pending.end(), first.begin(), first.end()));
    EXPECT_GE(first.size(), pending.size() - 10) << "but for those the last ten claims leased";

    // No push, no ack and no other client from here on: the leases end and one pop waits.
    std::set<std::string> expected;
    std::set_union(leased.begin(), leased.end(), pending.begin(), pending.end(),
                   std::inserter(expected, expected.end()));
    for (int tries = 0; tries < 8 && all.size() < expected.size(); ++tries) {
        for (const auto& [id, attempt] : pop(api, "30000")) {
            all.insert(id);
            if (leased.contains(id)) {
                attempts.push_back(attempt);
            }
        }
    }
    EXPECT_EQ(all, expected);
    EXPECT_EQ(attempts.size(), leased.size());
    EXPECT_THAT(attempts, Each(Gt(1)));
}

INSTANTIATE_TEST_SUITE_P(Sources, RestartTest, testing::Values("hotlist", "sqlscan"),
                         [](const auto& info) { return std::string(info.param); });

} // namespace
} // namespace queen::test
