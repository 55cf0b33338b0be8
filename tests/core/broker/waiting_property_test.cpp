// Every interleaving of push, wake, look, park, pop and a waiter's death that a seeded scheduler
// can find, one step at a time over the real PopTurn and Parking. Stress does not find these races.
#include "broker/pop_turn.hpp"
#include "model/names.hpp"
#include "support/manual_clock.hpp"
#include "support/manual_ticker.hpp"
#include "support/manual_workers.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace queen::broker {
namespace {

using namespace std::chrono_literals;

const std::string kGate = queue_key(kDefaultTenant, "orders");
constexpr std::size_t kGroups = 2;

std::string group_name(std::size_t g) {
    return "g" + std::to_string(g);
}

/// What the scheduler may do next.
struct Step {
    enum Kind {
        pop,      ///< a new waiting pop of a group
        commit,   ///< units become ready for every group; the wake is a step of its own
        announce, ///< the oldest wake goes out
        work,     ///< a posted task runs
        claim,    ///< a look under way reads the store
        answer,   ///< a look that has read returns
        die,      ///< a pop's client goes
        release,  ///< a lease of one group ends; again the wake follows later
        quiet,    ///< the coalescing time passes
        kinds
    };
    int kind;
    std::uint8_t pick; ///< which of several
};

std::ostream& operator<<(std::ostream& out, const Step& step) {
    static constexpr const char* kNames[] = {"pop",    "commit", "announce", "work", "claim",
                                             "answer", "die",    "release",  "quiet"};
    return out << kNames[step.kind] << '#' << int{step.pick};
}

/// The broker's parking with a store that is a counter per group.
class World {
public:
    explicit World(Backoff backoff) : parking(ticker, clock, backoff) {}
    ~World() {
        parking.close();
        settle();
    }

    /// Pops that have looked, found nothing and sleep.
    void park(std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            start_pop(i % kGroups, need_of(i));
        }
        settle();
    }

    void run(const Step& step) {
        switch (step.kind) {
        case Step::pop:
            start_pop(step.pick % kGroups, need_of(step.pick));
            break;
        case Step::commit: {
            const std::uint64_t units = 1 + step.pick % 3;
            for (auto& ready : ready_) {
                ready += units;
            }
            // A narrow wake is legal: the chain has to reach the rest.
            wakes_.push_back({"", 1 + step.pick % units, step.pick % 4 != 0});
            break;
        }
        case Step::announce:
            if (!wakes_.empty()) {
                announce();
            }
            break;
        case Step::work:
            if (workers.pending() > 0) {
                workers.run_one(step.pick % workers.pending());
            }
            break;
        case Step::claim:
            if (!looking_.empty()) {
                claim(looking_[step.pick % looking_.size()]);
            }
            break;
        case Step::answer:
            if (!looking_.empty()) {
                answer(step.pick % looking_.size());
            }
            break;
        case Step::die:
            die(step.pick);
            break;
        case Step::release: {
            const auto g = step.pick % kGroups;
            ready_[g] += 1;
            wakes_.push_back({group_name(g), 1, false});
            break;
        }
        case Step::quiet:
            ticker.advance(Parking::kCoalesce);
            break;
        default:
            RC_FAIL("no such step");
        }
    }

    /// Everything under way comes to its end; no floor timer is reached.
    void settle() {
        for (bool moved = true; moved;) {
            moved = false;
            while (!wakes_.empty()) {
                announce();
                moved = true;
            }
            while (workers.run_one()) {
                moved = true;
            }
            while (!looking_.empty()) {
                claim(looking_.front());
                answer(0);
                moved = true;
            }
            if (ticker.advance(Parking::kCoalesce) > 0) {
                moved = true;
            }
        }
    }

    /// The property: no group has what a pop of it waits for while that pop only sleeps.
    bool ready_but_asleep() const {
        return std::any_of(turns_.begin(), turns_.end(), [&](const auto& popper) {
            return !popper->ended && ready_[popper->group] >= popper->need;
        });
    }
    /// And once every wait for more is over: none has anything.
    bool anything_left_to_sleepers() const {
        return std::any_of(turns_.begin(), turns_.end(), [&](const auto& popper) {
            return !popper->ended && ready_[popper->group] > 0;
        });
    }
    std::uint64_t ready() const { return ready_[0] + ready_[1]; }

