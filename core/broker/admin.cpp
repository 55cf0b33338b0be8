#include "broker/admin.hpp"

namespace queen::broker {

Admin::Admin(Store& store, Pop& pop, Announcer& announcer, const Clock& clock,
             std::chrono::milliseconds wait)
    : store_(store), pop_(pop), announcer_(announcer), clock_(clock), wait_(wait) {}

void Admin::configure(std::string tenant, std::string queue, std::string options_json,
                      Done<std::string> done) {
    store_.configure(clock_.now() + wait_, std::move(tenant), std::move(queue),
                     std::move(options_json), std::move(done));
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
