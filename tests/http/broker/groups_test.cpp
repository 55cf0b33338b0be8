// Consumer groups over two real brokers and one database, without a mesh: what one of them moves or
// removes, the other makes its own. Where nothing else is said the backoff is a minute, so whoever
// is answered sooner was told.
#include "support/api.hpp"
#include "support/broker_process.hpp"
#include "support/candidate_source.hpp"
#include "support/postgres.hpp"
#include "support/temp_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>

namespace queen::test {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::UnorderedElementsAre;

const std::string kPatient = "pop: {backoff_initial: 60s, backoff_max: 60s}\n";

class GroupsOfTwoBrokers : public testing::Test {
protected:
    struct Broker {
        explicit Broker(BrokerOptions options) : process(std::move(options)), api(process.port()) {}
        BrokerProcess process;
        Api api;
    };

    std::unique_ptr<Broker> broker(const std::string& name, const std::string& more) {
        return std::make_unique<Broker>(BrokerOptions{
            .config = "database: {url: \"" + TestPostgres::shared().conninfo(database_) +
                      "\", sessions: 6}\ngroups: {repair_interval: 100ms}\n" + more +
                      serving(source_under_test()),
            .data_directory = directory_.path() + "/" + name});
    }
    void start(const std::string& more = kPatient) {
        a_ = broker("a", more);
        b_ = broker("b", more);
    }

    /// A pop of group g that waits at a broker; parked when this returns.
    static std::unique_ptr<HttpClient> park(Broker& at, const std::string& more = {},
                                            const std::string& path = "/api/v1/pop/queue/q") {
        const auto before = parked(at);
        auto client = std::make_unique<HttpClient>(at.process.port());
        client->start("GET", path + "?wait=true&timeout=55000&batch=1000" + more);
        const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
        bool seen = false; // it may be woken again meanwhile, by what this broker did before
        while (!seen && std::chrono::steady_clock::now() < end) {
            seen = parked(at) == before + 1;
        }
        EXPECT_TRUE(seen) << "not parked within a minute";
        return client;
    }
    static int parked(Broker& at) {
        const auto page = HttpClient(at.process.port()).get("/metrics/prometheus").body;
        const std::string name = "\nqueen_parked_pops ";
        return std::stoi(page.substr(page.find(name) + name.size()));
    }

    static HttpResponse seek(Broker& at, const std::string& body, const std::string& group = "g",
                             const std::string& partition = {}) {
        return at.api.http.post("/api/v1/consumer-groups/" + group + "/queues/q" +
                                    (partition.empty() ? "" : "/partitions/" + partition) + "/seek",
                                body);
    }
    static std::string to(const std::string& time) { return R"({"timestamp":")" + time + "\"}"; }
    static std::set<std::string> partitions_of(const Popped& popped) {
        std::set<std::string> names;
        for (const auto& message : popped.messages) {
            names.insert(message.partition);
        }
        return names;
    }
    static void acknowledge(Broker& at, const Popped& popped, const std::string& group = "g") {
        for (const auto& message : popped.messages) {
            ASSERT_EQ(at.api.ack(message, "completed", group), "true");
        }
    }

    /// Ten partitions with an old and a new message each, all read by g. @return when the first of
    /// the new ones was stored
    std::string history() {
        std::vector<std::array<std::string, 3>> old, fresh;
        for (int i = 0; i < 10; ++i) {
            const std::string name = "p" + std::to_string(i);
            old.push_back({name, "old" + std::to_string(i), "1"});
            fresh.push_back({name, "new" + std::to_string(i), "1"});
        }
        EXPECT_EQ(a_->api.push("q", old).status, 201);
        EXPECT_EQ(a_->api.push("q", fresh).status, 201);
        const auto all = a_->api.pop("q", "consumerGroup=g&batch=1000&partitions=100&autoAck=true");
        EXPECT_EQ(all.messages.size(), 20u);
        std::string first = "9";
        for (const auto& message : all.messages) {
            if (message.transaction_id.starts_with("new")) {
                first = std::min(first, message.created_at);
            }
        }
        return first;
    }

    std::string database_ = TestPostgres::shared().create_database();
    TempDirectory directory_;
    std::unique_ptr<Broker> a_, b_;
};

