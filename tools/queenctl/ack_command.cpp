#include "queenctl/command.hpp"
#include "queenctl/json_text.hpp"
#include "queenctl/text_table.hpp"

#include <algorithm>
#include <array>
#include <ostream>

namespace queen::ctl {
namespace {

constexpr std::array kFlags{
    Flag{"lease", "ID", "The lease the messages came with; without it none is checked."},
    Flag{"group", "NAME", "Consumer group; without it the queue's own cursor."},
    Flag{"status", "WORD", "completed (the default), failed, retry or dlq."},
    Flag{"error", "TEXT", "Why a message failed; kept with a dead letter."},
};

constexpr std::array<std::string_view, 4> kStatuses{"completed", "failed", "retry", "dlq"};

} // namespace

constinit const std::span<const Flag> kAckFlags = kFlags;

Result<Exit> ack(Session& session) {
    const Arguments& arguments = session.arguments;
    const auto words = arguments.expect(2, SIZE_MAX, "PARTITION_ID or TRANSACTION");
    if (!words) {
        return fail(words.error());
    }
    const std::string status = arguments.text("status", "completed");
    if (std::find(kStatuses.begin(), kStatuses.end(), status) == kStatuses.end()) {
        return fail(Errc::invalid_argument,
                    "--status " + status + ": allowed is completed, failed, retry or dlq");
    }
    std::string body;
    json::Writer out(body);
    out.begin_object();
    if (arguments.has("group")) {
        out.key("consumerGroup").string(arguments.text("group"));
    }
    out.key("acknowledgments").begin_array();
    for (std::size_t i = 1; i < arguments.words().size(); ++i) {
        out.begin_object();
        out.key("transactionId").string(arguments.words()[i]);
        out.key("partitionId").string(arguments.words()[0]);
        out.key("status").string(status);
        if (arguments.has("lease")) {
            out.key("leaseId").string(arguments.text("lease"));
        }
        if (arguments.has("error")) {
            out.key("error").string(arguments.text("error"));
        }
        out.end_object();
    }
    out.end_array().end_object();
    const auto reply = ask(session, "POST", "/api/v1/ack/batch", {}, body);
    if (!reply) {
        return fail(reply.error());
    }
    const json::Value results = reply->document.root();
    TextTable table({{"TRANSACTION"}, {"RESULT"}, {"LEASE"}, {"ERROR"}});
    bool accepted = results.is(json::Kind::array) && results.size() + 1 == arguments.words().size();
    for (std::size_t i = 0; i < results.size(); ++i) {
        const json::Value r = results.at(i);
        const bool success = r["success"].boolean() == true;
        accepted = accepted && success;
        table.add({to_plain(r["transactionId"]),
                   !success                      ? "refused"
                   : r["dlq"].boolean() == true  ? "dead letter"
                   : r["noop"].boolean() == true ? "was settled"
                                                 : "accepted",
                   r["leaseReleased"].boolean() == true ? "released" : "", to_plain(r["error"])});
    }
    if (!session.json()) {
        table.print(session.terminal.out);
    }
    return accepted ? Exit::ok : Exit::failed;
}

} // namespace queen::ctl
