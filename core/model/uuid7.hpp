#pragma once
#include "base/clock.hpp"

#include <queen/plugin/types.hpp>

#include <mutex>

namespace queen {

/// Mints UUIDv7: 48-bit milliseconds, then a sequence that keeps ids of one process ordered inside
/// a millisecond and when the clock steps back; the rest is random.
/// @thread any
/// @source FMT-13
class Uuid7 {
public:
    Uuid7();
    Uuid next(WallTime now);
    Uuid next() { return next(SystemClock::wall()); }

private:
    std::mutex mutex_;
    std::uint64_t last_ms_ = 0;
    std::uint32_t sequence_ = 0;
    std::uint64_t random_state_[2];
};

} // namespace queen
