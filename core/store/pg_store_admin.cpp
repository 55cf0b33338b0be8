// The administrative half of PgStore: queues as resources, figures, walks.
#include "store/pg_store.hpp"
#include "store/statements.hpp"

namespace queen::store {
namespace {

namespace sql = statements;

/// A statement over (tenant, queue).
Result<Rows> run_on_queue(Session& session, const Statement& statement, const std::string& tenant,
                          const std::string& queue) {
    const auto id = tenant_id(tenant);
    if (!id) {
        return fail(id.error());
    }
    Parameters parameters;
    parameters.uuid(*id).text(queue);
    return session.run(statement, parameters);
}

/// A statement over (tenant, queue, after, limit).
Result<Rows> run_on_page(Session& session, const Statement& statement, const std::string& tenant,
                         const std::string& queue, const PartitionPage& page) {
    const auto id = tenant_id(tenant);
    if (!id) {
        return fail(id.error());
    }
    Parameters parameters;
    parameters.uuid(*id).text(queue).text_or_null(page.after).int4(page.limit);
    return session.run(statement, parameters);
}

/// A statement over (tenant), or (tenant, what) when that is not empty.
Result<Rows> run_on_tenant(Session& session, const Statement& statement, const std::string& tenant,
                           std::string_view what) {
    const auto id = tenant_id(tenant);
    if (!id) {
        return fail(id.error());
    }
    Parameters parameters;
    parameters.uuid(*id);
    if (!what.empty()) {
        parameters.text(what);
    }
    return session.run(statement, parameters);
}

Result<Rows> run_reseed(Session& session, const ReseedQuery& query) {
    const auto tenant = tenant_id(query.tenant);
    if (!tenant) {
        return fail(tenant.error());
    }
    const bool windowed = query.window.count() > 0;
    std::optional<Uuid> id;
    std::optional<WallTime> written, cutoff;
    if (query.after) {
        id = query.after->partition_id;
        written = query.after->written;
        cutoff = query.after->cutoff;
    }
    constexpr std::uint32_t kMost = std::numeric_limits<std::int32_t>::max();
    const auto limit = static_cast<std::int32_t>(std::min(query.partitions, kMost));
    Parameters parameters;
    parameters.text(query.queue).text(query.group);
    if (!windowed) {
        parameters.uuid_or_null(id).int4(limit).uuid(*tenant);
        return session.run(sql::kReseedPage, parameters);
    }
    parameters.timestamptz_or_null(written).uuid_or_null(id).int4(limit);
    parameters.int8(query.window.count()).uuid(*tenant).timestamptz_or_null(cutoff);
    return session.run(sql::kReseedWindowPage, parameters);
}

Result<ReseedPage> decode_reseed(const Rows& rows) {
    Row row(rows, 0);
    ReseedPage page;
    page.exists = row.boolean(0);
    page.delay_seconds = row.integer(1);
    page.window_seconds = row.integer(2);
    if (!row.null(3)) {
        page.queue_id = row.uuid(3);
    }
    page.deleted = row.integer(4);
    if (!row.null(5)) {
        const auto names = row.text_array(5);
        const auto ids = row.uuid_array(6);
        if (names.size() != ids.size()) {
            return fail(Errc::internal, "reseed page: as many names as ids wanted");
        }
        page.rows.reserve(names.size());
        for (std::size_t i = 0; i < names.size(); ++i) {
            page.rows.push_back({std::string(names[i]), ids[i]});
        }
    }
    if (!row.null(7)) {
        page.next.emplace().partition_id = row.uuid(7);
        if (rows.columns() > 8) {
            page.next->written = row.timestamptz(8);
            page.next->cutoff = row.timestamptz(9);
        }
    }
    if (auto status = row.status(); !status) {
        return fail(std::move(status.error()));
    }
    return page;
}

} // namespace

void PgStore::configure(Deadline deadline, std::string tenant, std::string queue,
                        std::string options_json, Done<std::string> done) {
    asker_.ask<std::string>(
        Lane::admin, deadline,
        [tenant = std::move(tenant), queue = std::move(queue),
         options = std::move(options_json)](Session& session) -> Result<Rows> {
            const auto id = tenant_id(tenant);
            if (!id) {
                return fail(id.error());
            }
            Parameters parameters;
            parameters.text(queue).jsonb(options).uuid(*id);
            return session.run(sql::kConfigureQueue, parameters);
        },
        decode_text, std::move(done));
}

void PgStore::delete_queue(Deadline deadline, std::string tenant, std::string queue,
                           Done<bool> done) {
    asker_.ask<bool>(
        Lane::admin, deadline,
        [tenant = std::move(tenant), queue = std::move(queue)](Session& session) {
            return run_on_queue(session, sql::kDeleteQueue, tenant, queue);
        },
        decode_bool, std::move(done));
}

void PgStore::queue_detail(Deadline deadline, std::string tenant, std::string queue,
                           PartitionPage page, Done<std::optional<std::string>> done) {
    asker_.ask<std::optional<std::string>>(
        Lane::admin, deadline,
        [tenant = std::move(tenant), queue = std::move(queue),
         page = std::move(page)](Session& session) {
            return run_on_page(session, sql::kQueueDetail, tenant, queue, page);
        },
        decode_if_any, std::move(done), Repeat::once);
}

void PgStore::queue_depth(Deadline deadline, std::string tenant, std::string queue,
                          std::optional<std::string> group, PartitionPage page,
                          Done<std::optional<std::string>> done) {
    asker_.ask<std::optional<std::string>>(
        Lane::admin, deadline,
        [tenant = std::move(tenant), queue = std::move(queue), group = std::move(group),
         page = std::move(page)](Session& session) -> Result<Rows> {
            const auto id = tenant_id(tenant);
            if (!id) {
                return fail(id.error());
            }
            Parameters parameters;
            parameters.text(queue).text_or_null(group).uuid(*id);
            parameters.text_or_null(page.after).int4(page.limit);
            return session.run(sql::kQueueDepth, parameters);
        },
        decode_if_any, std::move(done), Repeat::once);
}

void PgStore::queue_sizes(Deadline deadline, std::string tenant, std::string queue,
                          PartitionPage page, Done<std::optional<std::string>> done) {
    asker_.ask<std::optional<std::string>>(
        Lane::admin, deadline,
        [tenant = std::move(tenant), queue = std::move(queue),
         page = std::move(page)](Session& session) {
            return run_on_page(session, sql::kQueueSizes, tenant, queue, page);
        },
        decode_if_any, std::move(done), Repeat::once);
}

void PgStore::list_queues(Deadline deadline, std::string tenant, Done<std::string> done) {
    asker_.ask<std::string>(
        Lane::admin, deadline,
        [tenant = std::move(tenant)](Session& session) {
            return run_on_tenant(session, sql::kListQueues, tenant, {});
        },
        decode_text, std::move(done), Repeat::once);
}

void PgStore::list_labels(Deadline deadline, std::string tenant, Label label,
                          Done<std::string> done) {
    asker_.ask<std::string>(
        Lane::admin, deadline,
        [tenant = std::move(tenant), label](Session& session) {
            return run_on_tenant(session, sql::kListLabels, tenant,
                                 label == Label::task ? "task" : "namespace");
        },
        decode_text, std::move(done), Repeat::once);
}

void PgStore::overview(Deadline deadline, std::string tenant, Done<std::string> done) {
    asker_.ask<std::string>(
        Lane::admin, deadline,
        [tenant = std::move(tenant)](Session& session) {
            return run_on_tenant(session, sql::kOverview, tenant, {});
        },
        decode_text, std::move(done), Repeat::once);
}

/// In the lane that yields to all others: a walk may be late, a pop must not wait for it.
void PgStore::reseed_page(Deadline deadline, ReseedQuery query, Done<ReseedPage> done) {
    asker_.ask<ReseedPage>(
        Lane::admin, deadline,
        [query = std::move(query)](Session& session) { return run_reseed(session, query); },
        decode_reseed, std::move(done), Repeat::once);
}

void PgStore::ping(Deadline deadline, Done<void> done) {
    asker_.ask<void>(
        Lane::admin, deadline,
        [](Session& session) { return session.run(sql::kPing, Parameters{}); },
        [](const Rows&) { return Result<void>{}; }, std::move(done), Repeat::once);
}

} // namespace queen::store
