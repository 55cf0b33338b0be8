#include "scripted_timers.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace queen::conformance {

using namespace std::chrono_literals;
using plugin::TimerBatch;
using plugin::TimerCall;
using plugin::TimerOutcome;
using plugin::TimerResult;
using plugin::TimerShards;

std::size_t ScriptedTimers::add(std::string tenant, std::string queue, Nanoseconds after) {
    Row row;
    row.tenant = std::move(tenant);
    row.queue = std::move(queue);
    row.due = clock_.now() + after;
    return add(std::move(row));
}

std::size_t ScriptedTimers::add(Row row) {
    row.visible = row.due;
    const std::lock_guard lock(mutex_);
    rows_.push_back(std::move(row));
    return rows_.size() - 1;
}

std::vector<ScriptedTimers::Row> ScriptedTimers::rows() const {
    const std::lock_guard lock(mutex_);
    return {rows_.begin(), rows_.end()};
}

std::size_t ScriptedTimers::count(State state) const {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(std::count_if(
        rows_.begin(), rows_.end(), [&](const Row& row) { return row.state == state; }));
}

bool ScriptedTimers::all(State state) const {
    const std::lock_guard lock(mutex_);
    return std::all_of(rows_.begin(), rows_.end(),
                       [&](const Row& row) { return row.state == state; });
}

void ScriptedTimers::outcome(TimerOutcome outcome) {
    const std::lock_guard lock(mutex_);
    outcome_ = outcome;
}

void ScriptedTimers::answer_inside(bool inside) {
    const std::lock_guard lock(mutex_);
    inside_ = inside;
}

void ScriptedTimers::refuse(bool refuse) {
    const std::lock_guard lock(mutex_);
    refuse_ = refuse;
}

void ScriptedTimers::no_more_calls() {
    const std::lock_guard lock(mutex_);
    silent_ = true;
}

std::size_t ScriptedTimers::refused() const {
    const std::lock_guard lock(mutex_);
    return refused_;
}

std::size_t ScriptedTimers::unreleased() const {
    const std::lock_guard lock(mutex_);
    return batches_.size();
}

std::string ScriptedTimers::violations() const {
    const std::lock_guard lock(mutex_);
    return violations_;
}

SteadyTime ScriptedTimers::wanted_tick() {
    const std::lock_guard lock(mutex_);
    return std::exchange(wanted_, SteadyTime::max());
}

void ScriptedTimers::tick_at(SteadyTime when) {
    const std::lock_guard lock(mutex_);
    wanted_ = std::min(wanted_, when);
}

void ScriptedTimers::blame(const std::string& what) {
    if (violations_.size() < 1'000) {
        violations_ += what + "; ";
    }
}

bool ScriptedTimers::take(const char* verb, TimerCall call, std::function<void(Answer&)> work) {
    Pending pending{call, std::move(work)};
    {
        const std::lock_guard lock(mutex_);
        if (silent_) {
            blame(std::string(verb) + " after stop()");
            return false;
        }
        if (refuse_) {
            ++refused_;
            return false;
        }
        if (!awaited_.insert(call).second) {
            blame(std::string(verb) + " under the name of a call that is not answered yet");
        }
        if (!inside_) {
            pending_.push_back(std::move(pending));
            return true;
        }
    }
    give(pending);
    return true;
}

void ScriptedTimers::give(const Pending& pending) {
    Answer made;
    {
        const std::lock_guard lock(mutex_);
        awaited_.erase(pending.call);
        pending.work(made);
        made.answer.error = made.error;
        made.answer.segments = made.segments;
        made.answer.results = made.results;
    }
    driver_->answered(pending.call, made.answer);
}

bool ScriptedTimers::answer_one() {
    Pending pending;
    {
        const std::lock_guard lock(mutex_);
        if (pending_.empty()) {
            return false;
        }
        pending = std::move(pending_.front());
        pending_.pop_front();
    }
    give(pending);
    return true;
}

/// True when the store does nothing now.
bool ScriptedTimers::away(Answer& out) const {
    out.answer.outcome = outcome_;
    out.error = outcome_ == TimerOutcome::ok ? "" : "as the test wants it";
    return outcome_ != TimerOutcome::ok;
}

bool ScriptedTimers::due(TimerCall call, TimerShards shards, std::uint32_t cap) {
    return take("due", call, [this, shards, cap](Answer& out) {
        if (away(out)) {
            return;
        }
        const SteadyTime now = clock_.now();
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            const Row& row = rows_[i];
            if (row.state != State::waiting || (shards >> (i % plugin::kTimerShards) & 1) == 0) {
                continue;
            }
            out.answer.next_in = std::min<Nanoseconds>(out.answer.next_in, row.visible - now);
            if (row.visible <= now) {
                out.answer.capped = out.answer.due >= cap;
                out.answer.due += out.answer.capped ? 0 : 1;
                out.answer.late = std::max<Nanoseconds>(out.answer.late, now - row.visible);
            }
        }
    });
}

