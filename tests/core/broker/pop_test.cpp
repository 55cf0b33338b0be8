#include "core/broker/pop_parts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace queen::broker {
namespace {

using namespace std::chrono_literals;
using test::uuid_of;
using testing::ElementsAre;
using testing::IsEmpty;

PopResult took(const std::vector<std::string>& partitions) {
    PopResult result;
    for (const auto& name : partitions) {
        PoppedPartition partition;
        partition.partition = name;
        partition.partition_id = uuid_of(7);
        partition.lease_left = 60s;
        partition.drained = true;
        partition.segments.push_back({Offset{0}, 0, 1, {}, "blob"});
        result.partitions.push_back(std::move(partition));
    }
    return result;
}

class PopTest : public PopParts {
protected:
    PopTest() {
        // The first pop of a group makes first contact; the tests below are about what comes after.
        store_.on_pop_wildcard = [](const PopArgs&, const auto& done) { done(PopResult{}); };
        start(request());
        EXPECT_TRUE(ended());
        store_.on_pop_wildcard = nullptr;
        answer_.reset();
    }
    std::shared_ptr<PopCall> start(PopRequest wanted) {
        return pops_.pop(std::move(wanted),
                         [this](Result<PopBatch> batch) { answer_ = std::move(batch); });
    }
    bool ended() const { return answer_.has_value(); }
    std::size_t delivered() const {
        return answer_ && *answer_ ? (*answer_)->partitions.size() : 0;
    }

