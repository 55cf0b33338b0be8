#include "base/text.hpp"
#include "http/routes/api.hpp"
#include "model/frame.hpp"
#include "model/segment.hpp"

namespace queen::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string push_body(const std::string& queue, const std::string& partition,
                      const std::string& payload, const std::string& id) {
    return R"({"items":[{"queue":)" + json::quoted(queue) + R"(,"partition":)" +
           json::quoted(partition) + R"(,"payload":)" + payload + R"(,"transactionId":)" +
           json::quoted(id) + "}]}";
}

void push(Api& api, const std::string& queue, const std::string& partition,
          const std::string& payload = "1", const std::string& id = "tx") {
    EXPECT_EQ(api.ask("POST", "/api/v1/push", push_body(queue, partition, payload, id)).status,
              201);
}

/// One segment with the given frames, as the store would hand it over.
PoppedSegment segment(const std::vector<Frame>& frames, std::int64_t base) {
    std::string bytes;
    for (const Frame& frame : frames) {
        EXPECT_TRUE(append_frame(bytes, frame));
    }
    return {.base = Offset{base},
            .start = 0,
            .take = static_cast<std::uint32_t>(frames.size()),
            .created_at = WallTime(std::chrono::microseconds(1'800'000'000'401'233)),
            .blob = compress_segment(bytes)};
}

// CF-1: consumers that conflate take an answer without the word for a broker that cannot.
TEST(PopRoute, AnEmptyAnswerOfAGroupThatConflatesHasABody) {
    Api api;
    api.store.spoil_pop = [](PopResult& result) {
        result.conflates = true;
        result.conflation_conflict = true;
    };
    const auto reply =
        api.ask("GET", "/api/v1/pop/queue/q?consumerGroup=g&conflation=false&autopilot=true");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body,
              R"({"success":true,"queue":"q","partition":"","partitionId":"","leaseId":"",)"
              R"("consumerGroup":"g","messages":[],"partitionsClaimed":0,"conflation":true,)"
              R"("conflationConflict":true,"autopilot":{"partitions":8,"batch":100}})");
}

TEST(PopRoute, WhatWasChosenAndWhetherItConflatesIsTold) {
    Api api;
    push(api, "q", "p");
    api.store.spoil_pop = [](PopResult& result) { result.conflates = true; };
    const auto body =
        api.ask("GET", "/api/v1/pop/queue/q?consumerGroup=g&conflation=true&autopilot=true").body;
    EXPECT_EQ(at(body, "conflation"), "true");
    EXPECT_EQ(at(body, "conflationConflict"), "<missing>");
    EXPECT_EQ(at(body, "autopilot.partitions"), "64");
    EXPECT_EQ(at(body, "autopilot.batch"), "100");
    push(api, "q", "p");
    api.store.spoil_pop = nullptr;
    const auto plain = api.ask("GET", "/api/v1/pop/queue/q?consumerGroup=h").body;
    EXPECT_EQ(at(plain, "conflation"), "<missing>");
    EXPECT_EQ(at(plain, "autopilot"), "<missing>");
}

TEST(PopRoute, ConflationIsRefusedWhereItCannotBe) {
    Api api;
    for (const auto& [query, why] :
         {std::pair{"conflation=true", "conflation requires consumerGroup"},
          {"conflation=true&consumerGroup=", "conflation requires consumerGroup"},
          {"conflation=true&consumerGroup=__QUEUE_MODE__", "conflation requires consumerGroup"},
          {"conflation=true&consumerGroup=g&autoAck=true",
           "conflation cannot be combined with autoAck"}}) {
        for (const std::string path : {"/api/v1/pop/queue/q?", "/api/v1/pop/queue/q/partition/p?",
                                       "/api/v1/pop?namespace=n&"}) {
            const auto reply = api.ask("GET", path + query);
            EXPECT_EQ(reply.status, 400) << path << query;
            EXPECT_THAT(at(reply.body, "error"), testing::StartsWith(why));
            EXPECT_EQ(at(reply.body, "success"), "false");
            EXPECT_EQ(at(reply.body, "messages"), "[0]");
        }
    }
    EXPECT_TRUE(api.store.pops.empty());
    EXPECT_EQ(api.ask("GET", "/api/v1/pop/queue/q?autoAck=true&conflation=false").status, 204);
}

TEST(PopRoute, TheAnswerHasTheContractsFieldsInOrder) {
    Api api;
    api.store.spoil_pop = [](PopResult& result) {
        PoppedPartition partition;
        partition.partition = "dock-9";
        partition.partition_id = *parse_uuid(kPartitionId);
        partition.attempt = 2;
        const Uuid id = *parse_uuid("0199f0c2-0000-7000-8000-00000000000a");
        partition.segments.push_back(
            segment({{.message_id = id, .transaction_id = "tx-4", .payload = R"({"n":4})"},
                     {.message_id = id,
                      .trace_id = id,
                      .transaction_id = "tx-5",
                      .producer_sub = "me",
                      .payload = ""}},
                    12));
        result.partitions = {partition};
    };
    const auto reply = api.ask("GET", "/api/v1/pop/queue/bikes.rent?batch=2&consumerGroup=fleet");
    EXPECT_EQ(reply.status, 200);
    const std::string lease = at(reply.body, "leaseId");
    EXPECT_TRUE(parse_uuid(lease));
    const std::string tail =
        R"("createdAt":"2027-01-15T08:00:00.401233Z","partitionId":"0199f0aa-0000-7000-8000-0000000000f1",)"
        R"("partition":"dock-9","leaseId":")" +
        lease + R"(","consumerGroup":"fleet","deliveryAttempt":2,"offset":)";
    EXPECT_EQ(reply.body,
              R"({"success":true,"queue":"bikes.rent","partition":"dock-9",)"
              R"("partitionId":"0199f0aa-0000-7000-8000-0000000000f1","leaseId":")" +
                  lease +
                  R"(","consumerGroup":"fleet","messages":[)"
                  R"({"id":"0199f0c2-0000-7000-8000-00000000000a","transactionId":"tx-4",)"
                  R"("traceId":null,"data":{"n":4},"producerSub":null,)" +
                  tail +
                  R"(12},{"id":"0199f0c2-0000-7000-8000-00000000000a","transactionId":"tx-5",)"
                  R"("traceId":"0199f0c2-0000-7000-8000-00000000000a","data":null,)"
                  R"("producerSub":"me",)" +
                  tail + R"(13}],"partitionsClaimed":1})");
}

