#pragma once
#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace queen::broker {

/// A set of 56-bit fingerprints, each with a tag, whose members are dropped a tag at a time.
///
/// One open-addressed table with linear probing, so a look-up costs about one cache miss however
/// many tags there are (F-15): a word is 56 bits of the hash and 8 bits of tag. Members of a
/// dropped tag stay until their part is rebuilt and do not count; a tag is given out again only
/// when none of its old members can be left. Parts keep a rebuild to a few hundred KiB.
///
/// A fingerprint that was never inserted may be found: by chance once in 7e16 / size look-ups. One
/// that was inserted under a live tag is always found.
///
/// Locks: none; the owner's.
class FingerprintSet {
public:
    using Tag = std::uint8_t; ///< 1 to 255

    FingerprintSet();

    /// A tag for members to come; nullopt when all are live. Open until drop().
    std::optional<Tag> open();
    /// `fingerprint`: 64 uniform bits, of which the upper 56 count.
    void insert(std::uint64_t fingerprint, Tag tag);
    /// Forgets the members of a tag, which are `count`.
    void drop(Tag tag, std::size_t count);

    bool contains(std::uint64_t fingerprint) const noexcept;
    bool contains_any(std::span<const std::uint64_t> fingerprints) const noexcept;

    std::size_t size() const noexcept { return size_; } ///< live members, repeats included
    std::size_t bytes() const noexcept;                 ///< of memory, without sizeof

private:
    struct Part {
        std::unique_ptr<std::uint64_t[]> words; ///< zero: free
        std::uint32_t capacity = 0;
        std::uint32_t used = 0; ///< live and dropped members
    };

    static Part make_part(std::size_t members);
    static void put(Part& part, std::uint64_t word, unsigned part_bits) noexcept;
    bool live(std::uint64_t word) const noexcept;
    std::size_t part_of(std::uint64_t fingerprint) const noexcept;
    void rebuild(Part& part);
    void reshape(unsigned part_bits);

    std::vector<Part> parts_; ///< 2^part_bits_, by the upper bits of the fingerprint
    unsigned part_bits_ = 0;
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;
    std::bitset<256> live_;  ///< tags given out and not dropped
    std::bitset<256> stale_; ///< tags that dropped members may still bear
};

} // namespace queen::broker
