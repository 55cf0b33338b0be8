#pragma once
#include "ports/group_store.hpp"
#include "store/asker.hpp"

namespace queen::store {

/// The GroupStore port on PostgreSQL, in the lane of administration.
class PgGroupStore final : public GroupStore {
public:
    explicit PgGroupStore(Asker asker) : asker_(std::move(asker)) {}

    void list_groups(Deadline, std::string tenant, Done<std::string>) override;
    void lagging(Deadline, std::string tenant, std::chrono::seconds more_than, std::int32_t limit,
                 Done<std::string>) override;
    void group_detail(Deadline, std::string tenant, std::string group,
                      std::optional<std::string> queue, Done<std::optional<std::string>>) override;
    void seek(Deadline, Seek, Done<SeekOutcome>) override;
    void remove_group(Deadline, std::string tenant, std::string group,
                      std::optional<std::string> queue, bool subscriptions,
                      Done<RemovedGroup>) override;
    void subscribe(Deadline, std::string tenant, std::string group, WallTime from,
                   Done<std::int64_t>) override;
    void repairs(Deadline, Done<std::vector<Repair>>) override;

private:
    const Asker asker_;
};

} // namespace queen::store
