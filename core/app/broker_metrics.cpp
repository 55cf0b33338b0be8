#include "app/broker_metrics.hpp"

#include <utility>

namespace queen::app {

BrokerMetrics::BrokerMetrics(Parts parts, Ticker& ticker, Workers& workers, const Clock& clock,
                             metrics::RateWatch::Log log)
    : parts_(std::move(parts)), clock_(clock), start_(clock.now()),
      watch_(metrics::RateWatch::make(
          ticker, workers, clock, [this] { return sample(); }, std::move(log))) {}

void BrokerMetrics::start() {
    watch_->start();
}

void BrokerMetrics::stop() {
    watch_->stop();
}

std::string BrokerMetrics::prometheus(const ClusterFigures* cluster) const {
    metrics::Page page;
    collect_process(page, clock_.now() - start_, metrics::read_process());
    collect_activity(page, *parts_.activity);
    collect_rates(page, *watch_);
    if (cluster != nullptr) {
        collect_cluster(page, *cluster);
    }
    collect_switches(page, parts_.switches);
    collect_parking(page, parts_.parking);
    if (parts_.ack_registry != nullptr) {
        collect_ack_registry(page, parts_.ack_registry->stats());
    }
    if (parts_.dedup != nullptr) {
        collect_dedup(page, parts_.dedup->stats());
    }
    for (const auto& [name, source] : parts_.sources) {
        collect_source(page, name, *source);
    }
    collect_meshes(page, parts_.meshes, parts_.peer_hints.stats(), parts_.peer_hints.waiting());
    collect_reseeds(page, parts_.reseeds());
    collect_plugins(page, parts_.plugins());
    collect_tasks(page, parts_.tasks());
    collect_retention(page, parts_.retention());
    parts_.timers(page);
    collect_executor(page, parts_.executor());
    collect_statements(page, parts_.statements);
    collect_front(page, parts_.front());
    return page.text();
}

/// The contract's object. What a garbage collector would say (heap and buffers) is 0 here.
void BrokerMetrics::write_json(json::Writer& writer) const {
    const auto now = sample();
    const auto rates = watch_->rates();
    const auto process = metrics::read_process();
    const auto integer = [](auto value) { return static_cast<std::int64_t>(value); };
    const auto uptime = std::chrono::floor<std::chrono::seconds>(clock_.now() - start_);
    writer.begin_object();
    writer.key("uptime").integer(uptime.count());
    writer.key("requests").begin_object();
    writer.key("total").integer(integer(now.http_requests));
    writer.key("rate").integer(integer(rates.http_requests));
    writer.end_object().key("messages").begin_object();
    writer.key("total").integer(integer(now.push_messages + now.pop_messages));
    writer.key("rate").integer(integer(rates.push_messages + rates.pop_messages));
    writer.end_object().key("database").begin_object();
    writer.key("poolSize").integer(integer(now.pool_size));
    writer.key("idleConnections").integer(integer(now.pool_size - now.pool_active));
    writer.key("waitingRequests").integer(integer(now.waiting));
    writer.end_object().key("memory").begin_object();
    writer.key("rss").integer(integer(process.resident_bytes));
    for (const char* absent : {"heapTotal", "heapUsed", "external", "arrayBuffers"}) {
        writer.key(absent).integer(0);
    }
    writer.end_object().key("cpu").begin_object();
    writer.key("user").integer(process.cpu_user.count());
    writer.key("system").integer(process.cpu_system.count());
    writer.end_object().end_object();
}

metrics::Sample BrokerMetrics::sample() const {
    const auto& activity = *parts_.activity;
    const auto executor = parts_.executor();
    const auto front = parts_.front();
    metrics::Sample sample{.push_requests = activity.push.requests.value(),
                           .push_messages = activity.push.messages.value(),
                           .pop_answers = activity.pop.taken.value() + activity.pop.empty.value(),
                           .pop_messages = activity.pop.messages.value(),
                           .pop_empty = activity.pop.empty.value(),
                           .ack_requests = activity.ack.requests.value(),
                           .ack_messages = activity.ack.messages.value(),
                           .http_requests = front.requests,
                           .loop_lags = front.lag.count(),
                           .loop_lag = front.lag.sum,
                           .parked = parts_.parking.parked(),
                           .pool_active = executor.in_use,
                           .pool_size = executor.sessions,
                           .waiting = 0,
                           .connections = front.open,
                           .queues = activity.queues.size(),
                           .resident_bytes = metrics::read_process().resident_bytes,
                           .parked_by_queue = metrics::bounded(parts_.parking.parked_by_queue())};
    for (const auto& lane : executor.lanes) {
        sample.waiting += lane.waiting;
    }
    return sample;
}

} // namespace queen::app