// K48, K34, F-43: the messages are offered at once here, and there within the reader's interval.
TEST_F(GroupsOfTwoBrokers, K48_ASeekBackIsSeenByBothBrokers) {
    start();
    const auto middle = history();
    auto on_a = park(*a_, "&consumerGroup=g&partitions=5");
    auto on_b = park(*b_, "&consumerGroup=g&partitions=5");
    const auto said = seek(*a_, to(middle));
    EXPECT_EQ(said.status, 200) << said.body;
    EXPECT_THAT(said.body, HasSubstr(R"("partitionsUpdated":10)"));
    const auto from_a = Api::read_pop(on_a->read());
    const auto from_b = Api::read_pop(on_b->read());
    EXPECT_EQ(from_a.messages.size(), 5u);
    EXPECT_EQ(from_b.messages.size(), 5u);
    auto names = partitions_of(from_a);
    names.merge(partitions_of(from_b));
    EXPECT_EQ(names.size(), 10u);
    for (const auto* batch : {&from_a, &from_b}) {
        EXPECT_THAT(batch->ids(), Each(testing::StartsWith("new"))) << "nothing older";
    }
    acknowledge(*a_, from_a);
    acknowledge(*b_, from_b);
    for (auto* broker : {a_.get(), b_.get()}) {
        EXPECT_EQ(broker->api.pop("q", "consumerGroup=g").status, 204);
    }
}

// K48
TEST_F(GroupsOfTwoBrokers, K48_OnePartitionTheEndTheFutureAndTheUnknown) {
    start();
    const auto middle = history();
    auto on_b = park(*b_, "&consumerGroup=g&partitions=100");
    EXPECT_EQ(seek(*a_, to(middle), "g", "p3").status, 200);
    const auto one = Api::read_pop(on_b->read());
    EXPECT_THAT(one.ids(), ElementsAre("new3"));
    // Its lease ends with the next seek, of which the other broker hears as well.
    on_b = park(*b_, "&consumerGroup=g&partitions=100");
    EXPECT_EQ(seek(*a_, to("2000-01-01"), "g", "p3").status, 200);
    const auto again = Api::read_pop(on_b->read());
    EXPECT_THAT(again.ids(), ElementsAre("old3", "new3"));
    EXPECT_EQ(b_->api.ack(one.messages[0], "completed", "g"), "invalid or expired lease");

    const auto nothing = [&] {
        for (auto* broker : {a_.get(), b_.get()}) {
            EXPECT_EQ(broker->api.pop("q", "consumerGroup=g&partitions=100").status, 204);
        }
    };
    EXPECT_EQ(seek(*a_, "", "g", "p3").status, 200) << "no body is the end";
    nothing();
    EXPECT_EQ(seek(*b_, to("2000-01-01")).status, 200);
    EXPECT_EQ(seek(*b_, to("2999-01-01")).status, 200);
    nothing();
    EXPECT_EQ(seek(*a_, to("2000-01-01")).status, 200);
    EXPECT_EQ(seek(*b_, R"({"toEnd":true})").status, 200);
    nothing();
    EXPECT_EQ(seek(*a_, to("2000-01-01"), "nobody").status, 404);
    EXPECT_EQ(seek(*a_, to("2000-01-01"), "g", "nope").status, 404);
    EXPECT_EQ(
        a_->api.http.post("/api/v1/consumer-groups/g/queues/nope/seek", to("2000-01-01")).status,
        404);
    EXPECT_EQ(seek(*a_, to("yesterday")).status, 400);
    nothing();
}

// A delay that is over must not be waited for again.
TEST_F(GroupsOfTwoBrokers, ASeekOnADelayedQueueIsNotDelayed) {
    start();
    history();
    EXPECT_EQ(a_->api.configure("q", R"({"delayedProcessing":1})").status, 200);
    auto on_a = park(*a_, "&consumerGroup=g");
    // Whatever was stored is older by now; what waits is told by the time of the database.
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    std::string ready;
    while (ready != "20" && std::chrono::steady_clock::now() < end) {
        const auto depth = a_->api.http.get("/api/v1/resources/queues/q/depth?group=nobody").body;
        ready = json::Document::parse(depth)->root()["ready"].raw_number();
    }
    EXPECT_EQ(a_->api.configure("q", R"({"delayedProcessing":3600})").status, 200);
    EXPECT_EQ(a_->api.configure("q", R"({"delayedProcessing":1})").status, 200);
    EXPECT_EQ(seek(*a_, to("2000-01-01"), "g", "p3").status, 200);
    EXPECT_THAT(Api::read_pop(on_a->read()).ids(), ElementsAre("old3", "new3"));
}

