// From filled components to the page: every family has a producer, with the right value.
#include "app/collect.hpp"
#include "core/store/fake_session.hpp"
#include "support/exposition.hpp"
#include "support/idle_source.hpp"
#include "support/manual_ticker.hpp"
#include "support/manual_workers.hpp"
#include "support/recording_mesh.hpp"
#include "support/recording_source.hpp"
#include "support/scripted_system_store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace queen::app {
namespace {

using namespace std::chrono_literals;
using test::Exposition;
using testing::IsEmpty;

struct ChattySource final : test::IdleSource {
    void stats(plugin::Stats& out) override {
        out.add("rings", 12);
        out.add("trims_total", 3);
        out.add("No Name", 1);
        out.add("peeks_total", 99); // the broker's own
    }
};

struct Deaf final : broker::Waiter {
    void resume() override {}
};

/// Every component with something in each of its figures.
class Collect : public testing::Test {
protected:
    Exposition everything() {
        metrics::Page page;
        collect_process(page, 90s,
                        {.resident_bytes = 4096, .cpu_user = 1500ms, .cpu_system = 250ms});
        fill(activity_);
        clock_.advance(75s);
        collect_activity(page, activity_);
        watch_->start();
        sample_.loop_lags = 2;
        sample_.loop_lag = 3ms;
        for (int i = 0; i < 6; ++i) {
            ticker_.advance(10s);
            workers_.run_all();
        }
        sample_ = {};
        collect_rates(page, *watch_);

        const auto place =
            parking_.enter({.gate = "t\x1fq", .group = {}, .partition = {}, .labels = {}});
        parking_.ticket(*place);
        EXPECT_TRUE(parking_.park(*place, std::make_shared<Deaf>(), SteadyTime::max()));
        collect_parking(page, parking_);

        collect_ack_registry(
            page, {.entries = 1, .bytes = 2, .hits = 3, .misses = 4, .refused = 5, .evictions = 6});
        collect_dedup(page, {.bytes = 1,
                             .partitions = 2,
                             .hashes = 3,
                             .vouched = 4,
                             .suspects = 5,
                             .disbelieved = 6,
                             .hydrations = 7,
                             .topups = 8,
                             .suppressed = 9,
                             .evictions = 10,
                             .surprises = 11});
        collect_cluster(page, {.counts = {{"push_requests", 1},
                                          {"push_messages", 2},
                                          {"pop_requests", 3},
                                          {"pop_messages", 4},
                                          {"ack_requests", 5},
                                          {"ack_messages", 6},
                                          {"ack_failed", 7},
                                          {"transactions", 15},
                                          {"dlq", 16},
                                          {"db_errors", 8},
                                          {"of_a_later_version", 9}},
                               .dead_letters = 10,
                               .queues = {{"q", 11}},
                               .groups = {{"q", "g", 12, 13.5s}},
                               .age = 14s});
        test::ScriptedSystemStore system;
        system.on_set_switch = [](SwitchKey, bool, const Done<void>& done) { done({}); };
        broker::Switches switches(system, parking_, ticker_, clock_, {});
        switches.pause_pops(true, [](const Result<SwitchStates>&) {});
        collect_switches(page, switches);
        broker::CountedSource source(std::make_shared<ChattySource>());
        static_cast<void>(source.peek({}));
        collect_source(page, "mine", source);
        auto mesh = std::make_shared<test::RecordingMesh>();
        mesh->figures = {{"frames_sent_total", 21}, {"figures_dropped", 1}};
        broker::Meshes meshes({{"net", mesh}});
        broker::PeerHints::Stats hints;
        std::uint64_t count = 0;
        for (const auto kind : broker::kHintKinds) {
            ++count;
            for (std::uint64_t i = 0; i < count; ++i) {
                const plugin::Hint hint{.kind = kind};
                meshes.publish({&hint, 1});
                hints.heard.add(kind);
                hints.heard.add(kind);
            }
        }
        hints.malformed.add(31);
        hints.foreign.add(32);
        hints.nobody.add(33);
        hints.overflowed.add(34);
        hints.fanned_out.add(35);
        hints.missed.add(39);
        hints.config_reads_done.add(36);
        hints.config_reads_failed.add(37);
        collect_meshes(page, meshes, hints, 38);
        collect_reseeds(page, {.full = 1,
                               .window = 2,
                               .failed = 3,
                               .pages = 4,
                               .rows = 5,
                               .walking = 6,
                               .waiting = 7});
        pluginhost::PluginStatus loaded;
        loaded.name = "mine";
        loaded.loaded = true;
        loaded.paused = true;
        loaded.faults.by_kind[static_cast<std::size_t>(pluginhost::Fault::slow_call)] = 4;
        pluginhost::PluginStatus refused;
        refused.name = "refused";
        collect_plugins(page, {loaded, refused});

        store::Executor::Statistics executor;
        executor.sessions = 16;
        executor.in_use = 5;
        executor.connects = 7;
        executor.resets = 2;
        executor.timeouts = 1;
        executor.outage = true;
        executor.tasks_waiting = 8;
        executor.lanes[static_cast<std::size_t>(Lane::admin)].running = 1;
        executor.lanes[static_cast<std::size_t>(Lane::pop)].waiting = 9;
        executor.lanes[static_cast<std::size_t>(Lane::push)].expired = 3;
        executor.lanes[static_cast<std::size_t>(Lane::ack)].refused = 6;
        broker::Scheduler::TaskStats task{
            .name = "sweep", .runs = 90, .failures = 91, .held = true, .late = 1500ms};
        collect_tasks(page, {{.name = "retention", .runs = 3, .held = true}, task});
        broker::Retention::Stats retention;
        retention.removed[0] = {101, 102, 103};
        retention.removed[1] = {104, 105, 106};
        retention.removed[2] = {107, 108, 109};
        retention.hash_rows = 110;
        retention.partitions = 111;
        retention.records = 112;
        retention.steps = 113;
        retention.failed_steps = 114;
        retention.backed_off = 115;
        retention.repaired = 116;
        retention.due = {117, 118, 119};
        collect_retention(page, retention);
        struct Driver final : plugin::TimerDriver {
            void stop() override {}
            void scheduled(SteadyTime) override {}
            void answered(plugin::TimerCall, const plugin::TimerAnswer&) override {}
            SteadyTime tick(SteadyTime) override { return SteadyTime::max(); }
            void stats(plugin::Stats& out) override {
                out.add("cycles_total", 120);
                out.add("Not a name", 1);
            }
        } driver;
        broker::TimerFiring::Stats firing{.results = {113, 114, 115},
                                          .failures = {116, 117, 118},
                                          .dead_letters = 119,
                                          .poisoned = 121,
                                          .due = 122,
                                          .due_capped = true,
                                          .oldest_late = std::chrono::milliseconds(1500),
                                          .tenants_dropped = 123,
                                          .lag = {}};
        LatencyHistogram lag;
        lag.observe(std::chrono::milliseconds(4), 90);
        lag.observe(std::chrono::milliseconds(40), 10);
        firing.lag.emplace("t", lag.snapshot());
        collect_timers(page, firing, driver);
        collect_executor(page, executor);

        store::test::FakeDatabase database;
        store::test::FakeSession session(database);
        store::StatementCounters statements(clock_);
        for (const auto* statement :
             {&store::statements::kPopList, &store::statements::kPopSpecific,
              &store::statements::kPopDiscover}) {
            EXPECT_TRUE(statements.run(session, *statement, {}));
        }
        struct Refusing final : store::Session {
            Result<void> connect() override { return {}; }
            bool open() const noexcept override { return true; }
            bool check() override { return true; }
            Result<store::Rows> run(const store::Statement&, const store::Parameters&) override {
                return tl::unexpected(Error{Errc::transient, "refused", "40P01"});
            }
            void quarantine() noexcept override {}
            void interrupt() noexcept override {}
        } refusing;
        EXPECT_FALSE(statements.run(refusing, store::statements::kPing, {}));
        collect_statements(page, statements);

        http::FrontStatistics front{.accepted = 11,
                                    .refused = 2,
                                    .requests = 30,
                                    .bad_requests = 4,
                                    .timed_out = 1,
                                    .reading = 5,
                                    .in_flight = 6,
                                    .answering = 7,
                                    .lingering = 8,
                                    .body_bytes = 1024,
                                    .responses = {{200, 20}, {503, 1}},
                                    .lag = {}};
        collect_front(page, front);
        return test::parse_exposition(page.text());
    }

