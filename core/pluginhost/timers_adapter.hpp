// pluginhost/timers_adapter.hpp - a loaded timers table as the core's port, and the core's store
// verbs as the driver's host.
//
// The driver asks, the core answers: each call that was taken is answered once, during a pause too.
// A driver that fails on an answer has lost it: the host gives the batch it brought back to the
// store, which hands its rows back, and calls tick() within a second, in which the driver
// begins anew. What it is not told during a pause, that a timer becomes due, it is told after it.
#pragma once
#include "pluginhost/instance.hpp"

#include <queen/plugin/timers.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <unordered_map>

namespace queen::pluginhost {

/// Where a driver's calls go: nowhere until the core has something to give.
/// @thread any
class TimerStoreSlot {
public:
    void set(std::weak_ptr<plugin::TimerHost> store) {
        const std::lock_guard lock(mutex_);
        store_ = std::move(store);
    }
    std::shared_ptr<plugin::TimerHost> get() const {
        const std::lock_guard lock(mutex_);
        return store_.lock();
    }

private:
    mutable std::mutex mutex_;
    std::weak_ptr<plugin::TimerHost> store_;
};

/// Invariant: `batches_` holds what the driver was given and has not released.
/// Locks: `mutex_` is a leaf; neither the driver nor the store is called while it is held.
class TimersInstance final : public Instance {
public:
    static constexpr const char* kKind = QUEEN_TIMERS;
    static constexpr auto read = read_timers_table;
    /// @thread main
    static tl::expected<std::shared_ptr<TimersInstance>, std::string>
    create(Parts parts, std::shared_ptr<const TimerStoreSlot> store);
    ~TimersInstance() override;

    void stop() noexcept; ///< @thread main
    void scheduled(SteadyTime earliest) noexcept;
    void answered(plugin::TimerCall call, const plugin::TimerAnswer& answer) noexcept;
    void tick_if_due(SteadyTime now) override;
    void stats(plugin::Stats& out) { collect(table_.stats, out); }

private:
    friend class Instance;
    TimersInstance(Parts parts, const queen_timers& table,
                   std::shared_ptr<const TimerStoreSlot> store)
        : Instance(std::move(parts)), table_(table), store_(std::move(store)) {}
    const void* extension(std::string_view id) const noexcept override;

    void missed(SteadyTime earliest) noexcept;
    void release(plugin::TimerBatch batch);
    bool begin_claim(plugin::TimerCall call);
    void end_claim(plugin::TimerCall call);
    bool holds(plugin::TimerBatch batch) const;
    bool holds(plugin::TimerBatch batch, const std::uint32_t* segments, std::size_t count) const;
    template <class Ask>
    static int32_t ask(const queen_host* host, const char* verb, Ask&& ask) noexcept;

    static int32_t host_due(const queen_host* host, uint64_t call, uint64_t shards,
                            uint32_t cap) noexcept;
    static int32_t host_claim(const queen_host* host, uint64_t call, uint64_t shards, int64_t lease,
                              uint32_t rows, uint32_t rows_per_tenant) noexcept;
    static int32_t host_fire(const queen_host* host, uint64_t call, uint64_t batch,
                             const uint32_t* segments, size_t count) noexcept;
    static int32_t host_fail(const queen_host* host, uint64_t call, uint64_t batch,
                             const uint32_t* segments, size_t count, int64_t backoff,
                             queen_str error, int32_t counted, int32_t most) noexcept;
    static int32_t host_dead_letter(const queen_host* host, uint64_t call, uint64_t batch,
                                    int32_t most) noexcept;
    static void host_release(const queen_host* host, uint64_t batch) noexcept;
    static const queen_host_timers kHostTimers;

    const queen_timers table_;
    const std::shared_ptr<const TimerStoreSlot> store_;
    std::atomic<bool> stopping_ = false; ///< told to stop
    std::atomic<bool> stopped_ = false;  ///< its stop() has returned: no call begins any more
    std::atomic<std::int64_t> missed_{INT64_MAX}; ///< the earliest time it was not told
    mutable std::mutex mutex_;
    std::unordered_map<plugin::TimerBatch, std::size_t> batches_; ///< with their segments' count
    std::multiset<plugin::TimerCall> claims_;                     ///< under way
};

/// The port.
/// @thread stop() main; the rest any
/// @source PLG-10, PLG-12
class TimersAdapter final : public plugin::TimerDriver {
public:
    explicit TimersAdapter(std::shared_ptr<TimersInstance> instance)
        : instance_(std::move(instance)) {}

    void stop() override { instance_->stop(); }
    void scheduled(SteadyTime earliest) override { instance_->scheduled(earliest); }
    void answered(plugin::TimerCall call, const plugin::TimerAnswer& answer) override {
        instance_->answered(call, answer);
    }
    /// PluginHost::run_ticks() does this for the core.
    SteadyTime tick(SteadyTime now) override {
        instance_->tick_if_due(now);
        return instance_->tick_due();
    }
    void stats(plugin::Stats& out) override { instance_->stats(out); }

private:
    const std::shared_ptr<TimersInstance> instance_;
};

} // namespace queen::pluginhost
