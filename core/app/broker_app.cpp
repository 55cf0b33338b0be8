#include "app/broker_app.hpp"

#include "app/broker_parts.hpp"

#include <Poco/Logger.h>

#include <algorithm>
#include <future>

namespace queen::app {
namespace {

/// How long a stopping broker waits until its last counts are in the database; what is not told
/// then is missing from the totals.
constexpr std::chrono::milliseconds kLastFlush{2'000};

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
    if (parts.timer_firing) {
        parts.timer_firing->stop();
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
        const auto told = std::make_shared<std::promise<void>>();
        parts.cluster_counts->stop([told] { told->set_value(); });
        told->get_future().wait_for(std::min(grace, kLastFlush));
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