TEST_F(GroupsOfTwoBrokers, ASeekWakesPinnedAndDiscoveringPops) {
    start();
    EXPECT_EQ(a_->api.configure("q", R"({"namespace":"n"})").status, 200);
    history();
    auto pinned = park(*a_, "&consumerGroup=g", "/api/v1/pop/queue/q/partition/p3");
    auto discovering = park(*b_,
                            "&consumerGroup=d&namespace=n&autoAck=true&partitions=1000"
                            "&subscriptionMode=new",
                            "/api/v1/pop");
    EXPECT_EQ(seek(*a_, to("2000-01-01")).status, 200);
    EXPECT_THAT(Api::read_pop(pinned->read()).ids(), ElementsAre("old3", "new3"));
    EXPECT_EQ(seek(*a_, to("2000-01-01"), "d").status, 200);
    EXPECT_EQ(Api::read_pop(discovering->read()).messages.size(), 20u);
}

// K34: what is removed on one broker is not remembered by the other.
TEST_F(GroupsOfTwoBrokers, AGroupDeletedElsewhereMakesFirstContactAgain) {
    start();
    history();
    EXPECT_EQ(seek(*b_, to("2000-01-01")).status, 200);
    const auto held = b_->api.pop("q", "consumerGroup=g&batch=1000&partitions=100");
    ASSERT_EQ(held.messages.size(), 20u);
    auto on_b = park(*b_, "&consumerGroup=g&partitions=100");
    const auto gone = a_->api.http.request("DELETE", "/api/v1/consumer-groups/g");
    EXPECT_EQ(gone.body, R"({"success":true,"consumerGroup":"g","deletedPartitions":10,)"
                         R"("metadataDeleted":true,"queues":["q"]})");
    EXPECT_EQ(Api::read_pop(on_b->read()).messages.size(), 20u)
        << "its consumer lives, so the group is made anew and begins at the start";
    EXPECT_EQ(b_->api.ack(held.messages[0], "completed", "g"), "invalid or expired lease");
    EXPECT_EQ(a_->api.http.request("DELETE", "/api/v1/consumer-groups/nobody").body,
              R"({"success":true,"consumerGroup":"nobody","deletedPartitions":0,)"
              R"("metadataDeleted":false,"queues":[]})");
}

// K47, K34: with the floors that are there without a mesh.
TEST_F(GroupsOfTwoBrokers, K47_AQueueDeletedHereAndMadeAgainThereIsReadFromItsStartOnBoth) {
    start("plugins:\n"
          "  - {name: hotlist, path: hotlist.so, options: {reseed: 1s}}\n"
          "  - {name: sqlscan, path: sqlscan.so}\n");
    history();
    a_->api.push_ids("q", "p0", {"late"});
    const auto held = a_->api.pop("q", "consumerGroup=g");
    ASSERT_THAT(held.ids(), ElementsAre("late"));
    auto on_a = park(*a_, "&consumerGroup=g");
    auto on_b = park(*b_, "&consumerGroup=g");
    EXPECT_THAT(a_->api.remove("q").body, HasSubstr(R"("deleted":true)"));
    for (const std::string partition : {"p0", "p1"}) {
        EXPECT_THAT(column(b_->api.push_ids("q", partition, {"1", "2", "3", "4", "5"}), "status"),
                    Each("queued"))
            << "old ids do not block";
    }
    const auto from_a = Api::read_pop(on_a->read());
    const auto from_b = Api::read_pop(on_b->read());
    EXPECT_THAT(from_a.ids(), ElementsAre("1", "2", "3", "4", "5"));
    EXPECT_THAT(from_b.ids(), ElementsAre("1", "2", "3", "4", "5"));
    EXPECT_NE(from_a.messages[0].partition, from_b.messages[0].partition);
    EXPECT_NE(b_->api.ack(held.messages[0], "completed", "g"), "true");
}

