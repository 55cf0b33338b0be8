#include "pluginhost/tick_driver.hpp"

#include <utility>

namespace queen::pluginhost {

void TickDriver::start(std::function<SteadyTime(SteadyTime)> run) {
    const std::lock_guard lock(mutex_);
    run_ = std::move(run);
    arm(clock_.now());
}

void TickDriver::pull(SteadyTime when) {
    const std::lock_guard lock(mutex_);
    arm(when);
}

void TickDriver::stop() {
    const std::scoped_lock lock(running_, mutex_);
    if (armed_for_ != SteadyTime::max()) {
        ticker_.cancel(armed_);
        armed_for_ = SteadyTime::max();
    }
    run_ = nullptr;
}

void TickDriver::arm(SteadyTime when) {
    if (!run_ || when >= armed_for_) {
        return;
    }
    if (armed_for_ != SteadyTime::max()) {
        ticker_.cancel(armed_);
    }
    armed_for_ = when;
    armed_ = ticker_.at(when, [driver = weak_from_this(), task = ++last_task_] {
        if (const auto alive = driver.lock()) {
            alive->run_due(task);
        }
    });
}

void TickDriver::run_due(std::uint64_t task) {
    const std::lock_guard running(running_);
    std::function<SteadyTime(SteadyTime)> run;
    {
        const std::lock_guard lock(mutex_);
        if (!run_ || task != last_task_) {
            return; // stopped, or cancelled too late to be caught
        }
        armed_for_ = SteadyTime::max(); // a pull during the run arms anew
        run = run_;
    }
    const SteadyTime next = run(clock_.now());
    const std::lock_guard lock(mutex_);
    if (next != SteadyTime::max()) {
        arm(next);
    }
}

} // namespace queen::pluginhost
