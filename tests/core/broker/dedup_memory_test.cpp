// The dedup cache when memory ends in the middle of a change.
#include "broker/dedup_cache.hpp"
#include "support/manual_clock.hpp"
#include "support/manual_ticker.hpp"
#include "support/scripted_store.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <random>

namespace {

/// Allocations of this thread that still succeed; negative: all.
thread_local int allocations_left = -1;

} // namespace

// Each by itself, since a sanitizer has its own of those that are not replaced, and out of line:
// inlined into a test they look like free() of what new made.
[[gnu::noinline]] void* operator new(std::size_t size) {
    if (allocations_left == 0) {
        throw std::bad_alloc();
    }
    allocations_left -= allocations_left > 0 ? 1 : 0;
    if (void* memory = std::malloc(size > 0 ? size : 1)) {
        return memory;
    }
    throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new[](std::size_t size) {
    return operator new(size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete[](void* memory) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept {
    std::free(memory);
}

namespace queen::broker {
namespace {

using namespace std::chrono_literals;

/// One partition whose every push is fresh, and a store that believes every vouch.
class DedupMemory : public testing::TestWithParam<int> {
protected:
    DedupMemory() {
        store_.on_window_hashes = [](const HashPage&, const auto& done) {
            done(std::vector<HashRow>{});
        };
    }
    std::vector<std::uint64_t> fresh() {
        std::vector<std::uint64_t> out(50);
        std::generate(out.begin(), out.end(), std::ref(random_));
        return out;
    }
    /// A push of these; memory ends after `allocations` during what the cache makes of the answer.
    /// @return whether it did
    bool push(const std::vector<std::uint64_t>& fingerprints, int allocations = -1) {
        const auto vouch = cache_.vouch(key_, fingerprints);
        PushOutcome outcome{.base = next_,
                            .created_at = now_ + 1ms,
                            .window = 3600s,
                            .probed = vouch ? 0 : 1000,
                            .after = now_};
        outcome.partition_id.bytes[0] = 1;
        next_ = Offset{next_.value() + static_cast<std::int64_t>(fingerprints.size())};
        now_ += 1ms;
        allocations_left = allocations;
        try {
            cache_.told(key_, fingerprints, vouch, outcome);
        } catch (const std::bad_alloc&) {
            allocations_left = -1;
            return true;
        }
        allocations_left = -1;
        return false;
    }

    test::ManualClock clock_;
    test::ManualTicker ticker_{clock_};
    test::ScriptedStore store_;
    DedupCache cache_{store_, ticker_, clock_, {.worth = 100}};
    const std::string key_ = "k";
    Offset next_{1000};
    WallTime now_{24h};
    std::mt19937_64 random_{1};
};

// A vouch that covers an offset whose hash was lost would let a duplicate in.
TEST_P(DedupMemory, NothingIsVouchedForThatWasLost) {
    for (int i = 0; i < 3; ++i) {
        push(fresh());
    }
    ASSERT_TRUE(cache_.vouch(key_, fresh())) << "complete";
    std::vector<std::vector<std::uint64_t>> pushed;
    bool failed = false;
    for (int i = 0; i < 3000 && !failed; ++i) {
        pushed.push_back(fresh());
        failed = push(pushed.back(), GetParam());
    }
    ASSERT_TRUE(failed);
    std::int64_t base = next_.value();
    for (auto segment = pushed.rbegin(); segment != pushed.rend(); ++segment) {
        base -= static_cast<std::int64_t>(segment->size());
        for (const auto& fingerprint : *segment) {
            const auto vouch = cache_.vouch(key_, std::span(&fingerprint, 1));
            ASSERT_TRUE(!vouch || vouch->upto < Offset{base}) << base << " of " << next_.value();
        }
    }
    // The next answers begin anew.
    for (int i = 0; i < 2; ++i) {
        push(fresh());
        clock_.advance(31s);
    }
    for (int i = 0; i < 4; ++i) {
        push(fresh());
    }
    EXPECT_TRUE(cache_.vouch(key_, fresh()));
    EXPECT_EQ(cache_.stats().surprises, 1u);
}

// From the first allocation of a rebuild to those of a split into more parts.
INSTANTIATE_TEST_SUITE_P(After, DedupMemory, testing::Values(0, 1, 2, 3));

} // namespace
} // namespace queen::broker
