#include "store/pg_timer_store.hpp"

#include "store/statements.hpp"
#include "store/timer_arrays.hpp"

#include <algorithm>

namespace queen::store {
namespace {

namespace sql = statements;
using std::chrono::microseconds;

std::string text_or_empty(Row& row, int column) {
    return row.null(column) ? std::string() : std::string(row.text(column));
}

/// As many as were asked for; `what` answered.
template <class X>
Result<std::vector<X>> one_each(Result<std::vector<X>> all, std::size_t asked, const char* what) {
    if (all && all->size() != asked) {
        return fail(Errc::internal, std::string(what) + ": " + std::to_string(all->size()) +
                                        " results for " + std::to_string(asked));
    }
    return all;
}

Result<TimerVerdict> read_verdict(Row& row) {
    const auto kind = timer_verdict(row.text(0));
    if (!kind) {
        return fail(kind.error());
    }
    TimerVerdict verdict;
    verdict.kind = *kind;
    verdict.transaction_id = text_or_empty(row, 1);
    if (verdict.set()) {
        verdict.message_id = row.uuid(2);
        verdict.deliver_at = row.timestamptz(3);
        verdict.left = microseconds(row.integer(4));
    }
    return verdict;
}

/// The message as it was staged and its attempts: seven columns from `at` on.
template <class Timer>
void read_staged(Row& row, int at, Timer& timer) {
    timer.transaction_id = row.text(at);
    timer.message_id = row.uuid(at + 1);
    timer.payload = row.bytea(at + 2);
    timer.payload_zstd = row.boolean(at + 3);
    timer.encrypted = row.boolean(at + 4);
    timer.producer_sub = text_or_empty(row, at + 5);
    timer.attempts = static_cast<std::int32_t>(row.integer(at + 6));
}

/// The columns of log_timers_peek_v1 and log_timers_list_v1.
WaitingTimer read_waiting(Row& row) {
    WaitingTimer timer;
    timer.key = row.text(0);
    timer.partition = row.text(1);
    timer.deliver_at = row.timestamptz(2);
    read_staged(row, 3, timer);
    if (!row.null(10)) {
        timer.last_error = row.text(10);
    }
    timer.claimed = row.boolean(11);
    timer.created_at = row.timestamptz(12);
    timer.updated_at = row.timestamptz(13);
    return timer;
}

Result<std::optional<WaitingTimer>> decode_waiting(const Rows& rows) {
    if (rows.count() == 0) {
        return std::optional<WaitingTimer>{};
    }
    Row row(rows, 0);
    std::optional<WaitingTimer> timer = read_waiting(row);
    return checked(row, std::move(timer));
}

Result<TimerPage> decode_page(const Rows& rows, std::int32_t limit) {
    auto timers = read_each<WaitingTimer>(rows, read_waiting);
    if (!timers) {
        return fail(std::move(timers.error()));
    }
    TimerPage page{.rows = std::move(*timers)};
    page.truncated = rows.count() > limit; // one more than asked for tells that there is more
    if (page.truncated) {
        page.rows.resize(static_cast<std::size_t>(limit));
    }
    return page;
}

Result<TimersDue> decode_due(const Rows& rows) {
    Row row(rows, 0);
    TimersDue due;
    if (!row.null(0)) {
        due.next_in = microseconds(row.integer(0));
        due.late = microseconds(row.integer(3));
    }
    due.due = row.integer(1);
    due.capped = row.boolean(2);
    return checked(row, due);
}

ClaimedTimer read_claimed(Row& row) {
    ClaimedTimer timer;
    timer.tenant = to_string(row.uuid(0));
    timer.queue = row.text(1);
    timer.key = row.text(2);
    timer.partition = row.text(3);
    timer.token = row.uuid(4);
    read_staged(row, 5, timer);
    timer.late = microseconds(row.integer(12));
    return timer;
}

Result<Rows> run_fire(Session& session, const TimerFire& fire) {
    std::vector<Uuid> tenants, tokens;
    std::vector<std::string_view> queues, partitions, hashes, blobs, keys;
    std::vector<std::int32_t> counts, places;
    for (const auto& segment : fire.segments) {
        const auto tenant = tenant_id(segment.tenant);
        if (!tenant) {
            return fail(tenant.error());
        }
        tenants.push_back(*tenant);
        queues.push_back(segment.queue);
        partitions.push_back(segment.partition);
        counts.push_back(segment.count);
        hashes.push_back(segment.hashes);
        blobs.push_back(segment.blob);
        for (const auto& row : segment.rows) {
            if (row.tenant != segment.tenant || row.queue != segment.queue) {
                return fail(Errc::invalid_argument,
                            "a timer of queue " + row.queue + " in a segment of " + segment.queue);
            }
            places.push_back(static_cast<std::int32_t>(tenants.size()));
            keys.push_back(row.key);
            tokens.push_back(row.token);
        }
    }
    Parameters parameters;
    parameters.uuid_array(tenants).text_array(queues).text_array(partitions).int4_array(counts);
    parameters.bytea_array(hashes).bytea_array(blobs);
    parameters.int4_array(places).text_array(keys).uuid_array(tokens);
    return session.run(sql::kTimersFire, parameters);
}

Result<TimerFired> read_fired(Row& row) {
    const std::string_view word = row.text(0);
    TimerFired fired;
    if (word == "fired") {
        fired.kind = TimerFired::Kind::fired;
        fired.partition_id = row.uuid(1);
        fired.first = Offset{row.integer(2)};
    } else if (word == "duplicate") {
        fired.kind = TimerFired::Kind::duplicate;
    } else if (word != "stale") {
        return fail(Errc::internal, "log_timers_fire_v1: not a result: " + std::string(word));
    }
    return fired;
}

Result<TimerFailed> decode_failed(const Rows& rows) {
    Row row(rows, 0);
    TimerFailed failed;
    failed.failed = row.integer(0);
    const auto tenants = row.uuid_array(1);
    const auto queues = row.text_array(2);
    const auto keys = row.text_array(3);
    failed.locked = row.integer(4);
    if (auto status = row.status(); !status) {
        return fail(std::move(status.error()));
    }
    if (queues.size() != tenants.size() || keys.size() != tenants.size()) {
        return fail(Errc::internal, "log_timers_fail_v1: arrays of different length");
    }
    for (std::size_t i = 0; i < tenants.size(); ++i) {
        failed.exhausted.push_back(
            {to_string(tenants[i]), std::string(queues[i]), std::string(keys[i]), {}});
    }
    return failed;
}

/// A statement whose arguments begin with tenant and queue.
std::function<Result<Rows>(Session&)> of_queue(const Statement& statement, std::string tenant,
                                               std::string queue, std::string third,
                                               std::optional<std::int32_t> limit = std::nullopt) {
    return [&statement, tenant = std::move(tenant), queue = std::move(queue),
            third = std::move(third), limit](Session& session) -> Result<Rows> {
        const auto id = tenant_id(tenant);
        if (!id) {
            return fail(id.error());
        }
        Parameters parameters;
        parameters.uuid(*id).text(queue).text(third);
        if (limit) {
            parameters.int4(*limit);
        }
        return session.run(statement, parameters);
    };
}

} // namespace

void PgTimerStore::apply(Deadline deadline, TimerCallOps call,
                         Done<std::vector<TimerVerdict>> done) {
    const auto ops = call.ops.size();
    asker_.ask<std::vector<TimerVerdict>>(
        Lane::push, deadline,
        [call = std::move(call)](Session& session) -> Result<Rows> {
            const auto tenant = tenant_id(call.tenant);
            if (!tenant) {
                return queen::fail(tenant.error());
            }
            const TimerArrays arrays(call.ops);
            Parameters parameters;
            parameters.uuid(*tenant);
            arrays.add_to(parameters);
            parameters.text(call.producer_sub);
            return session.run(sql::kTimersApply, parameters);
        },
        [ops](const Rows& rows) {
            return one_each(read_each<TimerVerdict>(rows, read_verdict), ops,
                            "log_timers_apply_v1");
        },
        std::move(done));
}

void PgTimerStore::peek(Deadline deadline, std::string tenant, std::string queue, std::string key,
                        Done<std::optional<WaitingTimer>> done) {
    asker_.ask<std::optional<WaitingTimer>>(
        Lane::admin, deadline,
        of_queue(sql::kTimersPeek, std::move(tenant), std::move(queue), std::move(key)),
        decode_waiting, std::move(done), Repeat::once);
}

void PgTimerStore::list(Deadline deadline, std::string tenant, std::string queue, std::string after,
                        std::int32_t limit, Done<TimerPage> done) {
    constexpr std::int32_t kMostRows = 1000; // as in the procedure
    const auto rows = std::clamp(limit, 1, kMostRows);
    asker_.ask<TimerPage>(
        Lane::admin, deadline,
        of_queue(sql::kTimersList, std::move(tenant), std::move(queue), std::move(after), rows),
        [rows](const Rows& answer) { return decode_page(answer, rows); }, std::move(done),
        Repeat::once);
}

void PgTimerStore::count(Deadline deadline, std::string tenant, std::string queue,
                         std::string prefix, Done<std::int64_t> done) {
    asker_.ask<std::int64_t>(
        Lane::admin, deadline,
        of_queue(sql::kTimersCount, std::move(tenant), std::move(queue), std::move(prefix)),
        decode_count, std::move(done), Repeat::once);
}

void PgTimerStore::due(Deadline deadline, TimerShardSet shards, std::int32_t cap,
                       Done<TimersDue> done) {
    asker_.ask<TimersDue>(
        Lane::push, deadline,
        [shards, cap](Session& session) {
            Parameters parameters;
            parameters.int8(static_cast<std::int64_t>(shards)).int4(cap);
            return session.run(sql::kTimersDue, parameters);
        },
        decode_due, std::move(done), Repeat::once);
}

void PgTimerStore::claim(Deadline deadline, TimerClaim claim,
                         Done<std::vector<ClaimedTimer>> done) {
    asker_.ask<std::vector<ClaimedTimer>>(
        Lane::push, deadline,
        [claim](Session& session) {
            Parameters parameters;
            parameters.int8(static_cast<std::int64_t>(claim.shards)).int8(claim.lease.count());
            parameters.int4(claim.rows).int4(claim.rows_per_tenant).int8(claim.bytes);
            return session.run(sql::kTimersClaim, parameters);
        },
        [](const Rows& rows) { return read_each<ClaimedTimer>(rows, read_claimed); },
        std::move(done));
}

void PgTimerStore::fire(Deadline deadline, TimerFire fire, Done<std::vector<TimerFired>> done) {
    const auto segments = fire.segments.size();
    asker_.ask<std::vector<TimerFired>>(
        Lane::push, deadline,
        [fire = std::move(fire)](Session& session) { return run_fire(session, fire); },
        [segments](const Rows& rows) {
            return one_each(read_each<TimerFired>(rows, read_fired), segments,
                            "log_timers_fire_v1");
        },
        std::move(done));
}

void PgTimerStore::fail(Deadline deadline, TimerFail call, Done<TimerFailed> done) {
    asker_.ask<TimerFailed>(
        Lane::push, deadline,
        [call = std::move(call)](Session& session) -> Result<Rows> {
            const auto rows = TimerKeyArrays::of(call.rows);
            if (!rows) {
                return queen::fail(rows.error());
            }
            Parameters parameters;
            rows->add_keys(parameters);
            rows->add_tokens(parameters);
            parameters.int8(call.backoff.count()).text(call.error);
            parameters.boolean(call.counted).int4(call.attempts);
            return session.run(sql::kTimersFail, parameters);
        },
        decode_failed, std::move(done));
}

void PgTimerStore::dead_letter(Deadline deadline, std::vector<TimerClaimKey> rows,
                               std::int32_t attempts, Done<std::int64_t> done) {
    asker_.ask<std::int64_t>(
        Lane::push, deadline,
        [rows = std::move(rows), attempts](Session& session) -> Result<Rows> {
            const auto arrays = TimerKeyArrays::of(rows);
            if (!arrays) {
                return queen::fail(arrays.error());
            }
            Parameters parameters;
            arrays->add_keys(parameters);
            parameters.int4(attempts);
            return session.run(sql::kTimersDeadLetter, parameters);
        },
        decode_count, std::move(done));
}

} // namespace queen::store
