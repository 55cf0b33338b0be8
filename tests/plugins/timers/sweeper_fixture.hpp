#pragma once
#include "sweeper.hpp"
#include "timer_world.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace queen::timers {

/// A sweeper over a store in memory.
class SweeperTest : public testing::Test {
protected:
    void start(Options options = {}) {
        sweeper_ = std::make_unique<Sweeper>(options, world_.clock, world_,
                                             [this](plugin::LogLevel level, std::string_view line) {
                                                 lines_.emplace_back(level, line);
                                             });
        world_.driver = sweeper_.get();
    }
    std::map<std::string, double> stats() {
        struct Taken final : plugin::Stats {
            void add(std::string_view name, double value) override {
                values[std::string(name)] = value;
            }
            std::map<std::string, double> values;
        } taken;
        sweeper_->stats(taken);
        return taken.values;
    }
    /// Sleep that the driver asks for after one cycle from now.
    Nanoseconds sleep_of_a_cycle() {
        world_.clock.advance(std::chrono::hours(1)); // past any wake
        world_.tick();
        return world_.next_tick - world_.clock.now();
    }
    /// One timer is claimed, and the driver does not know yet.
    void claim_unanswered() {
        start();
        world_.at_once = false;
        world_.add(Nanoseconds{0});
        world_.tick();
        world_.take_effect();
        world_.answer();
        world_.take_effect();
    }
    std::vector<test::TimerWorld::Call> of(test::TimerWorld::Verb verb) const {
        std::vector<test::TimerWorld::Call> found;
        for (const auto& call : world_.calls) {
            if (call.verb == verb) {
                found.push_back(call);
            }
        }
        return found;
    }
    void TearDown() override {
        EXPECT_THAT(world_.wrongs, testing::IsEmpty());
        EXPECT_EQ(world_.open_batches(), 0U) << "each batch is released";
    }

    test::TimerWorld world_;
    std::unique_ptr<Sweeper> sweeper_;
    std::vector<std::pair<plugin::LogLevel, std::string>> lines_;
};

} // namespace queen::timers
