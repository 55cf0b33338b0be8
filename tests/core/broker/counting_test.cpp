// What push, pop, ack, parking and sources count, against what they did.
#include "base/text.hpp"
#include "broker/ack.hpp"
#include "broker/counted_source.hpp"
#include "broker/pop.hpp"
#include "broker/push.hpp"
#include "core/broker/broker_parts.hpp"
#include "model/names.hpp"
#include "support/manual_workers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace queen::broker {
namespace {

using namespace std::chrono_literals;
using metrics::QueueFigures;
using test::uuid_of;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

class CountingTest : public BrokerParts {
protected:
    ~CountingTest() override {
        pops_.close();
        workers_.run_all();
    }

    QueueFigures figures_of(const std::string& queue) {
        clock_.advance(1min);
        for (const auto& line : activity_->queues.last_minute().lines) {
            if (line.queue == queue) {
                return line.figures;
            }
        }
        return {};
    }
    static PopRequest wanted(bool wait = false) {
        PopRequest request;
        request.tenant = kDefaultTenant;
        request.queue = "q";
        request.group = "g";
        request.auto_ack = true;
        request.wait = wait;
        return request;
    }
    static PopResult took(std::uint32_t messages, Nanoseconds ago) {
        PopResult result;
        PoppedPartition partition;
        partition.partition = "p";
        partition.partition_id = uuid_of(7);
        partition.lease_left = 60s;
        partition.drained = true;
        const auto stored =
            std::chrono::floor<std::chrono::microseconds>(SystemClock::wall() - ago);
        partition.segments.push_back({Offset{0}, 0, messages, stored, "blob"});
        result.partitions.push_back(std::move(partition));
        return result;
    }
    void pop(PopRequest request) {
        pops_.pop(std::move(request), [this](Result<PopBatch> batch) { last_ = std::move(batch); });
        workers_.run_all();
    }

