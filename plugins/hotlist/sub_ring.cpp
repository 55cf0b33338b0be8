#include "sub_ring.hpp"

#include <algorithm>
#include <utility>

namespace queen::hotlist {
namespace {

using plugin::Verdict;
using plugin::VerdictKind;

std::int64_t count(SteadyTime time) noexcept {
    return time.time_since_epoch().count();
}

/// A window as slots remember it; 0 for none. Windows are whole seconds in the store.
std::uint32_t in_ms(Nanoseconds window) noexcept {
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(window).count();
    return ms <= 0 ? 0 : static_cast<std::uint32_t>(std::min<std::int64_t>(ms, UINT32_MAX));
}

std::uint32_t plus(std::uint32_t batch, std::uint32_t frames) noexcept {
    return batch > UINT32_MAX - frames ? UINT32_MAX : batch + frames;
}

/// Until when a lease that is told to end at `until` is believed.
SteadyTime lease_park(SteadyTime until, SteadyTime now, const Rules& rules) {
    const SteadyTime cap = now + kMostLeasePark;
    return until >= cap - rules.pad ? cap : until + rules.pad;
}

} // namespace

SubRing::~SubRing() {
    retire();
}

void SubRing::retire() {
    const std::lock_guard lock(mutex_);
    if (Totals* const totals = std::exchange(totals_, nullptr)) {
        totals->add(Totals::ready, -std::int64_t{ready_count_}, stripe_);
        totals->add(Totals::wheel, -std::int64_t{wheel_count_}, stripe_);
        totals->add(Totals::in_flight, -std::int64_t{in_flight_count_}, stripe_);
    }
}

// ---- events -------------------------------------------------------------------------------------

std::size_t SubRing::mark(std::span<const Marked> marks, SteadyTime now, const Rules& rules,
                          ReadyOrder& order) {
    const std::lock_guard lock(mutex_);
    std::size_t made_ready = 0;
    for (const Marked& mark : marks) {
        Slot& one = slot(mark.local);
        ++one.epoch;
        // A ready or checked out slot without a count may hold older messages: its clock goes on.
        if (one.state == State::idle || (one.state == State::wheel && one.batch == 0)) {
            one.first_mark = count(now);
        }
        const std::uint32_t before = one.batch;
        one.batch = plus(one.batch, mark.frames);
        one.last_news = count(now);
        one.walked = false;
        const bool full = rules.only_window() && one.batch >= rules.window_batch;
        switch (one.state) {
        case State::idle:
            if (rules.delay.count() > 0) {
                park(mark.local, now + rules.delay + rules.pad);
            } else if (rules.only_window() && !full) {
                park(mark.local, SteadyTime(Nanoseconds(one.first_mark)) + rules.window,
                     in_ms(rules.window));
            } else {
                make_ready(mark.local, now, full ? in_ms(rules.window) : 0, order);
                ++made_ready;
            }
            break;
        case State::ready:
            ready_messages_count_ += thought(one) - std::max(before, one.left);
            break;
        case State::wheel:
            // A delay is never shortened. Without one, a lease park about to end is not worth
            // waiting for (HL-7).
            if (full || (!rules.deferred() && one.at <= count(now + rules.pad))) {
                make_ready(mark.local, now, full ? in_ms(rules.window) : 0, order);
                ++made_ready;
            } else if (rules.only_window() && one.held_ms != 0 && one.drained && before == 0 &&
                       one.batch > 0) {
                // Held after a delivery that left nothing (HL-4): the window of the first message
                // since begins now. At the end of the old one it would come early, and alone.
                park(mark.local, now + rules.window, in_ms(rules.window));
            }
            break;
        case State::in_flight:
            break; // the epoch keeps it from being cleared
        }
    }
    publish();
    return made_ready;
}

std::size_t SubRing::drain(SteadyTime now, ReadyOrder& order, std::size_t most) {
    if (due() > count(now)) {
        return 0; // the common case, without a lock
    }
    const std::lock_guard lock(mutex_);
    std::size_t made_ready = 0;
    while (made_ready < most && !cells_.empty() && cells_.front().due <= count(now)) {
        const Cell cell = cells_.front();
        pop_cell();
        const Slot& one = slots_[cell.local];
        if (one.state != State::wheel || one.at != cell.due) {
            continue;
        }
        make_ready(cell.local, now, one.held_ms, order);
        ++made_ready;
    }
    publish();
    return made_ready;
}

void SubRing::take(Wanted& wanted, std::int64_t no_younger_than, std::uint16_t shard,
                   SteadyTime now, const Rules& rules, ReadyAges& ages,
                   std::vector<CheckedOut>& out) {
    const std::lock_guard lock(mutex_);
    while (wanted.names > 0 && (wanted.first || wanted.messages > 0) && first_ != kNoSlot) {
        const Local local = first_;
        Slot& one = slots_[local];
        if (one.at > no_younger_than) {
            break;
        }
        const bool held = rules.config_fresh && window_over(one, now, rules);
        if (wanted.first) {
            wanted.held = held;
        } else if (held != wanted.held) {
            wanted.differs = true;
            break;
        }
        unlink_head();
        enter(one, State::in_flight);
        // Left over from an older claim it would let the next covered ack clear a backlog (HL-2).
        one.drained = false;
        ++one.visit;
        ages.add(std::max(Nanoseconds(0), now - SteadyTime(Nanoseconds(one.at))));
        out.push_back({one.epoch, local, one.visit, shard});
        wanted.first = false;
        --wanted.names;
        wanted.messages -= std::min<std::uint64_t>(wanted.messages, thought(one));
    }
    publish();
}

void SubRing::settle(const CheckedOut& entry, SteadyTime taken_at, const Verdict& verdict,
                     SteadyTime now, const Rules& rules, ReadyOrder& order) {
    const std::lock_guard lock(mutex_);
    const Local local = entry.local;
    Slot& one = slots_[local];
    if (one.state != State::in_flight || one.visit != entry.visit) {
        return; // a reseed row took it back meanwhile (HL-8)
    }
    const bool quiet = one.epoch == entry.epoch;
    switch (verdict.kind) {
    case VerdictKind::took_leased:
    case VerdictKind::took_acked:
        if (quiet) {
            one.batch = 0;
        }
        one.first_mark = one.last_news = count(now);
        one.drained = verdict.drained;
        one.walked = false;
        one.left =
            verdict.drained
                ? 0
                : static_cast<std::uint32_t>(std::min<std::uint64_t>(verdict.frames, UINT32_MAX));
        if (verdict.kind == VerdictKind::took_leased) {
            one.lease_end = count(verdict.until);
            park(local, lease_park(verdict.until, now, rules));
        } else if (rules.only_window()) {
            // It just fired: the next message waits for others.
            park(local, now + rules.window, in_ms(rules.window));
        } else {
            make_ready(local, now, 0, order);
        }
        break;
    case VerdictKind::empty:
        settle_empty(local, quiet, taken_at, now, rules, order);
        break;
    case VerdictKind::leased:
        park(local, lease_park(verdict.until, now, rules)); // never cleared
        break;
    case VerdictKind::requeue:
        one.batch = 0;
        make_ready(local, now, one.held_ms, order); // what matured stays so
        break;
    }
    publish();
}

void SubRing::settle_empty(Local local, bool quiet, SteadyTime taken_at, SteadyTime now,
                           const Rules& rules, ReadyOrder& order) {
    Slot& one = slots_[local];
    one.left = 0;
    if (!quiet) {
        make_ready(local, now, 0, order); // that data is real, and nobody has claimed it
        return;
    }
    // Of the checkout, not of now: a slow statement saw nothing because of the delay, and by now
    // the delay may be over.
    const SteadyTime ghost_at = SteadyTime(Nanoseconds(one.last_news)) +
                                std::max(rules.delay, rules.window) + 2 * rules.pad + kGhostSlack;
    if (!rules.deferred() || taken_at >= ghost_at) {
        clear(one);
    } else if (rules.delay.count() > 0) {
        const Nanoseconds soon = std::clamp(rules.delay, kLeastEmptyRevisit, kMostEmptyRevisit);
        const Nanoseconds since = now - SteadyTime(Nanoseconds(one.last_news));
        park(local,
             now + (one.walked ? std::clamp(since / kWalkedRevisitPart, soon, kMostWalkedRevisit)
                               : soon));
    } else {
        park(local, now + kLeastEmptyRevisit);
    }
}

void SubRing::found(Local local, const Verdict& verdict, SteadyTime now, const Rules& rules,
                    ReadyOrder& order) {
    const std::lock_guard lock(mutex_);
    Slot& one = slot(local);
    const bool more = verdict.kind == VerdictKind::took_acked && !verdict.drained;
    switch (one.state) {
    case State::idle:
        if (verdict.kind == VerdictKind::took_leased || verdict.kind == VerdictKind::leased) {
            one.drained = verdict.kind == VerdictKind::took_leased && verdict.drained;
            one.lease_end = count(verdict.until);
            one.first_mark = one.last_news = count(now);
            park(local, lease_park(verdict.until, now, rules));
        } else if (more || verdict.kind == VerdictKind::requeue) {
            one.drained = false;
            one.first_mark = one.last_news = count(now);
            if (rules.only_window()) {
                park(local, now + rules.window, in_ms(rules.window));
            } else {
                make_ready(local, now, 0, order);
            }
        }
        break;
    case State::wheel:
        // There was no checkout, so nothing says whether this claim is newer than what the slot
        // knows: it may only be taken as a reason to look, never as one to clear.
        one.drained = one.drained && verdict.drained;
        if (more && !rules.deferred()) {
            make_ready(local, now, 0, order);
        }
        break;
    case State::ready:
    case State::in_flight:
        break; // looked at soon anyway, or by somebody now
    }
    publish();
}

bool SubRing::released(Local local, bool covered, SteadyTime now, ReadyOrder& order) {
    const std::lock_guard lock(mutex_);
    Slot& one = slot(local);
    bool ready = false;
    switch (one.state) {
    case State::wheel:
        // A release after that lease's end is of another one, which may have taken less.
        if (covered && one.batch == 0 && one.drained && count(now) <= one.lease_end) {
            clear(one);
        } else {
            make_ready(local, now, 0, order); // the store still enforces delay and window
            ready = true;
        }
        break;
    case State::in_flight:
        ++one.epoch; // whoever has it out must not clear it
        break;
    case State::idle:
        // Given back, so there is something. It is idle when a release of the lease before came
        // late and cleared it, or when nobody told of it.
        if (!covered) {
            one.first_mark = one.last_news = count(now);
            one.batch = 1;
            make_ready(local, now, 0, order);
            ready = true;
        }
        break;
    case State::ready:
        break;
    }
    publish();
    return ready;
}

std::size_t SubRing::reseed(std::span<const Local> locals, SteadyTime now, const Rules& rules,
                            ReadyOrder& order) {
    const std::lock_guard lock(mutex_);
    std::size_t made_ready = 0;
    for (const Local local : locals) {
        Slot& one = slot(local);
        one.first_mark = one.last_news = count(now);
        switch (one.state) {
        case State::idle:
        case State::in_flight: // its pop may be gone for good (F-6)
            one.batch = std::max(one.batch, 1u);
            // On a delayed queue as well: how long it has waited already nobody knows.
            one.walked = rules.delay.count() > 0;
            make_ready(local, now, 0, order);
            ++made_ready;
            break;
        case State::wheel:
            if (!rules.deferred()) { // its lease may have been released early
                make_ready(local, now, 0, order);
                ++made_ready;
            }
            break;
        case State::ready:
            break;
        }
    }
    publish();
    return made_ready;
}

void SubRing::hasten(SteadyTime now) {
    const std::lock_guard lock(mutex_);
    sweep_wheel();
    for (Cell& cell : cells_) {
        cell.due = std::min(cell.due, count(now));
        slots_[cell.local].at = cell.due;
        slots_[cell.local].held_ms = 0; // it did not wait that long
    }
    std::make_heap(cells_.begin(), cells_.end(),
                   [](const Cell& a, const Cell& b) { return a.due > b.due; });
    publish();
}

std::size_t SubRing::bytes() const {
    const std::lock_guard lock(mutex_);
    return sizeof(*this) + slots_.bytes() + cells_.capacity() * sizeof(Cell);
}

// ---- below, mutex_ is held ----------------------------------------------------------------------

SubRing::Slot& SubRing::slot(Local local) {
    slots_.reach(local);
    return slots_[local];
}

void SubRing::enter(Slot& slot, State to) {
    const auto counter = [&](State state) -> std::uint32_t* {
        switch (state) {
        case State::idle:
            break;
        case State::ready:
            return &ready_count_;
        case State::wheel:
            return &wheel_count_;
        case State::in_flight:
            return &in_flight_count_;
        }
        return nullptr;
    };
    if (std::uint32_t* from = counter(slot.state)) {
        --*from;
    }
    if (std::uint32_t* into = counter(to)) {
        ++*into;
    }
    slot.state = to;
}

/// The rule that windowBuffer stands for: the window is over since the first mark, or the batch is
/// full. A slot that stood in the wheel for its window has that on record.
bool SubRing::window_over(const Slot& one, SteadyTime now, const Rules& rules) const {
    return rules.window.count() > 0 &&
           (one.held_ms == in_ms(rules.window) || one.batch >= rules.window_batch ||
            SteadyTime(Nanoseconds(one.first_mark)) + rules.window <= now);
}

void SubRing::make_ready(Local local, SteadyTime now, std::uint32_t held_ms, ReadyOrder& order) {
    Slot& one = slots_[local];
    enter(one, State::ready);
    one.at = order.next(now);
    one.held_ms = held_ms;
    one.next = kNoSlot;
    (last_ == kNoSlot ? first_ : slots_[last_].next) = local;
    last_ = local;
    ready_messages_count_ += thought(one);
}

void SubRing::unlink_head() {
    Slot& one = slots_[first_];
    ready_messages_count_ -= thought(one);
    first_ = one.next;
    if (first_ == kNoSlot) {
        last_ = kNoSlot;
    }
}

void SubRing::park(Local local, SteadyTime until, std::uint32_t held_ms) {
    Slot& one = slots_[local];
    enter(one, State::wheel);
    one.at = count(until);
    one.held_ms = held_ms;
    cells_.push_back({one.at, local});
    std::push_heap(cells_.begin(), cells_.end(),
                   [](const Cell& a, const Cell& b) { return a.due > b.due; });
    if (cells_.size() > 64 && cells_.size() > 2 * static_cast<std::size_t>(wheel_count_)) {
        sweep_wheel();
    }
}

void SubRing::clear(Slot& one) {
    enter(one, State::idle);
    one.batch = 0;
    one.held_ms = 0;
    one.walked = false;
}

void SubRing::pop_cell() {
    std::pop_heap(cells_.begin(), cells_.end(),
                  [](const Cell& a, const Cell& b) { return a.due > b.due; });
    cells_.pop_back();
}

void SubRing::sweep_wheel() {
    std::erase_if(cells_, [&](const Cell& cell) { return !live(cell); });
    std::make_heap(cells_.begin(), cells_.end(),
                   [](const Cell& a, const Cell& b) { return a.due > b.due; });
}

void SubRing::publish() {
    while (!cells_.empty() && !live(cells_.front())) {
        pop_cell();
    }
    const auto changed = [&](std::atomic<std::uint32_t>& figure, std::uint32_t now_is,
                             Totals::Sum sum) {
        const std::uint32_t was = figure.load(std::memory_order_relaxed);
        if (was != now_is) {
            figure.store(now_is, std::memory_order_relaxed);
            if (totals_ != nullptr) {
                totals_->add(sum, std::int64_t{now_is} - was, stripe_);
            }
        }
    };
    changed(ready_, ready_count_, Totals::ready);
    changed(wheel_, wheel_count_, Totals::wheel);
    changed(in_flight_, in_flight_count_, Totals::in_flight);
    ready_messages_.store(ready_messages_count_, std::memory_order_relaxed);
    head_.store(first_ == kNoSlot ? kNever : slots_[first_].at, std::memory_order_release);
    const std::int64_t first_due = cells_.empty() ? kNever : cells_.front().due;
    if (due_.load(std::memory_order_relaxed) != first_due) {
        due_.store(first_due, std::memory_order_seq_cst);
    }
}

} // namespace queen::hotlist
