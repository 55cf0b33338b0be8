// Brokers whose clocks are three minutes apart: the database's alone decides. libfaketime moves the
// wall clock of one broker and leaves the steady clock alone.
#include "cluster/timers_bed.hpp"
#include "support/sql_session.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <optional>

namespace queen::test {
namespace {

using testing::ElementsAre;

constexpr std::size_t kA = 0, kB = 1;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

/// "" when there is none.
std::string faketime() {
    for (const char* folder : {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"}) {
        std::string path = std::string(folder) + "/faketime/libfaketime.so.1";
        if (std::filesystem::exists(path)) {
            return path;
        }
    }
    return {};
}

class Clocks : public testing::TestWithParam<const char*> {
protected:
    void SetUp() override {
        if (kSanitized) {
            GTEST_SKIP() << "a sanitizer must be the first library of a program, and so must "
                            "libfaketime";
        }
        if (faketime().empty()) {
            GTEST_SKIP() << "libfaketime is not installed (Debian: libfaketime)";
        }
        cluster.emplace(Cluster::Options{
            .patient = false,
            .plugins = timers_plugin(),
            .environments = {{},
                             {"LD_PRELOAD=" + faketime(), std::string("FAKETIME=") + GetParam(),
                              "FAKETIME_DONT_FAKE_MONOTONIC=1", "DONT_FAKE_MONOTONIC=1"}}});
    }
    Api& at(std::size_t index) { return *(*cluster)[index].api; }
    static std::string database_time(SqlSession& sql) {
        return sql.one("SELECT to_char(queen._clock() AT TIME ZONE 'UTC', "
                       "'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')");
    }

    /// Whether it is at least that long ago, by the database's clock.
    static bool later(SqlSession& sql, const std::string& since, const std::string& time) {
        return sql.yes("SELECT queen._clock() >= $1::timestamptz + $2::interval", {since, time});
    }

    std::optional<Cluster> cluster;
};

TEST_P(Clocks, TheirClocksAreApart) {
    SqlSession sql(cluster->conninfo());
    ASSERT_EQ(at(kB).push_ids("q", "p", {"m"}).status, 201);
    const auto popped = at(kA).pop("q", "autoAck=true");
    ASSERT_THAT(popped.ids(), ElementsAre("m"));
    // Ids of messages begin with the milliseconds of the broker that was asked.
    std::string stamp = popped.messages[0].id.substr(0, 13);
    stamp.erase(8, 1);
    EXPECT_TRUE(
        sql.yes("SELECT abs($1::bigint - extract(epoch FROM queen._clock()) * 1000) > 90000",
                {static_cast<std::int64_t>(std::stoll(stamp, nullptr, 16))}))
        << popped.messages[0].id;
}

TEST_P(Clocks, ALeaseOfEitherBrokerEndsWhenTheDatabaseSaysSo) {
    SqlSession sql(cluster->conninfo());
    for (const std::size_t holder : {kA, kB}) {
        const std::string id = "m" + std::to_string(holder);
        ASSERT_EQ(at(kA).push_ids("q", "p", {id}).status, 201);
        const auto before = database_time(sql);
        const auto held = at(holder).pop("q", "wait=true&timeout=50000&leaseSeconds=2");
        ASSERT_THAT(held.ids(), ElementsAre(id));
        const auto again = at(1 - holder).pop("q", "wait=true&timeout=50000");
        ASSERT_THAT(again.ids(), ElementsAre(id));
        EXPECT_EQ(again.messages[0].attempt, 2);
        EXPECT_TRUE(later(sql, before, "2 s"));
        EXPECT_EQ(at(holder).ack(again.messages[0]), "true") << "a lease of the other broker";
    }
}

TEST_P(Clocks, ADelayIsOverForBothWhenTheDatabaseSaysSo) {
    SqlSession sql(cluster->conninfo());
    for (const std::size_t pusher : {kA, kB}) {
        const std::string queue = "q" + std::to_string(pusher);
        ASSERT_EQ(at(kA).configure(queue, R"({"delayedProcessing":2})").status, 200);
        const auto before = database_time(sql);
        ASSERT_EQ(at(pusher).push_ids(queue, "p", {"m"}).status, 201);
        for (const std::size_t looker : {1 - pusher, pusher}) {
            const auto popped =
                at(looker).pop(queue, "wait=true&timeout=50000&autoAck=true&consumerGroup=g" +
                                          std::to_string(looker));
            ASSERT_THAT(popped.ids(), ElementsAre("m"));
            EXPECT_TRUE(later(sql, before, "2 s"));
            EXPECT_GE(popped.messages[0].created_at, before);
            EXPECT_LE(popped.messages[0].created_at, database_time(sql)) << "no broker's clock";
        }
    }
}

TEST_P(Clocks, ATimerIsDueWhenTheDatabaseSaysSo) {
    SqlSession sql(cluster->conninfo());
    for (const std::size_t setter : {kA, kB}) {
        const std::string id = "t" + std::to_string(setter);
        const std::string before = database_time(sql);
        const auto due =
            schedule(at(setter), "timed", {.key = id, .transaction_id = id, .delay_ms = 500});
        const std::string after = database_time(sql);
        EXPECT_TRUE(sql.yes("SELECT $1::timestamptz BETWEEN $2::timestamptz + interval '500 ms' "
                            "AND $3::timestamptz + interval '500 ms'",
                            {due, before, after}))
            << due << ' ' << before << ' ' << after;
        const auto popped =
            at(1 - setter).pop("timed", "wait=true&timeout=50000&consumerGroup=g&autoAck=true");
        ASSERT_THAT(popped.ids(), ElementsAre(id));
        EXPECT_GE(popped.messages[0].created_at, due);
        EXPECT_LE(popped.messages[0].created_at, database_time(sql));
    }
}

TEST_P(Clocks, AnIdIsADuplicateOnEitherBrokerWithinTheWindow) {
    ASSERT_EQ(at(kA).configure("q", R"({"dedupWindowSeconds":60})").status, 200);
    for (const std::size_t first : {kA, kB}) {
        const std::string id = "m" + std::to_string(first);
        EXPECT_THAT(column(at(first).push_ids("q", "p", {id}), "status"), ElementsAre("queued"));
        for (const std::size_t second : {1 - first, first}) {
            EXPECT_THAT(column(at(second).push_ids("q", "p", {id}), "status"),
                        ElementsAre("duplicate"));
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Apart, Clocks, testing::Values("+180s", "-180s"), [](const auto& info) {
    return info.param[0] == '+' ? "Ahead" : "Behind";
});

} // namespace
} // namespace queen::test
