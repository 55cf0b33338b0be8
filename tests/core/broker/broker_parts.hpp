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

namespace queen::broker {

/// What push, pop and ack work with, without threads: a scripted store, one recording source, and
/// the real parking on a clock that the test moves.
class BrokerParts : public testing::Test {
protected:
    test::ManualClock clock_;
    test::ManualTicker ticker_{clock_};
    test::ScriptedStore store_;
    std::shared_ptr<test::RecordingSource> source_ = std::make_shared<test::RecordingSource>();
    Sources sources_{{{"recording", source_}}, "recording"};
    Parking parking_{ticker_, clock_, {}};
    Announcer announcer_{sources_, parking_};
};

} // namespace queen::broker
