#include "app/plugin_services.hpp"

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

} // namespace

PluginServices::PluginServices(broker::Parking& parking, Workers& workers, Ticker& ticker,
                               const Clock& clock)
    : parking_(parking), workers_(workers), clock_(clock),
      ticks_(pluginhost::TickDriver::make(ticker, clock)) {}

pluginhost::HostServices PluginServices::services() {
    const auto wake = [this](const plugin::Queue& queue, std::string_view group,
                             std::uint64_t ready) {
        parking_.wake_wildcards(queue.key, group, ready);
    };
    return {.clock = &clock_,
            .log = log,
            .wake = wake,
            .reseed = [this](std::string_view source, const plugin::Scope& scope,
                             plugin::Ticket ticket, Nanoseconds) { reseed(source, scope, ticket); },
            .tick_at = [ticks = ticks_](SteadyTime when) { ticks->pull(when); }};
}

void PluginServices::attach(pluginhost::PluginHost& host) {
    {
        const std::lock_guard lock(mutex_);
        host_ = &host;
    }
    ticks_->start([&host](SteadyTime now) { return host.run_ticks(now); });
}

void PluginServices::detach() {
    ticks_->stop();
    const std::lock_guard lock(mutex_);
    host_ = nullptr;
}

void PluginServices::reseed(std::string_view source, const plugin::Scope& scope,
                            plugin::Ticket ticket) {
    // There are no reseed pages in this version: the walk ends incomplete, which tells the source
    // to rely on scans. The promise "exactly one reseed_done, never inside the call" is kept.
    workers_.post([this, source = std::string(source), key = std::string(scope.queue.key),
                   tenant = std::string(scope.queue.tenant), name = std::string(scope.queue.name),
                   group = std::string(scope.group), ticket] {
        std::shared_ptr<plugin::CandidateSource> asked;
        {
            const std::lock_guard lock(mutex_);
            asked = host_ != nullptr ? host_->source(source) : nullptr;
        }
        if (asked) {
            asked->reseed_done({{key, tenant, name}, group}, ticket, false);
        }
    });
}

} // namespace queen::app
