#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace queen::store {

/// What the installer runs as one transaction: a statement, with the DROPs right before it.
struct SqlStep {
    std::string text;
    std::size_t ordinal = 0; ///< of its last statement within the file, from 1
    std::string preview;     ///< first words of that statement, on one line
    bool concurrent =
        false; ///< builds or drops an index CONCURRENTLY: not allowed in a transaction
};

/// Splits a file at its lines `-- @` (DM-3). Parts without a statement are left out, but counted.
/// Consecutive DROPs are put together with the statement that follows them, so that nobody finds
/// the old thing gone and the new one not yet there.
std::vector<SqlStep> split_sql(std::string_view text);

} // namespace queen::store
