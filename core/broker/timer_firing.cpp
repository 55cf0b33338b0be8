#include "broker/timer_firing.hpp"

#include "model/frame.hpp"
#include "model/hash.hpp"
#include "model/names.hpp"
#include "model/segment.hpp"

#include <algorithm>
#include <set>
#include <tuple>
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

TimerClaimKey key_of(const ClaimedTimer& row) {
    return {row.tenant, row.queue, row.key, row.token};
}

/// As the store takes it.
std::int32_t limit(std::uint32_t value) {
    return static_cast<std::int32_t>(std::min<std::uint32_t>(value, INT32_MAX));
}

/// Appends the row's message to the frames of its segment, as it was staged (ENC-4).
Result<void> append_row(std::string& frames, const ClaimedTimer& row, std::string& unpacked) {
    std::string_view payload = row.payload;
    if (row.payload_zstd) {
        auto bytes = decompress_segment(row.payload, TimerFiring::kMostPayload);
        if (!bytes) {
            return fail(Errc::corrupt,
                        "its compressed payload cannot be read: " + bytes.error().message);
        }
        unpacked = std::move(*bytes);
        payload = unpacked;
    }
    return append_frame(frames, {.message_id = row.message_id,
                                 .trace_id = {},
                                 .transaction_id = row.transaction_id,
                                 .producer_sub = row.producer_sub,
                                 .payload = payload,
                                 .encrypted = row.encrypted});
}

} // namespace

TimerOutcome timer_outcome(const Error& error) noexcept {
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
    store_.claim(deadline(),
                 {.shards = shards,
                  .lease = std::chrono::ceil<std::chrono::milliseconds>(lease),
                  .rows = limit(asked),
                  .rows_per_tenant = limit(rows_per_tenant)},
                 [self = shared_from_this(), call, asked](Result<std::vector<ClaimedTimer>> claim) {
                     if (!claim) {
                         self->refuse(call, claim.error());
                     } else {
                         self->claimed(call, std::move(*claim), asked);
                     }
                 });
    return true;
}

void TimerFiring::claimed(TimerCall call, std::vector<ClaimedTimer> rows, std::uint32_t asked) {
    const auto batch = std::make_shared<Batch>();
    batch->claimed_at = clock_.now();
    std::map<std::tuple<std::string, std::string, std::string>, std::size_t> places;
    std::vector<std::string> frames; ///< by segment
    std::vector<TimerClaimKey> surplus;
    std::size_t bytes = 0;
    std::uint32_t kept = 0;
    const auto begin_segment = [&](const ClaimedTimer& row) {
        auto& segment = batch->segments.emplace_back();
        segment.packed.tenant = row.tenant;
        segment.packed.queue = row.queue;
        segment.packed.partition = row.partition;
        frames.emplace_back();
        return batch->segments.size() - 1;
    };
    std::string unpacked;
    for (ClaimedTimer& row : rows) {
        if (bytes >= kBatchBytes) {
            surplus.push_back(key_of(row));
            continue;
        }
        ++kept;
        std::string frame;
        const auto made = append_row(frame, row, unpacked);
        std::size_t place = 0;
        if (made) {
            const auto [known, fresh] =
                places.try_emplace({row.tenant, row.queue, row.partition}, 0);
            place = known->second = fresh ? begin_segment(row) : known->second;
            frames[place] += frame;
            bytes += frame.size();
        } else {
            place = begin_segment(row);
            batch->segments[place].unfit =
                "timer '" + row.key + "' of queue '" + row.queue + "': " + made.error().message;
        }
        Segment& segment = batch->segments[place];
        ++segment.packed.count;
        segment.packed.hashes.append(hash_transaction_id(row.transaction_id).view());
        segment.packed.rows.push_back(key_of(row));
        segment.attempts = std::max(segment.attempts, row.attempts);
        segment.late.push_back(row.late);
        row.payload = {}; // it is in the frames
    }
    if (!surplus.empty()) {
        fitting_ = std::max<std::uint32_t>(kept, 1);
        hand_back(std::move(surplus));
    } else if (rows.size() >= asked && fitting_ != UINT32_MAX) {
        fitting_ = asked > UINT32_MAX / 2 ? UINT32_MAX : asked * 2;
    }
    for (std::size_t i = 0; i < frames.size(); ++i) {
        if (batch->segments[i].unfit.empty()) {
            batch->segments[i].packed.blob = compress_segment(frames[i], options_.zstd_level);
            frames[i] = {};
        }
    }
    TimerAnswer found;
    std::vector<plugin::TimerSegment> segments;
    for (const Segment& segment : batch->segments) {
        segments.push_back({segment.packed.tenant,
                            static_cast<std::uint32_t>(segment.packed.rows.size()),
                            segment.attempts, segment.packed.blob.size(),
                            *std::max_element(segment.late.begin(), segment.late.end())});
    }
    if (!segments.empty()) {
        const std::lock_guard lock(mutex_);
        found.batch = ++last_batch_;
        batches_.emplace(found.batch, batch);
    }
    found.segments = segments;
    answer(call, found);
}

