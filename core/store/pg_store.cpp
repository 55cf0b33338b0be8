#include "store/pg_store.hpp"

#include "base/text.hpp"
#include "store/answers.hpp"
#include "store/statements.hpp"

#include <algorithm>
#include <limits>

namespace queen::store {
namespace {

namespace sql = statements;

/// Tenants come as text from header, token or settings, and were checked there.
Result<Uuid> tenant_id(std::string_view tenant) {
    const auto id = parse_uuid(tenant);
    if (!id) {
        return fail(Errc::invalid_argument, "tenant is not a uuid");
    }
    return *id;
}

std::string_view status_text(AckStatus status) {
    switch (status) {
    case AckStatus::completed:
        return "completed";
    case AckStatus::failed:
        return "failed";
    case AckStatus::retry:
        return "retry";
    case AckStatus::dlq:
        return "dlq";
    }
    return "failed";
}

Result<Rows> run_push(Session& session, const std::vector<PushSegment>& segments) {
    std::vector<std::string_view> queues, partitions, hashes, blobs;
    std::vector<std::int32_t> counts;
    std::vector<std::int64_t> verified, vouch_from, vouch_upto;
    std::vector<Uuid> tenants, vouch_ids;
    std::vector<WallTime> vouch_at;
    for (const PushSegment& segment : segments) {
        const auto tenant = tenant_id(segment.tenant);
        if (!tenant) {
            return fail(tenant.error());
        }
        tenants.push_back(*tenant);
        queues.push_back(segment.queue);
        partitions.push_back(segment.partition);
        counts.push_back(static_cast<std::int32_t>(segment.count));
        hashes.push_back(segment.hashes);
        verified.push_back(segment.verified);
        blobs.push_back(segment.blob);
        const Vouch vouch = segment.vouch.value_or(Vouch{}); // no partition has the id of zeros
        vouch_ids.push_back(vouch.partition_id);
        vouch_from.push_back(vouch.from.value());
        vouch_upto.push_back(vouch.upto.value());
        vouch_at.push_back(vouch.at);
    }
    Parameters parameters;
    parameters.text_array(queues).text_array(partitions).int4_array(counts).bytea_array(hashes);
    parameters.int8_array(verified).bytea_array(blobs).uuid_array(tenants);
    parameters.uuid_array(vouch_ids).int8_array(vouch_from).int8_array(vouch_upto);
    parameters.timestamptz_array(vouch_at);
    return session.run(sql::kPushMulti, parameters);
}

/// The arguments that all pops end their lists with, in the procedures' order.
struct PopTail {
    bool with_max_partitions = true;
    bool with_skip_window = false;
};

Result<Rows> run_pop(Session& session, const Statement& statement, const PopArgs& args,
                     Parameters parameters, PopTail tail) {
    const auto tenant = tenant_id(args.tenant);
    if (!tenant) {
        return fail(tenant.error());
    }
    parameters.int4(args.budget).int4(args.lease_seconds).text(args.worker).boolean(args.auto_ack);
    if (tail.with_max_partitions) {
        parameters.int4(args.max_partitions);
    }
    parameters.text(args.sub_mode).text(args.sub_from);
    if (tail.with_skip_window) {
        parameters.boolean(args.skip_window);
    }
    parameters.uuid(*tenant);
    return session.run(statement, parameters);
}

/// No row is the same as an empty answer: nothing to deliver.
Result<PopResult> decode_pop(const Rows& rows) {
    if (rows.count() == 0) {
        return PopResult{};
    }
    Row row(rows, 0);
    const std::string_view meta = row.text(0);
    const auto blobs = row.null(1) ? std::vector<std::string_view>{} : row.bytea_array(1);
    if (auto status = row.status(); !status) {
        return fail(std::move(status.error()));
    }
    auto result = read_pop(meta, blobs);
    if (result && rows.columns() > 2 && !row.null(2)) {
        const std::string_view states = row.text(2);
        auto status = row.status();
        if (status) {
            status = read_states(states, *result);
        }
        if (!status) {
            return fail(std::move(status.error()));
        }
    }
    return result;
}

Result<bool> decode_bool(const Rows& rows) {
    Row row(rows, 0);
    const bool value = row.boolean(0);
    if (auto status = row.status(); !status) {
        return fail(std::move(status.error()));
    }
    return value;
}

/// The one text or jsonb value of the answer.
Result<std::string_view> only_text(const Rows& rows) {
    Row row(rows, 0);
    const std::string_view value = row.text(0);
    if (auto status = row.status(); !status) {
        return fail(std::move(status.error()));
    }
    return value;
}

Result<std::string> decode_text(const Rows& rows) {
    return only_text(rows).map([](std::string_view text) { return std::string(text); });
}

/// As decode_text; null is nothing.
Result<std::optional<std::string>> decode_if_any(const Rows& rows) {
    if (Row(rows, 0).null(0)) {
        return std::optional<std::string>{};
    }
    return decode_text(rows).map([](std::string text) { return std::optional(std::move(text)); });
}

Result<std::optional<StoredSegment>> decode_segment(const Rows& rows) {
    if (rows.count() == 0) {
        return std::optional<StoredSegment>{};
    }
    Row row(rows, 0);
    StoredSegment segment{.base = Offset{row.integer(0)},
                          .end = Offset{row.integer(1)},
                          .created_at = row.timestamptz(2),
                          .blob = std::string(row.bytea(3))};
    if (auto status = row.status(); !status) {
        return fail(std::move(status.error()));
    }
    return std::optional(std::move(segment));
}

Result<std::vector<HashRow>> decode_hashes(const Rows& rows) {
    std::vector<HashRow> out;
    out.reserve(static_cast<std::size_t>(rows.count()));
    for (int i = 0; i < rows.count(); ++i) {
        Row row(rows, i);
        out.push_back({.base = Offset{row.integer(0)},
                       .end = Offset{row.integer(1)},
                       .created_at = row.timestamptz(2),
                       .hashes = std::string(row.bytea(3))});
        if (auto status = row.status(); !status) {
            return fail(std::move(status.error()));
        }
    }
    return out;
}

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

Result<Rows> run_pending(Session& session, const PendingQuery& query) {
    const auto tenant = tenant_id(query.tenant);
    if (!tenant) {
        return fail(tenant.error());
    }
    Parameters parameters;
    if (query.labels) {
        parameters.text(query.labels->first).text(query.labels->second);
        parameters.text(query.group).uuid(*tenant);
        return session.run(sql::kDiscoverHasPending, parameters);
    }
    parameters.text(query.queue);
    if (query.partition) {
        parameters.text(*query.partition).text(query.group).uuid(*tenant);
        return session.run(sql::kPartitionHasPending, parameters);
    }
    parameters.text(query.group).uuid(*tenant);
    return session.run(sql::kHasPending, parameters);
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
        const auto names = row.text_array(3);
        const auto ids = row.uuid_array(4);
        if (names.size() != ids.size()) {
            return fail(Errc::internal, "reseed page: as many names as ids wanted");
        }
        page.rows.reserve(names.size());
        for (std::size_t i = 0; i < names.size(); ++i) {
            page.rows.push_back({std::string(names[i]), ids[i]});
        }
    }
    if (!row.null(5)) {
        page.next.emplace().partition_id = row.uuid(5);
        if (rows.columns() > 6) {
            page.next->written = row.timestamptz(6);
            page.next->cutoff = row.timestamptz(7);
        }
    }
    if (auto status = row.status(); !status) {
        return fail(std::move(status.error()));
    }
    return page;
}

} // namespace

