#include "broker/timer_firing.hpp"

#include "broker/timer_outcome.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace queen::broker {
namespace {

using plugin::TimerAnswer;
using plugin::TimerBatch;
using plugin::TimerCall;
using plugin::TimerOutcome;
using plugin::TimerResult;

TimerResult result_of(TimerFired::Kind kind) {
    switch (kind) {
    case TimerFired::Kind::fired:
        return TimerResult::fired;
    case TimerFired::Kind::duplicate:
        return TimerResult::duplicate;
    case TimerFired::Kind::stale:
        return TimerResult::stale;
    }
    return TimerResult::stale;
}

/// As the store takes it.
std::int32_t limit(std::uint32_t value) {
    return static_cast<std::int32_t>(std::min<std::uint32_t>(value, INT32_MAX));
}

} // namespace

TimerFiring::TimerFiring(TimerStore& store, Announcer& announcer, const Clock& clock,
                         Options options)
    : store_(store), announcer_(announcer), clock_(clock), options_(std::move(options)),
      activity_(metrics::Activity::or_own(options_.activity, clock)),
      hand_back_(std::make_shared<TimerHandBack>(store, clock, options_.wait)) {}

// ---- the verbs ----

bool TimerFiring::due(TimerCall call, plugin::TimerShards shards, std::uint32_t cap) {
    if (stopped_) {
        return false;
    }
    hand_back_->try_again();
    store_.due(deadline(), shards, limit(cap),
               [self = shared_from_this(), call](const Result<TimersDue>& due) {
                   self->answering(call, due, [&] { self->looked(call, *due); });
               });
    return true;
}

void TimerFiring::looked(TimerCall call, const TimersDue& due) {
    TimerAnswer found;
    found.next_in = due.next_in ? Nanoseconds(*due.next_in) : Nanoseconds::max();
    found.due = static_cast<std::uint64_t>(std::max<std::int64_t>(due.due, 0));
    found.late = due.late;
    found.capped = due.capped;
    due_ = found.due;
    due_capped_ = found.capped;
    oldest_late_ = found.late.count();
    answer(call, found);
}

bool TimerFiring::claim(TimerCall call, plugin::TimerShards shards, Nanoseconds lease,
                        std::uint32_t rows, std::uint32_t rows_per_tenant) {
    if (stopped_) {
        return false;
    }
    if (paused()) {
        TimerAnswer off;
        off.outcome = TimerOutcome::paused;
        answer(call, off);
        return true;
    }
    const std::uint32_t asked = std::min(rows, fitting_.load());
    const SteadyTime until = clock_.now() + lease;
    store_.claim(deadline(),
                 {.shards = shards,
                  .lease = std::chrono::ceil<std::chrono::milliseconds>(lease),
                  .rows = limit(asked),
                  .rows_per_tenant = limit(rows_per_tenant),
                  .bytes = kBatchBytes},
                 [self = shared_from_this(), call, asked, until,
                  hold = hand_back_->hold()](Result<std::vector<ClaimedTimer>> claim) {
                     self->answering(call, claim,
                                     [&] { self->claimed(call, std::move(*claim), asked, until); });
                 });
    return true;
}

