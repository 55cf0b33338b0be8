// queen/plugin/testing.hpp - what a unit test of a plugin class needs: a clock that stands still
// until it is moved, a place for names, a host of each kind that remembers what it was asked. No
// library, no broker, and no waiting but for what threads of a mesh bring.
#pragma once
#include <queen/plugin/candidates.hpp>
#include <queen/plugin/mesh.hpp>
#include <queen/plugin/timers.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace queen::plugin {

/// @thread any
class ManualClock final : public Clock {
public:
    SteadyTime now() const noexcept override {
        return SteadyTime(Nanoseconds(now_.load(std::memory_order_relaxed)));
    }
    void advance(Nanoseconds by) noexcept { now_.fetch_add(by.count(), std::memory_order_relaxed); }

private:
    std::atomic<std::int64_t> now_{1'000'000'000}; // not zero: zero is a default that hides bugs
};

/// Takes names as the host does: at most `limit`, each once.
class NameList final : public Names {
public:
    struct Entry {
        std::string partition;
        std::uint64_t token;
    };
    explicit NameList(std::size_t limit) : limit_(limit) {}
    bool add(std::string_view partition, std::uint64_t token) override {
        if (entries_.size() >= limit_) {
            ++refused_;
            return false;
        }
        if (!seen_.emplace(partition).second) {
            ++refused_;
            return true;
        }
        entries_.push_back({std::string(partition), token});
        return entries_.size() < limit_;
    }
    const std::vector<Entry>& entries() const noexcept { return entries_; }
    std::vector<std::string> partitions() const {
        std::vector<std::string> out;
        for (const Entry& entry : entries_) {
            out.push_back(entry.partition);
        }
        return out;
    }
    std::size_t refused() const noexcept { return refused_; } ///< repeats and names over the limit

private:
    std::size_t limit_;
    std::size_t refused_ = 0;
    std::vector<Entry> entries_;
    std::set<std::string, std::less<>> seen_;
};

/// Remembers what a source asked of its host. @thread any
class RecordingHost final : public CandidateHost {
public:
    struct Wake {
        std::string queue_key, group;
        std::uint64_t ready;
    };
    struct Reseed {
        std::string queue_key, group;
        Ticket ticket;
        Nanoseconds window;
    };
    void wake(const Queue& queue, std::string_view group, std::uint64_t ready) override {
        const std::lock_guard lock(mutex_);
        wakes_.push_back({std::string(queue.key), std::string(group), ready});
    }
    void reseed(const Scope& scope, Ticket ticket, Nanoseconds window) override {
        const std::lock_guard lock(mutex_);
        reseeds_.push_back(
            {std::string(scope.queue.key), std::string(scope.group), ticket, window});
    }
    void tick_at(SteadyTime when) override {
        const std::lock_guard lock(mutex_);
        ticks_.push_back(when);
    }
    std::vector<Wake> wakes() const {
        const std::lock_guard lock(mutex_);
        return wakes_;
    }
    std::vector<Reseed> reseeds() const {
        const std::lock_guard lock(mutex_);
        return reseeds_;
    }
    std::vector<SteadyTime> ticks() const {
        const std::lock_guard lock(mutex_);
        return ticks_;
    }

private:
    mutable std::mutex mutex_;
    std::vector<Wake> wakes_;
    std::vector<Reseed> reseeds_;
    std::vector<SteadyTime> ticks_;
};

/// Longest that a test waits for what threads of others bring: far beyond what any machine needs.
inline constexpr std::chrono::seconds kPatience{20};

/// Asks until it holds. @return false when it does not come to that
inline bool eventually(const std::function<bool()>& holds) {
    std::atomic<bool> given_up = false;
    auto asked = std::async(std::launch::async, [&] {
        while (!given_up && !holds()) {
            std::this_thread::yield();
        }
    });
    const bool held = asked.wait_for(kPatience) == std::future_status::ready;
    given_up = true;
    return held;
}

/// A hint that owns its texts.
struct OwnedHint {
    HintKind kind = HintKind::stored;
    bool enabled = false;
    std::string tenant, queue, partition, group, subject;

    OwnedHint() = default;
    explicit OwnedHint(const Hint& hint)
        : kind(hint.kind), enabled(hint.enabled), tenant(hint.tenant), queue(hint.queue),
          partition(hint.partition), group(hint.group), subject(hint.subject) {}
    Hint view() const { return {kind, enabled, tenant, queue, partition, group, subject}; }
    friend bool operator==(const OwnedHint&, const OwnedHint&) = default;
};

/// Remembers what a mesh heard. @thread any
class RecordingMeshHost final : public MeshHost {
public:
    void heard(std::span<const Hint> hints) override {
        {
            const std::lock_guard lock(mutex_);
            ++calls_;
            for (const Hint& hint : hints) {
                hints_.emplace_back(hint);
            }
        }
        changed_.notify_all();
    }
    std::vector<OwnedHint> hints() const {
        const std::lock_guard lock(mutex_);
        return hints_;
    }
    void missed() override {
        {
            const std::lock_guard lock(mutex_);
            ++missed_;
        }
        changed_.notify_all();
    }
    std::size_t calls() const { ///< of heard()
        const std::lock_guard lock(mutex_);
        return calls_;
    }
    std::size_t times_missed() const {
        const std::lock_guard lock(mutex_);
        return missed_;
    }
    /// Returns as soon as it was said `times` times in all. @return false when it was not
    bool await_missed(std::size_t times) const {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, kPatience, [&] { return missed_ >= times; });
    }
    /// Returns as soon as `count` hints in all were heard. @return false when they did not come
    bool await(std::size_t count) const {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, kPatience, [&] { return hints_.size() >= count; });
    }
    /// Returns as soon as each of these was heard, once or more. @return false when one did not
    /// come
    bool await(const std::vector<OwnedHint>& wanted) const {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, kPatience, [&] {
            return std::all_of(wanted.begin(), wanted.end(), [&](const OwnedHint& hint) {
                return std::find(hints_.begin(), hints_.end(), hint) != hints_.end();
            });
        });
    }
    void clear() {
        const std::lock_guard lock(mutex_);
        hints_.clear();
        calls_ = missed_ = 0;
    }

