// Messages that wait for their time.
#include "base/base64.hpp"
#include "base/text.hpp"
#include "model/uuid7.hpp"
#include "queenctl/command.hpp"
#include "queenctl/json_text.hpp"
#include "queenctl/text_table.hpp"
#include "settings/values.hpp"

#include <array>
#include <filesystem>
#include <fstream>
#include <istream>
#include <iterator>
#include <ostream>

namespace queen::ctl {
namespace {

constexpr std::array kSchedule{
    Flag{"in", "TIME", "When: this long from now, as 5m; required."},
    Flag{"file", "FILE", "Take the message from a file, or - for standard input."},
    Flag{"partition", "NAME", "Partition of the message; the broker's default without."},
    Flag{"txn", "ID", "Transaction id of the message; a new one without."},
    Flag{"raw", "", "The message is a string, even when it is JSON."},
};
constexpr std::array kCancel{
    Flag{"txn", "ID", "Told back when nothing waits."},
};
constexpr std::array kList{
    Flag{"limit", "N", "Most timers to list, 1 to 1000; 100."},
    Flag{"after", "KEY", "Go on behind a key."},
};

std::string path_of(const std::string& queue) {
    return "/api/v1/timers" + segment(queue);
}

/// The message as it was given: a word, a file, or standard input. One line break at its end goes.
Result<std::string> read_message(Session& session) {
    const auto& words = session.arguments.words();
    std::string file = session.arguments.text("file");
    if (session.arguments.has("file") == (words.size() > 2)) {
        return fail(Errc::invalid_argument, "give the message as a word or by --file, one of both");
    }
    if (words.size() > 2 && words[2] != "-") {
        return words[2];
    }
    std::string text;
    if (words.size() > 2 || file == "-") {
        text.assign(std::istreambuf_iterator<char>(session.terminal.in), {});
    } else {
        std::error_code ignored;
        std::ifstream in(file, std::ios::binary);
        if (!in || std::filesystem::is_directory(file, ignored)) {
            return fail(Errc::invalid_argument,
                        "--file " + settings::shown(file) + " cannot be read");
        }
        text.assign(std::istreambuf_iterator<char>(in), {});
    }
    if (text.ends_with('\n')) {
        text.pop_back();
    }
    return text;
}

/// As `push` has it: JSON is the payload byte for byte, anything else becomes a string.
Result<std::string> payload_of(Session& session) {
    auto text = read_message(session);
    if (!text) {
        return fail(text.error());
    }
    if (!session.arguments.has("raw") && is_json(*text)) {
        return text;
    }
    if (!valid_utf8(*text)) {
        return fail(Errc::invalid_argument, "the message is not UTF-8");
    }
    return json::quoted(*text);
}

/// What became of a timer, as a sentence; what did not happen is a failure.
Result<Exit> told(Session& session, json::Value result) {
    if (!session.json()) {
        const std::string at = to_plain(result["deliverAt"]);
        session.terminal.out << printable(to_plain(result["status"]))
                             << (at.empty() ? ""
                                            : " for " + printable(at) + ", message " +
                                                  printable(to_plain(result["messageId"])))
                             << "\n";
    }
    return result["ok"].boolean() == true ? Exit::ok : Exit::failed;
}

/// The message for a person: JSON when it can be shown, else what keeps it.
std::string shown_payload(json::Value timer) {
    if (timer["encrypted"].boolean() == true) {
        return "(encrypted)";
    }
    if (timer["payloadZstd"].boolean() == true) {
        return "(packed: zstd)";
    }
    const auto bytes = from_base64(timer["payload"].string());
    return bytes ? printable(*bytes) : "(unreadable)";
}

} // namespace

constinit const std::span<const Flag> kScheduleFlags = kSchedule;
constinit const std::span<const Flag> kCancelFlags = kCancel;
constinit const std::span<const Flag> kTimersFlags = kList;

Result<Exit> timers_schedule(Session& session) {
    const Arguments& arguments = session.arguments;
    const auto words = arguments.expect(2, 3, "QUEUE, KEY and the message");
    const auto in = arguments.duration("in");
    if (const Error* error = first_error(words, in)) {
        return fail(*error);
    }
    if (!*in) {
        return fail(Errc::invalid_argument, "--in is missing: how long from now, as 5m");
    }
    auto payload = payload_of(session);
    if (!payload) {
        return fail(payload.error());
    }
    std::string txn = arguments.text("txn");
    if (txn.empty()) {
        txn = to_string(Uuid7().next());
    }
    std::string body;
    json::Writer out(body);
    out.begin_array().begin_object().key("op").string("schedule");
    out.key("queue").string(arguments.words()[0]).key("timerKey").string(arguments.words()[1]);
    if (arguments.has("partition")) {
        out.key("partition").string(arguments.text("partition"));
    }
    out.key("delayMs").number(std::chrono::duration<double, std::milli>(**in).count());
    out.key("txn").string(txn).key("payload").string(to_base64(*payload));
    out.end_object().end_array();
    const auto reply = ask(session, "POST", "/api/v1/timers", {}, body);
    if (!reply) {
        return fail(reply.error());
    }
    return told(session, reply->document.root()["results"].at(0));
}

Result<Exit> timers_cancel(Session& session) {
    if (auto words = session.arguments.expect(2, 2, "QUEUE and KEY"); !words) {
        return fail(words.error());
    }
    const auto& words = session.arguments.words();
    Query query;
    if (session.arguments.has("txn")) {
        query.emplace_back("txn", session.arguments.text("txn"));
    }
    const auto reply = ask(session, "DELETE", path_of(words[0]) + segment(words[1]), query);
    if (!reply) {
        return fail(reply.error());
    }
    return told(session, reply->document.root());
}

Result<Exit> timers_get(Session& session) {
    if (auto words = session.arguments.expect(2, 2, "QUEUE and KEY"); !words) {
        return fail(words.error());
    }
    const auto& words = session.arguments.words();
    const auto reply = ask(session, "GET", path_of(words[0]) + segment(words[1]));
    if (!reply) {
        return fail(reply.error());
    }
    const json::Value root = reply->document.root();
    const bool found = root["found"].boolean() == true;
    if (!session.json() && !found) {
        session.terminal.out << "nothing waits under that key\n";
    } else if (!session.json()) {
        TextTable table({{"TIMER"}, {""}});
        for (const auto& [name, member] : {std::pair{"key", "timerKey"},
                                           {"partition", "partition"},
                                           {"for", "deliverAt"},
                                           {"transaction", "txn"},
                                           {"message", "messageId"},
                                           {"set by", "producerSub"},
                                           {"attempts", "attempts"},
                                           {"last error", "lastError"},
                                           {"being fired", "claimed"},
                                           {"set", "updatedAt"}}) {
            table.add({name, printable(to_plain(root[member]))});
        }
        table.add({"payload", shown_payload(root)});
        table.print(session.terminal.out);
    }
    return found ? Exit::ok : Exit::failed;
}

Result<Exit> timers_list(Session& session) {
    const Arguments& arguments = session.arguments;
    const auto words = arguments.expect(1, 1, "QUEUE");
    const auto limit = arguments.whole("limit", 100, 1, 1'000);
    if (const Error* error = first_error(words, limit)) {
        return fail(*error);
    }
    Query query{{"limit", std::to_string(*limit)}};
    if (arguments.has("after")) {
        query.emplace_back("after", arguments.text("after"));
    }
    const auto reply = ask(session, "GET", path_of(arguments.words()[0]), query);
    if (!reply) {
        return fail(reply.error());
    }
    if (session.json()) {
        return Exit::ok;
    }
    const json::Value rows = reply->document.root()["rows"];
    TextTable table({{"KEY"}, {"FOR"}, {"PARTITION"}, {"TRANSACTION"}, {"ATTEMPTS", true}});
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const json::Value row = rows.at(i);
        table.add({to_plain(row["timerKey"]), to_plain(row["deliverAt"]),
                   to_plain(row["partition"]), to_plain(row["txn"]), to_plain(row["attempts"])});
    }
    table.print(session.terminal.out);
    const json::Value next = reply->document.root()["nextAfter"];
    if (next.is(json::Kind::string)) {
        session.terminal.out << "more with --after " << printable(next.string()) << "\n";
    }
    return Exit::ok;
}

Result<Exit> timers_count(Session& session) {
    if (auto words = session.arguments.expect(2, 2, "QUEUE and PREFIX"); !words) {
        return fail(words.error());
    }
    const auto& words = session.arguments.words();
    const auto reply =
        ask(session, "GET", path_of(words[0]), {{"mode", "count"}, {"prefix", words[1]}});
    if (!reply) {
        return fail(reply.error());
    }
    if (!session.json()) {
        session.terminal.out << printable(to_plain(reply->document.root()["count"])) << "\n";
    }
    return Exit::ok;
}

Result<Exit> timers_switch(Session& session) {
    if (auto words = session.arguments.expect(0, 2, "schedule|fire, on|off"); !words) {
        return fail(words.error());
    }
    const auto& words = session.arguments.words();
    constexpr const char* kRoute = "/api/v1/system/kv-timers";
    std::string body;
    if (!words.empty()) {
        if (words.size() != 2 || (words[0] != "schedule" && words[0] != "fire") ||
            (words[1] != "on" && words[1] != "off")) {
            return fail(Errc::invalid_argument,
                        "give nothing, or schedule or fire and then on or off");
        }
        json::Writer(body)
            .begin_object()
            .key(words[0] == "fire" ? "timersFire" : "timersSchedule")
            .boolean(words[1] == "on")
            .end_object();
    }
    const auto reply = ask(session, words.empty() ? "GET" : "POST", kRoute, {}, body);
    if (!reply) {
        return fail(reply.error());
    }
    if (!session.json()) {
        const json::Value root = reply->document.root();
        TextTable table({{"TIMERS"}, {""}});
        table.add({"schedule", on_or_off(root["timersScheduleEnabled"])});
        table.add({"fire", on_or_off(root["timersFireEnabled"])});
        table.print(session.terminal.out);
    }
    return Exit::ok;
}

} // namespace queen::ctl