    static void fill(metrics::Activity& activity) {
        activity.push.requests.add(1);
        activity.push.messages.add(2);
        activity.push.duplicates.add(3);
        activity.push.failed.add(4);
        activity.pop.requests.add(5);
        activity.pop.messages.add(6);
        activity.pop.empty.add(7);
        activity.pop.failed.add(8);
        activity.pop.lag.observe(20ms, 6);
        activity.pop.first_contacts.add(9);
        activity.pop.probes_pending.add(10);
        activity.pop.probes_none.add(11);
        activity.pop.probes_failed.add(12);
        activity.pop.given_back.add(13);
        activity.pop.fill_waits.add(17);
        activity.pop.fill_wait_micros.add(18);
        activity.ack.requests.add(14);
        activity.ack.messages.add(15);
        activity.ack.refused.add(16);
        activity.ack.dead_letters.add(17);
        activity.transaction.committed.add(17);
        activity.transaction.duplicate.add(18);
        activity.transaction.rejected.add(19);
        activity.transaction.failed.add(20);
        activity.queues.add("q", {.push_requests = 1,
                                  .push_messages = 2,
                                  .pop_messages = 4,
                                  .pop_empty = 3,
                                  .acks = {5, 6, 7, 8, 9},
                                  .lag_sum = 10s,
                                  .lag_max = 4s});
    }

