#include "metrics/rates.hpp"
#include "support/manual_ticker.hpp"
#include "support/manual_workers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace queen::metrics {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class RateWatchTest : public testing::Test {
protected:
    RateWatchTest() { watch_->start(); }

    void pass(Nanoseconds time) {
        for (auto left = time; left > 0s; left -= 1s) {
            ticker_.advance(1s);
            workers_.run_all();
        }
    }

    test::ManualClock clock_;
    test::ManualTicker ticker_{clock_};
    test::ManualWorkers workers_;
    Sample sample_;
    int reads_ = 0;
    std::vector<std::string> lines_;
    std::shared_ptr<RateWatch> watch_ = RateWatch::make(
        ticker_, workers_, clock_,
        [this] {
            ++reads_;
            return sample_;
        },
        [this](const std::string& line) { lines_.push_back(line); });
};

// MET-6
TEST_F(RateWatchTest, NothingHappenedNothingIsLogged) {
    sample_.parked = 5000; // levels do not count
    sample_.http_requests = 7;
    pass(10min);
    EXPECT_THAT(lines_, IsEmpty());
    EXPECT_EQ(reads_, 61) << "one a look, and the first";
}

TEST_F(RateWatchTest, RatesArePerSecondOfTheLastTenSeconds) {
    sample_ = {.push_requests = 3,
               .push_messages = 1005,
               .pop_answers = 40,
               .pop_messages = 50,
               .pop_empty = 30,
               .ack_requests = 1,
               .ack_messages = 3,
               .parked = 2,
               .pool_active = 4,
               .pool_size = 16,
               .waiting = 1};
    pass(9s);
    EXPECT_THAT(lines_, IsEmpty());
    pass(1s);
    EXPECT_THAT(lines_,
                ElementsAre("rates push_per_s=100 pop_per_s=5.0 ack_per_s=0.3 pop_empty_percent=75 "
                            "parked=2 sessions=4/16 waiting=1"));
    pass(10s);
    EXPECT_EQ(lines_.size(), 1u) << "nothing since";
    EXPECT_EQ(watch_->rates().push_messages, 0);
    sample_.pop_empty += 1;
    sample_.pop_answers += 1;
    pass(10s);
    EXPECT_THAT(lines_.back(), HasSubstr("pop_empty_percent=100 "));
}

TEST_F(RateWatchTest, SizesComeOnceAMinuteOfActivity) {
    sample_.push_requests = 1;
    sample_.resident_bytes = 300u << 20;
    sample_.connections = 12;
    sample_.queues = 3;
    pass(1min);
    EXPECT_THAT(lines_, ElementsAre(StartsWith("rates "),
                                    "sizes resident_mib=300 connections=12 queues=3"));
    pass(1min);
    EXPECT_EQ(lines_.size(), 2u);
}

TEST_F(RateWatchTest, TheLoopsLagIsTheMeanOfTheInterval) {
    sample_.loop_lags = 4;
    sample_.loop_lag = 8ms;
    pass(10s);
    EXPECT_EQ(watch_->rates().loop_lag, 2ms);
    pass(10s);
    EXPECT_EQ(watch_->rates().loop_lag, 0ms);
}

TEST_F(RateWatchTest, ParkedPopsAreKeptAsTheMinuteEnds) {
    sample_.parked_by_queue = {{"q", 3}};
    pass(59s);
    EXPECT_THAT(watch_->parked_at_minute(), IsEmpty());
    pass(1s);
    EXPECT_THAT(watch_->parked_at_minute(), ElementsAre(testing::Pair("q", 3)));
    sample_.parked_by_queue = {};
    pass(59s);
    EXPECT_THAT(watch_->parked_at_minute(), ElementsAre(testing::Pair("q", 3)));
    pass(1s);
    EXPECT_THAT(watch_->parked_at_minute(), IsEmpty());
}

TEST_F(RateWatchTest, ALateLookStaysOnTheGrid) {
    clock_.advance(25s); // the machine slept
    ticker_.run_due();
    workers_.run_all();
    EXPECT_EQ(reads_, 2);
    pass(4s);
    EXPECT_EQ(reads_, 2);
    pass(1s);
    EXPECT_EQ(reads_, 3) << "at 30 s";
}

TEST_F(RateWatchTest, AfterTheStopNothingIsRead) {
    ticker_.advance(10s); // a look stands in the queue
    watch_->stop();
    sample_.push_requests = 1;
    workers_.run_all();
    pass(1min);
    EXPECT_EQ(reads_, 1);
    EXPECT_THAT(lines_, IsEmpty());
}

TEST_F(RateWatchTest, ATaskThatOutlivesTheWatchDoesNothing) {
    ticker_.advance(10s);
    watch_.reset();
    workers_.run_all();
    pass(1min);
    EXPECT_EQ(reads_, 1);
}

} // namespace
} // namespace queen::metrics
