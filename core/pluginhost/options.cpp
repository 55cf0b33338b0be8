#include "pluginhost/options.hpp"

#include "settings/values.hpp"

#include <algorithm>
#include <limits>

namespace queen::pluginhost {
namespace {

constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::max();

/// How a text was come by decides what it may look like.
enum class Written { yaml, environment };

std::string bound_text(const OptionSpec& option, std::int64_t bound) {
    return option.type == QUEEN_OPTION_DURATION
               ? settings::format_duration(std::chrono::nanoseconds(bound))
               : std::to_string(bound);
}

/// One text as a typed value, or what is wrong with it and what is allowed.
Result<OptionValue> read_value(const OptionSpec& option, const std::string& text, Written written) {
    OptionValue value;
    value.type = option.type;
    value.text = text;
    const auto wrong = [&](const std::string& why) {
        return fail(Errc::invalid_argument, why + ", allowed is " + allowed(option));
    };
    switch (option.type) {
    case QUEEN_OPTION_STRING:
        if (text.find('\0') != std::string::npos) {
            return wrong("a text with a NUL byte");
        }
        return value;
    case QUEEN_OPTION_BOOL: {
        const auto read = written == Written::environment ? settings::parse_env_boolean(text)
                                                          : settings::parse_yaml_boolean(text);
        if (!read) {
            return wrong(read.error().message);
        }
        value.number = *read ? 1 : 0;
        return value;
    }
    case QUEEN_OPTION_INT: {
        const auto read = settings::parse_whole(text);
        if (!read) {
            return wrong(read.error().message);
        }
        value.number = *read;
        break;
    }
    case QUEEN_OPTION_DURATION: {
        // The contract's variables bear their unit in the name and a bare number as value.
        const auto bare = written == Written::environment && option.env.ends_with("_MS")
                              ? settings::parse_whole(text)
                              : Result<std::int64_t>(fail(Errc::invalid_argument, ""));
        if (bare && *bare >= 0 && *bare <= INT64_MAX / 1'000'000) {
            value.number = *bare * 1'000'000;
            break;
        }
        const auto read = settings::parse_duration(text);
        if (!read) {
            return wrong(read.error().message);
        }
        value.number = read->count();
        break;
    }
    }
    if (value.number < option.min) {
        return wrong(settings::shown(text) + " is too small");
    }
    if (value.number > option.max) {
        return wrong(settings::shown(text) + " is too large");
    }
    return value;
}

std::string text_or_empty(const char* text) {
    return text == nullptr ? std::string() : std::string(text);
}

tl::unexpected<Error> bad_table(const std::string& why) {
    return fail(Errc::corrupt, "has a broken option table: " + why);
}

std::string known_names(const std::vector<OptionSpec>& table) {
    if (table.empty()) {
        return "the plugin takes no options";
    }
    std::string names = "the plugin knows ";
    for (std::size_t i = 0; i < table.size(); ++i) {
        names += (i == 0 ? "" : i + 1 == table.size() ? " and " : ", ") + table[i].name;
    }
    return names;
}

/// Checks keys and shapes of what YAML has, and keeps the usable ones by name.
std::map<std::string_view, const settings::PluginSettings::Value*>
usable(const settings::PluginSettings& plugin, const std::vector<OptionSpec>& table,
       settings::Problems& problems) {
    std::map<std::string_view, const settings::PluginSettings::Value*> first;
    for (const auto& [name, value] : plugin.options) {
        const auto option =
            std::find_if(table.begin(), table.end(),
                         [&key = name](const OptionSpec& row) { return row.name == key; });
        if (option == table.end()) {
            problems.push_back(problem(value.key_place, plugin.name, name,
                                       "is not an option, " + known_names(table)));
            continue;
        }
        if (const auto seen = first.find(name); seen != first.end()) {
            problems.push_back(
                problem(value.key_place, plugin.name, name,
                        "is given twice, first at " + to_string(seen->second->key_place)));
            continue;
        }
        first.emplace(name, &value);
        if (!value.scalar) {
            problems.push_back(problem(value.place, plugin.name, name,
                                       "is a list or a map, allowed is " + allowed(*option)));
        }
    }
    return first;
}

} // namespace

std::string to_string(const settings::Place& place) {
    if (place.line <= 0) {
        return place.file;
    }
    return place.file + ":" + std::to_string(place.line) + ":" + std::to_string(place.column);
}

std::string problem(const settings::Place& place, std::string_view plugin, std::string_view option,
                    std::string_view what) {
    std::string text = to_string(place);
    if (!text.empty()) {
        text += ": ";
    }
    text += "plugin '" + std::string(plugin) + "': ";
    if (!option.empty()) {
        text += std::string(option) + ": ";
    }
    return text += what;
}

std::string allowed(const OptionSpec& option) {
    switch (option.type) {
    case QUEEN_OPTION_STRING:
        return "a text";
    case QUEEN_OPTION_BOOL:
        return "true or false";
    case QUEEN_OPTION_INT:
    case QUEEN_OPTION_DURATION:
        break;
    }
    std::string text = bound_text(option, option.min);
    text += option.max == kUnbounded ? " or more" : " to " + bound_text(option, option.max);
    if (option.type == QUEEN_OPTION_INT && !option.unit.empty()) {
        text += " " + option.unit;
    }
    return text;
}

Result<std::vector<OptionSpec>> read_option_table(const queen_option* rows, std::size_t count) {
    constexpr std::size_t kMost = 1000; // more is a count that was never set
    if (count > kMost || (count > 0 && rows == nullptr)) {
        return bad_table("it says it has " + std::to_string(count) + " rows" +
                         (count > kMost ? "" : ", and has none"));
    }
    std::vector<OptionSpec> table;
    for (std::size_t i = 0; i < count; ++i) {
        const queen_option& row = rows[i];
        const std::string at = "row " + std::to_string(i + 1);
        if (row.name == nullptr || *row.name == '\0') {
            return bad_table(at + " has no name");
        }
        if (row.type < QUEEN_OPTION_INT || row.type > QUEEN_OPTION_BOOL) {
            return bad_table(at + " (" + row.name + ") has type " + std::to_string(row.type) +
                             ", this broker knows 1 to 4");
        }
        OptionSpec option;
        option.name = row.name;
        option.type = static_cast<queen_option_type>(row.type);
        option.unit = text_or_empty(row.unit);
        option.min = row.min;
        option.max = row.max;
        option.doc = text_or_empty(row.doc);
        option.env = text_or_empty(row.env);
        option.inherits = text_or_empty(row.inherits);
        if (row.fallback != nullptr) {
            option.fallback = row.fallback;
        }
        const bool bounded =
            option.type == QUEEN_OPTION_INT || option.type == QUEEN_OPTION_DURATION;
        if (bounded && option.min > option.max) {
            return bad_table(at + " (" + option.name + ") has a minimum above its maximum");
        }
        if (std::any_of(table.begin(), table.end(),
                        [&](const OptionSpec& other) { return other.name == option.name; })) {
            return bad_table(at + " repeats the name " + option.name);
        }
        if (option.fallback) {
            if (const auto value = read_value(option, *option.fallback, Written::yaml); !value) {
                return bad_table(at + " (" + option.name +
                                 ") refuses its own default: " + value.error().message);
            }
        }
        table.push_back(std::move(option));
    }
    return table;
}

tl::expected<OptionValues, settings::Problems>
check_options(const settings::PluginSettings& plugin, const std::vector<OptionSpec>& table,
              const settings::Environment& environment, const Inherited& inherited) {
    settings::Problems problems;
    const auto written = usable(plugin, table, problems);
    OptionValues values;
    const auto take = [&](const OptionSpec& option, const std::string& text, Written how,
                          const settings::Place& place) {
        auto value = read_value(option, text, how);
        if (!value) {
            problems.push_back(problem(place, plugin.name, option.name, value.error().message));
            return;
        }
        value->place = place;
        values.emplace(option.name, std::move(*value));
    };
    for (const OptionSpec& option : table) {
        const auto in_environment =
            option.env.empty() ? environment.end() : environment.find(option.env);
        const auto in_yaml = written.find(option.name);
        const auto in_core =
            option.inherits.empty() ? inherited.end() : inherited.find(option.inherits);
        // A value that the environment overrides is still checked: the file must stay usable.
        if (in_yaml != written.end() && in_yaml->second->scalar) {
            take(option, in_yaml->second->text, Written::yaml, in_yaml->second->place);
        }
        if (in_environment != environment.end()) {
            values.erase(option.name);
            take(option, in_environment->second, Written::environment,
                 {"environment " + option.env, 0, 0});
        } else if (in_yaml != written.end()) {
            continue;
        } else if (in_core != inherited.end()) {
            take(option, in_core->second, Written::yaml,
                 {"the broker's setting " + option.inherits, 0, 0});
        } else if (option.fallback) {
            take(option, *option.fallback, Written::yaml, {"the plugin's default", 0, 0});
        } else {
            problems.push_back(problem(plugin.place, plugin.name, option.name,
                                       "is required and not given, allowed is " + allowed(option)));
        }
    }
    if (!problems.empty()) {
        return tl::unexpected(std::move(problems));
    }
    return values;
}

} // namespace queen::pluginhost
