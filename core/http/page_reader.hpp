#pragma once
#include "base/clock.hpp"
#include "base/result.hpp"
#include "http/query.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace queen::http {

/// What the lists of messages and of dead letters have in common.
struct PageQuery {
    std::int32_t limit = 0;  ///< 1 to 1000
    std::int32_t offset = 0; ///< 0 and up
    std::optional<WallTime> from;
    std::optional<WallTime> to;       ///< exclusive: the end of the minute that was named
    std::optional<std::string> after; ///< as given, not empty
};

/// Reads `limit`, moved to its nearest bound, `offset`, `from`, `to` and `after`.
/// @errors invalid_argument
/// @source QRY-1
Result<PageQuery> read_page(const Query& query, std::int32_t default_limit);

/// A name in a query; absent and empty: none.
/// @errors invalid_argument, name_too_long
Result<std::optional<std::string>> read_filter(const Query& query, std::string_view name);

/// An id in a path.
/// @errors invalid_argument
Result<Uuid> read_id(std::string_view field, std::string_view text);

} // namespace queen::http
