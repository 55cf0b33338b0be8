#include "settings/document.hpp"

#include "settings/table.hpp"
#include "settings/yaml.hpp"

namespace queen::settings {
namespace {

constexpr std::size_t kColumns = 100;

constexpr std::string_view kHead =
    R"(# Queen broker: every option with its default. This file is built into the programs, so an empty
# file, or none, means the same: yours needs only what it changes. Environment variables win over
# the file, the command line over both.
#
# Times carry a unit (250ms, 30s, 5m, 1h), sizes too (512B, 16KiB, 64MiB, 1GiB).
# Check a file:      queenctl config check FILE
# Effective values:  queenctl config show FILE
# For editors:       queenctl config schema
)";

std::string comment_of(const Option& option) {
    std::string out(option.meaning);
    switch (option.type) { // where the value's form does not say it
    case Type::whole:
    case Type::real:
    case Type::duration:
    case Type::size:
    case Type::choice:
        out += " [" + allowed(option) + "]";
        break;
    case Type::text:
    case Type::boolean:
    case Type::address:
    case Type::connection:
    case Type::secret:
    case Type::texts:
    case Type::plugins:
        break;
    }
    return out;
}

std::string variables_of(const Option& option) {
    if (option.type == Type::connection) {
        return "PG_HOST, PG_PORT, PG_USER, PG_PASSWORD, PG_DATABASE, PG_USE_SSL, "
               "PG_SSL_REJECT_UNAUTHORIZED, PG_SSL_ROOT_CERT";
    }
    std::string out;
    for (const std::string_view variable : option.env) {
        if (!variable.empty()) {
            out += (out.empty() ? "" : ", ") + std::string(variable);
        }
    }
    const std::string unit(env_unit(option));
    return out.empty() || unit.empty() ? out : out + " (" + unit + ")";
}

void add_comment(std::string& out, std::string_view indent, std::string_view text) {
    std::string line = std::string(indent) + "#";
    while (!text.empty()) {
        const std::size_t space = std::min(text.find(' '), text.size());
        if (line.size() + 1 + space > kColumns) {
            out += line + "\n";
            line = std::string(indent) + "#";
        }
        line += " ";
        line += text.substr(0, space);
        text.remove_prefix(std::min(space + 1, text.size()));
    }
    out += line + "\n";
}

/// A flow list of plugins as a block with a line each: that is how people write theirs.
std::string plugin_lines(std::string_view list) {
    Problems none;
    std::string out;
    for (const yaml::Node& plugin : yaml::read("default", std::string(list), none).items) {
        std::string members;
        for (const yaml::Node& member : plugin.members) {
            members += (members.empty() ? "" : ", ") + member.key + ": " + member.text;
        }
        out += "  - {" + members + "}\n";
    }
    return out;
}

} // namespace

std::string default_document() {
    std::string out(kHead);
    std::string_view section;
    for (const Option& option : options()) {
        const std::size_t dot = option.name.find('.');
        const bool nested = dot != std::string_view::npos;
        const std::string_view own = nested ? option.name.substr(0, dot) : std::string_view();
        if (own != section || !nested) {
            out += "\n";
        }
        if (nested && own != section) {
            out += std::string(own) + ":\n";
        }
        section = own;
        const std::string_view indent = nested ? "  " : "";
        add_comment(out, indent, comment_of(option));
        if (const std::string variables = variables_of(option); !variables.empty()) {
            add_comment(out, indent, "Environment: " + variables);
        }
        out += std::string(indent) +
               std::string(nested ? option.name.substr(dot + 1) : option.name) + ":";
        if (option.type == Type::plugins) {
            out += "\n" + plugin_lines(option.fallback);
        } else {
            out += " " + std::string(option.fallback) + "\n";
        }
    }
    return out;
}

} // namespace queen::settings
