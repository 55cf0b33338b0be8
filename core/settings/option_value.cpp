#include "settings/address.hpp"
#include "settings/table.hpp"
#include "settings/values.hpp"

#include <algorithm>
#include <cctype>

namespace queen::settings {
namespace {

using std::chrono::milliseconds;

Result<Value> in_bounds(const Option& option, Value value, std::int64_t number,
                        std::string_view text) {
    if (number < option.min || number > option.max) {
        return fail(Errc::invalid_argument, shown(text) + " is out of bounds");
    }
    value.number = number;
    return value;
}

std::vector<std::string> split_choices(std::string_view choices) {
    std::vector<std::string> out;
    while (!choices.empty()) {
        const std::size_t bar = std::min(choices.find('|'), choices.size());
        out.emplace_back(choices.substr(0, bar));
        choices.remove_prefix(std::min(bar + 1, choices.size()));
    }
    return out;
}

Result<Value> read_choice(const Option& option, std::string_view text) {
    const auto choices = split_choices(option.choices);
    if (std::find(choices.begin(), choices.end(), text) != choices.end()) {
        Value value;
        value.text = text;
        return value;
    }
    const std::string near = nearest(text, choices);
    return fail(Errc::invalid_argument, shown(text) + " is not known" +
                                            (near.empty() ? "" : "; did you mean " + near + "?"));
}

/// Words of the contract's variables that this broker spells out.
std::string spelled_out(const Option& option, std::string_view text) {
    if (option.name == "auth.algorithm") { // names of a standard, in upper case
        return std::string(text);
    }
    std::string word(text);
    std::transform(word.begin(), word.end(), word.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (option.name == "log.level") {
        return word == "info" ? "information" : word == "warn" ? "warning" : word;
    }
    if (word == "new-only" || word == "new_only" || word == "newonly") {
        return "new";
    }
    return word;
}

Result<Value> check(const Option& option, std::string_view text) {
    Value value;
    switch (option.type) {
    case Type::text:
        if (text.empty()) {
            return fail(Errc::invalid_argument, "is empty");
        }
        if (std::any_of(text.begin(), text.end(),
                        [](char c) { return static_cast<unsigned char>(c) < 0x20; })) {
            return fail(Errc::invalid_argument, shown(text) + " has control characters");
        }
        value.text = text;
        return value;
    case Type::connection:
    case Type::secret:
        if (option.type == Type::secret && text.empty()) {
            return fail(Errc::invalid_argument, "is empty");
        }
        value.text = text;
        return value;
    case Type::texts:
    case Type::plugins: // read from the tree (load.cpp), never from one text
        return fail(Errc::invalid_argument, "is a single value");
    case Type::whole: {
        const auto number = parse_whole(text);
        return number ? in_bounds(option, value, *number, text) : fail(number.error());
    }
    case Type::real: {
        const auto number = parse_real(text);
        if (!number) {
            return fail(number.error());
        }
        value.real = *number;
        if (*number < static_cast<double>(option.min) ||
            *number > static_cast<double>(option.max)) {
            return fail(Errc::invalid_argument, shown(text) + " is out of bounds");
        }
        return value;
    }
    case Type::boolean: {
        const auto flag = parse_yaml_boolean(text);
        if (!flag) {
            return fail(flag.error());
        }
        value.flag = *flag;
        return value;
    }
    case Type::duration: {
        const auto time = parse_duration(text);
        if (!time) {
            return fail(time.error());
        }
        const auto whole = std::chrono::duration_cast<milliseconds>(*time);
        if (whole != *time) {
            return fail(Errc::invalid_argument, shown(text) + " is not in whole milliseconds");
        }
        return in_bounds(option, value, whole.count(), text);
    }
    case Type::size: {
        const auto bytes = parse_size(text);
        return bytes ? in_bounds(option, value, *bytes, text) : fail(bytes.error());
    }
    case Type::choice:
        return read_choice(option, text);
    case Type::address: {
        auto address = parse_address(text);
        if (!address) {
            return fail(address.error());
        }
        value.text = std::move(address->host);
        value.number = address->port;
        return value;
    }
    }
    return fail(Errc::internal, "unknown type of option");
}

/// The contract's variables name their unit; sizes are in bytes unless they end so.
bool in_mebibytes(const Option& option) {
    return option.type == Type::size && option.env[0].ends_with("_MB");
}

bool in_seconds(const Option& option) {
    return option.type == Type::duration && option.unit == "s";
}

/// Between commas, without the spaces around.
Value split_list(std::string_view text) {
    Value value;
    while (true) {
        const std::size_t comma = std::min(text.find(','), text.size());
        std::string_view item = text.substr(0, comma);
        item.remove_prefix(std::min(item.find_first_not_of(' '), item.size()));
        item = item.substr(0, item.find_last_not_of(' ') + 1);
        if (!item.empty()) {
            value.texts.emplace_back(item);
        }
        if (comma == text.size()) {
            return value;
        }
        text.remove_prefix(comma + 1);
    }
}

Result<Value> explain(const Option& option, Result<Value> result) {
    if (!result) {
        const std::string what = allowed(option);
        if (!what.empty()) {
            result.error().message += "; allowed: " + what;
        }
    }
    return result;
}

} // namespace

std::string allowed(const Option& option) {
    switch (option.type) {
    case Type::whole:
        return std::to_string(option.min) + " to " + std::to_string(option.max) +
               (option.unit.empty() ? "" : " " + std::string(option.unit));
    case Type::real:
        return std::to_string(option.min) + " to " + std::to_string(option.max);
    case Type::duration:
        return format_duration(milliseconds(option.min)) + " to " +
               format_duration(milliseconds(option.max));
    case Type::size:
        return format_size(option.min) + " to " + format_size(option.max);
    case Type::boolean:
        return "true or false";
    case Type::choice: {
        std::string out;
        for (const std::string& choice : split_choices(option.choices)) {
            out += (out.empty() ? "" : ", ") + choice;
        }
        return out;
    }
    case Type::address:
        return "ADDRESS:PORT as 127.0.0.1:6632 or [::1]:6632, port 0 to 65535";
    case Type::connection:
        return "embedded, postgresql://..., host=... dbname=..., or file:PATH";
    case Type::secret:
        return "text, or file:PATH";
    case Type::text:
        return "text without control characters";
    case Type::texts:
        return "a list of texts";
    case Type::plugins:
        return "a list of {name: NAME, path: FILE.so, options: {...}}";
    }
    return {};
}

std::string_view env_unit(const Option& option) {
    switch (option.type) {
    case Type::duration:
        return option.unit.empty() ? "ms" : option.unit;
    case Type::size:
        return in_mebibytes(option) ? "MiB" : "bytes";
    case Type::address:
        return "the port alone";
    case Type::text:
    case Type::whole:
    case Type::real:
    case Type::boolean:
    case Type::choice:
    case Type::connection:
    case Type::secret:
    case Type::plugins:
        break;
    case Type::texts:
        return "separated by commas";
    }
    return {};
}

Result<Value> read_value(const Option& option, std::string_view text) {
    return explain(option, check(option, text));
}

Result<Value> read_env_value(const Option& option, std::string_view text) {
    Value value;
    switch (option.type) {
    case Type::duration:
    case Type::size: {
        const std::int64_t scale = in_mebibytes(option) ? 1 << 20 : in_seconds(option) ? 1000 : 1;
        const auto number = parse_whole(text);
        // Beyond the bounds stays beyond them, so that the product cannot overflow.
        auto result =
            number
                ? in_bounds(option, value,
                            std::clamp(*number, std::int64_t{-1}, option.max / scale + 1) * scale,
                            text)
                : Result<Value>(fail(number.error()));
        if (!result) {
            result.error().message += "; allowed: " + std::to_string(option.min / scale) + " to " +
                                      std::to_string(option.max / scale) + " " +
                                      std::string(env_unit(option));
        }
        return result;
    }
    case Type::boolean: {
        const auto flag = parse_env_boolean(text);
        if (!flag) {
            return fail(flag.error());
        }
        value.flag = *flag;
        return value;
    }
    case Type::choice:
        return explain(option, read_choice(option, spelled_out(option, text)));
    case Type::texts:
        return split_list(text);
    case Type::address:
    case Type::text:
    case Type::whole:
    case Type::real:
    case Type::connection:
    case Type::secret:
    case Type::plugins:
        break;
    }
    return read_value(option, text);
}

} // namespace queen::settings
