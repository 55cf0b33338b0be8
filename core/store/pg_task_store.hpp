#pragma once
#include "ports/task_store.hpp"
#include "store/asker.hpp"

namespace queen::store {

/// The TaskStore port on PostgreSQL. Keeps no state.
class PgTaskStore final : public TaskStore {
public:
    explicit PgTaskStore(Asker asker) : asker_(std::move(asker)) {}

    void register_task(Deadline, std::string task, std::chrono::milliseconds period,
                       Done<void>) override;
    void claim_task(Deadline, std::string task, std::string holder, std::chrono::milliseconds lease,
                    Done<std::optional<TaskClaim>>) override;
    void release_task(Deadline, std::string task, std::int64_t fence, bool complete,
                      Done<bool>) override;

private:
    const Asker asker_;
};

} // namespace queen::store
