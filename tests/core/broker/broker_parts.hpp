#pragma once
#include "broker/announce.hpp"
#include "broker/parking.hpp"
#include "broker/sources.hpp"
#include "support/manual_clock.hpp"
#include "support/manual_ticker.hpp"
#include "support/recording_source.hpp"
#include "support/scripted_store.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace queen::broker {

/// What push, pop and ack work with, without threads: a scripted store, one recording source, and
/// the real parking on a clock that the test moves.
class BrokerParts : public testing::Test {
protected:
    /// Parks somebody who writes that line down when woken, and is parked until the test ends.
    void park(std::vector<std::string>& log, std::string line, const WaitScope& scope) {
        struct Sleeper final : Waiter {
            Sleeper(std::vector<std::string>& log, std::string line)
                : log_(log), line_(std::move(line)) {}
            void resume() override { log_.push_back(line_); }

        private:
            std::vector<std::string>& log_;
            const std::string line_;
        };
        auto place = parking_.enter(scope);
        parking_.ticket(*place);
        EXPECT_TRUE(parking_.park(*place, std::make_shared<Sleeper>(log, std::move(line)),
                                  SteadyTime::max()));
        places_.push_back(std::move(place));
    }

    test::ManualClock clock_;
    test::ManualTicker ticker_{clock_};
    test::ScriptedStore store_;
    std::shared_ptr<test::RecordingSource> source_ = std::make_shared<test::RecordingSource>();
    Sources sources_{{{"recording", source_}}, "recording"};
    Parking parking_{ticker_, clock_, {}};
    Announcer announcer_{sources_, parking_};

private:
    std::vector<std::unique_ptr<Parking::Place>> places_;
};

} // namespace queen::broker
