// Every interleaving of pushes, pops, acks, ticks, walks, losses and deletions around one hot-list
// that a seeded scheduler can find, one step at a time. Stress does not find these races.
#include "schedule_script.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace queen::hotlist::schedule {
namespace {

using namespace std::chrono_literals;

constexpr Nanoseconds kLongestLease = 6s;
constexpr Nanoseconds kLongestDelay = 2s, kLongestWindow = 1s;
constexpr Nanoseconds kPad = 300ms;
/// What may pass without a floor: delay and window, a park of a second, pads, ticks, looks.
constexpr Nanoseconds kBounded = kLongestDelay + kLongestWindow + 1s + 2 * kPad + 1s;

Options floor_options() {
    Options options;
    options.shards = 2;
    options.reseed = 5s;
    options.reseed_full = 20s;
    options.idle_sweep = 0ns;
    options.unserved_trim = 0ns;
    return options;
}

Options no_floor_options() {
    auto options = floor_options();
    options.reseed = options.reseed_full = 240h;
    return options;
}

/// Delay and window of the queues, told before anything happens; kinds of queue: plain, delayed,
/// buffered, both.
void configure(World& w, std::uint32_t kinds) {
    for (std::size_t queue = 0; queue < 2; ++queue, kinds /= 4) {
        w.store.configure(queue, kinds % 2 == 0 ? 0s : 2s, kinds / 2 % 2 == 0 ? 0s : 1s);
        w.list->configured(w.queue(queue),
                           {w.store.delay(queue), w.store.window(queue), w.clock.now()});
    }
}

enum class End { leases_run_out, all_is_given_back };

std::ostream& operator<<(std::ostream& out, End end) {
    return out << (end == End::leases_run_out ? "leases run out" : "all is given back");
}

/// Everything under way comes to its end.
void end_all(World& w, End end) {
    w.store.unlock_rows();
    w.tell_all();
    while (!w.pops.empty()) {
        w.settle(PopPtr(w.pops.front()));
    }
    w.tell_all();
    while (!w.batches.empty()) {
        const auto batch = w.batches.front();
        end == End::all_is_given_back ? w.nack(batch) : w.lose(batch);
        w.tell_all();
    }
}

void check_faults(const World& w) {
    if (!w.faults().empty()) {
        RC_FAIL(w.faults().front());
    }
}

void check_drained(const World& w) {
    check_faults(w);
    if (!w.drained()) {
        RC_FAIL("not delivered: " + w.undelivered());
    }
}

/// Nothing is left to claim, so nothing is claimed any more, whatever the queue's delay; no entry
/// is left but what nobody gave back.
void check_rest(World& w) {
    w.run(std::max(kLongestDelay, kLongestWindow) + 2 * kPad + 4s,
          {.walks = false, .until_drained = false});
    const auto claims = w.claims;
    w.run(10s, {.walks = false, .until_drained = false});
    check_faults(w);
    RC_ASSERT(w.claims == claims);
    if (w.stranded == 0) { // or figures of rings that were dropped under a pop are in it
        auto stats = w.stats();
        RC_ASSERT(stats["ready"] == 0);
        RC_ASSERT(stats["wheel"] == 0);
        RC_ASSERT(stats["in_flight"] == 0);
    }
}

/// With nothing under way: a pop keeps the ring it took from, also when that was dropped meanwhile.
void check_sizes(World& w) {
    if (w.stranded > 0) {
        return;
    }
    auto stats = w.stats();
    for (const char* name : {"ready", "wheel", "in_flight", "partitions", "rings", "queues"}) {
        RC_ASSERT(stats.contains(name));
        RC_ASSERT(stats[name] >= 0);
    }
    // Each ring of a queue may hold each of its partitions once; two groups.
    RC_ASSERT(stats["ready"] + stats["wheel"] + stats["in_flight"] <= 2 * stats["partitions"]);
    RC_ASSERT(stats["rings"] <= static_cast<double>(w.places().size()));
    RC_ASSERT(stats["queues"] <= 4);
}

/// Everything is told, nobody leaves without a word: the ring needs no floor.
void without_floor(bool told_only) {
    const auto end = *rc::gen::element(End::leases_run_out, End::all_is_given_back);
    // A covered release that comes after the next lease has begun may take that one for done. Its
    // nack repairs it; if it runs out, only the floor does.
    World w({.options = no_floor_options(),
             .prompt_releases = end == End::leases_run_out,
             .check_releases = true});
    w.warm();
    configure(w, *rc::gen::arbitrary<std::uint32_t>());
    if (told_only) {
        w.run(1s, {.until_drained = false}); // each place's consumer has looked and sleeps
    }
    Rules rules;
    rules.sleepers = told_only;
    rules.queues = *rc::gen::element<std::size_t>(1, 2);
    if (end == End::all_is_given_back) {
        rules.consumers_die = false;
        rules.short_lease = rules.lease = 1h; // nobody may depend on its end
    }
    for (const auto& step : *scripts(Step::first_harmful)) {
        run_step(w, step, rules);
    }
    end_all(w, end);
    w.run(kBounded + (end == End::leases_run_out ? kLongestLease : 0s),
          {.told_only = told_only, .walks = false});
    check_drained(w);
    check_sizes(w);
    check_rest(w);
}

RC_GTEST_PROP(HotListProperty, NoMarkedPartitionIsLostWithoutAFloor, ()) {
    without_floor(false);
}

RC_GTEST_PROP(HotListProperty, SleepersAreToldOfAllThatBecomesReady, ()) {
    without_floor(true);
}

void one_floor(bool told_only) {
    World w({.options = floor_options(), .page = *rc::gen::element<std::size_t>(2, 1000)});
    if (*rc::gen::arbitrary<bool>()) {
        w.warm();
    }
    const auto script = *scripts(Step::kinds);
    for (const auto& step : script) {
        run_step(w, step, {.queues = 4, .partitions = 4, .sleepers = told_only});
    }
    check_faults(w);
    end_all(w, End::leases_run_out);
    check_sizes(w);
    const bool failed = std::any_of(script.begin(), script.end(),
                                    [](const Step& step) { return step.kind == Step::fail; });
    // A walk that was under way may have read its pages before: the next one counts. Walks that
    // failed are tried again later and later.
    const auto floor = floor_options().reseed_full + 2 * World::kMostJitter;
    w.run((failed ? 2 : 1) * floor + kBounded + kLongestLease, {.told_only = told_only});
    check_drained(w);
    check_rest(w);
}

RC_GTEST_PROP(HotListProperty, NothingStaysUnreachablePastOneFloor, ()) {
    one_floor(false);
}

RC_GTEST_PROP(HotListProperty, NothingStaysAsleepPastOneFloor, ()) {
    one_floor(true);
}

RC_GTEST_PROP(HotListProperty, LookingChangesNothing, ()) {
    const Setup setup{.options = no_floor_options()};
    World plain(setup), looked_at(setup);
    plain.tracing = looked_at.tracing = true;
    for (const auto& step : *scripts(Step::kinds)) {
        run_step(plain, step);
        run_step(looked_at, step);
        for (const auto& place : looked_at.places()) {
            const auto first = looked_at.peek(place);
            const auto second = looked_at.peek(place);
            RC_ASSERT(first.state == second.state);
            RC_ASSERT(first.partitions == second.partitions);
            RC_ASSERT(first.messages == second.messages);
            RC_ASSERT(first.next_due == second.next_due);
        }
        looked_at.list->peek({looked_at.queue(0), "nobody"});
        looked_at.list->peek({{"acme\x1fnothing", "acme", "nothing"}, "g"});
    }
    RC_ASSERT(plain.trace() == looked_at.trace());
    RC_ASSERT(plain.stats() == looked_at.stats());
}

RC_GTEST_PROP(HotListProperty, PeekAndTakeAgree, ()) {
    World w({.options = no_floor_options()});
    w.warm();
    configure(w, *rc::gen::arbitrary<std::uint32_t>());
    for (const auto& step : *scripts(Step::kinds)) {
        run_step(w, step);
    }
    for (const auto& place : w.places()) {
        const auto found = w.peek(place);
        const auto pop = w.take(place);
        switch (found.state) {
        case plugin::ReadyState::ready:
            RC_ASSERT(pop->selection.pick == plugin::Pick::names);
            break;
        case plugin::ReadyState::nothing:
            RC_ASSERT(pop->selection.pick == plugin::Pick::none);
            RC_ASSERT(found.next_due > w.clock.now());
            break;
        case plugin::ReadyState::cold:
            break; // names when it has some, else the store scans
        case plugin::ReadyState::ask_store:
            RC_FAIL("a hot-list never asks the store");
        }
    }
    check_faults(w);
}

RC_GTEST_PROP(HotListProperty, WhatNobodyUsesVanishes, ()) {
    auto options = no_floor_options();
    options.idle_sweep = 10s;
    options.unserved_trim = 30s;
    World w({.options = options});
    for (const auto& step : *scripts(Step::kinds)) {
        run_step(w, step);
    }
    w.finish_walks();
    end_all(w, End::leases_run_out);
    RC_PRE(w.stranded == 0);
    // Two sweeps, the trim before them, and a sweep's spacing for each to come round.
    w.run(30s + 4 * 10s, {.walks = true, .consumers = false, .until_drained = false});
    auto stats = w.stats();
    RC_ASSERT(stats["rings"] == 0);
    RC_ASSERT(stats["queues"] == 0);
    RC_ASSERT(stats["partitions"] == 0);
    RC_ASSERT(w.next_tick() == SteadyTime::max());
    // And nothing was lost by it.
    w.run(kBounded + kLongestLease);
    check_drained(w);
}

} // namespace
} // namespace queen::hotlist::schedule
