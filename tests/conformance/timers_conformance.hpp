// tests/conformance/timers_conformance.hpp - what every driver of timers must keep to, whoever
// wrote it: what is due is fired once, nobody's trouble is counted against a timer but its own, and
// after stop() there is silence. Depends on the public plugin headers and GoogleTest alone, so a
// vendor adds timers_conformance.cpp to a test program and instantiates the suite:
//
//     INSTANTIATE_TEST_SUITE_P(Beat, TimersConformance, testing::Values(TimersSubject{"Class",
//         [](std::shared_ptr<ScriptedTimers> store, std::shared_ptr<ManualClock> clock) {
//             return LoadedDriver{std::make_shared<Beat>(Options{}, *clock, *store), nullptr, {}};
//         }}), timers_name_of);
#pragma once
#include "scripted_timers.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>

namespace queen::conformance {

struct LoadedDriver {
    std::shared_ptr<plugin::TimerDriver> driver;
    std::shared_ptr<void> keeps;         ///< whatever must outlive the driver, or nullptr
    std::function<std::string()> faults; ///< what the host counted against it, "" for none
};

struct TimersSubject {
    std::string name; ///< letters and digits
    /// A new driver that asks this store and reads this clock.
    std::function<LoadedDriver(std::shared_ptr<ScriptedTimers>,
                               std::shared_ptr<plugin::ManualClock>)>
        load;
    friend std::ostream& operator<<(std::ostream& out, const TimersSubject& subject) {
        return out << subject.name;
    }
};

inline std::string timers_name_of(const testing::TestParamInfo<TimersSubject>& info) {
    return info.param.name;
}

class TimersConformance : public testing::TestWithParam<TimersSubject> {
protected:
    void SetUp() override { load(); }
    void TearDown() override { finish(); }
    void load();
    void finish(); ///< stops the driver and looks for what it did wrong

    plugin::TimerDriver& driver() { return *loaded_.driver; }
    ScriptedTimers& store() { return *store_; }
    /// Rows of destinations of their own that have been due for a second; `change` makes them
    /// special.
    void add_overdue(int count, const std::function<void(int, ScriptedTimers::Row&)>& change);
    /// One answer, or, when none waits, time goes on to the next tick.
    void step();
    /// Steps until it holds. @return false when it does not within that much of the driver's time
    bool run(const std::function<bool()>& until, Nanoseconds most);
    void run_for(Nanoseconds time);

    std::shared_ptr<plugin::ManualClock> clock_;
    std::shared_ptr<ScriptedTimers> store_;
    LoadedDriver loaded_;
    SteadyTime next_tick_{};
};

} // namespace queen::conformance
