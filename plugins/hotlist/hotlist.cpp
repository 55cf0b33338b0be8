#include "hotlist.hpp"

#include "queue_map.hpp"
#include "report.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace queen::hotlist {

using plugin::Pick;
using plugin::ReadyState;
using plugin::Scope;
using plugin::Verdict;
using plugin::VerdictKind;

namespace {

/// Answers with names after which a ring that cannot be walked lets the store scan once: else a
/// partition that nobody marks would starve behind those that are.
constexpr std::uint32_t kNamesInARow = 8;

/// What a tick does before it leaves the other rings to the next one, 5 ms later, counted in wheel
/// entries made ready, of about 50 ns each: it shall stay far below the millisecond a call may
/// take. Asking the host for a walk costs as much as a hundred of them (a guess from its
/// allocations and locks), and after an outage all rings ask at once.
constexpr std::size_t kMostWorkPerTick = 8192;
constexpr std::size_t kWorkOfAWalk = 100;

/// What a take checked out. Token n stands for slots[n - 1]; 0 is the store's own find.
struct CheckedOutNames final : plugin::Cookie {
    QueuePtr queue; ///< keeps a sweep away, and the names alive
    RingPtr ring;
    std::vector<CheckedOut> slots;
    SteadyTime taken_at{};
};

} // namespace

class HotList::Impl {
public:
    Impl(Options options_in, const Clock& clock_in, plugin::CandidateHost& host_in, Log log_in)
        : options(std::move(options_in)), clock(clock_in), host(host_in), log(std::move(log_in)),
          queues(totals), report(counters, totals, log) {}

    Rules rules_of(const QueueFacts& queue, SteadyTime now) const {
        Rules rules;
        rules.pad = options.pad;
        rules.window_batch = options.window_batch;
        queue.rules.fill(rules, now);
        return rules;
    }

    /// After something was put on the wheel.
    void note(Ring& ring) { note(ring, ring.wheel_due()); }
    void note(Agenda::Item& item, SteadyTime when) {
        if (const auto tick = agenda.note(item, when)) {
            host.tick_at(*tick);
        }
    }

    QueueMap::Registered enlist(const Scope& scope, SteadyTime now) {
        auto made = queues.enlist(
            scope,
            [&] {
                const bool traced =
                    !options.trace.empty() && scope.queue.name.starts_with(options.trace);
                return std::make_shared<TrackedQueue>(
                    std::make_shared<QueueFacts>(scope.queue, traced), totals, options.hearsay);
            },
            [&](std::shared_ptr<QueueFacts> facts) {
                const ReseedFloor::Intervals intervals{options.reseed, options.reseed_full,
                                                       options.reseed_window};
                return std::make_shared<Ring>(std::move(facts), scope.group, options.shards,
                                              intervals, now, totals);
            });
        if (made.new_queue && options.idle_sweep.count() > 0) {
            note(*made.queue, now + options.idle_sweep);
        }
        if (made.new_ring) {
            note(*made.ring, next_look(*made.ring, now));
        }
        return made;
    }

    /// When a tick has to look at the ring again.
    SteadyTime next_look(Ring& ring, SteadyTime now) const {
        SteadyTime next = ring.wheel_due();
        // A ring that was just made gets its first walk from the take that made it.
        if (const SteadyTime due = ring.floor().due(); due != SteadyTime{}) {
            next = std::min(next, due);
        }
        if (options.unserved_trim.count() > 0) {
            const SteadyTime trim = ring.last_served() + options.unserved_trim;
            next = std::min(next, trim > now ? trim : now + options.unserved_trim);
        }
        return next;
    }

    /// @return whether one was due
    bool ask_for_walk(Ring& ring, SteadyTime now) {
        const auto walk = ring.floor().start(now, next_ticket.fetch_add(1) + 1);
        if (walk) {
            host.reseed(ring.scope(), walk->ticket, walk->window);
        }
        return walk.has_value();
    }

    void wake(const Ring& ring, std::size_t ready) {
        if (ready > 0 && !ring.dropped.load(std::memory_order_relaxed)) {
            trace(*ring.queue(), "wake", ring.group(), ready);
            host.wake(ring.queue()->view(), ring.group(), ready);
        }
    }

