// queenctl/command.hpp - the table of commands; the help, the parser and the docs read it.
#pragma once
#include "base/json.hpp"
#include "queenctl/arguments.hpp"
#include "queenctl/client.hpp"
#include "queenctl/terminal.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace queen::ctl {

/// What a command works with.
struct Session {
    Arguments arguments;
    Terminal& terminal;

    bool json() const { return arguments.has("json"); }
    /// @errors invalid_argument
    Result<Client> client() const;
};

struct Command {
    std::string_view name;    ///< "push", or "config check"
    std::string_view words;   ///< "QUEUE [FILE|-]"
    std::string_view summary; ///< one line
    std::string_view details; ///< further lines of the help, "" for none
    std::span<const Flag> flags;
    /// @errors invalid_argument: usage; unavailable: no broker; others: failed. One line each.
    Result<Exit> (*run)(Session& session);
};

std::span<const Command> commands();
std::span<const Flag> global_flags();

// One function per command, in the file of its family.
Result<Exit> push(Session& session);
Result<Exit> pop(Session& session);
Result<Exit> ack(Session& session);
Result<Exit> queues(Session& session);
Result<Exit> queue(Session& session);
Result<Exit> depth(Session& session);
Result<Exit> overview(Session& session);
Result<Exit> namespaces(Session& session);
Result<Exit> tasks(Session& session);
Result<Exit> maintenance(Session& session);
Result<Exit> stats_refresh(Session& session);
Result<Exit> candidates(Session& session);
Result<Exit> mesh(Session& session);
Result<Exit> groups(Session& session);
Result<Exit> lagging(Session& session);
Result<Exit> seek(Session& session);
Result<Exit> delete_group(Session& session);
Result<Exit> subscription(Session& session);
Result<Exit> messages(Session& session);
Result<Exit> tail(Session& session);
Result<Exit> dlq_list(Session& session);
Result<Exit> dlq_replay(Session& session);
Result<Exit> dlq_delete(Session& session);
Result<Exit> dlq_purge(Session& session);
Result<Exit> timers_schedule(Session& session);
Result<Exit> timers_cancel(Session& session);
Result<Exit> timers_get(Session& session);
Result<Exit> timers_list(Session& session);
Result<Exit> timers_count(Session& session);
Result<Exit> timers_switch(Session& session);
Result<Exit> configure(Session& session);
Result<Exit> delete_queue(Session& session);
Result<Exit> health(Session& session);
Result<Exit> config_check(Session& session);
Result<Exit> config_show(Session& session);
Result<Exit> config_schema(Session& session);
Result<Exit> config_default(Session& session);
Result<Exit> plugin_inspect(Session& session);
Result<Exit> plugin_list(Session& session);

extern const std::span<const Flag> kPushFlags, kPopFlags, kAckFlags, kConfigureFlags, kPageFlags,
    kDepthFlags, kCandidatesFlags, kOverviewFlags, kLaggingFlags, kSeekFlags, kDeleteGroupFlags,
    kMessagesFlags, kTailFlags, kDlqListFlags, kDlqReplayFlags, kDlqPurgeFlags, kScheduleFlags,
    kCancelFlags, kTimersFlags;

/// The page of a queue's partitions that --limit and --after ask for.
/// @errors invalid_argument
Result<Query> page_of(const Arguments& arguments);
/// Says so when the answer does not list all partitions, and how to see more.
void print_rest(Session& session, json::Value answer);

/// Calls the broker and hands back the document of a 2xx answer; with --json it is printed as it
/// is.
/// @errors unavailable; not_found for 404; store_failed for any other refusal
struct Reply {
    int status = 0;
    json::Document document;
};
Result<Reply> ask(Session& session, const std::string& method, const std::string& path,
                  const Query& query = {}, const std::string& body = {});

} // namespace queen::ctl
