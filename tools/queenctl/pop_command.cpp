#include "queenctl/command.hpp"
#include "queenctl/json_text.hpp"
#include "queenctl/text_table.hpp"

#include <array>
#include <ostream>

namespace queen::ctl {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kDataColumns = 60; ///< of a payload in the table, without --full

constexpr std::array kFlags{
    Flag{"group", "NAME", "Consumer group; without it the queue's own cursor."},
    Flag{"partition", "NAME", "Look at this partition alone."},
    Flag{"namespace", "NAME", "Look at all queues of a namespace (without QUEUE)."},
    Flag{"task", "NAME", "Look at all queues of a task (without QUEUE)."},
    Flag{"batch", "N", "Most messages to take."},
    Flag{"partitions", "N", "Most partitions to take from."},
    Flag{"wait", "", "Wait until there is a message."},
    Flag{"timeout", "TIME", "How long --wait waits, as 20s; the broker's default without."},
    Flag{"auto-ack", "", "Settle while taking: what is lost on the way is lost."},
    Flag{"lease", "TIME", "How long the messages are ours, in whole seconds, as 30s."},
    Flag{"mode", "all|new", "Where a new group begins."},
    Flag{"from", "now|TIME", "Where a new group begins, as 2026-01-31T12:00:00Z."},
    Flag{"ack", "", "Settle the messages as completed once they are printed."},
    Flag{"full", "", "Print long payloads whole."},
};

struct Request {
    std::string path;
    Query query;
    std::chrono::milliseconds wait{0};
};

Result<std::string> path_of(const Arguments& arguments) {
    const bool discovery = arguments.words().empty();
    if (discovery && arguments.text("namespace").empty() && arguments.text("task").empty()) {
        return fail(Errc::invalid_argument, "QUEUE, --namespace or --task is missing");
    }
    if (discovery && arguments.has("partition")) {
        return fail(Errc::invalid_argument, "--partition needs a QUEUE");
    }
    if (!discovery && (arguments.has("namespace") || arguments.has("task"))) {
        return fail(Errc::invalid_argument, "--namespace and --task go without a QUEUE");
    }
    std::string path = "/api/v1/pop";
    if (!discovery) {
        path += "/queue" + segment(arguments.words()[0]);
    }
    if (arguments.has("partition")) {
        path += "/partition" + segment(arguments.text("partition"));
    }
    return path;
}

Result<Request> request_of(const Arguments& arguments) {
    if (auto words = arguments.expect(0, 1, ""); !words) {
        return fail(words.error());
    }
    auto path = path_of(arguments);
    const auto batch = arguments.whole("batch", 0, 1, 10'000);
    const auto partitions = arguments.whole("partitions", 0, 1, 1'000);
    const auto timeout = arguments.duration("timeout");
    const auto lease = arguments.duration("lease");
    const auto both = arguments.exclusive({"auto-ack", "ack"});
    if (!path) {
        return fail(path.error());
    }
    if (const Error* error = first_error(batch, partitions, timeout, lease, both)) {
        return fail(*error);
    }
    Request request;
    request.path = std::move(*path);
    const auto add = [&](const char* flag, const char* parameter) {
        if (arguments.has(flag)) {
            request.query.emplace_back(parameter, arguments.text(flag));
        }
    };
    add("namespace", "namespace");
    add("task", "task");
    add("group", "consumerGroup");
    add("batch", "batch");
    add("partitions", "partitions");
    add("mode", "subscriptionMode");
    add("from", "subscriptionFrom");
    if (arguments.has("auto-ack")) {
        request.query.emplace_back("autoAck", "true");
    }
    if (arguments.has("wait")) {
        request.query.emplace_back("wait", "true");
        request.wait = 60s; // the most a broker's own default can be
    }
    if (*timeout) {
        if (!arguments.has("wait")) {
            return fail(Errc::invalid_argument, "--timeout needs --wait");
        }
        request.wait = std::chrono::ceil<std::chrono::milliseconds>(**timeout);
        request.query.emplace_back("timeout", std::to_string(request.wait.count()));
    }
    if (*lease) {
        const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(**lease);
        if (seconds != **lease || seconds < 1s) {
            return fail(Errc::invalid_argument, "--lease is not in whole seconds, at least 1s");
        }
        request.query.emplace_back("leaseSeconds", std::to_string(seconds.count()));
    }
    return request;
}

void print_messages(std::ostream& out, json::Value root, bool full) {
    const json::Value messages = root["messages"];
    if (!root["leaseId"].string().empty()) {
        out << "lease " << printable(root["leaseId"].string()) << "\n";
    }
    TextTable table({{"PARTITION ID"},
                     {"PARTITION"},
                     {"OFFSET", true},
                     {"TRY", true},
                     {"CREATED"},
                     {"TRANSACTION"},
                     {"DATA"}});
    for (std::size_t i = 0; i < messages.size(); ++i) {
        const json::Value m = messages.at(i);
        const std::string data = printable(to_json(m["data"]));
        table.add({to_plain(m["partitionId"]), to_plain(m["partition"]), to_plain(m["offset"]),
                   to_plain(m["deliveryAttempt"]), to_plain(m["createdAt"]),
                   to_plain(m["transactionId"]), full ? data : cut_to(data, kDataColumns)});
    }
    table.print(out);
}

/// Settles what was printed. Tried once more when the connection broke meanwhile: a second ack of
/// the same messages changes nothing.
Result<Exit> acknowledge(Session& session, Client& client, json::Value root) {
    const json::Value messages = root["messages"];
    std::string body;
    json::Writer out(body);
    out.begin_object();
    if (session.arguments.has("group")) {
        out.key("consumerGroup").string(session.arguments.text("group"));
    }
    out.key("acknowledgments").begin_array();
    for (std::size_t i = 0; i < messages.size(); ++i) {
        const json::Value m = messages.at(i);
        out.begin_object();
        out.key("transactionId").string(m["transactionId"].string());
        out.key("partitionId").string(m["partitionId"].string());
        out.key("leaseId").string(root["leaseId"].string());
        out.key("status").string("completed");
        out.end_object();
    }
    out.end_array().end_object();
    auto answer = client.call("POST", "/api/v1/ack/batch", {}, body);
    if (!answer) {
        answer = client.call("POST", "/api/v1/ack/batch", {}, body);
    }
    if (!answer) {
        return fail(answer.error());
    }
    if (answer->status != 200) {
        return fail(Errc::store_failed, "not settled: " + refusal(*answer));
    }
    const auto document = json::Document::parse(answer->body);
    std::size_t settled = 0;
    std::string why;
    for (std::size_t i = 0; document && i < document->root().size(); ++i) {
        const json::Value result = document->root().at(i);
        if (result["success"].boolean() == true) {
            ++settled;
        } else {
            why = result["error"].string();
        }
    }
    if (settled < messages.size()) {
        return fail(Errc::store_failed, "settled " + std::to_string(settled) + " of " +
                                            std::to_string(messages.size()) + ": " +
                                            printable(why));
    }
    return Exit::ok;
}

} // namespace

constinit const std::span<const Flag> kPopFlags = kFlags;

Result<Exit> pop(Session& session) {
    const auto request = request_of(session.arguments);
    if (!request) {
        return fail(request.error());
    }
    auto client = session.client();
    if (!client) {
        return fail(client.error());
    }
    const auto answer = client->call("GET", request->path, request->query, {}, request->wait);
    if (!answer) {
        return fail(answer.error());
    }
    if (answer->status == 204) {
        return Exit::empty;
    }
    if (answer->status != 200) {
        return fail(Errc::store_failed, refusal(*answer));
    }
    const auto document = json::Document::parse(answer->body);
    if (!document || !document->root()["messages"].is(json::Kind::array)) {
        return fail(Errc::store_failed, "the answer holds no messages; is this a broker?");
    }
    const json::Value root = document->root();
    std::ostream& out = session.terminal.out;
    if (session.json()) {
        out << answer->body << "\n";
    }
    if (root["messages"].size() == 0) {
        return Exit::empty;
    }
    if (!session.json()) {
        print_messages(out, root, session.arguments.has("full"));
    }
    if (!session.arguments.has("ack")) {
        return Exit::ok;
    }
    out.flush();
    if (!out) { // nobody saw them, so nobody may settle them
        return fail(Errc::internal, "the messages could not be printed and are not settled");
    }
    return acknowledge(session, *client, root);
}

} // namespace queen::ctl
