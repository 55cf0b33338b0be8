// The one place of a measurement that sleeps.
#include "pause.hpp"

#include <thread>

namespace queen::bench {

void pause(std::chrono::nanoseconds time) {
    std::this_thread::sleep_for(time);
}

} // namespace queen::bench