    void trace(const QueueFacts& queue, const char* what, std::string_view group, std::size_t count,
               std::string_view first = {}) {
        if (queue.traced) {
            report.breadcrumb(what, queue, group, count, first);
        }
    }

    /// @return entries made ready
    /// @return how much work it was, see kMostWorkPerTick
    std::size_t tick_ring(const RingPtr& ring, SteadyTime now) {
        if (ring->dropped.load(std::memory_order_relaxed)) {
            return 0;
        }
        const std::size_t ready = ring->drain(now);
        wake(*ring, ready);
        if (options.unserved_trim.count() > 0 &&
            queues.trim(*ring, now - options.unserved_trim, agenda)) {
            ring->retire();
            counters.trims.add();
            return ready;
        }
        const bool walks = ask_for_walk(*ring, now);
        note(*ring, next_look(*ring, now));
        return ready + (walks ? kWorkOfAWalk : 0);
    }

    void tick_queue(std::shared_ptr<Agenda::Item> item, SteadyTime now) {
        const auto facts = static_cast<TrackedQueue&>(*item).facts;
        const std::weak_ptr<Agenda::Item> weak = item;
        const auto* const queue = static_cast<TrackedQueue*>(item.get());
        const bool touched = static_cast<TrackedQueue&>(*item).take_touch();
        item.reset(); // the map shall be the only holder
        if (!touched && queues.sweep(facts->key, queue, agenda)) {
            counters.sweeps.add();
            return;
        }
        if (const auto again = weak.lock()) {
            note(*again, now + options.idle_sweep);
        }
    }

    /// Some of the rings: their walks are due now.
    void hurry_some(SteadyTime now) {
        if (missed.exchange(false)) {
            unhurried = QueueMap::kShards;
        }
        if (unhurried == 0) {
            return;
        }
        const auto next =
            queues.look_at_some(next_unhurried, Agenda::kMostPerTick, [&](Ring& ring) {
                ring.floor().hurry(now);
                agenda.note(ring, next_look(ring, now)); // asks for no tick: one runs
            });
        const auto looked = (next + QueueMap::kShards - next_unhurried) % QueueMap::kShards;
        unhurried -= std::min(unhurried, looked == 0 ? QueueMap::kShards : looked);
        next_unhurried = next;
    }

    const Options options;
    const Clock& clock;
    plugin::CandidateHost& host;
    const Log log;
    Counters counters;
    Totals totals;
    Agenda agenda;
    QueueMap queues;
    ReadyAges ages;
    Report report;
    std::atomic<plugin::Ticket> next_ticket{0};
    std::atomic<bool> missed{false}; ///< since the last tick
    std::size_t unhurried = 0;       ///< shards of the map; the ticker's alone, as the next one
    std::size_t next_unhurried = 0;
};

HotList::HotList(Options options, const Clock& clock, plugin::CandidateHost& host, Log log)
    : impl_(std::make_unique<Impl>(std::move(options), clock, host, std::move(log))) {}

HotList::~HotList() = default;

plugin::Readiness HotList::peek(const Scope& scope) {
    plugin::Readiness found;
    found.state = ReadyState::cold;
    const SteadyTime now = impl_->clock.now();
    impl_->queues.look(scope.queue.key, scope.group, [&](TrackedQueue& queue, Ring* ring) {
        if (ring == nullptr) {
            return;
        }
        queue.touch();
        ring->served(now);
        const Ring::Depth depth = ring->depth(now);
        found.partitions = depth.ready + depth.due_shards;
        found.messages = depth.ready_messages;
        found.next_due = depth.next_due;
        if (ring->floor().warm()) {
            found.state = found.partitions > 0 ? ReadyState::ready : ReadyState::nothing;
        }
    });
    return found;
}

