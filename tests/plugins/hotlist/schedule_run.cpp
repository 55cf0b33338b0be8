// Time passes in a World, and what shows when it has.
#include "schedule_world.hpp"

#include <algorithm>

namespace queen::hotlist::schedule {
namespace {

constexpr std::uint32_t kMaxRounds = 4; ///< a broker asks a source this often in one pop

} // namespace

bool World::look(std::size_t index) {
    const auto place = places_[index];
    auto& consumer = consumers_[index];
    consumer.told = false;
    consumer.again = clock.now() + kHostFloor / 10;
    consumer.idle = peek(place).state == plugin::ReadyState::nothing;
    if (consumer.idle) {
        return false;
    }
    for (std::uint32_t round = 0; round < kMaxRounds; ++round) {
        const auto pop = take(place, {.messages = 4, .partitions = 2}, round);
        const auto pick = pop->selection.pick;
        const auto leases = settle(pop);
        for (const auto& lease : leases) {
            ack(lease);
            tell(events_.size() - 1);
        }
        if (!leases.empty() || pick != plugin::Pick::names) {
            consumer.told = !leases.empty();
            return consumer.told;
        }
    }
    consumer.told = false; // a broker parks now, whatever may be ready
    return false;
}

void World::look_if_told(std::size_t place) {
    if (consumers_[place].told) {
        look(place);
    }
}

bool World::wants_look(std::size_t index, const Run& how) {
    const auto& consumer = consumers_[index];
    if (consumer.told) {
        return true;
    }
    if (clock.now() < consumer.again || (how.told_only && consumer.idle)) {
        return false;
    }
    return peek(places_[index]).state != plugin::ReadyState::nothing;
}

bool World::step(const Run& how) {
    if (next_tick_ <= clock.now()) {
        tick();
        return true;
    }
    if (how.walks && !walks_.empty()) {
        finish_walks();
        return true;
    }
    bool moved = false;
    for (std::size_t i = 0; how.consumers && i < places_.size(); ++i) {
        if (wants_look(i, how)) {
            look(i);
            moved = true;
        }
    }
    return moved;
}

SteadyTime World::next_event(const Run& how) {
    auto next = next_tick_;
    for (std::size_t i = 0; how.consumers && i < places_.size(); ++i) {
        const auto found = peek(places_[i]);
        const auto due =
            found.state == plugin::ReadyState::nothing ? found.next_due : consumers_[i].again;
        next = std::min(next, std::max(due, consumers_[i].again));
    }
    return next;
}

void World::run(Nanoseconds span, Run how) {
    constexpr int kBusy = 2000; // steps at one instant: nothing here needs a tenth of that
    const auto end = clock.now() + span;
    while (faults_.empty() && !(how.until_drained && drained())) {
        int steps = 0;
        while (step(how)) {
            if (++steps > kBusy) {
                fault("it never comes to rest: ticks or looks without end");
                return;
            }
        }
        const auto now = clock.now();
        if (now >= end) {
            return;
        }
        const auto next = std::min({next_event(how), now + kHostFloor, end});
        advance(std::max<Nanoseconds>(next - now, std::chrono::milliseconds(1)));
    }
}

bool World::drained() const {
    return std::all_of(places_.begin(), places_.end(),
                       [&](const Place& place) { return store.drained(place.queue, place.group); });
}

std::string World::undelivered() const {
    std::string all;
    for (const auto& place : places_) {
        all += store.describe(place.queue, place.group);
    }
    return all;
}

std::map<std::string, double> World::stats() {
    struct Sink final : plugin::Stats {
        void add(std::string_view name, double value) override { all[std::string(name)] = value; }
        std::map<std::string, double> all;
    } sink;
    list->stats(sink);
    return sink.all;
}

std::vector<std::string> World::offers(const Place& place) {
    const auto pop = take(place, {.messages = 1'000'000, .partitions = 32});
    auto names = pop->names;
    if (pop->selection.cookie || !names.empty()) {
        drop(pop);
    }
    return names;
}

} // namespace queen::hotlist::schedule
