// minPopWaitTime: pops that wait for a fuller batch (MW-1 to MW-3).
#include "core/broker/pop_parts.hpp"

#include <gmock/gmock.h>

namespace queen::broker {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

class PopFillTest : public PopParts {
protected:
    PopFillTest() {
        // First contact, by which the broker learns the queue's time.
        store_.on_pop_wildcard = [](const PopArgs&, const auto& done) { done(learnt(5s)); };
        pops_.pop(request(), [](auto&&) {});
        store_.on_pop_wildcard = nullptr;
        store_.on_pop_list = [this](const PopArgs&, const auto&, const auto& done) {
            claims_.push_back(clock_.now() - begin_);
            done(take());
        };
        source_->offers = [](std::uint32_t) { return std::vector<std::string>{"p"}; };
    }

    ~PopFillTest() override { // those who still wait write into members of this class
        pops_.close();
        run_all();
    }

    static PopResult learnt(std::chrono::milliseconds time) {
        PopResult result;
        result.min_pop_wait = time;
        return result;
    }
    /// All that is ready, as the source sees it, is taken.
    PopResult take() {
        auto result = learnt(time_);
        const auto ready = std::exchange(source_->readiness, {});
        if (ready.state == plugin::ReadyState::nothing) {
            return result;
        }
        PoppedPartition partition;
        partition.partition = "p";
        partition.partition_id = test::uuid_of(1);
        partition.drained = true;
        partition.segments.push_back(
            {Offset{0},
             0,
             static_cast<std::uint32_t>(std::max<std::uint64_t>(ready.messages, 1)),
             {},
             "blob"});
        result.partitions.push_back(std::move(partition));
        return result;
    }
    /// Messages are ready; the wake goes out.
    void arrive(std::uint64_t messages) {
        source_->readiness = {
            .state = plugin::ReadyState::ready, .partitions = 1, .messages = messages};
        parking_.wake(queue_key(kDefaultTenant, "q"), {}, {}, 1, Parking::Urgency::at_once);
        run_all();
    }
    void pass(Nanoseconds time) {
        const auto end = clock_.now() + time;
        while (clock_.now() < end) {
            ticker_.advance(std::min<Nanoseconds>(end - clock_.now(), 100ms));
            run_all();
        }
    }
    static PopRequest wanting(std::int32_t batch, std::chrono::milliseconds timeout = 30s) {
        auto wanted = waiting();
        wanted.batch = batch;
        wanted.timeout = timeout;
        return wanted;
    }
    /// @return place of its answer in answers_
    void start(const PopRequest& wanted, const std::string& name) {
        pops_.pop(wanted, [this, name](Result<PopBatch> batch) {
            answers_.push_back(name + (batch && !batch->partitions.empty() ? " took" : " empty"));
        });
    }

