// Clients that set, change and cancel timers at the moment at which two brokers fire them. Each
// key belongs to one client, so that it knows the order of its answers; what must be delivered
// follows from these answers alone. QUEEN_TEST_KEYS says how many keys.
#include "cluster/timers_bed.hpp"
#include "support/sql_session.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <thread>

namespace queen::test {
namespace {

/// What the answers about one key promise.
class Promise {
public:
    /// An answer to a schedule of `txn`.
    void set(const std::string& txn, std::string_view status, std::string_view named) {
        if (status == "scheduled") { // nothing waited any more: the one before was delivered
            delivered_now();
            live_ = txn;
        } else if (status == "rescheduled") {
            EXPECT_TRUE(live_) << "a timer of which nobody was told";
            live_ = txn; // instead of the one before
        } else {
            too_late(status, named);
        }
    }
    void cancelled(std::string_view status, std::string_view named) {
        if (status == "cancelled") {
            EXPECT_EQ(live_.value_or(""), named);
            live_.reset();
        } else if (status == "absent") {
            delivered_now();
        } else {
            too_late(status, named);
        }
    }
    /// Once nothing waits: everything that was promised, no more.
    void collect(std::vector<std::string>& all) {
        delivered_now();
        all.insert(all.end(), delivered_.begin(), delivered_.end());
    }

private:
    void delivered_now() {
        if (live_) {
            delivered_.push_back(*live_);
        }
        live_.reset();
    }
    /// In the hands of the fire, which stores it or lets go of it: it is the live one still.
    void too_late(std::string_view status, std::string_view named) const {
        EXPECT_EQ(status, "too_late");
        EXPECT_EQ(live_.value_or(""), named);
    }