/// Nobody waits for it: if it fails, their lease ends.
void TimerFiring::hand_back(std::vector<TimerClaimKey> rows) {
    store_.fail(deadline(),
                {.rows = std::move(rows),
                 .backoff = std::chrono::milliseconds{0},
                 .error = "handed back: the batch is large enough without it",
                 .counted = false,
                 .attempts = INT32_MAX},
                [](const Result<TimerFailed>&) {});
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
        const Segment& segment = batch->segments[place];
        if (!segment.unfit.empty()) {
            failures_[1].add();
            refusal.outcome = TimerOutcome::permanent;
            refusal.error = segment.unfit;
            answer(call, refusal);
            return true;
        }
        fire.segments.push_back(segment.packed); // kept for the case that it fails
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
        });
    return true;
}

/// Announced before the driver hears of it, as a push is before its answer (SW-10, POST-3).
void TimerFiring::fired(TimerCall call, const Batch& batch, const Places& places,
                        const std::vector<TimerFired>& outcomes) {
    std::vector<TimerResult> results;
    std::map<std::pair<std::string_view, std::string_view>, std::vector<Arrival>> arrivals;
    for (std::size_t i = 0; i < std::min(places.size(), outcomes.size()); ++i) {
        const Segment& segment = batch.segments[places[i]];
        const auto& packed = segment.packed;
        const TimerResult result = result_of(outcomes[i].kind);
        results.push_back(result);
        results_[static_cast<std::size_t>(result) - 1].add(packed.rows.size());
        if (result == TimerResult::fired) {
            arrivals[{packed.tenant, packed.queue}].push_back(
                {packed.partition, outcomes[i].partition_id,
                 static_cast<std::uint64_t>(packed.count)});
            count_lag(batch, segment);
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
        const auto& rows = batch->segments[place].packed.rows;
        fail.rows.insert(fail.rows.end(), rows.begin(), rows.end());
    }
    store_.fail(deadline(), std::move(fail),
                [self = shared_from_this(), call, batch, counted](Result<TimerFailed> failed) {
                    if (!failed) {
                        self->refuse(call, failed.error());
                        return;
                    }
                    TimerAnswer answered;
                    answered.rows = static_cast<std::uint64_t>(failed->failed);
                    answered.exhausted = failed->exhausted.size();
                    self->poisoned_.add(counted ? answered.rows : 0);
                    {
                        const std::lock_guard lock(self->mutex_);
                        std::move(failed->exhausted.begin(), failed->exhausted.end(),
                                  std::back_inserter(batch->exhausted));
                    }
                    self->answer(call, answered);
                });
    return true;
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

void TimerFiring::release(TimerBatch batch) {
    BatchPtr dropped; // destroyed without the lock
    const std::lock_guard lock(mutex_);
    if (const auto found = batches_.find(batch); found != batches_.end()) {
        dropped = std::move(found->second);
        batches_.erase(found);
    }
}

// ---- the rest ----

TimerFiring::BatchPtr TimerFiring::find(TimerBatch batch) const {
    const std::lock_guard lock(mutex_);
    const auto found = batches_.find(batch);
    return found == batches_.end() ? nullptr : found->second;
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

void TimerFiring::count_lag(const Batch& batch, const Segment& segment) {
    const Nanoseconds since = clock_.now() - batch.claimed_at;
    const std::lock_guard lock(lag_mutex_);
    auto found = lag_.find(segment.packed.tenant);
    if (found == lag_.end()) {
        if (lag_.size() >= kMostTenants) {
            tenants_dropped_.add(segment.late.size());
            return;
        }
        found = lag_.try_emplace(segment.packed.tenant).first;
    }
    for (const Nanoseconds late : segment.late) {
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
