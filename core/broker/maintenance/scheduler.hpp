// broker/maintenance/scheduler.hpp - tasks that one of all brokers does for all of them.
//
// Each task has a row in the database. Every broker looks at it now and then; whoever finds it due
// and free takes a turn, which nobody else gets before it was given back or its lease is over:
//
//   start() -> register -> look -> not ours: look again after a tenth of the period (1 s to 60 s)
//                            |
//                            +-> our turn: run(turn) -> turn->finish() -> give back -> look again
//
// When the task is next due moves as the turn is given back, not as it is taken, so a holder that
// dies costs its lease (twice the period, 60 s to 30 min) and nothing else (MA-2, F-24).
//
// Two holders. A run that outlasts its lease may meet another broker's. It is told by
// TaskTurn::over(), 5 s before the lease ends by a clock that started before the claim was sent; a
// task asks between two statements. There is no second lock behind the lease: each step of a task
// is one transaction of its own that locks what it changes and looks at it again, so two at once
// do the same work twice and no harm, while a lock that a session holds outlives a holder that
// hangs.
#pragma once
#include "base/counter.hpp"
#include "base/histogram.hpp"
#include "base/workers.hpp"
#include "ports/task_store.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace queen::broker {

/// One turn of a task, from the claim until it is given back. Whoever lets go of the last reference
/// without finish() has failed.
/// @thread any
class TaskTurn {
public:
    virtual ~TaskTurn() = default;
    /// The task should end now: the broker stops, or the lease is nearly over. Asked between two
    /// statements; what is left is done in the next turn.
    virtual bool over() const noexcept = 0;
    /// Ends the turn; the first call counts. With an error of shutting_down it was cut short, and
    /// the task is due at once, here or at another broker; other errors are failures.
    virtual void finish(Result<void> outcome) = 0;
};
using TaskTurnPtr = std::shared_ptr<TaskTurn>;

/// A task. `run` is called on a worker, returns at once, and keeps the turn until it finished.
struct MaintenanceTask {
    std::string name; ///< the row's key, the same on every broker
    std::chrono::milliseconds period{0};
    std::function<void(TaskTurnPtr turn)> run;
};

/// Asynchronous on ticker and store: no thread, and no session held between two statements.
///
/// Invariant: a task runs once at a time on this broker.
/// Locks: one mutex, under which the ticker's is taken; store, workers and tasks are called with
/// nothing held.
/// @source MA-1, MA-2, MA-3
class Scheduler {
public:
    struct Options {
        std::string holder;                     ///< names this broker in the rows
        std::chrono::milliseconds wait{30'000}; ///< of a statement for a session
        /// One line for the log when a run fails, and when runs succeed again.
        std::function<void(const std::string& line)> warn;
    };
    struct TaskStats {
        std::string name;
        std::uint64_t runs = 0;                ///< turns that ended well
        std::uint64_t failures = 0;            ///< turns that ended with an error
        bool held = false;                     ///< a turn is ours now
        std::chrono::milliseconds late{0};     ///< how long the last one was due when it was taken
        LatencyHistogram::Snapshot duration{}; ///< of turns
    };

    Scheduler(TaskStore& store, Ticker& ticker, Workers& workers, const Clock& clock,
              Options options);
    ~Scheduler(); ///< stop() with no grace
    Scheduler(const Scheduler&) = delete;
    Scheduler& operator=(const Scheduler&) = delete;

    /// Before start(). @thread main
    void add(MaintenanceTask task);
    /// @thread main
    void start();
    /// No new turns. Those under way are told that they are over; they are waited for, and given
    /// back, for `grace` at most. What ends later ends without us: its lease runs out.
    /// @thread any, not a worker
    void stop(std::chrono::milliseconds grace);

    /// @thread any
    std::vector<TaskStats> stats() const;

    /// How often a broker looks: a tenth of the period, 1 s to 60 s. @source MA-2
    static std::chrono::milliseconds poll_of(std::chrono::milliseconds period);
    /// How long a turn is a holder's: twice the period, 60 s to 30 min. @source MA-2
    static std::chrono::milliseconds lease_of(std::chrono::milliseconds period);

private:
    class Shared; ///< outlives the scheduler for what comes late
    std::shared_ptr<Shared> shared_;
};

} // namespace queen::broker
