// queenctl mesh: the brokers that share a database, and what they tell each other.
#include "queenctl/command.hpp"
#include "queenctl/json_text.hpp"
#include "queenctl/text_table.hpp"

#include <ostream>

namespace queen::ctl {
namespace {

std::string state_of(json::Value peer) {
    const bool alive = peer["alive"].boolean() == true;
    if (peer["connected"].boolean() == true) {
        return alive ? "connected" : "connected, silent";
    }
    return alive ? "heard only" : "dead";
}

std::string silence_of(json::Value peer) {
    return peer["silent_ms"].is(json::Kind::number) ? to_plain(peer["silent_ms"]) + " ms" : "never";
}

void print_hints(std::ostream& out, json::Value hints) {
    TextTable table({{"HINT"}, {"PUBLISHED", true}, {"HEARD", true}});
    const json::Value published = hints["published"];
    for (std::size_t i = 0; i < published.size(); ++i) {
        const std::string kind(published.key_at(i));
        table.add({kind, to_plain(published.value_at(i)), to_plain(hints["heard"][kind])});
    }
    table.print(out);
    const json::Value refused = hints["refused"];
    for (std::size_t i = 0; i < refused.size(); ++i) {
        if (to_plain(refused.value_at(i)) != "0") {
            out << "left out, " << printable(refused.key_at(i)) << ": "
                << to_plain(refused.value_at(i)) << "\n";
        }
    }
}

} // namespace

Result<Exit> mesh(Session& session) {
    if (const auto words = session.arguments.expect(0, 0, ""); !words) {
        return fail(words.error());
    }
    const auto reply = ask(session, "GET", "/internal/api/inter-instance/stats");
    if (!reply) {
        return fail(reply.error());
    }
    if (session.json()) {
        return Exit::ok;
    }
    auto& out = session.terminal.out;
    const json::Value root = reply->document.root();
    const json::Value meshes = root["meshes"];
    if (meshes.size() == 0) {
        out << "this broker has no mesh: others hear of what it does when they look\n";
        return Exit::ok;
    }
    TextTable loaded({{"MESH"}, {"PLUGIN"}, {"VERSION"}, {"STATE"}});
    for (std::size_t i = 0; i < meshes.size(); ++i) {
        const json::Value mesh = meshes.at(i);
        loaded.add({to_plain(mesh["name"]), to_plain(mesh["id"]), to_plain(mesh["version"]),
                    mesh["paused"].boolean() == true ? "paused" : to_plain(mesh["verdict"])});
    }
    loaded.print(out);
    out << "\n";
    const json::Value peers = root["peers"];
    TextTable table({{"PEER"},
                     {"SERVER"},
                     {"STATE"},
                     {"SILENT", true},
                     {"SENT", true},
                     {"RECEIVED", true},
                     {"DROPPED", true},
                     {"QUEUED", true}});
    for (std::size_t i = 0; i < peers.size(); ++i) {
        const json::Value peer = peers.at(i);
        table.add({to_plain(peer["address"]), to_plain(peer["server_id"]), state_of(peer),
                   silence_of(peer), to_plain(peer["sent"]), to_plain(peer["received"]),
                   to_plain(peer["dropped"]), to_plain(peer["queued"])});
    }
    if (table.empty()) {
        out << "no peers\n";
    } else {
        table.print(out);
    }
    out << "\n";
    print_hints(out, root["hints"]);
    if (to_plain(root["handshake_failures"]) != "0") {
        out << "handshakes that failed: " << to_plain(root["handshake_failures"]) << "\n";
    }
    return Exit::ok;
}

} // namespace queen::ctl