    std::size_t waiting(std::size_t g) const {
        std::size_t count = 0;
        for (const auto& turn : turns_) {
            count += turn->group == g && !turn->ended ? 1 : 0;
        }
        return count;
    }

    bool lose_wakes = false; ///< announced wakes vanish: only the floor is left
    bool patient = false;    ///< every other pop wants several units and waits for them
    Nanoseconds timeout = 24h;
    static constexpr auto kPatience = 10min;

    test::ManualClock clock;
    test::ManualTicker ticker{clock};
    test::ManualWorkers workers;
    Parking parking;

private:
    struct Popper {
        std::size_t group;
        std::uint64_t need = 1;
        std::uint64_t got = 0;
        std::optional<SteadyTime> filling;
        std::shared_ptr<PopTurn> turn;
        bool ended = false;
        bool dead = false;
    };
    struct Looking {
        std::shared_ptr<Popper> popper;
        std::function<void(LookOutcome)> done;
        std::optional<LookOutcome> read;
    };
    struct Wake {
        std::string group;
        std::uint64_t count;
        bool coalesced;
    };

    /// In line 4, 3, 2, 1, 4, ...: who needs least does not come first anyway.
    std::uint64_t need_of(std::size_t pick) const { return patient ? 4 - pick / kGroups % 4 : 1; }

    void start_pop(std::size_t g, std::uint64_t need) {
        auto popper = std::make_shared<Popper>();
        popper->group = g;
        popper->need = need;
        const WaitScope scope{.gate = kGate, .group = group_name(g), .partition = {}, .labels = {}};
        const PopTurn::Waiting waiting{.wait = true, .deadline = clock.now() + timeout};
        popper->turn = std::make_shared<PopTurn>(
            parking, workers, ticker, clock, scope, waiting,
            [this, weak = std::weak_ptr(popper)](bool, std::function<void(LookOutcome)> done) {
                looking_.push_back({weak.lock(), std::move(done), {}});
            },
            [this, weak = std::weak_ptr(popper)](PopTurn::End end, const std::optional<Error>&) {
                ended(weak.lock(), end);
            });
        turns_.push_back(popper);
        workers.post([turn = popper->turn] { turn->start(); });
    }

    void claim(Looking& looking) {
        if (looking.read) {
            return;
        }
        auto& ready = ready_[looking.popper->group];
        auto& filling = looking.popper->filling;
        LookOutcome outcome;
        if (ready > 0 && ready < looking.popper->need) {
            filling = filling.value_or(clock.now() + std::min<Nanoseconds>(kPatience, timeout));
            if (clock.now() < *filling) {
                outcome.hold_until = filling;
                outcome.need = looking.popper->need;
                looking.read = outcome;
                return;
            }
        }
        filling.reset();
        outcome.took = ready > 0;
        looking.popper->got = std::min(ready, looking.popper->need);
        ready -= looking.popper->got;
        outcome.more = ready > 0;
        looking.read = outcome;
    }

    void answer(std::size_t index) {
        if (!looking_[index].read) {
            return;
        }
        const auto looking = std::move(looking_[index]);
        looking_.erase(looking_.begin() + static_cast<std::ptrdiff_t>(index));
        looking.done(*looking.read);
    }

    void die(std::size_t pick) {
        std::vector<std::shared_ptr<Popper>> alive;
        std::copy_if(turns_.begin(), turns_.end(), std::back_inserter(alive),
                     [](const auto& popper) { return !popper->ended && !popper->dead; });
        if (!alive.empty()) {
            const auto& popper = alive[pick % alive.size()];
            popper->dead = true;
            popper->turn->abandon();
        }
    }

    void ended(const std::shared_ptr<Popper>& popper, PopTurn::End end) {
        popper->ended = true;
        if (end == PopTurn::End::taken && popper->dead) {
            // The answer cannot be delivered: the batch goes back, and that is announced.
            ready_[popper->group] += popper->got;
            wakes_.push_back({group_name(popper->group), 1, false});
        }
    }

