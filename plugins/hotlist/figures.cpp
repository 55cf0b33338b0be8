#include "figures.hpp"

#include <algorithm>
#include <vector>

namespace queen::hotlist {

ReadyAges::Percentiles ReadyAges::percentiles() const {
    const auto filled = static_cast<std::size_t>(
        std::min<std::uint64_t>(next_.load(std::memory_order_relaxed), kSamples));
    if (filled == 0) {
        return {};
    }
    std::vector<std::int64_t> ages;
    ages.reserve(filled);
    for (std::size_t i = 0; i < filled; ++i) {
        ages.push_back(ages_[i].load(std::memory_order_relaxed));
    }
    const auto at = [&](std::size_t percent) {
        const auto nth = ages.begin() + static_cast<std::ptrdiff_t>((filled - 1) * percent / 100);
        std::nth_element(ages.begin(), nth, ages.end());
        return Nanoseconds(*nth);
    };
    Percentiles found;
    found.p50 = at(50);
    found.p95 = at(95);
    return found;
}

} // namespace queen::hotlist
