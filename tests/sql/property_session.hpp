#pragma once
#include "support/sql_session.hpp"

#include <map>
#include <string>

namespace queen::test {

/// A text of a procedure, and what stands in its place in a broken one.
struct Break {
    std::string from, to;
};
/// What can be wrong, by the names that QUEEN_BREAK knows it by.
using Breaks = std::map<std::string, Break>;

/// On a database of its own, with the procedures as they are or, where QUEEN_BREAK names a break,
/// with `from` replaced by `to` in every statement that has it: a property is worth what it makes
/// of procedures that are wrong. The clock stands test.now units after `origin`, at first none.
/// Throws when no statement has `from` any more.
SqlSession property_session(const Breaks& breaks,
                            const std::string& origin = "2030-01-01 00:00:00+00",
                            const std::string& unit = "1 second");

} // namespace queen::test
