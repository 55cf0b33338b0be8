// plugins/timers - puts messages into the log when their time has come. It keeps no list of timers:
// the store has it, and every broker's sweeper works on the same one. What makes that safe is the
// store's claim and the fire, which are transactions; what happens here is when to look, how much
// to take, and what to do about failures.
//
// A cycle:
//
//   asleep --tick--> probe (due) --nothing--> asleep
//                      |
//                      v        each lane, until its shards have nothing, the rows of a cycle are
//                    claim <-+  used up, or half a lease is spent
//                      |     |
//                      v     |
//                    fire ---+-- all of the batch is done --> release
//                      | permanent: one segment at a time
//                      v permanent, alone
//                    fail --exhausted--> dead_letter
//
// Who wakes whom: tick() begins a cycle; answered() takes it on; the last lane ends it and asks for
// the next tick. scheduled() pulls that tick forward. What it says is forgotten when the next cycle
// begins, before the probe is sent: whatever committed earlier is seen by that probe, whatever
// comes later is remembered for the end of the cycle. Forgetting it any later would lose timers
// that were scheduled while the probe was on its way, for up to a sleep (F-39).
//
// A failure of the database costs time only: what was claimed is handed back uncounted, or comes
// back by itself when its lease ends (F-41). A failure that is a segment's own fault counts for
// the rows of that segment, and for no others (F-40). Whoever is in the way of one destination, by
// a lock that he keeps, holds up that destination and no other, and nothing counts.
//
// A cycle whose answer never comes, or could not be dealt with for want of memory, is given up by a
// tick: its calls are void, and whatever they bring yet is released.
#pragma once
#include <queen/plugin/timers.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace queen::timers {

struct Options {
    bool enabled = true; ///< else timers wait for another broker
    Nanoseconds min_sleep = std::chrono::milliseconds(5);
    Nanoseconds max_sleep = std::chrono::seconds(1);
    Nanoseconds idle_max_sleep = std::chrono::seconds(1); ///< no less than max_sleep
    std::uint32_t idle_after = 5;                         ///< cycles with nothing near
    Nanoseconds empty_claim_min = std::chrono::milliseconds(25);
    Nanoseconds empty_claim_max = std::chrono::milliseconds(200);
    Nanoseconds lease = std::chrono::seconds(30);
    std::uint32_t batch = 200;       ///< rows a claim
    std::uint32_t cycle_rows = 5000; ///< in all lanes together
    std::uint32_t due_cap = 2000;
    std::uint64_t fire_bytes = std::uint64_t{8}
                               << 20; ///< of a transaction; one segment may be more
    std::int32_t attempts = 5;
    std::uint32_t parallelism = 1; ///< lanes, 1 to 8
    bool isolate = true;
    std::uint32_t tenant_rows = 50; ///< rows a tenant has in a claim while others want some
    Nanoseconds backoff_min = std::chrono::seconds(1);
    Nanoseconds backoff_max = std::chrono::seconds(60);
    Nanoseconds transient_backoff = std::chrono::seconds(1);
    std::uint64_t seed = 1; ///< of the random sleeps
};

/// A state machine without threads of its own: it runs inside the calls it gets.
///
/// Invariant: one cycle at a time; each lane has one call under way at most; a batch is released
/// exactly once, by the lane that claimed it, stopped or not.
/// Locks: `mutex_` is a leaf; the host is called, and lines are logged, with nothing held. Calls
/// are queued under the lock and made by whoever finds nobody making them, so that answers that
/// come inside a call do not nest.
/// @source SW-1 to SW-9
class Sweeper final : public plugin::TimerDriver {
public:
    using Log = std::function<void(plugin::LogLevel, std::string_view)>;
    Sweeper(Options options, const Clock& clock, plugin::TimerHost& host, Log log);

    /// Returns when no call into the store is being made any more. @thread main, or inside a call
    void stop() override;
    /// Costs one load of an atomic when an earlier time is known. @thread worker
    void scheduled(SteadyTime earliest) override;
    void answered(plugin::TimerCall call, const plugin::TimerAnswer& answer) override;
    SteadyTime tick(SteadyTime now) override;
    void stats(plugin::Stats& out) override;

