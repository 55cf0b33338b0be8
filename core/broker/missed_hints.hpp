// broker/missed_hints.hpp - what is made of it when hints of other brokers may have been lost: a
// link was made (again), or a mesh had to drop what had come. Nobody knows what was in them, so
// what a floor would look at a little later is looked at at once. Settings that were changed and
// queues that were deleted come with the next claim, as they do without any hint:
//
//   mesh's thread:  missed() -> at once, or when the last look is a second ago -> a worker
//   a worker:       sources have what they know walked anew; one waiter of each scope looks;
//                   repairs and switches are read
//
// The work is that of one round of floors: a walk of each ring that the hot-list holds, few at a
// time (reseed.hpp), and one look for each scope that waits. However many links come and go, it
// comes once a second at most, five times in a row, then each 15 s; and after the last call once
// more.
#pragma once
#include "base/counter.hpp"
#include "base/workers.hpp"
#include "broker/parking.hpp"
#include "broker/sources.hpp"

#include <chrono>
#include <functional>
#include <mutex>

namespace queen::broker {

/// Invariant: one look runs or is planned at a time, and one follows each missed() that came before
/// it began.
/// Locks: `mutex_` -> ticker. Nothing else is called while it is held.
/// @source MESH-4
class MissedHints {
public:
    struct Told {
        std::function<void()> moved;    ///< repairs are to be read
        std::function<void()> switched; ///< switches are to be read
    };
    // Guesses. Who floods us, or a link that comes and goes, must cost no more than floors do, that
    // come each 30 s; a cluster whose links are made one after the other shall not wait for them.
    static constexpr std::chrono::seconds kLeast{1};  ///< between two looks
    static constexpr std::chrono::seconds kOften{15}; ///< between two of many
    static constexpr int kInARow = 5;

    MissedHints(const Sources& sources, Parking& parking, Workers& workers, Ticker& ticker,
                const Clock& clock, Told told)
        : sources_(sources), parking_(parking), workers_(workers), ticker_(ticker), clock_(clock),
          told_(std::move(told)) {}

    void missed(); ///< returns at once. @thread any, a mesh's own
    void stop();   ///< no look begins any more. @thread any

    std::uint64_t looks() const noexcept { return looks_.value(); }

private:
    enum class State { idle, planned, looking, looking_again, stopped };
    void plan(SteadyTime now); // Requires mutex_.
    void due();
    void look();
    void looked() noexcept;

    const Sources& sources_;
    Parking& parking_;
    Workers& workers_;
    Ticker& ticker_;
    const Clock& clock_;
    const Told told_;
    Counter looks_;

    std::mutex mutex_;
    State state_ = State::idle;
    SteadyTime not_before_ = SteadyTime::min();
    SteadyTime paid_until_ = SteadyTime::min(); ///< each look costs kOften
    Ticker::Id timer_ = 0;
};

} // namespace queen::broker
