#include "schedule_world.hpp"

#include <algorithm>
#include <utility>

namespace queen::hotlist::schedule {
namespace {

std::string text(Nanoseconds time) {
    return std::to_string(time.count());
}

} // namespace

World::World(Setup setup) : setup_(std::move(setup)) {
    for (const char* name : {"orders", "jobs"}) {
        for (const char* tenant : {"acme", "blue"}) {
            store.add_queue(tenant, name);
            tenants_.emplace_back(tenant);
            names_.emplace_back(name);
            keys_.push_back(std::string(tenant) + '\x1f' + name);
        }
    }
    for (std::size_t queue = 0; queue < keys_.size(); ++queue) {
        for (const char* group : {"g", "h"}) {
            places_.push_back({queue, group});
        }
    }
    consumers_.resize(places_.size());
    list = std::make_unique<HotList>(setup_.options, clock, *this);
}

World::~World() {
    for (const auto& pop : pops) {
        pop->selection.cookie.reset();
    }
    lost_.clear();
    list.reset();
}

plugin::Queue World::queue(std::size_t index) const {
    return {keys_[index], tenants_[index], names_[index]};
}

plugin::Scope World::scope(const Place& place) const {
    return {queue(place.queue), place.group};
}

plugin::QueueConfig World::config(std::size_t queue) const {
    return {store.delay(queue), store.window(queue), clock.now()};
}

void World::fault(std::string text) {
    faults_.push_back(std::move(text));
}

void World::trace(std::string text) {
    if (tracing) {
        trace_.push_back(std::move(text));
    }
}

void World::warm() {
    for (const auto& place : places_) {
        settle(take(place));
    }
    finish_walks();
}

void World::advance(Nanoseconds by) {
    clock.advance(by);
    store.advance(by);
}

// ---- pushes -------------------------------------------------------------------------------------

void World::commit(std::size_t queue, const std::string& partition, std::uint64_t frames,
                   plugin::Origin origin) {
    const auto id = store.push(queue, partition, frames);
    known_[queue][partition] = true;
    events_.push_back({.kind = Event::mark,
                       .queue = queue,
                       .partition = partition,
                       .id = id,
                       .frames = frames,
                       .origin = origin});
}

void World::push(std::size_t queue, const std::string& partition, std::uint64_t frames) {
    commit(queue, partition, frames);
    tell(events_.size() - 1);
}

// ---- pops ---------------------------------------------------------------------------------------

PopPtr World::take(const Place& place, ClaimArgs args, std::uint32_t round) {
    auto pop = std::make_shared<Pop>();
    pop->place = place;
    pop->args = args;
    pop->args.worker = ++workers_;
    // As a broker asks: eight names a partition, 16 to 256.
    const auto limit = std::clamp<std::uint64_t>(8u * args.partitions, 16, 256);
    plugin::NameList names(limit);
    pop->selection = list->take({.scope = scope(place),
                                 .round = round,
                                 .partitions = args.partitions,
                                 .messages = args.messages,
                                 .limit = limit},
                                names);
    pop->offered = names.entries();
    pop->names = names.partitions();
    if (names.refused() > 0) {
        fault("a name was offered twice, or beyond the limit");
    }
    check_offer(*pop);
    if (pop->selection.cookie || !pop->names.empty()) {
        pops.push_back(pop);
        open(*pop);
    }
    return pop;
}

void World::check_offer(const Pop& pop) {
    if ((pop.selection.pick == plugin::Pick::names) == pop.names.empty()) {
        fault("what take() says it picked is not what it offered");
    }
    for (const auto& name : pop.names) {
        trace("offer " + std::to_string(pop.place.queue) + pop.place.group + ' ' + name);
        if (!known_[pop.place.queue].contains(name)) {
            fault("a partition of another queue was offered: " + name);
        }
        if (open_[pop.place].contains(name)) {
            fault("offered to two pops at once: " + name);
        }
    }
    if (pop.selection.holds_window && pop.selection.window <= Nanoseconds{0}) {
        fault("a window was held that is none");
    }
}

void World::begin(Pop& pop) {
    pop.config = config(pop.place.queue);
    if (pop.selection.pick == plugin::Pick::names) {
        pop.seen = store.look(pop.place.queue, pop.place.group, pop.names);
    } else {
        pop.seen.emplace();
    }
}

void World::claim(Pop& pop) {
    if (!pop.seen) {
        begin(pop);
    }
    if (pop.answers || pop.selection.pick == plugin::Pick::none) {
        return;
    }
    auto args = pop.args;
    args.skip_window =
        pop.selection.holds_window && pop.selection.window == store.window(pop.place.queue);
    claims += pop.names.size();
    pop.answers =
        pop.selection.pick == plugin::Pick::names
            ? store.claim_list(pop.place.queue, pop.place.group, args, pop.names, *pop.seen)
            : store.scan(pop.place.queue, pop.place.group, args);
}

void World::open(const Pop& pop) {
    for (const auto& name : pop.names) {
        open_[pop.place][name] = &pop;
    }
}

void World::close(const PopPtr& pop) {
    pops.erase(std::remove(pops.begin(), pops.end(), pop), pops.end());
    std::erase_if(open_[pop->place], [&](const auto& held) { return held.second == pop.get(); });
}

std::vector<Batch> World::settle(const PopPtr& pop) {
    claim(*pop);
    std::vector<Batch> leases;
    if (!pop->answers) {
        return leases;
    }
    std::map<std::string_view, plugin::Verdict> known;
    for (const auto& answer : *pop->answers) {
        plugin::Verdict verdict{.partition = answer.partition, .partition_id = answer.id};
        verdict.until = pop->config.read_at + answer.left; // early rather than late
        switch (answer.found) {
        case Found::empty:
            verdict.kind = plugin::VerdictKind::empty;
            break;
        case Found::leased:
            verdict.kind = plugin::VerdictKind::leased;
            break;
        case Found::took:
            verdict.kind = pop->args.auto_ack ? plugin::VerdictKind::took_acked
                                              : plugin::VerdictKind::took_leased;
            verdict.drained = answer.drained;
            verdict.frames = answer.frames();
            if (!pop->args.auto_ack) {
                leases.push_back({pop->place, answer.partition, answer.id, pop->args.worker,
                                  answer.first, answer.last});
            }
            break;
        }
        known[answer.partition] = verdict;
    }
    if (setup_.prompt_releases) {
        for (std::size_t i = 0; i < events_.size();) {
            const auto& event = events_[i];
            if (event.kind == Event::released && event.queue == pop->place.queue &&
                event.group == pop->place.group && known.contains(event.partition)) {
                tell(i);
            } else {
                ++i;
            }
        }
    }
    std::vector<plugin::Verdict> verdicts;
    for (const auto& name : pop->offered) {
        plugin::Verdict verdict{.partition = name.partition}; // not reached: requeue
        if (const auto found = known.find(name.partition); found != known.end()) {
            verdict = found->second;
            known.erase(found);
        }
        verdict.token = name.token;
        verdicts.push_back(verdict);
    }
    for (const auto& [name, verdict] : known) {
        verdicts.push_back(verdict); // the store found it
    }
    close(pop);
    if (pop->selection.cookie || !pop->names.empty()) {
        list->settle(scope(pop->place), std::move(pop->selection.cookie), verdicts);
    }
    list->configured(queue(pop->place.queue), pop->config);
    for (const auto& answer : *pop->answers) {
        if (answer.found == Found::took) {
            list->learn(queue(pop->place.queue), answer.partition, answer.id);
        }
    }
    batches.insert(batches.end(), leases.begin(), leases.end());
    if (peek(pop->place).state != plugin::ReadyState::nothing) {
        wake_consumers(pop->place.queue, pop->place.group); // whoever ends its turn wakes the next
    }
    return leases;
}

void World::drop(const PopPtr& pop) {
    close(pop);
    if (pop->answers) {
        for (const auto& answer : *pop->answers) {
            if (answer.found == Found::took && !pop->args.auto_ack) {
                batches.push_back({pop->place, answer.partition, answer.id, pop->args.worker,
                                   answer.first, answer.last}); // nobody knows; it runs out
            }
        }
    }
    list->settle(scope(pop->place), std::move(pop->selection.cookie), {});
    wake_consumers(pop->place.queue, pop->place.group);
}

void World::strand(const PopPtr& pop) {
    ++stranded;
    pops.erase(std::remove(pops.begin(), pops.end(), pop), pops.end());
    lost_.push_back(std::move(pop->selection.cookie));
    stranded_.push_back(pop); // it keeps its names until the floor takes them back
}

std::vector<Batch> World::pop(const Place& place, ClaimArgs args) {
    return settle(take(place, args));
}

std::vector<Batch> World::pinned(const Place& place, const std::string& partition, ClaimArgs args) {
    args.worker = ++workers_;
    const std::vector<std::string> names{partition};
    std::vector<Batch> leases;
    for (const auto& answer : store.claim_list(place.queue, place.group, args, names,
                                               store.look(place.queue, place.group, names))) {
        if (answer.found != Found::took) {
            continue;
        }
        list->learn(queue(place.queue), answer.partition, answer.id);
        if (!args.auto_ack) {
            leases.push_back(
                {place, answer.partition, answer.id, args.worker, answer.first, answer.last});
        }
    }
    batches.insert(batches.end(), leases.begin(), leases.end());
    return leases;
}

void World::consume_elsewhere(const Place& place) {
    store.scan(place.queue, place.group,
               {.messages = 1'000'000, .partitions = 1'000'000, .auto_ack = true});
}

void World::push_elsewhere(std::size_t queue, const std::string& partition, std::uint64_t frames) {
    commit(queue, partition, frames);
    events_.pop_back();
}

// ---- leases -------------------------------------------------------------------------------------

void World::ack(const Batch& batch, std::int64_t done, bool keep) {
    const Batch copy = batch; // may be one of batches
    const auto acked =
        store.ack(copy.place.queue, copy.place.group, copy.id, copy.worker, done, keep);
    if (acked.released) {
        events_.push_back({.kind = Event::released,
                           .queue = copy.place.queue,
                           .group = copy.place.group,
                           .partition = copy.partition,
                           .id = copy.id,
                           .covered = acked.covered});
    }
    if (!keep || acked.released) {
        lose(copy);
    }
}

void World::lose(const Batch& batch) {
    const auto same = [worker = batch.worker, id = batch.id](const Batch& held) {
        return held.worker == worker && held.id == id;
    };
    batches.erase(std::remove_if(batches.begin(), batches.end(), same), batches.end());
}

// ---- what is told -------------------------------------------------------------------------------

void World::tell(std::size_t index) {
    const auto event = events_[index];
    events_.erase(events_.begin() + static_cast<std::ptrdiff_t>(index));
    const auto named = queue(event.queue);
    switch (event.kind) {
    case Event::mark: {
        const plugin::Mark mark{event.partition, event.id, event.frames};
        list->mark(named, event.group, event.origin, {&mark, 1});
        break;
    }
    case Event::released:
        list->released(named, event.group, event.id, event.covered);
        if (setup_.check_releases) {
            check_release(event);
        }
        break;
    case Event::forget:
        for (auto& [place, held] : open_) {
            if (place.queue == event.queue && (event.group.empty() || place.group == event.group)) {
                held.clear();
            }
        }
        list->forget(named.tenant, named.name, event.group);
        break;
    case Event::configured:
        list->configured(named, event.config);
        return; // wakes nobody
    }
    wake_consumers(event.queue, event.group); // the broker's own wake
}

void World::check_release(const Event& event) {
    const Place place{event.queue, event.group};
    const auto same = [&](const Event& other) {
        return other.queue == event.queue && other.partition == event.partition;
    };
    // Marks to come speak for themselves; a pop that has it will see the epoch.
    if (open_[place].contains(event.partition) ||
        std::any_of(events_.begin(), events_.end(), same) ||
        !store.claimable(event.queue, event.group, event.partition)) {
        return;
    }
    if (peek(place).state == plugin::ReadyState::nothing) {
        fault("a release freed " + event.partition + " and nothing is ready");
    }
}

void World::tell_all() {
    while (!events_.empty()) {
        tell();
    }
}

// ---- walks --------------------------------------------------------------------------------------

void World::read(Walk& walk) {
    if (!walk.begun) {
        walk.begun = true;
        walk.since = walk.window > Nanoseconds{0} ? store.now() - walk.window : DbTime::min();
    }
    walk.config = config(walk.place.queue);
    walk.page = store.page(walk.place.queue, walk.place.group, walk.after, setup_.page, walk.since);
    walk.after = walk.page->after;
}

void World::apply(std::size_t index) {
    // The hot-list may ask for another walk from inside.
    auto walk = walks_[index];
    const auto page = *std::exchange(walks_[index].page, {});
    const auto at = scope(walk.place);
    std::vector<plugin::ReseedRow> rows;
    for (const auto& row : page.rows) {
        rows.push_back({row.partition, row.id});
        open_[walk.place].erase(row.partition); // whoever has it may be gone for good
    }
    list->configured(at.queue, walk.config);
    const bool goes_on = list->reseed_page(at, walk.ticket, rows);
    if (page.last || !goes_on) {
        walks_.erase(walks_.begin() + static_cast<std::ptrdiff_t>(index));
        list->reseed_done(at, walk.ticket, page.last);
    }
}

void World::fail(std::size_t index) {
    const auto walk = walks_[index];
    walks_.erase(walks_.begin() + static_cast<std::ptrdiff_t>(index));
    list->reseed_done(scope(walk.place), walk.ticket, false);
}

void World::finish_walks() {
    while (!walks_.empty()) {
        if (!walks_.front().page) {
            read(walks_.front());
        }
        apply(0);
    }
}

// ---- the host -----------------------------------------------------------------------------------

std::size_t World::queue_of(std::string_view key) {
    const auto found = std::find(keys_.begin(), keys_.end(), key);
    if (found == keys_.end()) {
        fault("a queue that nobody named: " + std::string(key));
        return 0;
    }
    return static_cast<std::size_t>(found - keys_.begin());
}

void World::wake(const plugin::Queue& queue, std::string_view group, std::uint64_t ready) {
    ++wakes;
    trace("wake " + std::to_string(queue_of(queue.key)) + std::string(group) + ' ' +
          std::to_string(ready));
    if (ready == 0) {
        fault("a wake for nothing");
    }
    wake_consumers(queue_of(queue.key), group);
}

void World::wake_consumers(std::size_t queue, std::string_view group) {
    for (std::size_t i = 0; i < places_.size(); ++i) {
        if (places_[i].queue == queue && (group.empty() || places_[i].group == group)) {
            consumers_[i].told = true;
        }
    }
}

void World::reseed(const plugin::Scope& scope, plugin::Ticket ticket, Nanoseconds window) {
    trace("walk " + std::to_string(queue_of(scope.queue.key)) + std::string(scope.group) + ' ' +
          text(window));
    Walk walk;
    walk.place = {queue_of(scope.queue.key), std::string(scope.group)};
    walk.ticket = ticket;
    walk.window = window;
    walks_.push_back(std::move(walk));
}

void World::tick_at(SteadyTime when) {
    trace("tick at " + text(when.time_since_epoch()));
    next_tick_ = std::min(next_tick_, when);
}

void World::tick() {
    next_tick_ = SteadyTime::max();
    const auto next = list->tick(clock.now());
    trace("next tick " + text(next.time_since_epoch()));
    next_tick_ = std::min(next_tick_, next);
}

} // namespace queen::hotlist::schedule
