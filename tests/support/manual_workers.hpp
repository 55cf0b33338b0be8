#pragma once
#include "base/workers.hpp"

#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>

namespace queen::test {

/// Workers without threads: tasks wait until the test runs them, on its own thread, so that it
/// decides what happens between two of them.
/// @thread post(): any; the rest: the test's
class ManualWorkers final : public Workers {
public:
    void post(std::function<void()> task) override {
        const std::lock_guard lock(mutex_);
        tasks_.push_back(std::move(task));
    }

    std::size_t pending() const {
        const std::lock_guard lock(mutex_);
        return tasks_.size();
    }
    /// Runs the task at `index`, by default the oldest. @return false when there is none
    bool run_one(std::size_t index = 0) {
        std::function<void()> task;
        {
            const std::lock_guard lock(mutex_);
            if (index >= tasks_.size()) {
                return false;
            }
            const auto place = tasks_.begin() + static_cast<std::ptrdiff_t>(index);
            task = std::move(*place);
            tasks_.erase(place);
        }
        task();
        return true;
    }
    /// Runs all tasks, also those that they post. @return how many ran
    std::size_t run_all() {
        std::size_t ran = 0;
        while (run_one()) {
            ++ran;
        }
        return ran;
    }

private:
    mutable std::mutex mutex_;
    std::deque<std::function<void()>> tasks_;
};

} // namespace queen::test
