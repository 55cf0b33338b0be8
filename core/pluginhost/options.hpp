// pluginhost/options.hpp - a plugin's option table against what YAML and the environment say. All
// of it happens before an instance exists, so a bad option costs one sentence and no plugin code.
#pragma once
#include "base/result.hpp"
#include "settings/settings.hpp"

#include <queen/plugin/abi.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace queen::pluginhost {

/// One row of the table, copied out of the library.
struct OptionSpec {
    std::string name;
    queen_option_type type = QUEEN_OPTION_STRING;
    std::string unit;
    std::optional<std::string> fallback; ///< YAML text; nullopt: the option is required
    std::int64_t min = 0, max = 0;       ///< inclusive; durations in ns
    std::string doc;
    std::string env;      ///< "" for none
    std::string inherits; ///< core setting, "" for none
};

/// Copies and checks a plugin's own table.
/// @errors corrupt: a row without a name, a repeated name, an unknown type, bounds the wrong way
/// round, a default that its own row does not accept
Result<std::vector<OptionSpec>> read_option_table(const queen_option* rows, std::size_t count);

/// The effective value of one option, and where it was written.
struct OptionValue {
    queen_option_type type = QUEEN_OPTION_STRING;
    std::int64_t number = 0; ///< integers, durations in ns, booleans as 0 or 1
    std::string text;        ///< as written
    settings::Place place;   ///< of the value; line 0 when it is not from a file
};
using OptionValues = std::map<std::string, OptionValue, std::less<>>;

/// Core settings by their name, as YAML text: what an option with `inherits` falls back to.
using Inherited = std::map<std::string, std::string, std::less<>>;

/// Joins the table with what was written. The environment beats YAML, YAML beats the inherited
/// setting, that beats the default. Every problem is reported, not the first alone, as
/// `file:line:column: plugin 'hotlist': shards: what is wrong, what is allowed`.
/// @source PLG-4
tl::expected<OptionValues, settings::Problems>
check_options(const settings::PluginSettings& plugin, const std::vector<OptionSpec>& table,
              const settings::Environment& environment, const Inherited& inherited);

/// `file:line:column`, without the numbers for a place that is not in a file.
std::string to_string(const settings::Place& place);

/// One problem of a plugin, ready to print. `option` may be empty.
std::string problem(const settings::Place& place, std::string_view plugin, std::string_view option,
                    std::string_view what);

/// "1 to 64 partitions", "10ms or more", "true or false": what a row accepts, for messages and for
/// `queenctl plugin inspect`.
std::string allowed(const OptionSpec& option);

} // namespace queen::pluginhost
