// plugins/hotlist/figures.hpp - what the hot-list counts about itself.
#pragma once
#include "shared/counter.hpp"

#include <queen/plugin/types.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace queen::hotlist {

using shared::Counter;

struct Counters {
    Counter marks_local, marks_remote, names_offered, scans;
    Counter took, empty, leased, requeued;
    Counter reseeds_full, reseeds_window, reseeds_failed, reseeds_dropped;
    Counter reseed_rows;   ///< that made something ready or put it on the wheel
    Counter marks_refused; ///< names of other brokers for which there was no room
    Counter renewals;      ///< queues forgotten because peers' names were not there
    Counter trims;         ///< rings dropped because no pop came
    Counter sweeps;        ///< queues dropped
};

/// Sums over all rings, kept up as they change, so that reading them costs the same with one ring
/// as with ten thousand. In stripes, because every push and pop of the broker adds here.
/// @thread any
class Totals {
public:
    enum Sum : std::size_t { ready, wheel, in_flight, partitions, rings, queues, kSums };

    /// @param stripe any number; who changes a sum often uses one of its own
    void add(Sum sum, std::int64_t change, std::size_t stripe = 0) noexcept {
        if (change != 0) {
            stripes_[stripe % kStripes].sums[sum].fetch_add(change, std::memory_order_relaxed);
        }
    }
    std::uint64_t value(Sum sum) const noexcept {
        std::int64_t all = 0;
        for (const Stripe& stripe : stripes_) {
            all += stripe.sums[sum].load(std::memory_order_relaxed);
        }
        return all < 0 ? 0 : static_cast<std::uint64_t>(all);
    }

private:
    static constexpr std::size_t kStripes = 16;
    struct alignas(64) Stripe {
        std::array<std::atomic<std::int64_t>, kSums> sums{};
    };
    std::array<Stripe, kStripes> stripes_;
};

/// How long the last 4096 candidates had been ready when a pop took them.
/// @thread any: samples may overwrite each other, which an estimate can bear
class ReadyAges {
public:
    static constexpr std::size_t kSamples = 4096;

    void add(Nanoseconds age) noexcept {
        const auto at = next_.fetch_add(1, std::memory_order_relaxed) % kSamples;
        ages_[at].store(age.count(), std::memory_order_relaxed);
    }
    struct Percentiles {
        Nanoseconds p50{0}, p95{0};
    };
    Percentiles percentiles() const;

private:
    std::atomic<std::uint64_t> next_{0};
    std::array<std::atomic<std::int64_t>, kSamples> ages_{};
};

} // namespace queen::hotlist
