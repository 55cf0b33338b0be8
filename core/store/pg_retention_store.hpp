#pragma once
#include "ports/retention_store.hpp"
#include "store/asker.hpp"

namespace queen::store {

/// The RetentionStore port on PostgreSQL. Keeps no state.
class PgRetentionStore final : public RetentionStore {
public:
    explicit PgRetentionStore(Asker asker) : asker_(std::move(asker)) {}

    void due(Deadline, DueWork, std::optional<DueKey> after, std::int32_t limit,
             Done<std::vector<DuePartition>>) override;
    void retention_step(Deadline, Uuid partition_id, std::optional<WallTime> cutoff,
                        std::optional<WallTime> completed_cutoff, std::int32_t rows,
                        Done<RetentionStep>) override;
    void max_wait_step(Deadline, Uuid partition_id, WallTime cutoff, std::int32_t rows,
                       Done<RetentionStep>) override;
    void purge_step(Deadline, Uuid partition_id, WallTime cutoff, std::int32_t rows,
                    Done<RowsStep>) override;
    void cleanup_step(Deadline, std::chrono::seconds idle, std::int32_t rows,
                      std::optional<CleanupKey> after, Done<CleanupStep>) override;
    void walk_step(Deadline, std::optional<Uuid> after, std::int32_t rows, Done<WalkStep>) override;
    void history_step(Deadline, std::chrono::seconds age, std::int32_t rows,
                      Done<RowsStep>) override;

private:
    const Asker asker_;
};

} // namespace queen::store
