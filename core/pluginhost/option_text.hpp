// pluginhost/option_text.hpp - how the value of a plugin's option is written.
#pragma once
#include "base/result.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace queen::pluginhost {

/// `250ms`, `30s`: a whole number and one of ns, us, ms, s, m, h, d. A bare number is an error.
/// @errors invalid_argument; the message goes on from "option: "
Result<std::chrono::nanoseconds> parse_duration(std::string_view text);
std::string format_duration(std::chrono::nanoseconds value); ///< in the largest unit that fits

/// @errors invalid_argument
Result<std::int64_t> parse_whole(std::string_view text);

/// true or false; `words` also takes what environment variables say: 1/yes/on, 0/no/off, any case.
/// @errors invalid_argument
Result<bool> parse_boolean(std::string_view text, bool words);

/// The text in quotes for a message: control characters escaped, cut after 60 bytes.
std::string shown(std::string_view text);

} // namespace queen::pluginhost
