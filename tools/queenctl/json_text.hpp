#pragma once
#include "base/json.hpp"

#include <string>
#include <string_view>

namespace queen::ctl {

/// The value as one line of JSON; digits of numbers are kept as they were.
std::string to_json(json::Value value);

/// For a person: a string's content, a number or a word; null and absent are "", the rest is JSON.
std::string to_plain(json::Value value);

/// For a person: "on" for true.
std::string on_or_off(json::Value value);

/// Follows a path of member names, `customer.id`; missing when one is not there.
json::Value at_path(json::Value value, std::string_view path);

/// Whether the text is one JSON document.
bool is_json(std::string_view text);

} // namespace queen::ctl