private:
    mutable std::mutex mutex_;
    mutable std::condition_variable changed_;
    std::vector<OwnedHint> hints_;
    std::size_t calls_ = 0, missed_ = 0;
};

/// A driver's calls as values, whatever becomes of them.
class TimerCalls : public TimerHost {
public:
    enum class Verb { due, claim, fire, fail, dead_letter };
    /// What does not belong to the verb is zero or empty.
    struct Call {
        Verb verb = Verb::due;
        TimerCall call = 0;
        TimerShards shards = 0;
        std::uint32_t cap = 0; ///< due
        Nanoseconds lease{0};  ///< claim
        std::uint32_t rows = 0, rows_per_tenant = 0;
        TimerBatch batch = 0;                ///< fire, fail, dead_letter
        std::vector<std::uint32_t> segments; ///< fire, fail
        Nanoseconds backoff{0};              ///< fail
        std::string error;
        bool counted = false;
        std::int32_t most = 0; ///< fail, dead_letter
    };

    bool due(TimerCall call, TimerShards shards, std::uint32_t cap) final {
        Call made = named(Verb::due, call);
        made.shards = shards;
        made.cap = cap;
        return take(std::move(made));
    }
    bool claim(TimerCall call, TimerShards shards, Nanoseconds lease, std::uint32_t rows,
               std::uint32_t rows_per_tenant) final {
        Call made = named(Verb::claim, call);
        made.shards = shards;
        made.lease = lease;
        made.rows = rows;
        made.rows_per_tenant = rows_per_tenant;
        return take(std::move(made));
    }
    bool fire(TimerCall call, TimerBatch batch, std::span<const std::uint32_t> segments) final {
        Call made = named(Verb::fire, call);
        made.batch = batch;
        made.segments.assign(segments.begin(), segments.end());
        return take(std::move(made));
    }
    bool fail(TimerCall call, TimerBatch batch, std::span<const std::uint32_t> segments,
              Nanoseconds backoff, std::string_view error, bool counted, std::int32_t most) final {
        Call made = named(Verb::fail, call);
        made.batch = batch;
        made.segments.assign(segments.begin(), segments.end());
        made.backoff = backoff;
        made.error = std::string(error);
        made.counted = counted;
        made.most = most;
        return take(std::move(made));
    }
    bool dead_letter(TimerCall call, TimerBatch batch, std::int32_t most) final {
        Call made = named(Verb::dead_letter, call);
        made.batch = batch;
        made.most = most;
        return take(std::move(made));
    }

protected:
    /// @return what the call answers
    virtual bool take(Call made) = 0;

private:
    static Call named(Verb verb, TimerCall call) {
        Call made;
        made.verb = verb;
        made.call = call;
        return made;
    }
};

/// Remembers the calls of a driver; the test answers them, with driver.answered(call.call, ...),
/// when it likes and in the order it likes, or from inside the call by `on_call`.
/// @thread any
class RecordingTimerHost final : public TimerCalls {
public:
    /// Runs inside each call that is taken, with no lock held. Set before the driver lives.
    std::function<void(const Call&)> on_call;

    void release(TimerBatch batch) override {
        const std::lock_guard lock(mutex_);
        released_.push_back(batch);
    }
    void tick_at(SteadyTime when) override {
        const std::lock_guard lock(mutex_);
        ticks_.push_back(when);
    }

    /// From here on calls answer as those of a broker that stops, and are counted only.
    void stop() {
        const std::lock_guard lock(mutex_);
        stopped_ = true;
    }
    /// The oldest call that next() has not given yet.
    std::optional<Call> next() {
        const std::lock_guard lock(mutex_);
        if (given_ == calls_.size()) {
            return std::nullopt;
        }
        return calls_[given_++];
    }
    std::vector<Call> calls() const { ///< all that were taken
        const std::lock_guard lock(mutex_);
        return calls_;
    }
    std::size_t refused() const { ///< calls after stop()
        const std::lock_guard lock(mutex_);
        return refused_;
    }
    std::vector<TimerBatch> released() const {
        const std::lock_guard lock(mutex_);
        return released_;
    }
    std::vector<SteadyTime> ticks() const {
        const std::lock_guard lock(mutex_);
        return ticks_;
    }

private:
    bool take(Call made) override {
        {
            const std::lock_guard lock(mutex_);
            if (stopped_) {
                ++refused_;
                return false;
            }
            calls_.push_back(made);
        }
        if (on_call) {
            on_call(made);
        }
        return true;
    }

    mutable std::mutex mutex_;
    bool stopped_ = false;
    std::vector<Call> calls_;
    std::size_t given_ = 0;
    std::size_t refused_ = 0;
    std::vector<TimerBatch> released_;
    std::vector<SteadyTime> ticks_;
};

} // namespace queen::plugin