TEST(PopRoute, OnlyTheClaimedFramesOfASegmentGoOut) {
    Api api;
    api.store.spoil_pop = [](PopResult& result) {
        PoppedPartition partition;
        partition.partition = "p";
        partition.partition_id = *parse_uuid(kPartitionId);
        std::vector<Frame> frames;
        for (const char* payload : {"0", "1", "2", "3"}) {
            frames.push_back({.transaction_id = payload, .payload = payload});
        }
        partition.segments.push_back(segment(frames, 100));
        partition.segments[0].start = 1;
        partition.segments[0].take = 2;
        result.partitions = {partition};
    };
    const auto reply = api.ask("GET", "/api/v1/pop/queue/q");
    EXPECT_EQ(at(reply.body, "messages"), "[2]");
    EXPECT_EQ(at(reply.body, "messages.0.data"), "1");
    EXPECT_EQ(at(reply.body, "messages.0.offset"), "101");
    EXPECT_EQ(at(reply.body, "messages.1.data"), "2");
    EXPECT_EQ(at(reply.body, "messages.1.offset"), "102");
}

TEST(PopRoute, K23DigitsComeBackAsTheyWereSent) {
    Api api;
    const std::string payload =
        R"({ "i":9007199254740993,"j":18446744073709551616,"e":1e400,"z":-0.0,"f":1.0, "u":"\u00e9\u0000" })";
    push(api, "q", "p", payload);
    EXPECT_THAT(api.ask("GET", "/api/v1/pop/queue/q").body,
                HasSubstr(R"("data":)" + payload + R"(,"producerSub")"));
}

