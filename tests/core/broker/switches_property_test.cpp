// Every order in which reads and sets of switches reach the database and are answered, also while
// one of them is being told: what this broker knows is what the database holds as soon as
// everything has settled, and a set holds here when its answer goes out (SWI-1). What another
// broker set and said so is known without waiting for the next poll.
#include "broker/switches.hpp"
#include "support/manual_clock.hpp"
#include "support/manual_ticker.hpp"
#include "support/scripted_system_store.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace queen::broker {
namespace {

using namespace std::chrono_literals;

struct Step {
    enum Kind { set, poll, elsewhere, hinted, reach, answer, lose };
    int kind;
    std::uint8_t pick;
};

std::ostream& operator<<(std::ostream& out, const Step& step) {
    static constexpr const char* kNames[] = {"set",   "poll",   "elsewhere", "hinted",
                                             "reach", "answer", "lose"};
    return out << kNames[step.kind] << '#' << int{step.pick};
}

class World {
public:
    World() {
        store_.on_read_switches = [this](Done<SwitchStates> done) {
            calls_.push_back({std::nullopt,
                              std::nullopt,
                              std::move(done),
                              {},
                              ++number_,
                              sets_answered_,
                              false});
        };
        store_.on_set_switch = [this](SwitchKey key, bool enabled, Done<void> done) {
            calls_.push_back(
                {Wanted{key, enabled}, std::nullopt, {}, std::move(done), 0, 0, false});
        };
        switches_.start([](const Result<void>&) {});
    }
    ~World() { switches_.stop(); }

    void run(const std::vector<Step>& steps) {
        for (next_ = steps.begin(), end_ = steps.end(); next_ != end_;) {
            step(*next_++);
        }
        settle();
    }

private:
    void step(const Step& step) {
        switch (step.kind) {
        case Step::set:
            set(wanted(step.pick));
            break;
        case Step::poll:
            ticker_.advance(60s);
            break;
        case Step::elsewhere:
            put(held_, wanted(step.pick));
            ++set_elsewhere_;
            unknown_ = true;
            outdate();
            break;
        case Step::hinted:
            put(held_, wanted(step.pick));
            ++set_elsewhere_;
            hinted_ = number_;
            switches_.refresh();
            break;
        case Step::reach:
            if (!calls_.empty()) {
                reach(calls_[step.pick % calls_.size()]);
            }
            break;
        case Step::answer:
            answer(step.pick, true);
            break;
        default:
            answer(step.pick, false);
        }
    }

    void settle() {
        while (!calls_.empty()) {
            answer(0, true);
        }
        RC_ASSERT(asked_ == answered_);
        if (unknown_) { // nobody tells: the next read does
            ticker_.advance(60s);
            while (!calls_.empty()) {
                answer(0, true);
            }
        }
        RC_ASSERT(switches_.known() == held_);
        RC_ASSERT(switches_.pops_paused() == held_.pop_maintenance);
        RC_ASSERT(switches_.timers_schedule() == held_.timers_schedule);
        RC_ASSERT(switches_.timers_fire() == held_.timers_fire);
    }

    /// Others go on while a line is logged.
    void in_between() {
        if (std::exchange(nested_, true)) {
            return;
        }
        for (int i = 0; i < 3 && next_ != end_; ++i) {
            step(*next_++);
        }
        nested_ = false;
    }

    struct Wanted {
        SwitchKey key;
        bool enabled;
    };
    static Wanted wanted(std::uint8_t pick) {
        static constexpr SwitchKey kKeys[] = {SwitchKey::pop_maintenance,
                                              SwitchKey::timers_schedule, SwitchKey::timers_fire};
        return {kKeys[pick / 2 % std::size(kKeys)], pick % 2 == 0};
    }
    static bool& of(SwitchStates& states, SwitchKey key) {
        return key == SwitchKey::pop_maintenance   ? states.pop_maintenance
               : key == SwitchKey::timers_schedule ? states.timers_schedule
                                                   : states.timers_fire;
    }
    static void put(SwitchStates& states, Wanted what) { of(states, what.key) = what.enabled; }

