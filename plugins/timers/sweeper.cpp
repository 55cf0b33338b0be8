#include "sweeper.hpp"

#include <algorithm>
#include <map>
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
    try {
        if (running_ && (broken_ || now - heard_ >= kLostAfter)) {
            give_up();
            make_calls(lock);
        }
        if (!running_ && now >= wake_) {
            begin_cycle(now);
            make_calls(lock);
        }
    } catch (...) {
        broken_ = true;
        throw;
    }
    // While a cycle runs its end asks for the tick; this one is there in case it came too early.
    return running_ ? now + options_.max_sleep : wake_;
}

void Sweeper::answered(TimerCall call, const TimerAnswer& answer) {
    std::unique_lock lock(mutex_);
    heard_ = clock_.now();
    try {
        take(call, answer);
        make_calls(lock);
    } catch (...) {
        broken_ = true;
        for (Lane& lane : lanes_) {
            if (answer.batch != 0 && lane.batch == answer.batch) {
                lane.batch = 0; // the host gives it back
            }
        }
        throw;
    }
}

void Sweeper::take(TimerCall call, const TimerAnswer& answer) {
    if (call != 0 && call == probe_) {
        probe_ = 0;
        probed(answer);
        return;
    }
    const auto lane = std::find_if(lanes_.begin(), lanes_.end(), [call](const Lane& one) {
        return one.step != Step::over && one.call == call;
    });
    if (lane == lanes_.end()) {
        ++counts_.unknown_answers;
        if (answer.batch != 0) { // of a cycle that was given up
            actions_.push_back({[batch = answer.batch](TimerHost& host) {
                host.release(batch);
                return true;
            }});
        }
        return;
    }
    lane->call = 0;
    switch (lane->step) {
    case Step::over:
        return;
    case Step::claiming:
        claimed(*lane, answer);
        return;
    case Step::firing:
        fired(*lane, answer);
        return;
    case Step::failing:
        failed(*lane, answer);
        return;
    case Step::filing:
        filed(*lane, answer);
        return;
    }
}

// ---- the cycle ----

void Sweeper::begin_cycle(SteadyTime now) {
    running_ = true;
    broken_ = false;
    heard_ = now;
    cycle_ = Cycle{};
    cycle_.began = now;
    cycle_.rows_left = options_.cycle_rows;
    // Before the probe: see the head of sweeper.hpp.
    earliest_.store(SteadyTime::max().time_since_epoch().count());
    probe_ = ask([cap = options_.due_cap](TimerHost& host, TimerCall call) {
        return host.due(call, kAllShards, cap);
    });
}

/// The end of a cycle of which nothing is heard any more. Its rows come back: the host hands back
/// what is released.
void Sweeper::give_up() {
    ++counts_.given_up;
    say(LogLevel::warning, broken_ ? "a cycle failed in the middle; the next one begins anew"
                                   : "the broker does not answer; the next cycle begins anew");
    probe_ = 0;
    for (Lane& lane : lanes_) {
        if (lane.batch != 0) {
            release(lane);
        }
        lane = Lane{};
    }
    broken_ = false;
    end_cycle(End::transient);
}

void Sweeper::probed(const TimerAnswer& answer) {
    if (answer.outcome != TimerOutcome::ok) {
        count_failure(answer.outcome);
        complain(answer.outcome, "asking what is due", answer.error);
        end_cycle(end_after(answer.outcome));
        return;
    }
    cycle_.probed = clock_.now();
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
        half_a_lease_since(cycle_.probed)) {
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
    lane.fired_any = false;
    std::map<std::string_view, std::size_t> tenants;
    std::uint32_t rows = 0;
    for (const auto& segment : answer.segments) {
        const auto tenant = tenants.try_emplace(segment.tenant, tenants.size()).first->second;
        lane.segments.push_back({tenant, segment.rows, segment.attempts, segment.bytes});
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
/// that could not be packed: together with others it would only fail them too. Nor do tenants pay
/// for each other where failures are not isolated.
void Sweeper::group(Lane& lane) {
    lane.groups.clear();
    std::uint64_t bytes = 0;
    std::size_t tenant = 0;
    bool open = false;
    for (std::uint32_t i = 0; i < lane.segments.size(); ++i) {
        const std::uint64_t size = lane.segments[i].bytes;
        if (size == 0) {
            lane.groups.push_back({i});
            open = false;
            continue;
        }
        const bool foreign = !options_.isolate && lane.segments[i].tenant != tenant;
        if (!open || foreign || bytes + size > options_.fire_bytes) {
            lane.groups.emplace_back();
            bytes = 0;
            tenant = lane.segments[i].tenant;
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
    // The first one goes however long the claim took: else a slow store would never get any
    // further.
    if (lane.fired_any && half_a_lease_since(lane.claimed_at)) {
        hand_back(lane, Nanoseconds{0}, "handed back: half the lease was spent");
        return;
    }
    lane.firing = std::move(lane.groups.front());
    lane.groups.pop_front();
    lane.fired_any = true;
    lane.step = Step::firing;
    lane.call = ask([batch = lane.batch, segments = lane.firing](TimerHost& host, TimerCall call) {
        return host.fire(call, batch, segments);
    });
}

void Sweeper::fired(Lane& lane, const TimerAnswer& answer) {
    count_failure(answer.outcome);
    switch (answer.outcome) {
    case TimerOutcome::ok:
        count_results(lane, answer);
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
    case TimerOutcome::contended:
    case TimerOutcome::permanent:
    case TimerOutcome::config:
        break;
    }
    if (isolate(lane)) {
        return;
    }
    complain(answer.outcome, "firing", answer.error);
    std::int32_t attempts = 0;
    std::uint32_t rows = 0;
    for (const std::uint32_t segment : lane.firing) {
        attempts = std::max(attempts, lane.segments[segment].attempts);
        rows += lane.segments[segment].rows;
    }
    const bool counted = answer.outcome != TimerOutcome::contended;
    (counted ? counts_.poisoned : counts_.handed_back) += rows;
    fail(lane, std::exchange(lane.firing, {}),
         counted ? backoff_after(attempts) : options_.transient_backoff, answer.error, counted);
}

void Sweeper::count_results(const Lane& lane, const TimerAnswer& answer) {
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
}

/// Of several that failed together each goes alone. @return false when it was alone, or is not to
/// be
bool Sweeper::isolate(Lane& lane) {
    if (lane.firing.size() < 2 || !options_.isolate) {
        return false;
    }
    ++counts_.isolations;
    for (auto segment = lane.firing.rbegin(); segment != lane.firing.rend(); ++segment) {
        lane.groups.push_front({*segment});
    }
    lane.firing.clear();
    fire_next(lane);
    return true;
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
    if (answer.outcome != TimerOutcome::ok) { // the host tries once more when it is released
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
    try {
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
    } catch (...) { // of the host
        if (!lock.owns_lock()) {
            lock.lock();
        }
        calls_made();
        throw;
    }
    calls_made();
}

void Sweeper::calls_made() {
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
