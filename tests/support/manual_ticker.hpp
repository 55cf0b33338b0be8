#pragma once
#include "base/workers.hpp"
#include "support/manual_clock.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace queen::test {

/// A ticker without a thread: tasks run inside the calls below, on the thread of the test, earliest
/// deadline first and equal deadlines in the order of their at().
/// @thread at() and cancel(): any; the rest: the test's
class ManualTicker final : public Ticker {
public:
    explicit ManualTicker(ManualClock& clock) : clock_(clock) {}

    Id at(SteadyTime when, std::function<void()> task) override {
        const std::lock_guard lock(mutex_);
        const Id id = ++last_id_;
        tasks_.emplace(Key{when, id}, std::move(task));
        return id;
    }
    void cancel(Id id) override {
        std::function<void()> dropped; // destroyed without the lock
        const std::lock_guard lock(mutex_);
        for (auto task = tasks_.begin(); task != tasks_.end(); ++task) {
            if (task->first.second == id) {
                dropped = std::move(task->second);
                tasks_.erase(task);
                return;
            }
        }
    }

    std::size_t pending() const {
        const std::lock_guard lock(mutex_);
        return tasks_.size();
    }
    /// The earliest deadline; nullopt when nothing is pending.
    std::optional<SteadyTime> next() const {
        const std::lock_guard lock(mutex_);
        return tasks_.empty() ? std::nullopt : std::optional(tasks_.begin()->first.first);
    }

    /// Runs the earliest task if it is due. @return whether one ran
    bool run_one() {
        std::function<void()> task;
        {
            const std::lock_guard lock(mutex_);
            if (tasks_.empty() || tasks_.begin()->first.first > clock_.now()) {
                return false;
            }
            task = std::move(tasks_.begin()->second);
            tasks_.erase(tasks_.begin());
        }
        task();
        return true;
    }
    /// Runs all that is due, also what those tasks add. @return how many ran
    std::size_t run_due() {
        std::size_t ran = 0;
        while (run_one()) {
            ++ran;
        }
        return ran;
    }
    /// Moves the clock forward, stopping at each deadline on the way to run its tasks at the time
    /// they were meant for. @return how many ran
    std::size_t advance(Nanoseconds by) {
        const SteadyTime end = clock_.now() + by;
        std::size_t ran = run_due();
        for (auto when = next(); when && *when <= end; when = next()) {
            clock_.set(*when);
            ran += run_due();
        }
        clock_.set(end);
        return ran;
    }

private:
    using Key = std::pair<SteadyTime, Id>;
    ManualClock& clock_;
    mutable std::mutex mutex_;
    std::map<Key, std::function<void()>> tasks_;
    Id last_id_ = 0;
};

} // namespace queen::test
