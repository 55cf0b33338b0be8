#include "broker/timer_hand_back.hpp"

#include "broker/timer_outcome.hpp"

#include <algorithm>
#include <utility>

namespace queen::broker {
namespace {

/// Whether it may go another time.
bool worth_another_try(const Result<TimerFailed>& given) {
    if (given) {
        return given->locked > 0;
    }
    const auto outcome = timer_outcome(given.error());
    return outcome == plugin::TimerOutcome::transient || outcome == plugin::TimerOutcome::contended;
}

} // namespace

void TimerHandBack::give(Rows rows, std::chrono::milliseconds backoff, SteadyTime until) {
    if (rows.empty()) {
        return;
    }
    TimerFail back{.rows = rows,
                   .backoff = backoff,
                   .error = "handed back",
                   .counted = false,
                   .attempts = INT32_MAX};
    store_.fail(clock_.now() + wait_, std::move(back),
                [self = shared_from_this(), rows = std::move(rows), backoff, until,
                 hold = hold()](const Result<TimerFailed>& given) mutable {
                    if (worth_another_try(given)) {
                        self->keep(std::move(rows), backoff, until);
                    }
                });
}

void TimerHandBack::keep(Rows rows, std::chrono::milliseconds backoff, SteadyTime until) {
    const SteadyTime next = clock_.now() + kPause;
    const std::lock_guard lock(mutex_);
    if (next >= until || kept_rows_ + rows.size() > kMostRows) {
        return;
    }
    kept_rows_ += rows.size();
    kept_.push_back({std::move(rows), backoff, until, next});
}

void TimerHandBack::try_again(SteadyTime now) {
    std::vector<Kept> ready;
    {
        const std::lock_guard lock(mutex_);
        const auto later = std::partition(kept_.begin(), kept_.end(),
                                          [now](const Kept& kept) { return kept.next <= now; });
        std::move(kept_.begin(), later, std::back_inserter(ready));
        kept_.erase(kept_.begin(), later);
        for (const Kept& kept : ready) {
            kept_rows_ -= kept.rows.size();
        }
    }
    for (Kept& kept : ready) {
        if (clock_.now() < kept.until) {
            give(std::move(kept.rows), kept.backoff, kept.until);
        }
    }
}

TimerHandBack::Hold TimerHandBack::hold() {
    {
        const std::lock_guard lock(mutex_);
        ++holds_;
    }
    return {nullptr, [self = shared_from_this()](void*) { self->release(); }};
}

void TimerHandBack::finish(std::function<void()> over) {
    const Hold hold = this->hold();
    try_again(SteadyTime::max());
    const std::lock_guard lock(mutex_);
    over_ = std::move(over);
}

void TimerHandBack::release() {
    std::function<void()> over;
    {
        const std::lock_guard lock(mutex_);
        if (--holds_ == 0) {
            over = std::exchange(over_, {});
        }
    }
    if (over) {
        over();
    }
}

} // namespace queen::broker
