// What there is, asked over HTTP of a real broker: depth, sizes, labels, overview, candidates.
#include "http/broker/broker_fixture.hpp"

#include <map>

namespace queen::test {
namespace {

using testing::HasSubstr;

/// A member by a path such as "messages.total": numbers as written, strings without quotes.
std::string value_at(const std::string& json, std::string_view path) {
    const auto document = json::Document::parse(json);
    if (!document) {
        return "not JSON: " + json;
    }
    json::Value value = document->root();
    while (!path.empty()) {
        const std::size_t dot = path.find('.');
        value = value[path.substr(0, dot)];
        path.remove_prefix(dot == std::string_view::npos ? path.size() : dot + 1);
    }
    return value.is(json::Kind::string)    ? std::string(value.string())
           : value.is(json::Kind::null)    ? "null"
           : value.is(json::Kind::missing) ? "missing"
                                           : std::string(value.raw_number());
}

class ResourcesTest : public BrokerTest {
protected:
    std::string get(const std::string& view) {
        const auto response = api.http.get("/api/v1/resources/" + view);
        EXPECT_EQ(response.status, 200) << view << ": " << response.body;
        return response.body;
    }
    std::string view(const std::string& rest = {}) const {
        return "queues/" + percent_encode(queue()) + rest;
    }
    /// pending, processing and ready.
    std::string depth(const std::string& query = {}) {
        const std::string body = get(view("/depth" + query));
        return value_at(body, "pending") + " " + value_at(body, "processing") + " " +
               value_at(body, "ready");
    }
    void complete(const Popped& popped, const std::string& group) {
        for (const auto& message : popped.messages) {
            EXPECT_EQ(api.ack(message, "completed", group), "true");
        }
    }
    /// The queue's row in the list, or "".
    std::string listed() {
        const std::string body = get("queues");
        const auto list = json::Document::parse(body);
        for (std::size_t i = 0; i < list->root()["queues"].size(); ++i) {
            const auto row = list->root()["queues"].at(i);
            if (row["name"].string() == queue()) {
                return std::string(row["messages"]["total"].raw_number()) + " " +
                       std::string(row["messages"]["pending"].raw_number()) + " " +
                       std::string(row["messages"]["processing"].raw_number()) + " " +
                       std::string(row["messages"]["completed"].raw_number()) + " " +
                       std::string(row["partitions"].raw_number());
            }
        }
        return {};
    }

    Api api{port()};
};

// K40, F-34: what people saw in their consoles, step by step.
TEST_F(ResourcesTest, K40_FiguresFollowEachGroup) {
    std::vector<std::string> ids;
    for (int i = 0; i < 60; ++i) {
        ids.push_back("p" + std::to_string(i));
    }
    api.push_ids(queue(), "p", ids);
    for (auto& id : ids) {
        id[0] = 'r';
    }
    api.push_ids(queue(), "r", std::vector(ids.begin(), ids.begin() + 40));
    EXPECT_EQ(depth("?group=g"), "100 0 100");
    EXPECT_EQ(depth(), "100 0 100");

    const auto held = api.pop(queue(), "consumerGroup=g&batch=30");
    ASSERT_EQ(held.messages.size(), 30u);
    const std::string left = held.messages[0].partition == "p" ? "40" : "60";
    EXPECT_EQ(depth("?group=g"), "70 30 " + left) << "nothing of a held partition is ready";
    EXPECT_EQ(depth("?group=h"), "100 0 100") << "g's lease is g's";
    complete(held, "g");
    EXPECT_EQ(depth("?group=g"), "70 0 70");
    for (auto batch = api.pop(queue(), "consumerGroup=g&batch=100&partitions=2");
         batch.status == 200; batch = api.pop(queue(), "consumerGroup=g&batch=100&partitions=2")) {
        complete(batch, "g");
    }
    EXPECT_EQ(depth("?group=g"), "0 0 0");
    EXPECT_EQ(depth(), "0 0 0");
    EXPECT_EQ(listed(), "100 0 0 100 2");

    api.pop(queue(), "batch=1&autoAck=true");
    EXPECT_EQ(depth(), "0 0 0") << "a pop without a group pins nothing";
    EXPECT_EQ(depth("?group=g"), "0 0 0");
    EXPECT_EQ(depth("?group="), "99 0 99");
    EXPECT_EQ(depth("?group=__QUEUE_MODE__"), "99 0 99");
    EXPECT_EQ(value_at(get(view("/depth?group=")), "group"), "__QUEUE_MODE__");
    EXPECT_EQ(value_at(get(view("/depth")), "group"), "null");
}

TEST_F(ResourcesTest, SizesDetailAndListTellTheSameStory) {
    for (const std::string partition : {"a", "b", "c"}) {
        api.push_ids(queue(), partition, {"1" + partition, "2" + partition});
    }
    const std::string sizes = get(view("/sizes"));
    const std::string detail = get(view());
    const auto document = json::Document::parse(sizes);
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < document->root()["partitions"].size(); ++i) {
        sum += document->root()["partitions"].value_at(i).integer().value_or(-1);
    }
    EXPECT_GT(sum, 0);
    EXPECT_EQ(value_at(sizes, "retainedBytes"), std::to_string(sum));
    EXPECT_EQ(value_at(detail, "retainedBytes"), std::to_string(sum));
    EXPECT_EQ(value_at(detail, "totals.total") + value_at(detail, "partitionCount"), "63");
    EXPECT_EQ(listed(), "6 6 0 0 3");

