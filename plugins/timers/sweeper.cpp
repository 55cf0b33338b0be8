#include "sweeper.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace queen::timers {

using plugin::LogLevel;
using plugin::TimerAnswer;
using plugin::TimerCall;
using plugin::TimerHost;
using plugin::TimerOutcome;
using plugin::TimerResult;
using plugin::TimerShards;

namespace {

constexpr TimerShards kAllShards = ~TimerShards{0};
constexpr unsigned kFewestWindows = 4; ///< of a cycle that cannot claim all at once

TimerShards rotate(TimerShards shards, unsigned by) {
    by %= plugin::kTimerShards;
    return by == 0 ? shards : (shards << by) | (shards >> (plugin::kTimerShards - by));
}

} // namespace

Sweeper::Sweeper(Options options, const Clock& clock, TimerHost& host, Log log)
    : options_(options), clock_(clock), host_(host), log_(std::move(log)),
      earliest_(SteadyTime::max().time_since_epoch().count()),
      lanes_(std::clamp<std::size_t>(options.parallelism, 1, 8)),
      random_(static_cast<std::minstd_rand::result_type>(options.seed)) {
    if (!options_.enabled) {
        log_(LogLevel::warning, "this broker fires no timers (enabled: false): they wait until "
                                "another broker does");
    }
}

// ---- what comes in ----

void Sweeper::stop() {
    std::unique_lock lock(mutex_);
    stopped_ = true;
    if (caller_ != std::this_thread::get_id()) {
        called_.wait(lock, [this] { return !calling_; });
    }
}

void Sweeper::scheduled(SteadyTime earliest) {
    const auto when = earliest.time_since_epoch().count();
    auto known = earliest_.load();
    do {
        if (known <= when) {
            return;
        }
    } while (!earliest_.compare_exchange_weak(known, when));
    std::unique_lock lock(mutex_);
    const SteadyTime wake = std::max(earliest, not_before_);
    if (!options_.enabled || stopped_ || running_ || wake >= wake_) {
        return;
    }
    wake_ = wake;
    ++counts_.pulled;
    ask_for_tick();
    make_calls(lock);
}

SteadyTime Sweeper::tick(SteadyTime now) {
    std::unique_lock lock(mutex_);
    if (!options_.enabled || stopped_) {
        return SteadyTime::max();
    }
    if (!running_ && now >= wake_) {
        begin_cycle(now);
        make_calls(lock);
    }
    // While a cycle runs its end asks for the tick; this one is there in case it came too early.
    return running_ ? now + options_.max_sleep : wake_;
}

void Sweeper::answered(TimerCall call, const TimerAnswer& answer) {
    std::unique_lock lock(mutex_);
    if (call != 0 && call == probe_) {
        probe_ = 0;
        probed(answer);
        make_calls(lock);
        return;
    }
    const auto lane = std::find_if(lanes_.begin(), lanes_.end(), [call](const Lane& one) {
        return one.step != Step::over && one.call == call;
    });
    if (lane == lanes_.end()) {
        ++counts_.unknown_answers;
        return;
    }
    lane->call = 0;
    switch (lane->step) {
    case Step::over:
        break;
    case Step::claiming:
        claimed(*lane, answer);
        break;
    case Step::firing:
        fired(*lane, answer);
        break;
    case Step::failing:
        failed(*lane, answer);
        break;
    case Step::filing:
        filed(*lane, answer);
        break;
    }
    make_calls(lock);
}

// ---- the cycle ----

void Sweeper::begin_cycle(SteadyTime now) {
    running_ = true;
    cycle_ = Cycle{};
    cycle_.began = now;
    cycle_.rows_left = options_.cycle_rows;
    // Before the probe: see the head of sweeper.hpp.
    earliest_.store(SteadyTime::max().time_since_epoch().count());
    probe_ = ask([cap = options_.due_cap](TimerHost& host, TimerCall call) {
        return host.due(call, kAllShards, cap);
    });
}

void Sweeper::probed(const TimerAnswer& answer) {
    if (answer.outcome != TimerOutcome::ok) {
        count_failure(answer.outcome);
        complain(answer.outcome, "asking what is due", answer.error);
        end_cycle(end_after(answer.outcome));
        return;
    }
    cycle_.next_in = answer.next_in;
    counts_.due = answer.due;
    counts_.due_capped = answer.capped;
    counts_.late = answer.late;
    if (answer.due == 0) {
        end_cycle(End::nothing_due);
        return;
    }
    plan_windows(answer);
    cycle_.lanes = std::min(lanes_.size(), cycle_.windows.size());
    const std::size_t lanes = cycle_.lanes; // those that end at once change the other
    for (std::size_t i = 0; i < lanes; ++i) {
        lanes_[i] = Lane{};
        claim(lanes_[i]);
    }
}

