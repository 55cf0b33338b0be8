#include "http/routes/api.hpp"

namespace queen::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kGroup = "/api/v1/consumer-groups/g";
const std::string kSeek = std::string(kGroup) + "/queues/q/seek";
const std::string kSeekPartition = std::string(kGroup) + "/queues/q/partitions/p/seek";
const std::string kSubscription = std::string(kGroup) + "/subscription";

std::chrono::microseconds at_micros(const Seek& seek) {
    return std::chrono::duration_cast<std::chrono::microseconds>(seek.to->time_since_epoch());
}
// 2026-11-03T09:15:27Z
constexpr std::chrono::microseconds kMoment{1'793'697'327'000'000};

TEST(GroupsRoute, ListsAreTheStoresOwn) {
    Api api;
    api.group_store.list = R"([{"name":"g"}])";
    EXPECT_EQ(api.ask("GET", "/api/v1/consumer-groups").body, R"([{"name":"g"}])");
    EXPECT_EQ(api.ask("GET", "/api/v1/consumer-groups/lagging").body, R"([{"name":"g"}])");
    api.ask("GET", "/api/v1/consumer-groups/lagging?minLagSeconds=0&limit=7");
    const std::string tenant(kDefaultTenant);
    EXPECT_THAT(api.group_store.asked,
                ElementsAre("list " + tenant, "lagging " + tenant + " 3600 10000",
                            "lagging " + tenant + " 0 7"));
}

TEST(GroupsRoute, DetailIsByQueueAnd404ForAnUnknownGroup) {
    Api api;
    api.group_store.detail = R"({"q":{}})";
    EXPECT_EQ(api.ask("GET", kGroup).body, R"({"q":{}})");
    EXPECT_EQ(api.ask("GET", std::string(kGroup) + "?queue=a%2Fb").status, 200);
    EXPECT_THAT(api.group_store.asked, ElementsAre("detail g in *", "detail g in a/b"));
    api.group_store.detail.reset();
    const auto reply = api.ask("GET", kGroup);
    EXPECT_EQ(reply.status, 404);
    EXPECT_EQ(reply.body, R"({"error":"Consumer group not found","code":"not_found"})");
}

TEST(GroupsRoute, ParametersThatCannotBeReadAre400AndAskNobody) {
    Api api;
    for (const auto& [method, target, says] :
         {std::array<std::string, 3>{"GET", "/api/v1/consumer-groups/lagging?minLagSeconds=x",
                                     "minLagSeconds must be a whole number from 0 to 2147483647"},
          {"GET", "/api/v1/consumer-groups/lagging?minLagSeconds=-1", "minLagSeconds must be"},
          {"GET", "/api/v1/consumer-groups/lagging?minLagSeconds=9999999999",
           "minLagSeconds must be"},
          {"GET", "/api/v1/consumer-groups/lagging?minLagSeconds=1.5", "minLagSeconds must be"},
          {"GET", "/api/v1/consumer-groups/lagging?minLagSeconds=1&minLagSeconds=2",
           "given more than once"},
          {"GET", "/api/v1/consumer-groups/lagging?limit=0", "limit must be a whole number from 1"},
          {"GET", "/api/v1/consumer-groups/lagging?limit=10001", "limit must be"},
          {"GET", "/api/v1/consumer-groups/g?queue=", "queue"},
          {"GET", "/api/v1/consumer-groups/g?queue=a&queue=b", "given more than once"},
          {"DELETE", "/api/v1/consumer-groups/g?deleteMetadata=yes",
           "deleteMetadata must be true or false"},
          {"DELETE", "/api/v1/consumer-groups/g/queues/q?deleteMetadata=", "deleteMetadata"}}) {
        const auto reply = api.ask(method, target);
        EXPECT_EQ(reply.status, 400) << target;
        EXPECT_THAT(at(reply.body, "error"), HasSubstr(says)) << target;
    }
    EXPECT_THAT(api.group_store.asked, IsEmpty());
}

// An empty variable in a script must not delete the cursors of everybody who names no group.
TEST(GroupsRoute, APathThatNamesNoGroupIs400) {
    Api api;
    for (const auto& [method, target] :
         {std::pair{"GET", "/api/v1/consumer-groups/"},
          {"DELETE", "/api/v1/consumer-groups/"},
          {"DELETE", "/api/v1/consumer-groups//queues/q"},
          {"POST", "/api/v1/consumer-groups//subscription"},
          {"POST", "/api/v1/consumer-groups//queues/q/seek"},
          {"POST", "/api/v1/consumer-groups//queues/q/partitions/p/seek"}}) {
        const auto reply = api.ask(method, target);
        EXPECT_EQ(reply.status, 400) << target;
        EXPECT_THAT(at(reply.body, "error"), HasSubstr("__QUEUE_MODE__"));
    }
    EXPECT_THAT(api.group_store.asked, IsEmpty());
    EXPECT_EQ(api.ask("DELETE", "/api/v1/consumer-groups/__QUEUE_MODE__").status, 200);
    EXPECT_THAT(api.group_store.asked, ElementsAre("remove __QUEUE_MODE__ in *"));
}

TEST(GroupsRoute, DeleteSaysWhatIsGone) {
    Api api;
    EXPECT_EQ(api.ask("DELETE", kGroup).body,
              R"({"success":true,"consumerGroup":"g","deletedPartitions":2,"metadataDeleted":true,)"
              R"("queues":["q"]})");
    api.group_store.removed = {};
    EXPECT_EQ(api.ask("DELETE", std::string(kGroup) + "/queues/a%2Fb?deleteMetadata=false").body,
              R"({"success":true,"consumerGroup":"g","queueName":"a/b","deletedPartitions":0,)"
              R"("metadataDeleted":false,"queues":[]})");
    EXPECT_THAT(api.group_store.asked, ElementsAre("remove g in *", "remove g in a/b keeping"));
}

TEST(GroupsRoute, SubscriptionIsEchoedAsItTookEffect) {
    Api api;
    EXPECT_EQ(
        api.ask("POST", kSubscription, R"({"subscriptionTimestamp":"2026-11-03T14:45:27+05:30"})")
            .body,
        R"({"success":true,"consumerGroup":"g","newTimestamp":"2026-11-03T09:15:27.000000Z",)"
        R"("rowsUpdated":1})");
    api.group_store.subscribed = 0;
    const auto unknown =
        api.ask("POST", kSubscription, R"({"subscriptionTimestamp":"2026-11-03"})");
    EXPECT_EQ(unknown.status, 200);
    EXPECT_EQ(at(unknown.body, "rowsUpdated"), "0");
    const auto queue_mode = api.ask("POST", "/api/v1/consumer-groups/__QUEUE_MODE__/subscription",
                                    R"({"subscriptionTimestamp":"2026-11-03"})");
    EXPECT_EQ(queue_mode.status, 400);
    EXPECT_EQ(at(queue_mode.body, "success"), "false");
    EXPECT_EQ(api.group_store.asked.size(), 2u);
}

TEST(GroupsRoute, SeekSaysWhereTheCursorsAre) {
    Api api;
    EXPECT_EQ(
        api.ask("POST", kSeek, R"({"toEnd":true})").body,
        R"({"success":true,"consumerGroup":"g","queueName":"q","partitionName":null,"seekToEnd":)"
        R"(true,"targetTimestamp":null,"partitionsUpdated":3,"updated":true})");
    EXPECT_EQ(
        api.ask("POST", kSeek, R"({"timestamp":"2026-11-03T09:15:27.5Z","toEnd":false})").body,
        R"({"success":true,"consumerGroup":"g","queueName":"q","partitionName":null,"seekToEnd":)"
        R"(false,"targetTimestamp":"2026-11-03T09:15:27.500000Z","partitionsUpdated":3,"updated":)"
        R"(true})");
    api.group_store.moved.moved = 1;
    EXPECT_EQ(
        api.ask("POST", kSeekPartition, R"({"toEnd":true,"timestamp":null})").body,
        R"({"success":true,"consumerGroup":"g","queueName":"q","partitionName":"p","seekToEnd":)"
        R"(true,"targetTimestamp":null,"partitionsUpdated":1,"updated":true})");
    EXPECT_THAT(api.group_store.asked,
                ElementsAre("seek g in q/*", "seek g in q/*", "seek g in q/p"));
    EXPECT_EQ(api.group_store.seeks[0].tenant, kDefaultTenant);
}

// A missing body means the end for one partition; for a whole queue that would be too easily done.
TEST(GroupsRoute, NoBodyMeansTheEndOfOnePartitionOnly) {
    Api api;
    for (const char* body : {"", " \r\n"}) {
        EXPECT_EQ(at(api.ask("POST", kSeekPartition, body).body, "seekToEnd"), "true");
        EXPECT_EQ(api.ask("POST", kSeek, body).status, 400);
    }
    EXPECT_EQ(api.group_store.seeks.size(), 2u);
    EXPECT_EQ(api.ask("POST", kSeekPartition, "{}").status, 400);
    EXPECT_EQ(api.group_store.seeks.size(), 2u);
}

TEST(GroupsRoute, SeeksThatCannotBeReadAre400AndMoveNothing) {
    Api api;
    const auto refused = [&](const std::string& body) {
        const auto reply = api.ask("POST", kSeek, body);
        EXPECT_EQ(reply.status, 400) << body;
        return reply.body;
    };
    EXPECT_EQ(refused("{}"),
              R"({"success":false,"error":"Must specify toEnd=true or a timestamp","code":)"
              R"("bad_request"})");
    EXPECT_EQ(refused(R"({"toEnd":false})"), refused("{}"));
    EXPECT_EQ(refused(R"({"toEnd":null,"timestamp":null})"), refused("{}"));
    EXPECT_THAT(refused(R"({"toEnd":true,"timestamp":"2026-11-03"})"), HasSubstr("not both"));
    EXPECT_THAT(refused(R"({"toEnd":"true"})"), HasSubstr("toEnd must be true or false"));
    EXPECT_THAT(refused(R"({"toEnd":1})"), HasSubstr("toEnd must be true or false"));
    EXPECT_THAT(refused("{"), HasSubstr("bad body: "));
    EXPECT_THAT(refused("[]"), HasSubstr("bad body: the body is not an object"));
    EXPECT_THAT(refused("\"x\""), HasSubstr("\"code\":\"bad_body\""));
    EXPECT_EQ(api.ask("POST", kSeek, std::string(70'000, ' ') + "{}").status, 413);
    EXPECT_THAT(api.group_store.asked, IsEmpty());
}

// K19
TEST(GroupsRoute, K19_TimesThatCanBeReadAreTheSamePointWhateverTheirForm) {
    for (const std::string time :
         {"2026-11-03T09:15:27Z", "2026-11-03T09:15:27", "2026-11-03 09:15:27",
          "2026-11-03T14:45:27+05:30", "2026-11-03T14:45:27 05:30", "2026-11-03T05:45:27-03:30",
          "2026-11-03T09:15:27.000Z", "2026-11-03T09:15:27.000000999Z", "2026-11-03T10:15:27+01"}) {
        Api api;
        EXPECT_EQ(api.ask("POST", kSeek, R"({"timestamp":")" + time + "\"}").status, 200) << time;
        ASSERT_EQ(api.group_store.seeks.size(), 1u);
        EXPECT_EQ(at_micros(api.group_store.seeks[0]), kMoment) << time;
        EXPECT_EQ(
            api.ask("POST", kSubscription, R"({"subscriptionTimestamp":")" + time + "\"}").status,
            200);
        EXPECT_EQ(api.group_store.asked.back(),
                  "subscribe g " + std::to_string(WallTime(kMoment).time_since_epoch().count()));
    }
    Api api;
    api.ask("POST", kSeek, R"({"timestamp":"2026-11-02T24:00:00Z"})");
    api.ask("POST", kSeek, R"({"timestamp":"2026-11-03"})");
    ASSERT_EQ(api.group_store.seeks.size(), 2u);
    EXPECT_EQ(api.group_store.seeks[0].to, api.group_store.seeks[1].to);
}

// K19
TEST(GroupsRoute, K19_TimesThatCannotBeReadAre400AndMoveNothing) {
    Api api;
    for (const char* time : {R"("yesterday")", R"("")", "1793697327000", R"("1793697327000")",
                             R"("now")", "true", "{}", R"("2026-11-03T25:00:00Z")",
                             R"("2026-13-03T09:15:27Z")", R"("2026-11-03T09:15:27Z ")"}) {
        const std::string text(time);
        const auto seek = api.ask("POST", kSeek, R"({"timestamp":)" + text + "}");
        EXPECT_EQ(seek.status, 400) << time;
        EXPECT_EQ(at(seek.body, "success"), "false");
        EXPECT_THAT(at(seek.body, "error"), HasSubstr("timestamp must be a time"));
        EXPECT_EQ(api.ask("POST", kSeekPartition, R"({"timestamp":)" + text + "}").status, 400);
        const auto subscription =
            api.ask("POST", kSubscription, R"({"subscriptionTimestamp":)" + text + "}");
        EXPECT_EQ(subscription.status, 400) << time;
        EXPECT_THAT(at(subscription.body, "error"), HasSubstr("subscriptionTimestamp is invalid"));
    }
    for (const char* body : {"", "{}", R"({"subscriptionTimestamp":null})"}) {
        EXPECT_EQ(at(api.ask("POST", kSubscription, body).body, "error"),
                  "subscriptionTimestamp is required");
    }
    EXPECT_THAT(api.group_store.asked, IsEmpty());
}

TEST(GroupsRoute, WhatTheStoreDoesNotKnowIs404) {
    Api api;
    for (const char* text : {"Queue not found or has no partitions", "Partition not found",
                             "Consumer group not found"}) {
        api.group_store.broken = Error{Errc::not_found, text, {}};
        const auto reply = api.ask("POST", kSeekPartition);
        EXPECT_EQ(reply.status, 404);
        EXPECT_EQ(reply.body,
                  std::string(R"({"success":false,"error":")") + text + R"(","code":"not_found"})");
    }
}

TEST(GroupsRoute, FaultsOfTheStoreAreOurs) {
    Api api;
    api.group_store.broken = Error{Errc::store_failed, "no such function", "42883"};
    EXPECT_EQ(at(api.ask("POST", kSeek, R"({"toEnd":true})").body, "error"),
              "seek failed: no such function");
    EXPECT_EQ(at(api.ask("DELETE", kGroup).body, "error"), "delete failed: no such function");
    EXPECT_EQ(at(api.ask("GET", "/api/v1/consumer-groups").body, "error"),
              "list failed: no such function");
    api.group_store.broken = Error{Errc::unavailable, "no session", {}};
    const auto reply = api.ask("POST", kSubscription, R"({"subscriptionTimestamp":"2026-11-03"})");
    EXPECT_EQ(reply.status, 500);
    EXPECT_EQ(at(reply.body, "error"), "pool");
}

// GRP-8: who waits is woken before the answer goes out, and looks again.
TEST(GroupsRoute, AParkedPopLooksAgainWhenItsGroupWasMoved) {
    Api api;
    const auto parked = api.send("GET", "/api/v1/pop/queue/q?consumerGroup=g&wait=true");
    api.workers.run_all();
    const auto other = api.send("GET", "/api/v1/pop/queue/q?consumerGroup=h&wait=true");
    api.workers.run_all();
    const auto looks = api.store.pops.size();
    const auto seek = api.send("POST", kSeek, R"({"toEnd":true})");
    api.workers.run_one(); // the request
    EXPECT_EQ(seek->replies, 0u);
    api.workers.run_one(); // the store's answer
    EXPECT_EQ(seek->replies, 1u);
    EXPECT_EQ(api.workers.pending(), 1u) << "one waiter was woken, that of the group";
    api.workers.run_all();
    EXPECT_GT(api.store.pops.size(), looks);
    EXPECT_EQ(api.store.pops.back().args.group, "g");
    EXPECT_EQ(parked->replies + other->replies, 0u);
}

} // namespace
} // namespace queen::test
