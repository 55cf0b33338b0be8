#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace queen {

/// RFC 4648 section 4: `+` and `/`, padded.
std::string to_base64(std::string_view bytes);
/// Padded, nothing around or inside it, unused bits zero: one text for one value.
std::optional<std::string> from_base64(std::string_view text);

/// RFC 4648 section 5, as tokens write it: `-` and `_`, no padding.
std::string to_base64url(std::string_view bytes);
/// Without padding, unused bits zero.
std::optional<std::string> from_base64url(std::string_view text);

} // namespace queen
