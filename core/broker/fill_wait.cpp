#include "broker/fill_wait.hpp"

#include <algorithm>

namespace queen::broker {

std::optional<SteadyTime> FillWait::until(Nanoseconds time, std::int32_t batch,
                                          std::optional<std::uint64_t> ready, SteadyTime now) {
    const bool full = batch <= 1 || (ready && *ready >= static_cast<std::uint64_t>(batch));
    const auto last = std::min(since_.value_or(now) + time, deadline_);
    if (full || now >= last) {
        end(now);
        return std::nullopt;
    }
    if (!since_) {
        since_ = now;
        counters_.fill_waits.add();
    }
    return last;
}

void FillWait::end(SteadyTime now) {
    if (since_) {
        counters_.fill_wait_micros.add(static_cast<std::uint64_t>(
            std::chrono::duration_cast<std::chrono::microseconds>(now - *since_).count()));
        since_.reset();
    }
}

} // namespace queen::broker
