// The order in which the timers of one partition are delivered. What is due fits into one claim of
// one broker: that of their times. Beyond that, with more than a claim overdue or with two brokers
// that fire: that in which they were fired, and each fire's own in the order of their times.
#include "cluster/timers_bed.hpp"
#include "support/sql_session.hpp"

#include <gmock/gmock.h>

namespace queen::test {
namespace {

constexpr std::size_t kA = 0;

class OrderOfTimers : public testing::TestWithParam<int> {
protected:
    static constexpr const char* kQueue = "q";

    explicit OrderOfTimers(std::vector<std::string> environment_of_b = {})
        : cluster_({.brokers = GetParam(),
                    .plugins = timers_plugin(),
                    .environments = {{}, std::move(environment_of_b)}}),
          sql_(cluster_.conninfo()) {
        // From here on the database notes what is fired. A fire holds the lock of its partition
        // from before it removes its timers to its end, so that these numbers grow as fires are
        // committed. It waits for that lock however long: what is handed back loses its place.
        sql_.script(R"(
CREATE TABLE public.fired (n bigserial, fire bigint, txn text, deliver_at timestamptz, timer_key text);
CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.fired (fire, txn, deliver_at, timer_key)
    VALUES (txid_current(), OLD.txn, OLD.deliver_at, OLD.timer_key);
    RETURN OLD;
END $$;
CREATE TRIGGER note AFTER DELETE ON queen.log_timers FOR EACH ROW EXECUTE FUNCTION public.note();
CREATE OR REPLACE FUNCTION queen._fire_lock_timeout() RETURNS text LANGUAGE sql IMMUTABLE
AS $$ SELECT '0' $$;)");
    }

    std::size_t last() const { return static_cast<std::size_t>(GetParam()) - 1; }
    std::int64_t fires() { return sql_.integer("SELECT count(DISTINCT fire) FROM public.fired"); }

    std::vector<std::string> by_time() { return ids("deliver_at, timer_key COLLATE \"C\""); }
    std::vector<std::string> as_fired() { return ids("turn, deliver_at, timer_key COLLATE \"C\""); }
    /// All that was delivered, read from the brokers in turn.
    std::vector<std::string> delivered() {
        std::vector<std::string> all;
        for (std::size_t turn = 0;; ++turn) {
            const auto popped = cluster_[turn % 2 == 0 ? kA : last()].api->pop(
                kQueue, "consumerGroup=g&autoAck=true&batch=70");
            if (popped.messages.empty()) {
                return all;
            }
            for (const auto& message : popped.messages) {
                EXPECT_EQ(message.offset, static_cast<std::int64_t>(all.size()));
                all.push_back(message.transaction_id);
            }
        }
    }
    void switch_fire(const std::string& word) {
        const auto said = cluster_[kA].api->http.post("/api/v1/system/kv-timers",
                                                      R"({"timersFire":)" + word + "}");
        ASSERT_EQ(said.status, 200) << said.body;
    }
    /// Timers 5 ms apart, every other one set on the last broker, and the order of their keys is
    /// another than that of their times. All of them are there before a looks.
    void round(int number) {
        constexpr int kTimers = 40; // less than a tenant has of a claim
        switch_fire("false");
        for (const int first : {0, 1}) {
            std::vector<TimerOpText> ops;
            for (int i = first; i < kTimers; i += 2) {
                ops.push_back(
                    {.key = std::to_string(i * 17 % kTimers),
                     .transaction_id = std::to_string(number) + "-" + std::to_string(i),
                     .delay_ms = 1'200 + 5 * i}); // a looks once a second while it may not fire
            }
            timer_ops(*cluster_[first == 0 ? kA : last()].api, kQueue, ops);
        }
        switch_fire("true");
        sql_.wait_for(kNoTimer);
    }

    Cluster cluster_;
    SqlSession sql_;

private:
    std::vector<std::string> ids(const std::string& order) {
        const auto rows = sql_.query("SELECT txn FROM (SELECT *, min(n) OVER (PARTITION BY fire) "
                                     "AS turn FROM public.fired) f ORDER BY " +
                                     order);
        std::vector<std::string> all;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            all.push_back(rows.get(i, 0));
        }
        return all;
    }
};
INSTANTIATE_TEST_SUITE_P(Brokers, OrderOfTimers, testing::Values(1, 2));

TEST_P(OrderOfTimers, WhatIsFiredIsDeliveredInThatOrder) {
    round(0);
    EXPECT_EQ(as_fired().size(), 40u);
    // Then a backlog, as if staged by clients while nobody fired: seen all at the same moment.
    const auto before = fires();
    sql_.query("INSERT INTO queen.log_timers (queue, \"partition\", timer_key, deliver_at, txn, "
               "message_id, payload) "
               "SELECT 'q', 'p', n::text, queen._clock() - n * 37 % 601 * interval '1 ms', "
               "n::text, gen_random_uuid(), '1' "
               "FROM generate_series(1, 600) n");
    sql_.wait_for(kNoTimer);
    EXPECT_GE(fires() - before, 3) << "a claim takes 200";
    EXPECT_EQ(as_fired().size(), 640u);
    EXPECT_EQ(delivered(), as_fired());
}

/// Only the first broker fires.
class OrderOfOneThatFires : public OrderOfTimers {
protected:
    OrderOfOneThatFires() : OrderOfTimers({kFiresNothing}) {}
};
INSTANTIATE_TEST_SUITE_P(Brokers, OrderOfOneThatFires, testing::Values(1, 2));

TEST_P(OrderOfOneThatFires, WhatFitsIntoOneClaimIsDeliveredInTheOrderOfItsTimes) {
    int rounds = 0;
    do {
        round(rounds++);
    } while (rounds < 2 || fires() == rounds); // claim by claim, however slow the machine is
    EXPECT_EQ(by_time().size(), 40u * static_cast<unsigned>(rounds));
    EXPECT_EQ(delivered(), by_time());
}

} // namespace
} // namespace queen::test
