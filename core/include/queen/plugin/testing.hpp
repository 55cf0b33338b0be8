// queen/plugin/testing.hpp - what a unit test of a plugin class needs: a clock that stands still
// until it is moved, a place for names, a host that remembers what it was asked. No waiting, no
// library, no broker.
#pragma once
#include <queen/plugin/candidates.hpp>

#include <atomic>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
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

} // namespace queen::plugin
