#pragma once
#include "base/clock.hpp"

#include <queen/plugin/types.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace queen {

std::string to_hex(std::string_view bytes);
std::optional<std::string> from_hex(std::string_view text); ///< nullopt when odd or not hex

std::string to_string(const Uuid& id);                 ///< lower case, 8-4-4-4-12
std::optional<Uuid> parse_uuid(std::string_view text); ///< either case, 8-4-4-4-12 only

/// Length of the UTF-8 sequence `text` begins with: 1 to 4; 0 when it is none, or `text` is empty.
std::size_t utf8_length(std::string_view text) noexcept;
bool valid_utf8(std::string_view text) noexcept; ///< no surrogates, no overlong forms

/// Percent-decoding, once. `plus_is_space` for query values only (K25).
/// @return nullopt on a bad escape
std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space);
std::string percent_encode(std::string_view text); ///< everything but unreserved characters

/// ISO-8601 UTC with microseconds and Z (FMT-14).
std::string format_micros(WallTime time);
/// Reads date and time in ISO-8601: `T` or space, optional seconds and fraction (any number of
/// digits, cut to micros), zone `Z`, `+hh:mm`, `+hhmm`, `+hh`; without a zone it is UTC. A space
/// where the `+` of an unescaped offset stood is read as `+` (K19). A date alone is its midnight,
/// and 24:00:00 the midnight that ends the day, as PostgreSQL reads them; a second of 60 is
/// refused.
/// @return nullopt when unreadable or outside the years 1 to 9999 in UTC
std::optional<WallTime> parse_time(std::string_view text);

/// A whole decimal integer, optional '-', nothing else around it.
std::optional<std::int64_t> parse_int(std::string_view text) noexcept;

} // namespace queen
