// broker/fill_wait.hpp - minPopWaitTime: a pop that found less than its batch waits for more.
#pragma once
#include "metrics/activity.hpp"

#include <queen/plugin/types.hpp>

#include <cstdint>
#include <optional>

namespace queen::broker {

/// The wait of one pop. It begins when something is ready that does not fill the batch, and ends
/// when the batch is full, the queue's time is over or the caller's deadline has come, whichever is
/// first; then the pop claims what there is (MW-1).
/// @thread one look at a time
class FillWait {
public:
    FillWait(SteadyTime deadline, metrics::PopCounters& counters) noexcept
        : deadline_(deadline), counters_(counters) {}

    /// Whether it waits already.
    bool waits() const noexcept { return since_.has_value(); }
    /// Something is ready. @return until when the pop waits for more; nullopt: it claims now
    /// @param time the queue's; zero: none
    /// @param batch of the pop; one message is always full
    /// @param ready messages, as far as known; nullopt: nobody can tell, so the time is waited out
    std::optional<SteadyTime> until(Nanoseconds time, std::int32_t batch,
                                    std::optional<std::uint64_t> ready, SteadyTime now);
    /// Nothing is ready any more, or the pop ends.
    void end(SteadyTime now);

private:
    const SteadyTime deadline_;
    metrics::PopCounters& counters_;
    std::optional<SteadyTime> since_;
};

} // namespace queen::broker