    struct Call {
        std::optional<Wanted> wanted;     ///< of a set
        std::optional<SwitchStates> read; ///< reached the database
        Done<SwitchStates> read_done;
        Done<void> set_done;
        int number;        ///< of a read, in the order of asking
        int sets_answered; ///< when it was asked
        bool fresh;        ///< nothing changed since it reached the database
    };

    void outdate() {
        for (Call& call : calls_) {
            call.fresh = false;
        }
    }

    void set(Wanted what) {
        ++asked_;
        const auto answered = [this, what, elsewhere = set_elsewhere_](const auto& states) {
            ++answered_;
            if (states && elsewhere == set_elsewhere_) {
                auto known = switches_.known();
                RC_ASSERT(of(known, what.key) == what.enabled);
            }
        };
        switches_.set(what.key, what.enabled, answered);
    }
    void reach(Call& call) {
        if (call.read) {
            return;
        }
        if (call.wanted) {
            put(held_, *call.wanted);
            outdate();
        }
        call.fresh = true;
        call.read = held_;
    }
    /// @param told false: the link went, before or after the database was reached
    void answer(std::size_t pick, bool told) {
        if (calls_.empty()) {
            return;
        }
        const auto at = calls_.begin() + static_cast<std::ptrdiff_t>(pick % calls_.size());
        if (told) {
            reach(*at);
        }
        const Call call = std::move(*at);
        calls_.erase(at);
        const Error lost{Errc::unavailable, "the link went", {}};
        if (call.wanted) {
            ++sets_answered_;
            set_lost_ = set_lost_ || !told;
            call.set_done(told ? Result<void>{} : tl::unexpected(lost));
        } else {
            // What a read tells is known from then on, if no set went between and no later read
            // told more.
            const bool setting = std::any_of(calls_.begin(), calls_.end(),
                                             [](const Call& other) { return other.wanted; });
            if (told && !setting && call.sets_answered == sets_answered_ && call.number > told_) {
                told_ = call.number;
                unknown_ = !call.fresh;
                set_lost_ = false;
                hinted_ = call.number > hinted_ ? kNever : hinted_;
            }
            unknown_ = unknown_ || (!told && set_lost_);
            if (!told && hinted_ != kNever) { // as if nobody had said so
                hinted_ = kNever;
                unknown_ = true;
                outdate();
            }
            call.read_done(told ? Result<SwitchStates>(*call.read) : tl::unexpected(lost));
        }
    }

    test::ManualClock clock_;
    test::ManualTicker ticker_{clock_};
    Parking parking_{ticker_, clock_, {}};
    test::ScriptedSystemStore store_;
    std::vector<Call> calls_; ///< under way
    SwitchStates held_;       ///< by the database
    bool set_lost_ = false;   ///< and no read told since
    bool unknown_ = false; ///< another broker set it, or a lost set was not read; till a read tells
    int number_ = 0, told_ = 0, sets_answered_ = 0;
    static constexpr int kNever = -1;
    int hinted_ = kNever; ///< reads asked for when another broker said so; till one of later tells
    int set_elsewhere_ = 0; ///< times
    int asked_ = 0, answered_ = 0;
    std::vector<Step>::const_iterator next_, end_;
    bool nested_ = false;
    Switches switches_{store_,
                       parking_,
                       ticker_,
                       clock_,
                       {.log = [this](const std::string&) { in_between(); },
                        .was_set = [this](SwitchKey, bool) { in_between(); }}};
};

rc::Gen<Step> any_step() {
    return rc::gen::build<Step>(
        rc::gen::set(&Step::kind, rc::gen::weightedElement<int>({{3, Step::set},
                                                                 {2, Step::poll},
                                                                 {1, Step::elsewhere},
                                                                 {1, Step::hinted},
                                                                 {3, Step::reach},
                                                                 {4, Step::answer},
                                                                 {1, Step::lose}})),
        rc::gen::set(&Step::pick, rc::gen::arbitrary<std::uint8_t>()));
}

RC_GTEST_PROP(Switches, WhatIsKnownIsWhatTheDatabaseHoldsOnceAllIsAnswered, ()) {
    const auto steps = *rc::gen::container<std::vector<Step>>(any_step());
    World world;
    world.run(steps);
}

} // namespace
} // namespace queen::broker
