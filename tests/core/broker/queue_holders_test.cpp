#include "broker/queue_holders.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace queen::broker {
namespace {

/// A mutex that somebody else holds before each turn of ours.
struct Contended {
    std::function<void()> before;
    void lock() { before(); }
    void unlock() {}
};

// ME-13: a tenant that is missed is not woken.
TEST(QueueHolders, WhoeverIsThereThroughoutIsVisitedOnceThoughTheMapGrows) {
    std::unordered_map<int, int> map;
    for (int i = 0; i < 1'000; ++i) {
        map.emplace(i, 0);
    }
    int turn = 0;
    int grown = 0;
    Contended mutex{[&] {
        const auto buckets = map.bucket_count();
        if (++turn % 2 == 0) {
            for (int i = 0; i < 3'000 && turn < 8; ++i) {
                map.emplace(100'000 * turn + i, 0);
            }
        }
        grown += map.bucket_count() != buckets ? 1 : 0;
    }};
    std::vector<int> seen;
    visit_in_slices(
        mutex, map, [&] { seen.clear(); }, [&](const auto& entry) { seen.push_back(entry.first); });
    EXPECT_GT(grown, 1);
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end());
    seen.resize(1'000);
    for (int i = 0; i < 1'000; ++i) {
        ASSERT_EQ(seen[static_cast<std::size_t>(i)], i);
    }
}

TEST(QueueHolders, AnEmptyMapHasNobody) {
    std::mutex mutex;
    const std::unordered_map<int, int> map;
    visit_in_slices(
        mutex, map, [] {}, [](const auto&) { FAIL(); });
}

} // namespace
} // namespace queen::broker