bool ScriptedTimers::claim(TimerCall call, TimerShards shards, Nanoseconds lease,
                           std::uint32_t rows, std::uint32_t rows_per_tenant) {
    {
        const std::lock_guard lock(mutex_);
        if (lease <= 0ns || rows == 0 || rows_per_tenant == 0) {
            blame("a claim of nothing, or for no time");
        }
    }
    return take("claim", call, [=, this](Answer& out) {
        if (!away(out)) {
            do_claim(out, shards, lease, rows, rows_per_tenant);
        }
    });
}

void ScriptedTimers::do_claim(Answer& out, TimerShards shards, Nanoseconds lease,
                              std::uint32_t most, std::uint32_t most_per_tenant) {
    const SteadyTime now = clock_.now();
    std::vector<std::size_t> ready;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
        if (rows_[i].state == State::waiting && rows_[i].visible <= now &&
            (shards >> (i % plugin::kTimerShards) & 1) != 0) {
            ready.push_back(i);
        }
    }
    std::stable_sort(ready.begin(), ready.end(), [&](std::size_t a, std::size_t b) {
        return rows_[a].visible < rows_[b].visible;
    });
    Batch batch;
    std::map<std::string, std::uint32_t> of_tenant;
    std::map<std::pair<std::string, std::string>, std::size_t> places;
    std::uint32_t taken = 0;
    for (const std::size_t i : ready) {
        Row& row = rows_[i];
        if (taken == most || of_tenant[row.tenant] == most_per_tenant) {
            continue;
        }
        ++taken;
        ++of_tenant[row.tenant];
        const auto [place, fresh] = places.try_emplace({row.tenant, row.queue}, places.size());
        if (fresh) {
            batch.segments.emplace_back();
            out.segments.push_back({row.tenant, 0, 0, 0, 0ns});
        }
        batch.segments[place->second].push_back(i);
        plugin::TimerSegment& segment = out.segments[place->second];
        ++segment.rows;
        segment.bytes += 100;
        segment.attempts = std::max(segment.attempts, row.attempts);
        segment.late = std::max<Nanoseconds>(segment.late, now - row.visible);
        row.visible = now + lease;
        row.holder = last_batch_ + 1;
    }
    if (taken > 0) {
        out.answer.batch = ++last_batch_;
        batches_[last_batch_] = std::move(batch);
    }
}

ScriptedTimers::Batch* ScriptedTimers::batch_of(const char* verb, TimerBatch name,
                                                std::span<const std::uint32_t> segments) {
    const auto found = batches_.find(name);
    if (found == batches_.end()) {
        blame(std::string(verb) + " on a batch that it does not have");
        return nullptr;
    }
    std::set<std::uint32_t> once(segments.begin(), segments.end());
    if (once.size() != segments.size() ||
        (!once.empty() && *once.rbegin() >= found->second.segments.size())) {
        blame(std::string(verb) + " on segments that its batch does not have, or twice on one");
        return nullptr;
    }
    return &found->second;
}

bool ScriptedTimers::fire(TimerCall call, TimerBatch batch,
                          std::span<const std::uint32_t> segments) {
    {
        const std::lock_guard lock(mutex_);
        if (segments.empty()) {
            blame("fire of nothing");
        }
        const Batch* held = batch_of("fire", batch, segments);
        if (held == nullptr) {
            return false;
        }
        if (std::any_of(segments.begin(), segments.end(),
                        [&](std::uint32_t segment) { return held->over.contains(segment); })) {
            blame("a segment is fired that was fired, or was handed back");
        }
    }
    return take("fire", call,
                [this, batch, list = std::vector(segments.begin(), segments.end())](Answer& out) {
                    if (!away(out)) {
                        do_fire(out, batch, list);
                    }
                });
}