/// What fits into one claim is asked for at once. More is taken window by window: a claim over all
/// shards could be filled by the first of them again and again.
void Sweeper::plan_windows(const TimerAnswer& answer) {
    if (!answer.capped && answer.due <= options_.batch) {
        cycle_.windows.push_back(kAllShards);
        return;
    }
    const unsigned count = lanes_.size() > kFewestWindows ? 2 * kFewestWindows : kFewestWindows;
    const unsigned width = plugin::kTimerShards / count;
    const TimerShards window = (TimerShards{1} << width) - 1;
    for (unsigned i = 0; i < count; ++i) {
        cycle_.windows.push_back(rotate(window, first_shard_ + i * width));
    }
    first_shard_ = (first_shard_ + kShardStep) % plugin::kTimerShards;
}

bool Sweeper::half_a_lease_since(SteadyTime start) const {
    return clock_.now() - start >= options_.lease / 2;
}

void Sweeper::claim(Lane& lane) {
    if (lane.shards == 0 && !cycle_.windows.empty()) {
        lane.shards = cycle_.windows.front();
        cycle_.windows.pop_front();
    }
    const std::uint32_t rows = std::min(options_.batch, cycle_.rows_left);
    if (lane.shards == 0 || rows == 0 || cycle_.cut || stopped_ ||
        half_a_lease_since(cycle_.began)) {
        end_lane(lane);
        return;
    }
    cycle_.rows_left -= rows;
    lane.step = Step::claiming;
    lane.asked = rows;
    lane.claimed_at = clock_.now();
    // A tenant has what others leave, and never less than its rows.
    const std::uint32_t share = cycle_.tenants == 0 ? 0 : options_.batch / cycle_.tenants;
    lane.call =
        ask([shards = lane.shards, lease = options_.lease, rows,
             each = std::max(options_.tenant_rows, share)](TimerHost& host, TimerCall call) {
            return host.claim(call, shards, lease, rows, each);
        });
}

void Sweeper::claimed(Lane& lane, const TimerAnswer& answer) {
    if (answer.outcome != TimerOutcome::ok) {
        cycle_.rows_left += lane.asked;
        count_failure(answer.outcome);
        complain(answer.outcome, "claiming", answer.error);
        cut_cycle(end_after(answer.outcome));
        end_lane(lane);
        return;
    }
    if (answer.batch == 0) { // locked by others, or these shards have nothing
        cycle_.rows_left += lane.asked;
        lane.shards = 0;
        claim(lane);
        return;
    }
    lane.batch = answer.batch;
    lane.segments.clear();
    std::set<std::string_view> tenants;
    std::uint32_t rows = 0;
    for (const auto& segment : answer.segments) {
        lane.segments.push_back({segment.rows, segment.attempts, segment.bytes});
        tenants.insert(segment.tenant);
        rows += segment.rows;
    }
    cycle_.rows_left += lane.asked - std::clamp(rows, 1U, lane.asked); // an end, whatever is said
    cycle_.claimed += rows;
    cycle_.tenants = static_cast<std::uint32_t>(tenants.size());
    counts_.rows += rows;
    if (!counts_.due_capped && cycle_.claimed >= counts_.due) { // no need to look for more
        lane.shards = 0;
        cycle_.windows.clear();
    }
    group(lane);
    fire_next(lane);
}

/// Transactions of up to `fire_bytes`, in the order of the batch. A segment without bytes is one
/// that could not be packed: together with others it would only fail them too.
void Sweeper::group(Lane& lane) {
    lane.groups.clear();
    std::uint64_t bytes = 0;
    bool open = false;
    for (std::uint32_t i = 0; i < lane.segments.size(); ++i) {
        const std::uint64_t size = lane.segments[i].bytes;
        if (size == 0) {
            lane.groups.push_back({i});
            open = false;
            continue;
        }
        if (!open || bytes + size > options_.fire_bytes) {
            lane.groups.emplace_back();
            bytes = 0;
            open = true;
        }
        lane.groups.back().push_back(i);
        bytes += size;
    }
}

void Sweeper::fire_next(Lane& lane) {
    if (lane.groups.empty()) {
        release(lane);
        claim(lane);
        return;
    }
    if (stopped_) {
        release(lane); // what is left becomes visible when its lease ends
        end_lane(lane);
        return;
    }
    if (cycle_.cut) {
        hand_back(lane, Nanoseconds{0}, "handed back: the cycle ended early");
        return;
    }
    if (half_a_lease_since(lane.claimed_at)) {
        hand_back(lane, Nanoseconds{0}, "handed back: half the lease was spent");
        return;
    }
    lane.firing = std::move(lane.groups.front());
    lane.groups.pop_front();
    lane.step = Step::firing;
    lane.call = ask([batch = lane.batch, segments = lane.firing](TimerHost& host, TimerCall call) {
        return host.fire(call, batch, segments);
    });
}

