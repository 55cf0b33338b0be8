// broker/timer_hand_back.hpp - claimed timers on their way back: rows that nobody fires are given
// back to the store, so that none waits for the end of a lease that nobody needs.
//
// What cannot be given back now, because a client's call has the row locked or the database is
// away, is kept and tried again, until the lease ends by itself.
#pragma once
#include "ports/timer_store.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace queen::broker {

/// Locks: `mutex_` is a leaf; the store is called with nothing held.
/// @thread any
/// @source SW-14
class TimerHandBack final : public std::enable_shared_from_this<TimerHandBack> {
public:
    using Rows = std::vector<TimerClaimKey>;
    static constexpr std::chrono::milliseconds kPause{500}; ///< between tries. A guess
    static constexpr std::size_t kMostRows = 10'000;        ///< that are tried again. A guess

    /// @param wait for a session
    TimerHandBack(TimerStore& store, const Clock& clock, std::chrono::milliseconds wait)
        : store_(store), clock_(clock), wait_(wait) {}

    /// @param until the end of their lease: no try begins later
    void give(Rows rows, std::chrono::milliseconds backoff, SteadyTime until);
    /// Tries those whose pause is over.
    void try_again() { try_again(clock_.now()); }

    /// As long as somebody has it there may be rows to be given back.
    using Hold = std::shared_ptr<void>;
    Hold hold();
    /// Tries all of them once more. @param over when nobody has a hold, here or where the last one
    /// ends; what the store then refused waits for the end of its lease
    void finish(std::function<void()> over);

private:
    struct Kept {
        Rows rows;
        std::chrono::milliseconds backoff;
        SteadyTime until, next;
    };
    void try_again(SteadyTime now);
    void keep(Rows rows, std::chrono::milliseconds backoff, SteadyTime until);
    void release();

    TimerStore& store_;
    const Clock& clock_;
    const std::chrono::milliseconds wait_;
    std::mutex mutex_;
    std::vector<Kept> kept_;
    std::size_t kept_rows_ = 0;
    std::size_t holds_ = 0;
    std::function<void()> over_;
};

} // namespace queen::broker
