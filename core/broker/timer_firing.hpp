// broker/timer_firing.hpp - the store as a driver of timers sees it. What was claimed is packed
// here and kept until the driver releases it, so that a driver deals with segments by their place
// and never with names, payloads or keys.
//
//   claim -> rows by destination, packed -> fire: stored and removed in one transaction,
//            announced as a push is   \___ fail, dead_letter: the rows that a segment is made of
//
// What is kept is bounded: of a claim, rows are packed until their payloads, unpacked, come to
// kBatchBytes; the others are handed back at once, uncounted, and the next claims ask for no more
// rows than fitted, twice as many each time all of them fit. A row of which no frame can be made is
// a segment of its own, without bytes, and fails alone.
//
// What a driver releases without having dealt with it (a segment that was stale, because one of its
// rows was locked at that moment; all of a batch, when the broker stops) is handed back too, so
// that no timer waits for the end of a lease that nobody needs. Rows that are locked even then are
// tried again when the driver asks next what is due, kTries times in all.
#pragma once
#include "base/counter.hpp"
#include "base/histogram.hpp"
#include "broker/announce.hpp"
#include "broker/timer_packing.hpp"
#include "metrics/activity.hpp"
#include "ports/timer_store.hpp"

#include <queen/plugin/timers.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace queen::broker {

/// Invariant: a batch has one segment with bytes per (tenant, queue, partition).
/// Locks: `mutex_` and `lag_mutex_` are leaves; store, driver and announcer are called with nothing
/// held.
/// @thread any
/// @source SW-7, SW-10, SW-11
class TimerFiring final : public plugin::TimerHost,
                          public std::enable_shared_from_this<TimerFiring> {
public:
    struct Options {
        int zstd_level = 3;
        std::chrono::milliseconds wait{30'000};        ///< for a session
        std::function<bool()> enabled{};               ///< whether timers are fired; null: always
        std::shared_ptr<metrics::Activity> activity{}; ///< what is counted into; null: its own
    };
    static constexpr std::size_t kBatchBytes = std::size_t{32} << 20;
    static constexpr std::size_t kMostTenants = 1024; ///< with a lag of their own (SW-11)
    static constexpr int kTries = 4; ///< to hand a row back; then its lease ends. A guess
    static constexpr std::size_t kMostLocked = 10'000; ///< rows that are tried again. A guess

    struct Stats {
        std::array<std::uint64_t, 3> results{};  ///< rows: fired, duplicate, stale
        std::array<std::uint64_t, 3> failures{}; ///< calls: transient, permanent, config
        std::uint64_t dead_letters = 0;
        std::uint64_t poisoned = 0; ///< rows that an attempt was counted of
        std::uint64_t due = 0;      ///< when it was last asked
        bool due_capped = false;
        Nanoseconds oldest_late{0};
        std::uint64_t tenants_dropped = 0; ///< rows whose tenant has no lag of its own
        std::map<std::string, LatencyHistogram::Snapshot> lag; ///< from due to stored, by tenant
    };

    TimerFiring(TimerStore& store, Announcer& announcer, const Clock& clock, Options options);

    /// Whom the answers go to. Before the first call.
    void serve(std::shared_ptr<plugin::TimerDriver> driver) { driver_ = std::move(driver); }
    /// Calls are refused from here on; answers under way still come. Whatever is in hand is handed
    /// back. @param handed_back once the store has answered all of it, here or on a worker
    void stop(std::function<void()> handed_back);
    Stats stats() const;

    bool due(plugin::TimerCall call, plugin::TimerShards shards, std::uint32_t cap) override;
    bool claim(plugin::TimerCall call, plugin::TimerShards shards, Nanoseconds lease,
               std::uint32_t rows, std::uint32_t rows_per_tenant) override;
    bool fire(plugin::TimerCall call, plugin::TimerBatch batch,
              std::span<const std::uint32_t> segments) override;
    bool fail(plugin::TimerCall call, plugin::TimerBatch batch,
              std::span<const std::uint32_t> segments, Nanoseconds backoff, std::string_view error,
              bool counted, std::int32_t most) override;
    bool dead_letter(plugin::TimerCall call, plugin::TimerBatch batch, std::int32_t most) override;
    void release(plugin::TimerBatch batch) override;
    void tick_at(SteadyTime) override {} ///< the plugin host sees to it

private:
    struct Batch {
        SteadyTime claimed_at{};
        std::vector<PackedTimers> segments;
        // under mutex_
        std::vector<bool> settled; ///< by segment: fired or handed back
        std::vector<TimerClaimKey> exhausted;
        std::uint32_t calls = 0; ///< under way
        bool released = false;
    };
    using BatchPtr = std::shared_ptr<Batch>;
    using Places = std::vector<std::uint32_t>;

    bool paused() const { return options_.enabled && !options_.enabled(); }
    SteadyTime deadline() const { return clock_.now() + options_.wait; }
    BatchPtr find(plugin::TimerBatch batch) const;
    bool enter(plugin::TimerBatch batch);
    void leave(Batch& batch);
    void begin();
    void end();
    static std::vector<TimerClaimKey> left_of(const Batch& batch); // requires mutex_
    void answer(plugin::TimerCall call, const plugin::TimerAnswer& answer) const;
    void refuse(plugin::TimerCall call, const Error& error);
    void claimed(plugin::TimerCall call, std::vector<ClaimedTimer> rows, std::uint32_t asked);
    void fired(plugin::TimerCall call, Batch& batch, const Places& places,
               const std::vector<TimerFired>& outcomes);
    void failed(plugin::TimerCall call, Batch& batch, const Places& places, bool counted,
                TimerFailed failed);
    void count_lag(const Batch& batch, const PackedTimers& timers);
    void hand_back(std::vector<TimerClaimKey> rows, std::string why, int tries = kTries);
    void keep_locked(std::vector<TimerClaimKey> rows, int tries);
    void try_locked_again();

    TimerStore& store_;
    Announcer& announcer_;
    const Clock& clock_;
    const Options options_;
    const std::shared_ptr<metrics::Activity> activity_;
    std::shared_ptr<plugin::TimerDriver> driver_;
    std::atomic<bool> stopped_ = false;
    std::atomic<std::uint32_t> fitting_ = UINT32_MAX; ///< rows a claim asks for at most

    mutable std::mutex mutex_;
    std::unordered_map<plugin::TimerBatch, BatchPtr> batches_;
    plugin::TimerBatch last_batch_ = 0;
    struct Locked {
        std::vector<TimerClaimKey> rows;
        int tries; ///< left
    };
    std::vector<Locked> locked_;
    std::size_t locked_rows_ = 0;
    std::size_t under_way_ = 0; ///< calls that take rows in hand or give them back
    std::function<void()> handed_back_;

    std::array<Counter, 3> results_, failures_;
    Counter dead_letters_, poisoned_, tenants_dropped_;
    std::atomic<std::uint64_t> due_ = 0;
    std::atomic<bool> due_capped_ = false;
    std::atomic<Nanoseconds::rep> oldest_late_ = 0;
    mutable std::mutex lag_mutex_;
    std::map<std::string, LatencyHistogram, std::less<>> lag_;
};

/// How the store's error looks to a driver (SW-7). Without an SQLSTATE it was the link's.
plugin::TimerOutcome timer_outcome(const Error& error) noexcept;

} // namespace queen::broker
