// broker/timer_packing.hpp - claimed timers as the segments that they become: of each destination
// one, its messages in the order of the claim.
#pragma once
#include "ports/timer_store.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace queen::broker {

struct PackedTimers {
    TimerFire::Segment segment;
    std::int32_t attempts = 0;     ///< the most of its rows
    std::vector<Nanoseconds> late; ///< by row, when claimed
    std::string unfit;             ///< why there are no bytes
    Nanoseconds latest() const;
};

/// What a claim brought.
struct PackedClaim {
    std::vector<PackedTimers> segments;
    std::vector<TimerClaimKey> surplus; ///< of rows that are not in them
    std::uint32_t rows = 0;             ///< that are
};

/// A payload that says it is compressed may come to so much; beyond it no frame is made of it.
inline constexpr std::size_t kMostTimerPayload = std::size_t{64} << 20;

/// Packs rows until their frames come to `most_bytes`; one may go over. A row of which no frame can
/// be made is a segment of its own, without bytes.
PackedClaim pack_claim(std::vector<ClaimedTimer> rows, std::size_t most_bytes, int zstd_level);

} // namespace queen::broker
