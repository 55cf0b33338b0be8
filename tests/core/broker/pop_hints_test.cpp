// What the pop path makes of a source's hints beyond names: windows it has waited for, more to
// offer, candidates that became ready by themselves.
#include "core/broker/pop_parts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace queen::broker {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

/// A group that has made first contact with a queue whose window is five seconds.
class PopHintsTest : public PopParts {
protected:
    PopHintsTest() {
        store_.on_pop_wildcard = [this](const PopArgs&, const auto& done) { done(nothing()); };
        pops_.pop(request(), [](auto&&) {});
        source_->readiness.state = plugin::ReadyState::ready;
        source_->offers = [](std::uint32_t) { return std::vector<std::string>{"a"}; };
    }
    PopResult nothing() const {
        PopResult result;
        result.window_seconds = window_;
        return result;
    }
    /// How the first claim of a pop was told to treat the window.
    bool skipped_window() {
        std::vector<bool> skips;
        store_.on_pop_list = [&](const PopArgs& args, const auto&, const auto& done) {
            skips.push_back(args.skip_window);
            done(nothing());
        };
        pops_.pop(request(), [](auto&&) {});
        return skips.at(0);
    }

    std::int64_t window_ = 5;
};

TEST_F(PopHintsTest, AWindowTheSourceWaitedForIsNotWaitedForAgain) {
    EXPECT_FALSE(skipped_window()) << "it said nothing about a window";
    source_->held_window = 5s;
    EXPECT_TRUE(skipped_window());
}

TEST_F(PopHintsTest, AWindowThatIsNotTheQueuesIsLeftToTheStore) {
    source_->held_window = 4s;
    EXPECT_FALSE(skipped_window());
    window_ = 7; // told by the claim above; the source waited for the old one
    source_->held_window = 5s;
    skipped_window();
    EXPECT_FALSE(skipped_window());
}

TEST_F(PopHintsTest, AWindowThatWasReadTooLongAgoIsLeftToTheStore) {
    source_->held_window = 5s;
    clock_.advance(30s);
    EXPECT_TRUE(skipped_window());
    clock_.advance(30s + 1ms);
    EXPECT_FALSE(skipped_window());
}

TEST_F(PopHintsTest, AQueueWithoutAWindowSkipsNone) {
    window_ = 0;
    skipped_window();
    source_->held_window = 0s;
    EXPECT_FALSE(skipped_window());
}

TEST_F(PopHintsTest, AForgottenQueuesWindowIsUnknown) {
    source_->held_window = 5s;
    pops_.forget(kDefaultTenant, "q");
    pops_.pop(request(), [](auto&&) {}); // first contact once more, which tells the window again
    EXPECT_TRUE(skipped_window());
    pops_.forget(kDefaultTenant, "q");
    window_ = 0;
    pops_.pop(request(), [](auto&&) {});
    EXPECT_FALSE(skipped_window());
}

// "Empty" drops a candidate of a plain queue and keeps one that is only delayed.
TEST_F(PopHintsTest, SourcesHearDelayAndWindowBeforeTheVerdicts) {
    source_->configs.clear();
    source_->settles.clear();
    store_.on_pop_list = [&](const PopArgs&, const auto&, const auto& done) {
        PopResult result = nothing();
        result.delay_seconds = 9;
        done(result);
    };
    source_->offers = [](std::uint32_t round) {
        return round == 0 ? std::vector<std::string>{"a"} : std::vector<std::string>{};
    };
    const auto asked = clock_.now();
    pops_.pop(request(), [](auto&&) {});
    ASSERT_EQ(source_->configs.size(), 1u);
    EXPECT_TRUE(source_->configured_before_settle);
    EXPECT_EQ(source_->configs[0].delay, Nanoseconds{9s});
    EXPECT_EQ(source_->configs[0].window, Nanoseconds{5s});
    EXPECT_EQ(source_->configs[0].read_at, asked);
}

TEST_F(PopHintsTest, LaterRoundsAskForManyNamesAtOnce) {
    store_.on_pop_list = [&](const PopArgs&, const auto&, const auto& done) { done(nothing()); };
    source_->limits.clear();
    pops_.pop(request(), [](auto&&) {});
    EXPECT_THAT(source_->limits, ElementsAre(16u, 256u, 256u, 256u));
}

TEST_F(PopHintsTest, AWaitingPopThatGotOnlyStaleNamesLooksAgainSoonWhileThereAreMore) {
    int claims = 0;
    store_.on_pop_list = [&](const PopArgs&, const auto&, const auto& done) {
        ++claims;
        done(nothing());
    };
    pops_.pop(waiting(), [](auto&&) {});
    EXPECT_EQ(claims, 4);
    ASSERT_EQ(parking_.parked(), 1u);
    ticker_.advance(10ms);
    run_all();
    EXPECT_EQ(claims, 8);
    source_->readiness.state = plugin::ReadyState::nothing;
    ticker_.advance(10ms);
    run_all();
    EXPECT_EQ(claims, 8);
}

TEST_F(PopHintsTest, ASourcesWakeResumesWildcardPopsOfTheGroupAlone) {
    source_->readiness.state = plugin::ReadyState::nothing;
    int claims = 0, probes = 0;
    store_.on_pop_specific = [&](const PopArgs&, const auto&, const auto& done) {
        done(nothing());
    };
    store_.on_has_pending = [&](const PendingQuery&, const auto& done) {
        ++probes;
        done(false);
    };
    store_.on_pop_list = [&](const PopArgs& args, const auto&, const auto& done) {
        EXPECT_EQ(args.group, "g");
        ++claims;
        done(nothing());
    };
    pops_.pop(waiting(), [](auto&&) {});
    auto other = waiting();
    other.group = "h";
    pops_.pop(other, [](auto&&) {});
    auto pinned = waiting();
    pinned.shape = PopRequest::Shape::pinned;
    pinned.partition = "a";
    pops_.pop(pinned, [](auto&&) {});
    ASSERT_EQ(parking_.parked(), 3u);

    source_->readiness.state = plugin::ReadyState::ready;
    parking_.wake_wildcards(queue_key(kDefaultTenant, "q"), "g", 5);
    run_all();
    EXPECT_EQ(claims, 4);
    EXPECT_EQ(probes, 0) << "the pinned pop was not resumed";
    EXPECT_EQ(parking_.parked(), 3u);
}

} // namespace
} // namespace queen::broker
