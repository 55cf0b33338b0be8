#include "app/broker_app.hpp"

#include "app/broker_parts.hpp"

#include <Poco/Logger.h>

#include <algorithm>
#include <future>

namespace queen::app {
namespace {

/// How long a stopping broker waits until something last is in the database: counts that are not
/// told then are missing from the totals, timers in hand wait for the end of their lease.
constexpr std::chrono::milliseconds kLastCalls{2'000};

/// @param stop takes what it calls when it is over
template <class Stop>
void stop_and_wait(std::chrono::milliseconds grace, Stop stop) {
    const auto over = std::make_shared<std::promise<void>>();
    stop([over] { over->set_value(); });
    over->get_future().wait_for(std::min(grace, kLastCalls));
}

} // namespace

BrokerApp::BrokerApp(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

BrokerApp::~BrokerApp() {
    stop(std::chrono::milliseconds{0});
}

Result<std::unique_ptr<BrokerApp>> BrokerApp::start(const settings::Loaded& loaded,
                                                    const std::stop_token& stop) {
    std::unique_ptr<BrokerApp> app(new BrokerApp(std::make_unique<Parts>(loaded)));
    auto& parts = *app->parts_;
    for (const auto step : {&Parts::judge_plugins, &Parts::prepare_security, &Parts::open_database,
                            &Parts::load_plugins, &Parts::plan_maintenance, &Parts::open_network}) {
        auto done = (parts.*step)(stop);
        if (stop.stop_requested()) {
            return fail(Errc::shutting_down, "stopped before it was ready");
        }
        if (!done) {
            return fail(std::move(done).error());
        }
    }
    return app;
}

std::uint16_t BrokerApp::port() const noexcept {
    return parts_->front->port();
}

void BrokerApp::stop(std::chrono::milliseconds grace) {
    if (!parts_) {
        return;
    }
    auto& parts = *parts_;
    if (parts.pop) {
        parts.pop->close(); // parked pops look once more; their answers are among those in flight
    }
    if (parts.repairs) {
        parts.repairs->stop();
    }
    if (parts.peer_hints) {
        parts.peer_hints->stop();
        parts.missed_hints->stop();
    }
    if (parts.front) {
        parts.front->stop(grace);
    }
    if (parts.timer_driver) { // what it asked for is answered while there are workers
        parts.timer_driver->stop();
    }
    if (parts.timer_firing) { // other brokers fire what this one has in hand
        stop_and_wait(grace, [&](auto over) { parts.timer_firing->stop(std::move(over)); });
    }
    if (parts.meshes) { // peers are told of what was answered, as far as they read
        for (const auto& entry : parts.meshes->all()) {
            entry.link->stop();
        }
    }
    if (parts.scheduler) {
        parts.scheduler->stop(grace); // turns are given back while there are workers
    }
    if (parts.plugin_services) {
        parts.plugin_services->stop(); // walks are told that they end while there are workers
    }
    if (parts.switches) {
        parts.switches->stop();
    }
    if (parts.cluster_counts && grace.count() > 0) {
        stop_and_wait(grace, [&](auto over) { parts.cluster_counts->stop(std::move(over)); });
    }
    if (parts.executor) {
        parts.executor->stop(grace);
    }
    if (parts.plugin_services) {
        parts.plugin_services->detach();
    }
    if (parts.metrics) {
        parts.metrics->stop();
    }
    // Nothing runs any more. Timers refer to the parking, requests to everything.
    parts.front.reset();
    parts.ticker.reset();
    parts.key_reader.reset();
    parts.routes.reset();
    if (parts.postgres) {
        if (const auto stopped = parts.postgres->stop(EmbeddedPostgres::Shutdown::fast); !stopped) {
            Poco::Logger::get("queend").warning(stopped.error().message);
        }
    }
    parts_.reset();
}

} // namespace queen::app