    std::string names;
    std::string after;
    for (int page = 0; page < 5; ++page) {
        const auto part =
            json::Document::parse(get(view("/depth?limit=2&after=" + percent_encode(after))));
        for (std::size_t i = 0; i < part->root()["partitions"].size(); ++i) {
            names += part->root()["partitions"].at(i)["partition"].string();
        }
        after = part->root()["next"].string();
        if (after.empty()) {
            break;
        }
    }
    EXPECT_EQ(names, "abc");
}

// K24, K25: whatever can be pushed to can be looked at, by the same name.
TEST_F(ResourcesTest, K25_OddNamesAreReachable) {
    for (const std::string& name : {queue() + " a+b%/ü", queue() + "\"'\\<x>"}) {
        api.push_ids(name, "p/1 +", {"t"});
        for (const std::string rest : {"", "/depth?group=g%2F1", "/sizes"}) {
            const auto response =
                api.http.get("/api/v1/resources/queues/" + percent_encode(name) + rest);
            EXPECT_EQ(response.status, 200) << name << rest;
            EXPECT_EQ(value_at(response.body, rest.empty() ? "name" : "queue"), name);
            EXPECT_THAT(response.body, HasSubstr("p/1 +"));
        }
    }
}

// K47: a queue that is gone has no figures, and made again it begins at nothing.
TEST_F(ResourcesTest, K47_ADeletedQueueIsNotFoundAndBeginsAnew) {
    api.push_ids(queue(), "p", {"a", "b"});
    api.pop(queue(), "consumerGroup=g");
    EXPECT_EQ(api.http.request("DELETE", "/api/v1/resources/" + view()).status, 200);
    for (const std::string rest : {"", "/depth", "/depth?group=g", "/sizes"}) {
        const auto response = api.http.get("/api/v1/resources/" + view(rest));
        EXPECT_EQ(response.status, 404) << rest;
        EXPECT_EQ(response.body, R"({"error":"Queue not found","code":"not_found"})");
    }
    api.push_ids(queue(), "p", {"a"});
    EXPECT_EQ(depth("?group=g"), "1 0 1");
}

TEST_F(ResourcesTest, LabelsAndOverviewCountTheQueue) {
    const auto before = get("overview");
    api.push_ids(queue(), "p", {"a", "b"});
    const auto after = get("overview");
    const auto grown = [&](const std::string& path) {
        return std::stol(value_at(after, path)) - std::stol(value_at(before, path));
    };
    EXPECT_EQ(grown("queues"), 1);
    EXPECT_EQ(grown("partitions"), 1);
    EXPECT_EQ(grown("messages.total"), 2);
    EXPECT_EQ(grown("messages.pending"), 2);
    EXPECT_GT(std::stod(value_at(after, "throughput.ingestedPerSecond")), 0);
    EXPECT_EQ(api.http.post("/api/v1/stats/refresh", "").status, 200);
    EXPECT_GE(std::stod(value_at(get("overview"), "throughput.processedPerSecond")), 0)
        << "rates come from the statistics";
    EXPECT_EQ(value_at(after, "statsAge"), "0");
    EXPECT_THAT(get("namespaces"), HasSubstr(R"("namespace": "ResourcesTest")"));
    EXPECT_THAT(get("tasks"), HasSubstr(R"("task": "LabelsAndOverviewCountTheQueue")"));
}

TEST_F(ResourcesTest, CandidatesShowsWhatEachSourceDoes) {
    const auto figures = [&] {
        const auto response = api.http.get("/api/v1/system/candidates");
        EXPECT_EQ(response.status, 200);
        const auto document = json::Document::parse(response.body);
        EXPECT_TRUE(document) << response.body;
        std::map<std::string, double> stats;
        bool has_default = false;
        for (std::size_t i = 0; i < document->root()["sources"].size(); ++i) {
            const auto source = document->root()["sources"].at(i);
            has_default |= source["name"].string() == document->root()["default"].string();
            EXPECT_EQ(source["loaded"].boolean(), true);
            EXPECT_EQ(source["paused"].boolean(), false);
            EXPECT_EQ(source["verdict"].string(), "loaded");
            for (std::size_t j = 0; j < source["faults"].size(); ++j) {
                // A call that the machine did not let run for a while counts as slow.
                EXPECT_EQ(source["faults"].key_at(j), "slow_call") << response.body;
            }
            EXPECT_FALSE(source["id"].string().empty());
            EXPECT_FALSE(source["version"].string().empty());
            for (std::size_t j = 0; j < source["stats"].size(); ++j) {
                stats[std::string(source["name"].string()) + "." +
                      std::string(source["stats"].key_at(j))] =
                    std::stod(std::string(source["stats"].value_at(j).raw_number()));
            }
        }
        EXPECT_TRUE(has_default) << response.body;
        return stats;
    };
    api.push_ids(queue(), "p", {"a"});
    EXPECT_EQ(api.pop(queue(), "consumerGroup=g").ids(), std::vector<std::string>{"a"});
    const auto before = figures(); // the first pop of a group asks no source
    ASSERT_TRUE(before.contains("sqlscan.hints"));
    api.push_ids(queue(), "r", {"b"});
    EXPECT_EQ(api.pop(queue(), "consumerGroup=g").ids(), std::vector<std::string>{"b"});
    const auto after = figures();
    double grown = 0;
    for (const auto& [name, value] : after) {
        if (name.ends_with("_total")) {
            grown += value - before.at(name);
        }
    }
    EXPECT_GT(grown, 0) << "one push and one pop were somebody's";
}

} // namespace
} // namespace queen::test
