// store/executor.hpp - the threads of the broker and the sessions they share.
//
// S sessions, S + cores threads. A thread takes a session for one statement and puts it back before
// the continuation runs, so that nobody ever holds a session while rendering or waiting (PL-6).
// Waiting for a session is standing in a lane with a deadline:
//
//   submit() -> lane (FIFO) -> [session free, lane entitled] -> call(session) -> session back ->
//   done
//                    \-> deadline passes: done(unavailable "pool") without running
//
// Who is entitled. Lanes are served ack > push > pop > admin, and each lane that has work is sure
// of one session. With S >= 4 one session stays reserved for every lane that runs none, so a lane
// takes at most S - 3. With fewer sessions than lanes a lane takes at most one, and lanes that run
// none go first in the order in which they were last served, so that none starves.
//
// The database is away. The first failed connect opens an outage: until its backoff is over (250
// ms, doubling to 2 s, one for the whole executor) jobs fail at once with unavailable; then one job
// at a time tries. The first success closes the outage. A session whose link broke is opened anew
// by the next job that gets it, before that job's statement is sent (PL-9).
#pragma once
#include "base/clock.hpp"
#include "base/histogram.hpp"
#include "base/result.hpp"
#include "base/workers.hpp"
#include "ports/store.hpp"
#include "store/session.hpp"

#include <array>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace queen::store {

inline constexpr std::size_t kLanes = 4;

/// Whether a statement may be run again when its link broke under it.
enum class Repeat {
    never, ///< it may have taken effect
    once   ///< it only reads
};

/// Invariant: each submitted job has its `done` called exactly once.
/// Invariant: running sessions + idle sessions = S.
/// Locks: `mutex_` is a leaf; neither sessions, calls, continuations nor tasks run under it.
class Executor final : public Workers {
public:
    struct Options {
        std::size_t sessions = 8;
        std::size_t spare_threads = 0; ///< beside one per session; 0: one per core
        std::chrono::milliseconds backoff_first{250};
        std::chrono::milliseconds backoff_longest{2'000};
    };
    using SessionFactory = std::function<std::unique_ptr<Session>()>;

    /// Starts the threads. Sessions are made here and connect when first used.
    Executor(Options options, const SessionFactory& make,
             const Clock& clock = SystemClock::instance());
    ~Executor() override; ///< stop(0)

    /// @thread any
    void post(std::function<void()> task) override;

    /// Runs `call` with a session as soon as the lane is entitled to one, then `done` with what it
    /// returned, on a worker and after the session was given back. `done` gets instead:
    /// unavailable - no session until `deadline`, or the database is away; shutting_down.
    /// After stop() has returned there are no workers: `done` then runs in the caller.
    /// @thread any
    template <class X>
    void submit(Lane lane, SteadyTime deadline, std::function<Result<X>(Session&)> call,
                Done<X> done, Repeat repeat = Repeat::never) {
        enqueue(std::make_unique<TypedJob<X>>(lane, deadline, repeat, std::move(call),
                                              std::move(done)));
    }

    /// Ends everything: what waits fails with shutting_down, statements that run may end within
    /// `grace` and are then cut off, tasks run until none is left. A connect that is under way is
    /// waited for as well (its time is bounded by connect_timeout).
    /// @thread any, not a worker
    void stop(std::chrono::milliseconds grace);

    struct LaneStatistics {
        std::size_t waiting = 0, running = 0;
        std::uint64_t done = 0;              ///< calls that ran, whatever they returned
        std::uint64_t expired = 0;           ///< never ran: no session in time
        std::uint64_t refused = 0;           ///< never ran: the database was away, or shutdown
        std::uint64_t failed = 0;            ///< of `done`: returned an error
        LatencyHistogram::Snapshot waited{}; ///< for a session, those that got one
    };
    struct Statistics {
        std::array<LaneStatistics, kLanes> lanes; ///< by Lane
        std::size_t tasks_waiting = 0;
        std::size_t sessions = 0, in_use = 0;
        std::size_t open = 0, broken = 0; ///< of all; the rest was never opened
        std::uint64_t timeouts = 0;       ///< statements that ran over their time
        std::uint64_t connects = 0;       ///< links opened for the first time
        std::uint64_t resets = 0;         ///< links opened anew
        std::uint64_t repeats = 0;        ///< reads that ran again on a fresh link
        bool outage = false;              ///< the last connect failed
    };
    /// @thread any
    Statistics statistics() const;

