#include "store/pg_task_store.hpp"

#include "store/statements.hpp"

namespace queen::store {
namespace {

namespace sql = statements;

Result<std::optional<TaskClaim>> decode_claim(const Rows& rows) {
    if (rows.count() == 0) {
        return std::optional<TaskClaim>{};
    }
    Row row(rows, 0);
    const TaskClaim claim{.fence = row.integer(0),
                          .late = std::chrono::milliseconds(row.integer(1))};
    if (auto status = row.status(); !status) {
        return fail(std::move(status.error()));
    }
    return std::optional(claim);
}

} // namespace

void PgTaskStore::register_task(Deadline deadline, std::string task,
                                std::chrono::milliseconds period, Done<void> done) {
    asker_.ask<void>(
        Lane::admin, deadline,
        [task = std::move(task), period](Session& session) {
            Parameters parameters;
            parameters.text(task).int8(period.count());
            return session.run(sql::kTaskRegister, parameters);
        },
        [](const Rows&) { return Result<void>{}; }, std::move(done));
}

void PgTaskStore::claim_task(Deadline deadline, std::string task, std::string holder,
                             std::chrono::milliseconds lease, Done<std::optional<TaskClaim>> done) {
    asker_.ask<std::optional<TaskClaim>>(
        Lane::admin, deadline,
        [task = std::move(task), holder = std::move(holder), lease](Session& session) {
            Parameters parameters;
            parameters.text(task).text(holder).int8(lease.count());
            return session.run(sql::kTaskClaim, parameters);
        },
        decode_claim, std::move(done));
}

void PgTaskStore::release_task(Deadline deadline, std::string task, std::int64_t fence,
                               bool complete, Done<bool> done) {
    asker_.ask<bool>(
        Lane::admin, deadline,
        [task = std::move(task), fence, complete](Session& session) {
            Parameters parameters;
            parameters.text(task).int8(fence).boolean(complete);
            return session.run(sql::kTaskRelease, parameters);
        },
        decode_bool, std::move(done));
}

} // namespace queen::store
