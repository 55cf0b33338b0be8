#include "broker/missed_hints.hpp"

#include "base/on_exit.hpp"

#include <algorithm>
#include <utility>

namespace queen::broker {

void MissedHints::missed() {
    const std::lock_guard lock(mutex_);
    switch (state_) {
    case State::idle:
        plan(clock_.now());
        return;
    case State::looking:
        state_ = State::looking_again; // it may have passed what this is about
        return;
    case State::planned:
    case State::looking_again:
    case State::stopped:
        return;
    }
}

/// By the ticker even when it is at once: the caller may be anybody's thread.
void MissedHints::plan(SteadyTime now) {
    timer_ = ticker_.at(std::max(now, not_before_), [this] { due(); });
    state_ = State::planned; // not before there is a timer: making one may fail
}

void MissedHints::due() {
    try {
        workers_.post([this] { look(); });
    } catch (const std::exception&) { // for want of memory: the next that is missed plans anew
        const std::lock_guard lock(mutex_);
        if (state_ == State::planned) {
            state_ = State::idle;
        }
    }
}

void MissedHints::look() {
    {
        const std::lock_guard lock(mutex_);
        if (state_ != State::planned) {
            return; // stopped
        }
        state_ = State::looking;
        timer_ = 0;
    }
    looks_.add();
    const OnExit over([this]() noexcept { looked(); });
    for (const auto& entry : sources_.all()) {
        // The plugin host answers for sources that do not look by themselves.
        entry.source->missed();
    }
    // Whoever asks the store finds what is there; who asks a source is woken by it again.
    parking_.wake_each_scope();
    told_.moved();
    told_.switched();
}

void MissedHints::looked() noexcept {
    const std::lock_guard lock(mutex_);
    const auto now = clock_.now();
    paid_until_ = std::max(paid_until_, now) + kOften;
    not_before_ = std::max<SteadyTime>(now + kLeast, paid_until_ - (kInARow - 1) * kOften);
    if (state_ == State::looking) {
        state_ = State::idle;
    } else if (state_ == State::looking_again) {
        try {
            plan(now);
        } catch (const std::exception&) { // as in due()
            state_ = State::idle;
        }
    }
}

void MissedHints::stop() {
    Ticker::Id timer = 0;
    {
        const std::lock_guard lock(mutex_);
        state_ = State::stopped;
        timer = std::exchange(timer_, 0);
    }
    if (timer != 0) {
        ticker_.cancel(timer);
    }
}

} // namespace queen::broker
