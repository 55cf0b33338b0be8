#include "queenctl/command.hpp"
#include "queenctl/json_text.hpp"
#include "queenctl/text_table.hpp"

#include <array>
#include <ostream>

namespace queen::ctl {
namespace {

constexpr std::size_t kErrorColumns = 60; ///< of an error in the table, without --full

constexpr std::array kList{
    Flag{"group", "NAME", "Letters of this consumer group."},
    Flag{"partition", "NAME", "Letters of this partition."},
    Flag{"from", "TIME", "Failed at this time or later, as 2026-01-31T12:00:00Z."},
    Flag{"to", "TIME", "Failed up to the end of this minute."},
    Flag{"limit", "N", "Most letters to list, 1 to 1000; 100."},
    Flag{"after", "CURSOR", "Go on behind an earlier page, as it says at its end."},
    Flag{"full", "", "Print long error texts whole."},
};
constexpr std::array kReplay{
    Flag{"queue", "NAME", "Another queue than the letter's; made when it is new."},
    Flag{"partition", "NAME", "Another partition than the letter's."},
};
constexpr std::array kPurge{
    Flag{"group", "NAME", "Only the letters of this consumer group."},
};

std::string replay_body(const Arguments& arguments) {
    std::string body;
    json::Writer out(body);
    out.begin_object();
    for (const char* name : {"queue", "partition"}) {
        if (arguments.has(name)) {
            out.key(name).string(arguments.text(name));
        }
    }
    out.end_object();
    return body;
}

/// "moved to orders/cust-42 at offset 17", or why not.
std::string told(json::Value root) {
    const std::string result = to_plain(root["result"]);
    const std::string place = to_plain(root["queue"]) + "/" + to_plain(root["partition"]) +
                              " at offset " + to_plain(root["replayedAs"]["offset"]);
    return result == "duplicate" ? "was there already, " + place + "; the letter stays"
                                 : "moved to " + place;
}

Result<Exit> remove(Session& session, const std::string& target, const Query& query) {
    const auto reply = ask(session, "DELETE", target, query);
    if (!reply) {
        return fail(reply.error());
    }
    if (!session.json()) {
        session.terminal.out << to_plain(reply->document.root()["deleted"])
                             << " dead letters deleted\n";
    }
    return Exit::ok;
}

} // namespace

constinit const std::span<const Flag> kDlqListFlags = kList;
constinit const std::span<const Flag> kDlqReplayFlags = kReplay;
constinit const std::span<const Flag> kDlqPurgeFlags = kPurge;

Result<Exit> dlq_list(Session& session) {
    const Arguments& arguments = session.arguments;
    const auto words = arguments.expect(0, 1, "");
    const auto limit = arguments.whole("limit", 100, 1, 1'000);
    if (const Error* error = first_error(words, limit)) {
        return fail(*error);
    }
    Query query{{"limit", std::to_string(*limit)}};
    if (!arguments.words().empty()) {
        query.emplace_back("queue", arguments.words()[0]);
    }
    for (const auto& [flag, parameter] :
         {std::pair{"group", "consumerGroup"}, std::pair{"partition", "partition"},
          std::pair{"from", "from"}, std::pair{"to", "to"}, std::pair{"after", "after"}}) {
        if (arguments.has(flag)) {
            query.emplace_back(parameter, arguments.text(flag));
        }
    }
    const auto reply = ask(session, "GET", "/api/v1/dlq", query);
    if (!reply) {
        return fail(reply.error());
    }
    if (session.json()) {
        return Exit::ok;
    }
    const json::Value root = reply->document.root();
    const json::Value rows = root["messages"];
    TextTable table({{"FAILED"},
                     {"QUEUE"},
                     {"PARTITION"},
                     {"GROUP"},
                     {"TRIES", true},
                     {"TRANSACTION"},
                     {"ERROR"},
                     {"ID"}});
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const json::Value row = rows.at(i);
        const std::string error = printable(to_plain(row["errorMessage"]));
        table.add({to_plain(row["failedAt"]), to_plain(row["queue"]), to_plain(row["partition"]),
                   to_plain(row["consumerGroup"]), to_plain(row["retryCount"]),
                   to_plain(row["transactionId"]),
                   arguments.has("full") ? error : cut_to(error, kErrorColumns),
                   to_plain(row["id"])});
    }
    std::ostream& out = session.terminal.out;
    table.print(out);
    const std::string next = to_plain(root["pagination"]["next"]);
    out << to_plain(root["total"]) << " in all"
        << (next.empty() ? "" : "; more with --after " + printable(next)) << "\n";
    return Exit::ok;
}

Result<Exit> dlq_replay(Session& session) {
    const Arguments& arguments = session.arguments;
    if (auto words = arguments.expect(1, SIZE_MAX, "ID"); !words) {
        return fail(words.error());
    }
    auto client = session.client();
    if (!client) {
        return fail(client.error());
    }
    const std::string body = replay_body(arguments);
    bool all = true;
    for (const std::string& id : arguments.words()) {
        const auto answer = client->call("POST", "/api/v1/dlq" + segment(id) + "/replay", {}, body);
        if (!answer) {
            return fail(answer.error());
        }
        const auto document = json::Document::parse(answer->body);
        const bool moved =
            answer->status == 200 && document && document->root()["result"].string() == "moved";
        all = all && moved;
        if (session.json()) {
            session.terminal.out << answer->body << "\n";
        } else if (answer->status == 200 && document) {
            session.terminal.out << printable(id + " " + told(document->root())) << "\n";
        } else {
            session.terminal.out << printable(id) << " not moved: " << refusal(*answer) << "\n";
        }
    }
    return all ? Exit::ok : Exit::failed;
}

Result<Exit> dlq_delete(Session& session) {
    if (auto words = session.arguments.expect(2, 2, "PARTITION_ID and TRANSACTION"); !words) {
        return fail(words.error());
    }
    const auto& words = session.arguments.words();
    return remove(session, "/api/v1/messages" + segment(words[0]) + segment(words[1]), {});
}

Result<Exit> dlq_purge(Session& session) {
    if (auto words = session.arguments.expect(1, 1, "QUEUE"); !words) {
        return fail(words.error());
    }
    Query query{{"queue", session.arguments.words()[0]}};
    if (session.arguments.has("group")) {
        query.emplace_back("consumerGroup", session.arguments.text("group"));
    }
    return remove(session, "/api/v1/dlq", query);
}

} // namespace queen::ctl
