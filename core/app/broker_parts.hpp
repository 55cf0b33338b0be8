#pragma once
#include "app/broker_app.hpp"
#include "app/broker_metrics.hpp"
#include "app/embedded_postgres.hpp"
#include "app/plugin_services.hpp"
#include "base/ticker.hpp"
#include "broker/ack.hpp"
#include "broker/admin.hpp"
#include "broker/announce.hpp"
#include "broker/cluster_counts.hpp"
#include "broker/cluster_figures.hpp"
#include "broker/counted_source.hpp"
#include "broker/dead_letters.hpp"
#include "broker/dedup_cache.hpp"
#include "broker/figure_reads.hpp"
#include "broker/groups.hpp"
#include "broker/maintenance/retention.hpp"
#include "broker/maintenance/scheduler.hpp"
#include "broker/meshes.hpp"
#include "broker/message_browser.hpp"
#include "broker/missed_hints.hpp"
#include "broker/parking.hpp"
#include "broker/peer_hints.hpp"
#include "broker/pop.hpp"
#include "broker/push.hpp"
#include "broker/repairs.hpp"
#include "broker/statistics.hpp"
#include "broker/switches.hpp"
#include "broker/timer_firing.hpp"
#include "broker/timers.hpp"
#include "broker/transaction.hpp"
#include "http/front.hpp"
#include "http/router.hpp"
#include "pluginhost/plugin_host.hpp"
#include "store/executor.hpp"
#include "store/pg_form_store.hpp"
#include "store/pg_group_store.hpp"
#include "store/pg_letter_store.hpp"
#include "store/pg_message_store.hpp"
#include "store/pg_retention_store.hpp"
#include "store/pg_store.hpp"
#include "store/pg_system_store.hpp"
#include "store/pg_task_store.hpp"
#include "store/pg_timer_store.hpp"
#include "store/pg_transaction_store.hpp"

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace queen::app {

/// In the order in which they are made; stop() takes them down in the order that shutdown needs.
struct BrokerApp::Parts {
    explicit Parts(const settings::Loaded& loaded)
        : settings(loaded.settings), effective(loaded.effective) {}

    Result<void> judge_plugins(const std::stop_token& stop);
    Result<void> prepare_security(const std::stop_token& stop);
    Result<void> open_database(const std::stop_token& stop);
    Result<void> load_plugins(const std::stop_token& stop);
    Result<void> plan_maintenance(const std::stop_token& stop);
    Result<void> open_network(const std::stop_token& stop);
    void open_system();
    void open_mesh();
    void open_timers();
    Result<void> start_meshes();
    void read_switches();

    const settings::Settings settings;
    const std::vector<settings::Effective> effective; ///< what options of plugins inherit from
    const SystemClock& clock = SystemClock::instance();
    std::unique_ptr<EmbeddedPostgres> postgres;
    std::string conninfo;
    std::unique_ptr<store::Executor> executor;
    std::optional<store::Asker> asker; ///< of every port
    std::unique_ptr<store::PgStore> store;
    std::unique_ptr<store::PgSystemStore> system_store;
    std::unique_ptr<store::PgTaskStore> task_store;
    std::unique_ptr<store::PgRetentionStore> retention_store;
    std::unique_ptr<store::PgGroupStore> group_store;
    std::unique_ptr<store::PgTransactionStore> transaction_store;
    std::unique_ptr<store::PgTimerStore> timer_store;
    std::unique_ptr<store::PgFormStore> form_store;
    std::unique_ptr<store::PgLetterStore> letter_store;
    std::unique_ptr<store::PgMessageStore> message_store;
    std::unique_ptr<TickerThread> ticker;
    std::unique_ptr<broker::Parking> parking;
    std::unique_ptr<PluginServices> plugin_services;
    std::unique_ptr<pluginhost::PluginHost> plugins;
    std::vector<BrokerMetrics::NamedSource> counted_sources;
    std::unique_ptr<broker::Sources> sources;
    std::unique_ptr<broker::Meshes> meshes;
    std::shared_ptr<const Cipher> cipher; ///< null: no key
    std::shared_ptr<broker::Encryption> encryption;
    std::unique_ptr<TickerThread> key_reader; ///< reads published keys, which may take seconds
    std::shared_ptr<const auth::Verifier> verifier; ///< null: authentication is off
    std::shared_ptr<metrics::Activity> activity;
    std::unique_ptr<broker::Announcer> announcer;
    std::unique_ptr<broker::DedupCache> dedup; ///< null when switched off
    std::unique_ptr<broker::Push> push;
    std::unique_ptr<broker::Pop> pop;
    std::unique_ptr<broker::AckRegistry> ack_registry; ///< null when switched off
    std::unique_ptr<broker::Acks> acks;
    std::unique_ptr<broker::Transactions> transactions;
    std::shared_ptr<plugin::TimerDriver> timer_driver; ///< null: timers wait
    std::shared_ptr<broker::TimerFiring> timer_firing; ///< likewise
    std::unique_ptr<broker::Timers> timers;
    std::unique_ptr<broker::Admin> admin;
    std::unique_ptr<broker::Switches> switches;
    std::unique_ptr<broker::Statistics> statistics;
    std::unique_ptr<broker::ClusterCounts> cluster_counts;
    std::unique_ptr<broker::ClusterFigureReads> cluster_figures;
    std::unique_ptr<broker::Retention> retention;
    std::unique_ptr<broker::Scheduler> scheduler; ///< after whoever has a task in it
    std::unique_ptr<broker::MovedCursors> moved_cursors;
    std::unique_ptr<broker::Groups> groups;
    std::shared_ptr<broker::RepairReader> repairs;
    std::unique_ptr<broker::MissedHints> missed_hints;
    std::unique_ptr<broker::PeerHints> peer_hints;
    std::unique_ptr<broker::FigureReads> browsing; ///< lists of messages and of dead letters
    std::unique_ptr<broker::DeadLetters> letters;
    std::unique_ptr<broker::MessageBrowser> messages;
    std::unique_ptr<BrokerMetrics> metrics;
    std::unique_ptr<http::Routes> routes;
    std::unique_ptr<http::Front> front;
};

} // namespace queen::app
