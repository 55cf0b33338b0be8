#include "command_line.hpp"
#include "scripted_server.hpp"

#include <gmock/gmock.h>

namespace queen::ctl::testing {
namespace {

using ::testing::HasSubstr;

Outcome at(const ScriptedServer& server, std::vector<std::string> words) {
    words.insert(words.begin() + 1, {"--url", server.url()});
    return command_line(words);
}
Outcome two_words(const ScriptedServer& server, std::vector<std::string> words) {
    words.insert(words.begin() + 2, {"--url", server.url()});
    return command_line(words);
}

TEST(GroupsCommands, GroupsAreListed) {
    ScriptedServer server(in_order(
        {{200,
          R"([{"name":"__QUEUE_MODE__","queueName":"q","state":"Dead","partitionCursors":1,)"
          R"("partitionsWithLag":1,"totalLag":9,"maxTimeLag":30,"subscriptionMode":null},)"
          R"({"name":"bil\nling","queueName":"orders","state":"Stable","partitionCursors":20,)"
          R"("partitionsWithLag":0,"totalLag":0,"maxTimeLag":0,"subscriptionMode":"all",)"
          R"("subscriptionTimestamp":"1970-01-01T00:00:00.000Z"},{"name":"new","queueName":"q",)"
          R"("state":"Dead","partitionCursors":0,"partitionsWithLag":0,"totalLag":0,)"
          R"("maxTimeLag":0,"subscriptionMode":"new","subscriptionTimestamp":"2026"}])",
          {},
          false}}));
    const Outcome outcome = at(server, {"groups"});
    EXPECT_EQ(outcome.exit, Exit::ok) << outcome.err;
    EXPECT_EQ(outcome.out, "GROUP           QUEUE   STATE   CURSORS  BEHIND  LAG  SECONDS  BEGINS\n"
                           "__QUEUE_MODE__  q       Dead          1       1    9       30  start\n"
                           "bil\\x0aling     orders  Stable       20       0    0        0  start\n"
                           "new             q       Dead          0       0    0        0  2026\n");
    EXPECT_EQ(server.seen().at(0).target, "/api/v1/consumer-groups");
    EXPECT_THAT(at(server, {"groups", "--json"}).out, HasSubstr("[{\"name\""));
}

TEST(GroupsCommands, OneGroupIsShownByPartition) {
    ScriptedServer server(in_order(
        {{200,
          R"({"orders":{"conflation":false,"partitionCount":3,"partitions":[{"partition":"p",)"
          R"("workerId":"w1","lastConsumedAt":null,"totalConsumed":7,"offsetLag":2,)"
          R"("timeLagSeconds":61,"leaseActive":true},{"partition":"r","workerId":null,)"
          R"("totalConsumed":0,"offsetLag":0,"timeLagSeconds":0,"leaseActive":false}]}})",
          {},
          false},
         {404, R"({"error":"Consumer group not found","code":"not_found"})", {}, false}}));
    const Outcome outcome = at(server, {"groups", "bil/ling"});
    EXPECT_EQ(outcome.out, "QUEUE   PARTITION  LAG  SECONDS  CONSUMED  LEASED BY\n"
                           "orders  p            2       61         7  w1\n"
                           "orders  r            0        0         0\n"
                           "orders: 2 of 3 partitions are listed\n");
    EXPECT_EQ(server.seen().at(0).target, "/api/v1/consumer-groups/bil%2Fling");
    const Outcome missing = at(server, {"groups", "nobody"});
    EXPECT_EQ(missing.exit, Exit::failed);
    EXPECT_EQ(missing.err, "queenctl groups: the broker answered 404: Consumer group not found\n");
}

TEST(GroupsCommands, LaggingOnesAreListed) {
    ScriptedServer server(in_order(
        {{200,
          R"([{"consumer_group":"g","queue_name":"q","partition_name":"p","worker_id":null,)"
          R"("offset_lag":5,"time_lag_seconds":7200,"lag_hours":2,)"
          R"("oldest_unconsumed_at":"2026-11-03T09:15:27.000Z","last_consumed_at":null}])",
          {},
          false}}));
    EXPECT_EQ(at(server, {"lagging"}).out,
              "GROUP  QUEUE  PARTITION  LAG  SECONDS  SINCE                     LEASED BY\n"
              "g      q      p            5     7200  2026-11-03T09:15:27.000Z\n");
    at(server, {"lagging", "--min", "10m", "--limit", "3"});
    EXPECT_EQ(server.seen().at(0).target,
              "/api/v1/consumer-groups/lagging?minLagSeconds=3600&limit=10000");
    EXPECT_EQ(server.seen().at(1).target,
              "/api/v1/consumer-groups/lagging?minLagSeconds=600&limit=3");
    EXPECT_EQ(at(server, {"lagging", "--min", "10"}).exit, Exit::usage);
    EXPECT_EQ(at(server, {"lagging", "--limit", "0"}).exit, Exit::usage);
    EXPECT_EQ(server.seen().size(), 2u);
}

TEST(GroupsCommands, SeekSaysWhereItWent) {
    ScriptedServer server(in_order(
        {{200, R"({"success":true,"targetTimestamp":null,"partitionsUpdated":20})", {}, false},
         {200,
          R"({"success":true,"targetTimestamp":"2026-11-03T09:15:27.000000Z",)"
          R"("partitionsUpdated":1})",
          {},
          false},
         {404, R"({"success":false,"error":"Partition not found"})", {}, false}}));
    const Outcome end = at(server, {"seek", "g", "q", "--to-end"});
    EXPECT_EQ(end.exit, Exit::ok) << end.err;
    EXPECT_EQ(end.out, "moved in 20 partitions to the end\n");
    const Outcome time =
        at(server, {"seek", "g", "a b", "--partition", "p/1", "--time", "2026-11-03T09:15:27"});
    EXPECT_EQ(time.out, "moved in 1 partition to 2026-11-03T09:15:27.000000Z\n");
    EXPECT_EQ(server.seen().at(0).target, "/api/v1/consumer-groups/g/queues/q/seek");
    EXPECT_EQ(server.seen().at(0).body, R"({"toEnd":true})");
    EXPECT_EQ(server.seen().at(1).target,
              "/api/v1/consumer-groups/g/queues/a%20b/partitions/p%2F1/seek");
    EXPECT_EQ(server.seen().at(1).body, R"({"timestamp":"2026-11-03T09:15:27"})");
    EXPECT_EQ(at(server, {"seek", "g", "q", "--partition", "x", "--to-end"}).err,
              "queenctl seek: the broker answered 404: Partition not found\n");
}

TEST(GroupsCommands, DeleteAndSubscriptionSayWhatTheyDid) {
    ScriptedServer server(in_order(
        {{200, R"({"success":true,"deletedPartitions":3,"metadataDeleted":true})", {}, false},
         {200, R"({"success":true,"deletedPartitions":1,"metadataDeleted":false})", {}, false},
         {200,
          R"({"success":true,"newTimestamp":"2026-11-03T00:00:00.000000Z","rowsUpdated":2})",
          {},
          false}}));
    EXPECT_EQ(two_words(server, {"groups", "delete", "g"}).out,
              "deleted in 3 partitions, with its subscription\n");
    EXPECT_EQ(two_words(server, {"groups", "delete", "g", "q", "--keep-subscription"}).out,
              "deleted in 1 partition\n");
    EXPECT_EQ(at(server, {"subscription", "g", "2026-11-03"}).out,
              "begins at 2026-11-03T00:00:00.000000Z where it has no position yet; subscriptions "
              "changed: 2\n");
    const auto seen = server.seen();
    EXPECT_EQ(seen.at(0).method + " " + seen.at(0).target, "DELETE /api/v1/consumer-groups/g");
    EXPECT_EQ(seen.at(1).target, "/api/v1/consumer-groups/g/queues/q?deleteMetadata=false");
    EXPECT_EQ(seen.at(2).body, R"({"subscriptionTimestamp":"2026-11-03"})");
}

TEST(GroupsCommands, UsageIsSaid) {
    const auto err = [](const std::vector<std::string>& words) {
        const Outcome outcome = command_line(words);
        EXPECT_EQ(outcome.exit, Exit::usage);
        return outcome.err;
    };
    EXPECT_EQ(err({"seek", "g", "q"}), "queenctl seek: --to-end or --time TIME says where to\n");
    EXPECT_THAT(err({"seek", "g", "q", "--to-end", "--time", "2026-11-03"}), HasSubstr("--time"));
    EXPECT_THAT(err({"seek", "g"}), HasSubstr("QUEUE"));
    EXPECT_THAT(err({"groups", "delete"}), HasSubstr("GROUP"));
    EXPECT_THAT(err({"subscription", "g"}), HasSubstr("TIME"));
    EXPECT_THAT(err({"groups", "a", "b"}), HasSubstr("queenctl groups"));
}

} // namespace
} // namespace queen::ctl::testing
