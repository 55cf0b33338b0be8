#pragma once
#include "base/json.hpp"
#include "base/text.hpp"
#include "support/http_client.hpp"

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace queen::test {

/// One delivered message, as far as tests look at it.
struct Message {
    std::string transaction_id, id, partition, partition_id, lease_id, created_at;
    std::int64_t attempt = 0, offset = -1;
    std::string data; ///< raw JSON
};

struct Popped {
    int status = 0;
    std::string body;
    std::vector<Message> messages;
    std::string lease_id;
    std::vector<std::string> ids() const {
        std::vector<std::string> all;
        for (const auto& message : messages) {
            all.push_back(message.transaction_id);
        }
        return all;
    }
};

/// Raw bytes of a member's value. The tests compare payloads byte for byte.
inline std::string raw_data(const std::string& body, std::size_t message) {
    // "data": is followed by the payload and then by ,"producerSub"; payloads of tests hold
    // neither.
    std::size_t at = 0;
    for (std::size_t i = 0; i <= message; ++i) {
        at = body.find("\"data\":", at);
        if (at == std::string::npos) {
            throw std::runtime_error("no data in " + body);
        }
        at += 7;
    }
    return body.substr(at, body.find(",\"producerSub\"", at) - at);
}

/// The HTTP API as a client uses it, over one connection.
class Api {
public:
    explicit Api(std::uint16_t port) : http(port) {}

    /// Items are (partition, transaction id, payload). @return the raw response
    HttpResponse push(const std::string& queue,
                      const std::vector<std::array<std::string, 3>>& items) {
        std::string body;
        json::Writer out(body);
        out.begin_object().key("items").begin_array();
        for (const auto& [partition, id, payload] : items) {
            out.begin_object().key("queue").string(queue).key("partition").string(partition);
            out.key("transactionId").string(id).key("payload").raw(payload).end_object();
        }
        out.end_array().end_object();
        return http.post("/api/v1/push", body);
    }
    HttpResponse push_ids(const std::string& queue, const std::string& partition,
                          const std::vector<std::string>& ids) {
        std::vector<std::array<std::string, 3>> items;
        for (const auto& id : ids) {
            items.push_back({partition, id, "1"});
        }
        return push(queue, items);
    }

    static std::string pop_target(const std::string& queue, const std::string& query) {
        return "/api/v1/pop/queue/" + percent_encode(queue) + (query.empty() ? "" : "?" + query);
    }
    Popped pop(const std::string& queue, const std::string& query = {}) {
        return read_pop(http.get(pop_target(queue, query)));
    }
    static Popped read_pop(const HttpResponse& response) {
        Popped popped;
        popped.status = response.status;
        popped.body = response.body;
        if (response.status != 200) {
            return popped;
        }
        const auto document = json::Document::parse(response.body);
        if (!document) {
            throw std::runtime_error("not JSON: " + response.body);
        }
        const auto root = document->root();
        popped.lease_id = root["leaseId"].string();
        const auto messages = root["messages"];
        for (std::size_t i = 0; i < messages.size(); ++i) {
            const auto m = messages.at(i);
            popped.messages.push_back(
                {std::string(m["transactionId"].string()), std::string(m["id"].string()),
                 std::string(m["partition"].string()), std::string(m["partitionId"].string()),
                 std::string(m["leaseId"].string()), std::string(m["createdAt"].string()),
                 m["deliveryAttempt"].integer().value_or(-1), m["offset"].integer().value_or(-1),
                 raw_data(response.body, i)});
        }
        return popped;
    }

    /// One ack. @return its result's members "success" and "error" as "true" or the error text
    std::string ack(const Message& message, const std::string& status = "completed",
                    const std::string& group = {}, const std::string& lease = "-") {
        std::string body;
        json::Writer out(body);
        out.begin_object().key("transactionId").string(message.transaction_id);
        out.key("partitionId").string(message.partition_id).key("status").string(status);
        out.key("leaseId").string(lease == "-" ? message.lease_id : lease);
        if (!group.empty()) {
            out.key("consumerGroup").string(group);
        }
        out.end_object();
        const auto response = http.post("/api/v1/ack", body);
        const auto document = json::Document::parse(response.body);
        if (response.status != 200 || !document || document->root().size() != 1) {
            throw std::runtime_error("ack: " + std::to_string(response.status) + response.body);
        }
        const auto result = document->root().at(0);
        const auto error = result["error"].string();
        return !error.empty()                                ? std::string(error)
               : result["success"].boolean().value_or(false) ? "true"
                                                             : "false";
    }

    /// Completes all of them for a group, as one batch.
    HttpResponse ack_all(const std::vector<Message>& messages, const std::string& group) {
        std::string body;
        json::Writer out(body);
        out.begin_object().key("consumerGroup").string(group);
        out.key("acknowledgments").begin_array();
        for (const auto& message : messages) {
            out.begin_object().key("transactionId").string(message.transaction_id);
            out.key("partitionId").string(message.partition_id);
            out.key("leaseId").string(message.lease_id).end_object();
        }
        out.end_array().end_object();
        return http.post("/api/v1/ack/batch", body);
    }

    HttpResponse configure(const std::string& queue, const std::string& options_json) {
        return http.post("/api/v1/configure", "{\"queue\":" + json::quoted(queue) +
                                                  ",\"options\":" + options_json + "}");
    }
    HttpResponse remove(const std::string& queue) {
        return http.request("DELETE", "/api/v1/resources/queues/" + percent_encode(queue));
    }

    HttpClient http;
};

/// The member `name` of each element of a top-level array, as text.
inline std::vector<std::string> column(const HttpResponse& response, std::string_view name) {
    std::vector<std::string> values;
    const auto document = json::Document::parse(response.body);
    if (!document) {
        throw std::runtime_error("not JSON: " + response.body);
    }
    for (std::size_t i = 0; i < document->root().size(); ++i) {
        values.emplace_back(document->root().at(i)[name].string());
    }
    return values;
}

} // namespace queen::test
