#include "store/pg_store.hpp"

#include "base/text.hpp"
#include "store/answers.hpp"
#include "store/push_arrays.hpp"
#include "store/statements.hpp"

#include <algorithm>
#include <limits>

namespace queen::store {
namespace {

namespace sql = statements;

Result<Rows> run_push(Session& session, const std::vector<PushSegment>& segments) {
    const auto arrays = PushArrays::of(segments);
    if (!arrays) {
        return fail(arrays.error());
    }
    Parameters parameters;
    arrays->add_segments(parameters);
    arrays->add_tenants(parameters);
    arrays->add_vouches(parameters);
    arrays->add_forms(parameters);
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
    if (args.conflate) {
        parameters.boolean(*args.conflate);
    } else {
        parameters.null(oid::kBool);
    }
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
    return read_each<HashRow>(rows, [](Row& row) {
        return HashRow{.base = Offset{row.integer(0)},
                       .end = Offset{row.integer(1)},
                       .created_at = row.timestamptz(2),
                       .hashes = std::string(row.bytea(3))};
    });
}

Result<Rows> run_hash_acks(Session& session, const HashAcks& acks) {
    const auto tenant = tenant_id(acks.tenant);
    if (!tenant) {
        return fail(tenant.error());
    }
    std::vector<std::string_view> hashes, statuses, reasons;
    bool reasoned = false;
    for (const HashAck& ack : acks.items) {
        hashes.push_back(ack.hash.view());
        statuses.push_back(status_text(ack.status));
        reasons.push_back(ack.reason);
        reasoned = reasoned || !ack.reason.empty();
    }
    if (!reasoned) {
        reasons.clear(); // as good as all of them empty
    }
    Parameters parameters;
    parameters.uuid(acks.partition_id).text(acks.group).text(acks.worker);
    parameters.bytea_array(hashes).text_array(statuses).uuid(*tenant).text_array(reasons);
    if (acks.letters.empty() && !acks.no_further_letters) {
        return session.run(sql::kAckByHash, parameters);
    }
    LetterArrays letters;
    for (const Letter& letter : acks.letters) {
        letters.add(letter);
    }
    letters.add_to(parameters);
    parameters.boolean(acks.no_further_letters);
    return session.run(sql::kAckLetters, parameters);
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

} // namespace

void PgStore::push(Deadline deadline, std::vector<PushSegment> segments,
                   Done<std::vector<PushOutcome>> done) {
    const std::size_t count = segments.size();
    asker_.ask<std::vector<PushOutcome>>(
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
    asker_.ask<std::optional<StoredSegment>>(
        Lane::push, deadline,
        [partition_id, offset](Session& session) {
            Parameters parameters;
            parameters.uuid(partition_id).int8(offset.value());
            return session.run(sql::kSegmentAt, parameters);
        },
        decode_segment, std::move(done), Repeat::once);
}

void PgStore::window_hashes(Deadline deadline, HashPage page, Done<std::vector<HashRow>> done) {
    asker_.ask<std::vector<HashRow>>(
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
    asker_.ask<PopResult>(
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
    asker_.ask<PopResult>(
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
    asker_.ask<PopResult>(
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
    asker_.ask<PopResult>(
        Lane::pop, deadline,
        [args = std::move(args), ns = std::move(ns), task = std::move(task)](Session& session) {
            Parameters parameters;
            parameters.text(ns).text(task).text(args.group);
            return run_pop(session, sql::kPopDiscover, args, std::move(parameters), {});
        },
        decode_pop, std::move(done));
}

void PgStore::has_pending(Deadline deadline, PendingQuery query, Done<bool> done) {
    asker_.ask<bool>(
        Lane::pop, deadline,
        [query = std::move(query)](Session& session) { return run_pending(session, query); },
        decode_bool, std::move(done), Repeat::once);
}

void PgStore::release_undelivered(Deadline deadline, Uuid partition_id, std::string group,
                                  std::string worker, Done<bool> done) {
    asker_.ask<bool>(
        Lane::ack, deadline,
        [partition_id, group = std::move(group), worker = std::move(worker)](Session& session) {
            Parameters parameters;
            parameters.uuid(partition_id).text(group).text(worker);
            return session.run(sql::kReleaseUndelivered, parameters);
        },
        decode_bool, std::move(done));
}

void PgStore::ack_by_hash(Deadline deadline, HashAcks acks, Done<HashAckOutcome> done) {
    asker_.ask<HashAckOutcome>(
        Lane::ack, deadline,
        [acks = std::move(acks)](Session& session) { return run_hash_acks(session, acks); },
        [](const Rows& rows) { return only_text(rows).and_then(read_hash_ack); }, std::move(done));
}

void PgStore::ack_positions(Deadline deadline, std::string tenant, std::vector<PositionAck> acks,
                            Done<std::vector<PositionAckOutcome>> done) {
    const std::size_t count = acks.size();
    asker_.ask<std::vector<PositionAckOutcome>>(
        Lane::ack, deadline,
        [tenant = std::move(tenant), acks = std::move(acks)](Session& session) -> Result<Rows> {
            const auto id = tenant_id(tenant);
            if (!id) {
                return fail(id.error());
            }
            std::vector<Uuid> partitions;
            std::vector<std::string_view> groups, workers;
            std::vector<std::int64_t> firsts, lasts;
            for (const PositionAck& ack : acks) {
                partitions.push_back(ack.partition_id);
                groups.push_back(ack.group);
                firsts.push_back(ack.first.value());
                lasts.push_back(ack.last.value());
                workers.push_back(ack.worker);
            }
            // As far as the cursor moves is what the other path counts, too.
            const std::vector<std::int64_t> counts(acks.size(), 0);
            Parameters parameters;
            parameters.uuid_array(partitions).text_array(groups).int8_array(lasts);
            parameters.text_array(workers).int8_array(counts).uuid(*id).int8_array(firsts);
            return session.run(sql::kAckMulti, parameters);
        },
        [count](const Rows& rows) {
            return only_text(rows).and_then(
                [count](std::string_view json) { return read_position_acks(json, count); });
        },
        std::move(done));
}

void PgStore::renew_lease(Deadline deadline, std::string tenant, std::string worker,
                          std::chrono::seconds time, Done<RenewOutcome> done) {
    asker_.ask<RenewOutcome>(
        Lane::ack, deadline,
        [tenant = std::move(tenant), worker = std::move(worker),
         time](Session& session) -> Result<Rows> {
            const auto id = tenant_id(tenant);
            if (!id) {
                return fail(id.error());
            }
            constexpr std::chrono::seconds kMost{std::numeric_limits<std::int32_t>::max()};
            Parameters parameters;
            parameters.text(worker);
            parameters.int4(static_cast<std::int32_t>(std::min(time, kMost).count()));
            parameters.uuid(*id);
            return session.run(sql::kRenewLease, parameters);
        },
        [](const Rows& rows) { return only_text(rows).and_then(read_renew); }, std::move(done));
}

} // namespace queen::store
