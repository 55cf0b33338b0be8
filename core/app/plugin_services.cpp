#include "app/plugin_services.hpp"

#include "model/names.hpp"

#include <Poco/Logger.h>

#include <string>

namespace queen::app {
namespace {

void log(std::string_view plugin, queen_log_level level, std::string_view text) {
    auto& logger = Poco::Logger::get("plugin." + std::string(plugin));
    const std::string line(text);
    switch (level) {
    case QUEEN_LOG_ERROR:
        logger.error(line);
        return;
    case QUEEN_LOG_WARNING:
        logger.warning(line);
        return;
    case QUEEN_LOG_INFO:
        logger.information(line);
        return;
    case QUEEN_LOG_DEBUG:
        logger.debug(line);
        return;
    }
}

/// A source that forgot a queue has nobody in line there: one waiter of each scope looks again, and
/// with that the source begins anew.
broker::Reseeder::Options with_wakes(broker::Reseeder::Options walks, broker::Parking& parking) {
    walks.forgot = [&parking](std::string_view tenant, std::string_view queue) {
        parking.wake(queue_key(tenant, queue), {}, {}, 1, broker::Parking::Urgency::at_once);
    };
    return walks;
}

} // namespace

PluginServices::PluginServices(broker::Parking& parking, Store& store, Workers& workers,
                               Ticker& ticker, const Clock& clock, broker::Reseeder::Options walks,
                               std::string conninfo)
    : parking_(parking), clock_(clock), ticks_(pluginhost::TickDriver::make(ticker, clock)),
      conninfo_(std::move(conninfo)), reseeder_(
                                          store, workers, clock,
                                          [this](std::string_view name) -> broker::SourcePtr {
                                              const auto* host = host_.load();
                                              return host != nullptr ? host->source(name) : nullptr;
                                          },
                                          with_wakes(std::move(walks), parking)) {}

pluginhost::HostServices PluginServices::services() {
    const auto wake = [this](const plugin::Queue& queue, std::string_view group,
                             std::uint64_t ready) {
        parking_.wake_wildcards(queue.key, group, ready);
    };
    const auto reseed = [this](std::string_view source, const plugin::Scope& scope,
                               plugin::Ticket ticket, Nanoseconds window) {
        reseeder_.reseed(source, scope, ticket, window);
    };
    return {.clock = &clock_,
            .thread_time = SystemClock::thread_time,
            .log = log,
            .wake = wake,
            .reseed = reseed,
            .tick_at = [ticks = ticks_](SteadyTime when) { ticks->pull(when); },
            .heard =
                [this](std::string_view, std::span<const plugin::Hint> hints) {
                    if (auto* const peers = hints_.load()) {
                        peers->heard(hints);
                    }
                },
            .missed =
                [this](std::string_view) {
                    if (auto* const peers = hints_.load()) {
                        peers->missed();
                    }
                },
            .conninfo = conninfo_};
}

void PluginServices::attach(pluginhost::PluginHost& host) {
    host_ = &host;
    reseeder_.open();
    ticks_->start([&host](SteadyTime now) { return host.run_ticks(now); });
}

void PluginServices::stop() {
    ticks_->stop();
    reseeder_.close();
}

void PluginServices::detach() {
    stop();
    host_ = nullptr;
}

} // namespace queen::app
