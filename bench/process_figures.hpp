#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <vector>

namespace queen::bench {

/// CPU time of a process and of children it has reaped; zero when it is gone. Units: those of the
/// kernel's clock ticks.
std::chrono::nanoseconds cpu_of(pid_t pid);
/// The process and all that descend from it, as they are now.
std::vector<pid_t> tree_of(pid_t root);
std::int64_t resident_bytes(pid_t pid);
int threads_of(pid_t pid);

} // namespace queen::bench