plugin::Selection HotList::take(const plugin::Take& take, plugin::Names& out) {
    const SteadyTime now = impl_->clock.now();
    auto cookie = std::make_unique<CheckedOutNames>();
    cookie->taken_at = now;
    if (auto found = impl_->queues.find(take.scope.queue.key)) {
        cookie->ring = find_ring(*found.rings, take.scope.group);
        cookie->queue = std::move(found.queue);
    }
    if (cookie->ring == nullptr) {
        auto made = impl_->enlist(take.scope, now);
        cookie->queue = std::move(made.queue);
        cookie->ring = std::move(made.ring);
    }
    Ring& ring = *cookie->ring;
    cookie->queue->touch();
    ring.served(now);
    const bool warm = ring.floor().warm();
    if (!warm) {
        impl_->ask_for_walk(ring, now);
    }
    plugin::Selection selection;
    const bool starving = !warm && ring.floor().failures() > 0 &&
                          ring.names_in_a_row.load(std::memory_order_relaxed) >= kNamesInARow;
    if (!starving) {
        const Rules rules = impl_->rules_of(*ring.queue(), now);
        auto taken = ring.take(take.limit, take.messages, now, rules, impl_->ages);
        cookie->slots = std::move(taken.slots);
        selection.holds_window = taken.held;
        selection.window = taken.held ? rules.window : Nanoseconds(0);
    }
    if (cookie->slots.empty()) {
        if (warm) {
            return selection; // none
        }
        ring.names_in_a_row.store(0, std::memory_order_relaxed);
        impl_->counters.scans.add();
        selection.pick = Pick::scan;
        selection.cookie = std::move(cookie);
        return selection;
    }
    std::vector<Interner::Index> indices;
    std::vector<std::string_view> names(cookie->slots.size());
    indices.reserve(cookie->slots.size());
    for (const CheckedOut& slot : cookie->slots) {
        indices.push_back(ring.index_of(slot));
    }
    cookie->queue->names.names(indices.size(), indices.data(),
                               [&](std::size_t i, std::string_view name) { names[i] = name; });
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (!out.add(names[i], i + 1)) {
            break; // what was not offered has no verdict and comes back as not evaluated
        }
    }
    ring.names_in_a_row.fetch_add(1, std::memory_order_relaxed);
    impl_->counters.names_offered.add(names.size());
    impl_->trace(*ring.queue(), "take", ring.group(), names.size(), names.front());
    selection.pick = Pick::names;
    selection.cookie = std::move(cookie);
    return selection;
}

void HotList::settle(const Scope& /*scope*/, std::unique_ptr<plugin::Cookie> cookie,
                     std::span<const Verdict> verdicts) {
    auto* const held = static_cast<CheckedOutNames*>(cookie.get());
    if (held == nullptr || held->ring->dropped.load(std::memory_order_relaxed)) {
        return;
    }
    Ring& ring = *held->ring;
    const SteadyTime now = impl_->clock.now();
    const Rules rules = impl_->rules_of(*ring.queue(), now);
    held->queue->touch();
    ring.served(now);

    static constexpr Verdict kNotEvaluated{};
    std::vector<const Verdict*> by_slot(held->slots.size(), &kNotEvaluated);
    std::vector<const Verdict*> found;
    std::vector<Interner::Known> ids;
    std::vector<Interner::Index> not_found;
    for (const Verdict& verdict : verdicts) {
        if (verdict.token == 0) {
            if (!verdict.partition.empty()) {
                found.push_back(&verdict);
            }
        } else if (verdict.token <= by_slot.size()) {
            by_slot[verdict.token - 1] = &verdict;
            if (verdict.partition_id.known()) {
                ids.push_back(
                    {ring.index_of(held->slots[verdict.token - 1]), verdict.partition_id});
            } else if (verdict.kind == VerdictKind::empty) {
                not_found.push_back(ring.index_of(held->slots[verdict.token - 1]));
            }
        }
    }
    held->queue->names.remember(ids);
    held->queue->names.not_found(not_found);
    // Who was not served stays ahead of those who were (K12).
    const auto settle_those = [&](bool evaluated) {
        for (std::size_t i = 0; i < by_slot.size(); ++i) {
            if ((by_slot[i]->kind != VerdictKind::requeue) == evaluated) {
                ring.settle(held->slots[i], held->taken_at, *by_slot[i], now, rules);
                impl_->report.count(by_slot[i]->kind);
            }
        }
    };
    settle_those(false);
    settle_those(true);
    if (!found.empty()) {
        std::vector<Interner::Index> indices(found.size());
        held->queue->names.intern(
            found.size(),
            [&](std::size_t i) {
                return Interner::Named{found[i]->partition, found[i]->partition_id};
            },
            indices.data());
        for (std::size_t i = 0; i < found.size(); ++i) {
            ring.found(indices[i], *found[i], now, rules);
            impl_->report.count(found[i]->kind);
        }
    }
    impl_->trace(*ring.queue(), "settle", ring.group(), verdicts.size());
    impl_->note(ring);
}

