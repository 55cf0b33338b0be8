#include "store/pg_group_store.hpp"

#include "store/statements.hpp"

namespace queen::store {
namespace {

namespace sql = statements;

Result<Rows> run_list(Session& session, const std::string& tenant) {
    const auto id = tenant_id(tenant);
    if (!id) {
        return fail(id.error());
    }
    Parameters parameters;
    parameters.uuid(*id);
    return session.run(sql::kListGroups, parameters);
}

Result<Rows> run_seek(Session& session, const Seek& seek) {
    const auto tenant = tenant_id(seek.tenant);
    if (!tenant) {
        return fail(tenant.error());
    }
    Parameters parameters;
    parameters.text(seek.group).text(seek.queue);
    if (seek.partition) {
        parameters.text(*seek.partition);
    }
    parameters.boolean(!seek.to).timestamptz_or_null(seek.to).uuid(*tenant);
    return session.run(seek.partition ? sql::kSeekPartition : sql::kSeekGroup, parameters);
}

Result<SeekOutcome> decode_seek(const Rows& rows) {
    Row row(rows, 0);
    if (!row.null(0)) {
        // The only refusals that are left once the caller named a place.
        return fail(Errc::not_found, std::string(row.text(0)));
    }
    SeekOutcome outcome;
    outcome.moved = row.integer(1);
    if (!row.null(2)) {
        outcome.partition_id = row.uuid(2);
    }
    outcome.waits = row.boolean(3);
    if (auto status = row.status(); !status) {
        return fail(std::move(status.error()));
    }
    return outcome;
}

Result<RemovedGroup> decode_removed(const Rows& rows) {
    Row row(rows, 0);
    RemovedGroup removed;
    removed.cursors = row.integer(0);
    removed.subscription = row.boolean(1);
    for (const std::string_view queue : row.text_array(2)) {
        removed.queues.emplace_back(queue);
    }
    if (auto status = row.status(); !status) {
        return fail(std::move(status.error()));
    }
    return removed;
}

Result<std::vector<Repair>> decode_repairs(const Rows& rows) {
    return read_each<Repair>(rows, [](Row& row) {
        Repair repair;
        repair.tenant = to_string(row.uuid(0));
        repair.queue = row.text(1);
        repair.group = row.text(2);
        if (!row.null(3)) {
            repair.partition = row.text(3);
        }
        repair.at = row.timestamptz(4);
        if (!row.null(5)) {
            repair.partition_id = row.uuid(5);
        }
        repair.waits = row.boolean(6);
        return repair;
    });
}

} // namespace

void PgGroupStore::list_groups(Deadline deadline, std::string tenant, Done<std::string> done) {
    asker_.ask<std::string>(
        Lane::admin, deadline,
        [tenant = std::move(tenant)](Session& session) { return run_list(session, tenant); },
        decode_text, std::move(done), Repeat::once);
}

void PgGroupStore::lagging(Deadline deadline, std::string tenant, std::chrono::seconds more_than,
                           std::int32_t limit, Done<std::string> done) {
    asker_.ask<std::string>(
        Lane::admin, deadline,
        [tenant = std::move(tenant), more_than, limit](Session& session) -> Result<Rows> {
            const auto id = tenant_id(tenant);
            if (!id) {
                return fail(id.error());
            }
            Parameters parameters;
            parameters.uuid(*id).int4(static_cast<std::int32_t>(more_than.count())).int4(limit);
            return session.run(sql::kLagging, parameters);
        },
        decode_text, std::move(done), Repeat::once);
}

void PgGroupStore::group_detail(Deadline deadline, std::string tenant, std::string group,
                                std::optional<std::string> queue,
                                Done<std::optional<std::string>> done) {
    asker_.ask<std::optional<std::string>>(
        Lane::admin, deadline,
        [tenant = std::move(tenant), group = std::move(group),
         queue = std::move(queue)](Session& session) -> Result<Rows> {
            const auto id = tenant_id(tenant);
            if (!id) {
                return fail(id.error());
            }
            Parameters parameters;
            parameters.uuid(*id).text(group).text_or_null(queue);
            return session.run(sql::kGroupDetail, parameters);
        },
        decode_if_any, std::move(done), Repeat::once);
}

void PgGroupStore::seek(Deadline deadline, Seek seek, Done<SeekOutcome> done) {
    asker_.ask<SeekOutcome>(
        Lane::admin, deadline,
        [seek = std::move(seek)](Session& session) { return run_seek(session, seek); }, decode_seek,
        std::move(done));
}

void PgGroupStore::remove_group(Deadline deadline, std::string tenant, std::string group,
                                std::optional<std::string> queue, bool subscriptions,
                                Done<RemovedGroup> done) {
    asker_.ask<RemovedGroup>(
        Lane::admin, deadline,
        [tenant = std::move(tenant), group = std::move(group), queue = std::move(queue),
         subscriptions](Session& session) -> Result<Rows> {
            const auto id = tenant_id(tenant);
            if (!id) {
                return fail(id.error());
            }
            Parameters parameters;
            parameters.text(group).boolean(subscriptions).uuid(*id).text_or_null(queue);
            return session.run(sql::kDeleteGroup, parameters);
        },
        decode_removed, std::move(done));
}

void PgGroupStore::subscribe(Deadline deadline, std::string tenant, std::string group,
                             WallTime from, Done<std::int64_t> done) {
    asker_.ask<std::int64_t>(
        Lane::admin, deadline,
        [tenant = std::move(tenant), group = std::move(group),
         from](Session& session) -> Result<Rows> {
            const auto id = tenant_id(tenant);
            if (!id) {
                return fail(id.error());
            }
            Parameters parameters;
            parameters.text(group).timestamptz_or_null(from).uuid(*id);
            return session.run(sql::kSubscribeGroup, parameters);
        },
        decode_count, std::move(done));
}

void PgGroupStore::repairs(Deadline deadline, Done<std::vector<Repair>> done) {
    asker_.ask<std::vector<Repair>>(
        Lane::admin, deadline,
        [](Session& session) { return session.run(sql::kRepairs, Parameters{}); }, decode_repairs,
        std::move(done), Repeat::once);
}

} // namespace queen::store
