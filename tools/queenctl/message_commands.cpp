// messages and tail: looking at a queue without taking anything from it.
#include "base/text.hpp"
#include "queenctl/command.hpp"
#include "queenctl/json_text.hpp"
#include "queenctl/text_table.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <ostream>

namespace queen::ctl {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kDataColumns = 60; ///< of a payload in the table, without --full

constexpr std::array kList{
    Flag{"partition", "NAME", "Messages of this partition."},
    Flag{"status", "STATUS", "pending, processing, completed or dead_letter."},
    Flag{"from", "TIME", "Stored at this time or later; else in the last hour."},
    Flag{"to", "TIME", "Stored up to the end of this minute."},
    Flag{"limit", "N", "Most messages to list, 1 to 1000; 200."},
    Flag{"after", "CURSOR", "Go on behind an earlier page, as it says at its end."},
    Flag{"full", "", "Print long payloads whole."},
};
constexpr std::array kFollow{
    Flag{"partition", "NAME", "Messages of this partition."},
    Flag{"lines", "N", "How many of those that are there to begin with; 10."},
    Flag{"every", "TIME", "Time between two looks; 1s."},
    Flag{"full", "", "Print long payloads whole."},
};

constexpr std::int64_t kPage = 1'000;
constexpr int kPages = 10; ///< of one look

/// Partitions commit side by side: a message may turn up with a stamp a little older than one that
/// was seen. A look goes back that far and leaves out what was shown. A push waits 5 s for a locked
/// row at most; the stamp is read after the wait.
constexpr auto kOverlap = 5s;

std::string data_of(json::Value row, bool full) {
    const std::string data = row["payloadAvailable"].boolean() == false
                                 ? "(not shown: too much for one page)"
                                 : printable(to_json(row["data"]));
    return full ? data : cut_to(data, kDataColumns);
}

/// One row of the broker's, kept beyond its document.
struct Line {
    std::string text;
    std::string partition_id;
    std::int64_t offset = 0;
    WallTime at{};
};

/// What tail has seen so far.
class Follower {
public:
    Follower(Session& session, Client client, Query query, bool full)
        : session_(session), client_(std::move(client)), query_(std::move(query)), full_(full) {}

    /// What is new since the last look, newest first; the first time all that was looked at.
    Result<std::vector<Line>> look() {
        const bool first = !newest_;
        Query query = query_;
        query.emplace_back("limit", std::to_string(kPage));
        if (newest_) {
            query.emplace_back("from", format_micros(*newest_ - kOverlap));
        }
        std::vector<Line> fresh;
        std::string after;
        for (int page = 0;; ++page) {
            Query asked = query;
            if (!after.empty()) {
                asked.emplace_back("after", after);
            }
            const auto rows = ask_page(asked, after);
            if (!rows) {
                return fail(rows.error());
            }
            for (const Line& line : *rows) {
                const auto seen = seen_.find(line.partition_id);
                if (first || seen == seen_.end() || line.offset > seen->second) {
                    fresh.push_back(line);
                }
            }
            const bool far =
                first && !rows->empty() && rows->back().at < rows->front().at - kOverlap;
            if (after.empty() || far) {
                break;
            }
            if (page + 1 == kPages) {
                session_.terminal.err << "queenctl tail: messages come faster than they are "
                                         "printed; some are left out\n";
                break;
            }
        }
        for (const Line& line : fresh) {
            std::int64_t& highest = seen_.try_emplace(line.partition_id, -1).first->second;
            highest = std::max(highest, line.offset);
            newest_ = std::max(newest_.value_or(line.at), line.at);
        }
        return fresh;
    }

private:
    Result<std::vector<Line>> ask_page(const Query& query, std::string& after) {
        const auto answer = client_.call("GET", "/api/v1/messages", query);
        if (!answer) {
            return fail(answer.error());
        }
        if (answer->status != 200) {
            return fail(Errc::store_failed, refusal(*answer));
        }
        const auto document = json::Document::parse(answer->body);
        if (!document || !document->root()["messages"].is(json::Kind::array)) {
            return fail(Errc::store_failed, "the answer holds no messages; is this a broker?");
        }
        const json::Value rows = document->root()["messages"];
        std::vector<Line> lines;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const json::Value row = rows.at(i);
            const auto at = parse_time(row["createdAt"].string());
            const auto offset = row["offset"].integer();
            if (!at || !offset) {
                return fail(Errc::store_failed, "a message without createdAt or offset; is this a "
                                                "broker that knows them?");
            }
            lines.push_back({text_of(row), to_plain(row["partitionId"]), *offset, *at});
        }
        after = to_plain(document->root()["pagination"]["next"]);
        return lines;
    }