TEST(PopRoute, NothingIs204WithoutABody) {
    Api api;
    for (const char* target :
         {"/api/v1/pop/queue/q", "/api/v1/pop/queue/q/partition/p", "/api/v1/pop?task=t"}) {
        const auto reply = api.ask("GET", target);
        EXPECT_EQ(reply.status, 204) << target;
        EXPECT_TRUE(reply.body.empty());
    }
}

TEST(PopRoute, SeveralPartitionsShareOneLeaseAndKeepTheirOrder) {
    Api api;
    push(api, "q", "a", "1");
    push(api, "q", "a", "2", "tx2");
    push(api, "q", "b", "3");
    const auto reply = api.ask("GET", "/api/v1/pop/queue/q?partitions=5");
    EXPECT_EQ(at(reply.body, "partitionsClaimed"), "2");
    EXPECT_EQ(at(reply.body, "partition"), "a");
    EXPECT_EQ(at(reply.body, "messages"), "[3]");
    EXPECT_EQ(at(reply.body, "messages.1.data"), "2");
    EXPECT_EQ(at(reply.body, "messages.2.partition"), "b");
    EXPECT_EQ(at(reply.body, "messages.2.leaseId"), at(reply.body, "leaseId"));
    EXPECT_NE(at(reply.body, "messages.2.partitionId"), at(reply.body, "partitionId"));
}

TEST(PopRoute, WithAutoAckTheLeaseIdIsEmpty) {
    Api api;
    push(api, "q", "a");
    const auto reply = api.ask("GET", "/api/v1/pop/queue/q?autoAck=true");
    EXPECT_EQ(at(reply.body, "leaseId"), "");
    EXPECT_EQ(at(reply.body, "messages.0.leaseId"), "");
}

TEST(PopRoute, APinnedPopNamesItsPartition) {
    Api api;
    push(api, "q", "a");
    push(api, "q", "b", "2");
    const auto reply = api.ask("GET", "/api/v1/pop/queue/q/partition/b");
    EXPECT_EQ(at(reply.body, "messages"), "[1]");
    EXPECT_EQ(at(reply.body, "messages.0.data"), "2");
    EXPECT_EQ(api.store.pops.back().partition, "b");
}

TEST(PopRoute, DiscoveryHasAnEmptyQueueAndNeedsALabel) {
    Api api;
    push(api, "bikes.rent", "a");
    const auto reply = api.ask("GET", "/api/v1/pop?namespace=bikes&task=rent");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(at(reply.body, "queue"), "");
    EXPECT_EQ(api.store.pops.back().ns, "bikes");
    EXPECT_EQ(api.store.pops.back().task, "rent");
    for (const char* target :
         {"/api/v1/pop", "/api/v1/pop?namespace=&task=", "/api/v1/pop?batch=1"}) {
        const auto refused = api.ask("GET", target);
        EXPECT_EQ(refused.status, 400) << target;
        EXPECT_EQ(refused.body, R"({"success":false,"error":"namespace or task is required",)"
                                R"("code":"bad_request","messages":[]})");
    }
}

TEST(PopRoute, AFailedPopIs500WithTheContractsText) {
    Api api;
    api.store.broken = Error{Errc::unavailable, "no session", {}};
    auto reply = api.ask("GET", "/api/v1/pop/queue/q");
    EXPECT_EQ(reply.status, 500);
    EXPECT_EQ(at(reply.body, "error"), "pool");
    for (const Errc code : {Errc::timeout, Errc::transient, Errc::store_failed, Errc::internal}) {
        api.store.broken = Error{code, "the reason", {}};
        reply = api.ask("GET", "/api/v1/pop/queue/q/partition/p");
        EXPECT_EQ(reply.status, 500);
        EXPECT_EQ(at(reply.body, "error"), "pop failed");
        EXPECT_EQ(at(reply.body, "detail"), "the reason");
    }
}