    test::ManualClock clock_;
    test::ManualTicker ticker_{clock_};
    test::ManualWorkers workers_;
    metrics::Sample sample_{.parked_by_queue = {{"q", 2}}};
    metrics::Activity activity_{clock_};
    broker::Parking parking_{ticker_, clock_, {}};
    std::shared_ptr<metrics::RateWatch> watch_ = metrics::RateWatch::make(
        ticker_, workers_, clock_, [this] { return sample_; }, [](const std::string&) {});
};

// MET-5
TEST_F(Collect, EveryFamilyHasAProducer) {
    const auto page = everything();
    EXPECT_THAT(page.problems, IsEmpty());
    for (const auto* family : metrics::all_families()) {
        EXPECT_THAT(page.families.at(std::string(family->name)).samples, testing::Not(IsEmpty()))
            << family->name;
    }
}

TEST_F(Collect, EveryFigureStandsUnderItsName) {
    const auto page = everything();
    const std::pair<const char*, const char*> expected[] = {
        {"queen_uptime_seconds", "90"},
        {"queen_process_resident_memory_bytes", "4096"},
        {"queen_process_cpu_seconds_total{mode=\"user\"}", "1.5"},
        {"queen_process_cpu_seconds_total{mode=\"system\"}", "0.25"},
        {"queen_process_push_requests_total", "1"},
        {"queen_process_push_messages_total", "2"},
        {"queen_process_push_duplicates_total", "3"},
        {"queen_process_push_failed_total", "4"},
        {"queen_process_pop_requests_total", "5"},
        {"queen_process_pop_messages_total", "6"},
        {"queen_process_pop_empty_total", "7"},
        {"queen_process_pop_failed_total", "8"},
        {"queen_process_pop_lag_seconds_count", "6"},
        {"queen_process_pop_lag_seconds_sum", "0.12"},
        {"queen_pop_first_contacts_total", "9"},
        {"queen_pop_probes_total{pending=\"yes\"}", "10"},
        {"queen_pop_probes_total{pending=\"no\"}", "11"},
        {"queen_pop_probes_total{pending=\"unknown\"}", "12"},
        {"queen_pop_given_back_total", "13"},
        {"queen_maintenance_turns_total{task=\"sweep\",result=\"done\"}", "90"},
        {"queen_maintenance_turns_total{task=\"sweep\",result=\"failed\"}", "91"},
        {"queen_maintenance_held{task=\"sweep\"}", "1"},
        {"queen_maintenance_late_seconds{task=\"sweep\"}", "1.5"},
        {"queen_timers_fired_total{result=\"duplicate\"}", "114"},
        {"queen_timers_fire_failures_total{class=\"config\"}", "118"},
        {"queen_timers_dlq_total", "119"},
        {"queen_timers_poisoned_total", "121"},
        {"queen_timers_due", "122"},
        {"queen_timers_due_capped", "1"},
        {"queen_timers_oldest_late_seconds", "1.5"},
        {"queen_timers_fire_lag_seconds{tenant=\"t\",quantile=\"0.5\"}", "0.005"},
        {"queen_timers_fire_lag_seconds{tenant=\"t\",quantile=\"0.95\"}", "0.05"},
        {"queen_timers_fire_lag_seconds{tenant=\"t\",quantile=\"0.99\"}", "0.05"},
        {"queen_timers_fire_lag_tenants_dropped_total", "123"},
        {"queen_sweeper_cycles_total{kind=\"timers\"}", "120"},
        {"queen_sweeper_figures_dropped", "1"},
        {"queen_retention_segments_total{type=\"retention\"}", "101"},
        {"queen_retention_messages_total{type=\"completed_retention\"}", "105"},
        {"queen_retention_bytes_total{type=\"max_wait_time_eviction\"}", "109"},
        {"queen_retention_hash_rows_total", "110"},
        {"queen_retention_partitions_total", "111"},
        {"queen_retention_records_total", "112"},
        {"queen_retention_steps_total{result=\"done\"}", "113"},
        {"queen_retention_steps_total{result=\"failed\"}", "114"},
        {"queen_retention_backed_off_total", "115"},
        {"queen_retention_repaired_total", "116"},
        {"queen_retention_due{work=\"retention\"}", "117"},
        {"queen_retention_due{work=\"max_wait\"}", "118"},
        {"queen_retention_due{work=\"hashes\"}", "119"},
        {"queen_pop_fill_wait_total", "17"},
        {"queen_pop_fill_wait_microseconds_total", "18"},
        {"queen_process_ack_requests_total", "14"},
        {"queen_process_ack_messages_total", "15"},
        {"queen_process_ack_refused_total", "16"},
        {"queen_process_ack_dead_letters_total", "17"},
        {"queen_process_transactions_total{result=\"committed\"}", "17"},
        {"queen_process_transactions_total{result=\"duplicate\"}", "18"},
        {"queen_process_transactions_total{result=\"rejected\"}", "19"},
        {"queen_process_transactions_total{result=\"failed\"}", "20"},
        {"queen_queue_metrics_tracked", "1"},
        {"queen_queue_metrics_age_seconds", "15"},
        {"queen_queue_push_requests_per_minute{queue=\"q\"}", "1"},
        {"queen_queue_push_messages_per_minute{queue=\"q\"}", "2"},
        {"queen_queue_pop_messages_per_minute{queue=\"q\"}", "4"},
        {"queen_queue_pop_empty_per_minute{queue=\"q\"}", "3"},
        {"queen_queue_ack_per_minute{queue=\"q\",result=\"completed\"}", "5"},
        {"queen_queue_ack_per_minute{queue=\"q\",result=\"failed\"}", "6"},
        {"queen_queue_ack_per_minute{queue=\"q\",result=\"retry\"}", "7"},
        {"queen_queue_ack_per_minute{queue=\"q\",result=\"dlq\"}", "8"},
        {"queen_queue_ack_per_minute{queue=\"q\",result=\"refused\"}", "9"},
        {"queen_queue_pop_lag_milliseconds{queue=\"q\",stat=\"avg\"}", "2500"},
        {"queen_queue_pop_lag_milliseconds{queue=\"q\",stat=\"max\"}", "4000"},
        {"queen_queue_parked_consumers{queue=\"q\"}", "2"},
        {"queen_cluster_push_requests_total{scope=\"cluster\"}", "1"},
        {"queen_cluster_push_messages_total{scope=\"cluster\"}", "2"},
        {"queen_cluster_pop_requests_total{scope=\"cluster\"}", "3"},
        {"queen_cluster_pop_messages_total{scope=\"cluster\"}", "4"},
        {"queen_cluster_ack_requests_total{scope=\"cluster\"}", "5"},
        {"queen_cluster_ack_messages_total{scope=\"cluster\"}", "6"},
        {"queen_cluster_ack_total{scope=\"cluster\",result=\"failed\"}", "7"},
        {"queen_cluster_ack_total{scope=\"cluster\",result=\"completed\"}", "0"},
        {"queen_cluster_transactions_total{scope=\"cluster\"}", "15"},
        {"queen_cluster_dlq_total{scope=\"cluster\"}", "16"},
        {"queen_cluster_db_errors_total{scope=\"cluster\"}", "8"},
        {"queen_dlq_depth{scope=\"cluster\"}", "10"},
        {"queen_dlq_depth_by_queue{queue=\"q\"}", "11"},
        {"queen_group_lag_messages{queue=\"q\",group=\"g\"}", "12"},
        {"queen_group_lag_seconds{queue=\"q\",group=\"g\"}", "13.5"},
        {"queen_statistics_age_seconds", "14"},
        {"queen_pop_maintenance_mode_enabled", "1"},
        {"queen_maintenance_turns_total{task=\"retention\",result=\"done\"}", "3"},
        {"queen_maintenance_held{task=\"retention\"}", "1"},
        {"queen_parked_long_polls{queue=\"q\"}", "1"},
        {"queen_parked_pops", "1"},
        {"queen_wakes_total{cause=\"floor\"}", "0"},
        {"queen_peer_hints_published_total{kind=\"stored\"}", "1"},
        {"queen_peer_hints_published_total{kind=\"switched\"}", "5"},
        {"queen_peer_hints_heard_total{kind=\"stored\"}", "2"},
        {"queen_peer_hints_heard_total{kind=\"moved\"}", "4"},
        {"queen_peer_hints_heard_total{kind=\"configured\"}", "6"},
        {"queen_peer_hints_heard_total{kind=\"deleted\"}", "8"},
        {"queen_peer_hints_refused_total{reason=\"malformed\"}", "31"},
        {"queen_peer_hints_refused_total{reason=\"other_tenant\"}", "32"},
        {"queen_peer_hints_refused_total{reason=\"no_tenant\"}", "33"},
        {"queen_peer_hints_refused_total{reason=\"overflow\"}", "34"},
        {"queen_peer_hints_fanned_out_total", "35"},
        {"queen_peer_hints_settings_read_total{result=\"done\"}", "36"},
        {"queen_peer_hints_settings_read_total{result=\"failed\"}", "37"},
        {"queen_peer_hints_missed_total", "39"},
        {"queen_peer_hints_waiting", "38"},
        {"queen_mesh_frames_sent_total{plugin=\"net\"}", "21"},
        {"queen_mesh_figures_dropped{plugin=\"net\"}", "1"},
        {"queen_ack_registry_entries", "1"},
        {"queen_ack_registry_bytes", "2"},
        {"queen_ack_registry_hits_total", "3"},
        {"queen_ack_registry_misses_total", "4"},
        {"queen_ack_registry_refused_total", "5"},
        {"queen_ack_registry_evictions_total", "6"},
        {"queen_dedup_bytes", "1"},
        {"queen_dedup_partitions", "2"},
        {"queen_dedup_hashes", "3"},
        {"queen_dedup_vouched_total", "4"},
        {"queen_dedup_suspects_total", "5"},
        {"queen_dedup_disbelieved_total", "6"},
        {"queen_dedup_hydrations_total", "7"},
        {"queen_dedup_topups_total", "8"},
        {"queen_dedup_suppressed_total", "9"},
        {"queen_dedup_evictions_total", "10"},
        {"queen_dedup_surprises_total", "11"},
        {"queen_candidates_peeks_total{source=\"mine\",state=\"nothing\"}", "1"},
        {"queen_candidates_rings{source=\"mine\"}", "12"},
        {"queen_candidates_trims_total{source=\"mine\"}", "3"},
        {"queen_candidates_figures_dropped{source=\"mine\"}", "2"},
        {"queen_reseed_walks_total{end=\"full\"}", "1"},
        {"queen_reseed_walks_total{end=\"window\"}", "2"},
        {"queen_reseed_walks_total{end=\"incomplete\"}", "3"},
        {"queen_reseed_pages_total", "4"},
        {"queen_reseed_partitions_total", "5"},
        {"queen_reseed_walks{state=\"walking\"}", "6"},
        {"queen_reseed_walks{state=\"waiting\"}", "7"},
        {"queen_plugin_paused{plugin=\"mine\"}", "1"},
        {"queen_plugin_paused{plugin=\"refused\"}", "<missing>"},
        {"queen_plugin_faults_total{plugin=\"mine\",kind=\"slow_call\"}", "4"},
        {"queen_db_pool_size", "16"},
        {"queen_db_pool_idle", "11"},
        {"queen_db_pool_active", "5"},
        {"queen_db_outage", "1"},
        {"queen_db_connects_total{kind=\"first\"}", "7"},
        {"queen_db_connects_total{kind=\"again\"}", "2"},
        {"queen_db_timeouts_total", "1"},
        {"queen_worker_tasks_waiting", "8"},
        {"queen_admission_inflight{lane=\"maint\"}", "1"},
        {"queen_admission_waiting{lane=\"pop\"}", "9"},
        {"queen_admission_unrun_total{lane=\"push\",reason=\"no_session\"}", "3"},
        {"queen_admission_unrun_total{lane=\"ack\",reason=\"no_database\"}", "6"},
        {"queen_store_statements_total{statement=\"pop_list\"}", "1"},
        {"queen_store_errors_total{class=\"40\"}", "1"},
        {"queen_pop_targeted_total", "2"},
        {"queen_pop_wildcard_total", "1"},
        {"queen_connections{state=\"reading\"}", "5"},
        {"queen_connections{state=\"in_flight\"}", "6"},
        {"queen_connections{state=\"answering\"}", "7"},
        {"queen_connections{state=\"lingering\"}", "8"},
        {"queen_connections_total{event=\"accepted\"}", "11"},
        {"queen_connections_total{event=\"refused\"}", "2"},
        {"queen_connections_total{event=\"timed_out\"}", "1"},
        {"queen_http_requests_total", "30"},
        {"queen_http_bad_requests_total", "4"},
        {"queen_http_responses_total{code=\"200\"}", "20"},
        {"queen_http_responses_total{code=\"503\"}", "1"},
        {"queen_http_bodies_in_flight_bytes", "1024"},
    };
    for (const auto& [series, value] : expected) {
        EXPECT_EQ(page.value(series), value) << series;
    }
}

TEST_F(Collect, TheLoopsLagIsAMeanInMilliseconds) {
    watch_->start();
    sample_.loop_lags = 2;
    sample_.loop_lag = 3ms;
    ticker_.advance(10s);
    workers_.run_all();
    metrics::Page page;
    collect_rates(page, *watch_);
    EXPECT_EQ(test::parse_exposition(page.text()).value("queen_event_loop_lag_avg_milliseconds"),
              "1.5");
}

TEST_F(Collect, NothingYetIsAGoodPageToo) {
    metrics::Page page;
    collect_activity(page, activity_);
    collect_rates(page, *watch_);
    collect_parking(page, parking_);
    collect_executor(page, {});
    collect_statements(page, store::StatementCounters(clock_));
    collect_front(page, {});
    const auto read = test::parse_exposition(page.text());
    EXPECT_THAT(read.problems, IsEmpty());
    EXPECT_EQ(read.value("queen_queue_metrics_age_seconds"), "<missing>") << "no minute is over";
    EXPECT_EQ(read.value("queen_process_push_messages_total"), "0");
}

// Figures of a moment at which nobody had made statistics would all say 0.
TEST(CollectCluster, WithoutStatisticsThereAreOnlyCounts) {
    metrics::Page page;
    collect_cluster(page, {});
    const auto read = test::parse_exposition(page.text());
    EXPECT_EQ(read.value("queen_cluster_push_messages_total{scope=\"cluster\"}"), "0");
    EXPECT_EQ(read.value("queen_dlq_depth{scope=\"cluster\"}"), "<missing>");
    EXPECT_EQ(read.value("queen_statistics_age_seconds"), "<missing>");
}

TEST(CollectCluster, WhatIsToldOfABrokerIsWhatThePageReads) {
    const test::ManualClock clock;
    metrics::Activity activity(clock);
    activity.push.requests.add(1);
    activity.push.messages.add(2);
    activity.pop.requests.add(3);
    activity.pop.messages.add(4);
    activity.ack.requests.add(5);
    activity.ack.messages.add(6);
    activity.ack.dead_letters.add(7);
    activity.transaction.committed.add(8);
    activity.transaction.failed.add(100);
    for (std::size_t i = 0; i < metrics::kAckResults; ++i) {
        activity.ack.by_result[i].add(10 + i);
    }
    const store::StatementCounters statements(clock);
    ClusterFigures figures;
    for (const auto& [name, count] : cluster_counts(activity, statements)) {
        figures.counts.emplace_back(name, static_cast<std::int64_t>(count));
    }
    metrics::Page page;
    collect_cluster(page, figures);
    const auto read = test::parse_exposition(page.text());
    for (const auto& [family, value] : {std::pair{"push_requests", "1"},
                                        {"push_messages", "2"},
                                        {"pop_requests", "3"},
                                        {"pop_messages", "4"},
                                        {"ack_requests", "5"},
                                        {"ack_messages", "6"},
                                        {"dlq", "7"},
                                        {"transactions", "8"},
                                        {"db_errors", "0"}}) {
        EXPECT_EQ(read.value("queen_cluster_" + std::string(family) + "_total{scope=\"cluster\"}"),
                  value);
    }
    EXPECT_EQ(read.value("queen_cluster_ack_total{scope=\"cluster\",result=\"completed\"}"), "10");
    EXPECT_EQ(read.value("queen_cluster_ack_total{scope=\"cluster\",result=\"refused\"}"), "14");
}

} // namespace
} // namespace queen::app
