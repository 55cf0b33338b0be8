#include "broker/dedup_span.hpp"

#include <algorithm>
#include <cstring>

namespace queen::broker {
namespace {

/// Generations a window is cut into: what expires late is one of them, 1.6 %.
constexpr int kGenerations = 64;

/// Answers told out of order are as many as pushes are under way to one partition; what is beyond
/// these bounds is read from the store instead. Guesses.
constexpr std::size_t kHeldSegments = 256;
constexpr std::size_t kHeldHashes = 16 * 1024;

std::chrono::microseconds width(std::chrono::seconds window) {
    return std::chrono::microseconds(window) / kGenerations;
}

} // namespace

std::vector<std::uint64_t> fingerprints_of(std::string_view hashes) {
    std::vector<std::uint64_t> out(hashes.size() / 16);
    for (std::size_t i = 0; i < out.size(); ++i) {
        std::memcpy(&out[i], hashes.data() + i * 16, sizeof(std::uint64_t));
    }
    return out;
}

std::int64_t DedupSpan::missing() const noexcept {
    return std::max<std::int64_t>(0,
                                  top_ - upto_.value() - static_cast<std::int64_t>(held_hashes_));
}

std::size_t DedupSpan::bytes() const noexcept {
    constexpr std::size_t kNode = 96; // of the map, with its vector and the allocator's part
    return set_.bytes() + generations_.capacity() * sizeof(Generation) + held_.size() * kNode +
           held_hashes_ * sizeof(std::uint64_t);
}

/// Whether what is left of a segment below upto() is what the span has there.
bool DedupSpan::knows(const Segment& segment) const noexcept {
    const auto expired =
        std::clamp<std::int64_t>(from_.value() + 1 - segment.base.value(), 0,
                                 static_cast<std::int64_t>(segment.fingerprints.size()));
    const auto rest = segment.fingerprints.subspan(static_cast<std::size_t>(expired));
    return std::all_of(rest.begin(), rest.end(),
                       [this](std::uint64_t f) { return set_.contains(f); });
}

DedupSpan::Told DedupSpan::add_above(const Segment& segment, WallTime after,
                                     std::chrono::seconds window) {
    top_ = std::max(top_, segment.end().value());
    if (segment.base.value() > upto_.value() + 1) {
        hold(segment, after);
        return Told::fits;
    }
    const auto told = settle(segment, after, window);
    while (!held_.empty() && held_.begin()->first <= upto_.value() + 1) {
        const auto held = held_.extract(held_.begin());
        const auto& [held_after, at, fingerprints] = held.mapped();
        held_hashes_ -= fingerprints.size();
        if (settle({Offset{held.key()}, at, fingerprints}, held_after, window) == Told::surprise) {
            return Told::surprise;
        }
    }
    return told;
}

/// Of a segment that begins at upto() + 1 or below.
DedupSpan::Told DedupSpan::settle(const Segment& segment, WallTime after,
                                  std::chrono::seconds window) {
    if (segment.base <= upto_) {
        return segment.end() <= upto_ && knows(segment) ? Told::known : Told::surprise;
    }
    if (after != newest_at_) {
        return Told::surprise;
    }
    torn_ = true;
    upto_ = segment.end();
    newest_at_ = segment.at;
    // When no tag is free the newest generation goes on: it expires later, and nothing is lost.
    if (generations_.empty() || segment.at - generations_.back().oldest > width(window)) {
        if (const auto tag = set_.open()) {
            generations_.push_back({*tag, 0, 0, segment.at, segment.at});
        }
    }
    auto& generation = generations_.back();
    for (const auto fingerprint : segment.fingerprints) {
        set_.insert(fingerprint, generation.tag);
    }
    generation.count += static_cast<std::uint32_t>(segment.fingerprints.size());
    generation.end = upto_.value();
    generation.newest = segment.at;
    torn_ = false;
    return Told::fits;
}

void DedupSpan::hold(const Segment& segment, WallTime after) {
    const auto& fingerprints = segment.fingerprints;
    if (held_.size() >= kHeldSegments || held_hashes_ + fingerprints.size() > kHeldHashes) {
        held_.clear();
        held_hashes_ = 0;
        return;
    }
    const auto [place, fresh] = held_.try_emplace(
        segment.base.value(), Held{after, segment.at, {fingerprints.begin(), fingerprints.end()}});
    held_hashes_ += fresh ? place->second.fingerprints.size() : 0;
}

DedupSpan::Told DedupSpan::add_below(const Segment& segment, std::chrono::seconds window) {
    if (segment.end() != from_ || generations_.empty() ||
        segment.at > generations_.front().oldest) {
        return Told::surprise;
    }
    torn_ = true;
    if (generations_.front().newest - segment.at > width(window)) {
        if (const auto tag = set_.open()) {
            generations_.insert(generations_.begin(),
                                {*tag, 0, from_.value(), segment.at, segment.at});
        }
    }
    auto& generation = generations_.front();
    for (const auto fingerprint : segment.fingerprints) {
        set_.insert(fingerprint, generation.tag);
    }
    generation.count += static_cast<std::uint32_t>(segment.fingerprints.size());
    generation.oldest = segment.at;
    from_ = Offset{segment.base.value() - 1};
    torn_ = false;
    return Told::fits;
}

void DedupSpan::expire(WallTime start) {
    torn_ = true;
    auto kept = generations_.begin();
    for (; kept != generations_.end() && kept->newest < start; ++kept) {
        from_ = Offset{kept->end};
        set_.drop(kept->tag, kept->count);
    }
    generations_.erase(generations_.begin(), kept);
    torn_ = false;
}

} // namespace queen::broker
