#include "queenctl/command.hpp"
#include "queenctl/json_text.hpp"
#include "queenctl/text_table.hpp"

#include <array>
#include <functional>
#include <ostream>
#include <sstream>

namespace queen::ctl {
namespace {

constexpr std::array kLagging{
    Flag{"min", "TIME", "Only what is older than this; 1h."},
    Flag{"limit", "N", "Most to list, 1 to 10000; the worst come first."},
};

constexpr std::array kSeek{
    Flag{"partition", "NAME", "Move this partition only."},
    Flag{"to-end", "", "Skip whatever is stored."},
    Flag{"time", "TIME", "Go before the first messages stored at TIME or later."},
};

constexpr std::array kDelete{
    Flag{"keep-subscription", "", "Delete positions only: it begins again where it once began."},
};

constexpr std::int64_t kMostLagging = 10'000;

std::string path_of(const std::string& group) {
    return "/api/v1/consumer-groups" + segment(group);
}

Result<Exit> one_group(Session& session, const std::string& group) {
    const auto reply = ask(session, "GET", path_of(group));
    if (!reply) {
        return fail(reply.error());
    }
    if (session.json()) {
        return Exit::ok;
    }
    TextTable table({{"QUEUE"},
                     {"PARTITION"},
                     {"LAG", true},
                     {"SECONDS", true},
                     {"CONSUMED", true},
                     {"LEASED BY"}});
    const json::Value root = reply->document.root();
    std::ostringstream rest;
    for (std::size_t i = 0; i < root.size(); ++i) {
        const std::string queue(root.key_at(i));
        const json::Value partitions = root.value_at(i)["partitions"];
        for (std::size_t j = 0; j < partitions.size(); ++j) {
            const json::Value one = partitions.at(j);
            table.add({queue, to_plain(one["partition"]), to_plain(one["offsetLag"]),
                       to_plain(one["timeLagSeconds"]), to_plain(one["totalConsumed"]),
                       to_plain(one["workerId"])});
        }
        const auto count = root.value_at(i)["partitionCount"].integer();
        if (count && *count > static_cast<std::int64_t>(partitions.size())) {
            rest << printable(queue) << ": " << partitions.size() << " of " << *count
                 << " partitions are listed\n";
        }
    }
    table.print(session.terminal.out);
    session.terminal.out << rest.str();
    return Exit::ok;
}

/// Prints the answer of whatever moved or removed something.
Result<Exit> told(Session& session, const std::string& method, const std::string& path,
                  const Query& query, const std::string& body,
                  const std::function<std::string(json::Value)>& say) {
    const auto reply = ask(session, method, path, query, body);
    if (!reply) {
        return fail(reply.error());
    }
    if (!session.json()) {
        session.terminal.out << say(reply->document.root()) << "\n";
    }
    return Exit::ok;
}

std::string partitions(const std::string& count) {
    return printable(count) + (count == "1" ? " partition" : " partitions");
}

} // namespace

constinit const std::span<const Flag> kLaggingFlags = kLagging;
constinit const std::span<const Flag> kSeekFlags = kSeek;
constinit const std::span<const Flag> kDeleteGroupFlags = kDelete;

Result<Exit> groups(Session& session) {
    if (auto words = session.arguments.expect(0, 1, "GROUP"); !words) {
        return fail(words.error());
    }
    if (!session.arguments.words().empty()) {
        return one_group(session, session.arguments.words()[0]);
    }
    const auto reply = ask(session, "GET", "/api/v1/consumer-groups");
    if (!reply) {
        return fail(reply.error());
    }
    if (session.json()) {
        return Exit::ok;
    }
    TextTable table({{"GROUP"},
                     {"QUEUE"},
                     {"STATE"},
                     {"CURSORS", true},
                     {"BEHIND", true},
                     {"LAG", true},
                     {"SECONDS", true},
                     {"BEGINS"}});
    const json::Value list = reply->document.root();
    for (std::size_t i = 0; i < list.size(); ++i) {
        const json::Value one = list.at(i);
        const std::string mode = to_plain(one["subscriptionMode"]);
        table.add(
            {to_plain(one["name"]), to_plain(one["queueName"]), to_plain(one["state"]),
             to_plain(one["partitionCursors"]), to_plain(one["partitionsWithLag"]),
             to_plain(one["totalLag"]), to_plain(one["maxTimeLag"]),
             mode.empty() || mode == "all" ? "start" : to_plain(one["subscriptionTimestamp"])});
    }
    table.print(session.terminal.out);
    return Exit::ok;
}

Result<Exit> lagging(Session& session) {
    if (auto words = session.arguments.expect(0, 0, ""); !words) {
        return fail(words.error());
    }
    const auto least = session.arguments.duration("min");
    const auto limit = session.arguments.whole("limit", kMostLagging, 1, kMostLagging);
    if (const Error* error = first_error(least, limit)) {
        return fail(*error);
    }
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(least->value_or(std::chrono::hours(1)));
    const auto reply = ask(
        session, "GET", "/api/v1/consumer-groups/lagging",
        {{"minLagSeconds", std::to_string(seconds.count())}, {"limit", std::to_string(*limit)}});
    if (!reply) {
        return fail(reply.error());
    }
    if (session.json()) {
        return Exit::ok;
    }
    TextTable table({{"GROUP"},
                     {"QUEUE"},
                     {"PARTITION"},
                     {"LAG", true},
                     {"SECONDS", true},
                     {"SINCE"},
                     {"LEASED BY"}});
    const json::Value list = reply->document.root();
    for (std::size_t i = 0; i < list.size(); ++i) {
        const json::Value one = list.at(i);
        table.add({to_plain(one["consumer_group"]), to_plain(one["queue_name"]),
                   to_plain(one["partition_name"]), to_plain(one["offset_lag"]),
                   to_plain(one["time_lag_seconds"]), to_plain(one["oldest_unconsumed_at"]),
                   to_plain(one["worker_id"])});
    }
    table.print(session.terminal.out);
    return Exit::ok;
}

Result<Exit> seek(Session& session) {
    const Arguments& arguments = session.arguments;
    const auto words = arguments.expect(2, 2, "GROUP QUEUE");
    const auto one = arguments.exclusive({"to-end", "time"});
    if (const Error* error = first_error(words, one)) {
        return fail(*error);
    }
    if (!arguments.has("to-end") && !arguments.has("time")) {
        return fail(Errc::invalid_argument, "--to-end or --time TIME says where to");
    }
    std::string body;
    json::Writer writer(body);
    writer.begin_object();
    if (arguments.has("to-end")) {
        writer.key("toEnd").boolean(true);
    } else {
        writer.key("timestamp").string(arguments.text("time"));
    }
    writer.end_object();
    std::string path = path_of(arguments.words()[0]) + "/queues" + segment(arguments.words()[1]);
    if (arguments.has("partition")) {
        path += "/partitions" + segment(arguments.text("partition"));
    }
    return told(session, "POST", path + "/seek", {}, body, [](json::Value said) {
        const std::string to = to_plain(said["targetTimestamp"]);
        return "moved in " + partitions(to_plain(said["partitionsUpdated"])) + " to " +
               (to.empty() ? "the end" : printable(to));
    });
}

Result<Exit> delete_group(Session& session) {
    const Arguments& arguments = session.arguments;
    if (auto words = arguments.expect(1, 2, "GROUP [QUEUE]"); !words) {
        return fail(words.error());
    }
    std::string path = path_of(arguments.words()[0]);
    if (arguments.words().size() > 1) {
        path += "/queues" + segment(arguments.words()[1]);
    }
    Query query;
    if (arguments.has("keep-subscription")) {
        query.emplace_back("deleteMetadata", "false");
    }
    return told(session, "DELETE", path, query, "", [](json::Value said) {
        const bool subscription = said["metadataDeleted"].boolean().value_or(false);
        return "deleted in " + partitions(to_plain(said["deletedPartitions"])) +
               (subscription ? ", with its subscription" : "");
    });
}

Result<Exit> subscription(Session& session) {
    const Arguments& arguments = session.arguments;
    if (auto words = arguments.expect(2, 2, "GROUP TIME"); !words) {
        return fail(words.error());
    }
    std::string body;
    json::Writer(body)
        .begin_object()
        .key("subscriptionTimestamp")
        .string(arguments.words()[1])
        .end_object();
    return told(session, "POST", path_of(arguments.words()[0]) + "/subscription", {}, body,
                [](json::Value said) {
                    return "begins at " + printable(to_plain(said["newTimestamp"])) +
                           " where it has no position yet; subscriptions changed: " +
                           printable(to_plain(said["rowsUpdated"]));
                });
}

} // namespace queen::ctl
