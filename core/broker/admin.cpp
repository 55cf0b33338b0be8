#include "broker/admin.hpp"

#include "base/json.hpp"

#include <algorithm>
#include <utility>

namespace queen::broker {
namespace {

/// Seconds of delay and window in the answer to a configure; nullopt when it set nothing.
std::optional<plugin::QueueConfig> settings_in(std::string_view answer) {
    const auto document = json::Document::parse(answer);
    if (!document) {
        return std::nullopt;
    }
    const auto options = document->root()["options"];
    const auto delay = options["delayedProcessing"].integer();
    const auto window = options["windowBuffer"].integer();
    if (!delay || !window) {
        return std::nullopt;
    }
    return plugin::QueueConfig{std::chrono::seconds(*delay), std::chrono::seconds(*window), {}};
}

} // namespace

Admin::Admin(Store& store, Pop& pop, Announcer& announcer, const Clock& clock,
             std::chrono::milliseconds wait)
    : store_(store), pop_(pop), announcer_(announcer), clock_(clock), wait_(wait) {}

void Admin::configure(std::string tenant, std::string queue, std::string options_json,
                      Done<std::string> done) {
    store_.configure(clock_.now() + wait_, tenant, queue, std::move(options_json),
                     [this, tenant, queue, done = std::move(done)](Result<std::string> answer) {
                         if (auto config = answer ? settings_in(*answer) : std::nullopt) {
                             // As of the answer: a page of a reseed that was asked for before it
                             // may have read the settings as they were.
                             config->read_at = clock_.now();
                             announcer_.configured(tenant, queue, *config);
                         }
                         done(std::move(answer));
                     });
}

void Admin::delete_queue(std::string tenant, std::string queue, Done<bool> done) {
    store_.delete_queue(clock_.now() + wait_, tenant, queue,
                        [this, tenant, queue, done = std::move(done)](Result<bool> deleted) {
                            if (deleted && *deleted) {
                                pop_.forget(tenant, queue);
                                announcer_.forget(tenant, queue, {});
                            }
                            done(std::move(deleted));
                        });
}

void Admin::queue_detail(std::string tenant, std::string queue,
                         Done<std::optional<std::string>> done) {
    store_.queue_detail(clock_.now() + wait_, std::move(tenant), std::move(queue), std::move(done));
}

void Admin::list_queues(std::string tenant, Done<std::string> done) {
    store_.list_queues(clock_.now() + wait_, std::move(tenant), std::move(done));
}

void Admin::ping(Done<void> done) {
    // A health check that waits as long as a statement would is no check.
    store_.ping(clock_.now() + std::min(wait_, std::chrono::milliseconds{2'000}), std::move(done));
}

} // namespace queen::broker
