#pragma once
#include "base/result.hpp"
#include "base/workers.hpp"
#include "broker/parking.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace queen::broker {

/// What one look at the store brought.
struct LookOutcome {
    bool took = false;
    bool more = false; ///< something else is, or may be, ready for another waiter of the scope
    bool over = false; ///< nothing taken, and nothing to wait for: the answer is due at once
    std::optional<Error> error;
    SteadyTime next_due = SteadyTime::max(); ///< nothing taken: when the source expects something
};

/// One pop's way through its scope: ticket, look, answer or park, until something was taken, the
/// deadline passed or the client went. Knows nothing of stores: the look and the answer are given,
/// which is what lets a test step every interleaving.
///
/// Invariant: a wake handed to this turn is used by a look that begins after it, or passed on.
/// Locks: none; the steps follow each other, only abandon() and the deadline come from outside.
class PopTurn final : public Waiter, public std::enable_shared_from_this<PopTurn> {
public:
    enum class End { taken, empty, failed, crowded, abandoned };
    /// Starts a look; `done` runs once, on a worker. `again`: a re-poll of a pop that waits.
    using Look = std::function<void(bool again, std::function<void(LookOutcome)> done)>;
    /// The end, once. `error` with End::failed.
    using Answer = std::function<void(End, std::optional<Error> error)>;

    struct Waiting {
        bool wait = false;
        SteadyTime deadline{};       ///< of a waiting pop
        std::size_t most_parked = 0; ///< End::crowded beyond; 0: no limit
    };

    PopTurn(Parking& parking, Workers& workers, Ticker& ticker, const Clock& clock,
            const WaitScope& scope, Waiting waiting, Look look, Answer answer);
    ~PopTurn() override;

    void start();   ///< @thread worker
    void abandon(); ///< @thread any

private:
    void resume() override;
    void resume_together(std::vector<std::shared_ptr<Waiter>> all) override;
    void look() override;
    void begin_look(bool again);
    void looked(const LookOutcome& outcome);
    void expire();
    void finish(End end, std::optional<Error> error = {});

    Parking& parking_;
    Workers& workers_;
    Ticker& ticker_;
    const Clock& clock_;
    const Waiting waiting_;
    Look look_;
    Answer answer_;
    std::unique_ptr<Parking::Place> place_;
    Ticker::Id deadline_timer_ = 0;
    std::atomic<bool> gone_{false};
    std::atomic<bool> ended_{false};
};

} // namespace queen::broker
