#pragma once
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <vector>

namespace queen::bench {

/// Lengths of time, each kept.
class Quantiles {
public:
    void add(std::chrono::nanoseconds length) {
        lengths_.push_back(length);
        sorted_ = false;
    }
    std::size_t count() const noexcept { return lengths_.size(); }
    const std::vector<std::chrono::nanoseconds>& all() const noexcept { return lengths_; }
    /// The least length that is not below this part of all; 0 gives the least, 1 the greatest.
    double milliseconds(double part) {
        if (lengths_.empty()) {
            return 0;
        }
        if (!sorted_) {
            std::sort(lengths_.begin(), lengths_.end());
            sorted_ = true;
        }
        const auto place =
            static_cast<std::size_t>(std::ceil(part * static_cast<double>(lengths_.size())));
        return std::chrono::duration<double, std::milli>(lengths_[place == 0 ? 0 : place - 1])
            .count();
    }

private:
    std::vector<std::chrono::nanoseconds> lengths_;
    bool sorted_ = false;
};

} // namespace queen::bench
