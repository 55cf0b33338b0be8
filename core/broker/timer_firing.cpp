#include "broker/timer_firing.hpp"

#include "broker/lost_race.hpp"

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

TimerOutcome timer_outcome(const Error& error) noexcept {
    if (lost_a_race(error) || error.sqlstate == "55P03") {
        return TimerOutcome::contended;
    }
    switch (error.code) {
    case Errc::unavailable:
    case Errc::timeout:
    case Errc::transient:
    case Errc::overloaded:
    case Errc::shutting_down:
        return TimerOutcome::transient;
    case Errc::invalid_argument:
    case Errc::name_too_long:
    case Errc::not_found:
    case Errc::conflict:
    case Errc::store_failed:
    case Errc::corrupt:
    case Errc::unsupported:
    case Errc::internal:
    case Errc::too_large:
        break;
    }
    if (error.sqlstate == "42883") { // a broker of another version has changed the procedures
        return TimerOutcome::transient;
    }
    if (error.sqlstate.starts_with("42")) {
        return TimerOutcome::config;
    }
    // An argument that could not be sent has no SQLSTATE either, and would be refused again.
    return error.sqlstate.empty() && error.code != Errc::invalid_argument ? TimerOutcome::transient
                                                                          : TimerOutcome::permanent;
}

TimerFiring::TimerFiring(TimerStore& store, Announcer& announcer, const Clock& clock,
                         Options options)
    : store_(store), announcer_(announcer), clock_(clock), options_(std::move(options)),
      activity_(metrics::Activity::or_own(options_.activity, clock)) {}

// ---- the verbs ----

bool TimerFiring::due(TimerCall call, plugin::TimerShards shards, std::uint32_t cap) {
    if (stopped_) {
        return false;
    }
    try_locked_again();
    store_.due(deadline(), shards, limit(cap),
               [self = shared_from_this(), call](const Result<TimersDue>& due) {
                   if (!due) {
                       self->refuse(call, due.error());
                       return;
                   }
                   TimerAnswer found;
                   found.next_in = due->next_in ? Nanoseconds(*due->next_in) : Nanoseconds::max();
                   found.due = static_cast<std::uint64_t>(std::max<std::int64_t>(due->due, 0));
                   found.late = due->late;
                   found.capped = due->capped;
                   self->due_ = found.due;
                   self->due_capped_ = found.capped;
                   self->oldest_late_ = found.late.count();
                   self->answer(call, found);
               });
    return true;
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
    begin();
    store_.claim(deadline(),
                 {.shards = shards,
                  .lease = std::chrono::ceil<std::chrono::milliseconds>(lease),
                  .rows = limit(asked),
                  .rows_per_tenant = limit(rows_per_tenant),
                  .bytes = kBatchBytes},
                 [self = shared_from_this(), call, asked](Result<std::vector<ClaimedTimer>> claim) {
                     if (!claim) {
                         self->refuse(call, claim.error());
                     } else {
                         self->claimed(call, std::move(*claim), asked);
                     }
                     self->end();
                 });
    return true;
}

void TimerFiring::claimed(TimerCall call, std::vector<ClaimedTimer> rows, std::uint32_t asked) {
    const auto batch = std::make_shared<Batch>();
    batch->claimed_at = clock_.now();
    const std::size_t claimed = rows.size();
    auto packed = pack_claim(std::move(rows), kBatchBytes, options_.zstd_level);
    if (!packed.surplus.empty()) {
        fitting_ = std::max<std::uint32_t>(packed.rows, 1);
        hand_back(std::move(packed.surplus), "handed back: the batch is large enough without it");
    } else if (claimed >= asked && fitting_ != UINT32_MAX) {
        fitting_ = asked > UINT32_MAX / 2 ? UINT32_MAX : asked * 2;
    }
    batch->segments = std::move(packed.segments);
    batch->settled.resize(batch->segments.size());
    TimerAnswer found;
    std::vector<plugin::TimerSegment> segments;
    for (const PackedTimers& timers : batch->segments) {
        segments.push_back({timers.segment.tenant,
                            static_cast<std::uint32_t>(timers.segment.rows.size()), timers.attempts,
                            timers.segment.blob.size(), timers.latest()});
    }
    std::vector<TimerClaimKey> unwanted;
    if (!segments.empty()) {
        const std::lock_guard lock(mutex_);
        if (stopped_) {
            unwanted = left_of(*batch);
        } else {
            found.batch = ++last_batch_;
            batches_.emplace(found.batch, batch);
        }
    }
    if (!unwanted.empty()) {
        hand_back(std::move(unwanted), "handed back: the broker stops");
        segments.clear();
    }
    found.segments = segments;
    answer(call, found);
}

/// Nobody waits for it: if it fails, their lease ends.
void TimerFiring::hand_back(std::vector<TimerClaimKey> rows, std::string why, int tries) {
    begin();
    TimerFail fail{.rows = rows,
                   .backoff = std::chrono::milliseconds{0},
                   .error = std::move(why),
                   .counted = false,
                   .attempts = INT32_MAX};
    store_.fail(deadline(), std::move(fail),
                [self = shared_from_this(), rows = std::move(rows),
                 tries](const Result<TimerFailed>& failed) mutable {
                    if (failed && failed->failed < static_cast<std::int64_t>(rows.size())) {
                        self->keep_locked(std::move(rows), tries - 1);
                    }
                    self->end();
                });
}

