#include "project/tree.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

namespace queen::project {

namespace fs = std::filesystem;

namespace {

/// Blanks text[from, to) but its line breaks.
void blank(std::string& text, std::size_t from, std::size_t to) {
    std::replace_if(
        text.begin() + static_cast<std::ptrdiff_t>(from),
        text.begin() + static_cast<std::ptrdiff_t>(std::min(to, text.size())),
        [](char c) { return c != '\n'; }, ' ');
}

std::size_t past(const std::string& text, std::string_view mark, std::size_t from) {
    const std::size_t at = text.find(mark, from);
    return at != std::string::npos ? at + mark.size() : text.size();
}

/// End of the literal that begins with the quote at `at`: past its closing quote.
std::size_t literal_end(const std::string& text, std::size_t at) {
    const char quote = text[at];
    if (quote == '"' && at > 0 && text[at - 1] == 'R') {
        const std::size_t open = text.find('(', at);
        if (open == std::string::npos) {
            return text.size();
        }
        return past(text, ")" + text.substr(at + 1, open - at - 1) + "\"", open);
    }
    for (std::size_t i = at + 1; i < text.size(); ++i) {
        if (text[i] == '\\') {
            ++i;
        } else if (text[i] == quote || text[i] == '\n') {
            return i + 1;
        }
    }
    return text.size();
}

bool digit_separator(const std::string& text, std::size_t at) {
    return text[at] == '\'' && at > 0 && std::isxdigit(static_cast<unsigned char>(text[at - 1])) &&
           at + 1 < text.size() && std::isxdigit(static_cast<unsigned char>(text[at + 1]));
}

std::string strip(std::string text, bool literals) {
    std::size_t i = 0;
    while (i < text.size()) {
        const std::string_view rest = std::string_view(text).substr(i);
        if (rest.starts_with("//") || rest.starts_with("/*")) {
            const std::size_t end = rest[1] == '/' ? std::min(text.find('\n', i), text.size())
                                                   : past(text, "*/", i + 2);
            blank(text, i, end);
            i = end;
        } else if ((text[i] == '"' || text[i] == '\'') && !digit_separator(text, i)) {
            const std::size_t end = literal_end(text, i);
            if (literals) {
                blank(text, i + 1, end - 1);
            }
            i = end;
        } else {
            ++i;
        }
    }
    return text;
}

} // namespace

Tree read_tree(const std::string& root) {
    Tree tree;
    for (auto it = fs::recursive_directory_iterator(root); it != fs::recursive_directory_iterator();
         ++it) {
        const std::string name = it->path().filename().string();
        if (it->is_directory()) {
            if (name == "build" || name == ".git" || name == "data" || name == "node_modules") {
                it.disable_recursion_pending();
            }
            continue;
        }
        constexpr std::array kEndings{".cpp", ".hpp", ".h",  ".c",    ".sql", ".cmake",
                                      ".txt", ".md",  ".sh", ".yaml", ".yml", ".mjs"};
        const std::string ending = it->path().extension().string();
        if (std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end()) {
            std::ostringstream text;
            text << std::ifstream(it->path(), std::ios::binary).rdbuf();
            tree[it->path().lexically_relative(root).string()] = text.str();
        }
    }
    return tree;
}

std::string code_only(const std::string& text) {
    return strip(text, true);
}

std::string without_comments(const std::string& text) {
    return strip(text, false);
}

std::vector<std::string> files(const Tree& tree, const std::string& folder,
                               const std::vector<std::string>& endings) {
    std::vector<std::string> found;
    for (const auto& [path, text] : tree) {
        const bool inside = folder.empty() || path.starts_with(folder + "/");
        if (inside && std::any_of(endings.begin(), endings.end(), [&](const std::string& ending) {
                return path.ends_with(ending);
            })) {
            found.push_back(path);
        }
    }
    return found;
}

std::size_t line_of(const std::string& text, std::size_t place) {
    return 1 + static_cast<std::size_t>(std::count(
                   text.begin(), text.begin() + static_cast<std::ptrdiff_t>(place), '\n'));
}

} // namespace queen::project
