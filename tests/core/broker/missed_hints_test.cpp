#include "broker/missed_hints.hpp"
#include "core/broker/broker_parts.hpp"
#include "model/names.hpp"
#include "support/idle_source.hpp"
#include "support/manual_workers.hpp"

#include <gmock/gmock.h>

namespace queen::broker {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class MissedHintsTest : public BrokerParts {
protected:
    struct Listener final : test::IdleSource {
        explicit Listener(std::vector<std::string>& log) : log_(log) {}
        bool missed() override {
            log_.emplace_back("walk");
            return true;
        }

    private:
        std::vector<std::string>& log_;
    };

    void park(const std::string& name, const std::string& gate, const std::string& group = "g",
              std::optional<std::string> partition = {}) {
        BrokerParts::park(
            log_, "look " + name,
            {.gate = gate, .group = group, .partition = std::move(partition), .labels = {}});
    }
    /// Whatever is due now, on ticker and workers.
    void run() {
        while (ticker_.run_due() + workers_.run_all() > 0) {
        }
    }
    void pass(Nanoseconds time) {
        clock_.advance(time);
        run();
    }
    std::vector<std::string> taken() { return std::exchange(log_, {}); }

    bool throws_ = false;
    std::vector<std::string> log_;
    std::shared_ptr<Listener> listener_ = std::make_shared<Listener>(log_);
    Sources listening_{{{"ring", listener_}, {"other", listener_}}, "ring"};
    test::ManualWorkers workers_;
    MissedHints missed_{listening_,
                        parking_,
                        workers_,
                        ticker_,
                        clock_,
                        {.moved =
                             [this] {
                                 if (throws_) {
                                     throw std::bad_alloc();
                                 }
                                 log_.emplace_back("read repairs");
                             },
                         .switched = [this] { log_.emplace_back("read switches"); }}};
};

TEST_F(MissedHintsTest, ALookThatThrowsIsNotTheLast) {
    throws_ = true;
    missed_.missed();
    EXPECT_THROW(run(), std::bad_alloc);
    throws_ = false;
    taken();
    missed_.missed();
    pass(1s);
    EXPECT_EQ(missed_.looks(), 2u);
    EXPECT_THAT(taken(), testing::Contains("read switches"));
}

TEST_F(MissedHintsTest, SourcesWalkThenOneOfEachScopeLooksAndRepairsAndSwitchesAreRead) {
    const auto q = queue_key("t", "q");
    park("first", q);
    park("second", q);
    park("h", q, "h");
    park("pinned", q, "g", "p");
    park("elsewhere", queue_key("t", "r"));
    missed_.missed();
    EXPECT_THAT(log_, IsEmpty()) << "nothing happens on the mesh's thread";
    run();
    ASSERT_EQ(log_.size(), 8u);
    EXPECT_THAT(std::vector(log_.begin(), log_.begin() + 4),
                ElementsAre("walk", "walk", "read repairs", "read switches"));
    EXPECT_THAT(std::vector(log_.begin() + 4, log_.end()),
                UnorderedElementsAre("look first", "look h", "look pinned", "look elsewhere"));
    EXPECT_EQ(parking_.statistics().woken, 0u);
    EXPECT_EQ(parking_.statistics().floor_looks, 4u);
}

TEST_F(MissedHintsTest, WhoIsAboutToParkLooksAgain) {
    const auto place = parking_.enter({queue_key("t", "q"), "g", {}, {}});
    parking_.ticket(*place);
    missed_.missed();
    run();
    EXPECT_FALSE(parking_.park(*place, nullptr, SteadyTime::max()));
}

TEST_F(MissedHintsTest, ALinkThatComesAndGoesCostsOneLookASecondAndThenNoMoreThanFloorsDo) {
    for (int i = 0; i < 10; ++i) {
        missed_.missed();
    }
    run();
    EXPECT_EQ(missed_.looks(), 1u);
    const auto come_and_go = [&](std::chrono::milliseconds time) {
        for (std::chrono::milliseconds done{0}; done < time; done += 10ms) {
            missed_.missed();
            pass(10ms);
        }
    };
    come_and_go(4s);
    EXPECT_EQ(missed_.looks(), 5u);
    come_and_go(50s);
    EXPECT_EQ(missed_.looks(), 5u + 3u);
    pass(15s);
    EXPECT_EQ(missed_.looks(), 9u) << "for the last one";
    pass(5min);
    come_and_go(10s);
    EXPECT_EQ(missed_.looks(), 9u + 5u) << "after a rest as at first";
}

TEST_F(MissedHintsTest, TheLastCallIsNotLost) {
    missed_.missed();
    run();
    missed_.missed();
    pass(1s - 1ns);
    EXPECT_EQ(missed_.looks(), 1u);
    pass(1ns);
    EXPECT_EQ(missed_.looks(), 2u);
    pass(1h);
    EXPECT_EQ(missed_.looks(), 2u) << "nobody asked for more";
}

TEST_F(MissedHintsTest, WhatIsMissedDuringALookIsLookedAtAfterIt) {
    bool again = true;
    MissedHints looks(listening_, parking_, workers_, ticker_, clock_,
                      {.moved =
                           [&] {
                               if (std::exchange(again, false)) {
                                   looks.missed();
                                   looks.missed();
                               }
                           },
                       .switched = [] {}});
    looks.missed();
    run();
    EXPECT_EQ(looks.looks(), 1u);
    pass(1s);
    EXPECT_EQ(looks.looks(), 2u);
    pass(1h);
    EXPECT_EQ(looks.looks(), 2u);
}

TEST_F(MissedHintsTest, AfterTheStopNothingIsLookedAt) {
    missed_.missed();
    missed_.stop();
    missed_.missed();
    pass(1h);
    EXPECT_THAT(taken(), IsEmpty());
    EXPECT_EQ(ticker_.pending(), 0u);
}

} // namespace
} // namespace queen::broker
