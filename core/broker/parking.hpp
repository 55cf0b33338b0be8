// broker/parking.hpp - where pops wait.
//
// A scope is what a pop waits for: a queue's partitions for one group, one partition, or all queues
// with some labels. Per scope there is an eventcount with a FIFO:
//
//   pop:    ticket() -> look -> found: answer, and pass_on() while more is ready
//                            -> nothing: park(); refused after a wake since ticket(): look again
//   event:  state changes, then wake(): moves the ticket, resumes the first `count` waiters
//
// Who wakes whom, and what happens when it fails:
//   - A wake that comes between look and park is not lost: park() sees the moved ticket (LP-3).
//   - A waiter that took something while more is ready wakes one more (chained wake), so a wake
//     that was too narrow still reaches everyone who has work.
//   - A waiter that was resumed and cannot look (its client went) passes its wake on.
//   - A wake that never came (a lost hint, an expired lease), or whose look failed, costs at most
//     one backoff interval: while anyone is parked the scope's floor timer runs and resumes one
//     waiter, not all.
//
// A pop that found something, but less than it wants, is held instead (hold()): it comes after all
// others in line, and among its like the one that needs least comes first. So a wake serves those
// who take anything first, and tells a held pop only when nobody else can use it. Who is held for
// the first time passes its wake on, since it does not use it; a held pop has a timer of its own.
#pragma once
#include "base/counter.hpp"
#include "base/workers.hpp"
#include "broker/queue_holders.hpp"

#include <queen/plugin/types.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace queen::broker {

/// Key of a scope beside others of the same queue (or tenant, for discovery).
/// @param labels of a discovery: namespace and task
std::string scope_member(std::string_view group, const std::optional<std::string>& partition,
                         const std::optional<std::pair<std::string, std::string>>& labels);

/// What a pop waits for. `gate` is the queue's key, or discovery_gate() of the tenant.
struct WaitScope {
    std::string gate;
    std::string group;
    std::optional<std::string> partition;                      ///< pinned
    std::optional<std::pair<std::string, std::string>> labels; ///< discovery: namespace, task
};

std::string discovery_gate(std::string_view tenant);

/// Someone parked. Once per successful park, without any lock held, either resume() or look() is
/// called on it.
class Waiter {
public:
    virtual ~Waiter() = default;
    /// Hands the work on. @thread any
    virtual void resume() = 0;
    /// Hands on the work of all of these, this one among them, as one: look() for each. Whoever can
    /// save nothing that way resumes each by itself. @thread any
    virtual void resume_together(std::vector<std::shared_ptr<Waiter>> all) {
        for (const auto& waiter : all) {
            waiter->resume();
        }
    }
    /// The work itself. @thread worker
    virtual void look() { resume(); }
};

struct Backoff {
    std::chrono::milliseconds initial{100};
    std::int64_t threshold = 3; ///< attempts at `initial`
    double multiplier = 2.0;
    std::chrono::milliseconds max{1'000}; ///< the floor: no scope sleeps longer unlooked

    /// LP-1: attempts up to the threshold wait `initial`, then initial x attempt x multiplier.
    Nanoseconds interval(std::int64_t attempt) const noexcept;
};

/// Invariant: a scope with waiters has a floor timer; a scope nobody entered is not in the map.
/// Locks: shard mutex -> the ticker's own; floor_mutex_ -> the ticker's own. Waiters are resumed
/// with none held.
class Parking {
    struct Shard;
    struct Gate;
    struct Scope;

public:
    enum class Urgency {
        coalesced, ///< at once if the gate was quiet for kCoalesce, else once when that is over
        at_once
    };
    static constexpr std::chrono::milliseconds kCoalesce{5};

    /// One pop's seat at a scope, in the order of entering. Not shared between threads.
    class Place {
    public:
        ~Place();
        Place(const Place&) = delete;
        Place& operator=(const Place&) = delete;

    private:
        friend class Parking;
        Place(Parking& parking, Shard& shard, Gate& gate, Scope& scope, std::uint64_t seat)
            : parking_(parking), shard_(shard), gate_(gate), scope_(scope), seat_(seat) {}
        Parking& parking_;
        Shard& shard_;
        Gate& gate_;
        Scope& scope_;
        const std::uint64_t seat_;
        std::uint64_t ticket_ = 0;
        std::uint64_t need_ = 0; ///< while held
    };

