#pragma once
#include "base/workers.hpp"

#include <queen/plugin/types.hpp>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

namespace queen {

/// The ticker of a running broker: one thread over a heap of deadlines.
///
/// The thread starts with the first at() and sleeps without a time limit while nothing is pending.
/// Tasks run one after the other, earliest deadline first, equal deadlines in the order of their
/// at(); they must not throw. Tasks still pending at destruction are dropped unrun.
///
/// Invariant: an id is in `tasks_` exactly while its task has neither begun nor been cancelled; the
/// heap may hold more ids than that, but at most twice as many and a few.
/// Locks: `mutex_` is a leaf; no task runs or is destroyed while it is held.
class TickerThread final : public Ticker {
public:
    explicit TickerThread(const Clock& clock) : clock_(clock) {}
    /// Waits for a task that runs. @thread any but the ticker's own
    ~TickerThread() override;
    TickerThread(const TickerThread&) = delete;
    TickerThread& operator=(const TickerThread&) = delete;

    Id at(SteadyTime when, std::function<void()> task) override;
    /// Constant time on average: the task is destroyed at once, its heap entry later.
    void cancel(Id id) override;

private:
    struct Entry {
        SteadyTime when;
        Id id;
    };
    static bool later(const Entry& a, const Entry& b) noexcept;

    void run();
    void pop_front();      // Requires mutex_.
    void drop_cancelled(); // Requires mutex_.

    const Clock& clock_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Entry> heap_; ///< earliest first
    std::unordered_map<Id, std::function<void()>> tasks_;
    Id last_id_ = 0;
    bool stopping_ = false;
    std::thread thread_;
};

} // namespace queen
