// What a seeded scheduler may let happen next in a World, and scripts of it that rapidcheck
// shrinks.
#pragma once
#include "schedule_world.hpp"

#include <rapidcheck.h>

namespace queen::hotlist::schedule {

struct Step {
    enum Kind {
        commit,         ///< a push commits; its mark is a step of its own
        hint,           ///< a mark for a partition that may have nothing new
        tell,           ///< something that happened is told: mark, release, forget, configuration
        take,           ///< a pop gets its names
        begin,          ///< its statement begins
        claim,          ///< its statement runs
        settle,         ///< its verdicts arrive
        drop,           ///< it dies, and settles without any
        ack,            ///< a batch is completed
        ack_some,       ///< its beginning is, the rest is given back
        ack_keep,       ///< its beginning is, the lease stays
        nack,           ///< all of it is given back
        lose,           ///< its consumer is gone: it runs out
        lock,           ///< another session holds a row
        unlock,         ///< and no longer
        pinned,         ///< a pop that names its partition takes and leases
        tick,           ///< the tick, due or not
        pass,           ///< time passes without a tick
        pass_and_tick,  ///< time passes, ticks come when due
        peek,           ///< somebody looks whether there is something
        wake_up,        ///< a consumer that was told looks, and sleeps again
        eat_elsewhere,  ///< another broker's consumer takes and completes all
        read,           ///< a walk reads a page; from here on the floor is needed
        apply,          ///< which arrives
        fail,           ///< a walk fails
        strand,         ///< a pop dies and nobody settles
        push_elsewhere, ///< a mark is lost
        lose_event,     ///< something is never told
        forget_group,   ///< deleted, with its cursors
        forget_queue,   ///< deleted, with its partitions
        configure,      ///< other delay, other window
        kinds,
        first_harmful = read ///< it, or what follows, loses what only a floor finds again
    };
    int kind;
    std::uint32_t pick; ///< which of several, and how much
};

inline std::ostream& operator<<(std::ostream& out, const Step& step) {
    static constexpr std::array<const char*, Step::kinds> kNames{
        "commit",   "hint",           "tell",       "take",          "begin",
        "claim",    "settle",         "drop",       "ack",           "ack_some",
        "ack_keep", "nack",           "lose",       "lock",          "unlock",
        "pinned",   "tick",           "pass",       "pass_and_tick", "peek",
        "wake_up",  "eat_elsewhere",  "read",       "apply",         "fail",
        "strand",   "push_elsewhere", "lose_event", "forget_group",  "forget_queue",
        "configure"};
    return out << kNames[static_cast<std::size_t>(step.kind)] << '#' << step.pick;
}

/// Splits one number into small choices.
class Choice {
public:
    explicit Choice(std::uint32_t pick) : pick_(pick) {}
    std::size_t of(std::size_t count) {
        const auto chosen = pick_ % count;
        pick_ /= static_cast<std::uint32_t>(count);
        return chosen;
    }

private:
    std::uint32_t pick_;
};

inline std::string partition_name(std::size_t queue, std::size_t number) {
    if (number % 2 == 0) {
        return "p" + std::to_string(number); // both tenants have these
    }
    return (queue % 2 == 0 ? "acme-only-" : "blue-only-") + std::to_string(number);
}

/// The fewer names, the more often a race meets the same one.
struct Rules {
    std::size_t queues = 1;     ///< of them the first two are of two tenants
    std::size_t partitions = 2; ///< of each
    bool sleepers = false;     ///< the places' own consumers look when told, also during the script
    bool consumers_die = true; ///< their leases run out
    Nanoseconds short_lease = std::chrono::milliseconds(500);
    Nanoseconds lease = std::chrono::seconds(6); ///< of every second pop
};

inline void run_step(World& w, const Step& step, const Rules& rules = {}) {
    using namespace std::chrono_literals;
    constexpr std::array<Nanoseconds, 6> kTimes{1ms, 60ms, 260ms, 700ms, 1300ms, 4s};
    Choice choice(step.pick);
    const auto queue = [&] { return choice.of(rules.queues); };
    const auto place = [&] { return w.places()[choice.of(2 * rules.queues)]; };
    const auto partition = [&](std::size_t q) {
        return partition_name(q, choice.of(rules.partitions));
    };
    const auto some_pop = [&](auto eligible) -> PopPtr {
        std::vector<PopPtr> fit;
        std::copy_if(w.pops.begin(), w.pops.end(), std::back_inserter(fit), eligible);
        return fit.empty() ? nullptr : fit[choice.of(fit.size())];
    };
    const auto some_batch = [&](auto act) {
        if (!w.batches.empty()) {
            act(Batch(w.batches[choice.of(w.batches.size())]));
        }
    };
    const auto some_walk = [&](bool read, auto act) {
        std::vector<std::size_t> fit;
        for (std::size_t i = 0; i < w.walks().size(); ++i) {
            if (w.walks()[i].page.has_value() == read) {
                fit.push_back(i);
            }
        }
        if (!fit.empty()) {
            act(fit[choice.of(fit.size())]);
        }
    };
    switch (step.kind) {
    case Step::commit: {
        const auto q = queue();
        const auto frames =
            choice.of(3) == 0 ? 120 : 1 + choice.of(3); // also beyond a window batch
        const auto origin = choice.of(4) == 0 ? plugin::Origin::transaction : plugin::Origin::push;
        w.commit(q, partition(q), frames, origin);
        break;
    }
    case Step::hint: {
        const auto p = place();
        const auto name = partition(p.queue);
        if (const auto id = w.store.id_of(p.queue, name); id.known()) {
            w.events().push_back({.kind = Event::mark,
                                  .queue = p.queue,
                                  .group = choice.of(2) == 0 ? p.group : "",
                                  .partition = name,
                                  .id = id,
                                  .frames = 1,
                                  .origin = plugin::Origin::peer});
        }
        break;
    }
    case Step::tell:
        if (!w.events().empty()) {
            w.tell(choice.of(w.events().size()));
        }
        break;
    case Step::take: {
        const auto p = place();
        ClaimArgs args{.messages = choice.of(2) == 0 ? 2u : 200u};
        args.partitions = choice.of(2) == 0 ? 1 : 3;
        args.auto_ack = choice.of(3) == 0;
        args.lease = choice.of(2) == 0 ? rules.short_lease : rules.lease;
        w.take(p, args, static_cast<std::uint32_t>(choice.of(2)));
        break;
    }
    case Step::begin:
        if (const auto pop = some_pop([](const PopPtr& p) { return !p->seen; })) {
            w.begin(*pop);
        }
        break;
    case Step::claim:
        if (const auto pop = some_pop([](const PopPtr& p) { return p->seen && !p->answers; })) {
            w.claim(*pop);
        }
        break;
    case Step::settle:
        if (const auto pop = some_pop([](const PopPtr& p) { return p->answers.has_value(); })) {
            w.settle(pop);
        }
        break;
    case Step::drop:
        if (const auto pop = some_pop([](const PopPtr&) { return true; })) {
            w.drop(pop);
        }
        break;
    case Step::ack:
        some_batch([&](const Batch& b) { w.ack(b); });
        break;
    case Step::ack_some:
        some_batch([&](const Batch& b) { w.ack(b, 1); });
        break;
    case Step::ack_keep:
        some_batch([&](const Batch& b) { w.ack(b, 1, true); });
        break;
    case Step::nack:
        some_batch([&](const Batch& b) { w.nack(b); });
        break;
    case Step::lose:
        if (rules.consumers_die) {
            some_batch([&](const Batch& b) { w.lose(b); });
        }
        break;
    case Step::lock: {
        const auto p = place();
        w.store.lock_row(p.queue, p.group, partition(p.queue));
        break;
    }
    case Step::unlock:
        w.store.unlock_rows();
        break;
    case Step::pinned: {
        const auto p = place();
        w.pinned(p, partition(p.queue),
                 {.messages = 1, .lease = rules.lease, .auto_ack = choice.of(2) == 0});
        break;
    }
    case Step::tick:
        w.tick();
        break;
    case Step::pass: {
        w.advance(kTimes[choice.of(kTimes.size())]);
        // The database's clock is another one.
        w.store.advance(choice.of(2) == 0 ? Nanoseconds(3ms) : Nanoseconds(-3ms));
        break;
    }
    case Step::pass_and_tick:
        w.run(kTimes[choice.of(kTimes.size())],
              {.walks = false, .consumers = false, .until_drained = false});
        break;
    case Step::peek:
        w.peek(place());
        w.list->peek({{"acme\x1fnobody", "acme", "nobody"}, "g"});
        w.list->peek({w.queue(queue()), "nobody"});
        break;
    case Step::wake_up:
        if (rules.sleepers) {
            w.look_if_told(choice.of(2 * rules.queues));
        }
        break;
    case Step::read:
        some_walk(false, [&](std::size_t i) { w.read(w.walks()[i]); });
        break;
    case Step::apply:
        some_walk(true, [&](std::size_t i) { w.apply(i); });
        break;
    case Step::fail:
        if (!w.walks().empty()) {
            w.fail(choice.of(w.walks().size()));
        }
        break;
    case Step::strand:
        if (const auto pop = some_pop([](const PopPtr&) { return true; })) {
            w.strand(pop);
        }
        break;
    case Step::push_elsewhere: {
        const auto q = queue();
        w.push_elsewhere(q, partition(q), 1 + choice.of(3));
        break;
    }
    case Step::eat_elsewhere:
        w.consume_elsewhere(place());
        break;
    case Step::lose_event:
        // A group or queue that was deleted is always told to the broker that did it.
        if (!w.events().empty() && w.events().front().kind != Event::forget) {
            w.events().pop_front();
        }
        break;
    case Step::forget_group: {
        const auto p = place();
        w.store.delete_group(p.queue, p.group);
        w.events().push_back({.kind = Event::forget, .queue = p.queue, .group = p.group});
        break;
    }
    case Step::forget_queue: {
        const auto q = queue();
        w.store.delete_queue(q);
        w.events().push_back({.kind = Event::forget, .queue = q});
        break;
    }
    case Step::configure: {
        const auto q = queue();
        w.store.configure(q, choice.of(2) == 0 ? 0s : 2s, choice.of(2) == 0 ? 0s : 1s);
        w.events().push_back({.kind = Event::configured,
                              .queue = q,
                              .config = {w.store.delay(q), w.store.window(q), w.clock.now()}});
        break;
    }
    default:
        RC_FAIL("no such step");
    }
}

/// `most`: the kinds below it.
inline rc::Gen<std::vector<Step>> scripts(int most) {
    std::vector<int> kinds;
    const auto add = [&](int kind, int weight) {
        if (kind < most) {
            kinds.insert(kinds.end(), static_cast<std::size_t>(weight), kind);
        }
    };
    for (int kind = 0; kind < most; ++kind) {
        add(kind, 1);
    }
    add(Step::commit, 5);
    add(Step::tell, 9);
    add(Step::take, 7);
    add(Step::begin, 6);
    add(Step::claim, 7);
    add(Step::settle, 7);
    add(Step::ack, 4);
    add(Step::nack, 1);
    add(Step::wake_up, 3);
    add(Step::pass, 3);
    add(Step::pass_and_tick, 5);
    add(Step::read, 2);
    add(Step::apply, 2);
    return rc::gen::container<std::vector<Step>>(
        rc::gen::construct<Step>(rc::gen::elementOf(kinds), rc::gen::arbitrary<std::uint32_t>()));
}

} // namespace queen::hotlist::schedule
