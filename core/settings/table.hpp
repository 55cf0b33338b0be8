// settings/table.hpp - the one table of the core's options. The loader, `config show`, the JSON
// Schema, the documented default file and its test all read it; an option exists by being a row.
#pragma once
#include "settings/settings.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

namespace queen::settings {

enum class Type {
    text,
    whole, ///< a whole number; `unit` says of what
    real,  ///< a number with decimals
    boolean,
    duration,   ///< with its unit in YAML, whole milliseconds inside
    size,       ///< with its unit in YAML, bytes inside
    choice,     ///< one of `choices`
    address,    ///< address:port
    connection, ///< `embedded`, a libpq URI or keyword list, or file:PATH; may hold a password
    secret,     ///< text that is never shown, or file:PATH to read it from
    texts,      ///< a list of texts
    plugins     ///< a list of {name, path, options}
};

/// A checked value. `number` is whole, milliseconds, bytes or a port by the option's type.
struct Value {
    std::int64_t number = 0;
    double real = 0;
    bool flag = false;
    std::string text;
    std::vector<std::string> texts;
    std::vector<PluginSettings> plugins;
};

struct Option {
    std::string_view name; ///< dotted
    Type type;
    /// For people: "messages", "" when the value carries it; of a duration what its environment
    /// variable counts in, "" for ms.
    std::string_view unit;
    std::string_view fallback;                    ///< YAML text
    std::int64_t min, max;                        ///< inclusive; ms, bytes, or in `unit`
    std::string_view choices;                     ///< "a|b"
    std::string_view meaning;                     ///< one line
    std::array<std::string_view, 2> env;          ///< the first that is set wins
    void (*put)(Settings& settings, Value value); ///< where the value goes
};

/// In the order of the documented file.
std::span<const Option> options();
const Option* find_option(std::string_view name);

/// "250ms to 1h", "one of all, new": what is allowed, for messages and documents.
std::string allowed(const Option& option);

/// The unit of an environment variable's number, "" for none: the contract's variables carry it in
/// their names, or take it for granted.
std::string_view env_unit(const Option& option);

/// Reads the YAML text of a value and checks its bounds.
/// @errors invalid_argument; what is wrong, what is allowed
Result<Value> read_value(const Option& option, std::string_view text);
/// The same for an environment variable's text, whose numbers have no unit.
Result<Value> read_env_value(const Option& option, std::string_view text);

} // namespace queen::settings
