// Many timers that are due at once, with two brokers that fire them. QUEEN_TEST_TIMERS says how
// many; ctest's slow run takes 100,000.
#include "cluster/timers_bed.hpp"
#include "support/sql_session.hpp"

#include <algorithm>
#include <cstdlib>

namespace queen::test {
namespace {

TEST(TimersDrain, AllThatAreDueAtOnceAreStoredOnceEach) {
    const char* wanted = std::getenv("QUEEN_TEST_TIMERS");
    const std::string count = wanted == nullptr ? "5000" : wanted;
    // A row that another broker's claim had locked while it was to be fired would stay in hand
    // until its lease is over: longer than this test may take.
    Cluster cluster({.plugins = timers_plugin("lease: 10m")});
    SqlSession sql(cluster.conninfo());
    // As if staged by clients, and in one transaction so that all are seen at the same moment.
    sql.query("INSERT INTO queen.log_timers (queue, timer_key, \"partition\", deliver_at, txn, "
              "message_id, payload) "
              "SELECT 'q', n::text, 'p' || n % 50, queen._clock(), n::text, gen_random_uuid(), '1' "
              "FROM generate_series(1, $1::integer) n",
              {count});
    // However slow the machine is: the test's time-out is the only limit.
    while (!sql.yes(std::string("SELECT ") + kNoTimer)) {
    }
    std::vector<std::int64_t> got;
    for (const auto& id : drained(cluster, "q", {0, 1})) {
        got.push_back(std::stoll(id));
    }
    std::sort(got.begin(), got.end());
    ASSERT_EQ(got.size(), std::stoull(count));
    for (std::size_t i = 0; i < got.size(); ++i) {
        ASSERT_EQ(got[i], static_cast<std::int64_t>(i) + 1) << "one is missing, or twice here";
    }
    EXPECT_EQ(cluster.metric(0, kFired) + cluster.metric(1, kFired),
              static_cast<double>(got.size()));
    for (const std::size_t at : {0u, 1u}) {
        EXPECT_EQ(cluster.metric(at, "queen_timers_poisoned_total"), 0);
    }
}

} // namespace
} // namespace queen::test
