#include "model/uuid7.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <unordered_set>
#include <vector>

namespace queen {
namespace {

RC_GTEST_PROP(Uuid7Property, IdsGrowWhateverTheClockDoes, (const std::vector<int>& steps)) {
    Uuid7 source;
    WallTime now{std::chrono::microseconds(1'769'851'800'000'000)};
    Uuid last;
    for (const int step : steps) {
        now += std::chrono::microseconds(step); // back and forth
        const Uuid id = source.next(now);
        RC_ASSERT(last < id);
        RC_ASSERT(id.bytes[6] >> 4 == 7);
        RC_ASSERT(id.bytes[8] >> 6 == 2);
        last = id;
    }
}

RC_GTEST_PROP(Uuid7Property, IdsFollowTheClockWhenItGrows, ()) {
    Uuid7 source;
    const auto steps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 100'000));
    WallTime now{std::chrono::microseconds(1'769'851'800'000'000)};
    for (const int step : steps) {
        now += std::chrono::milliseconds(step);
        const Uuid id = source.next(now);
        std::int64_t ms = 0;
        for (std::size_t i = 0; i < 6; ++i) {
            ms = ms << 8 | id.bytes[i];
        }
        RC_ASSERT(std::chrono::milliseconds(ms) ==
                  std::chrono::floor<std::chrono::milliseconds>(now.time_since_epoch()));
    }
}

} // namespace
} // namespace queen
