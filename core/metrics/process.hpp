#pragma once
#include <chrono>
#include <cstdint>

namespace queen::metrics {

/// What the kernel says of this process. Zero where it says nothing.
struct ProcessFigures {
    std::uint64_t resident_bytes = 0;
    std::chrono::microseconds cpu_user{0}, cpu_system{0};
};
/// @thread any. Two system calls, no wait.
ProcessFigures read_process();

} // namespace queen::metrics
