// What the suites of the HTTP contract share: one database, one or two brokers over it, and answers
// that are easy to look into. Each program runs for each candidate source with one broker and with
// two. With two, requests go to one broker after the other, so whatever a test does at one is seen
// from the other: there is no mesh here, so what a broker learns late it learns from the database,
// within the shortened intervals below.
#pragma once
#include "base/json.hpp"
#include "support/broker_process.hpp"
#include "support/http_client.hpp"
#include "support/temp_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace queen::test {

/// An answer and its JSON.
class Answer {
public:
    Answer(std::string asked, HttpResponse response);

    int status() const noexcept { return response_.status; }
    const std::string& body() const noexcept { return response_.body; }
    const HttpResponse& response() const noexcept { return response_; }
    /// The value at a path such as "messages.0.data": text as it is, numbers as written, "true",
    /// "null", arrays and objects as "[2]" and "{3}" with their sizes, "missing" when not there.
    /// A key that holds a dot is written with the dot doubled.
    std::string at(std::string_view path) const;
    /// The members of the object at a path, sorted; "" is the whole answer.
    std::vector<std::string> keys(std::string_view path = {}) const;
    /// The value at `path` of each element of the array at `list`.
    std::vector<std::string> column(std::string_view list, std::string_view path) const;
    std::size_t size(std::string_view path = {}) const;
    json::Value value(std::string_view path) const;

    friend void PrintTo(const Answer& answer, std::ostream* out);

private:
    std::string asked_;
    HttpResponse response_;
    std::shared_ptr<json::Document> document_; ///< null when the body is no JSON
};

/// One message of a pop, as an ack addresses it.
struct Delivery {
    std::string transaction_id, partition, partition_id, lease_id, group, data;
    std::string attempt, offset;
};

class ConformanceTest : public testing::Test {
protected:
    static void SetUpTestSuite();
    void SetUp() override;

    /// A queue no other test uses; dots would be labels.
    std::string queue(std::string_view more = {}) const;

    /// One request to the next broker.
    Answer call(std::string_view method, const std::string& target, const std::string& body = {},
                const Headers& headers = {});
    Answer get(const std::string& target) { return call("GET", target); }
    Answer post(const std::string& target, const std::string& body) {
        return call("POST", target, body);
    }
    /// The same to a certain broker, from 0.
    Answer call_at(std::size_t broker, std::string_view method, const std::string& target,
                   const std::string& body = {}, const Headers& headers = {});
    static std::size_t brokers();
    static BrokerProcess& broker(std::size_t index);
    /// A session of its own to a broker, for a request that waits.
    static HttpClient connection(std::size_t broker);
    static const std::string& database_url();

    /// Payloads are raw JSON; ids t0, t1 ... or `ids`. Asserts that all were queued.
    Answer push(const std::string& queue, const std::string& partition,
                const std::vector<std::string>& payloads, const std::vector<std::string>& ids = {});
    /// The path of a wildcard pop, encoded.
    static std::string pop_path(const std::string& queue, const std::string& query = {});
    /// Pops until something comes: a broker learns of what happened at another within its
    /// intervals. Fails the test when nothing comes in half a minute.
    std::vector<Delivery> take(const std::string& queue, const std::string& query = {});
    /// The same at a path of one's own (pinned, discovery).
    std::vector<Delivery> take_at(const std::string& path);
    static std::vector<Delivery> deliveries(const Answer& popped);
    /// One ack to the next broker. `more`: further members, such as R"("error":"why")".
    Answer ack(const Delivery& message, std::string_view status = "completed",
               std::string_view more = {});
    /// Asks until `holds` is true of the answer, for what another broker learns late; half a minute
    /// at most, then the test fails.
    Answer await(const std::string& target, const std::function<bool(const Answer&)>& holds);

private:
    std::vector<std::unique_ptr<HttpClient>> clients_;
    std::size_t next_ = 0;
};

} // namespace queen::test