/// Those that are gone by now, or another's, cost nothing when they are tried again.
void TimerFiring::keep_locked(std::vector<TimerClaimKey> rows, int tries) {
    const std::lock_guard lock(mutex_);
    if (tries <= 0 || locked_rows_ + rows.size() > kMostLocked) {
        return;
    }
    locked_rows_ += rows.size();
    locked_.push_back({std::move(rows), tries});
}

void TimerFiring::try_locked_again() {
    std::vector<Locked> locked;
    {
        const std::lock_guard lock(mutex_);
        locked = std::exchange(locked_, {});
        locked_rows_ = 0;
    }
    for (auto& each : locked) {
        hand_back(std::move(each.rows), "handed back: it was locked", each.tries);
    }
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
    store_.fire(
        deadline(), std::move(fire),
        [self = shared_from_this(), call, batch, places = Places(segments.begin(), segments.end())](
            const Result<std::vector<TimerFired>>& outcomes) {
            if (!outcomes) {
                self->refuse(call, outcomes.error());
            } else {
                self->fired(call, *batch, places, *outcomes);
            }
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
            batch.settled[places[i]] = outcomes[i].kind != TimerFired::Kind::stale;
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
                [self = shared_from_this(), call, batch, counted,
                 places = Places(segments.begin(), segments.end())](Result<TimerFailed> failed) {
                    if (!failed) {
                        self->refuse(call, failed.error());
                    } else {
                        self->failed(call, *batch, places, counted, std::move(*failed));
                    }
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
    std::uint64_t rows = 0;
    for (const auto place : places) {
        rows += batch.segments[place].segment.rows.size();
    }
    {
        const std::lock_guard lock(mutex_);
        std::move(failed.exhausted.begin(), failed.exhausted.end(),
                  std::back_inserter(batch.exhausted));
        for (const auto place : places) { // else some may have been locked
            batch.settled[place] = answered.rows == rows;
        }
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
                           if (!filed) {
                               self->refuse(call, filed.error());
                               return;
                           }
                           TimerAnswer answered;
                           answered.rows = static_cast<std::uint64_t>(*filed);
                           self->dead_letters_.add(answered.rows);
                           self->answer(call, answered);
                       });
    return true;
}

void TimerFiring::release(TimerBatch number) {
    BatchPtr batch; // destroyed without the lock
    std::vector<TimerClaimKey> left;
    {
        const std::lock_guard lock(mutex_);
        const auto found = batches_.find(number);
        if (found == batches_.end()) {
            return;
        }
        batch = std::move(found->second);
        batches_.erase(found);
        batch->released = true;
        if (batch->calls == 0) {
            left = left_of(*batch);
        }
    }
    if (!left.empty()) {
        hand_back(std::move(left), "handed back: released");
    }
}

void TimerFiring::stop(std::function<void()> handed_back) {
    std::vector<TimerBatch> in_hand;
    begin(); // for as long as it takes to hand them back
    {
        const std::lock_guard lock(mutex_);
        stopped_ = true;
        handed_back_ = std::move(handed_back);
        for (const auto& [number, batch] : batches_) {
            in_hand.push_back(number);
        }
    }
    for (const auto number : in_hand) {
        release(number);
    }
    end();
}

// ---- the rest ----

TimerFiring::BatchPtr TimerFiring::find(TimerBatch batch) const {
    const std::lock_guard lock(mutex_);
    const auto found = batches_.find(batch);
    return found == batches_.end() ? nullptr : found->second;
}

void TimerFiring::begin() {
    const std::lock_guard lock(mutex_);
    ++under_way_;
}

void TimerFiring::end() {
    std::function<void()> handed_back;
    {
        const std::lock_guard lock(mutex_);
        if (--under_way_ == 0) {
            handed_back = std::exchange(handed_back_, {});
        }
    }
    if (handed_back) {
        handed_back();
    }
}

/// Begins a call with a batch. @return false when the batch is not there any more
bool TimerFiring::enter(TimerBatch batch) {
    const std::lock_guard lock(mutex_);
    const auto found = batches_.find(batch);
    if (found == batches_.end()) {
        return false;
    }
    ++found->second->calls;
    ++under_way_;
    return true;
}

/// Ends it. Only now is it known what of a batch that was released meanwhile is left.
void TimerFiring::leave(Batch& batch) {
    std::vector<TimerClaimKey> left;
    {
        const std::lock_guard lock(mutex_);
        if (--batch.calls == 0 && batch.released) {
            left = left_of(batch);
        }
    }
    if (!left.empty()) {
        hand_back(std::move(left), "handed back: released");
    }
    end();
}

std::vector<TimerClaimKey> TimerFiring::left_of(const Batch& batch) {
    std::vector<TimerClaimKey> left;
    for (std::size_t i = 0; i < batch.segments.size(); ++i) {
        if (!batch.settled[i]) {
            const auto& rows = batch.segments[i].segment.rows;
            left.insert(left.end(), rows.begin(), rows.end());
        }
    }
    return left;
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