    Parking(Ticker& ticker, const Clock& clock, Backoff backoff);
    ~Parking();

    std::unique_ptr<Place> enter(const WaitScope& scope);
    /// Registers interest: a wake after this call makes park() refuse. Take it before each look.
    void ticket(Place& place);
    /// Parks until resumed. `next_due`: when the source expects something, pulls the floor forward.
    /// @return false when a wake came since the ticket, or the parking is closed: look again
    bool park(Place& place, std::shared_ptr<Waiter> waiter, SteadyTime next_due);
    /// Holds a waiter until more is there: `need` is how much it wants. Whoever calls it resumes
    /// the waiter when the time is over.
    /// @return as park()
    bool hold(Place& place, std::shared_ptr<Waiter> waiter, std::uint64_t need);
    /// Takes a parked or held waiter out. @return false when it is not parked: its resume is on the
    /// way
    bool leave(Place& place);
    /// Wakes one more waiter of the place's scope: more is ready, or a wake cannot be used here. No
    /// event for the place itself: its ticket stays as good as it was.
    void pass_on(Place& place);

    /// Something arrived or was freed in `gate`. Wildcard and discovery scopes get up to `count`
    /// waiters resumed; pinned scopes one, and only those of `partitions` (empty: of all).
    /// @param group empty: every group
    /// @thread any, without locks that waiters may need
    void wake(std::string_view gate, std::string_view group,
              std::span<const std::string_view> partitions, std::uint64_t count, Urgency urgency);

    /// A source has candidates again: resumes up to `count` wildcard pops of the group (empty: of
    /// every group), at once. Pinned pops ask no source, so there is nothing new for them.
    /// @thread any, without locks that waiters may need
    void wake_wildcards(std::string_view gate, std::string_view group, std::uint64_t count);

    /// One waiter of each scope looks, as if its floor had come, many of them together; who is
    /// about to park looks again instead. @thread any, without locks that waiters may need
    void wake_each_scope();
    /// Every parked pop looks once more; who is about to park looks again instead.
    /// @thread any, without locks that waiters may need
    void wake_everyone();
    /// Resumes everyone and refuses to park from now on.
    void close();
    bool closed() const noexcept;
    std::size_t parked() const noexcept;

    /// Who resumed parked waiters, since the start.
    struct Statistics {
        std::uint64_t woken = 0;        ///< something arrived or was freed
        std::uint64_t passed_on = 0;    ///< chained wakes, and those that a waiter could not use
        std::uint64_t floor_looks = 0;  ///< nothing happened for a backoff interval, or it is not
                                        ///< known whether something did
        std::uint64_t park_refused = 0; ///< did not park: something happened during the look
    };
    Statistics statistics() const noexcept;
    /// Waiters by queue, those of discoveries left out; a name comes once for each tenant. For a
    /// page of figures: a shard is locked for a part of its map at a time, so that pops never wait
    /// for all of it, and a gate that comes or goes meanwhile may be missing or counted twice.
    /// @thread any
    std::vector<std::pair<std::string, std::uint64_t>> parked_by_queue() const;
    /// Adds the tenants of whom somebody waits at a queue that is asked for; locks as above.
    /// @thread any
    void add_holders(QueueHolders& holders) const;

private:
    using Resumes = std::vector<std::shared_ptr<Waiter>>;
    Shard& shard_of(std::string_view gate) noexcept;
    Resumes take_everyone();
    void exit(Place& place);
    void left(Gate& gate, std::size_t waiters) noexcept; // Requires the shard's mutex.
    std::shared_ptr<Waiter> remove(Place& place);        // Requires the shard's mutex.
    void floor_due(Shard& shard, const std::string& gate, const std::string& member);
    void look_soon(Resumes resumes);
    void look_together();
    void coalesced_due(Shard& shard, const std::string& gate);

    Ticker& ticker_;
    const Clock& clock_;
    const Backoff backoff_;
    std::vector<std::unique_ptr<Shard>> shards_;
    std::atomic<bool> closed_{false};
    std::mutex floor_mutex_;
    Resumes floor_waiters_; ///< whose floor has come, until the rest of the burst is known
    std::atomic<std::size_t> parked_{0};
    Counter woken_, passed_on_, floor_looks_, park_refused_;
};

} // namespace queen::broker
