#pragma once
#include "base/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace queen::http {

/// The segments of a path that begins with '/', each percent-decoded once after the split: an
/// escaped slash stays inside its segment and '+' stays '+'. "/a//b/" has the segments a, "", b,
/// "".
/// @errors invalid_argument on a bad escape or bytes that are not UTF-8
/// @source PATH-1
Result<std::vector<std::string>> decode_path(std::string_view path);

} // namespace queen::http
