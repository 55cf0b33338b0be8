#include "metrics/process.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

namespace queen::metrics {
namespace {

std::chrono::microseconds duration_of(const timeval& time) {
    return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
}

} // namespace

ProcessFigures read_process() {
    ProcessFigures figures;
    std::ifstream statm("/proc/self/statm");
    std::uint64_t total = 0, resident = 0; // pages
    if (statm >> total >> resident) {
        figures.resident_bytes = resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    }
    rusage usage{};
    if (::getrusage(RUSAGE_SELF, &usage) == 0) {
        figures.cpu_user = duration_of(usage.ru_utime);
        figures.cpu_system = duration_of(usage.ru_stime);
    }
    return figures;
}

} // namespace queen::metrics
