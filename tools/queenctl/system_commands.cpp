// The switches of all brokers and their statistics.
#include "queenctl/command.hpp"
#include "queenctl/json_text.hpp"
#include "queenctl/text_table.hpp"

#include <ostream>

namespace queen::ctl {
namespace {

Result<Exit> show_maintenance(Session& session) {
    const auto reply = ask(session, "GET", "/api/v1/system/maintenance");
    if (!reply) {
        return fail(reply.error());
    }
    if (!session.json()) {
        const json::Value root = reply->document.root();
        TextTable table({{"MAINTENANCE"}, {""}});
        table.add({"push", on_or_off(root["maintenanceMode"])});
        table.add({"pop", on_or_off(root["popMaintenanceMode"])});
        table.print(session.terminal.out);
    }
    return Exit::ok;
}

} // namespace

Result<Exit> maintenance(Session& session) {
    if (auto words = session.arguments.expect(0, 2, "push|pop, on|off"); !words) {
        return fail(words.error());
    }
    const auto& words = session.arguments.words();
    if (words.empty()) {
        return show_maintenance(session);
    }
    if (words.size() != 2 || (words[0] != "push" && words[0] != "pop") ||
        (words[1] != "on" && words[1] != "off")) {
        return fail(Errc::invalid_argument, "give nothing, or push or pop and then on or off");
    }
    const auto reply =
        ask(session, "POST",
            words[0] == "pop" ? "/api/v1/system/maintenance/pop" : "/api/v1/system/maintenance", {},
            words[1] == "on" ? R"({"enabled":true})" : R"({"enabled":false})");
    if (!reply) {
        return fail(reply.error());
    }
    if (!session.json()) {
        session.terminal.out << printable(to_plain(reply->document.root()["message"])) << "\n";
    }
    return Exit::ok;
}

Result<Exit> stats_refresh(Session& session) {
    if (auto words = session.arguments.expect(0, 0, ""); !words) {
        return fail(words.error());
    }
    const auto reply = ask(session, "POST", "/api/v1/stats/refresh");
    if (!reply) {
        return fail(reply.error());
    }
    if (!session.json()) {
        const json::Value root = reply->document.root();
        session.terminal.out << "queues: " << printable(to_plain(root["queues"]))
                             << ", partitions: " << printable(to_plain(root["partitions"]))
                             << ", rows that had changed: " << printable(to_plain(root["written"]))
                             << ", milliseconds: " << printable(to_plain(root["tookMs"])) << "\n";
    }
    return Exit::ok;
}

} // namespace queen::ctl
