// Counting, telling and losing answers in every order: what is told is what was counted, once
// (CNT-1).
#include "broker/cluster_counts.hpp"
#include "support/manual_clock.hpp"
#include "support/manual_ticker.hpp"
#include "support/scripted_system_store.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>

namespace queen::broker {
namespace {

using namespace std::chrono_literals;

struct Step {
    enum Kind { count, interval, answer, lose_answer, lose_question, kinds };
    int kind;
    std::uint8_t pick;
};

std::ostream& operator<<(std::ostream& out, const Step& step) {
    static constexpr const char* kNames[] = {"count", "interval", "answer", "lose_answer",
                                             "lose_question"};
    return out << kNames[step.kind] << '#' << int{step.pick};
}

class World {
public:
    World() {
        store_.on_add_counts = [this](CountDelta delta, Done<void> done) {
            RC_ASSERT(!told_.has_value()); // one at a time
            told_ = {std::move(delta), std::move(done)};
        };
        counts_.start();
    }

    void step(const Step& step) {
        switch (step.kind) {
        case Step::count:
            counters_[step.pick % counters_.size()] += step.pick;
            break;
        case Step::interval:
            ticker_.advance(60s);
            break;
        case Step::answer:
            answer(true, true);
            break;
        case Step::lose_answer:
            answer(true, false);
            break;
        default:
            answer(false, false);
        }
        for (std::size_t i = 0; i < counters_.size(); ++i) {
            RC_ASSERT(added_[i] <= counters_[i]);
        }
    }

    void stop() {
        int stopped = 0;
        counts_.stop([&] { ++stopped; });
        for (int tries = 0; stopped == 0; ++tries) {
            RC_ASSERT(tries < 3);
            answer(true, true);
        }
        RC_ASSERT(stopped == 1);
        RC_ASSERT(added_ == counters_);
        ticker_.advance(600s);
        RC_ASSERT(!told_.has_value());
    }

private:
    /// The database adds a delta once, whatever it answers.
    void answer(bool reached, bool told) {
        if (!told_) {
            return;
        }
        const auto [delta, done] = *std::exchange(told_, std::nullopt);
        if (reached && delta.number > number_) {
            number_ = delta.number;
            for (const auto& [name, value] : delta.counts) {
                RC_ASSERT(value > 0);
                added_[static_cast<std::size_t>(name[0] - 'a')] +=
                    static_cast<std::uint64_t>(value);
            }
        }
        done(told ? Result<void>{} : fail(Errc::timeout, "no answer"));
    }

    test::ManualClock clock_;
    test::ManualTicker ticker_{clock_};
    test::ScriptedSystemStore store_;
    std::array<std::uint64_t, 3> counters_{};
    std::array<std::uint64_t, 3> added_{}; ///< in the database
    std::int64_t number_ = 0;
    std::optional<std::pair<CountDelta, Done<void>>> told_; ///< on its way
    ClusterCounts counts_{store_,
                          ticker_,
                          clock_,
                          Uuid{},
                          [this] {
                              return std::vector<std::pair<std::string, std::uint64_t>>{
                                  {"a", counters_[0]}, {"b", counters_[1]}, {"c", counters_[2]}};
                          },
                          {}};
};

rc::Gen<Step> any_step() {
    return rc::gen::build<Step>(
        rc::gen::set(&Step::kind, rc::gen::weightedElement<int>({{4, Step::count},
                                                                 {3, Step::interval},
                                                                 {2, Step::answer},
                                                                 {1, Step::lose_answer},
                                                                 {1, Step::lose_question}})),
        rc::gen::set(&Step::pick, rc::gen::arbitrary<std::uint8_t>()));
}

RC_GTEST_PROP(ClusterCounts, WhatWasCountedIsToldOnce, ()) {
    const auto steps = *rc::gen::container<std::vector<Step>>(any_step());
    World world;
    for (const Step& step : steps) {
        world.step(step);
    }
    world.stop();
}

// A database that stays away does not keep a broker from stopping.
TEST(ClusterCounts, StoppingTriesOnceAndEnds) {
    test::ManualClock clock;
    test::ManualTicker ticker(clock);
    test::ScriptedSystemStore store; // every call fails
    int stopped = 0;
    ClusterCounts counts(store, ticker, clock, Uuid{},
                         [] {
                             return std::vector<std::pair<std::string, std::uint64_t>>{{"a", 1}};
                         },
                         {});
    counts.start();
    counts.stop([&] { ++stopped; });
    EXPECT_EQ(stopped, 1);
    EXPECT_EQ(ticker.pending(), 0u);
}

TEST(ClusterCounts, NothingCountedIsNotTold) {
    test::ManualClock clock;
    test::ManualTicker ticker(clock);
    test::ScriptedSystemStore store;
    int told = 0;
    store.on_add_counts = [&](const CountDelta&, const Done<void>& done) {
        ++told;
        done({});
    };
    std::uint64_t counter = 0;
    ClusterCounts counts(
        store, ticker, clock, Uuid{},
        [&] {
            return std::vector<std::pair<std::string, std::uint64_t>>{{"a", counter}};
        },
        {});
    counts.start();
    ticker.advance(300s);
    EXPECT_EQ(told, 0);
    counter = 1;
    ticker.advance(300s);
    EXPECT_EQ(told, 1);
    counts.stop([] {});
}

} // namespace
} // namespace queen::broker
