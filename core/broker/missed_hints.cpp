#include "broker/missed_hints.hpp"

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
    state_ = State::planned;
    timer_ = ticker_.at(std::max(now, not_before_), [this] { due(); });
}

void MissedHints::due() {
    workers_.post([this] { look(); });
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
    for (const auto& entry : sources_.all()) {
        // The plugin host answers for sources that do not look by themselves.
        entry.source->missed();
    }
    // Whoever asks the store finds what is there; who asks a source is woken by it again.
    parking_.wake_each_scope();
    told_.moved();
    told_.switched();
    const std::lock_guard lock(mutex_);
    const auto now = clock_.now();
    paid_until_ = std::max(paid_until_, now) + kOften;
    not_before_ = std::max<SteadyTime>(now + kLeast, paid_until_ - (kInARow - 1) * kOften);
    if (state_ == State::looking_again) {
        plan(now);
    } else if (state_ == State::looking) {
        state_ = State::idle;
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
