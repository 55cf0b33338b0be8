#include "timer_world.hpp"

#include <algorithm>
#include <utility>

namespace queen::test {

using namespace std::chrono_literals;

std::size_t TimerWorld::add(Nanoseconds in, std::string destination, std::string tenant,
                            bool poison) {
    Row row;
    row.tenant = std::move(tenant);
    row.destination = std::move(destination);
    row.shard = static_cast<unsigned>(rows.size() % plugin::kTimerShards);
    row.poison = poison;
    row.due = row.visible = clock.now() + in;
    row.told = clock.now();
    rows.push_back(std::move(row));
    return rows.size() - 1;
}

void TimerWorld::tell(std::size_t row) {
    rows[row].told = clock.now();
    driver->scheduled(rows[row].due);
}

void TimerWorld::take_effect(std::size_t which) {
    const auto place = pending_.begin() + static_cast<std::ptrdiff_t>(which % pending_.size());
    const Call call = std::move(*place);
    pending_.erase(place);
    if (auto answer = perform(call)) {
        answers_.push_back(std::move(*answer));
    }
}

void TimerWorld::answer(std::size_t which) {
    const auto place = answers_.begin() + static_cast<std::ptrdiff_t>(which % answers_.size());
    Answer answer = std::move(*place);
    answers_.erase(place);
    give(std::move(answer));
}

void TimerWorld::give(Answer answer) {
    for (std::size_t i = 0; i < answer.segments.size(); ++i) {
        answer.segments[i].tenant = answer.tenants[i];
    }
    answer.answer.segments = answer.segments;
    answer.answer.results = answer.results;
    answer.answer.error = answer.error;
    try {
        driver->answered(answer.call, answer.answer);
    } catch (...) { // the answer is lost
        if (answer.answer.batch != 0) {
            release(answer.answer.batch);
        }
        throw;
    }
}

void TimerWorld::tick() {
    next_tick = SteadyTime::max();
    const SteadyTime next = driver->tick(clock.now());
    next_tick = std::min(next_tick, next); // what was asked for meanwhile counts too
}

void TimerWorld::run(Nanoseconds until) {
    const SteadyTime end = clock.now() + until;
    for (;;) {
        while (has_call()) {
            take_effect();
        }
        while (has_answer()) {
            answer();
        }
        if (has_call()) {
            continue;
        }
        if (next_tick > end) {
            break;
        }
        if (next_tick > clock.now()) {
            clock.advance(next_tick - clock.now());
        }
        tick();
    }
    clock.advance(end - clock.now());
}

std::size_t TimerWorld::count(Verb verb) const {
    return static_cast<std::size_t>(std::count_if(
        calls.begin(), calls.end(), [verb](const Call& call) { return call.verb == verb; }));
}

std::size_t TimerWorld::count(Row::State state) const {
    return static_cast<std::size_t>(std::count_if(
        rows.begin(), rows.end(), [state](const Row& row) { return row.state == state; }));
}

// ---- what the driver asks ----

bool TimerWorld::take(Call call) {
    if (refuses) {
        return false;
    }
    if (call.batch != 0 && !batches_.contains(call.batch)) {
        wrong("a batch that it does not have");
        return false;
    }
    calls.push_back(call);
    if (inside) {
        inside(call);
    }
    if (at_once) {
        if (auto answer = perform(call)) {
            give(std::move(*answer));
        }
    } else {
        pending_.push_back(std::move(call));
    }
    return true;
}

void TimerWorld::release(TimerBatch batch) {
    if (batches_.erase(batch) == 0) {
        wrong("released twice, or never claimed");
    }
    for (Row& row : rows) {
        if (row.state == Row::State::waiting && row.token == batch) {
            row.token = 0;
            row.visible = row.due;
        }
    }
}

void TimerWorld::tick_at(SteadyTime when) {
    next_tick = std::min(next_tick, when);
}

// ---- what the store does ----

std::optional<TimerWorld::Answer> TimerWorld::perform(const Call& call) {
    Answer answer;
    answer.call = call.call;
    const Fault fault = faults ? faults(call) : Fault::none;
    const auto refuse = [&](TimerOutcome outcome) {
        answer.answer = {};
        answer.segments.clear();
        answer.tenants.clear();
        answer.results.clear();
        answer.answer.outcome = outcome;
        answer.error = "fault";
    };
    switch (fault) {
    case Fault::transient:
        refuse(TimerOutcome::transient);
        return answer;
    case Fault::permanent:
        refuse(TimerOutcome::permanent);
        return answer;
    case Fault::config:
        refuse(TimerOutcome::config);
        return answer;
    case Fault::paused:
        refuse(TimerOutcome::paused);
        return answer;
    case Fault::contended:
        refuse(TimerOutcome::contended);
        return answer;
    case Fault::none:
    case Fault::open_end:
    case Fault::lost:
        break;
    }
    switch (call.verb) {
    case Verb::due:
        perform_due(call, answer);
        break;
    case Verb::claim:
        perform_claim(call, answer);
        break;
    case Verb::fire:
        perform_fire(call, answer);
        break;
    case Verb::fail:
        perform_fail(call, answer);
        break;
    case Verb::dead_letter:
        for (const std::size_t row : batch_of(call)->exhausted) {
            if (rows[row].state == Row::State::waiting && rows[row].attempts >= call.most) {
                rows[row].state = Row::State::filed;
                ++answer.answer.rows;
            }
        }
        batch_of(call)->exhausted.clear();
        break;
    }
    if (fault == Fault::open_end || fault == Fault::lost) {
        batches_.erase(answer.answer.batch); // the broker never heard of it
        refuse(TimerOutcome::transient);
    }
    return fault == Fault::lost ? std::nullopt : std::optional(std::move(answer));
}

TimerWorld::Batch* TimerWorld::batch_of(const Call& call) {
    const auto found = batches_.find(call.batch);
    if (found == batches_.end()) {
        wrong("released while a call was under way");
        return &batches_[call.batch];
    }
    return &found->second;
}

void TimerWorld::perform_due(const Call& call, Answer& answer) {
    const SteadyTime now = clock.now();
    for (const Row& row : rows) {
        if (row.state != Row::State::waiting || (call.shards >> row.shard & 1) == 0) {
            continue;
        }
        answer.answer.next_in = std::min(answer.answer.next_in, Nanoseconds(row.visible - now));
        if (row.visible <= now) {
            answer.answer.capped = answer.answer.due == call.cap;
            answer.answer.due = std::min<std::uint64_t>(answer.answer.due + 1, call.cap);
            answer.answer.late = std::max(answer.answer.late, Nanoseconds(now - row.due));
        }
    }
}

void TimerWorld::perform_claim(const Call& call, Answer& answer) {
    const SteadyTime now = clock.now();
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (rows[i].state == Row::State::waiting && rows[i].visible <= now &&
            (call.shards >> rows[i].shard & 1) != 0) {
            found.push_back(i);
        }
    }
    std::stable_sort(found.begin(), found.end(), [this](std::size_t a, std::size_t b) {
        return rows[a].visible < rows[b].visible;
    });
    Batch batch;
    const TimerBatch id = last_batch_ + 1;
    std::map<std::string, std::uint32_t> of_tenant;
    std::map<std::pair<std::string, std::string>, std::size_t> segment_of;
    std::uint32_t taken = 0;
    for (const std::size_t i : found) {
        Row& row = rows[i];
        if (taken == call.rows || of_tenant[row.tenant] == call.rows_per_tenant) {
            continue;
        }
        ++taken;
        ++of_tenant[row.tenant];
        row.token = id;
        row.visible = now + call.lease;
        const auto [place, fresh] =
            segment_of.try_emplace({row.tenant, row.destination}, batch.segments.size());
        if (fresh) {
            batch.segments.emplace_back();
            answer.segments.emplace_back();
            answer.tenants.push_back(row.tenant);
        }
        batch.segments[place->second].push_back(i);
        TimerSegment& segment = answer.segments[place->second];
        ++segment.rows;
        segment.bytes += 100;
        segment.attempts = std::max(segment.attempts, row.attempts);
        segment.late = std::max(segment.late, Nanoseconds(now - row.due));
    }
    if (taken > 0) {
        answer.answer.batch = last_batch_ = id;
        batches_[id] = std::move(batch);
    }
}

