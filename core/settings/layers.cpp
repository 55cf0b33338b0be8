#include "settings/layers.hpp"

#include "base/assert.hpp"
#include "settings/builtin.hpp"
#include "settings/connection.hpp"
#include "settings/environment.hpp"
#include "settings/values.hpp"

#include <algorithm>
#include <cstdio>

namespace queen::settings {
namespace {

using yaml::Node;

constexpr std::string_view kDatabase = "database";
constexpr std::string_view kDatabaseUrl = "database.url";

/// Parts of the configuration language that later versions read.
struct Later {
    std::string_view name, meaning;
};
constexpr std::array kLater{Later{"candidates.routes", "sources by queue name"},
                            Later{"candidates.split", "two sources side by side"}};

bool is_section(std::string_view name) {
    const auto all = options();
    return std::any_of(all.begin(), all.end(), [&](const Option& option) {
        return option.name.starts_with(name) && option.name.size() > name.size() &&
               option.name[name.size()] == '.';
    });
}

/// The keys that may stand in a section, without its prefix.
std::vector<std::string> keys_of(const std::string& prefix) {
    std::vector<std::string> keys;
    for (const Option& option : options()) {
        if (option.name.starts_with(prefix)) {
            const std::string_view rest = option.name.substr(prefix.size());
            std::string key(rest.substr(0, rest.find('.')));
            if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
                keys.push_back(std::move(key));
            }
        }
    }
    return keys;
}

std::string joined(const std::vector<std::string>& words) {
    std::string out;
    for (const std::string& word : words) {
        out += (out.empty() ? "" : ", ") + word;
    }
    return out;
}

/// What was meant by a key nobody knows: a neighbour, else an option of that name elsewhere.
std::string suggestion(const std::string& key, const std::string& prefix) {
    std::string near = nearest(key, keys_of(prefix));
    if (!near.empty()) {
        return near;
    }
    std::vector<std::string> names;
    for (const Option& option : options()) {
        if (option.name == key || option.name.ends_with("." + key)) {
            return std::string(option.name);
        }
        names.emplace_back(option.name);
    }
    return nearest(key, names);
}

bool plugin_name_ok(std::string_view name) {
    return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '-' || c == '.';
    });
}

} // namespace

Layers::Layers() {
    const std::string name = "the built-in default";
    const Node root = yaml::read(name, std::string(built_in_yaml()), problems_);
    read_section(root, "");
    for (const std::string& problem : problems_) {
        std::fprintf(stderr, "%s\n", problem.c_str());
    }
    QUEEN_ASSERT(problems_.empty(), "config/queen.yaml must be free of faults");
    for (const Option& option : options()) {
        QUEEN_ASSERT(held_.contains(option.name), "config/queen.yaml must have every option");
        held(option.name).place = Place{name, 0, 0};
    }
    built_in_ = false;
}

const Held& Layers::held(std::string_view option) const {
    const auto found = held_.find(option);
    QUEEN_ASSERT(found != held_.end(), "an option outside the table");
    return found->second;
}

Held& Layers::held(std::string_view option) {
    return const_cast<Held&>(static_cast<const Layers&>(*this).held(option));
}

void Layers::complain(const Place& place, std::string_view option, const std::string& what) {
    problems_.push_back(to_string(place) + ": " + std::string(option) + ": " + what);
    faulty_.emplace(option);
}

bool Layers::faulty(std::string_view option) const {
    const auto at = faulty_.lower_bound(option); // the option itself or a part of it
    return at != faulty_.end() &&
           (*at == option || (at->starts_with(option) && (*at)[option.size()] == '.'));
}

void Layers::put(std::string_view option, Value value, const Place& place) {
    Held& held = held_[std::string(option)];
    held = Held{std::move(value), place, built_in_, {}};
}

