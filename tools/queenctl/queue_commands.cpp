#include "model/queue_options.hpp"
#include "queenctl/command.hpp"
#include "queenctl/json_text.hpp"
#include "queenctl/text_table.hpp"
#include "settings/values.hpp"

#include <algorithm>
#include <array>
#include <ostream>
#include <set>

namespace queen::ctl {
namespace {

constexpr std::array kFlags{
    Flag{"merge", "", "Keep the options that are not named."},
};

/// Options of a configure request: JSON where the text is JSON, else a string.
std::string option_json(const QueueOption* option, const std::string& text) {
    const bool text_option = option == nullptr || option->type == QueueOption::Type::text;
    return !text_option && is_json(text) ? text : json::quoted(text);
}

Result<std::string> configure_body(const Arguments& arguments) {
    std::string top;
    std::string options;
    json::Writer body(top);
    json::Writer inner(options);
    body.begin_object().key("queue").string(arguments.words()[0]);
    body.key("mode").string(arguments.has("merge") ? "merge" : "replace");
    inner.begin_object();
    std::set<std::string> seen;
    for (std::size_t i = 1; i < arguments.words().size(); ++i) {
        const std::string& word = arguments.words()[i];
        const std::size_t equals = word.find('=');
        if (equals == std::string::npos || equals == 0) {
            return fail(Errc::invalid_argument, settings::shown(word) + " is not OPTION=VALUE");
        }
        const std::string name = word.substr(0, equals);
        const std::string value = word.substr(equals + 1);
        if (!seen.insert(name).second) {
            return fail(Errc::invalid_argument, name + " is given twice");
        }
        if (name == "namespace" || name == "task") {
            body.key(name).string(value);
            continue;
        }
        const QueueOption* option = find_queue_option(name);
        if (option == nullptr) {
            std::vector<std::string> names{"namespace", "task"};
            std::string list = "namespace, task";
            for (const QueueOption& known : queue_options()) {
                names.emplace_back(known.name);
                list += ", " + std::string(known.name);
            }
            const std::string meant = settings::nearest(name, names);
            return fail(
                Errc::invalid_argument,
                "unknown option " + name +
                    (meant.empty() ? "; known are " + list : "; did you mean " + meant + "?"));
        }
        inner.key(name).raw(option_json(option, value));
    }
    inner.end_object();
    body.key("options").raw(options).end_object();
    return top;
}

} // namespace

constinit const std::span<const Flag> kConfigureFlags = kFlags;

Result<Exit> queues(Session& session) {
    if (auto words = session.arguments.expect(0, 0, ""); !words) {
        return fail(words.error());
    }
    const auto reply = ask(session, "GET", "/api/v1/resources/queues");
    if (!reply) {
        return fail(reply.error());
    }
    const json::Value list = reply->document.root()["queues"];
    TextTable table({{"QUEUE"},
                     {"PARTITIONS", true},
                     {"TOTAL", true},
                     {"PENDING", true},
                     {"PROCESSING", true},
                     {"CREATED"}});
    for (std::size_t i = 0; i < list.size(); ++i) {
        const json::Value q = list.at(i);
        const json::Value messages = q["messages"];
        table.add({to_plain(q["name"]), to_plain(q["partitions"]), to_plain(messages["total"]),
                   to_plain(messages["pending"]), to_plain(messages["processing"]),
                   to_plain(q["createdAt"])});
    }
    if (!session.json()) {
        table.print(session.terminal.out);
    }
    return Exit::ok;
}

Result<Exit> queue(Session& session) {
    if (auto words = session.arguments.expect(1, 1, "QUEUE"); !words) {
        return fail(words.error());
    }
    const auto page = page_of(session.arguments);
    if (!page) {
        return fail(page.error());
    }
    const auto reply = ask(
        session, "GET", "/api/v1/resources/queues" + segment(session.arguments.words()[0]), *page);
    if (!reply) {
        return fail(reply.error());
    }
    if (session.json()) {
        return Exit::ok;
    }
    const json::Value root = reply->document.root();
    std::ostream& out = session.terminal.out;
    TextTable facts({{"QUEUE"}, {to_plain(root["name"])}});
    for (const auto& [title, name] :
         {std::pair{"namespace", "namespace"}, std::pair{"task", "task"},
          std::pair{"created", "createdAt"}, std::pair{"bytes", "retainedBytes"}}) {
        facts.add({title, to_plain(root[name])});
    }
    const json::Value options = root["options"];
    for (std::size_t i = 0; i < options.size(); ++i) {
        facts.add({std::string(options.key_at(i)), to_plain(options.value_at(i))});
    }
    facts.print(out);
    out << "\n";
    TextTable table({{"PARTITION"},
                     {"TOTAL", true},
                     {"PENDING", true},
                     {"PROCESSING", true},
                     {"COMPLETED", true},
                     {"DEAD", true},
                     {"OLDEST"},
                     {"NEWEST"},
                     {"PARTITION ID"}});
    const json::Value partitions = root["partitions"];
    const auto add = [&](const std::string& name, json::Value stats, json::Value partition) {
        table.add({name, to_plain(stats["total"]), to_plain(stats["pending"]),
                   to_plain(stats["processing"]), to_plain(stats["completed"]),
                   to_plain(stats["deadLetter"]), to_plain(partition["oldestMessage"]),
                   to_plain(partition["newestMessage"]), to_plain(partition["id"])});
    };
    for (std::size_t i = 0; i < partitions.size(); ++i) {
        const json::Value partition = partitions.at(i);
        add(to_plain(partition["name"]), partition["stats"], partition);
    }
    add("(all)", root["totals"], json::Value());
    table.print(out);
    print_rest(session, root);
    return Exit::ok;
}

Result<Exit> configure(Session& session) {
    if (auto words = session.arguments.expect(1, SIZE_MAX, "QUEUE"); !words) {
        return fail(words.error());
    }
    const auto body = configure_body(session.arguments);
    if (!body) {
        return fail(body.error());
    }
    const auto reply = ask(session, "POST", "/api/v1/configure", {}, *body);
    if (!reply) {
        return fail(reply.error());
    }
    if (session.json()) {
        return Exit::ok;
    }
    const json::Value root = reply->document.root();
    TextTable table({{"OPTION"}, {"VALUE"}});
    table.add({"namespace", to_plain(root["namespace"])});
    table.add({"task", to_plain(root["task"])});
    const json::Value options = root["options"];
    for (std::size_t i = 0; i < options.size(); ++i) {
        table.add({std::string(options.key_at(i)), to_plain(options.value_at(i))});
    }
    table.print(session.terminal.out);
    return Exit::ok;
}

Result<Exit> delete_queue(Session& session) {
    if (auto words = session.arguments.expect(1, 1, "QUEUE"); !words) {
        return fail(words.error());
    }
    const std::string name = session.arguments.words()[0];
    const auto reply = ask(session, "DELETE", "/api/v1/resources/queues" + segment(name));
    if (!reply) {
        return fail(reply.error());
    }
    const bool deleted = reply->document.root()["deleted"].boolean() == true;
    if (!session.json()) {
        session.terminal.out << printable(name)
                             << (deleted ? " is deleted\n"
                                         : " did not exist, nothing was deleted\n");
    }
    return Exit::ok;
}

Result<Exit> health(Session& session) {
    if (auto words = session.arguments.expect(0, 0, ""); !words) {
        return fail(words.error());
    }
    auto client = session.client();
    if (!client) {
        return fail(client.error());
    }
    const auto answer = client->call("GET", "/health", {});
    if (!answer) {
        return fail(answer.error());
    }
    const auto document = json::Document::parse(answer->body);
    const json::Value root = document ? document->root() : json::Value();
    if (session.json()) {
        session.terminal.out << answer->body << "\n";
    } else if (root["status"].is(json::Kind::string)) {
        session.terminal.out << printable(root["status"].string()) << ", database "
                             << printable(to_plain(root["database"])) << ", version "
                             << printable(to_plain(root["version"])) << "\n";
    } else {
        return fail(Errc::store_failed, refusal(*answer));
    }
    return answer->status == 200 ? Exit::ok : Exit::failed;
}

} // namespace queen::ctl
