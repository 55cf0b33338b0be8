// A store of timers in memory, as the procedures describe it, on a clock that the test moves. What
// a driver asks and what the store does are steps of their own: a call takes effect when the test
// says so, and is answered when the test says so.
#pragma once
#include <queen/plugin/testing.hpp>
#include <queen/plugin/timers.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace queen::test {

using plugin::TimerAnswer;
using plugin::TimerBatch;
using plugin::TimerCall;
using plugin::TimerOutcome;
using plugin::TimerResult;
using plugin::TimerSegment;
using plugin::TimerShards;

/// What goes wrong with a call.
enum class Fault {
    none,
    transient, ///< nothing happened
    open_end,  ///< it happened, and the link broke before the answer
    permanent,
    config,
    paused,
    contended,
    lost ///< it happened, and nobody is ever told
};

class TimerWorld final : public plugin::TimerCalls {
public:
    struct Row {
        enum class State { waiting, fired, filed } state = State::waiting;
        std::string tenant, destination;
        unsigned shard = 0;
        bool poison = false; ///< as is then the segment that it comes to lie in
        SteadyTime due{};
        SteadyTime told{}; ///< when the driver heard of it; or the start of the world
        SteadyTime visible{};
        TimerBatch token = 0;
        std::int32_t attempts = 0;
        SteadyTime fired_at{};
        std::string last_error;
    };

    plugin::ManualClock clock;
    plugin::TimerDriver* driver = nullptr;
    std::vector<Row> rows;
    std::vector<Call> calls;         ///< all that were taken
    std::vector<std::string> wrongs; ///< what a driver must not do
    bool at_once = true;             ///< calls take effect and are answered inside themselves
    bool refuses = false;            ///< as a broker that stops
    std::set<std::string> locked;    ///< destinations that others keep locked
    std::function<Fault(const Call&)> faults;
    std::function<void(const Call&)> inside; ///< each call that is taken
    SteadyTime next_tick = SteadyTime{};

    std::size_t add(Nanoseconds in, std::string destination = "q", std::string tenant = "t",
                    bool poison = false);
    /// Tells the driver of a row that was added.
    void tell(std::size_t row);

    bool has_call() const { return !pending_.empty(); }   ///< not in effect yet
    bool has_answer() const { return !answers_.empty(); } ///< in effect and not answered
    void take_effect(std::size_t which = 0);
    void answer(std::size_t which = 0);
    void tick(); ///< as the ticker does, whether it is time or not
    /// Goes from tick to tick, all calls being answered in between, as long as `until`.
    void run(Nanoseconds until);

    std::size_t count(Verb verb) const;
    std::size_t count(Row::State state) const;
    std::size_t open_batches() const { return batches_.size(); }

    void release(TimerBatch batch) override;
    void tick_at(SteadyTime when) override;

private:
    struct Batch {
        std::vector<std::vector<std::size_t>> segments; ///< rows
        std::vector<std::size_t> exhausted;
    };
    struct Answer {
        TimerCall call = 0;
        TimerAnswer answer; ///< its views are filled in when it is given
        std::vector<TimerSegment> segments;
        std::vector<std::string> tenants;
        std::vector<TimerResult> results;
        std::string error;
    };
    bool take(Call call) override;
    std::optional<Answer> perform(const Call& call);
    void perform_due(const Call& call, Answer& answer);
    void perform_claim(const Call& call, Answer& answer);
    void perform_fire(const Call& call, Answer& answer);
    void perform_fail(const Call& call, Answer& answer);
    void give(Answer answer);
    Batch* batch_of(const Call& call);
    void wrong(std::string what) { wrongs.push_back(std::move(what)); }

    std::map<TimerBatch, Batch> batches_;
    TimerBatch last_batch_ = 0;
    std::deque<Call> pending_;
    std::deque<Answer> answers_;
};

} // namespace queen::test