void Layers::add_file(const std::string& name, const std::string& text, const std::string& folder) {
    folder_ = folder;
    const Node root = yaml::read(name, text, problems_);
    if (!root.is(Node::Kind::map) && !root.is(Node::Kind::null)) {
        problems_.push_back(to_string(root.place) + ": is " + std::string(describe(root)) +
                            "; allowed: a map of " + joined(keys_of("")));
        return;
    }
    read_section(root, "");
}

void Layers::read_section(const Node& map, const std::string& prefix) {
    std::map<std::string_view, const Node*> seen;
    for (const Node& member : map.members) {
        const std::string name = prefix + member.key;
        const auto [first, fresh] = seen.emplace(member.key, &member);
        if (!fresh) {
            complain(member.key_place, name,
                     "is repeated, first at line " + std::to_string(first->second->key_place.line) +
                         "; allowed: once");
            continue;
        }
        read_member(member, name, prefix);
    }
}

void Layers::read_member(const Node& member, const std::string& name, const std::string& prefix) {
    for (const Later& later : kLater) {
        if (name == later.name) {
            complain(member.key_place, name,
                     "is not offered by this version (" + std::string(later.meaning) +
                         "); allowed: candidates.default alone");
            return;
        }
    }
    if (const Option* option = find_option(name)) {
        read_option(*option, member);
    } else if (name == kDatabase && member.is(Node::Kind::scalar)) {
        read_option(*find_option(kDatabaseUrl), member);
    } else if (!is_section(name)) {
        unknown(member, name, prefix);
    } else if (member.is(Node::Kind::map)) {
        read_section(member, name + ".");
    } else if (!member.is(Node::Kind::null)) { // an empty section changes nothing
        complain(member.place, name,
                 "is " + std::string(describe(member)) + "; allowed: a map of " +
                     joined(keys_of(name + ".")));
    }
}

void Layers::unknown(const Node& member, const std::string& name, const std::string& prefix) {
    const std::string meant = suggestion(member.key, prefix);
    complain(member.key_place,
             name.empty()         ? "\"\""
             : name.size() <= 100 ? name
                                  : shown(name),
             "is unknown; " + (meant.empty() ? "allowed here: " + joined(keys_of(prefix))
                                             : "did you mean " + meant + "?"));
}

void Layers::read_option(const Option& option, const Node& node) {
    const bool list = option.type == Type::plugins || option.type == Type::texts;
    if (!node.is(list ? Node::Kind::list : Node::Kind::scalar)) {
        complain(node.place, option.name,
                 (node.is(Node::Kind::null) ? "has " : "is ") + std::string(describe(node)) +
                     "; allowed: " + allowed(option));
        return;
    }
    if (option.type == Type::connection) {
        read_connection(node, node.text);
        return;
    }
    if (option.type == Type::plugins) {
        Value value;
        value.plugins = read_plugins(node);
        put(option.name, std::move(value), node.place);
        return;
    }
    if (option.type == Type::texts) {
        Value value;
        for (const Node& item : node.items) {
            if (!item.is(Node::Kind::scalar) || item.text.empty()) {
                complain(item.place, option.name,
                         "is " + std::string(describe(item)) + "; allowed: " + allowed(option));
                return;
            }
            value.texts.push_back(item.text);
        }
        put(option.name, std::move(value), node.place);
        return;
    }
    if (option.type == Type::secret) {
        read_secret(option, node.place, node.text);
        return;
    }
    auto value = read_value(option, node.text);
    if (!value) {
        complain(node.place, option.name, value.error().message);
        return;
    }
    put(option.name, std::move(*value), node.place);
}

void Layers::read_secret(const Option& option, const Place& place, const std::string& text) {
    Value value;
    value.text = text;
    const bool reference = text.starts_with("file:");
    if (reference) {
        auto content = read_reference(text, folder_);
        if (!content) {
            complain(place, option.name, content.error().message);
            return;
        }
        value.text = std::move(*content);
    }
    put(option.name, std::move(value), place);
    held(option.name).reference = reference ? text : std::string();
}

