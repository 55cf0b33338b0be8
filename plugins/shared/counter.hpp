// shared/counter.hpp - what a plugin counts about itself.
#pragma once
#include <atomic>
#include <cstdint>

namespace queen::shared {

/// One rising number. @thread any
class Counter {
public:
    void add(std::uint64_t n = 1) noexcept { value_.fetch_add(n, std::memory_order_relaxed); }
    std::uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

private:
    std::atomic<std::uint64_t> value_{0};
};

} // namespace queen::shared