template <class X>
void PgStore::ask(Lane lane, Deadline deadline, std::function<Result<Rows>(Session&)> call,
                  std::function<Result<X>(const Rows&)> decode, Done<X> done, Repeat repeat) {
    executor_.submit<Rows>(
        lane, deadline,
        [counters = counters_, call = std::move(call)](Session& session) {
            CountedSession counted(session, *counters);
            return call(counted);
        },
        [decode = std::move(decode), done = std::move(done)](Result<Rows> rows) {
            if (!rows) {
                done(fail(std::move(rows.error())));
            } else {
                done(decode(*rows));
            }
        },
        repeat);
}

void PgStore::push(Deadline deadline, std::vector<PushSegment> segments,
                   Done<std::vector<PushOutcome>> done) {
    const std::size_t count = segments.size();
    ask<std::vector<PushOutcome>>(
        Lane::push, deadline,
        [segments = std::move(segments)](Session& session) { return run_push(session, segments); },
        [count](const Rows& rows) {
            return only_text(rows).and_then(
                [count](std::string_view json) { return read_push(json, count); });
        },
        std::move(done));
}

void PgStore::segment_at(Deadline deadline, Uuid partition_id, Offset offset,
                         Done<std::optional<StoredSegment>> done) {
    ask<std::optional<StoredSegment>>(
        Lane::push, deadline,
        [partition_id, offset](Session& session) {
            Parameters parameters;
            parameters.uuid(partition_id).int8(offset.value());
            return session.run(sql::kSegmentAt, parameters);
        },
        decode_segment, std::move(done), Repeat::once);
}

