#pragma once
#include <queen/plugin/types.hpp>

#include <chrono>

namespace queen {

/// Microseconds since the epoch, UTC: for ids and logs. Never decides a lease.
/// @source CLK-1
using WallTime = std::chrono::time_point<std::chrono::system_clock, std::chrono::microseconds>;

/// The one place that reads the machine's clocks (style test: no other file calls now()).
class SystemClock final : public Clock {
public:
    SteadyTime now() const noexcept override;
    static WallTime wall() noexcept;
    /// What the calling thread has had of a processor. A call into the kernel, several hundred ns.
    static Nanoseconds thread_time() noexcept;
    static const SystemClock& instance() noexcept;
};

} // namespace queen
