#include "pluginhost/plugin_check.hpp"
#include "queenctl/command.hpp"
#include "queenctl/text_table.hpp"
#include "settings/document.hpp"
#include "settings/settings.hpp"

#include <ostream>

namespace queen::ctl {
namespace {

std::optional<std::string> file_of(const Arguments& arguments) {
    return arguments.words().empty() ? std::nullopt : std::optional(arguments.words()[0]);
}

/// Problems go where errors go, one a line.
Exit print_problems(Session& session, const settings::Problems& problems) {
    for (const std::string& problem : problems) {
        session.terminal.err << printable(problem) << "\n";
    }
    return Exit::failed;
}

void print_warnings(Session& session, const std::vector<std::string>& warnings) {
    for (const std::string& warning : warnings) {
        session.terminal.err << "warning: " << printable(warning) << "\n";
    }
}

} // namespace

Result<Exit> config_check(Session& session) {
    if (auto words = session.arguments.expect(1, 1, "FILE"); !words) {
        return fail(words.error());
    }
    // HOME stands in so that `data: auto` resolves; nothing else of the environment matters here.
    const auto loaded = settings::load(file_of(session.arguments), {{"HOME", "/"}}, {});
    if (!loaded) {
        return print_problems(session, loaded.error());
    }
    print_warnings(session, loaded->warnings);
    settings::Problems problems;
    for (const pluginhost::PluginCheck& check : pluginhost::check_plugins(*loaded, {})) {
        const auto verdict =
            pluginhost::problem(check.place, check.name, "", check.inspection.verdict);
        if (!check.found) { // the file may be meant for another machine
            print_warnings(session, {verdict + ", so it and its options are not checked"});
        } else if (!check.inspection.fits) {
            problems.push_back(verdict);
        }
        problems.insert(problems.end(), check.problems.begin(), check.problems.end());
    }
    if (!problems.empty()) {
        return print_problems(session, problems);
    }
    session.terminal.out << printable(session.arguments.words()[0]) << ": no faults\n";
    return Exit::ok;
}

Result<Exit> config_show(Session& session) {
    if (auto words = session.arguments.expect(0, 1, ""); !words) {
        return fail(words.error());
    }
    const auto loaded =
        settings::load(file_of(session.arguments), session.terminal.environment, {});
    if (!loaded) {
        return print_problems(session, loaded.error());
    }
    print_warnings(session, loaded->warnings);
    std::ostream& out = session.terminal.out;
    if (session.json()) {
        std::string text;
        json::Writer writer(text);
        writer.begin_array();
        for (const settings::Effective& entry : loaded->effective) {
            writer.begin_object().key("option").string(entry.name);
            writer.key("value").string(entry.value).key("source").string(entry.source).end_object();
        }
        writer.end_array();
        out << text << "\n";
        return Exit::ok;
    }
    TextTable table({{"OPTION"}, {"VALUE"}, {"FROM"}});
    for (const settings::Effective& entry : loaded->effective) {
        table.add({entry.name, entry.value, entry.source});
    }
    table.print(out);
    return Exit::ok;
}

Result<Exit> config_schema(Session& session) {
    if (auto words = session.arguments.expect(0, 0, ""); !words) {
        return fail(words.error());
    }
    session.terminal.out << settings::json_schema() << "\n";
    return Exit::ok;
}

Result<Exit> config_default(Session& session) {
    if (auto words = session.arguments.expect(0, 0, ""); !words) {
        return fail(words.error());
    }
    session.terminal.out << settings::default_document();
    return Exit::ok;
}

} // namespace queen::ctl
