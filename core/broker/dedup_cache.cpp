#include "broker/dedup_cache.hpp"

#include <algorithm>
#include <utility>

namespace queen::broker {
namespace {

using namespace std::chrono_literals;

/// A second large probe within this time, and a partition is hydrated.
constexpr auto kAgain = 60s;
/// An entry that was used within this time is not evicted; then it would only be hydrated again.
constexpr auto kProtected = 5s;
/// After a hydration was refused or failed (F-16).
constexpr auto kCoolDown = 30s;
constexpr auto kQuiet = 60s;
/// The shards are swept in turn, one at a time.
constexpr auto kSweepStep = 2s;
/// An entry is kept for its window after its last use, but not less than this.
constexpr SteadyTime::duration kLeastIdle = 60s;

/// Of memory for one hash: FingerprintSet at its emptiest. For the estimate of a hydration.
constexpr std::size_t kHashBytes = 14;
/// Beside span and hashes: the nodes of the map and the list.
constexpr std::size_t kNodeBytes = 128;

/// Above the budget but with everything in use, the cache keeps what it has, up to this.
constexpr std::size_t tolerated(std::size_t budget) {
    return budget + budget / 4;
}

} // namespace

DedupCache::DedupCache(Store& store, Ticker& ticker, const Clock& clock, Options options)
    : store_(store), ticker_(ticker), clock_(clock), options_(std::move(options)) {}

DedupCache::Shard& DedupCache::shard_of(const std::string& key) {
    return shards_[std::hash<std::string>{}(key) % kShards];
}

std::optional<Vouch> DedupCache::vouch(const std::string& key,
                                       std::span<const std::uint64_t> fingerprints) {
    auto& shard = shard_of(key);
    const std::lock_guard lock(shard.mutex);
    const auto place = shard.entries.find(key);
    if (place == shard.entries.end()) {
        return std::nullopt;
    }
    auto& entry = *place->second;
    touch(shard, entry);
    const auto& span = entry.span;
    if (!entry.complete || span.from() == span.upto() || span.torn()) {
        return std::nullopt;
    }
    if (span.contains_any(fingerprints)) {
        ++suspects_;
        return std::nullopt;
    }
    ++vouched_;
    return Vouch{entry.id, span.from(), span.upto(), span.newest_at()};
}

void DedupCache::told(const std::string& key, std::span<const std::uint64_t> fingerprints,
                      const std::optional<Vouch>& vouch, const PushOutcome& outcome) {
    auto& shard = shard_of(key);
    std::optional<Read> read;
    bool held = false, refused = false;
    {
        const std::lock_guard lock(shard.mutex);
        auto place = shard.entries.find(key);
        if (place != shard.entries.end() && outcome.window == 0s) {
            drop(shard, place); // nothing is compared any more
        } else if (place != shard.entries.end() && place->second->id != outcome.partition_id) {
            ++surprises_; // deleted and made again, whichever of the two this is
            drop(shard, place);
        } else if (place != shard.entries.end() && place->second->span.torn()) {
            surprise(shard, place);
        } else if (place != shard.entries.end()) {
            place->second->window = outcome.window;
            touch(shard, *place->second);
            if (!outcome.duplicate && !grow(*place->second, fingerprints, vouch, outcome)) {
                surprise(shard, place);
            }
        } else if (!outcome.duplicate && outcome.window > 0s && outcome.probed >= options_.worth) {
            refused = !consider(shard, key, outcome, fingerprints);
        }
        place = shard.entries.find(key);
        if (place != shard.entries.end()) {
            held = true;
            recount(*place->second, key.size());
            read = next_read(key, place->second);
        }
    }
    if (refused) {
        warn("the dedup cache has no room for another partition; its pushes stay slow "
             "(dedup.cache_size)");
    }
    if (read) {
        start(std::move(*read));
    }
    if (held && bytes_ > options_.bytes) {
        fit(key);
    }
    if (partitions_ + candidates_ > 0) {
        arm_sweep();
    }
}

void DedupCache::touch(Shard& shard, Entry& entry) {
    entry.used = clock_.now();
    shard.by_use.splice(shard.by_use.end(), shard.by_use, entry.place);
}

void DedupCache::recount(Entry& entry, std::size_t key_bytes) {
    auto now = sizeof(Entry) + kNodeBytes + key_bytes + entry.span.bytes();
    if (!entry.complete) {
        now = std::max(now, entry.reserved);
    }
    bytes_ += now - entry.counted; // wraps round to a subtraction
    entry.counted = now;
    hashes_ += entry.span.size() - entry.hashes;
    entry.hashes = entry.span.size();
}

void DedupCache::drop(Shard& shard, Entries::iterator place) {
    auto& entry = *place->second;
    bytes_ -= entry.counted;
    hashes_ -= entry.hashes;
    --partitions_;
    shard.by_use.erase(entry.place);
    shard.entries.erase(place);
}

void DedupCache::surprise(Shard& shard, Entries::iterator place) {
    ++surprises_;
    candidate(shard, place->first).not_before = clock_.now() + kCoolDown;
    drop(shard, place);
}

DedupCache::Candidate& DedupCache::candidate(Shard& shard, const std::string& key) {
    auto place = shard.candidates.find(key);
    if (place == shard.candidates.end()) {
        if (shard.candidates.size() >= options_.aux_entries / kShards) {
            candidates_ -= shard.candidates.size();
            shard.candidates.clear(); // bounded; the worst is another hydration
        }
        place = shard.candidates.try_emplace(key).first;
        ++candidates_;
    }
    return place->second;
}

/// Takes in what a push stored. False when it contradicts what is known.
bool DedupCache::grow(Entry& entry, std::span<const std::uint64_t> fingerprints,
                      const std::optional<Vouch>& vouch, const PushOutcome& outcome) {
    auto& span = entry.span;
    if (vouch) {
        const auto above = outcome.base.value() - 1 - vouch->upto.value();
        if (above < 0) {
            return false; // offsets were given out twice
        }
        if (outcome.probed > above) {
            ++disbelieved_;
            // Unless it was read downwards meanwhile: the window reaches further than the span.
            if (entry.complete && span.from() >= vouch->from) {
                if (entry.tried_below == span.from() || span.empty()) {
                    return false;
                }
                entry.complete = false;
                entry.tried_below = span.from();
            }
        }
    }
    if (span.add_above({outcome.base, outcome.created_at, fingerprints}, outcome.after,
                       entry.window) == DedupSpan::Told::surprise) {
        return false;
    }
    const auto before = span.from();
    span.expire(span.newest_at() - entry.window);
    entry.complete |= span.from() > before; // what lies below is older still
    return true;
}

/// A partition without an entry whose probe was large. False when there is no room for one.
bool DedupCache::consider(Shard& shard, const std::string& key, const PushOutcome& outcome,
                          std::span<const std::uint64_t> fingerprints) {
    const auto now = clock_.now();
    auto& known = candidate(shard, key);
    if (now < known.not_before) {
        ++suppressed_;
        return true;
    }
    if (known.seen == SteadyTime{} || now - known.seen > kAgain) {
        known.seen = now;
        return true;
    }
    if (reads_ >= options_.reads) {
        return true;
    }
    const auto estimate = static_cast<std::size_t>(outcome.probed) * kHashBytes + sizeof(Entry);
    if (bytes_ + estimate > options_.bytes / 10 * 9) {
        known.not_before = now + kCoolDown;
        ++suppressed_;
        return false;
    }
    shard.candidates.erase(key);
    --candidates_;
    auto entry = std::make_shared<Entry>(outcome.partition_id, Offset{outcome.base.value() - 1},
                                         outcome.after);
    entry->window = outcome.window;
    entry->reserved = estimate;
    entry->used = now;
    (void)entry->span.add_above({outcome.base, outcome.created_at, fingerprints}, outcome.after,
                                outcome.window);
    const auto place = shard.entries.emplace(key, entry).first;
    entry->place = shard.by_use.insert(shard.by_use.end(), &place->first);
    ++partitions_;
    ++hydrations_;
    return true;
}

/// The page that an entry needs next, if any and if there is room for another read; it then counts
/// as under way.
std::optional<DedupCache::Read> DedupCache::next_read(const std::string& key,
                                                      const std::shared_ptr<Entry>& entry) {
    const auto& span = entry->span;
    const bool gap = span.missing() >= options_.worth;
    if (entry->reading || (!gap && entry->complete)) {
        return std::nullopt;
    }
    if (reads_.fetch_add(1) >= options_.reads) {
        --reads_;
        return std::nullopt;
    }
    topups_ += gap ? 1 : 0;
    entry->reading = true;
    return Read{key,
                entry,
                {.partition_id = entry->id,
                 .edge = gap ? span.upto() : Offset{span.from().value() + 1},
                 .downwards = !gap,
                 .bytes = options_.page_bytes},
                span.top()};
}

void DedupCache::start(Read read) {
    const auto page = read.page;
    store_.window_hashes(clock_.now() + options_.wait, page,
                         [this, read = std::move(read)](const Result<std::vector<HashRow>>& rows) {
                             arrived(read, rows);
                         });
}

void DedupCache::arrived(const Read& read, const Result<std::vector<HashRow>>& rows) {
    std::vector<std::vector<std::uint64_t>> fingerprints;
    if (rows) {
        for (const auto& row : *rows) {
            fingerprints.push_back(fingerprints_of(row.hashes));
        }
    }
    std::optional<Read> next;
    {
        auto& shard = shard_of(read.key);
        const std::lock_guard lock(shard.mutex);
        --reads_;
        const auto place = shard.entries.find(read.key);
        if (place == shard.entries.end() || place->second != read.entry.lock()) {
            return; // dropped meanwhile
        }
        auto& entry = *place->second;
        entry.reading = false;
        if (!rows) {
            candidate(shard, read.key).not_before = clock_.now() + kCoolDown;
            drop(shard, place);
        } else if (!take_page(entry, read, *rows, fingerprints)) {
            surprise(shard, place);
        } else {
            recount(entry, read.key.size());
            next = next_read(read.key, place->second);
        }
    }
    if (next) {
        start(std::move(*next));
    }
    if (bytes_ > options_.bytes) {
        fit(read.key);
    }
}

/// False when the page contradicts what is known.
bool DedupCache::take_page(Entry& entry, const Read& read, const std::vector<HashRow>& rows,
                           const std::vector<std::vector<std::uint64_t>>& fingerprints) {
    const auto& page = read.page;
    auto& span = entry.span;
    if (page.downwards && span.from() >= page.edge) {
        entry.complete = true; // the window left this page behind while it was read
        return true;
    }
    if (!page.downwards && span.upto() != page.edge) {
        return true; // answers that were on their way filled the gap, or a part of it
    }
    if (rows.empty()) { // what was known has left the window, or the partition is gone
        entry.complete |= page.downwards;
        return page.downwards;
    }
    // The first row is one that the span has: the others belong to the same history.
    const auto& first = rows.front();
    if (page.downwards ? first.base != page.edge || first.created_at != span.oldest_at()
                       : first.end != page.edge || first.created_at != span.newest_at()) {
        return false;
    }
    std::size_t bytes = 0;
    for (std::size_t i = 1; i < rows.size(); ++i) {
        const DedupSpan::Segment segment{rows[i].base, rows[i].created_at, fingerprints[i]};
        if (segment.end() != rows[i].end ||
            (!page.downwards && segment.base.value() != rows[i - 1].end.value() + 1)) {
            return false;
        }
        const auto told = page.downwards
                              ? span.add_below(segment, entry.window)
                              : span.add_above(segment, rows[i - 1].created_at, entry.window);
        if (told == DedupSpan::Told::surprise) {
            return false;
        }
        bytes += rows[i].hashes.size();
    }
    const bool last = bytes < static_cast<std::size_t>(page.bytes);
    if (page.downwards) {
        entry.complete |= last;
        return true;
    }
    span.expire(span.newest_at() - entry.window);
    // What was told while it was read may lie above its end, and beyond another gap. But a last
    // page that ends below what was told before leaves a gap that nobody can fill.
    return !last || span.upto() >= read.top;
}

/// Makes room; for `grown`, if nothing else helps, by giving it up.
void DedupCache::fit(const std::string& grown) {
    while (bytes_ > options_.bytes && evict_coldest()) {
    }
    if (bytes_ > options_.bytes) {
        warn("the dedup cache is full with what is in use; pushes may be slower "
             "(dedup.cache_size)");
    }
    if (bytes_ <= tolerated(options_.bytes)) {
        return;
    }
    auto& shard = shard_of(grown);
    const std::lock_guard lock(shard.mutex);
    const auto place = shard.entries.find(grown);
    if (place != shard.entries.end()) {
        ++evictions_;
        candidate(shard, grown).not_before = clock_.now() + kCoolDown;
        drop(shard, place);
    }
}

/// Drops the entry whose use is longest ago, over all shards, unless that is recent.
bool DedupCache::evict_coldest() {
    const auto newest = clock_.now() - kProtected;
    const auto coldest = [](const Shard& shard) {
        return std::find_if(shard.by_use.begin(), shard.by_use.end(), [&](const std::string* key) {
            return !shard.entries.at(*key)->reading;
        });
    };
    Shard* victim = nullptr;
    auto oldest = SteadyTime::max();
    for (auto& shard : shards_) {
        const std::lock_guard lock(shard.mutex);
        const auto place = coldest(shard);
        if (place != shard.by_use.end() && shard.entries.at(**place)->used < oldest) {
            oldest = shard.entries.at(**place)->used;
            victim = &shard;
        }
    }
    if (victim == nullptr || oldest > newest) {
        return false;
    }
    const std::lock_guard lock(victim->mutex);
    const auto place = coldest(*victim);
    if (place != victim->by_use.end() && victim->entries.at(**place)->used <= newest) {
        ++evictions_;
        drop(*victim, victim->entries.find(**place));
    }
    return true;
}

void DedupCache::arm_sweep() {
    if (!sweep_armed_.exchange(true)) {
        ticker_.at(clock_.now() + kSweepStep, [this] { sweep(); });
    }
}

/// Drops what nobody pushed to for a window: none of its hashes counts any more, and without pushes
/// nothing would ever expire (F-14).
void DedupCache::sweep() {
    const auto now = clock_.now();
    auto& shard = shards_[next_swept_++ % kShards];
    {
        const std::lock_guard lock(shard.mutex);
        for (auto place = shard.entries.begin(); place != shard.entries.end();) {
            const auto& entry = *place->second;
            const auto next = std::next(place);
            if (!entry.reading &&
                now - entry.used > std::max<SteadyTime::duration>(entry.window, kLeastIdle)) {
                drop(shard, place);
            }
            place = next;
        }
        candidates_ -= std::erase_if(shard.candidates, [now](const auto& known) {
            return now - known.second.seen > kAgain && known.second.not_before <= now;
        });
    }
    sweep_armed_ = false;
    if (partitions_ + candidates_ > 0) {
        arm_sweep();
    }
}

void DedupCache::warn(const std::string& text) {
    const auto now = clock_.now();
    auto quiet = quiet_until_.load();
    if (now >= quiet && quiet_until_.compare_exchange_strong(quiet, now + kQuiet) &&
        options_.warn) {
        options_.warn(text);
    }
}

DedupCache::Stats DedupCache::stats() const {
    return {.bytes = bytes_,
            .partitions = partitions_,
            .hashes = hashes_,
            .remembered = candidates_,
            .vouched = vouched_,
            .suspects = suspects_,
            .disbelieved = disbelieved_,
            .hydrations = hydrations_,
            .topups = topups_,
            .suppressed = suppressed_,
            .evictions = evictions_,
            .surprises = surprises_};
}

} // namespace queen::broker