void Layers::read_connection(const Node& node, std::string text) {
    std::string reference;
    if (text.starts_with("file:")) {
        reference = text;
        auto content = read_reference(text, folder_);
        if (!content) {
            complain(node.place, kDatabaseUrl, content.error().message);
            return;
        }
        text = std::move(*content);
    }
    if (text != "embedded") {
        if (const auto checked = check_connection(text); !checked) {
            complain(node.place, kDatabaseUrl,
                     checked.error().message + "; allowed: " + allowed(*find_option(kDatabaseUrl)));
            return;
        }
    }
    Value value;
    value.text = std::move(text);
    put(kDatabaseUrl, std::move(value), node.place);
    held(kDatabaseUrl).reference = std::move(reference);
}

std::vector<PluginSettings> Layers::read_plugins(const Node& list) {
    std::vector<PluginSettings> plugins;
    for (const Node& item : list.items) {
        if (!item.is(Node::Kind::map)) {
            complain(item.place, "plugins",
                     "an entry is " + std::string(describe(item)) +
                         "; allowed: {name: NAME, path: FILE.so, options: {...}}");
            continue;
        }
        PluginSettings plugin = read_plugin(item);
        const auto twin =
            std::find_if(plugins.begin(), plugins.end(), [&](const PluginSettings& other) {
                return !plugin.name.empty() && other.name == plugin.name;
            });
        if (twin != plugins.end()) {
            complain(plugin.place, "plugins",
                     "the name " + shown(plugin.name) + " is repeated, first at line " +
                         std::to_string(twin->place.line) + "; allowed: one name once");
        }
        plugins.push_back(std::move(plugin));
    }
    return plugins;
}

PluginSettings Layers::read_plugin(const Node& map) {
    static const std::vector<std::string> kKeys{"name", "path", "options"};
    PluginSettings plugin;
    plugin.place = map.place;
    std::map<std::string_view, const Node*> seen;
    for (const Node& member : map.members) {
        const std::string name = "plugins." + member.key;
        const auto [first, fresh] = seen.emplace(member.key, &member);
        if (!fresh) {
            complain(member.key_place, name,
                     "is repeated, first at line " + std::to_string(first->second->key_place.line) +
                         "; allowed: once");
        } else if (member.key == "options") {
            if (!member.is(Node::Kind::map) && !member.is(Node::Kind::null)) {
                complain(member.place, name,
                         "is " + std::string(describe(member)) +
                             "; allowed: a map of the plugin's options");
            }
            for (const Node& option : member.members) {
                const bool scalar = option.is(Node::Kind::scalar) || option.is(Node::Kind::null);
                plugin.options.emplace_back(
                    option.key,
                    PluginSettings::Value{option.text, scalar, option.place, option.key_place});
            }
        } else if (member.key != "name" && member.key != "path") {
            const std::string near = nearest(member.key, kKeys);
            complain(member.key_place, name,
                     "is unknown; " + (near.empty() ? "allowed here: " + joined(kKeys)
                                                    : "did you mean " + near + "?"));
        } else if (!member.is(Node::Kind::scalar) || member.text.empty()) {
            complain(member.place, name,
                     (member.is(Node::Kind::null) ? "has " : "is ") +
                         std::string(member.is(Node::Kind::scalar) ? "empty" : describe(member)) +
                         "; allowed: text");
        } else if (member.key == "name") {
            if (!plugin_name_ok(member.text)) {
                complain(member.place, name,
                         shown(member.text) +
                             " is no name; allowed: 1 to 64 letters, digits, '_', '-', '.'");
            }
            plugin.name = member.text;
            plugin.place = member.place;
        } else {
            plugin.path = member.text;
        }
    }
    for (const char* key : {"name", "path"}) {
        if (!seen.contains(key)) {
            complain(map.place, "plugins", "an entry has no " + std::string(key));
        }
    }
    return plugin;
}

