#include "interner.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

namespace queen::hotlist {
namespace {

/// Chunks of text double from the first size to the second: a queue with one partition must not
/// cost 64 KiB when there are ten thousand such queues.
constexpr std::size_t kFirstChunk = 256;
constexpr std::size_t kLargestChunk = 64 * 1024;
constexpr std::size_t kFirstCells = 8;

std::uint32_t fold(std::size_t hash) noexcept {
    return static_cast<std::uint32_t>(hash ^ (static_cast<std::uint64_t>(hash) >> 32));
}

} // namespace

Interner::~Interner() {
    totals_.add(Totals::partitions, -std::int64_t{size_});
}

std::uint32_t Interner::hash_of(std::string_view name) noexcept {
    return fold(std::hash<std::string_view>{}(name));
}

std::uint32_t Interner::hash_of(const Uuid& id) noexcept {
    return fold(std::hash<Uuid>{}(id));
}

void Interner::Table::put(std::uint64_t cell) {
    const std::size_t mask = cells_.size() - 1;
    std::size_t at = static_cast<std::size_t>(cell >> 32) & mask;
    while (cells_[at] != 0) {
        at = (at + 1) & mask;
    }
    cells_[at] = cell;
    ++used_;
}

void Interner::Table::insert(std::uint32_t hash, Index index) {
    if (8 * (used_ + 1) > 5 * cells_.size()) {
        Cells larger(std::max(kFirstCells, 2 * cells_.size()));
        old_ = std::exchange(cells_, std::move(larger));
        moved_ = 0;
        used_ = 0;
    }
    // Four a time, and it grows again after 5/16 of its cells were added: all are moved by then.
    for (const std::size_t to = std::min(old_.size(), moved_ + 4); moved_ < to; ++moved_) {
        if (old_[moved_] != 0) {
            put(old_[moved_]);
        }
    }
    if (moved_ == old_.size()) {
        old_ = Cells();
        moved_ = 0;
    }
    put(static_cast<std::uint64_t>(hash) << 32 | (index + 1));
}

Interner::Index Interner::find(const Uuid& id) const {
    if (!id.known()) {
        return kNone;
    }
    const std::shared_lock lock(mutex_);
    return by_id_.find(hash_of(id), [&](Index index) { return entries_[index].id == id; });
}

void Interner::remember(std::span<const Known> ids) {
    const auto is_known = [&](const Known& known) {
        const Entry& entry = entries_[known.index];
        return entry.id == known.id && entry.standing == Standing::proven;
    };
    {
        const std::shared_lock lock(mutex_);
        if (std::all_of(ids.begin(), ids.end(), is_known)) {
            return; // all but the first time
        }
    }
    const std::lock_guard lock(mutex_);
    for (const Known& known : ids) {
        prove(known.index);
        remember_one(known.index, known.id);
    }
}

void Interner::not_found(std::span<const Index> indices) {
    if (indices.empty()) {
        return;
    }
    const auto is_news = [&](Index index) { return entries_[index].standing == Standing::hearsay; };
    {
        const std::shared_lock lock(mutex_);
        if (std::none_of(indices.begin(), indices.end(), is_news)) {
            return;
        }
    }
    const std::lock_guard lock(mutex_);
    for (const Index index : indices) {
        if (is_news(index)) {
            entries_[index].standing = Standing::missing;
            ++missing_;
        }
    }
}

bool Interner::haunted() const {
    const std::shared_lock lock(mutex_);
    return hearsay_ >= most_hearsay_ && 2 * missing_ >= most_hearsay_;
}

std::size_t Interner::size() const {
    const std::shared_lock lock(mutex_);
    return size_;
}

std::size_t Interner::bytes() const {
    const std::shared_lock lock(mutex_);
    return entries_.bytes() + by_name_.bytes() + by_id_.bytes() + chunk_bytes_;
}

// ---- below, mutex_ is held ----------------------------------------------------------------------

Interner::Index Interner::find_name(std::string_view name, std::uint32_t hash) const {
    return by_name_.find(hash, [&](Index index) { return text(index) == name; });
}

void Interner::prove(Index index) {
    Standing& standing = entries_[index].standing;
    hearsay_ -= standing == Standing::proven ? 0 : 1;
    missing_ -= standing == Standing::missing ? 1 : 0;
    standing = Standing::proven;
}

Interner::Index Interner::add(std::string_view name, Index known, Standing standing) {
    if (known != kNone) {
        return known;
    }
    const std::uint32_t hash = hash_of(name);
    if (const Index raced = find_name(name, hash); raced != kNone) {
        return raced;
    }
    if (standing != Standing::proven && hearsay_ >= most_hearsay_) {
        return kNone;
    }
    const Index index = size_;
    entries_.reach(index);
    entries_[index] = {store(name), static_cast<std::uint32_t>(name.size()), standing, {}};
    by_name_.insert(hash, index);
    ++size_; // last: what throws before leaves nothing behind
    hearsay_ += standing == Standing::proven ? 0 : 1;
    totals_.add(Totals::partitions, 1, hash);
    return index;
}

void Interner::remember_one(Index index, const Uuid& id) {
    if (!id.known() || entries_[index].id == id) {
        return;
    }
    // A cell of the id before stays behind and no longer matches: a name gets a new id only when
    // its queue was made again, which forgets the whole interner on the broker that was asked.
    entries_[index].id = id;
    by_id_.insert(hash_of(id), index);
}

const char* Interner::store(std::string_view name) {
    if (chunk_size_ - chunk_used_ < name.size() || chunks_.empty()) {
        chunk_size_ = std::max(
            chunks_.empty() ? kFirstChunk : std::min(2 * chunk_size_, kLargestChunk), name.size());
        chunks_.push_back(std::make_unique<char[]>(chunk_size_));
        chunk_used_ = 0;
        chunk_bytes_ += chunk_size_;
    }
    char* const at = chunks_.back().get() + chunk_used_;
    std::memcpy(at, name.data(), name.size());
    chunk_used_ += name.size();
    return at;
}

} // namespace queen::hotlist
