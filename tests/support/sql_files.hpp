#pragma once
#include "support/sql_session.hpp"

#include <string>
#include <vector>

namespace queen::test {

/// One of the files that make the schema, cut at its separator lines.
struct SqlFile {
    std::string name;
    std::vector<std::string> statements;
};

/// All of sql/, in the order of their names, which is the order of the boot.
std::vector<SqlFile> read_sql_files();

/// Runs them, each statement in a transaction of its own, as a boot does.
void install_schema(SqlSession& session);

} // namespace queen::test
