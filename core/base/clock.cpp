#include "base/clock.hpp"

namespace queen {

SteadyTime SystemClock::now() const noexcept {
    return std::chrono::time_point_cast<Nanoseconds>(std::chrono::steady_clock::now());
}

WallTime SystemClock::wall() noexcept {
    return std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now());
}

const SystemClock& SystemClock::instance() noexcept {
    static const SystemClock clock;
    return clock;
}

} // namespace queen
