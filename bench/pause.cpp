// The one place of a measurement that sleeps: load is offered at a rate, and figures are read at
// the end of a stretch of time, so there is nothing to wait for. Tests have no use for it.
#include "pause.hpp"

#include <thread>

namespace queen::bench {

void pause(std::chrono::nanoseconds time) {
    std::this_thread::sleep_for(time);
}

} // namespace queen::bench