// A long poll that ends in a 5xx ends the consumer behind it.
TEST(PopRoute, AWaitingPopOutlastsAFailureAndEnds204) {
    Api api;
    api.store.broken = Error{Errc::unavailable, "no session", {}};
    const auto exchange = api.send("GET", "/api/v1/pop/queue/q?wait=true&timeout=50");
    api.workers.run_all();
    EXPECT_EQ(exchange->replies, 0u);
    api.ticker.advance(std::chrono::milliseconds(50));
    api.workers.run_all();
    ASSERT_EQ(exchange->replies, 1u);
    EXPECT_EQ(exchange->answer->status, 204);
}

TEST(PopRoute, ASegmentThatDoesNotParseIs500AndTheBatchIsHandedBack) {
    for (const char* fault : {"blob", "frames", "short"}) {
        Api api;
        push(api, "q", "a");
        push(api, "q", "b");
        api.store.spoil_pop = [&](PopResult& result) {
            auto& last = result.partitions.back().segments.front();
            if (fault == std::string("blob")) {
                last.blob = "not zstd";
            } else if (fault == std::string("frames")) {
                last.blob = compress_segment("not frames");
            } else {
                last.take = 2; // more than the segment holds
            }
        };
        const auto reply = api.ask("GET", "/api/v1/pop/queue/q?partitions=2&consumerGroup=g");
        EXPECT_EQ(reply.status, 500) << fault;
        EXPECT_EQ(at(reply.body, "error"), "pop failed");
        EXPECT_EQ(at(reply.body, "code"), "corrupt");
        EXPECT_THAT(at(reply.body, "detail"), HasSubstr("partition b"));
        ASSERT_EQ(api.store.released.size(), 2u) << fault; // the whole batch, the good one too
        EXPECT_EQ(api.store.released[0].partition_id, FakeStore::partition_id("q", "a"));
        EXPECT_EQ(api.store.released[0].group, "g");
        EXPECT_EQ(api.store.released[0].worker, api.store.pops.back().args.worker);
    }
}

TEST(PopRoute, AnAnswerThatCouldNotBeWrittenHandsTheBatchBackOnAWorker) {
    Api api;
    push(api, "q", "a");
    const auto exchange = api.send("GET", "/api/v1/pop/queue/q?consumerGroup=g");
    api.workers.run_all();
    ASSERT_EQ(exchange->answer->status, 200);
    ASSERT_TRUE(exchange->undelivered);
    exchange->undelivered();
    EXPECT_TRUE(api.store.released.empty()); // the front's thread only hands on
    api.workers.run_all();
    ASSERT_EQ(api.store.released.size(), 1u);
    EXPECT_EQ(api.store.released[0].partition_id, FakeStore::partition_id("q", "a"));
    EXPECT_EQ(api.store.released[0].worker, at(exchange->answer->body, "leaseId"));
}

TEST(PopRoute, WhatAutoAckConsumedIsNotHandedBack) {
    Api api;
    push(api, "q", "a");
    const auto exchange = api.send("GET", "/api/v1/pop/queue/q?autoAck=true");
    api.workers.run_all();
    if (exchange->undelivered) {
        exchange->undelivered();
    }
    api.workers.run_all();
    EXPECT_TRUE(api.store.released.empty());
}

TEST(PopRoute, AClaimWithoutMessagesIs204AndHandedBack) {
    Api api;
    push(api, "q", "a");
    api.store.spoil_pop = [](PopResult& result) { result.partitions.front().segments.clear(); };
    EXPECT_EQ(api.ask("GET", "/api/v1/pop/queue/q").status, 204);
    EXPECT_EQ(api.store.released.size(), 1u);
}

