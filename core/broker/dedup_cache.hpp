// broker/dedup_cache.hpp - compares hashes with the dedup window in memory, so that the store need
// not probe it under the partition's lock.
//
// The cache never decides (DED-4). Before a push it says of which span of the partition's offsets
// it knows that none has one of the hashes, and the store, which judges that word, compares what
// lies outside. A hash that it does find is not an answer either: the push goes out without a word.
//
// Life of an entry, one per partition:
//
//   a push's answer says that the store compared many offsets, the second time in a minute
//     -> hydrating   from the span of that push alone, pages are read downwards, one at a time;
//                    own pushes go on top and are not vouched for
//     -> complete    a page was the last of the window: pushes are vouched for
//   an answer shows that the store did not believe it: the window was widened
//     -> hydrating   from where the span ends
//   an answer leaves a gap, because another broker pushed: what was compared still counts, and the
//     gap is read upwards once it is as large as a probe that pays
//   the partition was made again, or anything else does not fit -> dropped; it may begin anew
//   out of memory, idle for a window -> dropped
//
// Measured (2026-11-29, PostgreSQL 15 without fsync, 2 cores that were busy with other work;
// build/release/bin/dedup_measure). A push of 100, median:
//
//   window in one partition   cache off   cache on   memory            look-up, CPU
//   100,000                    29.6 ms     0.46 ms   13.1 bytes/hash   23 ns/hash
//   1,000,000                 335 ms       0.41 ms   11.3 bytes/hash   42 ns/hash
//
// The probe costs 0.3 us for each offset of the window, so 512 offsets are 0.15 ms beside the 0.4
// ms of the push itself: where `worth` stands. Reading a window costs less than probing it once
// (both windows were read during the third push), so a second push in a minute is reason enough.
// The set alone: insert 140 ns, look-up of a single hash 90 ns at 2.9 million members, the same in
// 1 as in 64 generations (F-15). The other limits are guesses or the contract's.
#pragma once
#include "base/workers.hpp"
#include "broker/dedup_span.hpp"
#include "ports/store.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace queen::broker {

/// Soundness does not rest on this class being right about windows, expiry or who else pushes, only
/// on DedupSpan's first invariant: see `_append` in sql/003_log_push.sql.
/// Locks: a shard's mutex is a leaf, and no two are held at once; neither the store nor the ticker
/// is called under it.
/// @thread any
class DedupCache {
public:
    struct Options {
        std::size_t bytes = 512u << 20;                 ///< budget
        std::chrono::milliseconds wait{30'000};         ///< for a session
        std::int64_t worth = 512;                       ///< probed offsets that make an entry pay
        std::int64_t page_bytes = 512 * 1024;           ///< of hashes, one read
        std::size_t reads = 4;                          ///< under way at once
        std::size_t aux_entries = 100'000;              ///< partitions remembered without an entry
        std::function<void(const std::string&)> warn{}; ///< at most once in 60 s
    };
    struct Stats {
        std::size_t bytes = 0; ///< held, what hydrations have reserved included
        std::size_t partitions = 0;
        std::size_t hashes = 0;
        std::size_t remembered = 0;    ///< partitions without an entry
        std::uint64_t vouched = 0;     ///< segments sent with a vouch
        std::uint64_t suspects = 0;    ///< segments sent without, because a hash was found
        std::uint64_t disbelieved = 0; ///< vouches that the store did not take
        std::uint64_t hydrations = 0;  ///< begun
        std::uint64_t topups = 0;      ///< gaps read
        std::uint64_t suppressed = 0;  ///< hydrations refused for want of room, or cooling down
        std::uint64_t evictions = 0;   ///< for want of room
        std::uint64_t surprises = 0;   ///< entries dropped because something did not fit
    };

    /// `store`, `ticker` and `clock` outlive it; both ran dry before it is destroyed.
    DedupCache(Store& store, Ticker& ticker, const Clock& clock, Options options);