void Sweeper::fired(Lane& lane, const TimerAnswer& answer) {
    count_failure(answer.outcome);
    switch (answer.outcome) {
    case TimerOutcome::ok:
        for (std::size_t i = 0; i < std::min(answer.results.size(), lane.firing.size()); ++i) {
            const std::uint32_t rows = lane.segments[lane.firing[i]].rows;
            switch (answer.results[i]) {
            case TimerResult::fired:
                counts_.fired += rows;
                break;
            case TimerResult::duplicate:
                counts_.duplicate += rows;
                break;
            case TimerResult::stale:
                counts_.stale += rows;
                break;
            }
        }
        lane.firing.clear();
        fire_next(lane);
        return;
    case TimerOutcome::transient:
        complain(answer.outcome, "firing", answer.error);
        cut_cycle(End::transient);
        lane.groups.push_front(std::move(lane.firing));
        hand_back(lane, options_.transient_backoff, answer.error);
        return;
    case TimerOutcome::paused:
        cut_cycle(End::paused);
        lane.groups.push_front(std::move(lane.firing));
        hand_back(lane, Nanoseconds{0}, "handed back: firing is switched off");
        return;
    case TimerOutcome::permanent:
    case TimerOutcome::config:
        break;
    }
    if (lane.firing.size() > 1 && options_.isolate) {
        ++counts_.isolations;
        for (auto segment = lane.firing.rbegin(); segment != lane.firing.rend(); ++segment) {
            lane.groups.push_front({*segment});
        }
        lane.firing.clear();
        fire_next(lane);
        return;
    }
    complain(answer.outcome, "firing", answer.error);
    std::int32_t attempts = 0;
    for (const std::uint32_t segment : lane.firing) {
        attempts = std::max(attempts, lane.segments[segment].attempts);
        counts_.poisoned += lane.segments[segment].rows;
    }
    fail(lane, std::exchange(lane.firing, {}), backoff_after(attempts), answer.error, true);
}

void Sweeper::hand_back(Lane& lane, Nanoseconds backoff, std::string_view why) {
    Segments left;
    for (const Segments& group : std::exchange(lane.groups, {})) {
        left.insert(left.end(), group.begin(), group.end());
    }
    for (const std::uint32_t segment : left) {
        counts_.handed_back += lane.segments[segment].rows;
    }
    fail(lane, std::move(left), backoff, why, false);
}

void Sweeper::fail(Lane& lane, Segments segments, Nanoseconds backoff, std::string_view why,
                   bool counted) {
    lane.step = Step::failing;
    lane.call =
        ask([batch = lane.batch, segments = std::move(segments), backoff, why = std::string(why),
             counted, most = options_.attempts](TimerHost& host, TimerCall call) {
            return host.fail(call, batch, segments, backoff, why, counted, most);
        });
}

void Sweeper::failed(Lane& lane, const TimerAnswer& answer) {
    if (answer.outcome != TimerOutcome::ok) { // the rows come back when their lease ends
        count_failure(answer.outcome);
        complain(answer.outcome, "handing back", answer.error);
        if (answer.outcome == TimerOutcome::transient) {
            cut_cycle(End::transient);
            release(lane);
            end_lane(lane);
            return;
        }
        fire_next(lane);
        return;
    }
    if (answer.exhausted > 0) {
        lane.step = Step::filing;
        lane.call =
            ask([batch = lane.batch, most = options_.attempts](TimerHost& host, TimerCall call) {
                return host.dead_letter(call, batch, most);
            });
        return;
    }
    fire_next(lane);
}

/// What could not be filed is claimed again after its backoff, fails again, and is filed then.
void Sweeper::filed(Lane& lane, const TimerAnswer& answer) {
    if (answer.outcome == TimerOutcome::ok) {
        counts_.dead_letters += answer.rows;
    } else {
        count_failure(answer.outcome);
        complain(answer.outcome, "filing dead letters", answer.error);
        if (answer.outcome == TimerOutcome::transient) {
            cut_cycle(End::transient);
        }
    }
    fire_next(lane);
}

void Sweeper::release(Lane& lane) {
    actions_.push_back({[batch = std::exchange(lane.batch, 0)](TimerHost& host) {
        host.release(batch);
        return true;
    }});
    lane.segments.clear();
    lane.groups.clear();
    lane.firing.clear();
}

