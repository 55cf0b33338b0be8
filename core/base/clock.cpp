#include "base/clock.hpp"

#include <time.h>

namespace queen {

SteadyTime SystemClock::now() const noexcept {
    return std::chrono::time_point_cast<Nanoseconds>(std::chrono::steady_clock::now());
}

WallTime SystemClock::wall() noexcept {
    return std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now());
}

Nanoseconds SystemClock::thread_time() noexcept {
    timespec spent{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent); // fails for no thread that is there
    return std::chrono::seconds(spent.tv_sec) + Nanoseconds(spent.tv_nsec);
}

const SystemClock& SystemClock::instance() noexcept {
    static const SystemClock clock;
    return clock;
}

} // namespace queen
