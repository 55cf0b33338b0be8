// Every call of the SystemStore port against the schema that the installer made.
#include "core/store/pg_port_fixture.hpp"
#include "model/uuid7.hpp"
#include "store/pg_system_store.hpp"

#include <gmock/gmock.h>

#include <map>

namespace queen::store {
namespace {

using testing::HasSubstr;

class PgSystemStoreTest : public PgPortTest {
protected:
    SwitchStates switches() {
        return *wait_for<SwitchStates>([&](auto done) { store_.read_switches(kNever, done); });
    }
    StatisticsState state() {
        return *wait_for<StatisticsState>(
            [&](auto done) { store_.statistics_state(kNever, done); });
    }
    ClusterFigures figures() {
        return *wait_for<ClusterFigures>(
            [&](auto done) { store_.cluster_figures(kNever, 500, done); });
    }

    PgSystemStore store_{Asker(*executor_)};
};

TEST_F(PgSystemStoreTest, SwitchesAreKept) {
    EXPECT_EQ(switches(), SwitchStates{});
    for (const auto key : {SwitchKey::pop_maintenance, SwitchKey::maintenance}) {
        EXPECT_TRUE(wait_for<void>([&](auto done) { store_.set_switch(kNever, key, true, done); }));
    }
    EXPECT_EQ(switches(), (SwitchStates{.maintenance = true, .pop_maintenance = true}));
    EXPECT_TRUE(wait_for<void>(
        [&](auto done) { store_.set_switch(kNever, SwitchKey::maintenance, false, done); }));
    EXPECT_EQ(switches(), (SwitchStates{.maintenance = false, .pop_maintenance = true}));
    for (const auto key : {SwitchKey::timers_schedule, SwitchKey::timers_fire}) {
        EXPECT_TRUE(
            wait_for<void>([&](auto done) { store_.set_switch(kNever, key, false, done); }));
        EXPECT_EQ(switches(), (SwitchStates{.pop_maintenance = true,
                                            .timers_schedule = false,
                                            .timers_fire = key == SwitchKey::timers_schedule}));
    }
}

TEST_F(PgSystemStoreTest, StatisticsAreRefreshedAndRead) {
    EXPECT_FALSE(state().age.has_value());
    const auto step = wait_for<StatisticsStep>(
        [&](auto done) { store_.refresh_statistics(kNever, std::nullopt, 500, done); });
    ASSERT_TRUE(step) << step.error().message;
    EXPECT_EQ(step->queues, 0);
    EXPECT_FALSE(step->next.has_value());
    EXPECT_TRUE(wait_for<void>([&](auto done) {
        store_.statistics_refreshed(kNever, std::chrono::milliseconds(1500), done);
    }));
    EXPECT_GE(state().age, std::chrono::milliseconds(1500));
    EXPECT_EQ(state().took, std::chrono::milliseconds(1500));
    EXPECT_TRUE(wait_for<void>([&](auto done) { store_.refresh_timer_statistics(kNever, done); }));
    const auto list = wait_for<std::string>(
        [&](auto done) { store_.cached_queues(kNever, std::string(kDefaultTenant), done); });
    EXPECT_THAT(*list, HasSubstr("\"queueCount\": 0"));
    const auto overview = wait_for<std::string>(
        [&](auto done) { store_.cached_overview(kNever, std::string(kDefaultTenant), done); });
    EXPECT_THAT(*overview, HasSubstr("\"partitions\": 0"));
    const auto refused =
        wait_for<std::string>([&](auto done) { store_.cached_overview(kNever, "nobody", done); });
    EXPECT_EQ(refused.error().code, Errc::invalid_argument);
}

TEST_F(PgSystemStoreTest, CountsAreAddedOnce) {
    Uuid7 ids;
    const CountDelta delta{.source = ids.next(),
                           .number = 1,
                           .counts = {{"push_messages", 7}, {"ack_dlq", std::int64_t{1} << 40}}};
    for (int i = 0; i < 2; ++i) {
        EXPECT_TRUE(wait_for<void>([&](auto done) { store_.add_counts(kNever, delta, done); }));
    }
    const auto seen = figures();
    const std::map<std::string, std::int64_t> counts(seen.counts.begin(), seen.counts.end());
    EXPECT_EQ(counts, (std::map<std::string, std::int64_t>{{"ack_dlq", std::int64_t{1} << 40},
                                                           {"push_messages", 7}}));
    EXPECT_FALSE(seen.age.has_value());
}

} // namespace
} // namespace queen::store
