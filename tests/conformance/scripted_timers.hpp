// tests/conformance/scripted_timers.hpp - the store that the suite of timer drivers runs against.
#pragma once
#include <queen/plugin/testing.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace queen::conformance {

/// A store of timers without a database: rows on the test's clock, leases, attempts, letters. Its
/// answers wait until the test gives them, or come inside of the call.
///
/// Locks: `mutex_` is a leaf; the driver is called without it.
/// @thread any
class ScriptedTimers final : public plugin::TimerHost {
public:
    enum class State { waiting, fired, filed };
    struct Row {
        std::string tenant, queue;
        SteadyTime due{};
        bool poison = false;    ///< cannot be fired, ever
        bool duplicate = false; ///< is in the log already
        bool locked = false;    ///< its destination is, by others
        bool cancelled = false; ///< goes away once it is claimed
        State state = State::waiting;
        std::int32_t attempts = 0;
        SteadyTime visible{}; ///< not before; moved by leases and backoffs
        plugin::TimerBatch holder = 0;
    };

    explicit ScriptedTimers(const plugin::ManualClock& clock) : clock_(clock) {}
    void attach(plugin::TimerDriver* driver) { driver_ = driver; }

    /// A row of its own destination that is due in `after`. @return its place
    std::size_t add(std::string tenant, std::string queue, Nanoseconds after);
    std::size_t add(Row row);
    std::vector<Row> rows() const;
    void unlock(); ///< all destinations
    bool all(State state) const;
    std::size_t count(State state) const;

    /// What calls answer from here on; ok: what they do.
    void outcome(plugin::TimerOutcome outcome);
    void answer_inside(bool inside);
    void refuse(bool refuse);       ///< calls answer false, as of a broker that stops
    void no_more_calls();           ///< a call from here on is a violation
    bool answer_one();              ///< @return false when no answer is due
    std::size_t refused() const;    ///< calls
    std::size_t unreleased() const; ///< batches
    std::string violations() const; ///< what no driver may do, and was done; "" for none
    SteadyTime wanted_tick();       ///< the earliest that tick_at() asked for; reset by this

    bool due(plugin::TimerCall, plugin::TimerShards, std::uint32_t cap) override;
    bool claim(plugin::TimerCall, plugin::TimerShards, Nanoseconds lease, std::uint32_t rows,
               std::uint32_t rows_per_tenant) override;
    bool fire(plugin::TimerCall, plugin::TimerBatch, std::span<const std::uint32_t>) override;
    bool fail(plugin::TimerCall, plugin::TimerBatch, std::span<const std::uint32_t>,
              Nanoseconds backoff, std::string_view error, bool counted,
              std::int32_t most) override;
    bool dead_letter(plugin::TimerCall, plugin::TimerBatch, std::int32_t most) override;
    void release(plugin::TimerBatch batch) override;
    void tick_at(SteadyTime when) override;

private:
    struct Answer {
        plugin::TimerAnswer answer;
        std::vector<plugin::TimerSegment> segments;
        std::vector<plugin::TimerResult> results;
        std::string error;
    };
    struct Batch {
        std::vector<std::vector<std::size_t>> segments; ///< rows of each
        std::set<std::uint32_t> hopeless;               ///< fired in vain, for good
        std::set<std::uint32_t> over;                   ///< fired or handed back
        std::vector<std::size_t> exhausted;
    };
    struct Pending {
        plugin::TimerCall call;
        std::function<void(Answer&)> work; ///< under mutex_
    };

    bool take(const char* verb, plugin::TimerCall call, std::function<void(Answer&)> work);
    void give(const Pending& pending);
    // Require mutex_.
    void blame(const std::string& what);
    bool away(Answer& out) const;
    Batch* batch_of(const char* verb, plugin::TimerBatch batch,
                    std::span<const std::uint32_t> segments);
    void do_claim(Answer& out, plugin::TimerShards shards, Nanoseconds lease, std::uint32_t rows,
                  std::uint32_t rows_per_tenant);
    void do_fire(Answer& out, plugin::TimerBatch name, const std::vector<std::uint32_t>& segments);
    void do_fail(Answer& out, plugin::TimerBatch name, const std::vector<std::uint32_t>& segments,
                 Nanoseconds backoff, bool counted, std::int32_t most);

    const plugin::ManualClock& clock_;
    plugin::TimerDriver* driver_ = nullptr;
    mutable std::mutex mutex_;
    plugin::TimerOutcome outcome_ = plugin::TimerOutcome::ok;
    bool inside_ = false, refuse_ = false, silent_ = false;
    std::deque<Row> rows_; ///< their texts stay where they are
    std::map<plugin::TimerBatch, Batch> batches_;
    plugin::TimerBatch last_batch_ = 0;
    std::set<plugin::TimerCall> awaited_;
    std::deque<Pending> pending_;
    std::size_t refused_ = 0;
    SteadyTime wanted_ = SteadyTime::max();
    std::string violations_;
};

} // namespace queen::conformance
