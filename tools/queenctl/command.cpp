#include "queenctl/command.hpp"

#include "settings/values.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <ostream>

namespace queen::ctl {
namespace {

constexpr std::string_view kDefaultUrl = "http://127.0.0.1:6632";

constexpr std::array kGlobalFlags{
    Flag{"url", "URL", "The broker; else QUEEN_URL, else http://127.0.0.1:6632."},
    Flag{"token-file", "FILE", "Holds the token to send; else QUEEN_TOKEN is the token."},
    Flag{"tenant", "UUID", "The tenant, for a broker that takes it from a header."},
    Flag{"json", "", "Print the broker's JSON instead of a table."},
    Flag{"request-timeout", "TIME",
         "Longest wait for an answer; 30s. A pop's --timeout comes on top."},
};

constexpr std::size_t kMostTokenBytes = 8192; ///< what a broker takes

/// "": none.
Result<std::string> token_of(const Session& session) {
    const auto file = session.arguments.text("token-file", "");
    std::string token;
    if (file.empty()) {
        const auto found = session.terminal.environment.find("QUEEN_TOKEN");
        token = found == session.terminal.environment.end() ? std::string() : found->second;
    } else {
        std::ifstream in(file, std::ios::binary);
        std::getline(in, token);
        if (!in && token.empty()) {
            return fail(Errc::invalid_argument,
                        "--token-file " + settings::shown(file) + " is empty or cannot be read");
        }
    }
    while (!token.empty() && (token.back() == '\r' || token.back() == ' ')) {
        token.pop_back();
    }
    // Else it could end the field and begin another one.
    if (token.size() > kMostTokenBytes ||
        std::any_of(token.begin(), token.end(), [](char c) { return c <= ' ' || c > '~'; })) {
        return fail(Errc::invalid_argument,
                    "the token holds what no token does; allowed: one line of letters, digits, "
                    "'.', '-', '_'");
    }
    return token;
}

} // namespace

std::span<const Command> commands() {
    static const std::array all{
        Command{
            "push", "QUEUE [FILE|-]", "Push one message per line.",
            "A line that is JSON is the payload as it is, any other becomes a JSON string; empty\n"
            "lines are skipped. Messages keep the order of the input within each partition. 429, "
            "5xx\n"
            "and broken connections are tried again with the same transaction ids, so nothing is\n"
            "stored twice. An expression is Perl-like and its first (group) is taken.\n"
            "Exit: 0 all stored, 1 some failed, 2 usage, 3 no broker.",
            kPushFlags, push},
        Command{"pop", "[QUEUE]", "Take messages and print them.",
                "Without QUEUE, --namespace or --task say which queues to look at.\n"
                "Exit: 0 with messages, 4 without, 1 refused, 2 usage, 3 no broker.",
                kPopFlags, pop},
        Command{"ack", "PARTITION_ID TRANSACTION...", "Settle messages of one partition.",
                "Exit: 0 all accepted, 1 some not, 2 usage, 3 no broker.", kAckFlags, ack},
        Command{"queues", "", "List the queues.", "", {}, queues},
        Command{"queue", "QUEUE", "Show one queue and its partitions.", "", kPageFlags, queue},
        Command{"depth", "QUEUE", "Show how much waits in a queue.",
                "PENDING nobody has taken, PROCESSING is under a lease, READY is what a pop gets "
                "now.\n"
                "Without --group the figures are those of the queue: of its slowest named group, "
                "or of\n"
                "the queue's own cursor when no group is named.",
                kDepthFlags, depth},
        Command{"overview", "", "Show all queues at one glance.",
                "The figures are counted now, which takes the database a second for each 100,000\n"
                "partitions; with --cached they are those of the last refresh.",
                kOverviewFlags, overview},
        Command{"namespaces", "", "List the namespaces in use.", "", {}, namespaces},
        Command{"tasks", "", "List the tasks in use.", "", {}, tasks},
        Command{"groups",
                "[GROUP]",
                "List consumer groups, or show one.",
                "A row for each group and queue: positions, partitions that are behind, messages "
                "it is behind\n"
                "and for how long the oldest has been stored. BEGINS is where it begins in "
                "partitions that it\n"
                "has no position in yet. __QUEUE_MODE__ are consumers that name no group.",
                {},
                groups},
        Command{"groups delete", "GROUP [QUEUE]",
                "Delete a consumer group, everywhere or in one queue.",
                "Its next pop begins as if there had never been one. Leases it holds are void.",
                kDeleteGroupFlags, delete_group},
        Command{"lagging", "", "List the partitions that a consumer group is long behind in.", "",
                kLaggingFlags, lagging},
        Command{"seek", "GROUP QUEUE", "Move a consumer group to a time or to the end.",
                "Leases it holds are void, and its retries begin anew. Consumers that wait are "
                "woken.\n"
                "Say either --to-end or --time TIME, for example 2026-11-03T09:15:27Z.",
                kSeekFlags, seek},
        Command{"subscription",
                "GROUP TIME",
                "Set where a consumer group begins in partitions it has not been in.",
                "Its positions stay; seek moves them.",
                {},
                subscription},
        Command{"candidates", "", "Show what each candidate source does, side by side.",
                "Figures that end in _total count since the broker's start; with --watch the "
                "column /s is\n"
                "their rate since the last look. --watch goes on until Ctrl-C; with --json each "
                "look is one\n"
                "line.",
                kCandidatesFlags, candidates},
        Command{
            "mesh",
            "",
            "Show the brokers that share the database, and what they tell each other.",
            "Figures are those of the broker that is asked, since its start. SENT, RECEIVED and "
            "DROPPED are\n"
            "frames. A hint that is lost costs the time until a broker looks for itself.",
            {},
            mesh},
        Command{"maintenance",
                "[push|pop on|off]",
                "Show or set the switches of all brokers.",
                "While pop maintenance is on, pops are answered with nothing. The broker that is "
                "asked\n"
                "does so at once, the others within switches.refresh (60s).",
                {},
                maintenance},
        Command{"stats refresh",
                "",
                "Refresh the statistics of all queues now.",
                "",
                {},
                stats_refresh},
        Command{"messages", "QUEUE", "Show messages, newest first, without taking them.",
                "Of the last hour, unless --from or --to say otherwise.", kMessagesFlags, messages},
        Command{"tail", "QUEUE", "Print messages as they come, without taking them.",
                "Goes on until Ctrl-C; with --json each message is one line.", kTailFlags, tail},
        Command{"dlq list", "[QUEUE]", "List dead letters, newest first.", "", kDlqListFlags,
                dlq_list},
        Command{"dlq replay", "ID...", "Put dead letters back into their queue.",
                "Each becomes a new message there, for every consumer group.\n"
                "Exit: 0 all moved, 1 some not, 2 usage, 3 no broker.",
                kDlqReplayFlags, dlq_replay},
        Command{"dlq delete",
                "PARTITION_ID TRANSACTION",
                "Delete the dead letters of one message.",
                "Those of all consumer groups.",
                {},
                dlq_delete},
        Command{"dlq purge", "QUEUE", "Delete the dead letters of a queue.", "", kDlqPurgeFlags,
                dlq_purge},
        Command{"timers schedule", "QUEUE KEY [MESSAGE|-]", "Set a message for later.",
                "A message that is JSON is the payload as it is, any other becomes a JSON string.\n"
                "A key that waits already is replaced.",
                kScheduleFlags, timers_schedule},
        Command{"timers cancel", "QUEUE KEY", "Cancel a message that waits for its time.",
                "Exit: 0 cancelled, 1 nothing waits (it may have been delivered) or it is being "
                "fired.",
                kCancelFlags, timers_cancel},
        Command{"timers get",
                "QUEUE KEY",
                "Show a message that waits for its time.",
                "",
                {},
                timers_get},
        Command{"timers list", "QUEUE", "List messages that wait for their time, by key.", "",
                kTimersFlags, timers_list},
        Command{"timers count",
                "QUEUE PREFIX",
                "Count those whose key begins so.",
                "",
                {},
                timers_count},
        Command{"timers switch",
                "[schedule|fire on|off]",
                "Show or set whether timers are taken, and fired.",
                "Of all brokers: the one that is asked does so at once, the others within\n"
                "switches.refresh (60s). A cancel is never held back.",
                {},
                timers_switch},
        Command{
            "configure", "QUEUE [OPTION=VALUE...]", "Create a queue or set its options.",
            "Options that are not named go back to their defaults; with --merge they stay. Also\n"
            "namespace=TEXT and task=TEXT. See docs for the options, or name a wrong one.",
            kConfigureFlags, configure},
        Command{"delete",
                "QUEUE",
                "Delete a queue with all its messages, cursors and settings.",
                "",
                {},
                delete_queue},
        Command{"health",
                "",
                "Ask whether broker and database work.",
                "Exit: 0 healthy, 1 not, 3 no broker.",
                {},
                health},
        Command{
            "config check",
            "FILE",
            "Report every fault of a settings file.",
            "Each as FILE:LINE:COLUMN: OPTION: what is wrong, what is allowed. Plugins and their\n"
            "options are checked as far as the libraries are on this machine. The environment is\n"
            "left out.",
            {},
            config_check},
        Command{
            "config show",
            "[FILE]",
            "Print effective settings and where each comes from.",
            "As a broker with this file and this environment would see them; secrets are masked.",
            {},
            config_show},
        Command{"config schema",
                "",
                "Print the JSON Schema of the settings file.",
                "",
                {},
                config_schema},
        Command{"config default", "", "Print the documented default file.", "", {}, config_default},
        Command{"plugin inspect",
                "FILE",
                "Say what a plugin's file is and which options it takes.",
                "Exit: 0 it fits this version, 1 it does not.",
                {},
                plugin_inspect},
        Command{"plugin list",
                "[FILE]",
                "List the plugins of a settings file and what is in them.",
                "Exit: 0 all fit this version, 1 some do not.",
                {},
                plugin_list},
    };
    return all;
}

std::span<const Flag> global_flags() {
    return kGlobalFlags;
}

Result<Client> Session::client() const {
    const auto limit = arguments.duration("request-timeout");
    if (!limit) {
        return fail(limit.error());
    }
    const auto from_environment = terminal.environment.find("QUEEN_URL");
    const std::string url = arguments.text("url", from_environment == terminal.environment.end() ||
                                                          from_environment->second.empty()
                                                      ? std::string(kDefaultUrl)
                                                      : from_environment->second);
    const auto timeout = std::chrono::duration_cast<std::chrono::milliseconds>(
        limit->value_or(std::chrono::seconds(30)));
    if (timeout <= std::chrono::milliseconds::zero()) {
        return fail(Errc::invalid_argument, "--request-timeout must be at least 1ms");
    }
    const auto token = token_of(*this);
    if (!token) {
        return fail(token.error());
    }
    auto client = Client::open(url, timeout);
    if (client && !token->empty()) {
        client->bear("Authorization", "Bearer " + *token);
    }
    if (const auto tenant = arguments.text("tenant", ""); client && !tenant.empty()) {
        client->bear("x-queen-tenant", tenant);
    }
    return client;
}

Result<Reply> ask(Session& session, const std::string& method, const std::string& path,
                  const Query& query, const std::string& body) {
    auto client = session.client();
    if (!client) {
        return fail(client.error());
    }
    auto answer = client->call(method, path, query, body);
    if (!answer) {
        return fail(answer.error());
    }
    if (answer->status < 200 || answer->status > 299) {
        return fail(answer->status == 404 ? Errc::not_found : Errc::store_failed, refusal(*answer));
    }
    auto document = json::Document::parse(answer->body);
    if (!document) {
        return fail(Errc::store_failed, "the answer is not JSON; is this a broker?");
    }
    if (session.json()) {
        session.terminal.out << answer->body << "\n";
    }
    return Reply{answer->status, std::move(*document)};
}

} // namespace queen::ctl