void TimerFiring::claimed(TimerCall call, std::vector<ClaimedTimer> rows, std::uint32_t asked,
                          SteadyTime until) {
    const auto batch = std::make_shared<Batch>();
    batch->claimed_at = clock_.now();
    batch->until = until;
    PackedClaim packed;
    try {
        packed = pack_claim(rows, kBatchBytes, options_.zstd_level);
    } catch (const std::exception&) {
        hand_back_->give(keys_of(rows), kAfterFailure, until);
        throw;
    }
    if (!packed.surplus.empty()) {
        fitting_ = std::max<std::uint32_t>(packed.rows, 1);
        hand_back_->give(std::move(packed.surplus), {}, until);
    } else if (rows.size() >= asked && fitting_ != UINT32_MAX) {
        fitting_ = asked > UINT32_MAX / 2 ? UINT32_MAX : asked * 2;
    }
    batch->segments = std::move(packed.segments);
    batch->states.resize(batch->segments.size());
    TimerAnswer found;
    std::vector<plugin::TimerSegment> segments;
    for (const PackedTimers& timers : batch->segments) {
        segments.push_back({timers.segment.tenant,
                            static_cast<std::uint32_t>(timers.segment.rows.size()), timers.attempts,
                            timers.segment.blob.size(), timers.latest()});
    }
    bool wanted = false;
    if (!segments.empty()) {
        const std::lock_guard lock(mutex_);
        wanted = !stopped_;
        if (wanted) {
            found.batch = ++last_batch_;
            batches_.emplace(found.batch, batch);
        }
    }
    if (wanted) {
        found.segments = segments;
    } else {
        give_left(*batch);
    }
    answer(call, found);
}

bool TimerFiring::fire(TimerCall call, TimerBatch number, std::span<const std::uint32_t> segments) {
    const auto batch = find(number);
    const std::set<std::uint32_t> different(segments.begin(), segments.end());
    if (stopped_ || !batch || different.size() != segments.size() || segments.empty() ||
        *different.rbegin() >= batch->segments.size()) {
        return false;
    }
    TimerAnswer refusal;
    if (paused()) {
        refusal.outcome = TimerOutcome::paused;
        answer(call, refusal);
        return true;
    }
    TimerFire fire;
    for (const auto place : segments) {
        const PackedTimers& timers = batch->segments[place];
        if (!timers.unfit.empty()) {
            failures_[1].add();
            refusal.outcome = TimerOutcome::permanent;
            refusal.error = timers.unfit;
            answer(call, refusal);
            return true;
        }
        fire.segments.push_back(timers.segment); // kept for the case that it fails
    }
    if (!enter(number)) {
        return false;
    }
    store_.fire(deadline(), std::move(fire),
                [self = shared_from_this(), call, batch, hold = hand_back_->hold(),
                 places = Places(segments.begin(), segments.end())](
                    const Result<std::vector<TimerFired>>& outcomes) {
                    if (!outcomes) {
                        self->note(*batch, places, State::failed);
                    }
                    self->answering(call, outcomes,
                                    [&] { self->fired(call, *batch, places, *outcomes); });
                    self->leave(*batch);
                });
    return true;
}

/// Announced before the driver hears of it, as a push is before its answer (SW-10, POST-3).
void TimerFiring::fired(TimerCall call, Batch& batch, const Places& places,
                        const std::vector<TimerFired>& outcomes) {
    std::vector<TimerResult> results;
    std::map<std::pair<std::string_view, std::string_view>, std::vector<Arrival>> arrivals;
    const std::size_t answered_for = std::min(places.size(), outcomes.size());
    {
        const std::lock_guard lock(mutex_);
        for (std::size_t i = 0; i < answered_for; ++i) {
            if (outcomes[i].kind != TimerFired::Kind::stale) {
                batch.states[places[i]] = State::settled;
            }
        }
    }
    for (std::size_t i = 0; i < answered_for; ++i) {
        const PackedTimers& timers = batch.segments[places[i]];
        const auto& packed = timers.segment;
        const TimerResult result = result_of(outcomes[i].kind);
        results.push_back(result);
        results_[static_cast<std::size_t>(result) - 1].add(packed.rows.size());
        if (result == TimerResult::fired) {
            arrivals[{packed.tenant, packed.queue}].push_back(
                {packed.partition, outcomes[i].partition_id,
                 static_cast<std::uint64_t>(packed.count)});
            count_lag(batch, timers);
        }
    }
    for (const auto& [queue, list] : arrivals) {
        announcer_.arrived(queue.first, queue.second, plugin::Origin::timer, list);
        std::uint64_t messages = 0;
        for (const auto& arrival : list) {
            messages += arrival.frames;
        }
        activity_->push.messages.add(messages);
        activity_->queues.add(queue.second, {.push_messages = messages});
    }
    TimerAnswer answered;
    answered.results = results;
    answer(call, answered);
}

