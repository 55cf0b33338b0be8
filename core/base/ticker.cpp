#include "base/ticker.hpp"

#include "base/assert.hpp"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace queen {
namespace {

/// One wait; a later deadline is waited for in several. Keeps "now + wait" far from overflow when
/// the deadline is SteadyTime::max().
constexpr std::chrono::hours kLongestWait{1};

/// Cancelled heap entries tolerated beside as many live ones (guess: 1.5 KiB).
constexpr std::size_t kCancelledSlack = 64;

} // namespace

bool TickerThread::later(const Entry& a, const Entry& b) noexcept {
    return a.when != b.when ? a.when > b.when : a.id > b.id;
}

TickerThread::~TickerThread() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable()) {
        QUEEN_ASSERT(thread_.get_id() != std::this_thread::get_id(),
                     "a ticker cannot be destroyed by one of its tasks");
        thread_.join();
    }
}

Ticker::Id TickerThread::at(SteadyTime when, std::function<void()> task) {
    QUEEN_ASSERT(task != nullptr, "a ticker needs a task to run");
    const std::lock_guard lock(mutex_);
    const Id id = ++last_id_;
    heap_.push_back({when, id});
    std::push_heap(heap_.begin(), heap_.end(), later);
    tasks_.emplace(id, std::move(task)); // should memory end here, the entry counts as cancelled
    if (!thread_.joinable()) {
        thread_ = std::thread([this] { run(); });
    } else if (heap_.front().id == id) {
        changed_.notify_one();
    }
    return id;
}

void TickerThread::cancel(Id id) {
    std::function<void()> dropped; // destroyed after the lock: its captures may call us
    const std::lock_guard lock(mutex_);
    const auto found = tasks_.find(id);
    if (found == tasks_.end()) {
        return;
    }
    dropped = std::move(found->second);
    tasks_.erase(found);
    if (heap_.size() > 2 * tasks_.size() + kCancelledSlack) {
        drop_cancelled();
    }
}

void TickerThread::pop_front() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    heap_.pop_back();
}

// Each pass costs what it removes, and removes at least half: constant per cancel on average.
void TickerThread::drop_cancelled() {
    std::erase_if(heap_, [this](const Entry& entry) { return !tasks_.contains(entry.id); });
    std::make_heap(heap_.begin(), heap_.end(), later);
}

void TickerThread::run() {
    pthread_setname_np(pthread_self(), "queen-ticker");
    std::unique_lock lock(mutex_);
    while (!stopping_) {
        if (heap_.empty()) {
            changed_.wait(lock);
            continue;
        }
        const Entry next = heap_.front();
        const auto found = tasks_.find(next.id);
        if (found == tasks_.end()) {
            pop_front();
            continue;
        }
        const SteadyTime now = clock_.now();
        if (next.when > now) {
            changed_.wait_for(lock, std::min<Nanoseconds>(next.when - now, kLongestWait));
            continue;
        }
        std::function<void()> task = std::move(found->second);
        tasks_.erase(found);
        pop_front();
        lock.unlock();
        task();
        task = nullptr;
        lock.lock();
    }
}

} // namespace queen
