#include "broker/timer_packing.hpp"

#include "model/frame.hpp"
#include "model/hash.hpp"
#include "model/segment.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace queen::broker {
namespace {

TimerClaimKey key_of(const ClaimedTimer& row) {
    return {row.tenant, row.queue, row.key, row.token};
}

/// Appends the row's message to the frames of its segment, as it was staged (ENC-4).
Result<void> append_row(std::string& frames, const ClaimedTimer& row, std::string& unpacked) {
    std::string_view payload = row.payload;
    if (row.payload_zstd) {
        auto bytes = decompress_segment(row.payload, kMostTimerPayload);
        if (!bytes) {
            return fail(Errc::corrupt,
                        "its compressed payload cannot be read: " + bytes.error().message);
        }
        unpacked = std::move(*bytes);
        payload = unpacked;
    }
    return append_frame(frames, {.message_id = row.message_id,
                                 .trace_id = {},
                                 .transaction_id = row.transaction_id,
                                 .producer_sub = row.producer_sub,
                                 .payload = payload,
                                 .encrypted = row.encrypted});
}

} // namespace

Nanoseconds PackedTimers::latest() const {
    return *std::max_element(late.begin(), late.end());
}

PackedClaim pack_claim(std::vector<ClaimedTimer> rows, std::size_t most_bytes, int zstd_level) {
    PackedClaim claim;
    std::map<std::tuple<std::string, std::string, std::string>, std::size_t> places;
    std::vector<std::string> frames; ///< by segment
    std::size_t bytes = 0;
    const auto begin_segment = [&](const ClaimedTimer& row) {
        auto& begun = claim.segments.emplace_back().segment;
        begun.tenant = row.tenant;
        begun.queue = row.queue;
        begun.partition = row.partition;
        frames.emplace_back();
        return claim.segments.size() - 1;
    };
    std::string unpacked;
    for (ClaimedTimer& row : rows) {
        if (bytes >= most_bytes) {
            claim.surplus.push_back(key_of(row));
            continue;
        }
        ++claim.rows;
        std::string frame;
        const auto made = append_row(frame, row, unpacked);
        std::size_t place = 0;
        if (made) {
            const auto [known, fresh] =
                places.try_emplace({row.tenant, row.queue, row.partition}, 0);
            place = known->second = fresh ? begin_segment(row) : known->second;
            frames[place] += frame;
            bytes += frame.size();
        } else {
            place = begin_segment(row);
            claim.segments[place].unfit =
                "timer '" + row.key + "' of queue '" + row.queue + "': " + made.error().message;
        }
        PackedTimers& timers = claim.segments[place];
        ++timers.segment.count;
        timers.segment.hashes.append(hash_transaction_id(row.transaction_id).view());
        timers.segment.rows.push_back(key_of(row));
        timers.attempts = std::max(timers.attempts, row.attempts);
        timers.late.push_back(row.late);
        row.payload = {}; // it is in the frames
    }
    for (std::size_t i = 0; i < frames.size(); ++i) {
        if (claim.segments[i].unfit.empty()) {
            claim.segments[i].segment.blob = compress_segment(frames[i], zstd_level);
            frames[i] = {};
        }
    }
    return claim;
}

} // namespace queen::broker
