#include "pluginhost/plugin_check.hpp"
#include "queenctl/command.hpp"
#include "queenctl/text_table.hpp"
#include "settings/settings.hpp"

#include <ostream>

namespace queen::ctl {
namespace {

using pluginhost::Inspection;
using pluginhost::OptionSpec;

std::string type_of(const OptionSpec& option) {
    switch (option.type) {
    case QUEEN_OPTION_INT:
        return "integer";
    case QUEEN_OPTION_DURATION:
        return "duration";
    case QUEEN_OPTION_STRING:
        return "text";
    case QUEEN_OPTION_BOOL:
        return "boolean";
    }
    return "?";
}

std::string joined(const std::vector<std::string>& words) {
    std::string out;
    for (const std::string& word : words) {
        out += (out.empty() ? "" : ", ") + word;
    }
    return out;
}

/// The verdict without the path it begins with: that stands beside it.
std::string verdict_of(const Inspection& inspection) {
    const std::string start = inspection.path + " ";
    return inspection.verdict.starts_with(start) ? inspection.verdict.substr(start.size())
                                                 : inspection.verdict;
}

/// The members of an object about a file.
void write_inspection(json::Writer& writer, const Inspection& inspection) {
    writer.key("path").string(printable(inspection.path));
    writer.key("fits")
        .boolean(inspection.fits)
        .key("verdict")
        .string(printable(inspection.verdict));
    if (inspection.stamp) {
        writer.key("id").string(printable(inspection.stamp->plugin_id));
        writer.key("version").string(printable(inspection.stamp->plugin_version));
        writer.key("abi").string(std::to_string(inspection.stamp->abi_major) + "." +
                                 std::to_string(inspection.stamp->abi_minor));
        writer.key("platform").string(printable(inspection.stamp->platform));
    }
    writer.key("kinds").begin_array();
    for (const std::string& kind : inspection.kinds) {
        writer.string(printable(kind));
    }
    writer.end_array().key("options").begin_array();
    for (const OptionSpec& option : inspection.options) {
        writer.begin_object().key("name").string(printable(option.name));
        writer.key("type").string(type_of(option)).key("unit").string(printable(option.unit));
        writer.key("default");
        if (option.fallback) {
            writer.string(printable(*option.fallback));
        } else {
            writer.null();
        }
        writer.key("allowed").string(printable(pluginhost::allowed(option)));
        writer.key("env").string(printable(option.env));
        writer.key("inherits").string(printable(option.inherits));
        writer.key("meaning").string(printable(option.doc)).end_object();
    }
    writer.end_array();
}

void print_json(std::ostream& out, const Inspection& inspection) {
    std::string text;
    json::Writer writer(text);
    writer.begin_object();
    write_inspection(writer, inspection);
    writer.end_object();
    out << text << "\n";
}

void print_json(std::ostream& out, const std::vector<pluginhost::PluginCheck>& checks) {
    std::string text;
    json::Writer writer(text);
    writer.begin_array();
    for (const pluginhost::PluginCheck& check : checks) {
        writer.begin_object().key("name").string(printable(check.name));
        write_inspection(writer, check.inspection);
        writer.key("problems").begin_array();
        for (const std::string& problem : check.problems) {
            writer.string(printable(problem));
        }
        writer.end_array().end_object();
    }
    writer.end_array();
    out << text << "\n";
}

void print_facts(std::ostream& out, const Inspection& inspection) {
    TextTable facts({{"file"}, {printable(inspection.path)}});
    facts.add({"verdict", verdict_of(inspection)});
    if (inspection.stamp) {
        facts.add({"id", inspection.stamp->plugin_id});
        facts.add({"version", inspection.stamp->plugin_version});
        facts.add({"abi", std::to_string(inspection.stamp->abi_major) + "." +
                              std::to_string(inspection.stamp->abi_minor)});
        facts.add({"platform", inspection.stamp->platform});
        facts.add({"broker", inspection.stamp->exact_host.empty() ? "any of this ABI"
                                                                  : inspection.stamp->exact_host});
    }
    if (!inspection.kinds.empty()) {
        facts.add({"offers", joined(inspection.kinds)});
    }
    facts.print(out);
    if (inspection.options.empty()) {
        return;
    }
    out << "\n";
    TextTable table({{"OPTION"}, {"TYPE"}, {"DEFAULT"}, {"ALLOWED"}, {"ENV"}, {"MEANING"}});
    for (const OptionSpec& option : inspection.options) {
        std::string fallback = option.fallback.value_or("(required)");
        if (!option.inherits.empty()) {
            fallback = "that of " + option.inherits;
        }
        table.add({option.name, type_of(option), fallback, pluginhost::allowed(option), option.env,
                   option.doc});
    }
    table.print(out);
}

} // namespace

Result<Exit> plugin_inspect(Session& session) {
    if (auto words = session.arguments.expect(1, 1, "FILE"); !words) {
        return fail(words.error());
    }
    const Inspection inspection = pluginhost::inspect(session.arguments.words()[0]);
    if (session.json()) {
        print_json(session.terminal.out, inspection);
    } else {
        print_facts(session.terminal.out, inspection);
    }
    return inspection.fits ? Exit::ok : Exit::failed;
}

Result<Exit> plugin_list(Session& session) {
    const Arguments& arguments = session.arguments;
    if (auto words = arguments.expect(0, 1, ""); !words) {
        return fail(words.error());
    }
    const auto file =
        arguments.words().empty() ? std::nullopt : std::optional(arguments.words()[0]);
    const auto loaded = settings::load(file, session.terminal.environment, {});
    if (!loaded) {
        for (const std::string& problem : loaded.error()) {
            session.terminal.err << printable(problem) << "\n";
        }
        return Exit::failed;
    }
    const auto checks = pluginhost::check_plugins(*loaded, session.terminal.environment);
    bool all_good = true;
    TextTable table({{"NAME"}, {"ID"}, {"VERSION"}, {"OFFERS"}, {"FILE"}, {"VERDICT"}});
    for (const pluginhost::PluginCheck& check : checks) {
        const Inspection& inspection = check.inspection;
        all_good = all_good && inspection.fits && check.problems.empty();
        table.add({check.name, inspection.stamp ? inspection.stamp->plugin_id : "",
                   inspection.stamp ? inspection.stamp->plugin_version : "",
                   joined(inspection.kinds), inspection.path, verdict_of(inspection)});
    }
    if (session.json()) {
        print_json(session.terminal.out, checks);
    } else {
        table.print(session.terminal.out);
        for (const pluginhost::PluginCheck& check : checks) {
            for (const std::string& problem : check.problems) {
                session.terminal.err << printable(problem) << "\n";
            }
        }
    }
    return all_good ? Exit::ok : Exit::failed;
}

} // namespace queen::ctl
