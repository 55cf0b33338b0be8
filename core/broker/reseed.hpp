// broker/reseed.hpp - the walks by which candidate sources find again what they lost.
//
// A walk: asked -> waiting -> walking -> told that it is done. A walk that walks has one page in
// flight and no more; page after page it tells the source the queue's settings and the page's
// partitions, and asks the store for the next one:
//
//   source: reseed() -> a place in the queue; a slot free: a task for the workers
//   worker: read the clock, ask the store -> configured(), reseed_page() -> the next page, or
//           reseed_done() and the slot goes to the walk that has waited longest
//
// How a walk ends: complete with its last page; incomplete when the store fails, when the source
// needs no more and there was more, after the last page that a walk may have, when too many wait,
// and at shutdown. Whatever happens, the source is told exactly once, never inside reseed().
//
// What is gone. A walk names partitions, and not those that were removed since, so a source that
// keeps names would keep theirs for ever. Each page says how many partitions of the queue were
// removed so far; when a full walk ends and many were since the source began to know the queue
// (1,000, or 1,000 for each page of the walk), or the queue was made anew, the source is told to
// forget the queue: it begins again with a walk and what is marked from then on. So a source keeps
// at most the names of partitions that are there, a tenth more or 1,000, and those that went since
// the last full walk (HL-26). The walk costs a tenth of a look at each partition that went.
//
// A walk keeps its source alive, so one that was unloaded meanwhile still hears of its walks. One
// that the host does not know any more when the walk is asked for has nobody who could be told.
#pragma once
#include "base/workers.hpp"
#include "broker/sources.hpp"
#include "ports/store.hpp"

#include <queen/plugin/candidates.hpp>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace queen::broker {

/// Carries out the walks of all sources, few at a time and in the order in which they were asked
/// for. It must outlive what it has handed to the store and the workers.
///
/// Invariant: at most `parallel` walks walk, and none waits while fewer do (from open() to
/// close()). Locks: `mutex_` is a leaf; sources, store and workers are called with nothing held.
/// @source RES-3, RES-4, HL-26
class Reseeder {
public:
    struct Options {
        /// Walks at a time. Small rings take a millisecond each, 5,000 of them each 30 s a fifth of
        /// one slot; four keep them going beside a few walks of large queues. A guess.
        std::size_t parallel = 4;
        /// Most that wait: some times the rings of a large broker (5,000). A guess.
        std::size_t waiting = 20'000;
        std::uint32_t partitions = 10'000;      ///< that a page looks at: the plugins' contract
        std::uint32_t pages = 200;              ///< of one walk
        std::chrono::milliseconds wait{30'000}; ///< of a page for a session
        std::int64_t gone = 1'000; ///< removed partitions for each page of a walk; see above
        /// A source was told to forget a queue: whoever waits there looks again.
        std::function<void(std::string_view tenant, std::string_view queue)> forgot;
    };
    /// The source of that name, or nullptr. Called from any thread.
    using Find = std::function<SourcePtr(std::string_view name)>;

    Reseeder(Store& store, Workers& workers, const Clock& clock, Find find, Options options);

    /// Walks that were asked for before begin now: every source can be found.
    void open();
    /// Walks that wait end here, those under way with their page, later ones at once; all of them
    /// incomplete, unless that page was the last.
    /// @thread any
    void close();

    /// Asks for a walk; returns at once. Each call is a walk of its own: a ticket is the source's
    /// affair. Windows are rounded up to milliseconds; zero and less mean all partitions.
    /// @thread any
    void reseed(std::string_view source, const plugin::Scope& scope, plugin::Ticket ticket,
                Nanoseconds window);

    struct Stats {
        std::uint64_t full = 0;      ///< walks over all partitions that were completed
        std::uint64_t window = 0;    ///< walks over what was written lately that were completed
        std::uint64_t failed = 0;    ///< walks that ended incomplete, for whatever reason
        std::uint64_t pages = 0;     ///< that the store answered
        std::uint64_t rows = 0;      ///< partitions that they named
        std::uint64_t forgotten = 0; ///< queues that a source forgot since many partitions went
        std::size_t walking = 0;     ///< now
        std::size_t waiting = 0;     ///< now
    };
    /// @thread any
    Stats stats() const;

private:
    struct Walk;
    using WalkPtr = std::shared_ptr<Walk>;
    enum class State { fresh, open, closed };

    void start_waiting();
    void begin(const WalkPtr& walk);
    void ask(const WalkPtr& walk);
    void got(const WalkPtr& walk, Result<ReseedPage> page);
    void end(const WalkPtr& walk, bool complete);
    void refuse(const WalkPtr& walk);
    bool many_went(const Walk& walk);

    /// What a source that knows a queue has seen of it.
    struct Seen {
        Uuid queue_id;
        std::int64_t deleted = 0; ///< as it began to know the queue
    };
    /// Beyond that all are forgotten, and what went until then stays where it is known. A guess.
    static constexpr std::size_t kMostSeen = 100'000;

    Store& store_;
    Workers& workers_;
    const Clock& clock_;
    const Find find_;
    const Options options_;

    mutable std::mutex mutex_;
    State state_ = State::fresh;
    std::deque<WalkPtr> waiting_;
    std::unordered_map<std::string, Seen> seen_; ///< by source and queue
    Stats stats_; ///< `walking` is kept here; `waiting` is the deque's size
};

} // namespace queen::broker