    std::chrono::milliseconds time_{5s};
    const SteadyTime begin_ = clock_.now();
    std::vector<Nanoseconds> claims_;
    std::vector<std::string> answers_;
};

TEST_F(PopFillTest, WhatDoesNotFillTheBatchWaitsForTheQueuesTime) {
    start(wanting(10), "a");
    pass(1s);
    arrive(3);
    EXPECT_THAT(claims_, IsEmpty());
    pass(4900ms);
    EXPECT_THAT(answers_, IsEmpty());
    pass(100ms);
    EXPECT_THAT(claims_, ElementsAre(6s));
    EXPECT_THAT(answers_, ElementsAre("a took"));
}

TEST_F(PopFillTest, TheWaitEndsWhenTheBatchIsFull) {
    start(wanting(10), "a");
    arrive(3);
    pass(1s);
    arrive(9);
    EXPECT_THAT(claims_, IsEmpty());
    arrive(10);
    EXPECT_THAT(claims_, ElementsAre(1s));
    EXPECT_THAT(answers_, ElementsAre("a took"));
}

TEST_F(PopFillTest, TheCallersDeadlineEndsTheWaitWithWhatThereIs) {
    start(wanting(10, 2s), "a");
    arrive(3);
    pass(2s);
    EXPECT_THAT(claims_, ElementsAre(2s));
    EXPECT_THAT(answers_, ElementsAre("a took"));
}

TEST_F(PopFillTest, OnlyPopsThatWaitForSeveralMessagesDo) {
    arrive(1);
    auto at_once = request();
    at_once.batch = 10;
    start(at_once, "does not wait");
    arrive(1);
    start(wanting(1), "one");
    EXPECT_THAT(answers_, ElementsAre("does not wait took", "one took"));
    EXPECT_THAT(claims_, ElementsAre(0s, 0s));
}

TEST_F(PopFillTest, WhoIsWaitedForByOthersIsNotStarved) {
    start(wanting(10), "ten");
    start(wanting(10), "ten more");
    start(wanting(1), "one");
    arrive(1);
    EXPECT_THAT(answers_, ElementsAre("one took")) << "though it stands behind two that are held";
    start(wanting(3), "three");
    arrive(3);
    EXPECT_THAT(answers_, ElementsAre("one took", "three took"));
    pass(6s);
    EXPECT_THAT(answers_, ElementsAre("one took", "three took")) << "nothing is left";
}

TEST_F(PopFillTest, AnEmptyQueueCostsNoStatementWhenTheTimeIsOver) {
    start(wanting(10), "a");
    arrive(3);
    pass(1s);
    source_->readiness = {}; // another broker's pop took it
    pass(20s);
    EXPECT_THAT(claims_, IsEmpty());
    arrive(3);
    pass(5s);
    EXPECT_THAT(claims_, ElementsAre(26s)) << "a time of its own";
}

TEST_F(PopFillTest, AConfigurationHoldsForThoseWhoWaitAlready) {
    start(wanting(10), "a");
    arrive(3);
    pass(1s);
    time_ = 0ms;
    pops_.configured(kDefaultTenant, "q", {{0s, 0s, clock_.now()}, 0s});
    announcer_.configured(kDefaultTenant, "q", {0s, 0s, clock_.now()});
    run_all();
    EXPECT_THAT(claims_, ElementsAre(1s));
}

// A source that cannot tell is asked for nothing: the store says that something is pending, once.
TEST_F(PopFillTest, WithoutAnEstimateTheTimeIsWaitedOutAfterOneProbe) {
    int probes = 0;
    bool pending = false;
    store_.on_has_pending = [&](const PendingQuery&, const auto& done) {
        ++probes;
        done(pending);
    };
    source_->readiness.state = plugin::ReadyState::ask_store;
    start(wanting(10), "a");
    EXPECT_EQ(probes, 1);
    pending = true;
    parking_.wake(queue_key(kDefaultTenant, "q"), {}, {}, 1, Parking::Urgency::at_once);
    run_all();
    EXPECT_EQ(probes, 2);
    parking_.wake(queue_key(kDefaultTenant, "q"), {}, {}, 1, Parking::Urgency::at_once);
    run_all();
    EXPECT_EQ(probes, 2);
    pass(5s);
    EXPECT_THAT(claims_, ElementsAre(5s));
    EXPECT_EQ(probes, 2);
    EXPECT_THAT(answers_, ElementsAre("a took"));
}

TEST_F(PopFillTest, APinnedPopWaitsTheTimeOnceItsPartitionHasSomething) {
    int probes = 0;
    bool pending = false;
    std::vector<Nanoseconds> claimed;
    store_.on_has_pending = [&](const PendingQuery& query, const auto& done) {
        EXPECT_EQ(query.partition, "p");
        ++probes;
        done(pending);
    };
    store_.on_pop_specific = [&](const auto&, const auto&, const auto& done) {
        claimed.push_back(clock_.now() - begin_);
        source_->readiness.state = plugin::ReadyState::ready;
        done(take());
    };
    auto pinned = wanting(10);
    pinned.shape = PopRequest::Shape::pinned;
    pinned.partition = "p";
    start(pinned, "a");
    EXPECT_EQ(probes, 1);
    pending = true;
    const std::string_view name = "p";
    parking_.wake(queue_key(kDefaultTenant, "q"), {}, {&name, 1}, 1, Parking::Urgency::at_once);
    run_all();
    EXPECT_EQ(probes, 2);
    EXPECT_THAT(claimed, IsEmpty());
    pass(5s);
    EXPECT_THAT(claimed, ElementsAre(5s));
    EXPECT_THAT(answers_, ElementsAre("a took"));
}

TEST_F(PopFillTest, ADiscoveryNeverWaitsForMore) {
    int claims = 0;
    store_.on_pop_discover = [&](const auto&, const auto&, const auto&, const auto& done) {
        ++claims;
        source_->readiness.state = plugin::ReadyState::ready;
        done(take());
    };
    auto discovery = wanting(10);
    discovery.shape = PopRequest::Shape::discovery;
    discovery.queue.clear();
    discovery.ns = "n";
    start(discovery, "a");
    EXPECT_EQ(claims, 1);
    EXPECT_THAT(answers_, ElementsAre("a took"));
}

TEST_F(PopFillTest, OfAGroupThatConflatesPartitionsAreCounted) {
    store_.on_pop_list = [this](const PopArgs&, const auto&, const auto& done) {
        claims_.push_back(clock_.now() - begin_);
        auto result = take();
        result.conflates = true;
        done(result);
    };
    arrive(100);
    start(wanting(2), "teaches"); // that the group conflates
    claims_.clear();
    start(wanting(2), "a");
    arrive(100);
    EXPECT_THAT(claims_, IsEmpty()) << "a hundred messages, and one will be delivered";
    source_->readiness.partitions = 2;
    pass(5s);
    EXPECT_THAT(claims_, ElementsAre(5s));
}

TEST_F(PopFillTest, WaitsAreCountedWithTheTimeTheyTook) {
    const auto activity = std::make_shared<metrics::Activity>(clock_);
    Pop pops(store_, sources_, announcer_, parking_, workers_, ticker_, clock_,
             {.activity = activity});
    store_.on_pop_wildcard = [](const PopArgs&, const auto& done) { done(learnt(5s)); };
    pops.pop(request(), [](auto&&) {});
    pops.pop(wanting(10), [](auto&&) {});
    arrive(3);
    EXPECT_EQ(activity->pop.fill_waits.value(), 1u);
    EXPECT_EQ(activity->pop.fill_wait_micros.value(), 0u);
    pass(5s);
    EXPECT_EQ(activity->pop.fill_waits.value(), 1u);
    EXPECT_EQ(activity->pop.fill_wait_micros.value(), 5'000'000u);
}

} // namespace
} // namespace queen::broker
