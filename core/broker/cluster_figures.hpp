// broker/cluster_figures.hpp - what a page of metrics takes from the database, at little cost: one
// question however many ask, an answer that is good for some seconds, and nobody who waits for a
// database that does not answer.
#pragma once
#include "base/workers.hpp"
#include "ports/system_store.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace queen::broker {

/// Invariant: each `done` runs once; at most one question is on its way.
/// Locks: `mutex_` is a leaf; nothing is called while it is held.
/// @thread any
/// @source MET-2
class ClusterFigureReads {
public:
    struct Options {
        std::chrono::milliseconds fresh{5'000};    ///< an answer, or a failure, is good for so long
        std::chrono::milliseconds patience{1'000}; ///< nobody waits longer for an answer
        std::int32_t most = 500;                   ///< queues, and groups, that are listed
    };
    /// Null: the database did not answer in time.
    using Figures = std::shared_ptr<const ClusterFigures>;

    ClusterFigureReads(SystemStore& store, Ticker& ticker, Workers& workers, const Clock& clock,
                       Options options);

    /// @thread any; `done` on a worker, or inside the call
    void ask(std::function<void(Figures)> done);

private:
    void answered(const Figures& figures);
    void give_up(std::uint64_t question);

    SystemStore& store_;
    Ticker& ticker_;
    Workers& workers_;
    const Clock& clock_;
    const Options options_;
    std::mutex mutex_;
    Figures last_; ///< null when the last question failed
    SteadyTime good_until_ = SteadyTime::min();
    bool on_its_way_ = false;    ///< a question
    bool given_up_ = false;      ///< nobody waits for that one any more, or asks another
    std::uint64_t question_ = 0; ///< asked last
    Ticker::Id timer_ = 0;
    std::vector<std::function<void(Figures)>> waiting_;
};

} // namespace queen::broker
