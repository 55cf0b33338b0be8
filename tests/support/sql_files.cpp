#include "support/sql_files.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace queen::test {

std::vector<SqlFile> read_sql_files() {
    std::vector<SqlFile> files;
    for (const auto& entry : std::filesystem::directory_iterator(QUEEN_SQL_DIR)) {
        if (entry.path().extension() != ".sql") {
            continue;
        }
        SqlFile file{entry.path().filename().string(), {""}};
        std::ifstream in(entry.path());
        for (std::string line; std::getline(in, line);) {
            if (line == "-- @") {
                file.statements.emplace_back();
            } else {
                file.statements.back() += line + '\n';
            }
        }
        files.push_back(std::move(file));
    }
    if (files.empty()) {
        throw std::runtime_error("no SQL files in " QUEEN_SQL_DIR);
    }
    std::ranges::sort(files, {}, &SqlFile::name);
    return files;
}

void install_schema(SqlSession& session) {
    for (const SqlFile& file : read_sql_files()) {
        for (const std::string& statement : file.statements) {
            session.script(statement);
        }
    }
}

} // namespace queen::test
