#pragma once
#include <queen/plugin/types.hpp>

#include <atomic>
#include <chrono>

namespace queen::test {

/// A clock that stands still until the test moves it. It starts an hour after zero, so that a test
/// may also look at times before "now".
/// @thread any
class ManualClock final : public Clock {
public:
    ManualClock() = default;
    explicit ManualClock(SteadyTime start) : now_(start) {}

    SteadyTime now() const noexcept override { return now_.load(); }
    void advance(Nanoseconds by) noexcept { now_.store(now() + by); }
    void set(SteadyTime now) noexcept { now_.store(now); }

private:
    std::atomic<SteadyTime> now_{SteadyTime(std::chrono::hours(1))};
};

} // namespace queen::test