    /// What can be said of a segment with these fingerprints, to be sent now. `key` names tenant,
    /// queue and partition.
    std::optional<Vouch> vouch(const std::string& key, std::span<const std::uint64_t> fingerprints);
    /// What the store answered to a segment, which was sent with `vouch`. Call it for every answer.
    void told(const std::string& key, std::span<const std::uint64_t> fingerprints,
              const std::optional<Vouch>& vouch, const PushOutcome& outcome);

    Stats stats() const;

private:
    struct Entry {
        Entry(Uuid partition_id, Offset after, WallTime at) : id(partition_id), span(after, at) {}
        const Uuid id;
        DedupSpan span;
        std::chrono::seconds window{0};
        bool complete = false; ///< nothing of the window lies below the span, as far as we know
        bool reading = false;  ///< a page is under way
        std::optional<Offset> tried_below; ///< where disbelief last made it read downwards
        std::size_t reserved = 0;          ///< expected size until complete
        std::size_t counted = 0;           ///< what `bytes_` holds of it
        std::size_t hashes = 0;            ///< what `hashes_` holds of it
        SteadyTime used{};
        std::list<const std::string*>::iterator place; ///< in Shard::by_use
    };
    using Entries = std::unordered_map<std::string, std::shared_ptr<Entry>>;
    /// A partition without an entry.
    struct Candidate {
        SteadyTime seen{};       ///< when its probe was last large
        SteadyTime not_before{}; ///< no hydration until then
    };
    struct Shard {
        mutable std::mutex mutex;
        Entries entries;
        std::list<const std::string*> by_use; ///< keys, the one used longest ago first
        std::unordered_map<std::string, Candidate> candidates;
    };
    struct Read {
        std::string key;
        std::weak_ptr<Entry> entry;
        HashPage page;
        Offset top; ///< the highest heard of when it was asked for: committed, so in the page
    };

    static constexpr std::size_t kShards = 16;
    Shard& shard_of(const std::string& key);
    // Requires shard.mutex, all of these.
    void touch(Shard& shard, Entry& entry);
    void recount(Entry& entry, std::size_t key_bytes);
    void drop(Shard& shard, Entries::iterator place);
    void surprise(Shard& shard, Entries::iterator place);
    Candidate& candidate(Shard& shard, const std::string& key);
    bool grow(Entry& entry, std::span<const std::uint64_t> fingerprints,
              const std::optional<Vouch>& vouch, const PushOutcome& outcome);
    bool consider(Shard& shard, const std::string& key, const PushOutcome& outcome,
                  std::span<const std::uint64_t> fingerprints);
    std::optional<Read> next_read(const std::string& key, const std::shared_ptr<Entry>& entry);
    bool take_page(Entry& entry, const Read& read, const std::vector<HashRow>& rows,
                   const std::vector<std::vector<std::uint64_t>>& fingerprints);

    // Requires no lock, all of these.
    void start(Read read);
    void arrived(const Read& read, const Result<std::vector<HashRow>>& rows);
    void fit(const std::string& grown);
    bool evict_coldest();
    void arm_sweep();
    void sweep();
    void warn(const std::string& text);

    Store& store_;
    Ticker& ticker_;
    const Clock& clock_;
    const Options options_;
    std::array<Shard, kShards> shards_;
    std::atomic<std::size_t> bytes_{0}, hashes_{0}, partitions_{0}, reads_{0};
    std::atomic<std::uint64_t> vouched_{0}, suspects_{0}, disbelieved_{0}, hydrations_{0},
        topups_{0}, suppressed_{0}, evictions_{0}, surprises_{0};
    std::atomic<std::size_t> candidates_{0};
    std::atomic<bool> sweep_armed_{false};
    std::size_t next_swept_ = 0;                        ///< shard; of the ticker's thread
    std::atomic<SteadyTime> quiet_until_{SteadyTime{}}; ///< for warn()
};

} // namespace queen::broker
