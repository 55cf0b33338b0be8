#include "base/json.hpp"
#include "settings/table.hpp"
#include "settings/yaml.hpp"

#include <string>

namespace queen::settings {
namespace {

/// What the editor shows beside an option.
std::string description(const Option& option) {
    std::string out(option.meaning);
    const std::string what = allowed(option);
    if (!what.empty()) {
        out += " Allowed: " + what + ".";
    }
    for (const std::string_view variable : option.env) {
        if (!variable.empty()) {
            const std::string unit(env_unit(option));
            out += " Environment: " + std::string(variable) +
                   (unit.empty() ? "." : " (" + unit + ").");
        }
    }
    return out;
}

void write_text_type(json::Writer& out, std::string_view pattern = {}) {
    out.key("type").string("string");
    if (!pattern.empty()) {
        out.key("pattern").string(pattern);
    }
}

void write_plugins(json::Writer& out) {
    out.key("type").string("array").key("items").begin_object();
    out.key("type").string("object").key("additionalProperties").boolean(false);
    out.key("required").begin_array().string("name").string("path").end_array();
    out.key("properties").begin_object();
    out.key("name").begin_object();
    write_text_type(out, "^[A-Za-z0-9_.-]{1,64}$");
    out.key("description").string("The plugin's name in this file.").end_object();
    out.key("path").begin_object();
    write_text_type(out);
    out.key("description")
        .string("The library; a relative path is looked up in plugin_folders.")
        .end_object();
    out.key("options").begin_object();
    out.key("type").begin_array().string("object").string("null").end_array();
    out.key("description").string("As `queenctl plugin inspect FILE` lists them.");
    out.end_object().end_object().end_object();
}

void write_type(json::Writer& out, const Option& option) {
    switch (option.type) {
    case Type::text:
    case Type::secret:
    case Type::connection:
        write_text_type(out);
        break;
    case Type::whole:
        out.key("type").string("integer");
        out.key("minimum").integer(option.min).key("maximum").integer(option.max);
        break;
    case Type::real:
        out.key("type").string("number");
        out.key("minimum").integer(option.min).key("maximum").integer(option.max);
        break;
    case Type::boolean:
        out.key("type").string("boolean");
        break;
    case Type::duration:
        write_text_type(out, "^[0-9]+(ns|us|ms|s|m|h|d)$");
        break;
    case Type::size:
        write_text_type(out, "^[0-9]+(B|KiB|MiB|GiB|TiB)$");
        break;
    case Type::choice: {
        out.key("enum").begin_array();
        std::string_view rest = option.choices;
        while (!rest.empty()) {
            const std::size_t bar = std::min(rest.find('|'), rest.size());
            out.string(rest.substr(0, bar));
            rest.remove_prefix(std::min(bar + 1, rest.size()));
        }
        out.end_array();
        break;
    }
    case Type::address:
        write_text_type(out, "^.+:[0-9]{1,5}$");
        break;
    case Type::texts:
        out.key("type").string("array").key("items").begin_object();
        write_text_type(out);
        out.end_object();
        break;
    case Type::plugins:
        write_plugins(out);
        break;
    }
}

void write_default_plugins(json::Writer& out, const Option& option) {
    Problems none;
    const yaml::Node list = yaml::read("default", std::string(option.fallback), none);
    out.begin_array();
    for (const yaml::Node& plugin : list.items) {
        out.begin_object();
        for (const yaml::Node& member : plugin.members) {
            out.key(member.key).string(member.text);
        }
        out.end_object();
    }
    out.end_array();
}

void write_default(json::Writer& out, const Option& option) {
    out.key("default");
    switch (option.type) {
    case Type::whole:
    case Type::real:
    case Type::boolean:
        out.raw(option.fallback);
        break;
    case Type::texts: {
        Problems none;
        out.begin_array();
        for (const yaml::Node& item :
             yaml::read("default", std::string(option.fallback), none).items) {
            out.string(item.text);
        }
        out.end_array();
        break;
    }
    case Type::plugins:
        write_default_plugins(out, option);
        break;
    case Type::text:
    case Type::duration:
    case Type::size:
    case Type::choice:
    case Type::address:
    case Type::connection:
    case Type::secret:
        out.string(option.fallback);
        break;
    }
}

void write_option(json::Writer& out, const Option& option, std::string_view key) {
    out.key(key).begin_object();
    write_type(out, option);
    write_default(out, option);
    out.key("description").string(description(option)).end_object();
}

/// The options of one section, which stand together in the table.
void write_section(json::Writer& out, std::string_view section, std::span<const Option> members) {
    const auto write_object = [&] {
        out.key("type").begin_array().string("object").string("null").end_array();
        out.key("additionalProperties").boolean(false);
        out.key("properties").begin_object();
        for (const Option& option : members) {
            write_option(out, option, option.name.substr(section.size() + 1));
        }
        out.end_object();
    };
    out.key(section).begin_object();
    if (section == "database") { // also in one word: `database: embedded`
        out.key("oneOf").begin_array().begin_object();
        write_text_type(out);
        out.key("description").string("Short for database.url.").end_object();
        out.begin_object();
        write_object();
        out.end_object().end_array();
    } else {
        write_object();
    }
    out.end_object();
}

} // namespace

std::string json_schema() {
    std::string text;
    json::Writer out(text);
    out.begin_object();
    out.key("$schema").string("https://json-schema.org/draft/2020-12/schema");
    out.key("title").string("Queen broker settings");
    out.key("type").begin_array().string("object").string("null").end_array();
    out.key("additionalProperties").boolean(false);
    out.key("properties").begin_object();
    const auto all = options();
    for (std::size_t i = 0; i < all.size();) {
        const std::size_t dot = all[i].name.find('.');
        if (dot == std::string_view::npos) {
            write_option(out, all[i], all[i].name);
            ++i;
            continue;
        }
        const std::string_view section = all[i].name.substr(0, dot);
        std::size_t end = i;
        while (end < all.size() && all[end].name.substr(0, all[end].name.find('.')) == section &&
               all[end].name.size() > section.size()) {
            ++end;
        }
        write_section(out, section, all.subspan(i, end - i));
        i = end;
    }
    out.end_object().end_object();
    return text;
}

} // namespace queen::settings