    /// Looks at the deadlines again: for tests whose clock jumped.
    void wake();

private:
    struct Slot {
        std::unique_ptr<Session> session;
        bool ever_open = false;
        bool open = false;
        bool in_use = false;
    };

    /// One statement on its way. Steps: run() or fail(), then finish().
    class Job {
    public:
        Job(Lane lane, SteadyTime deadline, Repeat repeat)
            : lane_(lane), deadline_(deadline), repeat_(repeat) {}
        virtual ~Job() = default;
        virtual void run(Session& session) = 0; ///< keeps the outcome
        virtual void fail(Error error) = 0;     ///< replaces the outcome
        virtual const Error* error() const = 0; ///< of the outcome
        virtual void finish() = 0;              ///< hands the outcome to `done`

        const Lane lane_;
        const SteadyTime deadline_;
        const Repeat repeat_;
    };

    template <class X>
    class TypedJob final : public Job {
    public:
        TypedJob(Lane lane, SteadyTime deadline, Repeat repeat,
                 std::function<Result<X>(Session&)> call, Done<X> done)
            : Job(lane, deadline, repeat), call_(std::move(call)), done_(std::move(done)) {}
        void run(Session& session) override { outcome_.emplace(call_(session)); }
        void fail(Error error) override { outcome_.emplace(tl::unexpected(std::move(error))); }
        const Error* error() const override {
            return outcome_ && !*outcome_ ? &outcome_->error() : nullptr;
        }
        void finish() override {
            call_ = nullptr; // what it captured is not needed while done renders
            done_(std::move(*outcome_));
        }

    private:
        std::function<Result<X>(Session&)> call_;
        Done<X> done_;
        std::optional<Result<X>> outcome_;
    };

    struct Waiting;
    using Queue = std::list<Waiting>;
    using Deadlines = std::multimap<SteadyTime, Queue::iterator>;
    struct Waiting {
        std::unique_ptr<Job> job;
        Deadlines::iterator timer; ///< end() when it waits without end
        SteadyTime since;
    };

    struct LaneState {
        Queue queue;
        std::uint64_t last_served = 0; ///< a count of grants, for lanes that share too few sessions
        LaneStatistics statistics;     ///< waiting and running are kept here as well
    };

    /// Since the first failed connect and until the first success.
    struct Outage {
        bool active = false;
        bool probing = false; ///< one job is trying
        SteadyTime retry_at{};
        std::chrono::milliseconds backoff{0};
        std::string why;
    };

    void enqueue(std::unique_ptr<Job> job);
    void work();
    void run_one(std::unique_lock<std::mutex>& lock, std::size_t lane);
    /// Opens the link when it has to be.
    Result<void> make_ready(Slot& slot);
    void run_job(Job& job, Slot& slot);
    void call(Job& job, Session& session);
    void finish(Job& job);
    void wake_one(); ///< of the workers, unless this one will look itself
    void finish_unrun(std::unique_lock<std::mutex>& lock, std::unique_ptr<Job> job, Error error);
    template <class Work>
    void outside(std::unique_lock<std::mutex>& lock, Work&& work);

    // All of these require mutex_.
    std::optional<std::size_t> entitled() const;
    std::unique_ptr<Job> take(Queue::iterator waiting);
    Slot& check_out();
    void check_in(Slot& slot);
    void note_connect(Slot& slot, const Result<void>& connected);
    void warn_saturated(const Job& job);
    bool has_work() const { return !tasks_.empty() || entitled().has_value(); }

    const Options options_;
    const Clock& clock_;
    const std::size_t lane_cap_; ///< most sessions one lane may use

    mutable std::mutex mutex_;
    std::condition_variable work_;  ///< something to do, or deadlines changed
    std::condition_variable quiet_; ///< no session is in use
    std::deque<std::function<void()>> tasks_;
    std::array<LaneState, kLanes> lanes_;
    std::array<LatencyHistogram, kLanes> waits_; ///< by Lane
    Deadlines deadlines_;
    std::vector<Slot> slots_; ///< fixed size
    std::vector<Slot*> idle_; ///< used from the back; those with a broken link stand in front
    std::uint64_t grants_ = 0;
    std::size_t busy_ = 0; ///< workers that are doing something outside the lock
    bool stopping_ = false;
    bool closed_ = false; ///< the workers have left
    Outage outage_;
    SteadyTime saturation_logged_ = SteadyTime::min();
    std::uint64_t timeouts_ = 0, connects_ = 0, resets_ = 0, repeats_ = 0;

    std::mutex stop_mutex_; ///< stop_mutex_ -> mutex_
    std::vector<std::thread> threads_;
};

} // namespace queen::store
