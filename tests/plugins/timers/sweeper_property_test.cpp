#include "sweeper.hpp"
#include "timer_world.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace queen::timers {
namespace {

using namespace std::chrono_literals;
using test::Fault;
using test::TimerWorld;
using Verb = TimerWorld::Verb;
using State = TimerWorld::Row::State;

struct Scene {
    explicit Scene(Options options)
        : sweeper(options, world.clock, world, [](plugin::LogLevel, std::string_view) {}) {
        world.driver = &sweeper;
        world.at_once = false;
    }

    /// One thing that may happen now, chosen by the script.
    void step(std::uint8_t choice) {
        const std::size_t which = choice / 8;
        switch (choice % 8) {
        case 0:
        case 1:
            if (world.has_call()) {
                world.take_effect(which);
            }
            return;
        case 2:
        case 3:
            if (world.has_answer()) {
                world.answer(which);
            }
            return;
        case 4: { // committed, and told a while later
            const bool poison = poison_allowed && which % 8 == 7;
            untold.push_back(world.add(which * 10ms - 50ms,
                                       poison ? "bad" : "q" + std::to_string(which % 3),
                                       std::to_string(which % 2), poison));
            return;
        }
        case 5:
            if (!untold.empty()) {
                world.tell(untold.front());
                untold.erase(untold.begin());
            }
            return;
        case 6: // time passes, but not past the ticker's next deadline
            world.clock.advance(
                std::clamp<Nanoseconds>(world.next_tick - world.clock.now(), 0s, which * 5ms));
            return;
        case 7:
            if (world.next_tick <= world.clock.now()) {
                world.tick();
            }
            return;
        }
    }
    /// Nothing is left under way, and everybody is told.
    void settle() {
        for (const auto row : untold) {
            world.tell(row);
        }
        untold.clear();
        world.run(0s);
    }
    void nothing_wrong() const {
        for (const auto& wrong : world.wrongs) {
            RC_FAIL(wrong);
        }
        RC_ASSERT(world.open_batches() == 0U);
    }

    TimerWorld world;
    Sweeper sweeper;
    std::vector<std::size_t> untold; ///< rows that were committed and not told of yet
    bool poison_allowed = false;
};

Options some_options() {
    Options options;
    options.batch = *rc::gen::inRange<std::uint32_t>(1, 6);
    options.cycle_rows = *rc::gen::inRange<std::uint32_t>(1, 20);
    options.tenant_rows = *rc::gen::inRange<std::uint32_t>(1, 4);
    options.parallelism = *rc::gen::inRange<std::uint32_t>(1, 9);
    options.fire_bytes = *rc::gen::element<std::uint64_t>(1, 250, 100'000);
    return options;
}

RC_GTEST_PROP(SweeperProperty, EachTimerIsFiredOnceOrFiledWhateverFails, ()) {
    Scene scene(some_options());
    scene.poison_allowed = true;
    const auto faults =
        *rc::gen::container<std::vector<std::uint8_t>>(rc::gen::arbitrary<std::uint8_t>());
    std::size_t asked = 0;
    scene.world.faults = [&](const TimerWorld::Call& call) {
        const std::uint8_t draw = asked < faults.size() ? faults[asked++] : 0;
        switch (draw % 8) {
        case 1:
            return Fault::transient;
        case 2: // due has no effect that could be lost
            return call.verb == Verb::due ? Fault::transient : Fault::open_end;
        case 3:
            return call.verb == Verb::claim ? Fault::config : Fault::none;
        case 4:
            return call.verb == Verb::claim || call.verb == Verb::fire ? Fault::paused
                                                                       : Fault::none;
        case 5:
            return call.verb == Verb::due || call.verb == Verb::dead_letter ? Fault::none
                                                                            : Fault::contended;
        case 6: // costs minutes
            return draw == 6 ? Fault::lost : Fault::none;
        default:
            return Fault::none;
        }
    };
    const auto script =
        *rc::gen::container<std::vector<std::uint8_t>>(rc::gen::arbitrary<std::uint8_t>());
    for (const auto choice : script) {
        scene.step(choice);
    }
    scene.settle();
    for (int tens = 0; tens < 180 && scene.world.count(State::waiting) > 0; ++tens) {
        scene.world.run(10s);
    }
    scene.world.run(Sweeper::kLostAfter + 10s); // an answer to the last look may be lost
    scene.nothing_wrong();
    for (const auto& row : scene.world.rows) {
        RC_ASSERT(row.state == (row.poison ? State::filed : State::fired));
        // More than five when nobody knew that they were used up.
        RC_ASSERT((row.poison ? row.attempts >= 5 : row.attempts == 0));
    }
}

/// Whatever the order in which commits, tells, effects, answers and ticks come, a timer that this
/// broker knows of is fired as soon as it can be: the clock stands still while calls are under way.
RC_GTEST_PROP(SweeperProperty, F39_NoWakeIsLost, ()) {
    Options options;
    options.parallelism = *rc::gen::inRange<std::uint32_t>(1, 3);
    Scene scene(options);
    scene.world.run(0s); // asleep for a second
    const auto script =
        *rc::gen::container<std::vector<std::uint8_t>>(rc::gen::arbitrary<std::uint8_t>());
    for (const auto choice : script) {
        if (choice % 8 == 6 && (scene.world.has_call() || scene.world.has_answer())) {
            continue;
        }
        scene.step(choice);
    }
    scene.settle();
    scene.world.run(400ms); // the latest is due 260 ms after its commit
    scene.nothing_wrong();
    for (const auto& row : scene.world.rows) {
        RC_ASSERT(row.state == State::fired);
        RC_ASSERT(row.fired_at - std::max(row.due, row.told) <= 4 * options.min_sleep);
    }
}

RC_GTEST_PROP(SweeperProperty, AStopAtAnyPointBeginsNothingMore, ()) {
    Scene scene(some_options());
    scene.poison_allowed = true;
    const auto script =
        *rc::gen::container<std::vector<std::uint8_t>>(rc::gen::arbitrary<std::uint8_t>());
    const auto until = *rc::gen::inRange<std::size_t>(0, script.size() + 1);
    for (std::size_t i = 0; i < until; ++i) {
        scene.step(script[i]);
    }
    scene.sweeper.stop();
    const auto calls = scene.world.calls.size();
    for (std::size_t i = until; i < script.size(); ++i) {
        scene.step(script[i]);
    }
    while (scene.world.has_call() || scene.world.has_answer()) {
        scene.world.has_call() ? scene.world.take_effect() : scene.world.answer();
    }
    scene.nothing_wrong();
    RC_ASSERT(scene.world.calls.size() == calls);
}

} // namespace
} // namespace queen::timers
