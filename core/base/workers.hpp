#pragma once
#include <queen/plugin/types.hpp>

#include <cstdint>
#include <functional>

namespace queen {

/// Threads that run what must not run on the network thread.
class Workers {
public:
    virtual ~Workers() = default;
    /// Runs `task` on a worker, never inside the call. Tasks do not block on I/O.
    /// @thread any
    virtual void post(std::function<void()> task) = 0;
};

/// One thread with a heap of deadlines.
class Ticker {
public:
    virtual ~Ticker() = default;
    using Id = std::uint64_t;
    /// Runs `task` on the ticker's thread at `when` or soon after. Tasks only hand work on.
    /// @thread any
    virtual Id at(SteadyTime when, std::function<void()> task) = 0;
    /// A task that already runs is not stopped. Unknown ids are ignored.
    virtual void cancel(Id id) = 0;
};

} // namespace queen