void ScriptedTimers::do_fire(Answer& out, TimerBatch name,
                             const std::vector<std::uint32_t>& segments) {
    const auto found = batches_.find(name);
    if (found == batches_.end()) {
        blame("release of a batch that is being fired");
        out.answer.outcome = TimerOutcome::permanent;
        return;
    }
    Batch& batch = found->second;
    const auto any = [&](std::uint32_t segment, auto&& is) {
        const auto& rows = batch.segments[segment];
        return std::any_of(rows.begin(), rows.end(), [&](std::size_t i) { return is(rows_[i]); });
    };
    if (std::any_of(segments.begin(), segments.end(), [&](std::uint32_t segment) {
            return any(segment, [](const Row& row) { return row.poison; });
        })) {
        out.answer.outcome = TimerOutcome::permanent;
        out.error = "one of them is poison";
        batch.hopeless.insert(segments.begin(), segments.end());
        return;
    }
    if (std::any_of(segments.begin(), segments.end(), [&](std::uint32_t segment) {
            return any(segment, [](const Row& row) { return row.locked; });
        })) {
        out.answer.outcome = TimerOutcome::contended;
        out.error = "one of them is locked";
        return;
    }
    const SteadyTime now = clock_.now();
    for (const std::uint32_t segment : segments) {
        const bool stale = any(segment, [&](const Row& row) {
            return row.cancelled || row.state != State::waiting || row.holder != name ||
                   row.visible <= now;
        });
        const bool duplicate = any(segment, [](const Row& row) { return row.duplicate; });
        out.results.push_back(stale       ? TimerResult::stale
                              : duplicate ? TimerResult::duplicate
                                          : TimerResult::fired);
        batch.over.insert(segment);
        for (const std::size_t i : batch.segments[segment]) {
            Row& row = rows_[i];
            if (row.cancelled || !stale) {
                row.state = State::fired;
            } else if (row.holder == name && row.state == State::waiting) {
                row.visible = now; // released
            }
        }
    }
}

bool ScriptedTimers::fail(TimerCall call, TimerBatch batch, std::span<const std::uint32_t> segments,
                          Nanoseconds backoff, std::string_view /*error*/, bool counted,
                          std::int32_t most) {
    {
        const std::lock_guard lock(mutex_);
        if (segments.empty() || backoff < 0ns || most <= 0) {
            blame("fail of nothing, into the past or with no attempts");
        }
        const Batch* held = batch_of("fail", batch, segments);
        if (held == nullptr) {
            return false;
        }
        if (counted && !std::all_of(segments.begin(), segments.end(), [&](std::uint32_t segment) {
                return held->hopeless.contains(segment);
            })) {
            blame("an attempt is counted that did not fail for good");
        }
    }
    return take("fail", call,
                [=, this, list = std::vector(segments.begin(), segments.end())](Answer& out) {
                    // What is switched off is the firing alone.
                    if (outcome_ == TimerOutcome::paused || !away(out)) {
                        do_fail(out, batch, list, backoff, counted, most);
                    }
                });
}

void ScriptedTimers::do_fail(Answer& out, TimerBatch name,
                             const std::vector<std::uint32_t>& segments, Nanoseconds backoff,
                             bool counted, std::int32_t most) {
    const auto found = batches_.find(name);
    if (found == batches_.end()) {
        blame("release of a batch that is being handed back");
        return;
    }
    Batch& batch = found->second;
    batch.over.insert(segments.begin(), segments.end());
    for (const std::uint32_t segment : segments) {
        for (const std::size_t i : batch.segments[segment]) {
            Row& row = rows_[i];
            if (row.state != State::waiting || row.holder != name) {
                continue;
            }
            row.visible = clock_.now() + backoff;
            row.holder = 0;
            ++out.answer.rows;
            row.attempts += counted ? 1 : 0;
            if (counted && row.attempts >= most) {
                batch.exhausted.push_back(i);
                ++out.answer.exhausted;
            }
        }
    }
}

bool ScriptedTimers::dead_letter(TimerCall call, TimerBatch name, std::int32_t most) {
    {
        const std::lock_guard lock(mutex_);
        if (batch_of("dead_letter", name, {}) == nullptr) {
            return false;
        }
    }
    return take("dead_letter", call, [this, name, most](Answer& out) {
        if (outcome_ != TimerOutcome::paused && away(out)) {
            return;
        }
        for (const std::size_t i : std::exchange(batches_[name].exhausted, {})) {
            Row& row = rows_[i];
            if (row.state == State::waiting && row.holder == 0 && row.attempts >= most) {
                row.state = State::filed;
                ++out.answer.rows;
            }
        }
    });
}

void ScriptedTimers::release(TimerBatch batch) {
    const std::lock_guard lock(mutex_);
    if (batches_.erase(batch) == 0) {
        blame("release of a batch that it does not have");
    }
    for (Row& row : rows_) {
        if (row.state == State::waiting && row.holder == batch) { // and not handed back
            row.holder = 0;
            row.visible = row.due;
        }
    }
}

void ScriptedTimers::unlock() {
    const std::lock_guard lock(mutex_);
    for (Row& row : rows_) {
        row.locked = false;
    }
}

} // namespace queen::conformance