bool TimerFiring::fail(TimerCall call, TimerBatch number, std::span<const std::uint32_t> segments,
                       Nanoseconds backoff, std::string_view error, bool counted,
                       std::int32_t most) {
    const auto batch = find(number);
    if (stopped_ || !batch) {
        return false;
    }
    TimerFail fail{.rows = {},
                   .backoff = std::chrono::ceil<std::chrono::milliseconds>(backoff),
                   .error = std::string(error),
                   .counted = counted,
                   .attempts = most};
    for (const auto place : segments) {
        if (place >= batch->segments.size()) {
            return false;
        }
        const auto& rows = batch->segments[place].segment.rows;
        fail.rows.insert(fail.rows.end(), rows.begin(), rows.end());
    }
    if (!enter(number)) {
        return false;
    }
    store_.fail(deadline(), std::move(fail),
                [self = shared_from_this(), call, batch, counted, hold = hand_back_->hold(),
                 places = Places(segments.begin(), segments.end())](Result<TimerFailed> failed) {
                    self->answering(call, failed, [&] {
                        self->failed(call, *batch, places, counted, std::move(*failed));
                    });
                    self->leave(*batch);
                });
    return true;
}

void TimerFiring::failed(TimerCall call, Batch& batch, const Places& places, bool counted,
                         TimerFailed failed) {
    TimerAnswer answered;
    answered.rows = static_cast<std::uint64_t>(failed.failed);
    answered.exhausted = failed.exhausted.size();
    poisoned_.add(counted ? answered.rows : 0);
    if (failed.locked == 0) {
        note(batch, places, State::settled);
    }
    {
        const std::lock_guard lock(mutex_);
        std::move(failed.exhausted.begin(), failed.exhausted.end(),
                  std::back_inserter(batch.exhausted));
    }
    answer(call, answered);
}

bool TimerFiring::dead_letter(TimerCall call, TimerBatch number, std::int32_t most) {
    const auto batch = find(number);
    if (stopped_ || !batch) {
        return false;
    }
    std::vector<TimerClaimKey> rows;
    {
        const std::lock_guard lock(mutex_);
        rows = std::exchange(batch->exhausted, {});
    }
    store_.dead_letter(deadline(), std::move(rows), most,
                       [self = shared_from_this(), call](const Result<std::int64_t>& filed) {
                           self->answering(call, filed, [&] {
                               TimerAnswer answered;
                               answered.rows = static_cast<std::uint64_t>(*filed);
                               self->dead_letters_.add(answered.rows);
                               self->answer(call, answered);
                           });
                       });
    return true;
}

void TimerFiring::release(TimerBatch number) {
    BatchPtr batch; // destroyed without the lock
    bool idle = false;
    {
        const std::lock_guard lock(mutex_);
        const auto found = batches_.find(number);
        if (found == batches_.end()) {
            return;
        }
        batch = std::move(found->second);
        batches_.erase(found);
        batch->released = true;
        idle = batch->calls == 0;
    }
    if (idle) {
        give_left(*batch);
    }
}

void TimerFiring::stop(std::function<void()> handed_back) {
    const auto hold = hand_back_->hold();
    std::vector<TimerBatch> in_hand;
    {
        const std::lock_guard lock(mutex_);
        stopped_ = true;
        for (const auto& [number, batch] : batches_) {
            in_hand.push_back(number);
        }
    }
    for (const auto number : in_hand) {
        release(number);
    }
    hand_back_->finish(std::move(handed_back));
}

// ---- the rest ----

TimerFiring::BatchPtr TimerFiring::find(TimerBatch batch) const {
    const std::lock_guard lock(mutex_);
    const auto found = batches_.find(batch);
    return found == batches_.end() ? nullptr : found->second;
}

/// Begins a call with a batch. @return false when the batch is not there any more
bool TimerFiring::enter(TimerBatch batch) {
    const std::lock_guard lock(mutex_);
    const auto found = batches_.find(batch);
    if (found == batches_.end()) {
        return false;
    }
    ++found->second->calls;
    return true;
}