    test::ManualWorkers workers_;
    std::shared_ptr<metrics::Activity> activity_ = std::make_shared<metrics::Activity>(clock_);
    std::shared_ptr<CountedSource> counted_ = std::make_shared<CountedSource>(source_);
    Sources counted_sources_{{{"counted", counted_}}, "counted"};
    Push pushes_{store_, announcer_, clock_, {.activity = activity_}};
    Pop pops_{store_,   counted_sources_, announcer_, parking_,
              workers_, ticker_,          clock_,     {.activity = activity_}};
    Acks acks_{store_, announcer_, clock_, 30s, activity_};
    std::optional<Result<PopBatch>> last_;
};

TEST_F(CountingTest, APushCountsWhatWasStoredByQueue) {
    store_.on_push = [](const std::vector<PushSegment>& segments, const auto& done) {
        std::vector<PushOutcome> outcomes(segments.size());
        for (auto& outcome : outcomes) {
            outcome.base = Offset{0};
        }
        done(outcomes);
    };
    pushes_.push({.tenant = std::string(kDefaultTenant),
                  .items = {{"q", "a", "t1", "1"},
                            {"r", "a", "t1", "1"},
                            {"q", "b", "t2", "1"},
                            {"q", "a", "t1", "1"}}, // repeats the first
                  .hold = {}},
                 [](const auto&) {});
    store_.on_push = nullptr; // refuses
    pushes_.push(
        {.tenant = std::string(kDefaultTenant), .items = {{"q", "a", "t3", "1"}}, .hold = {}},
        [](const auto&) {});
    pushes_.push({}, [](const auto&) {}); // nothing asked
    EXPECT_EQ(activity_->push.requests.value(), 2u);
    EXPECT_EQ(activity_->push.messages.value(), 3u);
    EXPECT_EQ(activity_->push.duplicates.value(), 1u);
    EXPECT_EQ(activity_->push.failed.value(), 1u);
    EXPECT_EQ(figures_of("q"), (QueueFigures{.push_requests = 2, .push_messages = 2}));
}

TEST_F(CountingTest, APopCountsMessagesAndTheirLag) {
    store_.on_pop_wildcard = [](const PopArgs&, const auto& done) { done(took(5, 2h)); };
    pop(wanted());
    ASSERT_TRUE(last_ && *last_);
    store_.on_pop_wildcard = [](const PopArgs&, const auto& done) { done(took(1, -1h)); };
    source_->readiness.state = plugin::ReadyState::cold;
    source_->empty_pick = plugin::Pick::scan;
    pop(wanted());
    const auto& counted = activity_->pop;
    EXPECT_EQ(counted.requests.value(), 2u);
    EXPECT_EQ(counted.taken.value(), 2u);
    EXPECT_EQ(counted.messages.value(), 6u);
    EXPECT_EQ(counted.empty.value(), 0u);
    EXPECT_EQ(counted.first_contacts.value(), 1u);
    const auto lag = counted.lag.snapshot();
    EXPECT_EQ(lag.count(), 6u);
    EXPECT_EQ(lag.buckets.front(), 1u) << "a database clock ahead of ours is no lag";
    EXPECT_EQ(lag.buckets.back(), 5u);
    const auto figures = figures_of("q");
    EXPECT_EQ(figures.pop_messages, 6u);
    EXPECT_GE(figures.lag_max, 2h);
    EXPECT_GE(figures.lag_sum, 10h);
    EXPECT_LT(figures.lag_sum, 15h);
}

TEST_F(CountingTest, EmptyAndFailedPopsAreToldApart) {
    store_.on_pop_wildcard = [](const PopArgs&, const auto& done) { done(PopResult{}); };
    pop(wanted());
    store_.on_pop_wildcard = [](const PopArgs&, const auto& done) {
        done(fail(Errc::store_failed, "refused"));
    };
    source_->readiness.state = plugin::ReadyState::cold;
    source_->empty_pick = plugin::Pick::scan;
    pop(wanted());
    EXPECT_EQ(activity_->pop.requests.value(), 2u);
    EXPECT_EQ(activity_->pop.empty.value(), 1u);
    EXPECT_EQ(activity_->pop.failed.value(), 1u);
    EXPECT_EQ(figures_of("q"), (QueueFigures{.pop_empty = 1}));
}

TEST_F(CountingTest, ProbesCountByTheirAnswer) {
    store_.on_pop_wildcard = [](const PopArgs&, const auto& done) { done(PopResult{}); };
    pop(wanted()); // first contact
    source_->readiness.state = plugin::ReadyState::ask_store;
    for (const auto& answer :
         {Result<bool>(true), Result<bool>(false), Result<bool>(fail(Errc::timeout, "late"))}) {
        store_.on_has_pending = [answer](const PendingQuery&, const auto& done) { done(answer); };
        pop(wanted());
    }
    EXPECT_EQ(activity_->pop.probes_pending.value(), 1u);
    EXPECT_EQ(activity_->pop.probes_none.value(), 1u);
    EXPECT_EQ(activity_->pop.probes_failed.value(), 1u);
}

TEST_F(CountingTest, WhatWentBackIsCountedWhenTheStoreTookIt) {
    PopBatch batch{.lease_id = "lease", .partitions = took(1, 0s).partitions};
    store_.on_release_undelivered = [](auto, auto, auto, const auto& done) { done(true); };
    pops_.undelivered(wanted(), batch);
    store_.on_release_undelivered = [](auto, auto, auto, const auto& done) { done(false); };
    pops_.undelivered(wanted(), batch);
    EXPECT_EQ(activity_->pop.given_back.value(), 1u);
}

TEST_F(CountingTest, AcksCountByHowTheyWereSettled) {
    store_.on_ack_by_hash = [](const HashAcks& acks, const auto& done) {
        HashAckOutcome outcome;
        outcome.queue = "q";
        outcome.ok = acks.worker != "lost";
        if (acks.worker == "unresolved") {
            outcome.unresolved = {acks.items.front().hash};
        } else if (acks.worker == "L") {
            outcome.filed = {4};
        }
        done(outcome);
    };
    const auto item = [](std::string id, std::string lease, AckStatus status) {
        AckItem one;
        one.transaction_id = std::move(id);
        one.partition_id = to_string(uuid_of(1));
        one.lease_id = std::move(lease);
        one.status = status;
        return one;
    };
    AckItem nowhere;
    nowhere.partition_id = "not an id";
    acks_.ack({std::string(kDefaultTenant),
               "g",
               {item("a", "L", AckStatus::completed), item("b", "L", AckStatus::completed),
                item("c", "L", AckStatus::failed), item("d", "L", AckStatus::retry),
                item("e", "L", AckStatus::dlq), item("f", "lost", AckStatus::completed),
                item("g", "unresolved", AckStatus::completed), nowhere}},
              [](const auto&) {});
    EXPECT_EQ(activity_->ack.requests.value(), 1u);
    EXPECT_EQ(activity_->ack.messages.value(), 5u);
    EXPECT_EQ(activity_->ack.refused.value(), 3u);
    EXPECT_EQ(activity_->ack.dead_letters.value(), 1u);
    EXPECT_EQ(figures_of("q"), (QueueFigures{.acks = {2, 1, 1, 1, 2}}));
}

TEST_F(CountingTest, WakesCountByTheirCause) {
    store_.on_pop_wildcard = [](const PopArgs&, const auto& done) { done(PopResult{}); };
    pop(wanted()); // first contact
    pop(wanted(true));
    pop(wanted(true));
    PopRequest elsewhere = wanted(true);
    elsewhere.group = "h";
    pop(elsewhere);
    EXPECT_EQ(parking_.parked(), 3u);
    const std::string key = queue_key(kDefaultTenant, "q");
    EXPECT_THAT(parking_.parked_by_queue(), ElementsAre(Pair("q", 3)));

    parking_.wake(key, "g", {}, 1, Parking::Urgency::at_once);
    EXPECT_EQ(parking_.statistics().woken, 1u);
    EXPECT_THAT(parking_.parked_by_queue(), ElementsAre(Pair("q", 2)));
    workers_.run_all();
    EXPECT_THAT(parking_.parked_by_queue(), ElementsAre(Pair("q", 3))) << "looked in vain";
    ticker_.advance(100ms); // the floors of both scopes
    EXPECT_EQ(parking_.statistics().floor_looks, 2u);
    workers_.run_all();
    EXPECT_EQ(parking_.statistics().passed_on, 0u);
    const auto place = parking_.enter({.gate = key, .group = "g", .partition = {}, .labels = {}});
    parking_.pass_on(*place);
    EXPECT_EQ(parking_.statistics().passed_on, 1u);
    workers_.run_all();
}

TEST_F(CountingTest, ParkedPopsAreCountedByQueueWhateverHappensToThem) {
    std::vector<std::unique_ptr<Parking::Place>> places;
    struct Deaf final : Waiter {
        void resume() override {}
    };
    const auto park = [&](const std::string& gate) {
        places.push_back(
            parking_.enter({.gate = gate, .group = "g", .partition = {}, .labels = {}}));
        parking_.ticket(*places.back());
        EXPECT_TRUE(parking_.park(*places.back(), std::make_shared<Deaf>(), SteadyTime::max()));
    };
    for (int i = 0; i < 5000; ++i) { // more than one lock's share of a shard
        park(queue_key("t", "q" + std::to_string(i)));
    }
    park(queue_key("t", "many"));
    park(queue_key("t", "many"));
    park(queue_key("u", "many"));
    park(discovery_gate("t"));
    auto all = parking_.parked_by_queue();
    EXPECT_EQ(all.size(), 5002u) << "one a gate, discoveries left out";
    std::sort(all.begin(), all.end());
    EXPECT_THAT(std::vector(all.begin(), all.begin() + 2),
                ElementsAre(Pair("many", 1), Pair("many", 2)));
    places.erase(places.begin() + 5000); // one of two of a queue goes without a wake
    all = parking_.parked_by_queue();
    std::sort(all.begin(), all.end());
    EXPECT_THAT(std::vector(all.begin(), all.begin() + 2),
                ElementsAre(Pair("many", 1), Pair("many", 1)));
    EXPECT_TRUE(parking_.leave(*places[0]));
    places.pop_back();
    EXPECT_EQ(parking_.parked_by_queue().size(), 5001u);
    parking_.close();
    EXPECT_THAT(parking_.parked_by_queue(), IsEmpty());
    EXPECT_EQ(parking_.parked(), 0u);
}

TEST_F(CountingTest, ASourceIsCountedAndSeesTheSame) {
    store_.on_pop_wildcard = [](const PopArgs&, const auto& done) { done(PopResult{}); };
    pop(wanted()); // first contact
    source_->readiness.state = plugin::ReadyState::ready;
    source_->offers = [](std::uint32_t) { return std::vector<std::string>{"p", "b", "c", "d"}; };
    store_.on_pop_list = [](const PopArgs&, const auto&, const auto& done) {
        auto result = took(1, 0s);
        result.states.push_back({CandidateState::Kind::empty, "b", uuid_of(1), 0ms});
        result.states.push_back({CandidateState::Kind::leased, "c", uuid_of(3), 500ms});
        done(result);
    };
    const auto peeks_before =
        counted_->counters().peeks[static_cast<std::size_t>(plugin::ReadyState::nothing)].value();
    pop(wanted());
    const auto& counted = counted_->counters();
    EXPECT_EQ(counted.takes[static_cast<std::size_t>(plugin::Pick::names)].value(), 1u);
    EXPECT_EQ(counted.takes[static_cast<std::size_t>(plugin::Pick::scan)].value(), 0u);
    EXPECT_EQ(counted.names.value(), 4u);
    EXPECT_EQ(counted.claims[SourceCounters::took].value(), 1u);
    EXPECT_EQ(counted.claims[SourceCounters::empty].value(), 1u);
    EXPECT_EQ(counted.claims[SourceCounters::leased].value(), 1u);
    EXPECT_EQ(counted.claims[SourceCounters::requeue].value(), 1u);
    EXPECT_EQ(counted.peeks[static_cast<std::size_t>(plugin::ReadyState::ready)].value(), 2u);
    EXPECT_EQ(counted.peeks[static_cast<std::size_t>(plugin::ReadyState::nothing)].value(),
              peeks_before);
    EXPECT_THAT(source_->settles,
                ElementsAre("g p#100=acked b#101=empty c#102=leased d#103=requeue"));
    EXPECT_EQ(source_->live_cookies, 0);
    EXPECT_THAT(source_->learnt, ElementsAre("p"));

    const plugin::Mark marks[] = {{"a", {}, 3}, {"b", {}, 1}};
    counted_->mark({"t\x1fq", "t", "q"}, {}, plugin::Origin::push, marks);
    EXPECT_EQ(counted.marks.value(), 2u) << "partitions, not messages";
    EXPECT_THAT(source_->marks, ElementsAre("q/a*3", "q/b*1"));
    counted_->released({"t\x1fq", "t", "q"}, "g", {}, true);
    counted_->forget("t", "q", {});
    EXPECT_THAT(source_->releases, ElementsAre("q g covered"));
    EXPECT_THAT(source_->forgotten, ElementsAre("q"));
}

// Who is given nothing to count into counts all the same, for nobody.
TEST_F(CountingTest, WithoutAReaderNothingIsDifferent) {
    Acks alone(store_, announcer_, clock_, 30s);
    std::vector<AckItemResult> results;
    alone.ack({std::string(kDefaultTenant), "g", {AckItem{}}},
              [&](auto all) { results = std::move(all); });
    EXPECT_EQ(results.size(), 1u);
}

} // namespace
} // namespace queen::broker