void PgStore::window_hashes(Deadline deadline, HashPage page, Done<std::vector<HashRow>> done) {
    ask<std::vector<HashRow>>(
        Lane::admin, deadline,
        [page](Session& session) {
            Parameters parameters;
            parameters.uuid(page.partition_id).int8(page.edge.value());
            parameters.boolean(page.downwards).int8(page.bytes);
            return session.run(sql::kWindowHashes, parameters);
        },
        decode_hashes, std::move(done), Repeat::once);
}

void PgStore::pop_list(Deadline deadline, PopArgs args, std::vector<std::string> partitions,
                       Done<PopResult> done) {
    ask<PopResult>(
        Lane::pop, deadline,
        [args = std::move(args), partitions = std::move(partitions)](Session& session) {
            const std::vector<std::string_view> names(partitions.begin(), partitions.end());
            Parameters parameters;
            parameters.text(args.queue).text(args.group).text_array(names);
            return run_pop(session, sql::kPopList, args, std::move(parameters),
                           {.with_skip_window = true});
        },
        decode_pop, std::move(done));
}

void PgStore::pop_wildcard(Deadline deadline, PopArgs args, Done<PopResult> done) {
    ask<PopResult>(
        Lane::pop, deadline,
        [args = std::move(args)](Session& session) {
            Parameters parameters;
            parameters.text(args.queue).text(args.group);
            return run_pop(session, sql::kPopWildcard, args, std::move(parameters), {});
        },
        decode_pop, std::move(done));
}

void PgStore::pop_specific(Deadline deadline, PopArgs args, std::string partition,
                           Done<PopResult> done) {
    ask<PopResult>(
        Lane::pop, deadline,
        [args = std::move(args), partition = std::move(partition)](Session& session) {
            Parameters parameters;
            parameters.text(args.queue).text(partition).text(args.group);
            return run_pop(session, sql::kPopSpecific, args, std::move(parameters),
                           {.with_max_partitions = false});
        },
        decode_pop, std::move(done));
}

void PgStore::pop_discover(Deadline deadline, PopArgs args, std::string ns, std::string task,
                           Done<PopResult> done) {
    ask<PopResult>(
        Lane::pop, deadline,
        [args = std::move(args), ns = std::move(ns), task = std::move(task)](Session& session) {
            Parameters parameters;
            parameters.text(ns).text(task).text(args.group);
            return run_pop(session, sql::kPopDiscover, args, std::move(parameters), {});
        },
        decode_pop, std::move(done));
}

void PgStore::has_pending(Deadline deadline, PendingQuery query, Done<bool> done) {
    ask<bool>(
        Lane::pop, deadline,
        [query = std::move(query)](Session& session) { return run_pending(session, query); },
        decode_bool, std::move(done), Repeat::once);
}

void PgStore::release_undelivered(Deadline deadline, Uuid partition_id, std::string group,
                                  std::string worker, Done<bool> done) {
    ask<bool>(
        Lane::ack, deadline,
        [partition_id, group = std::move(group), worker = std::move(worker)](Session& session) {
            Parameters parameters;
            parameters.uuid(partition_id).text(group).text(worker);
            return session.run(sql::kReleaseUndelivered, parameters);
        },
        decode_bool, std::move(done));
}

void PgStore::ack_by_hash(Deadline deadline, std::string tenant, Uuid partition_id,
                          std::string group, std::string worker, std::vector<HashAck> acks,
                          Done<HashAckOutcome> done) {
    ask<HashAckOutcome>(
        Lane::ack, deadline,
        [tenant = std::move(tenant), partition_id, group = std::move(group),
         worker = std::move(worker), acks = std::move(acks)](Session& session) -> Result<Rows> {
            const auto id = tenant_id(tenant);
            if (!id) {
                return fail(id.error());
            }
            std::vector<std::string_view> hashes, statuses;
            for (const HashAck& ack : acks) {
                hashes.push_back(ack.hash.view());
                statuses.push_back(status_text(ack.status));
            }
            Parameters parameters;
            parameters.uuid(partition_id).text(group).text(worker);
            parameters.bytea_array(hashes).text_array(statuses).uuid(*id);
            return session.run(sql::kAckByHash, parameters);
        },
        [](const Rows& rows) { return only_text(rows).and_then(read_hash_ack); }, std::move(done));
}