TEST(PopRoute, ALargeAnswerEndsBetweenPartitionsAndTheRestIsHandedBack) {
    Api api;
    api.settings.limits.answer_bytes = 2'500;
    const std::string payload = json::quoted(std::string(1'000, 'x'));
    for (const char* partition : {"a", "b", "c", "d"}) {
        push(api, "q", partition, payload);
    }
    const auto exchange = api.send("GET", "/api/v1/pop/queue/q?partitions=4&consumerGroup=g");
    api.workers.run_all();
    const http::Reply& reply = *exchange->answer;
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(at(reply.body, "messages"), "[1]"); // two would be about 2,900 bytes
    EXPECT_EQ(at(reply.body, "messages.0.data"), std::string(1'000, 'x'));
    EXPECT_EQ(at(reply.body, "partitionsClaimed"), "1");
    ASSERT_EQ(api.store.released.size(), 3u);
    EXPECT_EQ(api.store.released[0].partition_id, FakeStore::partition_id("q", "b"));
    EXPECT_EQ(api.store.released[2].partition_id, FakeStore::partition_id("q", "d"));
    EXPECT_EQ(api.store.released[0].worker, at(reply.body, "leaseId"));
    exchange->undelivered(); // gives back what the answer carried, not the rest once more
    api.workers.run_all();
    ASSERT_EQ(api.store.released.size(), 4u);
    EXPECT_EQ(api.store.released[3].partition_id, FakeStore::partition_id("q", "a"));
}

TEST(PopRoute, OnePartitionAndWhatAutoAckTookAreNeverCut) {
    Api api;
    api.settings.limits.answer_bytes = 1;
    push(api, "q", "a", "1");
    push(api, "q", "a", "2", "tx2");
    auto reply = api.ask("GET", "/api/v1/pop/queue/q?partitions=2");
    EXPECT_EQ(at(reply.body, "messages"), "[2]");
    push(api, "q", "a", "3");
    push(api, "q", "b", "4");
    reply = api.ask("GET", "/api/v1/pop/queue/q?partitions=2&autoAck=true");
    EXPECT_EQ(at(reply.body, "messages"), "[2]");
    EXPECT_EQ(at(reply.body, "partitionsClaimed"), "2");
    EXPECT_TRUE(api.store.released.empty());
}

// K28: the client of a parked pop goes; the next message is for the one that is still there.
TEST(PopRoute, K28AParkedPopWhosePeerLeftTakesNothing) {
    Api api;
    const auto gone = api.send("GET", "/api/v1/pop/queue/q?wait=true&consumerGroup=g");
    api.workers.run_all();
    const auto here = api.send("GET", "/api/v1/pop/queue/q?wait=true&consumerGroup=g");
    api.workers.run_all();
    gone->leave();
    api.workers.run_all();
    push(api, "q", "a");
    api.workers.run_all();
    EXPECT_EQ(gone->replies, 0u);
    ASSERT_EQ(here->replies, 1u); // woken by the push: no timer ran
    EXPECT_EQ(here->answer->status, 200);
    EXPECT_EQ(at(here->answer->body, "messages"), "[1]");
    EXPECT_TRUE(api.store.released.empty());
}

TEST(PopRoute, APeerThatLeftBeforeTheWorkBeganTakesNothing) {
    Api api;
    push(api, "q", "a");
    const auto exchange = api.send("GET", "/api/v1/pop/queue/q?autoAck=true");
    exchange->leave();
    api.workers.run_all();
    EXPECT_TRUE(api.store.pops.empty());
    EXPECT_EQ(at(api.ask("GET", "/api/v1/pop/queue/q").body, "messages"), "[1]");
}

// The front answers 500 when an exchange goes down unanswered; a waiting client is owed that, too.
TEST(PopRoute, AWaitingPopThatIsLostTakesItsExchangeAlong) {
    Api api;
    api.store.reachable = false;
    const std::weak_ptr<FakeExchange> exchange =
        api.send("GET", "/api/v1/pop/queue/q?wait=true&timeout=1000");
    api.workers.run_all();
    EXPECT_EQ(api.store.calls, 1u);
    EXPECT_TRUE(exchange.expired());
}

} // namespace
} // namespace queen::test