    std::optional<std::string> live_;
    std::vector<std::string> delivered_;
};

constexpr int kClients = 8, kAtOnce = 20, kRounds = 3;

struct Client {
    int keys = 0;
    std::vector<std::string> promised;
    std::map<std::string, int> answers;
};

void run(Cluster& cluster, int number, Client& client) {
    std::minstd_rand random(static_cast<unsigned>(number) + 1);
    const auto below = [&random](int limit) {
        return std::uniform_int_distribution<int>(0, limit - 1)(random);
    };
    std::vector<Api> brokers;
    brokers.emplace_back(cluster[0].process->port());
    brokers.emplace_back(cluster[1].process->port());
    int txn = 0;
    for (int first = 0; first < client.keys; first += kAtOnce) {
        std::map<std::string, Promise> promises;
        for (int i = first; i < std::min(client.keys, first + kAtOnce); ++i) {
            promises[std::to_string(number) + "-" + std::to_string(i)];
        }
        for (int round = 0; round <= kRounds; ++round) {
            std::vector<TimerOpText> sets, cancels;
            for (const auto& [key, promise] : promises) {
                if (round > 0 && below(2) == 0) {
                    cancels.push_back({.key = key, .transaction_id = "caller's", .op = "cancel"});
                } else if (round == 0 || below(2) == 0) {
                    sets.push_back({.key = key,
                                    .transaction_id = key + "-" + std::to_string(++txn),
                                    .delay_ms = below(40) - 10,
                                    .partition = "p" + std::to_string(below(20))});
                } // else it is left alone
            }
            for (const auto* ops : {&sets, &cancels}) {
                if (ops->empty()) {
                    continue;
                }
                const auto said = timer_ops(brokers[static_cast<std::size_t>(below(2))], "q", *ops);
                for (std::size_t i = 0; i < ops->size(); ++i) {
                    const auto result = said.root()["results"].at(i);
                    const auto status = result["status"].string();
                    auto& promise = promises[(*ops)[i].key];
                    ++client.answers[(ops == &sets ? "set " : "cancel ") + std::string(status)];
                    if (ops == &sets) {
                        promise.set((*ops)[i].transaction_id, status, result["txn"].string());
                    } else {
                        promise.cancelled(status, result["txn"].string());
                    }
                }
            }
        }
        for (auto& [key, promise] : promises) {
            promise.collect(client.promised);
        }
    }
}

TEST(TimersRace, EachKeyEndsAsItsAnswersSaid) {
    const char* wanted = std::getenv("QUEEN_TEST_KEYS");
    const int keys = wanted == nullptr ? 10'000 : std::stoi(wanted);
    // A row that a client's call looks at while it is to be fired is handed back after it: were it
    // left in hand, its lease would outlast this test.
    Cluster cluster({.plugins = timers_plugin("lease: 10m")});
    std::vector<Client> clients(kClients);
    std::vector<std::thread> threads;
    for (int i = 0; i < kClients; ++i) {
        auto& client = clients[static_cast<std::size_t>(i)];
        client.keys = keys / kClients;
        threads.emplace_back([&cluster, i, &client] { run(cluster, i, client); });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    SqlSession(cluster.conninfo()).wait_for(kNoTimer);
    auto got = drained(cluster, "q", {0, 1});
    std::vector<std::string> promised;
    std::map<std::string, int> answers;
    for (const auto& client : clients) {
        promised.insert(promised.end(), client.promised.begin(), client.promised.end());
        for (const auto& [answer, count] : client.answers) {
            answers[answer] += count;
        }
    }
    std::sort(promised.begin(), promised.end());
    std::sort(got.begin(), got.end());
    EXPECT_EQ(std::adjacent_find(got.begin(), got.end()), got.end()) << "delivered twice";
    std::vector<std::string> lost, extra;
    std::set_difference(promised.begin(), promised.end(), got.begin(), got.end(),
                        std::back_inserter(lost));
    std::set_difference(got.begin(), got.end(), promised.begin(), promised.end(),
                        std::back_inserter(extra));
    EXPECT_THAT(lost, testing::IsEmpty()) << "promised, and not delivered";
    EXPECT_THAT(extra, testing::IsEmpty()) << "cancelled or replaced, and delivered";
    for (const auto& [answer, count] : answers) {
        RecordProperty(answer, count);
        std::printf("%s: %d\n", answer.c_str(), count);
    }
    // All ways a race can end were met, else nothing was raced.
    for (const char* answer : {"set rescheduled", "set scheduled", "set too_late",
                               "cancel cancelled", "cancel absent", "cancel too_late"}) {
        EXPECT_GT(answers[answer], 0) << answer;
    }
}

/// What one operation was answered: status and transaction id.
std::string said_to(Api& api, const TimerOpText& op) {
    const auto said = timer_ops(api, "q", {op});
    const auto result = said.root()["results"].at(0);
    return std::string(result["status"].string()) + " " + std::string(result["txn"].string());
}

// The race without its luck: a timer is claimed and waits for its turn while another one of its
// claim is held up.
TEST(TimersRace, WhatIsClaimedIsNeitherCancelledNorChangedAndDeliveredOnce) {
    Cluster cluster({.plugins = timers_plugin("lease: 10m, max_fire_bytes: 1"),
                     .environments = {{}, {kFiresNothing}}});
    auto& a = *cluster[0].api;
    ASSERT_EQ(a.push_ids("q", "locked", {"first"}).status, 201);
    SqlSession holder(cluster.conninfo()), sql(cluster.conninfo());
    sql.script("CREATE OR REPLACE FUNCTION queen._fire_lock_timeout() RETURNS text "
               "LANGUAGE sql IMMUTABLE AS $$ SELECT '0' $$");
    holder.script("BEGIN");
    holder.query("SELECT 1 FROM queen.log_partitions FOR UPDATE");
    const TimerOpText ahead{
        .key = "ahead", .transaction_id = "ahead", .delay_ms = -2'000, .partition = "locked"};
    const TimerOpText claimed{
        .key = "claimed", .transaction_id = "claimed", .delay_ms = -1'000, .partition = "other"};
    timer_ops(a, "q", {ahead, claimed});
    sql.wait_for(kFireWaits);
    ASSERT_EQ(sql.integer("SELECT count(*) FROM queen.log_timers WHERE claim_token IS NOT NULL"),
              2);
    for (const std::size_t at : {0u, 1u}) {
        for (const std::string op : {"cancel", "schedule", "reschedule"}) {
            auto late = claimed;
            late.op = op;
            late.transaction_id = "instead";
            late.delay_ms = 60'000;
            EXPECT_EQ(said_to(*cluster[at].api, late), "too_late claimed") << op;
        }
    }
    holder.script("ROLLBACK");
    sql.wait_for(kNoTimer);
    EXPECT_EQ(said_to(a, {.key = "claimed", .transaction_id = "mine", .op = "cancel"}),
              "absent mine");
    EXPECT_THAT(drained(cluster, "q", {0, 1}),
                testing::UnorderedElementsAre("first", "ahead", "claimed"));
}

} // namespace
} // namespace queen::test