// K49: a group that reads nothing for long, over a restart, keeps its place.
TEST_F(GroupsOfTwoBrokers, K49_AnIdleGroupKeepsItsPlaceOverRestarts) {
    start();
    history();
    a_.reset();
    b_.reset();
    start();
    EXPECT_EQ(a_->api.pop("q", "consumerGroup=g&subscriptionMode=all").status, 204);
    b_->api.push_ids("q", "p7", {"one"});
    EXPECT_THAT(b_->api.pop("q", "consumerGroup=g&subscriptionMode=all&partitions=100").ids(),
                ElementsAre("one"));
    EXPECT_EQ(a_->api.pop("q", "consumerGroup=g&partitions=100").status, 204);
}

// K40, K04
TEST_F(GroupsOfTwoBrokers, K40_FiguresAreThoseOfEachGroup) {
    start();
    history();
    EXPECT_EQ(b_->api.pop("q", "consumerGroup=late&subscriptionMode=new").status, 204);
    EXPECT_EQ(b_->api.pop("q", "batch=1").status, 200); // somebody looks in from a console
    const auto figures = [&](const std::string& member) {
        std::vector<std::string> out;
        const auto document =
            json::Document::parse(a_->api.http.get("/api/v1/consumer-groups").body);
        for (std::size_t i = 0; document && i < document->root().size(); ++i) {
            out.push_back(std::string(document->root().at(i)["name"].string()) + "=" +
                          std::string(document->root().at(i)[member].raw_number()));
        }
        return out;
    };
    EXPECT_THAT(figures("totalLag"), ElementsAre("__QUEUE_MODE__=20", "g=0", "late=0"));
    EXPECT_THAT(figures("partitionCursors"), ElementsAre("__QUEUE_MODE__=10", "g=10", "late=10"));
    a_->api.push_ids("q", "never-seen-before", {"m1"});
    EXPECT_THAT(figures("totalLag"), ElementsAre("__QUEUE_MODE__=21", "g=1", "late=1"));
    EXPECT_THAT(b_->api.pop("q", "consumerGroup=late&subscriptionMode=new&partitions=9").ids(),
                ElementsAre("m1"));
    const auto lagging = a_->api.http.get("/api/v1/consumer-groups/lagging?minLagSeconds=0");
    EXPECT_THAT(column(lagging, "consumer_group"), IsSupersetOf({"__QUEUE_MODE__", "g", "late"}));
    EXPECT_EQ(a_->api.http.get("/api/v1/consumer-groups/lagging").body, "[]") << "an hour";
    EXPECT_THAT(a_->api.http.get("/api/v1/consumer-groups/late").body,
                AllOf(HasSubstr(R"("partition": "never-seen-before")"),
                      HasSubstr(R"("leaseActive": true)")));
    EXPECT_EQ(a_->api.http.get("/api/v1/consumer-groups/nobody").status, 404);
    EXPECT_EQ(a_->api.http.request("DELETE", "/api/v1/consumer-groups/__QUEUE_MODE__").status, 200);
    EXPECT_THAT(figures("totalLag"), ElementsAre("g=1", "late=1"));
}

// K21: what was named in a body is reached by path.
TEST_F(GroupsOfTwoBrokers, K21_GroupsOfAnyNameAreReached) {
    start();
    for (const std::string name :
         {"a&b", "a\"b", "a\\b", "a/b", "é", "日本", "<x>", "a+b", "%2F"}) {
        const std::string path = percent_encode(name);
        EXPECT_EQ(a_->api.push_ids(name, name, {"m"}).status, 201);
        EXPECT_EQ(a_->api.pop(name, "autoAck=true&consumerGroup=" + path).status, 200);
        const auto said = a_->api.http.post("/api/v1/consumer-groups/" + path + "/queues/" + path +
                                                "/partitions/" + path + "/seek",
                                            to("2000-01-01"));
        EXPECT_EQ(said.status, 200) << said.body;
        const auto document = json::Document::parse(said.body);
        ASSERT_TRUE(document);
        for (const char* member : {"consumerGroup", "queueName", "partitionName"}) {
            EXPECT_EQ(document->root()[member].string(), name);
        }
        EXPECT_THAT(a_->api.pop(name, "consumerGroup=" + path).ids(), ElementsAre("m")) << name;
        EXPECT_EQ(
            a_->api.http.request("DELETE", "/api/v1/consumer-groups/" + path + "/queues/" + path)
                .status,
            200);
    }
    EXPECT_EQ(a_->api.http.get("/api/v1/consumer-groups").body, "[]");
}

} // namespace
} // namespace queen::test
