// A loaded driver of timers, good or misbehaving: it may fire late, it may not get stuck.
#include "abi/host_fixture.hpp"
#include "pluginhost/plugin_check.hpp"

#include <array>

namespace queen::pluginhost {
namespace {

using namespace std::chrono_literals;
using plugin::RecordingTimerHost;
using plugin::TimerAnswer;
using plugin::TimerSegment;

class TimersFault : public HostTest {
protected:
    std::shared_ptr<plugin::TimerDriver> driver_with_store(const std::string& fixture) {
        auto made = driver(fixture);
        host().serve_timers(store_);
        return made;
    }
    /// What a claim brings: a batch of two segments.
    static TimerAnswer claimed(plugin::TimerBatch batch) {
        static const std::array<TimerSegment, 2> segments{};
        TimerAnswer answer;
        answer.batch = batch;
        answer.segments = segments;
        return answer;
    }
    void tick() { host().run_ticks(clock_.now()); }

    const std::shared_ptr<RecordingTimerHost> store_ = std::make_shared<RecordingTimerHost>();
};

TEST_F(TimersFault, AGoodDriverHasNone) {
    const auto driver = driver_with_store("timers_good");
    ASSERT_NE(driver, nullptr);
    EXPECT_TRUE(host().sources().empty());
    EXPECT_TRUE(host().meshes().empty());
    EXPECT_EQ(host().status()[0].kinds, std::vector<std::string>{"queen.timers/1"});
    const SteadyTime now = clock_.now();
    EXPECT_EQ(host().run_ticks(now), now + 60s) << "the first tick is due at once";
    const auto asked = store_->next();
    ASSERT_TRUE(asked);
    EXPECT_EQ(asked->verb, RecordingTimerHost::Verb::due);
    EXPECT_EQ(asked->shards, ~plugin::TimerShards{0});
    EXPECT_EQ(asked->cap, 10u);
    driver->answered(asked->call, {});
    driver->scheduled(now + 5s);
    auto seen = figures(*driver);
    EXPECT_EQ(seen["ticks_total"], 1.0);
    EXPECT_EQ(seen["answers_total"], 1.0);
    EXPECT_EQ(seen["scheduled"], static_cast<double>(plugin::to_c(now + 5s)));
    driver->stop();
    driver->stop();
    EXPECT_EQ(logged("stopped"), 1u);
    EXPECT_EQ(faults("timers_good").total(), 0u);
}

TEST_F(TimersFault, WithoutAStoreCallsAnswerThatTheBrokerStops) {
    const auto driver = this->driver("timers_good");
    tick();
    EXPECT_EQ(figures(*driver)["refused_total"], 1.0);
    {
        const auto passing = std::make_shared<RecordingTimerHost>();
        host().serve_timers(passing);
        clock_.advance(60s);
        tick();
        EXPECT_EQ(passing->calls().size(), 1u);
    }
    clock_.advance(60s);
    tick(); // the store is gone
    EXPECT_EQ(figures(*driver)["refused_total"], 2.0);
    EXPECT_EQ(faults("timers_good").total(), 0u);
}

TEST_F(TimersFault, ASecondDriverIsRefusedWithBothNames) {
    ASSERT_TRUE(host().load({named("timers", fixture_path("timers_good"), 3)}).empty());
    const auto problems = host().load({named("acme", fixture_path("timers_second"), 7)});
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_EQ(problems[0], "queen.yaml:7:5: plugin 'acme': is a second timer driver, 'timers' "
                           "(queen.yaml:3:5) is one already and a broker has one");
    const auto twice = host().load({named("again", fixture_path("timers_good"), 8)});
    EXPECT_EQ(twice.size(), 1u) << "one file under two names fires twice as well";
    ASSERT_TRUE(host().unload("timers"));
    EXPECT_TRUE(host().load({named("acme", fixture_path("timers_second"), 7)}).empty());
}

TEST_F(TimersFault, ASecondDriverIsFoundBeforeAnyIsMade) {
    settings::Loaded loaded;
    loaded.settings.plugins = {named("timers", fixture_path("timers_good"), 3),
                               named("mesh", fixture_path("mesh_good"), 4),
                               named("acme", fixture_path("timers_second"), 7)};
    const auto checks = check_plugins(loaded, {});
    ASSERT_EQ(checks.size(), 3u);
    EXPECT_TRUE(checks[0].inspection.fits && checks[0].problems.empty());
    EXPECT_TRUE(checks[1].inspection.fits && checks[1].problems.empty());
    EXPECT_EQ(checks[2].problems,
              settings::Problems{"queen.yaml:7:5: plugin 'acme': is a second timer driver, "
                                 "'timers' (queen.yaml:3:5) is one already and a broker has one"});
}

TEST_F(TimersFault, AfterItsStopNoTickAndNoCall) {
    const auto driver = driver_with_store("timers_good");
    driver->stop();
    tick();
    driver->scheduled(clock_.now());
    EXPECT_EQ(figures(*driver)["ticks_total"], 0.0);
    EXPECT_EQ(figures(*driver)["scheduled"], 0.0);
    driver->answered(1, {}); // an answer under way still comes
    EXPECT_EQ(figures(*driver)["answers_total"], 1.0);
}

TEST_F(TimersFault, ADriverThatGoesGivesItsBatchesBackAfterItsStop) {
    auto driver = driver_with_store("timers_good");
    driver->answered(1, claimed(7));
    ASSERT_TRUE(host().unload("timers_good"));
    EXPECT_TRUE(store_->released().empty());
    driver.reset();
    EXPECT_EQ(store_->released(), std::vector<plugin::TimerBatch>{7});
    EXPECT_EQ(logged("stopped"), 1u);
    EXPECT_EQ(log_.back().text, "destroyed");
}

TEST_F(TimersFault, AFailedAnswerGivesItsBatchBackAndTicksOn) {
    const auto driver = driver_with_store("timers_bad_returns");
    tick();
    const SteadyTime now = clock_.now();
    driver->answered(1, claimed(7));
    EXPECT_EQ(store_->released(), std::vector<plugin::TimerBatch>{7});
    EXPECT_EQ(faults("timers_bad_returns")[Fault::error_return], 1u);
    ASSERT_FALSE(ticks_.empty());
    EXPECT_EQ(ticks_.back(), now + 1s) << "the ticker is told";
    clock_.advance(1s);
    tick();
    EXPECT_EQ(figures(*driver)["ticks_total"], 2.0) << "not after its minute";
}

TEST_F(TimersFault, ExceptionsEndInsideTheLibrary) {
    const auto driver = driver_with_store("timers_throws");
    const SteadyTime now = clock_.now();
    EXPECT_EQ(host().run_ticks(now), now + 1s) << "a tick that fails is asked again";
    driver->scheduled(now);
    driver->answered(1, claimed(7));
    EXPECT_TRUE(figures(*driver).empty());
    driver->stop();
    EXPECT_EQ(faults("timers_throws")[Fault::error_return], 2u);
    EXPECT_EQ(faults("timers_throws")[Fault::exception], 0u);
    EXPECT_EQ(store_->released(), std::vector<plugin::TimerBatch>{7});
}

TEST_F(TimersFault, ExceptionsThatLeaveTheLibraryAreCaughtByTheHost) {
    const auto driver = driver_with_store("timers_leaks_exception");
    const SteadyTime now = clock_.now();
    EXPECT_EQ(host().run_ticks(now), now + 1s);
    driver->scheduled(now);
    driver->answered(1, claimed(7));
    driver->stop();
    EXPECT_EQ(faults("timers_leaks_exception")[Fault::exception], 4u);
    EXPECT_EQ(store_->released(), std::vector<plugin::TimerBatch>{7});
}

TEST_F(TimersFault, ThreeSlowTicksPauseTheDriverAndItTicksAfterwards) {
    const auto driver = driver_with_store("timers_bad_slow");
    SteadyTime next{};
    for (int i = 0; i < 3; ++i) {
        next = host().run_ticks(clock_.now() + 1ms * i);
        clock_.advance(1ms);
    }
    ASSERT_TRUE(host().status()[0].paused);
    EXPECT_EQ(faults("timers_bad_slow")[Fault::slow_call], 3u);
    const SteadyTime end = host().run_ticks(clock_.now());
    EXPECT_GT(end, clock_.now() + 9s) << "its tick is tried again when the pause is over";
    const SteadyTime earliest = clock_.now() + 3s;
    driver->scheduled(earliest);
    driver->scheduled(earliest + 1s);
    EXPECT_TRUE(figures(*driver).empty());
    driver->answered(1, {}); // an answer comes during a pause too
    clock_.advance(10s);
    step_ = 0ns; // cured
    tick();
    EXPECT_EQ(figures(*driver)["ticks_total"], 4.0);
    EXPECT_EQ(figures(*driver)["answers_total"], 1.0);
    EXPECT_EQ(figures(*driver)["scheduled"], static_cast<double>(plugin::to_c(earliest)))
        << "what it missed it is told";
}

TEST_F(TimersFault, TimeInsideTheHostIsNotHeldAgainstTheDriver) {
    const auto driver = driver_with_store("timers_good");
    store_->on_call = [&](const RecordingTimerHost::Call& call) {
        clock_.advance(50ms);
        driver->answered(call.call, {});
    };
    for (int i = 0; i < 5; ++i) {
        tick();
        clock_.advance(60s);
    }
    EXPECT_EQ(figures(*driver)["answers_total"], 5.0) << "answered inside the call";
    EXPECT_EQ(faults("timers_good").total(), 0u);
}

TEST_F(TimersFault, WhatMakesNoSenseIsRefusedAndCounted) {
    const auto driver = driver_with_store("timers_bad_requests");
    driver->answered(1, claimed(7));
    tick();
    EXPECT_EQ(figures(*driver)["refused_total"], 11.0);
    EXPECT_EQ(faults("timers_bad_requests")[Fault::bad_request], 12u) << "and one release";
    ASSERT_EQ(store_->calls().size(), 1u) << "nothing of it reached the store";
    EXPECT_EQ(store_->calls()[0].verb, RecordingTimerHost::Verb::fail);
    EXPECT_EQ(store_->calls()[0].error, "the driver's words are no text");
    EXPECT_EQ(store_->calls()[0].segments, (std::vector<std::uint32_t>{0, 1}));
    EXPECT_TRUE(store_->released().empty());
}

// Each batch is payloads in the broker's memory.
TEST_F(TimersFault, ADriverHasNoMoreBatchesThanItMay) {
    const auto driver = driver_with_store("timers_bad_greedy");
    tick();
    EXPECT_EQ(store_->calls().size(), 16u);
    EXPECT_EQ(figures(*driver)["refused_total"], 4.0);
    EXPECT_EQ(faults("timers_bad_greedy")[Fault::bad_request], 4u);
    driver->answered(1, claimed(7)); // kept
    driver->answered(2, {});
    clock_.advance(60s);
    tick();
    EXPECT_EQ(store_->calls().size(), 17u) << "one claim brought nothing";
}

TEST_F(TimersFault, AShortTableOfAnOlderMinorLoads) {
    const auto driver = driver_with_store("timers_short_table");
    tick();
    EXPECT_EQ(store_->calls().size(), 1u);
    EXPECT_TRUE(figures(*driver).empty());
    EXPECT_EQ(faults("timers_short_table").total(), 0u);
}

TEST_F(TimersFault, TablesThatAreNotWholeAreRefused) {
    const auto refusal_of = [&](const std::string& fixture) {
        const auto problems = host().load({named("acme", fixture_path(fixture))});
        return problems.size() == 1 ? problems[0] : "";
    };
    const auto said = [](const std::string& fixture, const std::string& what) {
        return "queen.yaml:3:5: plugin 'acme': " + fixture_path(fixture) + " " + what;
    };
    EXPECT_EQ(refusal_of("timers_bad_table_size"),
              said("timers_bad_table_size",
                   "has a queen.timers/1 table of 48 bytes, which ends before tick"));
    EXPECT_EQ(refusal_of("timers_bad_null_tick"),
              said("timers_bad_null_tick", "has a queen.timers/1 table without tick"));
}

} // namespace
} // namespace queen::pluginhost
