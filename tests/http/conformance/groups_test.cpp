// /api/v1/consumer-groups...: list, lagging, detail, delete, subscription, seek.
#include "base/text.hpp"
#include "http/conformance/conformance.hpp"

namespace queen::test {
namespace {

using testing::AnyOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;
using testing::UnorderedElementsAre;

class GroupsContract : public ConformanceTest {
protected:
    static inline const std::string kAll = "/api/v1/consumer-groups";
    std::string group() const { return queue("-group"); }
    std::string of_queue(const std::string& rest = {}) const {
        return kAll + "/" + group() + "/queues/" + queue() + rest;
    }
    /// So many messages, in one pop or in several: a broker may know of some partitions first.
    std::vector<Delivery> pop(std::size_t messages = 1) {
        std::vector<Delivery> all;
        while (all.size() < messages && !HasFailure()) {
            for (auto& message :
                 take(queue(), "batch=100&partitions=100&consumerGroup=" + group())) {
                all.push_back(std::move(message));
            }
        }
        return all;
    }
    void expect_nothing() {
        for (std::size_t i = 0; i < brokers(); ++i) {
            EXPECT_EQ(call_at(i, "GET", pop_path(queue(), "consumerGroup=" + group())).status(),
                      204);
        }
    }
    /// The row of this test's group in the list.
    std::size_t row(const Answer& list) {
        for (std::size_t i = 0; i < list.size(); ++i) {
            if (list.at(std::to_string(i) + ".name") == group() &&
                list.at(std::to_string(i) + ".queueName") == queue()) {
                return i;
            }
        }
        ADD_FAILURE() << "the group is not listed: " << list.body().substr(0, 500);
        return 0;
    }
    static std::vector<std::string> data_of(const std::vector<Delivery>& messages) {
        std::vector<std::string> all;
        for (const auto& message : messages) {
            all.push_back(message.data);
        }
        return all;
    }
};

TEST_F(GroupsContract, TheListHasARowForEachGroupAndQueue) {
    push(queue(), "a", {"1", "2"});
    push(queue(), "b", {"3"});
    const auto messages = take(queue(), "batch=1&consumerGroup=" + group());
    ack(messages.at(0));
    const auto list = get(kAll);
    ASSERT_EQ(list.status(), 200);
    const std::string at = std::to_string(row(list)) + ".";
    EXPECT_THAT(list.keys(std::to_string(row(list))),
                IsSupersetOf({"name", "topics", "queueName", "members", "partitionCursors",
                              "partitionsWithLag", "totalLag", "maxTimeLag", "state", "storage",
                              "subscriptionMode", "subscriptionTimestamp", "subscriptionCreatedAt",
                              "conflation"}));
    EXPECT_EQ(list.at(at + "topics.0"), queue());
    EXPECT_EQ(list.at(at + "members"), "2");
    EXPECT_EQ(list.at(at + "partitionCursors"), "2");
    EXPECT_EQ(list.at(at + "totalLag"), "2");
    EXPECT_EQ(list.at(at + "state"), "Stable");
    EXPECT_EQ(list.at(at + "storage"), "segments");
    EXPECT_EQ(list.at(at + "subscriptionMode"), "all");
    EXPECT_THAT(list.at(at + "subscriptionTimestamp"), StartsWith("1970-01-01T00:00:00"));
    EXPECT_EQ(list.at(at + "conflation"), "false");
}

TEST_F(GroupsContract, QueueModeIsListedWithoutASubscription) {
    push(queue(), "a", {"1"});
    take(queue());
    const auto list = get(kAll);
    bool found = false;
    for (std::size_t i = 0; i < list.size(); ++i) {
        const std::string at = std::to_string(i) + ".";
        if (list.at(at + "queueName") == queue()) {
            found = true;
            EXPECT_EQ(list.at(at + "name"), "__QUEUE_MODE__");
            EXPECT_EQ(list.at(at + "subscriptionMode"), "null");
            EXPECT_EQ(list.at(at + "subscriptionTimestamp"), "null");
        }
    }
    EXPECT_TRUE(found);
}

TEST_F(GroupsContract, DetailIsKeyedByQueue) {
    push(queue(), "a", {"1", "2"});
    const auto messages = take(queue(), "batch=1&consumerGroup=" + group());
    const auto detail = get(kAll + "/" + group());
    ASSERT_EQ(detail.status(), 200);
    EXPECT_THAT(detail.keys(), ElementsAre(queue()));
    const std::string at = queue() + ".partitions.0";
    EXPECT_THAT(detail.keys(at),
                IsSupersetOf({"partition", "workerId", "lastConsumedAt", "totalConsumed",
                              "offsetLag", "timeLagSeconds", "leaseActive"}));
    EXPECT_EQ(detail.at(at + ".partition"), "a");
    EXPECT_EQ(detail.at(at + ".leaseActive"), "true");
    EXPECT_EQ(detail.at(at + ".workerId"), messages.at(0).lease_id);
    EXPECT_EQ(detail.at(at + ".offsetLag"), "2");
    EXPECT_EQ(detail.at(queue() + ".conflation"), "false");
    const auto unknown = get(kAll + "/" + queue("-nobody"));
    EXPECT_EQ(unknown.status(), 404);
    EXPECT_EQ(unknown.at("error"), "Consumer group not found");
}

TEST_F(GroupsContract, LaggingShowsWhoIsBehindByMoreThanAsked) {
    push(queue(), "a", {"1"});
    take(queue(), "consumerGroup=" + group());
    const auto list = get(kAll + "/lagging?minLagSeconds=0");
    EXPECT_EQ(list.status(), 200);
    EXPECT_EQ(get(kAll + "/lagging?minLagSeconds=86400").body(), "[]");
    EXPECT_EQ(get(kAll + "/lagging").body(), "[]");
    EXPECT_EQ(get(kAll + "/lagging?minLagSeconds=x").status(), 400);
    for (std::size_t i = 0; i < list.size(); ++i) {
        EXPECT_THAT(list.keys(std::to_string(i)),
                    IsSupersetOf({"consumer_group", "queue_name", "partition_name", "partition_id",
                                  "worker_id", "offset_lag", "time_lag_seconds", "lag_hours",
                                  "oldest_unconsumed_at", "last_consumed_at"}));
    }
}

TEST_F(GroupsContract, DeletingAGroupInAQueueIsAFirstContactAgain) {
    push(queue(), "a", {"1"});
    ack(pop().at(0));
    expect_nothing();
    const auto answer = call("DELETE", of_queue());
    EXPECT_EQ(answer.status(), 200);
    EXPECT_EQ(answer.at("success"), "true");
    EXPECT_EQ(answer.at("consumerGroup"), group());
    EXPECT_EQ(answer.at("queueName"), queue());
    EXPECT_EQ(answer.at("deletedPartitions"), "1");
    EXPECT_EQ(answer.at("metadataDeleted"), "true");
    EXPECT_THAT(data_of(pop()), ElementsAre("1"));
    const auto unknown = call("DELETE", kAll + "/" + queue("-nobody"));
    EXPECT_EQ(unknown.status(), 200);
    EXPECT_EQ(unknown.at("success"), "true");
    EXPECT_EQ(unknown.at("deletedPartitions"), "0");
}

TEST_F(GroupsContract, DeletingAGroupEverywhereMayKeepItsSubscription) {
    push(queue(), "a", {"1"});
    push(queue("-2"), "a", {"1"});
    get(pop_path(queue(), "subscriptionMode=new&consumerGroup=" + group()));
    get(pop_path(queue("-2"), "subscriptionMode=new&consumerGroup=" + group()));
    const auto answer = call("DELETE", kAll + "/" + group() + "?deleteMetadata=false");
    EXPECT_EQ(answer.at("deletedPartitions"), "2") << testing::PrintToString(answer);
    EXPECT_EQ(answer.at("metadataDeleted"), "false");
    push(queue(), "a", {"2"}, {"second"});
    EXPECT_THAT(data_of(pop()), ElementsAre("2")) << "the subscription still says new";
    const auto all = call("DELETE", kAll + "/" + group());
    EXPECT_EQ(all.at("metadataDeleted"), "true");
    EXPECT_THAT(data_of(pop(2)), ElementsAre("1", "2"));
}

TEST_F(GroupsContract, ADeletedGroupsLeasesAreVoid) {
    push(queue(), "a", {"1"});
    const auto messages = pop();
    call("DELETE", of_queue());
    EXPECT_EQ(ack(messages.at(0)).at("0.success"), "false");
    EXPECT_THAT(data_of(pop()), ElementsAre("1"));
}

TEST_F(GroupsContract, ASubscriptionTimeHoldsForLaterFirstContacts) {
    push(queue(), "a", {"1"});
    pop();
    const std::string path = kAll + "/" + group() + "/subscription";
    const auto answer = post(path, R"({"subscriptionTimestamp":"2999-01-01T00:00:00+02:00"})");
    EXPECT_EQ(answer.status(), 200) << testing::PrintToString(answer);
    EXPECT_EQ(answer.at("success"), "true");
    EXPECT_EQ(answer.at("consumerGroup"), group());
    EXPECT_THAT(answer.at("newTimestamp"), StartsWith("2998-12-31T22:00:00"));
    EXPECT_EQ(answer.at("rowsUpdated"), "1");
    call("DELETE", of_queue("?deleteMetadata=false"));
    expect_nothing();
    for (const auto& [body, text] : std::vector<std::pair<std::string, std::string>>{
             {"{}", "subscriptionTimestamp is required"},
             {R"({"subscriptionTimestamp":"yesterday"})", "subscriptionTimestamp"},
             {R"({"subscriptionTimestamp":5})", "subscriptionTimestamp"},
             {"", ""}}) {
        const auto refused = post(path, body);
        EXPECT_EQ(refused.status(), 400) << body;
        EXPECT_THAT(refused.at("error"), HasSubstr(text));
    }
}

TEST_F(GroupsContract, SeekingToATimeAndToTheEnd) {
    push(queue(), "a", {"1"});
    push(queue(), "b", {"2"});
    for (const auto& message : pop(2)) {
        ack(message);
    }
    const auto back = post(of_queue("/seek"), R"({"timestamp":"2020-01-01T00:00:00Z"})");
    EXPECT_EQ(back.status(), 200) << testing::PrintToString(back);
    EXPECT_EQ(back.at("success"), "true");
    EXPECT_EQ(back.at("consumerGroup"), group());
    EXPECT_EQ(back.at("queueName"), queue());
    EXPECT_EQ(back.at("seekToEnd"), "false");
    EXPECT_THAT(back.at("targetTimestamp"), StartsWith("2020-01-01T00:00:00"));
    EXPECT_EQ(back.at("partitionsUpdated"), "2");
    const auto again = pop(2);
    EXPECT_THAT(data_of(again), UnorderedElementsAre("1", "2"));
    const auto end = post(of_queue("/seek"), R"({"toEnd":true})");
    EXPECT_EQ(end.at("seekToEnd"), "true");
    EXPECT_EQ(end.at("targetTimestamp"), "null");
    expect_nothing();
    EXPECT_EQ(ack(again.at(0), "failed").at("0.success"), "false") << "the old lease is void";
    expect_nothing();
    const auto future = post(of_queue("/seek"), R"({"timestamp":"2999-01-01T00:00:00Z"})");
    EXPECT_EQ(future.at("success"), "true");
    expect_nothing();
}

TEST_F(GroupsContract, K48_ASeekOfOnePartitionMovesNothingElse) {
    push(queue(), "a", {"1"});
    push(queue(), "b/c", {"2"});
    for (const auto& message : pop(2)) {
        ack(message);
    }
    const auto one = post(of_queue("/partitions/" + percent_encode("b/c") + "/seek"),
                          R"({"timestamp":"2020-01-01T00:00:00Z"})");
    EXPECT_EQ(one.status(), 200) << testing::PrintToString(one);
    EXPECT_EQ(one.at("partitionName"), "b/c");
    EXPECT_EQ(one.at("updated"), "true");
    EXPECT_THAT(data_of(pop()), ElementsAre("2"));
    const auto end = post(of_queue("/partitions/" + percent_encode("b/c") + "/seek"), "");
    EXPECT_EQ(end.at("seekToEnd"), "true") << "an empty body means the end";
    expect_nothing();
    const auto nowhere = post(of_queue("/partitions/none/seek"), "");
    EXPECT_EQ(nowhere.status(), 404);
    EXPECT_EQ(nowhere.at("error"), "Partition not found");
}

TEST_F(GroupsContract, K48_ASeekWakesWhoWaitsAtEveryBroker) {
    push(queue(), "a", {"1"});
    ack(pop().at(0));
    expect_nothing();
    auto parked = connection(brokers() - 1);
    parked.start("GET", pop_path(queue(), "wait=true&timeout=30000&consumerGroup=" + group()));
    EXPECT_EQ(
        call_at(0, "POST", of_queue("/seek"), R"({"timestamp":"2020-01-01T00:00:00Z"})").status(),
        200);
    EXPECT_EQ(parked.read().status, 200);
}

TEST_F(GroupsContract, WhatIsNoSeekIsRefusedAndMovesNothing) {
    push(queue(), "a", {"1"});
    ack(pop().at(0));
    for (const std::string body :
         {"", "{}", R"({"toEnd":false})", R"({"timestamp":"yesterday"})", R"({"timestamp":""})",
          R"({"timestamp":"24:00:00"})", R"({"toEnd":"yes"})", "[]",
          R"({"toEnd":true,"timestamp":"2020-01-01T00:00:00Z"})"}) {
        EXPECT_EQ(post(of_queue("/seek"), body).status(), 400) << body;
    }
    const auto neither = post(of_queue("/seek"), "{}");
    EXPECT_EQ(neither.at("success"), "false");
    EXPECT_EQ(neither.at("error"), "Must specify toEnd=true or a timestamp");
    expect_nothing();
    const auto unknown =
        post(kAll + "/" + group() + "/queues/" + queue("-none") + "/seek", R"({"toEnd":true})");
    EXPECT_EQ(unknown.status(), 404);
    EXPECT_THAT(unknown.at("error"), StartsWith("Queue not found"));
}

// K19: one moment in every readable form.
TEST_F(GroupsContract, K19_SeekTimesInEveryReadableForm) {
    push(queue(), "a", {"1"});
    ack(pop().at(0));
    for (const std::string time :
         {"2020-01-01T00:00:00Z", "2020-01-01T05:30:00+05:30", "2019-12-31T20:30:00-03:30",
          "2020-01-01T00:00:00", "2020-01-01T00:00:00.123Z", "2020-01-01T00:00:00.123456789Z"}) {
        const auto answer = post(of_queue("/seek"), R"({"timestamp":")" + time + "\"}");
        EXPECT_EQ(answer.status(), 200) << time;
        EXPECT_THAT(answer.at("targetTimestamp"), StartsWith("2020-01-01T00:00:00")) << time;
    }
    EXPECT_THAT(pop(), SizeIs(1));
}

} // namespace
} // namespace queen::test
