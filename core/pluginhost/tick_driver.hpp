// pluginhost/tick_driver.hpp - calls PluginHost::run_ticks() on the ticker's thread, when it is
// due.
#pragma once
#include "base/workers.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

namespace queen::pluginhost {

/// Wiring: make the driver, give pull() to HostServices::tick_at, make the PluginHost, load, then
/// start() with its run_ticks(). Stop it before the host goes.
///
/// Invariant: at most one task is armed, for the earliest time asked for.
/// Locks: `running_` -> `mutex_`; the ticker is called with `mutex_` held and never calls back
/// inside. Plugins run under `running_` alone, so they may call tick_at().
/// @thread any
class TickDriver final : public std::enable_shared_from_this<TickDriver> {
public:
    /// Shared, because a task that the ticker has already taken up may come after the end.
    static std::shared_ptr<TickDriver> make(Ticker& ticker, const Clock& clock) {
        return std::shared_ptr<TickDriver>(new TickDriver(ticker, clock));
    }
    TickDriver(const TickDriver&) = delete;
    TickDriver& operator=(const TickDriver&) = delete;
    ~TickDriver() { stop(); }

    /// @param run runs what is due at the given time and says when it wants to run next
    void start(std::function<SteadyTime(SteadyTime now)> run);
    /// Runs no later than at `when`. Before start() and after stop() it does nothing.
    void pull(SteadyTime when);
    /// When it returns, `run` is not running and will not run again. Not from inside `run`.
    void stop();

private:
    TickDriver(Ticker& ticker, const Clock& clock) : ticker_(ticker), clock_(clock) {}
    void run_due(std::uint64_t task);
    void arm(SteadyTime when); // Requires mutex_.

    Ticker& ticker_;
    const Clock& clock_;
    std::mutex running_;
    std::mutex mutex_;
    std::function<SteadyTime(SteadyTime)> run_; ///< empty while stopped
    SteadyTime armed_for_ = SteadyTime::max();
    Ticker::Id armed_ = 0;
    std::uint64_t last_task_ = 0; ///< tells the armed task from one cancelled too late
};

} // namespace queen::pluginhost
