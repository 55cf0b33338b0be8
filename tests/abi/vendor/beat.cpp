#include "beat.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>
#include <vector>

namespace acme::beat {

using namespace std::chrono_literals;
using queen::plugin::TimerAnswer;
using queen::plugin::TimerBatch;
using queen::plugin::TimerCall;
using queen::plugin::TimerOutcome;

void Beat::stop() {
    const std::lock_guard calls(calling_); // one that has begun
    const std::lock_guard lock(mutex_);
    stopped_ = true;
}

queen::SteadyTime Beat::tick(queen::SteadyTime now) {
    std::unique_lock lock(mutex_);
    if (step_ == Step::rest && !stopped_) {
        step_ = Step::due;
        act(std::move(lock));
    }
    return now + options_.every;
}

void Beat::answered(TimerCall call, const TimerAnswer& answer) {
    std::unique_lock lock(mutex_);
    if (call != call_ || step_ == Step::rest) {
        return;
    }
    pause_ = options_.every;
    const TimerBatch before = batch_;
    step_ = after(answer);
    if (step_ == Step::claim && before != 0) {
        batch_ = 0;
        lock.unlock();
        host_.release(before);
        lock.lock();
    }
    act(std::move(lock));
}

Beat::Step Beat::after(const TimerAnswer& answer) {
    const bool fine = answer.outcome == TimerOutcome::ok;
    const auto next = [this] { return ++at_ < segments_ ? Step::fire : Step::claim; };
    switch (step_) {
    case Step::due:
        pause_ = std::clamp(answer.next_in, queen::Nanoseconds(1ms), options_.every);
        return fine && answer.due > 0 ? Step::claim : Step::rest;
    case Step::claim:
        batch_ = answer.batch;
        segments_ = static_cast<std::uint32_t>(answer.segments.size());
        at_ = 0;
        return fine && batch_ != 0 ? Step::fire : Step::rest;
    case Step::fire:
        if (fine) {
            ++fired_;
            return next();
        }
        if (answer.outcome == TimerOutcome::contended) {
            return Step::skip_one;
        }
        return answer.outcome == TimerOutcome::permanent || answer.outcome == TimerOutcome::config
                   ? Step::fail_one
                   : Step::fail_rest;
    case Step::fail_one:
        return fine && answer.exhausted > 0 ? Step::file : next();
    case Step::skip_one:
    case Step::file:
        return next();
    case Step::fail_rest:
    case Step::rest:
        break;
    }
    return Step::rest;
}

/// Does what step_ says. A rest, or a call that is not taken, gives the batch back.
void Beat::act(std::unique_lock<std::mutex> lock) {
    lock.unlock();
    {
        const std::lock_guard calls(calling_);
        lock.lock();
        if (step_ != Step::rest && !stopped_) {
            const Step step = step_;
            const TimerCall call = ++call_;
            const TimerBatch batch = batch_;
            const std::uint32_t at = at_, segments = segments_;
            lock.unlock();
            if (ask(step, call, batch, at, segments)) {
                return;
            }
            lock.lock();
            pause_ = options_.every;
        }
    }
    const TimerBatch batch = std::exchange(batch_, 0);
    const queen::Nanoseconds pause = pause_;
    step_ = Step::rest;
    lock.unlock();
    if (batch != 0) {
        host_.release(batch);
    }
    host_.tick_at(clock_.now() + pause);
}

bool Beat::ask(Step step, TimerCall call, TimerBatch batch, std::uint32_t at,
               std::uint32_t segments) {
    constexpr queen::plugin::TimerShards kAll = ~queen::plugin::TimerShards{0};
    switch (step) {
    case Step::rest:
        break;
    case Step::due:
        return host_.due(call, kAll, 1);
    case Step::claim:
        return host_.claim(call, kAll, 10s, 200, 50);
    case Step::fire:
        return host_.fire(call, batch, {&at, 1});
    case Step::fail_one:
        return host_.fail(call, batch, {&at, 1}, 1s, "cannot be fired", true, options_.most);
    case Step::skip_one:
        return host_.fail(call, batch, {&at, 1}, 1s, "others are in the way", false, options_.most);
    case Step::file:
        return host_.dead_letter(call, batch, options_.most);
    case Step::fail_rest: {
        std::vector<std::uint32_t> left(segments - at);
        std::iota(left.begin(), left.end(), at);
        return host_.fail(call, batch, left, 1s, "not now", false, options_.most);
    }
    }
    return false;
}

void Beat::stats(queen::plugin::Stats& out) {
    const std::lock_guard lock(mutex_);
    out.add("fired_total", static_cast<double>(fired_));
}

} // namespace acme::beat