    std::string text_of(json::Value row) const {
        if (session_.json()) {
            return to_json(row);
        }
        return printable(to_plain(row["createdAt"]) + "  " + to_plain(row["partition"]) + "  " +
                         to_plain(row["offset"]) + "  " + to_plain(row["transactionId"])) +
               "  " + data_of(row, full_);
    }

    Session& session_;
    Client client_;
    const Query query_;
    const bool full_;
    std::map<std::string, std::int64_t> seen_; ///< highest offset by partition
    std::optional<WallTime> newest_;
};

} // namespace

constinit const std::span<const Flag> kMessagesFlags = kList;
constinit const std::span<const Flag> kTailFlags = kFollow;

Result<Exit> messages(Session& session) {
    const Arguments& arguments = session.arguments;
    const auto words = arguments.expect(1, 1, "QUEUE");
    const auto limit = arguments.whole("limit", 200, 1, kPage);
    if (const Error* error = first_error(words, limit)) {
        return fail(*error);
    }
    Query query{{"queue", arguments.words()[0]}, {"limit", std::to_string(*limit)}};
    for (const char* name : {"partition", "status", "from", "to", "after"}) {
        if (arguments.has(name)) {
            query.emplace_back(name, arguments.text(name));
        }
    }
    const auto reply = ask(session, "GET", "/api/v1/messages", query);
    if (!reply) {
        return fail(reply.error());
    }
    if (session.json()) {
        return Exit::ok;
    }
    const json::Value root = reply->document.root();
    const json::Value rows = root["messages"];
    TextTable table({{"STORED"},
                     {"PARTITION"},
                     {"OFFSET", true},
                     {"STATUS"},
                     {"TRANSACTION"},
                     {"DATA"},
                     {"PARTITION ID"}});
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const json::Value row = rows.at(i);
        table.add({to_plain(row["createdAt"]), to_plain(row["partition"]), to_plain(row["offset"]),
                   to_plain(row["status"]), to_plain(row["transactionId"]),
                   data_of(row, arguments.has("full")), to_plain(row["partitionId"])});
    }
    std::ostream& out = session.terminal.out;
    table.print(out);
    const std::string next = to_plain(root["pagination"]["next"]);
    if (!next.empty()) {
        out << "more with --after " << printable(next) << "\n";
    }
    if (root["complete"].boolean() == false) {
        out << "not complete: too much to look through; name a partition or a shorter time\n";
    }
    return Exit::ok;
}

Result<Exit> tail(Session& session) {
    const Arguments& arguments = session.arguments;
    const auto words = arguments.expect(1, 1, "QUEUE");
    const auto lines = arguments.whole("lines", 10, 0, kPage);
    const auto every = arguments.duration("every");
    if (const Error* error = first_error(words, lines, every)) {
        return fail(*error);
    }
    const auto pause = std::chrono::duration_cast<std::chrono::milliseconds>(every->value_or(1s));
    if (pause < 100ms) {
        return fail(Errc::invalid_argument, "--every must be at least 100ms");
    }
    auto client = session.client();
    if (!client) {
        return fail(client.error());
    }
    Query query{{"queue", arguments.words()[0]}};
    if (arguments.has("partition")) {
        query.emplace_back("partition", arguments.text("partition"));
    }
    Follower follower(session, std::move(*client), std::move(query), arguments.has("full"));
    Terminal& terminal = session.terminal;
    for (bool first = true;; first = false) {
        const auto fresh = follower.look();
        if (!fresh) {
            return fail(fresh.error());
        }
        std::size_t show = fresh->size();
        if (first) {
            show = std::min(show, static_cast<std::size_t>(*lines));
        }
        for (std::size_t i = show; i > 0; --i) { // oldest first
            terminal.out << (*fresh)[i - 1].text << "\n";
        }
        if (!terminal.out.flush()) {
            return fail(Errc::store_failed, "the output could not be written");
        }
        terminal.pause(pause);
    }
}

} // namespace queen::ctl
