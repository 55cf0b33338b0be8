// The races of the hot-list that hurt, each as one schedule, step by step. No walk is carried out
// unless the schedule says so: what is under test is what the ring does by itself, or else the
// floor. Each is seen failing on a copy of the hot-list that lacks what it tests
// (schedule_broken.cmake).
#pragma once
#include "schedule_world.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace queen::hotlist::schedule {

using namespace std::chrono_literals;
using plugin::ReadyState;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

inline constexpr auto kOrders = World::kAcmeOrders;
inline const Place kG{kOrders, "g"};
inline const Place kH{kOrders, "h"};
inline constexpr auto kLongLease = 10min;
/// What a lost release may cost (the cap of a lease park), and the spacing of ticks.
inline constexpr auto kRevisit = 1000ms + 100ms;

inline Options quiet_options() {
    Options options;
    options.idle_sweep = 0ns; // a sweep is not what these are about
    options.unserved_trim = 0ns;
    return options;
}

class HotListSchedule : public testing::Test {
protected:
    HotListSchedule() { w.warm(); }
    void TearDown() override { EXPECT_THAT(w.faults(), IsEmpty()); }

    /// Time passes, nobody pops, walks are asked for and lie in w.walks().
    void pass(Nanoseconds span) {
        w.run(span, {.walks = false, .consumers = false, .until_drained = false});
    }
    /// Time passes with consumers that look when the ring says so. @return all is delivered
    bool deliver(Nanoseconds span) {
        w.run(span, {.walks = false});
        return w.drained();
    }
    /// The same with consumers that sleep until they are told.
    bool deliver_to_sleepers(Nanoseconds span, bool walks = false) {
        w.run(span, {.told_only = true, .walks = walks});
        return w.drained();
    }
    /// The walk of g's floor, asked for and not yet begun.
    std::size_t ask_floor() {
        pass(30s + World::kMostJitter + 1s);
        for (std::size_t i = 0; i < w.walks().size(); ++i) {
            if (w.walks()[i].place == kG) {
                return i;
            }
        }
        ADD_FAILURE() << "no floor within its interval";
        return 0;
    }
    /// The lease of the only batch of a pop.
    Batch lease(const std::vector<Batch>& batches) {
        EXPECT_THAT(batches, SizeIs(1));
        return batches.empty() ? Batch{} : batches.front();
    }

    World w{{.options = quiet_options()}};
};

} // namespace queen::hotlist::schedule
