#include "broker/statistics.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace queen::broker {

struct Statistics::Run {
    std::vector<Waiter> waiters;
    SteadyTime start;
    Refreshed so_far;

    /// Nobody of those who wait wants it any more.
    bool over() const {
        return std::all_of(waiters.begin(), waiters.end(),
                           [](const Waiter& waiter) { return waiter.over && waiter.over(); });
    }
};

Statistics::Statistics(SystemStore& store, FigureReads& reads, const Clock& clock, Options options)
    : store_(store), reads_(reads), clock_(clock), options_(options) {}

void Statistics::refresh(Done<Refreshed> done) {
    join({}, std::move(done));
}

void Statistics::refresh_when_due(std::function<bool()> over, Done<Refreshed> done) {
    store_.statistics_state(
        clock_.now() + options_.wait,
        [this, over = std::move(over), done = std::move(done)](Result<StatisticsState> state) {
            if (!state) {
                done(fail(std::move(state.error())));
            } else if (state->age && *state->age - state->took < kRest * state->took) {
                done(Refreshed{.refreshed = false, .took = state->took});
            } else {
                join(over, done);
            }
        });
}

void Statistics::join(std::function<bool()> over, Done<Refreshed> done) {
    {
        const std::lock_guard lock(mutex_);
        waiting_.push_back({std::move(over), std::move(done)});
        if (std::exchange(running_, true)) {
            return;
        }
    }
    begin();
}

void Statistics::begin() {
    auto run = std::make_shared<Run>();
    {
        const std::lock_guard lock(mutex_);
        run->waiters = std::exchange(waiting_, {});
    }
    run->start = clock_.now();
    step(run, std::nullopt);
}

void Statistics::step(const std::shared_ptr<Run>& run, std::optional<Uuid> after) {
    if (run->over()) {
        finish(run, fail(Errc::shutting_down, "the refresh was ended before its end"));
        return;
    }
    store_.refresh_statistics(
        clock_.now() + options_.wait, after, options_.queues,
        [this, run](Result<StatisticsStep> step) {
            if (!step) {
                finish(run, fail(std::move(step.error())));
                return;
            }
            run->so_far.queues += step->queues;
            run->so_far.partitions += step->partitions;
            run->so_far.written += step->written;
            if (step->next) {
                this->step(run, step->next);
                return;
            }
            run->so_far.refreshed = true;
            run->so_far.took =
                std::chrono::ceil<std::chrono::milliseconds>(clock_.now() - run->start);
            store_.statistics_refreshed(clock_.now() + options_.wait, run->so_far.took,
                                        [this, run](Result<void> noted) {
                                            if (noted) {
                                                count_timers(run);
                                            } else {
                                                finish(run, fail(std::move(noted.error())));
                                            }
                                        });
        });
}

/// After all else has its place: what they cost must not keep the queues' figures from being new.
void Statistics::count_timers(const std::shared_ptr<Run>& run) {
    store_.refresh_timer_statistics(clock_.now() + options_.wait, [this,
                                                                   run](Result<void> counted) {
        finish(run, counted ? Result<Refreshed>(run->so_far) : fail(std::move(counted.error())));
    });
}

void Statistics::finish(const std::shared_ptr<Run>& run, Result<Refreshed> outcome) {
    bool again = false;
    {
        const std::lock_guard lock(mutex_);
        again = !waiting_.empty();
        running_ = again;
    }
    if (again) {
        begin();
    }
    for (const Waiter& waiter : run->waiters) {
        waiter.done(outcome);
    }
}

void Statistics::queues(const std::string& tenant, Done<std::optional<std::string>> done) {
    reads_.ask(
        figure_question("cached queues", {tenant}),
        [this, tenant](SteadyTime deadline, Done<std::optional<std::string>> got) {
            store_.cached_queues(deadline, tenant, always(std::move(got)));
        },
        std::move(done));
}

void Statistics::overview(const std::string& tenant, Done<std::optional<std::string>> done) {
    reads_.ask(
        figure_question("cached overview", {tenant}),
        [this, tenant](SteadyTime deadline, Done<std::optional<std::string>> got) {
            store_.cached_overview(deadline, tenant, always(std::move(got)));
        },
        std::move(done));
}

} // namespace queen::broker