void TimerWorld::perform_fire(const Call& call, Answer& answer) {
    const SteadyTime now = clock.now();
    const Batch& batch = *batch_of(call);
    const auto mine = [&](std::size_t row) {
        return rows[row].state == Row::State::waiting && rows[row].token == call.batch;
    };
    for (const std::uint32_t segment : call.segments) {
        if (locked.contains(rows[batch.segments[segment].front()].destination)) {
            answer.answer.outcome = TimerOutcome::contended;
            answer.error = "locked";
            return;
        }
        for (const std::size_t row : batch.segments[segment]) {
            if (rows[row].poison && mine(row)) {
                answer.answer.outcome = TimerOutcome::permanent;
                answer.error = "poison";
                return;
            }
        }
    }
    for (const std::uint32_t segment : call.segments) {
        const auto& members = batch.segments[segment];
        const bool whole = std::all_of(members.begin(), members.end(), mine);
        for (const std::size_t i : members) {
            Row& row = rows[i];
            if (!whole) {
                if (mine(i)) {
                    row.token = 0;
                    row.visible = now;
                }
                continue;
            }
            if (now < row.due) {
                wrong("fired early");
            }
            row.state = Row::State::fired;
            row.fired_at = now;
        }
        answer.results.push_back(whole ? TimerResult::fired : TimerResult::stale);
    }
}

void TimerWorld::perform_fail(const Call& call, Answer& answer) {
    Batch& batch = *batch_of(call);
    for (const std::uint32_t segment : call.segments) {
        for (const std::size_t i : batch.segments[segment]) {
            Row& row = rows[i];
            if (row.state != Row::State::waiting || row.token != call.batch) {
                continue;
            }
            row.token = 0;
            row.visible =
                call.backoff == 0s ? row.due : std::max(clock.now() + call.backoff, row.due);
            row.last_error = call.error;
            row.attempts += call.counted ? 1 : 0;
            ++answer.answer.rows;
            if (row.attempts >= call.most) {
                batch.exhausted.push_back(i);
                ++answer.answer.exhausted;
            }
        }
    }
}

} // namespace queen::test
