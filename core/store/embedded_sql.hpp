#pragma once
#include <span>
#include <string_view>

namespace queen::store {

struct SqlFile {
    std::string_view name; ///< "003_log_push.sql"
    std::string_view text;
};

/// sql/NNN_*.sql, compiled in, in the order in which they are applied.
std::span<const SqlFile> embedded_sql();

} // namespace queen::store
