// ports/task_store.hpp - whose turn it is to do a task that one broker at a time does for all.
#pragma once
#include "base/result.hpp"
#include "ports/store.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace queen {

/// A turn at a task: nobody else gets one before its lease is over or it is given back.
struct TaskClaim {
    std::int64_t fence = 0;            ///< rises with each turn; what gives this one back
    std::chrono::milliseconds late{0}; ///< since the task was due
};

/// Asynchronous like Store, in the lane of administration. Only the database's clock decides who
/// has a turn and until when.
/// @thread any. Every error is a value; no call throws.
/// @source MA-1, MA-2
class TaskStore {
public:
    virtual ~TaskStore() = default;
    using Deadline = SteadyTime;

    /// Makes the task known with this period; whoever starts last has his way (task_register_v1).
    virtual void register_task(Deadline, std::string task, std::chrono::milliseconds period,
                               Done<void>) = 0;
    /// Takes a turn if the task is switched on, due, and nobody's; else nothing (task_claim_v1).
    virtual void claim_task(Deadline, std::string task, std::string holder,
                            std::chrono::milliseconds lease, Done<std::optional<TaskClaim>>) = 0;
    /// Gives a turn back: the task is due a period after it was, or at once when it was cut short
    /// (task_release_v1).
    /// @return false when the turn was somebody else's by then
    virtual void release_task(Deadline, std::string task, std::int64_t fence, bool complete,
                              Done<bool>) = 0;
};

} // namespace queen
