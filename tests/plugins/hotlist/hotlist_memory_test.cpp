// How much a partition costs. Prints the figures of the README.
#include "interner.hpp"
#include "ring.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

namespace queen::hotlist {
namespace {

using namespace std::chrono_literals;

TEST(HotListMemory, AMillionPartitionsInOneRing) {
    constexpr std::uint32_t kPartitions = 1'000'000;
    constexpr std::uint32_t kShards = 8;
    Totals totals;
    Interner names(totals);
    const auto ring = std::make_shared<Ring>(
        std::make_shared<QueueFacts>(plugin::Queue{"t\x1fq", "t", "q"}, false), "g", kShards,
        ReseedFloor::Intervals{30s, 300s, 0s}, SteadyTime(1s), totals);
    Rules rules;
    rules.delay = 5s; // all of them in the wheel, which costs most
    std::size_t name_bytes = 0;
    std::vector<Interner::Index> page;
    for (std::uint32_t i = 0; i < kPartitions; ++i) {
        char name[32];
        std::snprintf(name, sizeof(name), "customer-%08u", i);
        Uuid id;
        for (std::size_t b = 0; b < 4; ++b) {
            id.bytes[b] = static_cast<std::uint8_t>(i >> (8 * b));
        }
        id.bytes[15] = 1;
        name_bytes += std::string_view(name).size();
        page.push_back(names.intern(name, id));
        if (page.size() == 10'000) {
            std::vector<Ring::Marked> marks;
            for (std::uint32_t shard = 0; shard < kShards; ++shard) {
                for (const Interner::Index index : page) {
                    if (index % kShards == shard) {
                        marks.push_back({index, 1});
                    }
                }
            }
            ring->mark(marks, SteadyTime(2s), rules);
            page.clear();
        }
    }
    const double per_name = static_cast<double>(names.bytes() - name_bytes) / kPartitions;
    const double per_slot = static_cast<double>(ring->bytes()) / kPartitions;
    std::printf(
        "1,000,000 partitions: %.1f MB of names and ids (%.1f bytes each beside the %.0f of "
        "its name), %.1f MB a ring with all in the wheel (%.1f bytes each, a slot is %zu)\n",
        static_cast<double>(names.bytes()) / 1e6, per_name,
        static_cast<double>(name_bytes) / kPartitions, static_cast<double>(ring->bytes()) / 1e6,
        per_slot, SubRing::slot_bytes());
    EXPECT_LE(SubRing::slot_bytes(), 56u);
    EXPECT_LE(per_slot, 2 * 56 + 2 * 16) << "arrays grow by doubling, a wheel cell has 16 bytes";
    EXPECT_LE(per_name, 150) << "an entry of 32, two tables of 8-byte cells at most 5/8 full";
    EXPECT_EQ(ring->depth(SteadyTime(2s)).wheel, kPartitions);
}

} // namespace
} // namespace queen::hotlist