    /// The shard at which the first window of a cycle lies moves on by as many: odd, so that it
    /// comes to each shard, and one more than the shards of a window, so that a cycle which had no
    /// time but for one window leaves the first place to others (SW-1).
    static constexpr unsigned kShardStep = 17;
    /// An answer that takes longer never comes: longer than the broker waits for a session and for
    /// a statement together. A guess.
    static constexpr Nanoseconds kLostAfter = std::chrono::minutes(2);

private:
    using Segments = std::vector<std::uint32_t>; ///< places in a batch
    struct Segment {
        std::size_t tenant = 0; ///< its place among the tenants of the batch
        std::uint32_t rows = 0;
        std::int32_t attempts = 0;
        std::uint64_t bytes = 0;
    };
    enum class Step { over, claiming, firing, failing, filing };
    struct Lane {
        Step step = Step::over;
        plugin::TimerCall call = 0;
        plugin::TimerShards shards = 0;
        std::uint32_t asked = 0; ///< rows, of the claim under way
        SteadyTime claimed_at{}; ///< when the claim was sent
        plugin::TimerBatch batch = 0;
        std::vector<Segment> segments;
        std::deque<Segments> groups; ///< not fired yet, each a transaction
        Segments firing;             ///< under way
        bool fired_any = false;      ///< of the batch
    };
    enum class End { nothing_due, worked, nothing_claimed, paused, transient, refused, stopping };
    struct Cycle {
        SteadyTime began{};
        SteadyTime probed{}; ///< when it was known what is due
        Nanoseconds next_in = Nanoseconds::max();
        std::deque<plugin::TimerShards> windows; ///< no lane has looked at them yet
        std::uint32_t rows_left = 0;
        std::uint64_t claimed = 0;
        std::uint32_t tenants = 0; ///< in the last claim; 0: none yet
        std::size_t lanes = 0;     ///< that work
        End end = End::worked;
        bool cut = false; ///< lanes take nothing new
        bool complained_permanent = false, complained_config = false;
    };
    struct Action {
        std::function<bool(plugin::TimerHost&)> run;
        plugin::TimerCall call = 0; ///< 0: no call into the store
    };

    // All below require mutex_.
    void begin_cycle(SteadyTime now);
    void take(plugin::TimerCall call, const plugin::TimerAnswer& answer);
    void give_up();
    void probed(const plugin::TimerAnswer& answer);
    void plan_windows(const plugin::TimerAnswer& answer);
    void claim(Lane& lane);
    void claimed(Lane& lane, const plugin::TimerAnswer& answer);
    void group(Lane& lane);
    void fire_next(Lane& lane);
    void fired(Lane& lane, const plugin::TimerAnswer& answer);
    void count_results(const Lane& lane, const plugin::TimerAnswer& answer);
    bool isolate(Lane& lane);
    void hand_back(Lane& lane, Nanoseconds backoff, std::string_view why);
    void fail(Lane& lane, Segments segments, Nanoseconds backoff, std::string_view why,
              bool counted);
    void failed(Lane& lane, const plugin::TimerAnswer& answer);
    void filed(Lane& lane, const plugin::TimerAnswer& answer);
    void release(Lane& lane);
    void end_lane(Lane& lane);
    void end_cycle(End end);
    void cut_cycle(End end);
    static End end_after(plugin::TimerOutcome failure); ///< when a cycle cannot go on
    bool half_a_lease_since(SteadyTime start) const;
    Nanoseconds sleep_after(End end);
    void count_failure(plugin::TimerOutcome outcome);
    void complain(plugin::TimerOutcome outcome, std::string_view what, std::string_view error);
    void say(plugin::LogLevel level, std::string line);
    plugin::TimerCall ask(std::function<bool(plugin::TimerHost&, plugin::TimerCall)> call);
    void ask_for_tick(); ///< at wake_
    void refused(plugin::TimerCall call);
    Nanoseconds backoff_after(std::int32_t attempts) const;

    /// Makes the calls that are queued, unless somebody does already. Gives the lock back for each.
    void make_calls(std::unique_lock<std::mutex>& lock);
    void calls_made();

    const Options options_;
    const Clock& clock_;
    plugin::TimerHost& host_;
    const Log log_;

    /// Of timers scheduled since the last cycle began; max(): none.
    std::atomic<SteadyTime::rep> earliest_;

    std::mutex mutex_;
    std::deque<Action> actions_;
    bool calling_ = false;
    std::thread::id caller_;
    std::condition_variable called_; ///< with mutex_: nobody makes calls
    bool stopped_ = false;
    bool running_ = false; ///< a cycle
    bool broken_ = false;  ///< by an exception: it cannot go on
    SteadyTime heard_{};   ///< when it got its last answer
    SteadyTime wake_ = SteadyTime::min();
    SteadyTime not_before_ = SteadyTime::min(); ///< no schedule wakes earlier
    Cycle cycle_;
    std::vector<Lane> lanes_;
    plugin::TimerCall probe_ = 0; ///< under way
    plugin::TimerCall last_call_ = 0;
    unsigned first_shard_ = 0;
    std::uint32_t idle_cycles_ = 0;
    std::int32_t refusals_ = 0; ///< cycles in a row that the store refused for good
    bool outage_ = false;       ///< the last cycle ended for want of the database
    SteadyTime contended_at_ = SteadyTime::min(); ///< when a lock was last in the way
    std::minstd_rand random_;

    struct Counts {
        std::uint64_t cycles = 0, rows = 0, fired = 0, duplicate = 0, stale = 0;
        std::uint64_t transient = 0, permanent = 0, config = 0, contended = 0, given_up = 0;
        std::uint64_t dead_letters = 0, poisoned = 0, isolations = 0, handed_back = 0;
        std::uint64_t empty_claims = 0, pulled = 0, unknown_answers = 0;
        std::uint64_t due = 0;
        bool due_capped = false;
        Nanoseconds late{0}, cycle_took{0}, sleep{0};
    } counts_;
};

} // namespace queen::timers
