#include "broker/fingerprints.hpp"

#include <algorithm>
#include <utility>

namespace queen::broker {
namespace {

constexpr std::uint64_t kTagMask = 0xff;

/// Members of one part before all are split: 640 KiB of words at most. A guess between the length
/// of a rebuild (0.2 ms) and the number of parts.
constexpr std::size_t kPartMembers = 48 * 1024;
constexpr std::size_t kSmallest = 8; ///< words: one cache line

/// A part is rebuilt when it is fuller than 3/4, where a look-up that finds nothing reads 9 words,
/// which mostly share a cache line; it then has room for 2/3 more members than it holds. That makes
/// 10.7 to 13.4 bytes a member.
constexpr bool full(std::size_t used, std::size_t capacity) {
    return used * 4 >= capacity * 3;
}
constexpr std::size_t roomy(std::size_t members) {
    return std::max(kSmallest, (members + 1) * 5 / 3);
}

/// Where a word belongs: by its upper bits after those of the part, so that a rebuild in the order
/// of the words writes in the order of the words, too.
std::size_t home(std::uint64_t word, unsigned part_bits, std::size_t capacity) noexcept {
    const std::uint64_t spread = (word & ~kTagMask) << part_bits;
    return static_cast<std::size_t>(((spread >> 32) * capacity) >> 32);
}

} // namespace

FingerprintSet::FingerprintSet() : parts_(1) {}

FingerprintSet::Part FingerprintSet::make_part(std::size_t members) {
    Part part;
    part.capacity = static_cast<std::uint32_t>(roomy(members));
    part.words = std::make_unique<std::uint64_t[]>(part.capacity);
    return part;
}

void FingerprintSet::put(Part& part, std::uint64_t word, unsigned part_bits) noexcept {
    auto at = home(word, part_bits, part.capacity);
    while (part.words[at] != 0) {
        at = at + 1 == part.capacity ? 0 : at + 1;
    }
    part.words[at] = word;
    ++part.used;
}

bool FingerprintSet::live(std::uint64_t word) const noexcept {
    return live_[word & kTagMask];
}

std::size_t FingerprintSet::part_of(std::uint64_t fingerprint) const noexcept {
    return part_bits_ == 0 ? 0 : static_cast<std::size_t>(fingerprint >> (64 - part_bits_));
}

std::optional<FingerprintSet::Tag> FingerprintSet::open() {
    const auto find = [this]() -> std::optional<Tag> {
        for (unsigned tag = 1; tag <= kTagMask; ++tag) {
            if (!live_[tag] && !stale_[tag]) {
                return static_cast<Tag>(tag);
            }
        }
        return std::nullopt;
    };
    auto tag = find();
    if (!tag && stale_.any()) {
        reshape(part_bits_); // nothing dropped is left
        tag = find();
    }
    if (tag) {
        live_.set(*tag);
    }
    return tag;
}

void FingerprintSet::insert(std::uint64_t fingerprint, Tag tag) {
    auto* part = &parts_[part_of(fingerprint)];
    if (full(part->used + 1, part->capacity)) {
        rebuild(*part);
        if (part->used > kPartMembers) {
            reshape(part_bits_ + 1);
            part = &parts_[part_of(fingerprint)];
        }
    }
    put(*part, (fingerprint & ~kTagMask) | tag, part_bits_);
    ++size_;
}

void FingerprintSet::drop(Tag tag, std::size_t count) {
    live_.reset(tag);
    stale_.set(tag);
    size_ -= std::min(count, size_);
    if (size_ * 4 < capacity_ && capacity_ > kSmallest) {
        auto bits = part_bits_;
        while (bits > 0 && size_ < (kPartMembers << bits) / 4) {
            --bits;
        }
        reshape(bits);
    }
}

bool FingerprintSet::contains(std::uint64_t fingerprint) const noexcept {
    const auto& part = parts_[part_of(fingerprint)];
    if (part.capacity == 0) {
        return false;
    }
    const auto wanted = fingerprint & ~kTagMask;
    auto at = home(fingerprint, part_bits_, part.capacity);
    // An id that was pushed again after its window is there twice: go on behind the dropped one.
    for (auto word = part.words[at]; word != 0; word = part.words[at]) {
        if ((word & ~kTagMask) == wanted && live(word)) {
            return true;
        }
        at = at + 1 == part.capacity ? 0 : at + 1;
    }
    return false;
}

bool FingerprintSet::contains_any(std::span<const std::uint64_t> fingerprints) const noexcept {
    for (const auto fingerprint : fingerprints) { // all misses on their way at once
        const auto& part = parts_[part_of(fingerprint)];
        if (part.capacity > 0) {
            __builtin_prefetch(&part.words[home(fingerprint, part_bits_, part.capacity)]);
        }
    }
    return std::any_of(fingerprints.begin(), fingerprints.end(),
                       [this](std::uint64_t fingerprint) { return contains(fingerprint); });
}

std::size_t FingerprintSet::bytes() const noexcept {
    return capacity_ * sizeof(std::uint64_t) + parts_.capacity() * sizeof(Part);
}

void FingerprintSet::rebuild(Part& part) {
    std::size_t members = 0;
    for (std::size_t i = 0; i < part.capacity; ++i) {
        members += part.words[i] != 0 && live(part.words[i]) ? 1 : 0;
    }
    auto fresh = make_part(members);
    for (std::size_t i = 0; i < part.capacity; ++i) {
        if (part.words[i] != 0 && live(part.words[i])) {
            put(fresh, part.words[i], part_bits_);
        }
    }
    capacity_ = capacity_ - part.capacity + fresh.capacity;
    part = std::move(fresh);
}

/// Moves all live members into 2^part_bits parts. Both ways go upwards through the fingerprints:
/// new parts are made when they are reached and old ones freed when they are done, so that memory
/// does not double (F-17).
void FingerprintSet::reshape(unsigned part_bits) {
    std::vector<Part> old(std::size_t{1} << part_bits);
    std::swap(old, parts_);
    part_bits_ = part_bits;
    for (auto& part : old) {
        for (std::size_t i = 0; i < part.capacity; ++i) {
            const auto word = part.words[i];
            if (word == 0 || !live(word)) {
                continue;
            }
            auto& target = parts_[part_of(word)];
            if (target.capacity == 0) {
                target = make_part(size_ >> part_bits);
            } else if (full(target.used + 1, target.capacity)) {
                rebuild(target);
            }
            put(target, word, part_bits_);
        }
        part.words.reset();
    }
    capacity_ = 0;
    for (const auto& part : parts_) {
        capacity_ += part.capacity;
    }
    stale_.reset();
}

} // namespace queen::broker
