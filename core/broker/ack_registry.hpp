// broker/ack_registry.hpp - remembers which messages a leased batch consists of, so that the ack of
// all of them is one step of the cursor instead of a search for each hash.
//
// A hint like everything in memory: the store validates the lease and that nothing of the batch was
// acked before, and what it refuses is looked up by hash as if there were no registry (AR-3). So an
// entry that is stale, lost or evicted costs time, never an answer that differs.
//
// Life of an entry, one per (tenant, partition, group):
//   a pop's answer is about to go out, all of its leased messages in it  -> remember()
//   an ack names exactly these messages, all completed                   -> take(): gone
//   any other ack of that lease                                          -> forget(): gone
//   its lease ran out some time ago                                      -> swept
//   memory is short and its lease ends first; since an entry serves once, that is the one used
//   longest ago unless leases differ                                     -> evicted
#pragma once
#include "base/clock.hpp"
#include "model/hash.hpp"

#include <queen/plugin/types.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace queen::broker {

/// Locks: mutex_ is a leaf; sorting is done outside of it.
/// @thread any
/// @source AR-1 to AR-4
class AckRegistry {
public:
    struct Options {
        std::size_t bytes = std::size_t{64} << 20; ///< what entries may take
    };
    struct Stats {
        std::size_t entries = 0;
        std::size_t bytes = 0;
        std::uint64_t hits = 0;
        std::uint64_t misses = 0;    ///< acks of a lease, all completed, that no entry fits
        std::uint64_t refused = 0;   ///< hits that the store did not take
        std::uint64_t evictions = 0; ///< for want of room
    };
    struct Key {
        std::string_view tenant;
        Uuid partition_id;
        std::string_view group;
    };
    /// What a lease spans: the offsets of its first and last message.
    struct Span {
        Offset first{-1};
        Offset last{-1};
        friend bool operator==(const Span&, const Span&) = default;
    };

    AckRegistry(const Clock& clock, Options options) : clock_(clock), options_(options) {}

    /// A batch that is about to be delivered whole. Kept only when its hashes are distinct.
    /// @param lease how long the lease lasts; nothing: unknown
    void remember(const Key& key, std::string_view worker, Span span, std::vector<TxnHash> hashes,
                  std::optional<std::chrono::milliseconds> lease);
    /// Removes and returns the batch when it is this worker's and has exactly these messages.
    std::optional<Span> take(const Key& key, std::string_view worker, std::vector<TxnHash> hashes);
    /// The store is told of it in another way. @param worker empty: whosever it is
    void forget(const Key& key, std::string_view worker);
    /// A span that was taken was not what the store knows.
    void refused();

    Stats stats() const;

private:
    struct Entry {
        std::string worker;
        Span span;
        std::vector<TxnHash> hashes;                                    ///< ascending
        std::multimap<SteadyTime, const std::string*>::iterator expiry; ///< in by_expiry_
    };
    using Entries = std::unordered_map<std::string, Entry>;

    // Requires mutex_, all of these.
    void drop(Entries::iterator place);
    void sweep(SteadyTime now);

    const Clock& clock_;
    const Options options_;
    mutable std::mutex mutex_;
    Entries entries_;
    std::multimap<SteadyTime, const std::string*> by_expiry_; ///< their keys
    SteadyTime next_sweep_{};
    Stats stats_;
};

} // namespace queen::broker