void Sweeper::end_lane(Lane& lane) {
    lane.step = Step::over;
    lane.call = 0;
    if (--cycle_.lanes > 0) {
        return;
    }
    if (cycle_.cut) {
        end_cycle(cycle_.end);
    } else {
        end_cycle(cycle_.claimed > 0 ? End::worked : End::nothing_claimed);
    }
}

void Sweeper::cut_cycle(End end) {
    if (!cycle_.cut) {
        cycle_.cut = true;
        cycle_.end = end;
    }
}

void Sweeper::end_cycle(End end) {
    const SteadyTime now = clock_.now();
    running_ = false;
    ++counts_.cycles;
    counts_.cycle_took = now - cycle_.began;
    if (outage_ && end != End::transient && end != End::stopping) {
        outage_ = false;
        say(LogLevel::info, "the database answers again");
    }
    const Nanoseconds sleep = sleep_after(end);
    const bool patient = end == End::paused || end == End::transient || end == End::refused;
    not_before_ = now + (patient ? sleep : options_.min_sleep);
    const SteadyTime earliest{Nanoseconds(earliest_.load())};
    wake_ = std::max(std::min(now + sleep, earliest), not_before_);
    counts_.sleep = wake_ - now;
    if (!stopped_) {
        ask_for_tick();
    }
}

Sweeper::End Sweeper::end_after(TimerOutcome failure) {
    switch (failure) {
    case TimerOutcome::paused:
        return End::paused;
    case TimerOutcome::transient:
        return End::transient;
    case TimerOutcome::ok:
    case TimerOutcome::permanent:
    case TimerOutcome::config:
        break;
    }
    return End::refused;
}

/// SW-3, and SW-7 for a store that refuses.
Nanoseconds Sweeper::sleep_after(End end) {
    idle_cycles_ = end == End::nothing_due ? idle_cycles_ + 1 : 0;
    refusals_ = end == End::refused ? std::min(refusals_ + 1, 30) : 0;
    switch (end) {
    case End::worked:
        return options_.min_sleep; // there may be more
    case End::nothing_claimed: {
        ++counts_.empty_claims;
        std::uniform_int_distribution<Nanoseconds::rep> between(options_.empty_claim_min.count(),
                                                                options_.empty_claim_max.count());
        return Nanoseconds(between(random_));
    }
    case End::paused:
    case End::stopping:
        return options_.max_sleep;
    case End::transient:
        return options_.transient_backoff;
    case End::refused:
        return backoff_after(refusals_ - 1);
    case End::nothing_due:
        break;
    }
    if (cycle_.next_in <= options_.max_sleep) {
        idle_cycles_ = 0;
        return std::max(cycle_.next_in, options_.min_sleep);
    }
    Nanoseconds most = options_.max_sleep;
    for (std::uint32_t i = options_.idle_after; i <= idle_cycles_ && most < options_.idle_max_sleep;
         ++i) {
        most = std::min(most * 2, options_.idle_max_sleep);
    }
    return std::min(cycle_.next_in, most);
}

Nanoseconds Sweeper::backoff_after(std::int32_t attempts) const {
    Nanoseconds backoff = options_.backoff_min;
    for (std::int32_t i = 0; i < attempts && backoff < options_.backoff_max; ++i) {
        backoff *= 2;
    }
    return std::min(backoff, options_.backoff_max);
}

// ---- what goes out ----

TimerCall Sweeper::ask(std::function<bool(TimerHost&, TimerCall)> call) {
    const TimerCall id = ++last_call_;
    actions_.push_back(
        {[call = std::move(call), id](TimerHost& host) { return call(host, id); }, id});
    return id;
}

void Sweeper::ask_for_tick() {
    actions_.push_back({[wake = wake_](TimerHost& host) {
        host.tick_at(wake);
        return true;
    }});
}

void Sweeper::make_calls(std::unique_lock<std::mutex>& lock) {
    if (calling_) {
        return; // whoever makes them makes ours too
    }
    calling_ = true;
    caller_ = std::this_thread::get_id();
    while (!actions_.empty()) {
        const Action action = std::move(actions_.front());
        actions_.pop_front();
        bool taken = false;
        if (action.call == 0 || !stopped_) {
            lock.unlock();
            taken = action.run(host_);
            lock.lock();
        }
        if (!taken) {
            refused(action.call);
        }
    }
    calling_ = false;
    caller_ = {};
    called_.notify_all();
}

/// The broker stops and no answer comes.
void Sweeper::refused(TimerCall call) {
    if (call == probe_) {
        probe_ = 0;
        end_cycle(End::stopping);
        return;
    }
    for (Lane& lane : lanes_) {
        if (lane.step != Step::over && lane.call == call) {
            cut_cycle(End::stopping);
            if (lane.batch != 0) {
                release(lane);
            }
            end_lane(lane);
            return;
        }
    }
}

} // namespace queen::timers
