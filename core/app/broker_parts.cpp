// app/broker_parts.cpp - the steps of a start, each of which makes parts in the order of their
// list.
#include "app/broker_parts.hpp"

#include "app/candidates_report.hpp"
#include "app/mesh_report.hpp"
#include "app/part_options.hpp"
#include "auth/authenticator.hpp"
#include "base/json.hpp"
#include "model/uuid7.hpp"
#include "pluginhost/plugin_check.hpp"
#include "settings/environment.hpp"
#include "store/canceller.hpp"
#include "store/conninfo.hpp"
#include "store/installer.hpp"
#include "store/pg_session.hpp"

#include <Poco/Logger.h>

#include <future>
#include <random>
#include <set>

namespace queen::app {
namespace {

/// Connections of an embedded server: for two brokers of this size, since another one may use it by
/// url, and beside their pools a canceller's, an installer's two and a few for the operator's psql.
constexpr int kBrokers = 2;
constexpr int kSpareConnections = 16;

/// How long a cancelled statement may take to end before its link is given up.
constexpr std::chrono::seconds kCancelPatience{2};

/// The period of a task that runs once in the life of a database.
constexpr std::chrono::milliseconds kNeverAgain = std::chrono::days{36'500};

std::string joined(const settings::Problems& problems) {
    std::string text;
    for (const auto& problem : problems) {
        text += (text.empty() ? "" : "\n") + problem;
    }
    return text;
}

} // namespace

/// Before anything is started: a plugin that does not fit must not cost a new cluster.
Result<void> BrokerApp::Parts::judge_plugins(const std::stop_token&) {
    settings::Problems problems;
    const auto environment = settings::process_environment();
    std::set<std::string> variables;
    for (const auto& check : pluginhost::check_plugins({settings, effective, {}}, environment)) {
        for (const auto& option : check.inspection.options) {
            variables.insert(option.env);
        }
        if (!check.inspection.fits) {
            problems.push_back(
                pluginhost::problem(check.place, check.name, "", check.inspection.verdict));
        }
        problems.insert(problems.end(), check.problems.begin(), check.problems.end());
    }
    std::vector<std::string> warnings;
    settings::check_plugin_variables(environment, variables, problems, warnings);
    for (const auto& warning : warnings) {
        Poco::Logger::get("queend").warning(warning);
    }
    if (!problems.empty()) {
        return fail(Errc::invalid_argument, joined(problems));
    }
    return {};
}

/// What protects messages and who may ask for them: before anything listens.
Result<void> BrokerApp::Parts::prepare_security(const std::stop_token&) {
    auto& logger = Poco::Logger::get("queend");
    if (!settings.encryption.key.empty()) {
        auto made = Cipher::from_hex(settings.encryption.key);
        if (!made) {
            return fail(made.error().code, "encryption.key: " + made.error().message);
        }
        cipher = std::make_shared<const Cipher>(std::move(*made));
    }
    logger.information(cipher ? "encryption on: payloads of encrypted queues are stored under "
                                "AES-256-GCM"
                              : "encryption off: there is no encryption.key, and encrypted queues "
                                "take no messages");
    if (settings.auth.enabled) {
        key_reader = std::make_unique<TickerThread>(clock);
        auto made =
            auth::make_verifier(settings.auth, {*key_reader, clock, [](const std::string& line) {
                                                    Poco::Logger::get("queend").warning(line);
                                                }});
        if (!made) {
            return fail(std::move(made).error());
        }
        verifier = std::move(*made);
    }
    logger.information(verifier ? "authentication on: algorithm " + settings.auth.algorithm
                                : std::string("authentication off: nobody is asked for a token"));
    if (settings.tenancy.header) {
        logger.information("tenants come in the header x-queen-tenant");
    }
    return {};
}

Result<void> BrokerApp::Parts::open_database(const std::stop_token& stop) {
    const auto sessions = session_count(settings);
    auto url = settings.database.url;
    if (settings.database.embedded) {
        auto started = EmbeddedPostgres::start(
            {.data_directory = settings.data_directory,
             .max_connections = kBrokers * static_cast<int>(sessions) + kSpareConnections});
        if (!started) {
            return fail(std::move(started).error());
        }
        postgres = std::move(*started);
        url = postgres->conninfo();
    }
    auto complete = store::complete_conninfo(url);
    if (!complete) {
        return fail(std::move(complete).error());
    }
    conninfo = std::move(*complete);
    store::Installer installer(conninfo, {.apply = settings.database.apply_schema});
    const std::stop_callback interrupt(stop, [&installer] { installer.interrupt(); });
    auto installed = installer.run();
    if (!installed) {
        return fail(std::move(installed).error());
    }
    const auto limits = store::StatementLimits::around(settings.database.statement_timeout);
    const auto canceller = std::make_shared<store::Canceller>(conninfo, kCancelPatience);
    executor = std::make_unique<store::Executor>(
        store::Executor::Options{.sessions = sessions},
        [conninfo = conninfo, limits, canceller]() -> std::unique_ptr<store::Session> {
            return std::make_unique<store::PgSession>(conninfo, limits, canceller);
        },
        clock);
    asker.emplace(*executor);
    store = std::make_unique<store::PgStore>(*asker);
    system_store = std::make_unique<store::PgSystemStore>(*asker);
    task_store = std::make_unique<store::PgTaskStore>(*asker);
    retention_store = std::make_unique<store::PgRetentionStore>(*asker);
    group_store = std::make_unique<store::PgGroupStore>(*asker);
    transaction_store = std::make_unique<store::PgTransactionStore>(*asker);
    timer_store = std::make_unique<store::PgTimerStore>(*asker);
    form_store = std::make_unique<store::PgFormStore>(*asker);
    letter_store = std::make_unique<store::PgLetterStore>(*asker);
    message_store = std::make_unique<store::PgMessageStore>(*asker);
    Poco::Logger::get("queend").information("database " + store::describe_conninfo(conninfo) +
                                            " sessions=" + std::to_string(sessions));
    return {};
}

Result<void> BrokerApp::Parts::load_plugins(const std::stop_token&) {
    ticker = std::make_unique<TickerThread>(clock);
    parking = std::make_unique<broker::Parking>(*ticker, clock, backoff(settings.pop));
    plugin_services = std::make_unique<PluginServices>(
        *parking, *store, *executor, *ticker, clock,
        broker::Reseeder::Options{.parallel = background_reads(session_count(settings)),
                                  .wait = settings.database.statement_timeout},
        conninfo);
    plugins = std::make_unique<pluginhost::PluginHost>(
        pluginhost::PluginHost::Config{.folders = settings.plugin_folders,
                                       .environment = settings::process_environment(),
                                       .inherited = inherited(effective),
                                       .limits = {}},
        plugin_services->services());
    const auto problems = plugins->load(settings.plugins);
    if (!problems.empty()) {
        return fail(Errc::invalid_argument, joined(problems));
    }
    std::vector<broker::Sources::Entry> entries;
    for (auto& loaded : plugins->sources()) {
        auto counted = std::make_shared<broker::CountedSource>(loaded.source);
        counted_sources.push_back({loaded.name, counted});
        entries.push_back({loaded.name, std::move(counted)});
    }
    if (!plugins->source(settings.default_source)) {
        const auto& place = settings.default_source_place;
        return fail(Errc::invalid_argument,
                    place.file + ":" + std::to_string(place.line) + ":" +
                        std::to_string(place.column) + ": candidates.default: plugin '" +
                        settings.default_source + "' is no candidate source");
    }
    sources = std::make_unique<broker::Sources>(std::move(entries), settings.default_source);
    std::vector<broker::Meshes::Entry> links;
    for (auto& loaded : plugins->meshes()) {
        links.push_back({loaded.name, std::move(loaded.mesh)});
    }
    meshes = std::make_unique<broker::Meshes>(std::move(links));
    plugin_services->attach(*plugins);
    return {};
}

/// What other brokers say, before a mesh could hear them.
void BrokerApp::Parts::open_mesh() {
    const auto read_repairs = [this] { repairs->poke(); };
    const auto read_switches = [this] { switches->refresh(); };
    missed_hints = std::make_unique<broker::MissedHints>(
        *sources, *parking, *executor, *ticker, clock,
        broker::MissedHints::Told{.moved = read_repairs, .switched = read_switches});
    peer_hints = std::make_unique<broker::PeerHints>(
        *store, *pop, *announcer, *parking, *encryption, *executor, clock,
        broker::PeerHints::Told{.moved = read_repairs,
                                .switched = read_switches,
                                .missed = [this] { missed_hints->missed(); }},
        broker::PeerHints::Options{.tenants = settings.tenancy.header,
                                   .wait = settings.database.statement_timeout});
    plugin_services->hear(*peer_hints);
}

/// The driver had ticks before and nothing to ask: it is told to look at once.
void BrokerApp::Parts::open_timers() {
    timer_driver = plugins->timer_driver();
    if (!timer_driver) {
        Poco::Logger::get("queend").warning(
            "no plugin fires timers: they are taken and wait until another broker fires them");
        return;
    }
    timer_firing = std::make_shared<broker::TimerFiring>(
        *timer_store, *announcer, clock,
        broker::TimerFiring::Options{.zstd_level = static_cast<int>(settings.zstd_level),
                                     .wait = settings.database.statement_timeout,
                                     .enabled = [this] { return switches->timers_fire(); },
                                     .activity = activity});
    timer_firing->serve(timer_driver);
    plugins->serve_timers(timer_firing);
    timer_driver->scheduled(clock.now());
}

/// Once this broker serves pops: what peers say from here on reaches those who wait.
Result<void> BrokerApp::Parts::start_meshes() {
    for (const auto& entry : meshes->all()) {
        try {
            entry.link->start();
        } catch (const std::exception& e) {
            return fail(Errc::invalid_argument, e.what());
        }
    }
    return {};
}

/// What the broker does for itself and for all brokers.
void BrokerApp::Parts::open_system() {
    const auto wait = settings.database.statement_timeout;
    statistics = std::make_unique<broker::Statistics>(*system_store, admin->figures(), clock,
                                                      broker::Statistics::Options{.wait = wait});
    Uuid7 ids;
    cluster_counts = std::make_unique<broker::ClusterCounts>(
        *system_store, *ticker, clock, ids.next(),
        [this] { return app::cluster_counts(*activity, asker->statements()); },
        broker::ClusterCounts::Options{.every = settings.system.metrics_flush, .wait = wait});
    cluster_figures = std::make_unique<broker::ClusterFigureReads>(
        *system_store, *ticker, *executor, clock, broker::ClusterFigureReads::Options{});
}

/// Before the first request: a broker that starts while pops are paused must not serve one. One
/// that cannot read them starts all the same and reads on.
void BrokerApp::Parts::read_switches() {
    const auto read = std::make_shared<std::promise<void>>(); // set_value() may outlast the wait
    switches->start([read](const Result<void>&) { read->set_value(); });
    read->get_future().wait();
}

/// Tasks are added before the scheduler starts, which is the last thing of a start.
Result<void> BrokerApp::Parts::plan_maintenance(const std::stop_token&) {
    using std::chrono::days;
    const auto& options = settings.maintenance;
    const auto wait = settings.database.statement_timeout;
    retention = std::make_unique<broker::Retention>(
        *retention_store, clock,
        broker::Retention::Options{.batch = static_cast<std::int32_t>(options.retention_batch),
                                   .parallel =
                                       static_cast<std::size_t>(options.retention_parallelism),
                                   .due_cap = static_cast<std::size_t>(options.retention_due_cap),
                                   .cleanup = options.partition_cleanup,
                                   .idle = days(options.partition_cleanup_days),
                                   .history = days(options.history_days),
                                   .wait = wait});
    scheduler = std::make_unique<broker::Scheduler>(
        *task_store, *ticker, *executor, clock,
        broker::Scheduler::Options{
            .holder = settings.server_id, .wait = wait, .warn = [](const std::string& line) {
                Poco::Logger::get("queend").warning(line);
            }});
    scheduler->add({"retention", options.retention_interval,
                    [this](broker::TaskTurnPtr turn) { retention->run(std::move(turn)); }});
    scheduler->add({"stats_refresh", settings.system.statistics_interval,
                    [this](const broker::TaskTurnPtr& turn) {
                        statistics->refresh_when_due(
                            [turn] { return turn->over(); },
                            [turn](const Result<broker::Refreshed>& refreshed) {
                                turn->finish(refreshed ? Result<void>{} : fail(refreshed.error()));
                            });
                    }});
    scheduler->add({"retention_watermark",
                    options.safety_walk.count() > 0 ? options.safety_walk : kNeverAgain,
                    [this](broker::TaskTurnPtr turn) { retention->walk(std::move(turn)); }});
    return {};
}

Result<void> BrokerApp::Parts::open_network(const std::stop_token&) {
    const auto wait = settings.database.statement_timeout;
    activity = std::make_shared<metrics::Activity>(clock);
    announcer = std::make_unique<broker::Announcer>(*sources, *parking, meshes.get());
    if (settings.dedup.cache) {
        dedup = std::make_unique<broker::DedupCache>(
            *store, *ticker, clock,
            broker::DedupCache::Options{.bytes =
                                            static_cast<std::size_t>(settings.dedup.cache_bytes),
                                        .wait = wait,
                                        .reads = background_reads(session_count(settings)),
                                        .warn = [](const std::string& text) {
                                            Poco::Logger::get("queend").warning(text);
                                        }});
    }
    encryption = std::make_shared<broker::Encryption>(cipher);
    push = std::make_unique<broker::Push>(
        *store, *announcer, clock,
        broker::Push::Options{.zstd_level = static_cast<int>(settings.zstd_level),
                              .wait = wait,
                              .activity = activity,
                              .encryption = encryption},
        dedup.get());
    switches = std::make_unique<broker::Switches>(
        *system_store, *parking, *ticker, clock,
        broker::Switches::Options{
            .wait = wait,
            .every = settings.system.switches_refresh,
            .log = [](const std::string& line) { Poco::Logger::get("queend").warning(line); },
            .was_set =
                [this](SwitchKey key, bool enabled) {
                    plugin::Hint hint{.kind = plugin::HintKind::switched, .enabled = enabled};
                    hint.subject = broker::subject_of(key);
                    announcer->tell_peers(hint);
                }});
    pop = std::make_unique<broker::Pop>(
        *store, *sources, *announcer, *parking, *executor, *ticker, clock,
        broker::Pop::Options{.wait = wait,
                             .pending_gate = settings.pop.pending_gate,
                             .parked = static_cast<std::size_t>(settings.limits.parked),
                             .paused = [this] { return switches->pops_paused(); },
                             .activity = activity});
    if (settings.ack.registry) {
        ack_registry = std::make_unique<broker::AckRegistry>(
            clock, broker::AckRegistry::Options{
                       .bytes = static_cast<std::size_t>(settings.ack.registry_bytes)});
    }
    acks = std::make_unique<broker::Acks>(*store, *announcer, clock, wait, activity,
                                          ack_registry.get());
    const auto wake_driver = [this](SteadyTime earliest) {
        if (timer_driver) {
            timer_driver->scheduled(earliest);
        }
    };
    transactions = std::make_unique<broker::Transactions>(
        *transaction_store, *store, *announcer, clock,
        broker::Transactions::Options{.zstd_level = static_cast<int>(settings.zstd_level),
                                      .wait = wait,
                                      .activity = activity,
                                      .encryption = encryption,
                                      .scheduled = wake_driver},
        dedup.get(), ack_registry.get());
    timers = std::make_unique<broker::Timers>(
        *timer_store, *form_store, clock,
        broker::Timers::Options{.wait = wait,
                                .activity = activity,
                                .encryption = encryption,
                                .taken = [this] { return switches->timers_schedule(); },
                                .scheduled = wake_driver});
    admin = std::make_unique<broker::Admin>(*store, *pop, *announcer, clock, wait);
    open_system();
    moved_cursors = std::make_unique<broker::MovedCursors>(*pop, *announcer);
    groups = std::make_unique<broker::Groups>(*group_store, *moved_cursors, admin->figures(), clock,
                                              wait);
    repairs = broker::RepairReader::make(
        *group_store, *ticker, *executor, clock,
        [this](const Repair& repair) { moved_cursors->tell(repair); },
        {.interval = settings.groups.repair_interval,
         .wait = wait,
         .jitter = [random = std::minstd_rand(std::random_device{}())]() mutable {
             return std::uniform_real_distribution<double>()(random);
         }});
    open_mesh();
    browsing = std::make_unique<broker::FigureReads>(clock, wait);
    letters = std::make_unique<broker::DeadLetters>(
        *letter_store, *announcer, *browsing, clock,
        broker::DeadLetters::Options{.zstd_level = static_cast<int>(settings.zstd_level),
                                     .wait = wait,
                                     .encryption = encryption});
    messages = std::make_unique<broker::MessageBrowser>(*message_store, *letter_store, *browsing,
                                                        clock, cipher.get());
    metrics = std::make_unique<BrokerMetrics>(
        BrokerMetrics::Parts{.activity = activity,
                             .parking = *parking,
                             .switches = *switches,
                             .ack_registry = ack_registry.get(),
                             .dedup = dedup.get(),
                             .sources = counted_sources,
                             .meshes = *meshes,
                             .peer_hints = *peer_hints,
                             .reseeds = [this] { return plugin_services->reseeds(); },
                             .plugins = [this] { return plugins->status(); },
                             .tasks = [this] { return scheduler->stats(); },
                             .retention = [this] { return retention->stats(); },
                             .timers =
                                 [this](metrics::Page& page) {
                                     if (timer_firing) {
                                         collect_timers(page, timer_firing->stats(), *timer_driver);
                                     }
                                 },
                             .executor = [this] { return executor->statistics(); },
                             .statements = asker->statements(),
                             .front = [this] { return front->statistics(); }},
        *ticker, *executor, clock,
        [](const std::string& line) { Poco::Logger::get("metrics").information(line); });
    routes = std::make_unique<http::Routes>(http::Services{
        .push = *push,
        .pop = *pop,
        .acks = *acks,
        .transactions = *transactions,
        .timers = *timers,
        .admin = *admin,
        .statistics = *statistics,
        .switches = *switches,
        .groups = *groups,
        .letters = *letters,
        .messages = *messages,
        .workers = *executor,
        .settings = settings,
        .version = QUEEN_VERSION,
        .plugins = [this](json::Writer& writer) { write_status(writer, plugins->status()); },
        .candidates =
            [this](json::Writer& writer) {
                write_candidates(writer, settings.default_source, *plugins);
            },
        .mesh =
            [this](json::Writer& writer) {
                write_mesh(writer, *meshes, peer_hints->stats(), peer_hints->waiting(),
                           plugins->status());
            },
        .timers_fired = [this] { return timer_driver && switches->timers_fire(); },
        .metrics = [this](json::Writer& writer) { metrics->write_json(writer); },
        .prometheus =
            [this](std::function<void(http::Reply)> reply) {
                cluster_figures->ask([this, reply = std::move(reply)](
                                         const broker::ClusterFigureReads::Figures& figures) {
                    reply({.body = metrics->prometheus(figures.get()),
                           .content_type = std::string(metrics::Page::kContentType),
                           .headers = {}});
                });
            },
        .cipher = cipher.get(),
        .verifier = verifier.get()});
    read_switches();
    open_timers();
    auto listening = http::Front::listen(settings.listen_address, settings.port,
                                         front_limits(settings.limits), *routes);
    if (!listening) {
        return fail(std::move(listening).error());
    }
    front = std::move(*listening);
    metrics->start();
    cluster_counts->start();
    repairs->start();
    front->start();
    if (auto started = start_meshes(); !started) {
        return started;
    }
    scheduler->start();
    return {};
}

} // namespace queen::app
