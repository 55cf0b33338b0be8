#pragma once
#include "base/counter.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace queen {

/// How often something took how long. Bounds are fixed: from a round trip on a socket of this
/// machine to what a time-out cuts off.
/// @thread any; sum and buckets are read one after the other, so a reader may see an observation in
/// one and not yet in the other
class LatencyHistogram {
public:
    /// Upper bounds, inclusive, in microseconds; one bucket more has none.
    static constexpr std::array<std::int64_t, 18> kBoundsMicroseconds{
        100,       250,       500,       1'000,      2'500,      5'000,
        10'000,    25'000,    50'000,    100'000,    250'000,    500'000,
        1'000'000, 2'500'000, 5'000'000, 10'000'000, 30'000'000, 60'000'000};
    static constexpr std::size_t kBuckets = kBoundsMicroseconds.size() + 1;

    struct Snapshot {
        std::array<std::uint64_t, kBuckets> buckets{}; ///< each by itself, not cumulative
        std::chrono::duration<double> sum{
            0}; ///< a whole number would overflow: days of many messages
        std::uint64_t count() const noexcept {
            std::uint64_t all = 0;
            for (const auto bucket : buckets) {
                all += bucket;
            }
            return all;
        }
    };

    /// @param times how many observations of this length; a negative length counts as none
    void observe(std::chrono::nanoseconds length, std::uint64_t times = 1) noexcept {
        length = std::max(length, std::chrono::nanoseconds{0});
        std::size_t bucket = 0;
        while (bucket < kBoundsMicroseconds.size() &&
               length > std::chrono::microseconds{kBoundsMicroseconds[bucket]}) {
            ++bucket;
        }
        buckets_[bucket].add(times);
        sum_.fetch_add(std::chrono::duration<double>(length).count() * static_cast<double>(times),
                       std::memory_order_relaxed);
    }

    Snapshot snapshot() const noexcept {
        Snapshot out;
        for (std::size_t i = 0; i < kBuckets; ++i) {
            out.buckets[i] = buckets_[i].value();
        }
        out.sum = std::chrono::duration<double>(sum_.load(std::memory_order_relaxed));
        return out;
    }

private:
    std::array<Counter, kBuckets> buckets_;
    std::atomic<double> sum_{0}; ///< seconds
};

} // namespace queen
