#include "sql/property_session.hpp"

#include "support/postgres.hpp"
#include "support/sql_files.hpp"

#include <cstdlib>
#include <stdexcept>

namespace queen::test {
namespace {

void install_broken_schema(SqlSession& session, const Break& broken) {
    bool found = false;
    for (const auto& file : read_sql_files()) {
        for (auto statement : file.statements) {
            if (const auto at = statement.find(broken.from); at != std::string::npos) {
                found = true;
                statement.replace(at, broken.from.size(), broken.to);
            }
            session.script(statement);
        }
    }
    if (!found) {
        throw std::runtime_error("the broken copy has to follow the code: " + broken.from);
    }
}

} // namespace

SqlSession property_session(const Breaks& breaks, const std::string& origin,
                            const std::string& unit) {
    SqlSession session(TestPostgres::shared().conninfo(TestPostgres::shared().create_database()));
    if (const char* broken = std::getenv("QUEEN_BREAK"); broken != nullptr) {
        install_broken_schema(session, breaks.at(broken));
    } else {
        install_schema(session);
    }
    session.script("CREATE OR REPLACE FUNCTION queen._clock() RETURNS timestamptz LANGUAGE sql "
                   "VOLATILE AS $$ SELECT timestamptz '" +
                   origin + "' + current_setting('test.now')::bigint * interval '" + unit +
                   "' $$; SELECT set_config('test.now', '0', false)");
    return session;
}

} // namespace queen::test
