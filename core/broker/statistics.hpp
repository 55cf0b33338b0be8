// broker/statistics.hpp - the figures of all queues, remembered by the database.
//
// A refresh goes over all queues, so many of them a statement:
//
//   refresh -> step -> step -> ... -> the last step -> noted as the statistics that there are
//                \-> failed, or its turn is over: what was written stays, the age does not move
//
// One runs at a time here; who asks while it runs shares the one after it, so nobody is told of
// figures older than his question.
#pragma once
#include "broker/figure_reads.hpp"
#include "ports/system_store.hpp"

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace queen::broker {

/// What became of a refresh.
struct Refreshed {
    bool refreshed = false;            ///< false: it was not the time for one
    std::chrono::milliseconds took{0}; ///< this one, or the last one
    std::int64_t queues = 0, partitions = 0;
    std::int64_t written = 0; ///< rows that had changed
};

/// Invariant: one refresh at a time; each `done` runs once, with one that began after its question.
/// Locks: `mutex_` is a leaf; nothing is called while it is held.
/// @thread any
/// @source ST-6, ST-10
class Statistics {
public:
    struct Options {
        std::chrono::milliseconds wait{30'000}; ///< of a statement for a session
        std::int32_t queues = 500;              ///< a step; a guess at some tenths of a second
    };
    /// A scheduled refresh leaves the database alone for this many times as long as the last one
    /// took: at most a fifth of one session's time goes into statistics, however much there is.
    static constexpr int kRest = 4;

    /// @param reads bounds what is read at once, these figures and others together
    Statistics(SystemStore& store, FigureReads& reads, const Clock& clock, Options options);

    /// @errors (to done) those of the store
    void refresh(Done<Refreshed> done);
    /// When it is the time for one. @param over asked between steps: no more of them, please
    /// @errors (to done) those of the store; shutting_down: it was over before the end
    void refresh_when_due(std::function<bool()> over, Done<Refreshed> done);

    // As Admin's of the same names, as of the last refresh.
    void queues(const std::string& tenant, Done<std::optional<std::string>> done);
    void overview(const std::string& tenant, Done<std::optional<std::string>> done);

private:
    struct Run;
    void join(std::function<bool()> over, Done<Refreshed> done);
    void begin();
    void step(const std::shared_ptr<Run>& run, std::optional<Uuid> after);
    void count_timers(const std::shared_ptr<Run>& run);
    void finish(const std::shared_ptr<Run>& run, Result<Refreshed> outcome);

    struct Waiter {
        std::function<bool()> over; ///< empty: never
        Done<Refreshed> done;
    };
    SystemStore& store_;
    FigureReads& reads_;
    const Clock& clock_;
    const Options options_;
    std::mutex mutex_;
    bool running_ = false;
    std::vector<Waiter> waiting_; ///< for the next run
};

} // namespace queen::broker
