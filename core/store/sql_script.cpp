#include "store/sql_script.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

namespace queen::store {
namespace {

constexpr std::size_t kPreviewBytes = 80;

/// Cuts white space and comments off the front.
std::string_view without_leading_comments(std::string_view text) {
    for (;;) {
        const std::size_t start = text.find_first_not_of(" \t\r\n");
        if (start == std::string_view::npos) {
            return {};
        }
        text.remove_prefix(start);
        std::size_t end = std::string_view::npos;
        if (text.starts_with("--")) {
            end = text.find('\n');
        } else if (text.starts_with("/*")) {
            const std::size_t close = text.find("*/");
            end = close == std::string_view::npos ? close : close + 2;
        } else {
            return text;
        }
        if (end == std::string_view::npos) {
            return {};
        }
        text.remove_prefix(end);
    }
}

/// The first bytes with every run of white space as one space; never cut inside a character.
std::string one_line(std::string_view text) {
    std::string out;
    for (const char c : text) {
        const bool space = std::isspace(static_cast<unsigned char>(c)) != 0;
        if (out.size() >= kPreviewBytes && (static_cast<unsigned char>(c) & 0xc0) != 0x80) {
            return out + "...";
        }
        if (!space) {
            out += c;
        } else if (!out.empty() && out.back() != ' ') {
            out += ' ';
        }
    }
    while (!out.empty() && (out.back() == ' ' || out.back() == ';')) {
        out.pop_back();
    }
    return out;
}

std::string upper(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return text;
}

bool is_concurrent(const std::string& line) {
    return line.starts_with("CREATE INDEX CONCURRENTLY ") ||
           line.starts_with("CREATE UNIQUE INDEX CONCURRENTLY ") ||
           line.starts_with("DROP INDEX CONCURRENTLY ");
}

/// The text up to the next separator line, which is taken off as well.
std::string_view take_part(std::string_view& rest) {
    std::size_t line = 0;
    while (line < rest.size()) {
        const std::size_t end = std::min(rest.find('\n', line), rest.size());
        std::string_view content = rest.substr(line, end - line);
        while (!content.empty() && (content.back() == ' ' || content.back() == '\r')) {
            content.remove_suffix(1);
        }
        if (content == "-- @") {
            const std::string_view part = rest.substr(0, line);
            rest.remove_prefix(std::min(end + 1, rest.size()));
            return part;
        }
        line = end + 1;
    }
    const std::string_view part = rest;
    rest = {};
    return part;
}

} // namespace

std::vector<SqlStep> split_sql(std::string_view text) {
    std::vector<SqlStep> steps;
    SqlStep drops; // not yet followed by anything else
    std::size_t ordinal = 0;
    while (!text.empty()) {
        const std::string_view part = take_part(text);
        ++ordinal;
        const std::string_view statement = without_leading_comments(part);
        if (statement.empty()) {
            continue;
        }
        const std::string preview = one_line(statement);
        const std::string line = upper(preview);
        SqlStep step{std::string(part), ordinal, preview, is_concurrent(line)};
        if (step.concurrent) {
            if (!drops.text.empty()) {
                steps.push_back(std::exchange(drops, {}));
            }
            steps.push_back(std::move(step));
            continue;
        }
        if (!drops.text.empty()) {
            step.text = drops.text + "\n;\n" + step.text; // a part may end in a comment
            drops = {};
        }
        if (line.starts_with("DROP ")) {
            drops = std::move(step);
        } else {
            steps.push_back(std::move(step));
        }
    }
    if (!drops.text.empty()) {
        steps.push_back(std::move(drops));
    }
    return steps;
}

} // namespace queen::store