void PgStore::ack_positions(Deadline deadline, std::vector<PositionAck> acks,
                            Done<std::vector<PositionAckOutcome>> done) {
    const std::size_t count = acks.size();
    ask<std::vector<PositionAckOutcome>>(
        Lane::ack, deadline,
        [acks = std::move(acks)](Session& session) {
            std::vector<Uuid> partitions;
            std::vector<std::string_view> groups, workers;
            std::vector<std::int64_t> ends, counts;
            for (const PositionAck& ack : acks) {
                partitions.push_back(ack.partition_id);
                groups.push_back(ack.group);
                ends.push_back(ack.upto.value());
                workers.push_back(ack.worker);
                counts.push_back(ack.count);
            }
            Parameters parameters;
            parameters.uuid_array(partitions).text_array(groups).int8_array(ends);
            parameters.text_array(workers).int8_array(counts);
            return session.run(sql::kAckMulti, parameters);
        },
        [count](const Rows& rows) {
            return only_text(rows).and_then(
                [count](std::string_view json) { return read_position_acks(json, count); });
        },
        std::move(done));
}

void PgStore::renew_lease(Deadline deadline, std::string worker, std::chrono::seconds time,
                          Done<RenewOutcome> done) {
    ask<RenewOutcome>(
        Lane::ack, deadline,
        [worker = std::move(worker), time](Session& session) {
            constexpr std::chrono::seconds kMost{std::numeric_limits<std::int32_t>::max()};
            Parameters parameters;
            parameters.text(worker);
            parameters.int4(static_cast<std::int32_t>(std::min(time, kMost).count()));
            return session.run(sql::kRenewLease, parameters);
        },
        [](const Rows& rows) { return only_text(rows).and_then(read_renew); }, std::move(done));
}

void PgStore::configure(Deadline deadline, std::string tenant, std::string queue,
                        std::string options_json, Done<std::string> done) {
    ask<std::string>(
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
    ask<bool>(
        Lane::admin, deadline,
        [tenant = std::move(tenant), queue = std::move(queue)](Session& session) {
            return run_on_queue(session, sql::kDeleteQueue, tenant, queue);
        },
        decode_bool, std::move(done));
}

void PgStore::queue_detail(Deadline deadline, std::string tenant, std::string queue,
                           PartitionPage page, Done<std::optional<std::string>> done) {
    ask<std::optional<std::string>>(
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
    ask<std::optional<std::string>>(
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
    ask<std::optional<std::string>>(
        Lane::admin, deadline,
        [tenant = std::move(tenant), queue = std::move(queue),
         page = std::move(page)](Session& session) {
            return run_on_page(session, sql::kQueueSizes, tenant, queue, page);
        },
        decode_if_any, std::move(done), Repeat::once);
}

void PgStore::list_queues(Deadline deadline, std::string tenant, Done<std::string> done) {
    ask<std::string>(
        Lane::admin, deadline,
        [tenant = std::move(tenant)](Session& session) {
            return run_on_tenant(session, sql::kListQueues, tenant, {});
        },
        decode_text, std::move(done), Repeat::once);
}

void PgStore::list_labels(Deadline deadline, std::string tenant, Label label,
                          Done<std::string> done) {
    ask<std::string>(
        Lane::admin, deadline,
        [tenant = std::move(tenant), label](Session& session) {
            return run_on_tenant(session, sql::kListLabels, tenant,
                                 label == Label::task ? "task" : "namespace");
        },
        decode_text, std::move(done), Repeat::once);
}

void PgStore::overview(Deadline deadline, std::string tenant, Done<std::string> done) {
    ask<std::string>(
        Lane::admin, deadline,
        [tenant = std::move(tenant)](Session& session) {
            return run_on_tenant(session, sql::kOverview, tenant, {});
        },
        decode_text, std::move(done), Repeat::once);
}

/// In the lane that yields to all others: a walk may be late, a pop must not wait for it.
void PgStore::reseed_page(Deadline deadline, ReseedQuery query, Done<ReseedPage> done) {
    ask<ReseedPage>(
        Lane::admin, deadline,
        [query = std::move(query)](Session& session) { return run_reseed(session, query); },
        decode_reseed, std::move(done), Repeat::once);
}

void PgStore::ping(Deadline deadline, Done<void> done) {
    ask<void>(
        Lane::admin, deadline,
        [](Session& session) { return session.run(sql::kPing, Parameters{}); },
        [](const Rows&) { return Result<void>{}; }, std::move(done), Repeat::once);
}

} // namespace queen::store
