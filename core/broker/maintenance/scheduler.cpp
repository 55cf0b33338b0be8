#include "broker/maintenance/scheduler.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

namespace queen::broker {
namespace {

using std::chrono::milliseconds;

/// A statement that a task begins just before its lease ends should be over by the end. A guess.
constexpr milliseconds kMargin{5'000};

} // namespace

milliseconds Scheduler::poll_of(milliseconds period) {
    return std::clamp(period / 10, milliseconds{1'000}, milliseconds{60'000});
}

milliseconds Scheduler::lease_of(milliseconds period) {
    return std::clamp(period * 2, milliseconds{60'000}, milliseconds{1'800'000});
}

/// Everything there is, so that an answer or a timer that comes after the scheduler finds it.
class Scheduler::Shared : public std::enable_shared_from_this<Scheduler::Shared> {
public:
    Shared(TaskStore& store, Ticker& ticker, Workers& workers, const Clock& clock, Options options)
        : store_(store), ticker_(ticker), workers_(workers), clock_(clock),
          options_(std::move(options)) {}

    struct Task {
        explicit Task(MaintenanceTask what) : task(std::move(what)) {}
        const MaintenanceTask task;
        // Requires mutex_.
        bool registered = false; ///< since this broker started
        bool failing = false;    ///< the last run failed
        Ticker::Id timer = 0;
        TaskStats stats;
        LatencyHistogram duration; ///< its own atomics
    };

    class Turn final : public TaskTurn {
    public:
        Turn(std::shared_ptr<Shared> shared, Task& task, std::int64_t fence, SteadyTime claimed)
            : shared_(std::move(shared)), task_(task), fence_(fence), began_(shared_->clock_.now()),
              end_(claimed + lease_of(task.task.period) - kMargin) {}
        ~Turn() override { finish(fail(Errc::internal, "the task was given up")); }
        Turn(const Turn&) = delete;
        Turn& operator=(const Turn&) = delete;

        bool over() const noexcept override {
            return shared_->stopping_.load() || shared_->clock_.now() >= end_;
        }
        void finish(Result<void> outcome) override {
            if (!finished_.exchange(true)) {
                shared_->ended(task_, fence_, shared_->clock_.now() - began_, std::move(outcome));
            }
        }

    private:
        const std::shared_ptr<Shared> shared_;
        Task& task_;
        const std::int64_t fence_;
        const SteadyTime began_, end_;
        std::atomic<bool> finished_{false};
    };

    void add(MaintenanceTask what) {
        QUEEN_ASSERT(what.run && what.period > milliseconds{0}, "a task has a run and a period");
        Task& task = tasks_.emplace_back(std::move(what));
        task.stats.name = task.task.name;
    }

    void start() {
        for (Task& task : tasks_) {
            look(task);
        }
    }

    void stop(milliseconds grace) {
        std::unique_lock lock(mutex_);
        stopping_.store(true);
        for (const Task& task : tasks_) {
            ticker_.cancel(task.timer);
        }
        idle_.wait_for(lock, grace, [this] { return turns_ == 0; });
    }

    std::vector<TaskStats> stats() const {
        const std::lock_guard lock(mutex_);
        std::vector<TaskStats> out;
        for (const Task& task : tasks_) {
            out.push_back(task.stats);
            out.back().duration = task.duration.snapshot();
        }
        return out;
    }

private:
    SteadyTime deadline() const { return clock_.now() + options_.wait; }

    void look_later(Task& task) {
        const std::lock_guard lock(mutex_);
        if (!stopping_.load()) {
            task.timer = ticker_.at(clock_.now() + poll_of(task.task.period),
                                    [self = shared_from_this(), &task] { self->look(task); });
        }
    }

    void look(Task& task) {
        bool known = false;
        {
            const std::lock_guard lock(mutex_);
            if (stopping_.load()) {
                return;
            }
            known = task.registered;
            ++turns_; // a claim under way may become a turn
        }
        if (known) {
            claim(task);
            return;
        }
        store_.register_task(deadline(), task.task.name, task.task.period,
                             [self = shared_from_this(), &task](const Result<void>& done) {
                                 if (!done) {
                                     self->looked(task);
                                     return;
                                 }
                                 {
                                     const std::lock_guard lock(self->mutex_);
                                     task.registered = true;
                                 }
                                 self->claim(task);
                             });
    }

    void claim(Task& task) {
        const SteadyTime asked = clock_.now();
        store_.claim_task(
            deadline(), task.task.name, options_.holder, lease_of(task.task.period),
            [self = shared_from_this(), &task, asked](Result<std::optional<TaskClaim>> claimed) {
                if (!claimed || !*claimed) {
                    self->looked(task);
                    return;
                }
                self->run(task, **claimed, asked);
            });
    }

    void run(Task& task, const TaskClaim& claimed, SteadyTime asked) {
        {
            const std::lock_guard lock(mutex_);
            task.stats.held = true;
            task.stats.late = claimed.late;
        }
        auto turn = std::make_shared<Turn>(shared_from_this(), task, claimed.fence, asked);
        workers_.post([&task, turn = std::move(turn)]() mutable {
            if (turn->over()) { // stopped meanwhile
                turn->finish(fail(Errc::shutting_down, "the broker stops"));
                return;
            }
            task.task.run(std::move(turn));
        });
    }

    void ended(Task& task, std::int64_t fence, Nanoseconds took, Result<void> outcome) {
        std::string line;
        bool cut_short = false;
        {
            const std::lock_guard lock(mutex_);
            task.stats.held = false;
            task.duration.observe(took);
            cut_short = !outcome && outcome.error().code == Errc::shutting_down;
            ++(outcome || cut_short ? task.stats.runs : task.stats.failures);
            if (cut_short) {
                // Neither well nor ill.
            } else if (!outcome && !task.failing) {
                line = "maintenance task=" + task.task.name + " fails: " + outcome.error().message;
            } else if (outcome && task.failing) {
                line = "maintenance task=" + task.task.name + " works again";
            }
            task.failing = cut_short ? task.failing : !outcome;
        }
        if (!line.empty() && options_.warn && !stopping_.load()) {
            options_.warn(line);
        }
        // Also what failed is given back: the next try is due a period later, here or elsewhere.
        store_.release_task(
            deadline(), task.task.name, fence, !cut_short,
            [self = shared_from_this(), &task](const Result<bool>&) { self->looked(task); });
    }

    /// A look is over, with or without a turn.
    void looked(Task& task) {
        look_later(task);
        const std::lock_guard lock(mutex_);
        --turns_;
        idle_.notify_all();
    }

    TaskStore& store_;
    Ticker& ticker_;
    Workers& workers_;
    const Clock& clock_;
    const Options options_;
    std::deque<Task> tasks_; ///< fixed from start() on: others keep references
    mutable std::mutex mutex_;
    std::condition_variable idle_;
    std::atomic<bool> stopping_{false};
    std::size_t turns_ = 0; ///< looks and turns under way
};

Scheduler::Scheduler(TaskStore& store, Ticker& ticker, Workers& workers, const Clock& clock,
                     Options options)
    : shared_(std::make_shared<Shared>(store, ticker, workers, clock, std::move(options))) {}

Scheduler::~Scheduler() {
    stop(milliseconds{0});
}

void Scheduler::add(MaintenanceTask task) {
    shared_->add(std::move(task));
}

void Scheduler::start() {
    shared_->start();
}

void Scheduler::stop(milliseconds grace) {
    shared_->stop(grace);
}

std::vector<Scheduler::TaskStats> Scheduler::stats() const {
    return shared_->stats();
}

} // namespace queen::broker