    void announce() {
        const auto wake = wakes_.front();
        wakes_.erase(wakes_.begin());
        if (lose_wakes) {
            return;
        }
        parking.wake(kGate, wake.group, {}, wake.count,
                     wake.coalesced ? Parking::Urgency::coalesced : Parking::Urgency::at_once);
    }

    std::array<std::uint64_t, kGroups> ready_{};
    std::vector<std::shared_ptr<Popper>> turns_;
    std::vector<Looking> looking_;
    std::vector<Wake> wakes_;
};

rc::Gen<std::vector<Step>> scripts() {
    // Few new pops: each one looks on its own and would repair what a lost wake left behind.
    const auto kind = rc::gen::weightedElement<int>({{1, Step::pop},
                                                     {3, Step::commit},
                                                     {3, Step::announce},
                                                     {6, Step::work},
                                                     {4, Step::claim},
                                                     {4, Step::answer},
                                                     {3, Step::die},
                                                     {1, Step::release},
                                                     {1, Step::quiet}});
    return rc::gen::container<std::vector<Step>>(
        rc::gen::construct<Step>(kind, rc::gen::arbitrary<std::uint8_t>()));
}

/// A floor far away: what is under test are the wakes, not the rescue.
constexpr Backoff kNoFloor{
    .initial = 3'600'000ms, .threshold = 3, .multiplier = 2.0, .max = 3'600'000ms};

RC_GTEST_PROP(Waiting, NoScheduleLeavesAReadyScopeWithOnlySleepers, ()) {
    World world(kNoFloor);
    world.park(*rc::gen::inRange<std::size_t>(0, 12));
    for (const auto& step : *scripts()) {
        world.run(step);
    }
    world.settle();
    RC_ASSERT(!world.ready_but_asleep());
}

// MW-1: who waits for a fuller batch keeps nothing from those who do not, is told as soon as there
// is enough, and takes what there is when its time is over.
RC_GTEST_PROP(Waiting, AWaitForMoreStarvesNobodyAndEnds, ()) {
    World world(kNoFloor);
    world.patient = true;
    world.park(*rc::gen::inRange<std::size_t>(0, 16));
    for (const auto& step : *scripts()) {
        world.run(step);
    }
    world.settle();
    RC_ASSERT(!world.ready_but_asleep());
    world.ticker.advance(World::kPatience);
    world.settle();
    RC_ASSERT(!world.anything_left_to_sleepers());
}

TEST(WaitingSteps, WhoNeedsLeastOfThoseWhoAreHeldComesFirst) {
    World world(kNoFloor);
    world.patient = true;
    world.park(6); // 4, 3 and 2 in each group
    for (int i = 0; i < 2; ++i) {
        world.run({Step::commit, 0});
        world.settle();
    }
    EXPECT_EQ(world.waiting(0), 2u);
    EXPECT_EQ(world.waiting(1), 2u);
    EXPECT_EQ(world.ready(), 0u);
}

// The caller's deadline ends the wait, and with what there is rather than with nothing.
RC_GTEST_PROP(Waiting, ADeadlineDuringAWaitForMoreDeliversWhatThereIs, ()) {
    World world(kNoFloor);
    world.patient = true;
    world.timeout = 1min;
    world.park(4 + *rc::gen::inRange<std::size_t>(0, 12));
    for (const auto& step : *scripts()) {
        world.run(step);
    }
    world.settle();
    const bool some_wait = world.waiting(0) + world.waiting(1) > 0;
    const auto before = world.ready();
    const bool held = world.anything_left_to_sleepers();
    world.ticker.advance(1min);
    world.settle();
    RC_ASSERT(world.waiting(0) + world.waiting(1) == 0u);
    RC_ASSERT(!some_wait || !held || world.ready() < before);
}

RC_GTEST_PROP(Waiting, TheFloorFindsWhatNoWakeAnnounced, ()) {
    World world(Backoff{});
    world.lose_wakes = true;
    world.park(*rc::gen::inRange<std::size_t>(0, 12));
    for (const auto& step : *scripts()) {
        world.run(step);
    }
    world.settle();
    // One floor interval, then whoever it resumed chains to the rest.
    world.ticker.advance(Backoff{}.max);
    world.settle();
    RC_ASSERT(!world.ready_but_asleep());
}

} // namespace
} // namespace queen::broker