    std::optional<Result<PopBatch>> answer_;
};

// SV-1: nothing ready means no statement at all.
TEST_F(PopTest, AQuietSourceCostsAWaitingPopNoStatement) {
    start(waiting());
    EXPECT_FALSE(ended());
    EXPECT_EQ(parking_.parked(), 1u);
    ticker_.advance(30s);
    run_all();
    ASSERT_TRUE(ended());
    EXPECT_TRUE(answer_->has_value());
    EXPECT_EQ(delivered(), 0u);
}

TEST_F(PopTest, AClientThatDoesNotWaitAsksTheStoreOncePerInterval) {
    int probes = 0;
    store_.on_has_pending = [&](const PendingQuery&, const auto& done) {
        ++probes;
        done(false);
    };
    start(request());
    start(request());
    EXPECT_EQ(probes, 1);
    clock_.advance(1s);
    start(request());
    EXPECT_EQ(probes, 2);
}

TEST_F(PopTest, AClientThatDoesNotWaitGoesOnAskingWhileTheStoreHasMore) {
    int probes = 0;
    int left = 3;
    store_.on_has_pending = [&](const PendingQuery&, const auto& done) {
        ++probes;
        done(left > 0);
    };
    store_.on_pop_wildcard = [&](const PopArgs&, const auto& done) {
        --left;
        done(took({"a"}));
    };
    for (int i = 0; i < 3; ++i) {
        start(request());
        EXPECT_EQ(delivered(), 1u);
    }
    start(request());
    start(request());
    EXPECT_EQ(probes, 4) << "one found nothing, and the next is an interval away";
}

TEST_F(PopTest, NamesOfTheSourceAreClaimedAndSettled) {
    source_->readiness.state = plugin::ReadyState::ready;
    source_->offers = [](std::uint32_t) { return std::vector<std::string>{"a", "b", "c", "d"}; };
    store_.on_pop_list = [&](const PopArgs& args, const std::vector<std::string>& names,
                             const auto& done) {
        EXPECT_THAT(names, ElementsAre("a", "b", "c", "d"));
        EXPECT_EQ(args.max_partitions, 1);
        auto result = took({"b"});
        result.states.push_back({CandidateState::Kind::empty, "a", uuid_of(1), 0ms});
        result.states.push_back({CandidateState::Kind::leased, "c", uuid_of(3), 500ms});
        done(result);
    };
    start(request());
    EXPECT_EQ(delivered(), 1u);
    EXPECT_FALSE((*answer_)->lease_id.empty());
    EXPECT_THAT(source_->settles,
                ElementsAre("g a#100=empty b#101=leased-by-us c#102=leased d#103=requeue"));
    EXPECT_THAT(source_->learnt, ElementsAre("b"));
    EXPECT_EQ(source_->live_cookies, 0);
}

TEST_F(PopTest, ARoundThatTookNothingAsksAgainAndEndsInAScan) {
    source_->readiness.state = plugin::ReadyState::ready;
    source_->empty_pick = plugin::Pick::scan;
    source_->offers = [](std::uint32_t round) {
        return round == 0 ? std::vector<std::string>{"a"} : std::vector<std::string>{};
    };
    store_.on_pop_list = [](const auto&, const auto&, const auto& done) { done(PopResult{}); };
    store_.on_pop_wildcard = [](const PopArgs&, const auto& done) { done(took({"z"})); };
    start(request());
    EXPECT_THAT(source_->takes, ElementsAre(0u, 1u));
    EXPECT_EQ(delivered(), 1u);
    EXPECT_EQ(source_->live_cookies, 0);
}

// What others hold of the group comes up again and again, and hides nothing of what other brokers
// pushed.
TEST_F(PopTest, ACandidateThatIsHeldDoesNotKeepAClientThatDoesNotWaitFromAsking) {
    source_->readiness.state = plugin::ReadyState::ready;
    source_->offers = [](std::uint32_t round) {
        return round == 0 ? std::vector<std::string>{"a"} : std::vector<std::string>{};
    };
    int claims = 0;
    store_.on_pop_list = [&](const auto&, const auto&, const auto& done) {
        ++claims;
        PopResult result;
        result.states.push_back({CandidateState::Kind::leased, "a", uuid_of(1), 500ms});
        done(result);
    };
    store_.on_pop_wildcard = [](const PopArgs&, const auto& done) { done(took({"z"})); };
    int probes = 0;
    store_.on_has_pending = [&](const PendingQuery&, const auto& done) {
        ++probes;
        done(probes == 1);
    };
    start(request());
    EXPECT_EQ(claims, 1);
    EXPECT_EQ(delivered(), 1u);
    start(request());
    EXPECT_EQ(probes, 2) << "there may be more";
    start(request());
    EXPECT_EQ(probes, 2) << "the next is an interval away";
    source_->offers = [](std::uint32_t) { return std::vector<std::string>{"a"}; };
    clock_.advance(1s);
    start(request());
    EXPECT_EQ(probes, 3) << "however many candidates there are";
    start(waiting());
    clock_.advance(1s);
    EXPECT_EQ(probes, 3) << "a pop that waits costs no such question";
}

TEST_F(PopTest, ASourceThatOffersForEverIsAskedFourTimes) {
    source_->readiness.state = plugin::ReadyState::ready;
    source_->offers = [](std::uint32_t) { return std::vector<std::string>{"a"}; };
    store_.on_pop_list = [](const auto&, const auto&, const auto& done) { done(PopResult{}); };
    start(request());
    EXPECT_TRUE(ended());
    EXPECT_THAT(source_->takes, ElementsAre(0u, 1u, 2u, 3u));
}

TEST_F(PopTest, AsksForEightNamesAPartitionWithinBounds) {
    source_->readiness.state = plugin::ReadyState::ready;
    for (const auto partitions : {1, 4, 1000}) {
        auto wanted = request();
        wanted.partitions = partitions;
        start(wanted);
    }
    EXPECT_THAT(source_->limits, ElementsAre(16u, 32u, 256u));
}

// SV-4: the drop guard.
TEST_F(PopTest, AFailedClaimSettlesAsRequeue) {
    source_->readiness.state = plugin::ReadyState::ready;
    source_->offers = [](std::uint32_t) { return std::vector<std::string>{"a"}; };
    store_.on_pop_list = [](const auto&, const auto&, const auto& done) {
        done(fail(Errc::timeout, "ran over its time"));
    };
    start(request());
    ASSERT_TRUE(ended());
    EXPECT_EQ(answer_->error().code, Errc::timeout);
    EXPECT_THAT(source_->settles, ElementsAre("g a#100=requeue"));
    EXPECT_EQ(source_->live_cookies, 0);
}

// A 5xx on a long poll ends the client's consumer: a waiting pop keeps waiting.
TEST_F(PopTest, AFailedClaimOfAWaitingPopKeepsWaiting) {
    source_->readiness.state = plugin::ReadyState::cold;
    source_->empty_pick = plugin::Pick::scan;
    int scans = 0;
    store_.on_pop_wildcard = [&](const PopArgs&, const auto& done) {
        if (++scans == 1) {
            done(fail(Errc::unavailable, "pool"));
        } else {
            done(took({"a"}));
        }
    };
    start(waiting());
    EXPECT_FALSE(ended());
    ticker_.advance(100ms);
    run_all();
    EXPECT_EQ(delivered(), 1u);
}

TEST_F(PopTest, AnUndecidedSourceIsProbedOnceForAllWhoAskTogether) {
    source_->readiness.state = plugin::ReadyState::ask_store;
    std::vector<Done<bool>> probes;
    store_.on_has_pending = [&](const PendingQuery&, auto done) {
        probes.push_back(std::move(done));
    };
    for (int i = 0; i < 5; ++i) {
        start(waiting());
    }
    ASSERT_EQ(probes.size(), 1u);
    probes[0](false);
    ASSERT_EQ(probes.size(), 2u) << "those who came during the first probe share the next";
    probes[1](false);
    EXPECT_EQ(probes.size(), 2u);
    EXPECT_EQ(parking_.parked(), 5u);
}

// A scan that stopped at its budget did not look at the partitions behind: they are for the next.
TEST_F(PopTest, AScanThatUsedUpItsBatchWakesTheNextWaiter) {
    source_->readiness.state = plugin::ReadyState::ask_store;
    source_->empty_pick = plugin::Pick::scan;
    bool pending = false;
    store_.on_has_pending = [&](const PendingQuery&, const auto& done) { done(pending); };
    int scans = 0;
    store_.on_pop_wildcard = [&](const PopArgs&, const auto& done) {
        done(++scans == 1 ? took({"a"}) : PopResult{});
    };
    auto wanted = waiting();
    wanted.batch = 1;
    wanted.partitions = 2;
    start(wanted);
    start(wanted);
    ASSERT_EQ(parking_.parked(), 2u);
    pending = true;
    parking_.wake(queue_key(kDefaultTenant, "q"), {}, {}, 1, Parking::Urgency::at_once);
    run_all();
    EXPECT_EQ(scans, 2);
}

TEST_F(PopTest, AGroupWhoseMarkerIsGoneMakesFirstContactAgain) {
    source_->readiness.state = plugin::ReadyState::ready;
    source_->offers = [](std::uint32_t) { return std::vector<std::string>{"a"}; };
    store_.on_pop_list = [](const auto&, const auto&, const auto& done) {
        auto result = took({"a"});
        result.seeded = false;
        done(result);
    };
    start(request());
    int scans = 0;
    store_.on_pop_wildcard = [&](const PopArgs&, const auto& done) {
        ++scans;
        done(PopResult{});
    };
    start(request());
    EXPECT_EQ(scans, 1);
}

// A pop that races the seeder of its group comes back empty; first contact is still to be made.
TEST_F(PopTest, AFirstContactThatLostTheRaceIsMadeAgain) {
    int scans = 0;
    store_.on_pop_wildcard = [&](const PopArgs&, const auto& done) {
        PopResult result;
        result.seeded = ++scans > 1;
        done(result);
    };
    auto wanted = request();
    wanted.group = "late";
    start(wanted);
    start(wanted);
    EXPECT_EQ(scans, 2);
    start(wanted);
    EXPECT_EQ(scans, 2) << "the source is asked from now on";
}

TEST_F(PopTest, APushWakesAParkedPopOfTheQueueItsPartitionAndItsLabels) {
    store_.on_pop_specific = [](const auto&, const auto&, const auto& done) { done(PopResult{}); };
    store_.on_pop_discover = [](const auto&, const auto&, const auto&, const auto& done) {
        done(PopResult{});
    };
    auto pinned = waiting();
    pinned.shape = PopRequest::Shape::pinned;
    pinned.partition = "a";
    auto elsewhere = pinned;
    elsewhere.partition = "b";
    auto discovery = waiting();
    discovery.shape = PopRequest::Shape::discovery;
    discovery.ns = "n";
    for (const auto& wanted : {waiting(), pinned, elsewhere, discovery}) {
        start(wanted);
    }
    ASSERT_EQ(parking_.parked(), 4u);
    const Arrival arrival{"a", uuid_of(7), 1};
    announcer_.arrived(kDefaultTenant, "q", plugin::Origin::push, {&arrival, 1});
    EXPECT_EQ(parking_.parked(), 1u) << "only the pop of partition b sleeps on";
}

// K10: probes leave out live leases, so an expired one is found by the floor without any event.
TEST_F(PopTest, TheFloorLooksAtEachParkedScopeWithinASecondForever) {
    source_->readiness.state = plugin::ReadyState::ask_store;
    int probes = 0;
    store_.on_has_pending = [&](const PendingQuery&, const auto& done) {
        ++probes;
        done(false);
    };
    start(waiting());
    for (int second = 1; second <= 20; ++second) {
        const auto before = probes;
        for (int i = 0; i < 10; ++i) {
            ticker_.advance(100ms);
            run_all();
        }
        EXPECT_GE(probes, before + 1) << "second " << second;
    }
    EXPECT_LE(probes, 40) << "and not more often than the backoff says";
}

TEST_F(PopTest, AnAbandonedPopIsNeverAnswered) {
    const auto call = start(waiting());
    call->abandon();
    EXPECT_EQ(parking_.parked(), 0u);
    ticker_.advance(60s);
    run_all();
    EXPECT_FALSE(ended());
}

TEST_F(PopTest, AnUndeliveredBatchGoesBackAndWakesTheNext) {
    source_->readiness.state = plugin::ReadyState::ready;
    source_->offers = [](std::uint32_t) { return std::vector<std::string>{"a"}; };
    store_.on_pop_list = [](const auto&, const auto&, const auto& done) { done(took({"a"})); };
    start(request());
    ASSERT_EQ(delivered(), 1u);
    store_.on_release_undelivered = [&](const Uuid& id, const std::string& group,
                                        const std::string& worker, const auto& done) {
        EXPECT_EQ(id, uuid_of(7));
        EXPECT_EQ(group, "g");
        EXPECT_EQ(worker, (*answer_)->lease_id);
        done(true);
    };
    pops_.undelivered(request(), **answer_);
    EXPECT_THAT(source_->releases, ElementsAre("q g"));
}

TEST_F(PopTest, AnAutoAckedBatchIsNotGivenBack) {
    pops_.undelivered(request(), PopBatch{"", took({"a"}).partitions});
    EXPECT_THAT(source_->releases, IsEmpty());
}

TEST_F(PopTest, ClosingAnswersEveryoneEmpty) {
    start(waiting());
    pops_.close();
    run_all();
    ASSERT_TRUE(ended());
    EXPECT_EQ(delivered(), 0u);
}

// Backoff LP-1: 100 ms three times, then growing, never over a second.
TEST(Backoff, GrowsAfterTheThresholdUpToTheFloor) {
    const Backoff backoff;
    EXPECT_EQ(backoff.interval(1), 100ms);
    EXPECT_EQ(backoff.interval(3), 100ms);
    EXPECT_EQ(backoff.interval(4), 800ms);
    EXPECT_EQ(backoff.interval(5), 1000ms);
    EXPECT_EQ(backoff.interval(1'000'000), 1000ms);
}

// F-26: a burst of pushes is one wake at once and one when the quiet time is over.
TEST(Parking, ABurstOfPushesWakesTwice) {
    struct Counting final : Waiter {
        void resume() override { ++resumed; }
        int resumed = 0;
    };
    test::ManualClock clock;
    test::ManualTicker ticker(clock);
    Parking parking(ticker, clock, {});
    const WaitScope scope{.gate = "k", .group = "g", .partition = {}, .labels = {}};
    std::vector<std::unique_ptr<Parking::Place>> places;
    std::vector<std::shared_ptr<Counting>> waiters;
    for (int i = 0; i < 10; ++i) {
        places.push_back(parking.enter(scope));
        waiters.push_back(std::make_shared<Counting>());
        parking.ticket(*places.back());
        ASSERT_TRUE(parking.park(*places.back(), waiters.back(), SteadyTime::max()));
    }
    for (int i = 0; i < 4; ++i) {
        parking.wake("k", "", {}, 1, Parking::Urgency::coalesced);
    }
    EXPECT_EQ(parking.parked(), 9u);
    ticker.advance(Parking::kCoalesce);
    EXPECT_EQ(parking.parked(), 6u) << "the three that waited come together";
    EXPECT_EQ(waiters[0]->resumed, 1) << "in the order of arrival";
    EXPECT_EQ(waiters[4]->resumed, 0);
    parking.close();
}

TEST(Parking, AWaiterKeepsItsPlaceWhenItLooksInVain) {
    struct Silent final : Waiter {
        void resume() override {}
    };
    test::ManualClock clock;
    test::ManualTicker ticker(clock);
    Parking parking(ticker, clock, {});
    const WaitScope scope{.gate = "k", .group = "g", .partition = {}, .labels = {}};
    const auto first = parking.enter(scope);
    const auto second = parking.enter(scope);
    const auto waiter = std::make_shared<Silent>();
    for (auto* place : {second.get(), first.get()}) {
        parking.ticket(*place);
        ASSERT_TRUE(parking.park(*place, waiter, SteadyTime::max()));
    }
    parking.wake("k", "", {}, 1, Parking::Urgency::at_once);
    EXPECT_FALSE(parking.leave(*first)) << "it came first, so it was woken first";
    EXPECT_TRUE(parking.leave(*second));
}

} // namespace
} // namespace queen::broker
