#pragma once
#include "base/clock.hpp"
#include "broker/fingerprints.hpp"
#include "ports/store.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

namespace queen::broker {

/// The first 8 bytes of each hash in a run of 16-byte hashes.
std::vector<std::uint64_t> fingerprints_of(std::string_view hashes);

/// What one broker knows of one partition row: the fingerprints of all offsets in (from, upto].
///
///   ... older than the window | from | known, in generations by time | upto | held | ...
///
/// Grows at the top by own pushes and pages read upwards, at the bottom by pages read downwards,
/// and shrinks at the bottom as generations leave the window. Answers to concurrent pushes may be
/// told in any order: what lies above a gap is held until the gap is filled or read from the store.
///
/// Invariant: every offset in (from, upto] was told by the store, with exactly the hash whose
///            fingerprint is in the set. Only then may it be said that it was compared.
/// Invariant: segments follow each other by their stamps, too: each was stored after the one below
///            it. So the stamp at the top stands for all of them, also when the database was set
///            back and gave the same offsets to other messages.
/// Invariant: from + 1 is the first offset of a segment.
/// Times are the database's, and compared with each other alone (CLK-1).
/// Locks: none; the owner's.
class DedupSpan {
public:
    /// Nothing is known but that the segment that ends at `after` bears the stamp `at`.
    DedupSpan(Offset after, WallTime at) : from_(after), upto_(after), newest_at_(at) {}

    struct Segment {
        Offset base;
        WallTime at;
        std::span<const std::uint64_t> fingerprints;
        Offset end() const noexcept {
            return Offset{base.value() + static_cast<std::int64_t>(fingerprints.size()) - 1};
        }
    };
    enum class Told {
        fits,    ///< taken in or held
        known,   ///< a page from the store brought it already, or it has left the window
        surprise ///< contradicts what is known: the span is worthless
    };
    /// A segment that was stored after the one stamped `after`. `window` bounds how much time a
    /// generation covers.
    Told add_above(const Segment& segment, WallTime after, std::chrono::seconds window);
    /// The segment below the lowest one.
    Told add_below(const Segment& segment, std::chrono::seconds window);
    /// Forgets generations that are older than `start` as a whole.
    void expire(WallTime start);

    bool contains_any(std::span<const std::uint64_t> fingerprints) const noexcept {
        return set_.contains_any(fingerprints);
    }
    bool empty() const noexcept { return generations_.empty(); } ///< from() == upto()
    /// Memory ended in the middle of a change: the first invariant may not hold any more, so
    /// nothing may be said of this span.
    bool torn() const noexcept { return torn_; }
    Offset from() const noexcept { return from_; }
    Offset upto() const noexcept { return upto_; }
    Offset top() const noexcept { return Offset{top_}; } ///< the highest heard of; -1 for none
    WallTime newest_at() const noexcept { return newest_at_; } ///< of the segment holding upto()
    /// Of the segment that begins at from() + 1. Not of an empty span.
    WallTime oldest_at() const { return generations_.at(0).oldest; }

    std::size_t size() const noexcept { return set_.size(); }
    /// Offsets above upto() that are known to exist and are not held.
    std::int64_t missing() const noexcept;
    std::size_t bytes() const noexcept; ///< of memory, without sizeof

private:
    struct Generation {
        FingerprintSet::Tag tag;
        std::uint32_t count;
        std::int64_t end; ///< its last offset
        WallTime oldest, newest;
    };
    struct Held {
        WallTime after, at;
        std::vector<std::uint64_t> fingerprints;
    };

    Told settle(const Segment& segment, WallTime after, std::chrono::seconds window);
    void hold(const Segment& segment, WallTime after);
    bool knows(const Segment& segment) const noexcept;

    Offset from_;
    Offset upto_;
    WallTime newest_at_;
    std::int64_t top_ = -1; ///< the highest offset heard of
    FingerprintSet set_;
    std::vector<Generation> generations_; ///< oldest first
    std::map<std::int64_t, Held> held_;   ///< by base, all above a gap
    std::size_t held_hashes_ = 0;
    bool torn_ = false; ///< set while the set of fingerprints is changed
};

} // namespace queen::broker