void HotList::mark(const plugin::Queue& queue, std::string_view group, plugin::Origin origin,
                   std::span<const plugin::Mark> marks) {
    (origin == plugin::Origin::peer ? impl_->counters.marks_remote : impl_->counters.marks_local)
        .add(marks.size());
    const auto found = impl_->queues.find(queue.key);
    if (!found || marks.empty()) {
        return;
    }
    found.queue->touch();
    const RingPtr only = group.empty() ? nullptr : find_ring(*found.rings, group);
    const std::span<const RingPtr> rings =
        group.empty() ? std::span<const RingPtr>(*found.rings)
                      : std::span<const RingPtr>(&only, only == nullptr ? 0 : 1);
    if (rings.empty()) {
        return; // nobody reads by this list: no name is kept
    }
    const SteadyTime now = impl_->clock.now();
    std::vector<Interner::Index> indices(marks.size());
    std::size_t refused = 0;
    if (origin == plugin::Origin::peer) {
        refused = found.queue->names.intern_hearsay(
            marks.size(), [&](std::size_t i) { return marks[i].partition; }, indices.data());
        impl_->counters.marks_refused.add(refused);
    } else {
        found.queue->names.intern(
            marks.size(),
            [&](std::size_t i) {
                return Interner::Named{marks[i].partition, marks[i].partition_id};
            },
            indices.data());
    }
    std::vector<Ring::Marked> sorted;
    sorted.reserve(marks.size());
    for (std::size_t i = 0; i < marks.size(); ++i) {
        if (indices[i] == Interner::kNone) {
            continue;
        }
        const auto frames = std::min<std::uint64_t>(marks[i].frames, UINT32_MAX);
        sorted.push_back({indices[i], static_cast<std::uint32_t>(frames)});
    }
    std::sort(sorted.begin(), sorted.end(),
              [s = impl_->options.shards](const auto& a, const auto& b) {
                  return a.index % s < b.index % s;
              });
    const Rules rules = impl_->rules_of(*found.queue->facts, now);
    for (const RingPtr& ring : rings) {
        const std::size_t ready = ring->mark(sorted, now, rules);
        impl_->trace(*found.queue->facts, "mark", ring->group(), ready, marks.front().partition);
        if (refused > 0) {
            ring->floor().hasten(now);
            impl_->note(*ring, ring->floor().due());
        }
        impl_->note(*ring);
    }
}

void HotList::released(const plugin::Queue& queue, std::string_view group, const Uuid& partition_id,
                       bool covered) {
    const auto found = impl_->queues.find(queue.key);
    const RingPtr ring = found ? find_ring(*found.rings, group) : nullptr;
    if (ring == nullptr) {
        return;
    }
    found.queue->touch();
    const Interner::Index index = found.queue->names.find(partition_id);
    if (index != Interner::kNone && ring->released(index, covered, impl_->clock.now())) {
        impl_->wake(*ring, 1);
    }
}

void HotList::learn(const plugin::Queue& queue, std::string_view partition,
                    const Uuid& partition_id) {
    if (const auto found = impl_->queues.find(queue.key); found && !partition.empty()) {
        found.queue->touch();
        found.queue->names.intern(partition, partition_id);
    }
}

void HotList::forget(std::string_view tenant, std::string_view queue, std::string_view group) {
    for (const RingPtr& ring : impl_->queues.forget(tenant, queue, group, impl_->agenda)) {
        ring->retire();
    }
}

