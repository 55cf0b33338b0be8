#include "broker/admin.hpp"

#include "base/json.hpp"

#include <algorithm>
#include <utility>

namespace queen::broker {
namespace {

std::string question(std::string_view what, const std::string& tenant, const std::string& queue,
                     const PartitionPage& page) {
    return figure_question(what, {tenant, queue, page.after ? "after" : "", page.after.value_or(""),
                                  std::to_string(page.limit)});
}

/// What pops go by, in the answer to a configure; nullopt when it set nothing.
std::optional<QueueSettings> settings_in(std::string_view answer) {
    const auto document = json::Document::parse(answer);
    if (!document) {
        return std::nullopt;
    }
    const auto options = document->root()["options"];
    const auto delay = options["delayedProcessing"].integer();
    const auto window = options["windowBuffer"].integer();
    const auto min_wait = options["minPopWaitTime"].integer();
    if (!delay || !window) {
        return std::nullopt;
    }
    return QueueSettings{{std::chrono::seconds(*delay), std::chrono::seconds(*window), {}},
                         std::chrono::milliseconds(min_wait.value_or(0))};
}

} // namespace

Admin::Admin(Store& store, Pop& pop, Announcer& announcer, const Clock& clock,
             std::chrono::milliseconds wait)
    : store_(store), pop_(pop), announcer_(announcer), clock_(clock), wait_(wait),
      figures_(clock, wait) {}

void Admin::configure(std::string tenant, std::string queue, std::string options_json,
                      Done<std::string> done) {
    store_.configure(clock_.now() + wait_, tenant, queue, std::move(options_json),
                     [this, tenant, queue, done = std::move(done)](Result<std::string> answer) {
                         if (auto settings = answer ? settings_in(*answer) : std::nullopt) {
                             // As of the answer: a page of a reseed that was asked for before it
                             // may have read the settings as they were.
                             settings->visible.read_at = clock_.now();
                             pop_.configured(tenant, queue, *settings);
                             announcer_.configured(tenant, queue, settings->visible);
                             announcer_.tell_peers({.kind = plugin::HintKind::configured,
                                                    .tenant = tenant,
                                                    .queue = queue});
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
                                announcer_.tell_peers({.kind = plugin::HintKind::deleted,
                                                       .tenant = tenant,
                                                       .queue = queue});
                            }
                            done(std::move(deleted));
                        });
}

void Admin::queue_detail(const std::string& tenant, const std::string& queue,
                         const PartitionPage& page, Done<std::optional<std::string>> done) {
    figures_.ask(
        question("detail", tenant, queue, page),
        [this, tenant, queue, page](SteadyTime deadline, Done<std::optional<std::string>> got) {
            store_.queue_detail(deadline, tenant, queue, page, std::move(got));
        },
        std::move(done));
}

void Admin::queue_depth(const std::string& tenant, const std::string& queue,
                        const std::optional<std::string>& group, const PartitionPage& page,
                        Done<std::optional<std::string>> done) {
    figures_.ask(
        question("depth", tenant, queue, page) +
            figure_question("", {group ? "of" : "", group.value_or("")}),
        [this, tenant, queue, group, page](SteadyTime deadline,
                                           Done<std::optional<std::string>> got) {
            store_.queue_depth(deadline, tenant, queue, group, page, std::move(got));
        },
        std::move(done));
}

void Admin::queue_sizes(const std::string& tenant, const std::string& queue,
                        const PartitionPage& page, Done<std::optional<std::string>> done) {
    figures_.ask(
        question("sizes", tenant, queue, page),
        [this, tenant, queue, page](SteadyTime deadline, Done<std::optional<std::string>> got) {
            store_.queue_sizes(deadline, tenant, queue, page, std::move(got));
        },
        std::move(done));
}

void Admin::list_queues(const std::string& tenant, Done<std::optional<std::string>> done) {
    figures_.ask(
        figure_question("queues", {tenant}),
        [this, tenant](SteadyTime deadline, Done<std::optional<std::string>> got) {
            store_.list_queues(deadline, tenant, always(std::move(got)));
        },
        std::move(done));
}

void Admin::list_labels(const std::string& tenant, Label label,
                        Done<std::optional<std::string>> done) {
    figures_.ask(
        figure_question(label == Label::task ? "tasks" : "namespaces", {tenant}),
        [this, tenant, label](SteadyTime deadline, Done<std::optional<std::string>> got) {
            store_.list_labels(deadline, tenant, label, always(std::move(got)));
        },
        std::move(done));
}

void Admin::overview(const std::string& tenant, Done<std::optional<std::string>> done) {
    figures_.ask(
        figure_question("overview", {tenant}),
        [this, tenant](SteadyTime deadline, Done<std::optional<std::string>> got) {
            store_.overview(deadline, tenant, always(std::move(got)));
        },
        std::move(done));
}

void Admin::ping(Done<void> done) {
    // A health check that waits as long as a statement would is no check.
    store_.ping(clock_.now() + std::min(wait_, std::chrono::milliseconds{2'000}), std::move(done));
}

} // namespace queen::broker
