#include "broker/switches.hpp"
#include "core/broker/pop_parts.hpp"
#include "support/scripted_system_store.hpp"

namespace queen::broker {
namespace {

using namespace std::chrono_literals;

/// A pop path whose pops ask the switches.
class SwitchesTest : public PopParts {
protected:
    SwitchesTest() {
        system_.on_read_switches = [this](const Done<SwitchStates>& done) {
            ++reads_;
            if (away_) {
                done(fail(Errc::unavailable, "no database"));
            } else {
                done(held_);
            }
        };
        system_.on_set_switch = [this](SwitchKey, bool enabled, const Done<void>& done) {
            held_.pop_maintenance = enabled;
            done({});
        };
    }
    void set(bool paused) {
        switches_.pause_pops(paused, [](const Result<SwitchStates>& set) { EXPECT_TRUE(set); });
        run_all();
    }
    std::shared_ptr<std::optional<PopBatch>> pop(const PopRequest& request) {
        auto batch = std::make_shared<std::optional<PopBatch>>();
        calls_.push_back(paused_pops_.pop(request, [batch](Result<PopBatch> got) {
            ASSERT_TRUE(got);
            *batch = std::move(*got);
        }));
        run_all();
        return batch;
    }

    test::ScriptedSystemStore system_;
    SwitchStates held_; ///< by the database
    bool away_ = false;
    int reads_ = 0;
    std::vector<std::string> lines_;
    Switches switches_{system_, parking_, ticker_, clock_, {.log = [this](const std::string& line) {
                           lines_.push_back(line);
                       }}};
    Pop paused_pops_{
        store_,   sources_, announcer_, parking_,
        workers_, ticker_,  clock_,     {.paused = [this] { return switches_.pops_paused(); }}};
    std::vector<std::shared_ptr<PopCall>> calls_;
};

// SWI-2
TEST_F(SwitchesTest, AreReadAtTheStartSoonAfterAndEachInterval) {
    held_.pop_maintenance = true;
    bool started = false;
    switches_.start([&](const Result<void>& read) { started = read.has_value(); });
    EXPECT_TRUE(started);
    EXPECT_TRUE(switches_.pops_paused());
    held_.pop_maintenance = false;
    ticker_.advance(4'999ms);
    EXPECT_TRUE(switches_.pops_paused());
    ticker_.advance(1ms);
    EXPECT_FALSE(switches_.pops_paused());
    held_.pop_maintenance = true;
    ticker_.advance(60s);
    EXPECT_TRUE(switches_.pops_paused());
    EXPECT_EQ(reads_, 3);
    switches_.stop();
    ticker_.advance(600s);
    EXPECT_EQ(reads_, 3);
}

TEST_F(SwitchesTest, WhatIsKnownOutlivesADatabaseThatIsAway) {
    set(true);
    away_ = true;
    switches_.start([](const Result<void>& read) { EXPECT_FALSE(read); });
    ticker_.advance(300s);
    EXPECT_TRUE(switches_.pops_paused());
    ASSERT_EQ(lines_.size(), 2u) << "one line for the switch, one for the outage";
    EXPECT_NE(lines_[1].find("no database"), std::string::npos);
    away_ = false;
    ticker_.advance(60s);
    away_ = true;
    ticker_.advance(60s);
    EXPECT_EQ(lines_.size(), 3u) << "the next outage has its own line";
    switches_.stop();
}

TEST_F(SwitchesTest, PausedPopsAskNobody) {
    set(true);
    auto pinned = request();
    pinned.shape = PopRequest::Shape::pinned;
    pinned.partition = "p";
    for (const auto& wanted : {request(), waiting(), pinned}) {
        const auto batch = pop(wanted); // a call of the store would fail the test
        ASSERT_TRUE(batch->has_value());
        EXPECT_TRUE((*batch)->paused);
        EXPECT_TRUE((*batch)->partitions.empty());
    }
    EXPECT_EQ(parking_.parked(), 0u);
}

TEST_F(SwitchesTest, EveryParkedPopHearsThatPopsArePaused) {
    store_.on_pop_wildcard = [](const PopArgs&, const Done<PopResult>& done) { done(PopResult{}); };
    std::vector<std::shared_ptr<std::optional<PopBatch>>> batches;
    for (const char* group : {"g", "g", "h"}) {
        auto wanted = waiting();
        wanted.group = group;
        batches.push_back(pop(wanted));
    }
    EXPECT_EQ(parking_.parked(), 3u);
    set(true);
    for (const auto& batch : batches) {
        ASSERT_TRUE(batch->has_value());
        EXPECT_TRUE((*batch)->paused);
    }
    EXPECT_EQ(parking_.parked(), 0u);
}

// The look was on its way when pops were paused: it saw nothing, and must not park after all.
TEST_F(SwitchesTest, APopThatIsAboutToParkHearsItToo) {
    Done<PopResult> answer;
    store_.on_pop_wildcard = [&](const PopArgs&, Done<PopResult> done) {
        answer = std::move(done);
    };
    const auto batch = pop(waiting());
    set(true);
    EXPECT_FALSE(batch->has_value());
    answer(PopResult{});
    run_all();
    ASSERT_TRUE(batch->has_value());
    EXPECT_TRUE((*batch)->paused);
}

TEST_F(SwitchesTest, WhatWasClaimedBeforeIsDelivered) {
    Done<PopResult> answer;
    store_.on_pop_wildcard = [&](const PopArgs&, Done<PopResult> done) {
        answer = std::move(done);
    };
    const auto batch = pop(request());
    set(true);
    PopResult result;
    result.partitions.emplace_back().partition = "p";
    answer(std::move(result));
    run_all();
    ASSERT_TRUE(batch->has_value());
    EXPECT_EQ((*batch)->partitions.size(), 1u);
}

TEST_F(SwitchesTest, PopsGoOnWhenThePauseIsOver) {
    set(true);
    set(false);
    int asked = 0;
    store_.on_pop_wildcard = [&](const PopArgs&, const Done<PopResult>& done) {
        ++asked;
        done(PopResult{});
    };
    const auto batch = pop(request());
    EXPECT_EQ(asked, 1);
    EXPECT_FALSE((*batch)->paused);
}

// A mesh's hints come in any number; the one read after the last of them is what counts.
TEST_F(SwitchesTest, ARefreshReadsNowAndOnceMoreForThoseThatCameMeanwhile) {
    std::vector<Done<SwitchStates>> reads;
    system_.on_read_switches = [&](const Done<SwitchStates>& done) { reads.push_back(done); };
    switches_.refresh();
    EXPECT_TRUE(reads.empty()) << "it has not started";
    switches_.start([](const Result<void>&) {});
    ASSERT_EQ(reads.size(), 1u);
    for (int i = 0; i < 3; ++i) {
        switches_.refresh();
    }
    ASSERT_EQ(reads.size(), 2u);
    reads[1](SwitchStates{});
    ASSERT_EQ(reads.size(), 3u) << "what was set during the first one";
    reads[2](SwitchStates{.pop_maintenance = true});
    EXPECT_TRUE(switches_.pops_paused());
    EXPECT_EQ(reads.size(), 3u);
    switches_.refresh();
    switches_.refresh();
    ASSERT_EQ(reads.size(), 4u);
    switches_.stop();
    reads[3](fail(Errc::unavailable, "no database"));
    EXPECT_EQ(reads.size(), 4u) << "nothing begins after the end";
}

// A peer's hint that meets a set of ours: its read may be older than the set, and is not the last.
TEST_F(SwitchesTest, ARefreshThatMeetsASetReadsAgainWhenTheSetsAreOver) {
    std::vector<Done<SwitchStates>> reads;
    std::vector<Done<void>> sets;
    system_.on_read_switches = [&](const Done<SwitchStates>& done) { reads.push_back(done); };
    system_.on_set_switch = [&](SwitchKey, bool, const Done<void>& done) { sets.push_back(done); };
    const SwitchStates there{.pop_maintenance = true, .timers_fire = false};
    switches_.start([](const Result<void>&) {});
    reads[0](SwitchStates{});
    const auto set = [&] { switches_.pause_pops(true, [](const Result<SwitchStates>&) {}); };
    set();
    switches_.refresh();
    ASSERT_EQ(reads.size(), 2u);
    reads[1](SwitchStates{.timers_fire = false});
    EXPECT_TRUE(switches_.timers_fire()) << "it may be older than the set";
    sets[0]({});
    ASSERT_EQ(reads.size(), 3u);
    reads[2](there);
    EXPECT_EQ(switches_.known(), there);

    set();
    switches_.refresh();
    sets[1]({});
    reads[3](SwitchStates{}); // the set is over, yet it may be older
    EXPECT_EQ(switches_.known(), there);
    ASSERT_EQ(reads.size(), 5u);
    reads[4](SwitchStates{});
    EXPECT_EQ(switches_.known(), SwitchStates{});
    EXPECT_EQ(reads.size(), 5u);
    switches_.stop();
}

} // namespace
} // namespace queen::broker
