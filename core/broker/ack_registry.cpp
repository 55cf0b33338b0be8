#include "broker/ack_registry.hpp"

#include "model/names.hpp"

#include <algorithm>

namespace queen::broker {
namespace {

using namespace std::chrono_literals;

/// A lease may be extended, and its ack be late without harm: the store decides.
constexpr auto kGrace = 10s;
constexpr auto kUnknownLease = 60s;
constexpr auto kSweepEvery = 5s;
/// Entries that one sweep removes at most; it holds the lock. A guess.
constexpr int kSweepMost = 4096;
/// The nodes of map and list and what a string allocates; a guess.
constexpr std::size_t kNodeBytes = 160;

std::string text_of(const AckRegistry::Key& key) {
    std::string text;
    text.reserve(key.tenant.size() + 1 + key.partition_id.bytes.size() + key.group.size());
    text.append(key.tenant).push_back(kKeySeparator);
    text.append(reinterpret_cast<const char*>(key.partition_id.bytes.data()),
                key.partition_id.bytes.size());
    return text.append(key.group);
}

/// Ascending; false when one occurs twice.
bool sort_distinct(std::vector<TxnHash>& hashes) {
    std::sort(hashes.begin(), hashes.end());
    return std::adjacent_find(hashes.begin(), hashes.end()) == hashes.end();
}

std::size_t bytes_of(const std::string& key, std::size_t worker, std::size_t hashes) {
    return kNodeBytes + key.size() + worker + hashes * sizeof(TxnHash);
}

} // namespace

void AckRegistry::remember(const Key& key, std::string_view worker, Span span,
                           std::vector<TxnHash> hashes,
                           std::optional<std::chrono::milliseconds> lease) {
    if (hashes.empty() || !sort_distinct(hashes)) {
        return;
    }
    const auto now = clock_.now();
    auto text = text_of(key);
    const std::lock_guard lock(mutex_);
    if (const auto old = entries_.find(text); old != entries_.end()) {
        drop(old);
    }
    if (now >= next_sweep_) {
        sweep(now);
        next_sweep_ = now + kSweepEvery;
    }
    const auto bytes = bytes_of(text, worker.size(), hashes.size());
    if (bytes > options_.bytes) {
        return;
    }
    while (stats_.bytes + bytes > options_.bytes) {
        drop(entries_.find(*by_expiry_.begin()->second));
        ++stats_.evictions;
    }
    hashes.shrink_to_fit();
    const auto place = entries_.try_emplace(std::move(text)).first;
    const auto expires =
        now + (lease ? SteadyTime::duration(*lease) + kGrace : SteadyTime::duration(kUnknownLease));
    place->second = {.worker = std::string(worker),
                     .span = span,
                     .hashes = std::move(hashes),
                     .expiry = by_expiry_.emplace(expires, &place->first)};
    stats_.bytes += bytes;
}

std::optional<AckRegistry::Span> AckRegistry::take(const Key& key, std::string_view worker,
                                                   std::vector<TxnHash> hashes) {
    sort_distinct(hashes);
    hashes.erase(std::unique(hashes.begin(), hashes.end()), hashes.end());
    const auto now = clock_.now();
    const auto text = text_of(key);
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(text);
    if (found == entries_.end() || found->second.worker != worker ||
        found->second.expiry->first <= now || found->second.hashes != hashes) {
        ++stats_.misses;
        return std::nullopt;
    }
    ++stats_.hits;
    const auto span = found->second.span;
    drop(found);
    return span;
}

void AckRegistry::forget(const Key& key, std::string_view worker) {
    const auto text = text_of(key);
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(text);
    if (found != entries_.end() && (worker.empty() || found->second.worker == worker)) {
        drop(found);
    }
}

void AckRegistry::refused() {
    const std::lock_guard lock(mutex_);
    ++stats_.refused;
}

AckRegistry::Stats AckRegistry::stats() const {
    const std::lock_guard lock(mutex_);
    auto stats = stats_;
    stats.entries = entries_.size();
    return stats;
}

void AckRegistry::drop(Entries::iterator place) {
    const auto& entry = place->second;
    stats_.bytes -= bytes_of(place->first, entry.worker.size(), entry.hashes.size());
    by_expiry_.erase(entry.expiry);
    entries_.erase(place);
}

void AckRegistry::sweep(SteadyTime now) {
    for (int i = 0; i < kSweepMost && !by_expiry_.empty() && by_expiry_.begin()->first <= now;
         ++i) {
        drop(entries_.find(*by_expiry_.begin()->second));
    }
}

} // namespace queen::broker
