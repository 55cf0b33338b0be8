#include "broker/groups.hpp"

#include <utility>

namespace queen::broker {

void MovedCursors::tell(const Repair& repair) {
    if (repair.partition && repair.partition_id.known() && !repair.waits) {
        announcer_.moved(repair.tenant, repair.queue, repair.group, *repair.partition,
                         repair.partition_id);
        return;
    }
    // The marker of the group may be gone with its cursors: first contact tells.
    pop_.forget(repair.tenant, repair.queue, repair.group);
    announcer_.forget(repair.tenant, repair.queue, repair.group);
}

void MovedCursors::made(const Repair& repair) {
    tell(repair);
    announcer_.tell_peers(
        {.kind = plugin::HintKind::moved,
         .tenant = repair.tenant,
         .queue = repair.queue,
         .partition = repair.partition ? std::string_view(*repair.partition) : std::string_view(),
         .group = repair.group});
}

void Groups::list(const std::string& tenant, Done<std::optional<std::string>> done) {
    figures_.ask(
        figure_question("groups", {tenant}),
        [this, tenant](SteadyTime deadline, Done<std::optional<std::string>> got) {
            store_.list_groups(deadline, tenant, always(std::move(got)));
        },
        std::move(done));
}

void Groups::lagging(const std::string& tenant, std::chrono::seconds more_than, std::int32_t limit,
                     Done<std::optional<std::string>> done) {
    figures_.ask(
        figure_question("lagging",
                        {tenant, std::to_string(more_than.count()), std::to_string(limit)}),
        [this, tenant, more_than, limit](SteadyTime deadline,
                                         Done<std::optional<std::string>> got) {
            store_.lagging(deadline, tenant, more_than, limit, always(std::move(got)));
        },
        std::move(done));
}

void Groups::detail(const std::string& tenant, const std::string& group,
                    const std::optional<std::string>& queue,
                    Done<std::optional<std::string>> done) {
    figures_.ask(
        figure_question("group", {tenant, group, queue ? "in" : "", queue.value_or("")}),
        [this, tenant, group, queue](SteadyTime deadline, Done<std::optional<std::string>> got) {
            store_.group_detail(deadline, tenant, group, queue, std::move(got));
        },
        std::move(done));
}

void Groups::seek(Seek seek, Done<SeekOutcome> done) {
    Repair repair{.tenant = seek.tenant,
                  .queue = seek.queue,
                  .group = seek.group,
                  .partition = seek.partition,
                  .partition_id = {}};
    store_.seek(clock_.now() + wait_, std::move(seek),
                [this, repair = std::move(repair),
                 done = std::move(done)](Result<SeekOutcome> outcome) mutable {
                    if (outcome) {
                        repair.partition_id = outcome->partition_id;
                        repair.waits = outcome->waits;
                        moved_.made(repair);
                    }
                    done(std::move(outcome));
                });
}

void Groups::remove(std::string tenant, std::string group, std::optional<std::string> queue,
                    bool subscriptions, Done<RemovedGroup> done) {
    store_.remove_group(
        clock_.now() + wait_, tenant, group, std::move(queue), subscriptions,
        [this, tenant, group, done = std::move(done)](Result<RemovedGroup> removed) {
            if (removed) {
                for (const auto& name : removed->queues) {
                    moved_.made({.tenant = tenant,
                                 .queue = name,
                                 .group = group,
                                 .partition = {},
                                 .partition_id = {}});
                }
            }
            done(std::move(removed));
        });
}

void Groups::subscribe(std::string tenant, std::string group, WallTime from,
                       Done<std::int64_t> done) {
    store_.subscribe(clock_.now() + wait_, std::move(tenant), std::move(group), from,
                     std::move(done));
}

} // namespace queen::broker
