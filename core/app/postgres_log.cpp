#include "app/postgres_log.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>

namespace queen::app {

namespace fs = std::filesystem;

namespace {

constexpr std::uintmax_t kLimit = 32U << 20U; // guess: days of an unhappy server

/// What follows `mark` in `line`; empty without it.
std::string_view after(std::string_view line, std::string_view mark) {
    const std::size_t at = line.find(mark);
    return at != std::string_view::npos ? line.substr(at + mark.size()) : std::string_view();
}

} // namespace

std::string telling_line(const std::string& text) {
    std::istringstream lines(text);
    std::string line;
    std::string found;
    std::string logged;
    while (std::getline(lines, line) && found.find("No space left") == std::string::npos) {
        if (const auto said = after(line, "LOG:  "); !said.empty()) {
            logged = said;
        }
        for (const std::string_view mark :
             {"PANIC:  ", "FATAL:  ", "initdb: error: ", "postgres: "}) {
            if (const auto said = after(line, mark); !said.empty()) {
                found = said;
            }
        }
    }
    if (found.ends_with("contains errors") && !logged.empty()) {
        found += ": " + logged;
    }
    return found;
}

std::uintmax_t PostgresLog::size() const {
    std::error_code missing;
    const auto size = fs::file_size(path_, missing);
    return missing ? 0 : size;
}

std::string PostgresLog::reason(std::uintmax_t from) const {
    std::ifstream file(path_, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(from));
    std::ostringstream text;
    text << file.rdbuf();
    return telling_line(text.str());
}

/// The server holds the file open, so it is copied and cut, not renamed; what is written between
/// the two is lost.
void PostgresLog::trim() const {
    if (size() > kLimit) {
        std::error_code error;
        fs::copy_file(path_, path_ + ".1", fs::copy_options::overwrite_existing, error);
        fs::resize_file(path_, 0, error);
    }
}

} // namespace queen::app
