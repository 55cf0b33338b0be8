#include "http/conformance/conformance.hpp"

#include "base/text.hpp"
#include "support/candidate_source.hpp"
#include "support/postgres.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ostream>
#include <stdexcept>

namespace queen::test {
namespace {

/// How many brokers this run is about: QUEEN_TEST_BROKERS, else one.
std::size_t wanted_brokers() {
    const char* text = std::getenv("QUEEN_TEST_BROKERS");
    return text == nullptr ? 1 : static_cast<std::size_t>(std::stoul(text));
}

/// The brokers of the program, on one database.
struct Cluster {
    TempDirectory directory;
    std::string url;
    std::vector<std::unique_ptr<BrokerProcess>> brokers;
};
Cluster* cluster = nullptr;

/// Ends them before the program does.
class ClusterEnvironment final : public testing::Environment {
public:
    void TearDown() override { delete std::exchange(cluster, nullptr); }
};
const auto* const kEnvironment = testing::AddGlobalTestEnvironment(new ClusterEnvironment);

constexpr std::chrono::seconds kPatience{30};

/// Splits "a.b..c" into "a" and "b.c".
std::vector<std::string> steps(std::string_view path) {
    std::vector<std::string> all(path.empty() ? 0 : 1);
    for (std::size_t i = 0; i < path.size(); ++i) {
        if (path[i] != '.') {
            all.back() += path[i];
        } else if (i + 1 < path.size() && path[i + 1] == '.') {
            all.back() += '.';
            ++i;
        } else {
            all.emplace_back();
        }
    }
    return all;
}

/// An element when it is an array and the step a number, else a member.
json::Value member(json::Value value, const std::string& step) {
    const bool number = step.find_first_not_of("0123456789") == std::string::npos;
    return value.is(json::Kind::array) && number ? value.at(std::stoul(step)) : value[step];
}

std::string text_of(json::Value value) {
    switch (value.kind()) {
    case json::Kind::missing:
        return "missing";
    case json::Kind::null:
        return "null";
    case json::Kind::boolean:
        return value.boolean().value_or(false) ? "true" : "false";
    case json::Kind::number:
        return std::string(value.raw_number());
    case json::Kind::string:
        return std::string(value.string());
    case json::Kind::array:
        return "[" + std::to_string(value.size()) + "]";
    case json::Kind::object:
        return "{" + std::to_string(value.size()) + "}";
    }
    return {};
}

} // namespace

Answer::Answer(std::string asked, HttpResponse response)
    : asked_(std::move(asked)), response_(std::move(response)) {
    if (auto document = json::Document::parse(response_.body)) {
        document_ = std::make_shared<json::Document>(std::move(*document));
    }
}

json::Value Answer::value(std::string_view path) const {
    if (!document_) {
        return {};
    }
    json::Value value = document_->root();
    for (const auto& step : steps(path)) {
        value = member(value, step);
    }
    return value;
}

std::string Answer::at(std::string_view path) const {
    return document_ ? text_of(value(path)) : "no JSON: " + body();
}

std::vector<std::string> Answer::keys(std::string_view path) const {
    const auto object = value(path);
    std::vector<std::string> names;
    for (std::size_t i = 0; object.is(json::Kind::object) && i < object.size(); ++i) {
        names.emplace_back(object.key_at(i));
    }
    std::sort(names.begin(), names.end());
    return names;
}

std::vector<std::string> Answer::column(std::string_view list, std::string_view path) const {
    const auto array = value(list);
    std::vector<std::string> values;
    for (std::size_t i = 0; array.is(json::Kind::array) && i < array.size(); ++i) {
        json::Value element = array.at(i);
        for (const auto& step : steps(path)) {
            element = member(element, step);
        }
        values.push_back(text_of(element));
    }
    return values;
}

std::size_t Answer::size(std::string_view path) const {
    return value(path).size();
}

void PrintTo(const Answer& answer, std::ostream* out) {
    *out << answer.asked_ << " -> " << answer.status() << " " << answer.body().substr(0, 2'000);
}

void ConformanceTest::SetUpTestSuite() {
    if (cluster != nullptr) {
        return;
    }
    auto& postgres = TestPostgres::shared();
    cluster = new Cluster;
    cluster->url = postgres.conninfo(postgres.create_database());
    for (std::size_t i = 0; i < wanted_brokers(); ++i) {
        cluster->brokers.push_back(std::make_unique<BrokerProcess>(BrokerOptions{
            .config = "database: {url: \"" + cluster->url +
                      "\", sessions: 8}\n"
                      "plugins:\n"
                      "  - {name: hotlist, path: hotlist.so, options: {reseed: 1s}}\n"
                      "  - {name: sqlscan, path: sqlscan.so}\n" +
                      serving(source_under_test()),
            .data_directory = cluster->directory.path() + "/data" + std::to_string(i)}));
    }
}

void ConformanceTest::SetUp() {
    for (std::size_t i = 0; i < brokers(); ++i) {
        clients_.push_back(std::make_unique<HttpClient>(broker(i).port()));
    }
}

std::string ConformanceTest::queue(std::string_view more) const {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    return std::string(info->test_suite_name()) + "-" + info->name() + std::string(more);
}

std::size_t ConformanceTest::brokers() {
    return cluster->brokers.size();
}

BrokerProcess& ConformanceTest::broker(std::size_t index) {
    return *cluster->brokers.at(index);
}

HttpClient ConformanceTest::connection(std::size_t broker_index) {
    return HttpClient(broker(broker_index).port());
}

const std::string& ConformanceTest::database_url() {
    return cluster->url;
}

Answer ConformanceTest::call(std::string_view method, const std::string& target,
                             const std::string& body, const Headers& headers) {
    return call_at(next_++ % brokers(), method, target, body, headers);
}

Answer ConformanceTest::call_at(std::size_t broker_index, std::string_view method,
                                const std::string& target, const std::string& body,
                                const Headers& headers) {
    std::string asked(method);
    asked.append(" ").append(target).append(" ").append(body.substr(0, 500));
    return {std::move(asked), clients_.at(broker_index)->request(method, target, body, headers)};
}

Answer ConformanceTest::push(const std::string& queue_name, const std::string& partition,
                             const std::vector<std::string>& payloads,
                             const std::vector<std::string>& ids) {
    std::string body;
    json::Writer out(body);
    out.begin_object().key("items").begin_array();
    for (std::size_t i = 0; i < payloads.size(); ++i) {
        out.begin_object().key("queue").string(queue_name).key("partition").string(partition);
        out.key("transactionId").string(i < ids.size() ? ids[i] : "t" + std::to_string(i));
        out.key("payload").raw(payloads[i]).end_object();
    }
    out.end_array().end_object();
    Answer answer = post("/api/v1/push", body);
    EXPECT_EQ(answer.status(), 201) << testing::PrintToString(answer);
    EXPECT_THAT(answer.column("", "status"), testing::Each("queued"))
        << testing::PrintToString(answer);
    return answer;
}

std::string ConformanceTest::pop_path(const std::string& queue_name, const std::string& query) {
    return "/api/v1/pop/queue/" + percent_encode(queue_name) + (query.empty() ? "" : "?" + query);
}

std::vector<Delivery> ConformanceTest::deliveries(const Answer& popped) {
    std::vector<Delivery> all;
    for (std::size_t i = 0; i < popped.size("messages"); ++i) {
        const auto of = [&](const char* name) {
            return popped.at("messages." + std::to_string(i) + "." + name);
        };
        all.push_back({of("transactionId"), of("partition"), of("partitionId"), of("leaseId"),
                       of("consumerGroup"), of("data"), of("deliveryAttempt"), of("offset")});
    }
    return all;
}

std::vector<Delivery> ConformanceTest::take(const std::string& queue_name,
                                            const std::string& query) {
    return take_at(pop_path(queue_name, query));
}

std::vector<Delivery> ConformanceTest::take_at(const std::string& path) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    const std::string waiting =
        path + (path.find('?') == std::string::npos ? "?" : "&") + "wait=true&timeout=2000";
    do {
        const Answer popped = get(waiting);
        EXPECT_THAT(popped.status(), testing::AnyOf(200, 204)) << testing::PrintToString(popped);
        if (auto messages = deliveries(popped); !messages.empty()) {
            return messages;
        }
        if (testing::Test::HasFailure()) {
            return {};
        }
    } while (std::chrono::steady_clock::now() < end);
    ADD_FAILURE() << "nothing came of " << path;
    return {};
}

Answer ConformanceTest::ack(const Delivery& message, std::string_view status,
                            std::string_view more) {
    std::string body;
    json::Writer out(body);
    out.begin_object().key("transactionId").string(message.transaction_id);
    out.key("partitionId").string(message.partition_id).key("status").string(status);
    out.key("leaseId").string(message.lease_id).key("consumerGroup").string(message.group);
    out.end_object();
    if (!more.empty()) {
        body.insert(body.size() - 1, "," + std::string(more));
    }
    return post("/api/v1/ack", body);
}

Answer ConformanceTest::await(const std::string& target,
                              const std::function<bool(const Answer&)>& holds) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    Answer answer = get(target);
    while (!holds(answer) && std::chrono::steady_clock::now() < end) {
        answer = get(target);
    }
    EXPECT_TRUE(holds(answer)) << testing::PrintToString(answer);
    return answer;
}

} // namespace queen::test