/// Ends it. Only now is it known what of a batch that was released meanwhile is left.
void TimerFiring::leave(Batch& batch) {
    bool over = false;
    {
        const std::lock_guard lock(mutex_);
        over = --batch.calls == 0 && batch.released;
    }
    if (over) {
        give_left(batch);
    }
}

void TimerFiring::note(Batch& batch, const Places& places, State state) {
    const std::lock_guard lock(mutex_);
    for (const auto place : places) {
        batch.states[place] = state;
    }
}

/// What failed waits a while, so that a driver which releases it again and again does not spin.
void TimerFiring::give_left(const Batch& batch) {
    TimerHandBack::Rows untouched, failed;
    {
        const std::lock_guard lock(mutex_);
        for (std::size_t i = 0; i < batch.segments.size(); ++i) {
            if (batch.states[i] != State::settled) {
                auto& left = batch.states[i] == State::failed ? failed : untouched;
                const auto& rows = batch.segments[i].segment.rows;
                left.insert(left.end(), rows.begin(), rows.end());
            }
        }
    }
    hand_back_->give(std::move(untouched), {}, batch.until);
    hand_back_->give(std::move(failed), kAfterFailure, batch.until);
}

/// Works on what the store said. What fails here, for want of memory, is a failure of the call: the
/// driver waits for an answer.
template <class Value, class Work>
void TimerFiring::answering(TimerCall call, const Result<Value>& said, Work work) {
    if (!said) {
        refuse(call, said.error());
        return;
    }
    try {
        work();
    } catch (const std::exception& e) {
        refuse(call, Error{Errc::transient, e.what(), {}});
    }
}

void TimerFiring::answer(TimerCall call, const TimerAnswer& answer) const {
    if (driver_) {
        driver_->answered(call, answer);
    }
}

void TimerFiring::refuse(TimerCall call, const Error& error) {
    TimerAnswer refusal;
    refusal.outcome = timer_outcome(error);
    const std::string text =
        error.sqlstate.empty() ? error.message : error.message + " (" + error.sqlstate + ")";
    refusal.error = text;
    switch (refusal.outcome) {
    case TimerOutcome::transient:
    case TimerOutcome::contended:
        failures_[0].add();
        break;
    case TimerOutcome::permanent:
        failures_[1].add();
        break;
    case TimerOutcome::config:
        failures_[2].add();
        break;
    case TimerOutcome::ok:
    case TimerOutcome::paused:
        break;
    }
    answer(call, refusal);
}

void TimerFiring::count_lag(const Batch& batch, const PackedTimers& timers) {
    const Nanoseconds since = clock_.now() - batch.claimed_at;
    const std::lock_guard lock(lag_mutex_);
    auto found = lag_.find(timers.segment.tenant);
    if (found == lag_.end()) {
        if (lag_.size() >= kMostTenants) {
            tenants_dropped_.add(timers.late.size());
            return;
        }
        found = lag_.try_emplace(timers.segment.tenant).first;
    }
    for (const Nanoseconds late : timers.late) {
        found->second.observe(std::max(late, Nanoseconds{0}) + since);
    }
}

TimerFiring::Stats TimerFiring::stats() const {
    Stats stats;
    for (std::size_t i = 0; i < stats.results.size(); ++i) {
        stats.results[i] = results_[i].value();
        stats.failures[i] = failures_[i].value();
    }
    stats.dead_letters = dead_letters_.value();
    stats.poisoned = poisoned_.value();
    stats.due = due_;
    stats.due_capped = due_capped_;
    stats.oldest_late = Nanoseconds(oldest_late_.load());
    stats.tenants_dropped = tenants_dropped_.value();
    const std::lock_guard lock(lag_mutex_);
    for (const auto& [tenant, histogram] : lag_) {
        stats.lag.emplace(tenant, histogram.snapshot());
    }
    return stats;
}

} // namespace queen::broker