void Layers::add_overrides(const std::map<std::string, std::string>& overrides) {
    folder_ = ".";
    for (const auto& [name, text] : overrides) {
        const Place place{"command line", 0, 0};
        if (name == "port") {
            read_port(*find_option("listen"), place, text);
            continue;
        }
        const Option* option = find_option(name == kDatabase ? kDatabaseUrl : name);
        if (option == nullptr) {
            Node member;
            member.key = name;
            member.key_place = place;
            unknown(member, name, "");
            continue;
        }
        Node node;
        if (option->type == Type::plugins || option->type == Type::texts) {
            Problems faults;
            node = yaml::read("command line", text, faults);
            if (!faults.empty()) {
                complain(place, option->name, "is not YAML; allowed: " + allowed(*option));
                continue;
            }
        } else { // as it is: a colon or a bracket of an address means nothing here
            node.kind = text.empty() ? Node::Kind::null : Node::Kind::scalar;
            node.text = text;
        }
        node.place = place;
        read_option(*option, node);
    }
}

void Layers::add_environment(const Environment& env) {
    folder_ = ".";
    for (const Option& option : options()) {
        std::string_view used;
        std::string used_text;
        for (const std::string_view variable : option.env) {
            const auto found = env.find(std::string(variable));
            if (variable.empty() || found == env.end() || found->second.empty()) {
                continue;
            }
            if (used.empty()) {
                used = variable;
                used_text = found->second;
                read_variable(option, variable, found->second);
            } else if (found->second != used_text) {
                warnings_.push_back("environment " + std::string(variable) + ": " +
                                    std::string(option.name) + ": is not used, " +
                                    std::string(used) + " wins");
            }
        }
    }
    read_database_variables(env);
    check_other_variables(env, warnings_);
    const auto hotlist = env.find("QUEEN_HOTLIST");
    if (hotlist == env.end() || hotlist->second.empty()) {
        return;
    }
    const Place place{"environment QUEEN_HOTLIST", 0, 0};
    const auto on = parse_env_boolean(hotlist->second);
    if (!on) {
        complain(place, "candidates.default", on.error().message);
    } else if (!*on) {
        Value value;
        value.text = kScanSource;
        put("candidates.default", std::move(value), place);
        warnings_.push_back(to_string(place) +
                            ": candidates.default: every queue takes its "
                            "candidates from " +
                            std::string(kScanSource));
    }
}

void Layers::read_variable(const Option& option, std::string_view variable,
                           const std::string& text) {
    const Place place{"environment " + std::string(variable), 0, 0};
    if (option.type == Type::address) { // PORT
        read_port(option, place, text);
        return;
    }
    if (option.type == Type::secret) {
        read_secret(option, place, text);
        return;
    }
    auto value = read_env_value(option, text);
    if (!value) {
        complain(place, option.name, value.error().message);
        return;
    }
    put(option.name, std::move(*value), place);
}

void Layers::read_port(const Option& option, const Place& place, const std::string& text) {
    const auto port = parse_whole(text);
    if (!port || *port < option.min || *port > option.max) {
        complain(place, option.name, shown(text) + " is no port; allowed: 0 to 65535");
        return;
    }
    Value value = held(option.name).value;
    value.number = *port;
    put(option.name, std::move(value), place);
}

void Layers::read_database_variables(const Environment& env) {
    const auto connection = environment_connection(env, problems_);
    if (!connection) {
        return;
    }
    const Held& written = held(kDatabaseUrl);
    if (!written.built_in && written.value.text == "embedded") {
        complain(written.place, kDatabaseUrl,
                 "is embedded, but environment " + connection->variable +
                     " selects an external database; allowed: one of the two");
        return;
    }
    const Place place{"environment " + connection->variable, 0, 0};
    if (!written.built_in) {
        warnings_.push_back(to_string(place) + ": database.url: replaces the one at " +
                            to_string(written.place));
    }
    Value value;
    value.text = connection->keywords;
    if (const auto checked = check_connection(value.text); !checked) {
        complain(place, kDatabaseUrl, checked.error().message);
        return;
    }
    put(kDatabaseUrl, std::move(value), place);
}

} // namespace queen::settings
