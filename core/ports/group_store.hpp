// ports/group_store.hpp - consumer groups as an operator sees and moves them. As ports/store.hpp:
// asynchronous, `done` runs exactly once, on a worker, after the session was given back.
#pragma once
#include "ports/store.hpp"

namespace queen {

/// Where cursors of a group are to stand.
struct Seek {
    std::string tenant, queue, group;
    std::optional<std::string> partition; ///< nullopt: every partition of the queue
    std::optional<WallTime> to;           ///< before the first segment not older; nullopt: the end
};

struct SeekOutcome {
    std::int64_t moved = 0; ///< cursors, those that were made included
    Uuid partition_id;      ///< of the seek of one partition
    bool waits = false;     ///< the queue has a delay or a window
};

struct RemovedGroup {
    std::int64_t cursors = 0;
    bool subscription = false;       ///< one was there and is gone
    std::vector<std::string> queues; ///< where there was a cursor or a subscription
};

/// Cursors of a group went back or were removed by hand, on whatever broker.
struct Repair {
    std::string tenant, queue, group;
    std::optional<std::string> partition; ///< nullopt: every partition of the queue
    Uuid partition_id;                    ///< not known: every partition, or there is none any more
    bool waits = false;                   ///< the queue has a delay or a window
    WallTime at{};                        ///< moves on with each repair of the queue and group
};

/// @thread any. Every error is a value; no call throws.
class GroupStore {
public:
    virtual ~GroupStore() = default;
    using Deadline = SteadyTime;

    // JSON of GET consumer-groups..., as the procedures make it.
    virtual void list_groups(Deadline, std::string tenant, Done<std::string>) = 0;
    virtual void lagging(Deadline, std::string tenant, std::chrono::seconds more_than,
                         std::int32_t limit, Done<std::string>) = 0;
    /// Nothing: nobody knows the group, or not in that queue.
    virtual void group_detail(Deadline, std::string tenant, std::string group,
                              std::optional<std::string> queue,
                              Done<std::optional<std::string>>) = 0;

    /// All of it or nothing, and a repair for other brokers with it.
    /// @errors not_found: queue, partition or group, as the message says
    virtual void seek(Deadline, Seek, Done<SeekOutcome>) = 0;
    /// @param queue nullopt: wherever the tenant has the group
    /// @param subscriptions as well
    virtual void remove_group(Deadline, std::string tenant, std::string group,
                              std::optional<std::string> queue, bool subscriptions,
                              Done<RemovedGroup>) = 0;
    /// Where the group begins from now on where it has no cursor. The answer: records changed.
    virtual void subscribe(Deadline, std::string tenant, std::string group, WallTime from,
                           Done<std::int64_t>) = 0;
    /// All repairs of the last hour.
    virtual void repairs(Deadline, Done<std::vector<Repair>>) = 0;
};

} // namespace queen
