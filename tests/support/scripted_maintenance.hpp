// Stores of tasks and retention whose answers the test writes; a call without a hook fails with
// `unsupported`, so that an unexpected one is seen.
#pragma once
#include "ports/retention_store.hpp"
#include "ports/task_store.hpp"
#include "support/hook.hpp"

#include <utility>

namespace queen::test {

class ScriptedTasks final : public TaskStore {
public:
    Hook<std::string, std::chrono::milliseconds, Done<void>> on_register;
    Hook<std::string, std::string, std::chrono::milliseconds, Done<std::optional<TaskClaim>>>
        on_claim;
    Hook<std::string, std::int64_t, bool, Done<bool>> on_release;

    void register_task(Deadline, std::string task, std::chrono::milliseconds period,
                       Done<void> done) override {
        on_register(std::move(task), period, std::move(done));
    }
    void claim_task(Deadline, std::string task, std::string holder, std::chrono::milliseconds lease,
                    Done<std::optional<TaskClaim>> done) override {
        on_claim(std::move(task), std::move(holder), lease, std::move(done));
    }
    void release_task(Deadline, std::string task, std::int64_t fence, bool complete,
                      Done<bool> done) override {
        on_release(std::move(task), fence, complete, std::move(done));
    }
};

class ScriptedRetention final : public RetentionStore {
public:
    Hook<DueWork, std::optional<DueKey>, std::int32_t, Done<std::vector<DuePartition>>> on_due =
        [](auto, auto, auto, const auto& done) { done(std::vector<DuePartition>{}); };
    Hook<Uuid, std::optional<WallTime>, std::optional<WallTime>, std::int32_t, Done<RetentionStep>>
        on_retention;
    Hook<Uuid, WallTime, std::int32_t, Done<RetentionStep>> on_max_wait;
    Hook<Uuid, WallTime, std::int32_t, Done<RowsStep>> on_purge;
    Hook<std::chrono::seconds, std::int32_t, std::optional<CleanupKey>, Done<CleanupStep>>
        on_cleanup = [](auto, auto, auto, const auto& done) { done(CleanupStep{}); };
    Hook<std::optional<Uuid>, std::int32_t, Done<WalkStep>> on_walk;
    Hook<std::chrono::seconds, std::int32_t, Done<RowsStep>> on_history =
        [](auto, auto, const auto& done) { done(RowsStep{}); };

    void due(Deadline, DueWork work, std::optional<DueKey> after, std::int32_t limit,
             Done<std::vector<DuePartition>> done) override {
        on_due(work, after, limit, std::move(done));
    }
    void retention_step(Deadline, Uuid id, std::optional<WallTime> cutoff,
                        std::optional<WallTime> completed, std::int32_t rows,
                        Done<RetentionStep> done) override {
        call_hook(on_retention, id, cutoff, completed, rows, std::move(done));
    }
    void max_wait_step(Deadline, Uuid id, WallTime cutoff, std::int32_t rows,
                       Done<RetentionStep> done) override {
        call_hook(on_max_wait, id, cutoff, rows, std::move(done));
    }
    void purge_step(Deadline, Uuid id, WallTime cutoff, std::int32_t rows,
                    Done<RowsStep> done) override {
        call_hook(on_purge, id, cutoff, rows, std::move(done));
    }
    void cleanup_step(Deadline, std::chrono::seconds idle, std::int32_t rows,
                      std::optional<CleanupKey> after, Done<CleanupStep> done) override {
        on_cleanup(idle, rows, after, std::move(done));
    }
    void walk_step(Deadline, std::optional<Uuid> after, std::int32_t rows,
                   Done<WalkStep> done) override {
        call_hook(on_walk, after, rows, std::move(done));
    }
    void history_step(Deadline, std::chrono::seconds age, std::int32_t rows,
                      Done<RowsStep> done) override {
        on_history(age, rows, std::move(done));
    }
};

} // namespace queen::test
