#pragma once
#include <atomic>
#include <cstdint>

namespace queen {

/// Counts up from the start of the process. Relaxed: a reader sees each counter by itself, not
/// several of them at one moment. One atomic addition to count (5 ns, see core/metrics/README.md).
/// @thread any
class Counter {
public:
    void add(std::uint64_t by = 1) noexcept { value_.fetch_add(by, std::memory_order_relaxed); }
    std::uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

private:
    std::atomic<std::uint64_t> value_{0};
};

} // namespace queen
