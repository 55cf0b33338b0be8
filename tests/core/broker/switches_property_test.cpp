// Every order in which reads and sets of switches reach the database and are answered: what this
// broker knows is what the database holds as soon as everything has settled, and a set holds here
// when its answer goes out (SW-1).
#include "broker/switches.hpp"
#include "support/manual_clock.hpp"
#include "support/manual_ticker.hpp"
#include "support/scripted_system_store.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <optional>
#include <vector>

namespace queen::broker {
namespace {

using namespace std::chrono_literals;

struct Step {
    enum Kind { set, poll, elsewhere, reach, answer, lose, kinds };
    int kind;
    std::uint8_t pick;
};

std::ostream& operator<<(std::ostream& out, const Step& step) {
    static constexpr const char* kNames[] = {"set", "poll", "elsewhere", "reach", "answer", "lose"};
    return out << kNames[step.kind] << '#' << int{step.pick};
}

class World {
public:
    World() {
        store_.on_read_switches = [this](Done<SwitchStates> done) {
            calls_.push_back({std::nullopt, std::nullopt, std::move(done), {}});
        };
        store_.on_set_switch = [this](SwitchKey, bool enabled, Done<void> done) {
            calls_.push_back({enabled, std::nullopt, {}, std::move(done)});
        };
        switches_.start([](const Result<void>&) {});
    }
    ~World() { switches_.stop(); }

    void step(const Step& step) {
        switch (step.kind) {
        case Step::set:
            set(step.pick % 2 == 0);
            break;
        case Step::poll:
            ticker_.advance(60s);
            break;
        case Step::elsewhere:
            held_ = step.pick % 2 == 0;
            others_ = true;
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
        if (others_ || unread_) { // nobody tells: the next read does
            ticker_.advance(60s);
            while (!calls_.empty()) {
                answer(0, true);
            }
        }
        RC_ASSERT(switches_.pops_paused() == held_);
        RC_ASSERT(switches_.known().pop_maintenance == held_);
    }

private:
    struct Call {
        std::optional<bool> wanted;       ///< of a set
        std::optional<SwitchStates> read; ///< reached the database
        Done<SwitchStates> read_done;
        Done<void> set_done;
    };

    void set(bool paused) {
        ++asked_;
        switches_.pause_pops(paused, [this, paused](const Result<SwitchStates>& states) {
            ++answered_;
            if (states) {
                RC_ASSERT(switches_.pops_paused() == paused);
            }
        });
    }
    void reach(Call& call) {
        if (call.read) {
            return;
        }
        if (call.wanted) {
            held_ = *call.wanted;
        }
        call.read = SwitchStates{.pop_maintenance = held_};
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
            call.set_done(told ? Result<void>{} : tl::unexpected(lost));
        } else {
            unread_ = !told;
            call.read_done(told ? Result<SwitchStates>(*call.read) : tl::unexpected(lost));
        }
    }

    test::ManualClock clock_;
    test::ManualTicker ticker_{clock_};
    Parking parking_{ticker_, clock_, {}};
    test::ScriptedSystemStore store_;
    std::vector<Call> calls_; ///< under way
    bool held_ = false;       ///< by the database
    bool others_ = false;     ///< another broker set it
    bool unread_ = false;     ///< the last read that ended was lost
    int asked_ = 0, answered_ = 0;
    Switches switches_{store_, parking_, ticker_, clock_, {}};
};

rc::Gen<Step> any_step() {
    return rc::gen::build<Step>(
        rc::gen::set(&Step::kind, rc::gen::weightedElement<int>({{3, Step::set},
                                                                 {2, Step::poll},
                                                                 {1, Step::elsewhere},
                                                                 {3, Step::reach},
                                                                 {4, Step::answer},
                                                                 {1, Step::lose}})),
        rc::gen::set(&Step::pick, rc::gen::arbitrary<std::uint8_t>()));
}

RC_GTEST_PROP(Switches, WhatIsKnownIsWhatTheDatabaseHoldsOnceAllIsAnswered, ()) {
    const auto steps = *rc::gen::container<std::vector<Step>>(any_step());
    World world;
    for (const Step& step : steps) {
        world.step(step);
    }
    world.settle();
}

} // namespace
} // namespace queen::broker
