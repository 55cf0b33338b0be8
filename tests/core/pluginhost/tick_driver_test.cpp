#include "pluginhost/tick_driver.hpp"
#include "support/manual_clock.hpp"
#include "support/manual_ticker.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace queen::pluginhost {
namespace {

using namespace std::chrono_literals;

class TickDriverTest : public testing::Test {
protected:
    test::ManualClock clock_;
    test::ManualTicker ticker_{clock_};
    std::shared_ptr<TickDriver> driver_ = TickDriver::make(ticker_, clock_);
    std::vector<SteadyTime> runs_;
    Nanoseconds period_ = 100ms;

    void start() {
        driver_->start([this](SteadyTime now) {
            runs_.push_back(now);
            return period_ == Nanoseconds::max() ? SteadyTime::max() : now + period_;
        });
    }
};

TEST_F(TickDriverTest, RunsAtOnceAndThenWhenItIsDue) {
    const SteadyTime begin = clock_.now();
    start();
    ticker_.advance(250ms);
    EXPECT_EQ(runs_, (std::vector<SteadyTime>{begin, begin + 100ms, begin + 200ms}));
    EXPECT_EQ(ticker_.pending(), 1u);
}

TEST_F(TickDriverTest, APullForwardReplacesTheArmedTask) {
    const SteadyTime begin = clock_.now();
    start();
    ticker_.run_due();
    driver_->pull(begin + 30ms);
    driver_->pull(begin + 60ms); // later than what is armed
    EXPECT_EQ(ticker_.pending(), 1u);
    EXPECT_EQ(ticker_.next(), begin + 30ms);
    ticker_.advance(30ms);
    EXPECT_EQ(runs_.size(), 2u);
}

TEST_F(TickDriverTest, APullDuringARunIsNotLost) {
    const SteadyTime begin = clock_.now();
    bool first = true;
    driver_->start([&](SteadyTime now) {
        runs_.push_back(now);
        if (std::exchange(first, false)) {
            driver_->pull(now + 5ms);
        }
        return SteadyTime::max(); // what the run knew before the pull
    });
    ticker_.advance(1s);
    EXPECT_EQ(runs_, (std::vector<SteadyTime>{begin, begin + 5ms}));
}

TEST_F(TickDriverTest, NeverDueArmsNothingUntilPulled) {
    period_ = Nanoseconds::max();
    start();
    ticker_.run_due();
    EXPECT_EQ(ticker_.pending(), 0u);
    driver_->pull(clock_.now() + 1s);
    ticker_.advance(1s);
    EXPECT_EQ(runs_.size(), 2u);
}

TEST_F(TickDriverTest, NothingRunsBeforeTheStartOrAfterTheStop) {
    driver_->pull(clock_.now());
    EXPECT_EQ(ticker_.pending(), 0u);
    start();
    driver_->stop();
    EXPECT_EQ(ticker_.pending(), 0u);
    driver_->pull(clock_.now());
    ticker_.advance(1s);
    EXPECT_TRUE(runs_.empty());
}

/// A ticker that cannot cancel: each task was already taken up.
class LateTicker final : public Ticker {
public:
    Id at(SteadyTime, std::function<void()> task) override {
        tasks.push_back(std::move(task));
        return tasks.size();
    }
    void cancel(Id) override {}
    std::vector<std::function<void()>> tasks;
};

TEST_F(TickDriverTest, ATaskCancelledTooLateDoesNothing) {
    LateTicker ticker;
    auto driver = TickDriver::make(ticker, clock_);
    driver->start([&](SteadyTime now) {
        runs_.push_back(now);
        return SteadyTime::max();
    });
    driver->pull(clock_.now() - 1ms);
    ASSERT_EQ(ticker.tasks.size(), 2u);
    ticker.tasks[0]();
    EXPECT_TRUE(runs_.empty()) << "replaced by the second";
    ticker.tasks[1]();
    EXPECT_EQ(runs_.size(), 1u);
    driver->pull(clock_.now());
    driver.reset();
    ASSERT_EQ(ticker.tasks.size(), 3u);
    ticker.tasks[2](); // the driver is gone
    EXPECT_EQ(runs_.size(), 1u);
}

} // namespace
} // namespace queen::pluginhost