void HotList::configured(const plugin::Queue& queue, const plugin::QueueConfig& config) {
    bool shorter = false;
    impl_->queues.look(queue.key, {}, [&](TrackedQueue& tracked, Ring*) {
        tracked.touch();
        shorter = tracked.facts->rules.set(config);
    });
    if (!shorter) {
        return;
    }
    // What waits for a time that was longer may be claimable by now; a tick makes it ready.
    const auto found = impl_->queues.find(queue.key);
    for (std::size_t i = 0; found && i < found.rings->size(); ++i) {
        Ring& ring = *(*found.rings)[i];
        ring.hasten(impl_->clock.now());
        impl_->note(ring);
    }
}

bool HotList::reseed_page(const Scope& scope, plugin::Ticket ticket,
                          std::span<const plugin::ReseedRow> rows) {
    const auto found = impl_->queues.find(scope.queue.key);
    const RingPtr ring = found ? find_ring(*found.rings, scope.group) : nullptr;
    if (ring == nullptr || !ring->floor().page(ticket)) {
        return false;
    }
    if (rows.empty()) {
        return true;
    }
    const SteadyTime now = impl_->clock.now();
    std::vector<Interner::Index> indices(rows.size());
    found.queue->names.intern(
        rows.size(),
        [&](std::size_t i) {
            return Interner::Named{rows[i].partition, rows[i].partition_id};
        },
        indices.data());
    const std::size_t made_ready = ring->reseed(indices, now, impl_->rules_of(*ring->queue(), now));
    impl_->counters.reseed_rows.add(made_ready);
    impl_->trace(*ring->queue(), "reseed", ring->group(), made_ready, rows.front().partition);
    impl_->note(*ring);
    impl_->wake(*ring, made_ready);
    return true;
}

void HotList::reseed_done(const Scope& scope, plugin::Ticket ticket, bool complete) {
    const auto found = impl_->queues.find(scope.queue.key);
    const RingPtr ring = found ? find_ring(*found.rings, scope.group) : nullptr;
    const SteadyTime now = impl_->clock.now();
    const auto outcome =
        ring == nullptr ? ReseedFloor::Outcome{} : ring->floor().done(ticket, complete, now);
    switch (outcome.ended) {
    case ReseedFloor::Ended::unknown_ticket:
        // The ring it was for is gone or was made anew, and then owes a full walk of its own.
        impl_->counters.reseeds_dropped.add();
        return;
    case ReseedFloor::Ended::complete:
        (outcome.full ? impl_->counters.reseeds_full : impl_->counters.reseeds_window).add();
        if (outcome.full && found.queue->names.haunted()) {
            impl_->counters.renewals.add();
            for (const RingPtr& gone :
                 impl_->queues.forget(scope.queue.tenant, scope.queue.name, {}, impl_->agenda)) {
                gone->retire();
                impl_->host.wake(scope.queue, gone->group(), 1); // whose look makes a new one
            }
            return;
        }
        break;
    case ReseedFloor::Ended::failed:
        impl_->counters.reseeds_failed.add();
        impl_->report.walk_failed(*ring, outcome.failures);
        break;
    }
    impl_->note(*ring, ring->floor().due());
}

SteadyTime HotList::tick(SteadyTime now) {
    auto due = impl_->agenda.begin(now);
    impl_->hurry_some(now);
    std::size_t work = 0;
    for (auto& item : due) {
        if (work >= kMostWorkPerTick) {
            impl_->note(*item, now); // for the next tick
            continue;
        }
        switch (item->kind()) {
        case Agenda::Kind::ring:
            work += impl_->tick_ring(std::static_pointer_cast<Ring>(std::move(item)), now);
            break;
        case Agenda::Kind::queue:
            impl_->tick_queue(std::move(item), now);
            break;
        }
    }
    if (impl_->report.summary_due(now)) {
        impl_->report.summary(now, impl_->queues);
    }
    const SteadyTime next = impl_->agenda.end();
    return impl_->unhurried == 0 ? next : std::min(next, now + Agenda::kSpacing);
}

bool HotList::missed() {
    impl_->missed = true;
    impl_->host.tick_at(impl_->clock.now());
    return true;
}

void HotList::stats(plugin::Stats& out) {
    impl_->report.stats(out, impl_->queues, impl_->ages, impl_->clock.now());
}

} // namespace queen::hotlist
