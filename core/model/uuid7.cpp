// Layout (RFC 9562, version 7): 48 bits of milliseconds, 4 of version, 12 of sequence, 2 of
// variant, 6 more of sequence, 56 random.
#include "model/uuid7.hpp"

#include <algorithm>
#include <bit>
#include <random>

namespace queen {
namespace {

constexpr std::uint64_t kMaxMillis = (std::uint64_t{1} << 48) - 1;
constexpr std::uint32_t kMaxSequence = (std::uint32_t{1} << 18) - 1;
/// A new millisecond starts somewhere in the first quarter, so that two brokers differ there as
/// well and 196,608 ids are left: six times what one process can mint in a millisecond.
constexpr int kFirstSequenceBits = 16;

/// xoroshiro128+ (Blackman, Vigna): ids must differ, not resist guessing.
std::uint64_t next_random(std::uint64_t (&state)[2]) {
    const std::uint64_t a = state[0];
    std::uint64_t b = state[1];
    const std::uint64_t value = a + b;
    b ^= a;
    state[0] = std::rotl(a, 24) ^ b ^ (b << 16);
    state[1] = std::rotl(b, 37);
    return value;
}

} // namespace

Uuid7::Uuid7() {
    std::random_device device;
    for (std::uint64_t& word : random_state_) {
        word = std::uint64_t{device()} << 32 | device();
    }
    random_state_[0] |= 1; // the state must not be all zero
}

Uuid Uuid7::next(WallTime now) {
    const auto since_epoch =
        std::chrono::floor<std::chrono::milliseconds>(now.time_since_epoch()).count();
    const auto ms =
        std::min(static_cast<std::uint64_t>(std::max<std::int64_t>(since_epoch, 0)), kMaxMillis);
    const std::lock_guard lock(mutex_);
    const std::uint64_t random = next_random(random_state_);
    if (ms <= last_ms_ && sequence_ < kMaxSequence) {
        ++sequence_;
    } else {
        // A later millisecond; or the next one before its time, until the clock catches up.
        last_ms_ = std::max(ms, last_ms_ + 1);
        sequence_ = static_cast<std::uint32_t>(random >> (64 - kFirstSequenceBits));
    }

    Uuid id;
    const auto put = [&id](std::size_t at, std::size_t count, std::uint64_t value) {
        for (std::size_t i = 0; i < count; ++i) {
            id.bytes[at + i] = static_cast<std::uint8_t>(value >> (8 * (count - 1 - i)));
        }
    };
    put(0, 6, last_ms_);
    put(6, 2, 0x7000 | sequence_ >> 6);
    put(8, 1, 0x80 | (sequence_ & 0x3F));
    put(9, 7, next_random(random_state_));
    return id;
}

} // namespace queen
