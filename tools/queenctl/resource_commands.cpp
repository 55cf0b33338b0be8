#include "queenctl/command.hpp"
#include "queenctl/json_text.hpp"
#include "queenctl/text_table.hpp"

#include <array>
#include <ostream>

namespace queen::ctl {
namespace {

constexpr std::array kPage{
    Flag{"limit", "N", "Most partitions to list, 1 to 10000; sums are over all."},
    Flag{"after", "NAME", "List the partitions behind this name."},
};

constexpr std::array kDepth{
    Flag{"group", "NAME", "Figures of this consumer group; \"\" for the queue's own cursor."},
    kPage[0],
    kPage[1],
};

constexpr std::array kOverview{
    Flag{"cached", "", "Show what the last refresh found, instead of counting now."},
};

/// When figures were counted.
std::string age_of(json::Value seconds) {
    const std::string text = to_plain(seconds);
    return text == "0"             ? "counted now"
           : text.starts_with('-') ? "never refreshed"
                                   : "as of " + text + " s ago";
}

constexpr std::int64_t kMostListed = 10'000;

/// A number, or a dash where the broker has none to tell.
std::string figure(json::Value value) {
    const std::string text = to_plain(value);
    return text.empty() ? "-" : text;
}

Result<Exit> labels(Session& session, const std::string& label) {
    if (auto words = session.arguments.expect(0, 0, ""); !words) {
        return fail(words.error());
    }
    const std::string list = label + "s";
    const auto reply = ask(session, "GET", "/api/v1/resources/" + list);
    if (!reply) {
        return fail(reply.error());
    }
    if (session.json()) {
        return Exit::ok;
    }
    TextTable table({{label == "task" ? "TASK" : "NAMESPACE"},
                     {"QUEUES", true},
                     {"PARTITIONS", true},
                     {"TOTAL", true},
                     {"PENDING", true}});
    const json::Value rows = reply->document.root()[list];
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const json::Value row = rows.at(i);
        table.add({to_plain(row[label]), to_plain(row["queues"]), to_plain(row["partitions"]),
                   to_plain(row["messages"]["total"]), to_plain(row["messages"]["pending"])});
    }
    table.print(session.terminal.out);
    return Exit::ok;
}

} // namespace

constinit const std::span<const Flag> kPageFlags = kPage;
constinit const std::span<const Flag> kDepthFlags = kDepth;
constinit const std::span<const Flag> kOverviewFlags = kOverview;

Result<Query> page_of(const Arguments& arguments) {
    Query query;
    if (arguments.has("limit")) {
        const auto limit = arguments.whole("limit", kMostListed, 1, kMostListed);
        if (!limit) {
            return fail(limit.error());
        }
        query.emplace_back("limit", std::to_string(*limit));
    }
    if (arguments.has("after")) {
        query.emplace_back("after", arguments.text("after"));
    }
    return query;
}

void print_rest(Session& session, json::Value answer) {
    if (const json::Value next = answer["next"]; next.is(json::Kind::string)) {
        session.terminal.out << answer["partitions"].size() << " of "
                             << printable(to_plain(answer["partitionCount"]))
                             << " partitions are listed; go on with --after "
                             << printable(next.string()) << "\n";
    }
}

Result<Exit> depth(Session& session) {
    if (auto words = session.arguments.expect(1, 1, "QUEUE"); !words) {
        return fail(words.error());
    }
    auto query = page_of(session.arguments);
    if (!query) {
        return fail(query.error());
    }
    if (session.arguments.has("group")) {
        query->emplace_back("group", session.arguments.text("group"));
    }
    const auto reply =
        ask(session, "GET",
            "/api/v1/resources/queues" + segment(session.arguments.words()[0]) + "/depth", *query);
    if (!reply) {
        return fail(reply.error());
    }
    if (session.json()) {
        return Exit::ok;
    }
    const json::Value root = reply->document.root();
    TextTable table({{"PARTITION"}, {"PENDING", true}, {"PROCESSING", true}, {"READY", true}});
    const auto add = [&](const std::string& name, json::Value figures) {
        table.add({name, to_plain(figures["pending"]), to_plain(figures["processing"]),
                   to_plain(figures["ready"])});
    };
    const json::Value partitions = root["partitions"];
    for (std::size_t i = 0; i < partitions.size(); ++i) {
        add(to_plain(partitions.at(i)["partition"]), partitions.at(i));
    }
    add("(all)", root);
    table.print(session.terminal.out);
    session.terminal.out << "partitions: " << printable(to_plain(root["partitionCount"]))
                         << ", with pending messages "
                         << printable(to_plain(root["partitionsPending"])) << ", with ready ones "
                         << printable(to_plain(root["partitionsReady"])) << "\n";
    print_rest(session, root);
    return Exit::ok;
}

Result<Exit> overview(Session& session) {
    if (auto words = session.arguments.expect(0, 0, ""); !words) {
        return fail(words.error());
    }
    Query query;
    if (session.arguments.has("cached")) {
        query.emplace_back("stats", "cached");
    }
    const auto reply = ask(session, "GET", "/api/v1/resources/overview", query);
    if (!reply) {
        return fail(reply.error());
    }
    if (session.json()) {
        return Exit::ok;
    }
    const json::Value root = reply->document.root();
    TextTable counts({{"THERE ARE"}, {"", true}});
    for (const char* name : {"queues", "partitions", "namespaces", "tasks"}) {
        counts.add({name, figure(root[name])});
    }
    const json::Value messages = root["messages"];
    for (const auto& [title, name] :
         {std::pair{"messages", "total"}, std::pair{"pending", "pending"},
          std::pair{"processing", "processing"}, std::pair{"completed", "completed"},
          std::pair{"dead letters", "deadLetter"}}) {
        counts.add({title, figure(messages[name])});
    }
    counts.add({"in, per second", figure(root["throughput"]["ingestedPerSecond"])});
    counts.add({"out, per second", figure(root["throughput"]["processedPerSecond"])});
    counts.add({"figures", age_of(root["statsAge"])});
    counts.print(session.terminal.out);
    session.terminal.out << "\n";
    TextTable lag(
        {{"PARTITIONS BEHIND BY"}, {"AVG", true}, {"MEDIAN", true}, {"MIN", true}, {"MAX", true}});
    for (const auto& [title, name] :
         {std::pair{"messages", "offset"}, std::pair{"seconds", "time"}}) {
        const json::Value spread = root["lag"][name];
        lag.add({title, figure(spread["avg"]), figure(spread["median"]), figure(spread["min"]),
                 figure(spread["max"])});
    }
    lag.print(session.terminal.out);
    return Exit::ok;
}

Result<Exit> namespaces(Session& session) {
    return labels(session, "namespace");
}

Result<Exit> tasks(Session& session) {
    return labels(session, "task");
}

} // namespace queen::ctl
