// plugins/hotlist/interner.hpp - partition names of one queue as dense numbers.
#pragma once
#include "figures.hpp"
#include "segmented.hpp"

#include <queen/plugin/types.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string_view>
#include <vector>

namespace queen::hotlist {

/// Name -> index, index -> name, partition id -> index. Everything else of a ring is flat arrays by
/// index, so the texts exist once per queue, however many groups read it.
///
/// A name that other brokers alone have said is hearsay until somebody who has seen its partition
/// says it too. What there is of that is bounded: any other name is backed by a partition, but a
/// peer can think of names without end.
///
/// Invariant: append-only. An index is never reused and a text never moves while the interner
/// lives; of at most `most_hearsay` names nobody knows whether they exist. Locks: `mutex_` is a
/// leaf: readers share it, only a name or id that is new takes it alone.
/// @thread any
class Interner {
public:
    using Index = std::uint32_t;
    static constexpr Index kNone = UINT32_MAX;

    /// @param totals of what all interners hold; must outlive it
    explicit Interner(Totals& totals, std::size_t most_hearsay = SIZE_MAX)
        : totals_(totals), most_hearsay_(most_hearsay) {}
    ~Interner();
    Interner(const Interner&) = delete;
    Interner& operator=(const Interner&) = delete;

    struct Named {
        std::string_view name;
        Uuid id; ///< all zero: not known
    };

    /// Finds or adds each name, and remembers its id when that is known and new.
    /// `out[i]` is the index of `named(i)`, for i below `count`.
    template <class NamedAt>
    void intern(std::size_t count, NamedAt named, Index* out) {
        bool all_known = true;
        {
            const std::shared_lock lock(mutex_);
            for (std::size_t i = 0; i < count; ++i) {
                const Named one = named(i);
                out[i] = find_name(one.name, hash_of(one.name));
                all_known = all_known && out[i] != kNone &&
                            entries_[out[i]].standing == Standing::proven &&
                            (!one.id.known() || entries_[out[i]].id == one.id);
            }
        }
        if (all_known) {
            return;
        }
        const std::lock_guard lock(mutex_);
        for (std::size_t i = 0; i < count; ++i) {
            const Named one = named(i);
            out[i] = add(one.name, out[i], Standing::proven);
            prove(out[i]);
            remember_one(out[i], one.id);
        }
    }
    /// Likewise for what another broker said. Where there is no room for one, `out[i]` is kNone.
    /// @return how many those are
    template <class NameAt>
    std::size_t intern_hearsay(std::size_t count, NameAt name, Index* out) {
        std::size_t unknown = 0;
        bool full = false;
        {
            const std::shared_lock lock(mutex_);
            for (std::size_t i = 0; i < count; ++i) {
                const std::string_view one = name(i);
                out[i] = find_name(one, hash_of(one));
                unknown += out[i] == kNone ? 1 : 0;
            }
            full = hearsay_ >= most_hearsay_;
        }
        if (unknown == 0 || full) {
            return unknown; // who floods us takes no lock that others wait for
        }
        const std::lock_guard lock(mutex_);
        for (std::size_t i = 0; i < count; ++i) {
            if (out[i] == kNone) {
                out[i] = add(name(i), kNone, Standing::hearsay);
                unknown -= out[i] == kNone ? 0 : 1;
            }
        }
        return unknown;
    }
    Index intern(std::string_view name, const Uuid& id) {
        Index index = kNone;
        intern(
            1,
            [&](std::size_t) {
                return Named{name, id};
            },
            &index);
        return index;
    }

    struct Known {
        Index index;
        Uuid id;
    };
    /// Remembers ids of names that are there already.
    void remember(std::span<const Known> ids);

    /// A claim found no partition of those names.
    void not_found(std::span<const Index> indices);
    /// There is no room for hearsay, and half of what takes it does not exist. Indices cannot be
    /// given back one by one: it is time to begin anew.
    bool haunted() const;

    /// kNone for an id that nobody told. A queue that is made again gives its partitions new ids;
    /// the last id told for a name is the one that counts.
    Index find(const Uuid& id) const;

    /// Gives `use(i, name)` the name of each index. The text stays valid as long as the interner.
    template <class Use>
    void names(std::size_t count, const Index* indices, Use use) const {
        const std::shared_lock lock(mutex_);
        for (std::size_t i = 0; i < count; ++i) {
            use(i, text(indices[i]));
        }
    }

    std::size_t size() const;
    /// Bytes of heap memory held.
    std::size_t bytes() const;

private:
    /// Open addressing over 64-bit cells: the upper half is the hash, the lower index + 1. A lookup
    /// touches a text only when all 32 bits of the hash agree, growing touches no text at all. It
    /// grows by degrees: each insertion moves a few cells, and until all are moved both are
    /// searched.
    class Table {
    public:
        template <class Same>
        Index find(std::uint32_t hash, Same same) const {
            const Index index = find_in(cells_, hash, same);
            return index != kNone ? index : find_in(old_, hash, same);
        }
        /// @errors throws std::bad_alloc and changes nothing
        void insert(std::uint32_t hash, Index index);
        std::size_t bytes() const { return (cells_.size() + old_.size()) * sizeof(std::uint64_t); }

    private:
        using Cells = ZeroedBlock<std::uint64_t>;
        template <class Same>
        static Index find_in(const Cells& cells, std::uint32_t hash, Same same) {
            if (cells.empty()) {
                return kNone;
            }
            const std::size_t mask = cells.size() - 1;
            for (std::size_t at = hash & mask; cells[at] != 0; at = (at + 1) & mask) {
                const auto index = static_cast<Index>(cells[at] & UINT32_MAX) - 1;
                if (static_cast<std::uint32_t>(cells[at] >> 32) == hash && same(index)) {
                    return index;
                }
            }
            return kNone;
        }
        void put(std::uint64_t cell);
        Cells cells_;           ///< size is a power of two, at most 5/8 full: misses stay short
        Cells old_;             ///< while growing: the smaller one before, whole
        std::size_t moved_ = 0; ///< cells of old_ that are in cells_ too
        std::size_t used_ = 0;
    };

    enum class Standing : std::uint8_t {
        proven,
        hearsay, ///< only another broker said so
        missing  ///< hearsay, and a claim did not find it
    };
    struct Entry {
        const char* text;
        std::uint32_t length;
        Standing standing;
        Uuid id; ///< all zero: not known
    };

    static std::uint32_t hash_of(std::string_view name) noexcept;
    static std::uint32_t hash_of(const Uuid& id) noexcept;

    // All below require mutex_.
    Index find_name(std::string_view name, std::uint32_t hash) const;
    Index add(std::string_view name, Index known, Standing standing);
    void prove(Index index);
    void remember_one(Index index, const Uuid& id);
    std::string_view text(Index index) const {
        return {entries_[index].text, entries_[index].length};
    }
    const char* store(std::string_view name);

    Totals& totals_;
    const std::size_t most_hearsay_;
    std::size_t hearsay_ = 0; ///< names, those that are missing included
    std::size_t missing_ = 0;
    mutable std::shared_mutex mutex_;
    Segmented<Entry> entries_;
    std::uint32_t size_ = 0;
    Table by_name_, by_id_;
    std::vector<std::unique_ptr<char[]>> chunks_;
    std::size_t chunk_size_ = 0, chunk_used_ = 0, chunk_bytes_ = 0;
};

} // namespace queen::hotlist
