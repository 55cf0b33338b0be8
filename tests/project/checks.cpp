#include "project/checks.hpp"

#include <algorithm>
#include <map>
#include <regex>
#include <set>

namespace queen::project {

namespace {

const std::vector<std::string> kSources{".cpp", ".hpp", ".h", ".c"};

/// What each folder of core may include beside itself and <queen/plugin/...>.
const std::map<std::string, std::set<std::string>> kArrows{
    {"base", {}},
    {"model", {"base"}},
    {"ports", {"base", "model"}},
    {"settings", {"base", "model"}},
    {"broker", {"base", "model", "ports", "settings", "metrics"}},
    {"store", {"base", "model", "ports", "settings"}},
    {"spool", {"base", "model", "ports", "settings"}},
    {"maintenance", {"base", "model", "ports", "settings"}},
    {"auth", {"base", "model", "ports", "settings"}},
    {"crypto", {"base", "model", "ports", "settings"}},
    {"metrics", {"base", "model", "ports", "settings"}},
    {"pluginhost", {"base", "model", "ports", "settings", "metrics"}},
    {"http", {"base", "model", "ports", "settings", "broker", "auth", "metrics"}},
};

/// Compiled into several of our plugins, seeing no more than they do. No plugin itself.
const std::string kSharedByPlugins = "shared";

std::string first_folder(const std::string& path) {
    return path.substr(0, path.find('/'));
}

/// core/http/front.cpp -> http
std::string second_folder(const std::string& path) {
    const std::size_t slash = path.find('/');
    return first_folder(path.substr(slash + 1));
}

std::string place(const Tree& tree, const std::string& path, std::size_t at) {
    return path + ":" + std::to_string(line_of(tree.at(path), at)) + ": ";
}

struct Include {
    std::string target;
    bool quoted;
    std::size_t at;
};

std::vector<Include> includes(const std::string& text) {
    static const std::regex pattern(R"(#\s*include\s*(["<])([^">]+)[">])");
    const std::string code = without_comments(text);
    std::vector<Include> found;
    for (std::sregex_iterator it(code.begin(), code.end(), pattern), end; it != end; ++it) {
        found.push_back({(*it)[2], (*it)[1] == "\"", static_cast<std::size_t>(it->position())});
    }
    return found;
}

std::set<std::string> plugin_names(const Tree& tree) {
    std::set<std::string> names;
    for (const auto& [path, text] : tree) {
        if (path.starts_with("plugins/") && std::count(path.begin(), path.end(), '/') > 1) {
            names.insert(second_folder(path));
        }
    }
    names.erase(kSharedByPlugins);
    return names;
}

/// Everything in `path` that matches, unless `exempt` says otherwise.
void find_all(const Tree& tree, const std::string& path, const std::string& code,
              const std::regex& pattern, const std::string& complaint, Findings& findings) {
    for (std::sregex_iterator it(code.begin(), code.end(), pattern), end; it != end; ++it) {
        findings.push_back(place(tree, path, static_cast<std::size_t>(it->position())) + complaint +
                           " (" + it->str() + ")");
    }
}

} // namespace

Findings include_arrows(const Tree& tree) {
    Findings findings;
    for (const std::string& path : files(tree, "core", kSources)) {
        const std::string folder = second_folder(path);
        const bool is_public = folder == "include";
        const auto allowed = kArrows.find(folder);
        if (!is_public && folder != "app" && allowed == kArrows.end()) {
            findings.push_back(path + ":1: folder core/" + folder +
                               " has no place in the order of dependencies yet");
            continue;
        }
        for (const Include& include : includes(tree.at(path))) {
            const std::string target = first_folder(include.target);
            const bool ours = kArrows.contains(target) || target == "app" || target == "plugins";
            if (include.target.starts_with("queen/plugin/") || !ours || folder == "app") {
                if (target != "plugins") {
                    continue;
                }
            }
            if (is_public || target == "plugins" ||
                (target != folder && !allowed->second.contains(target))) {
                findings.push_back(place(tree, path, include.at) + "core/" + folder +
                                   " may not include " + include.target);
            }
        }
    }
    return findings;
}

Findings plugins_stand_alone(const Tree& tree) {
    Findings findings;
    for (const std::string& path : files(tree, "plugins", kSources)) {
        const std::string own = "plugins/" + second_folder(path) + "/";
        const std::string beside = path.substr(0, path.rfind('/') + 1);
        for (const Include& include : includes(tree.at(path))) {
            const std::string target = first_folder(include.target);
            const bool ours_by_angle =
                !include.quoted &&
                (kArrows.contains(target) || target == "app" || target == "queen") &&
                !include.target.starts_with("queen/plugin/");
            const bool foreign_by_quote =
                include.quoted && !tree.contains(own + include.target) &&
                !tree.contains(beside + include.target) &&
                !((target == second_folder(path) || target == kSharedByPlugins) &&
                  tree.contains("plugins/" + include.target));
            if (ours_by_angle || foreign_by_quote) {
                findings.push_back(place(tree, path, include.at) + "a plugin may not include " +
                                   include.target);
            }
        }
    }
    return findings;
}

Findings core_names_no_plugin(const Tree& tree) {
    // Words of the contract as well, so that a literal of them proves nothing.
    const std::set<std::string> words{"mesh", "timers"};
    Findings findings;
    for (const std::string& plugin : plugin_names(tree)) {
        const std::regex pattern(words.contains(plugin)
                                     ? "\\b" + plugin + "\\.so\\b"
                                     : "\\b" + plugin + "\\.so\\b|\"" + plugin + "\"");
        for (const std::string& path : files(tree, "core", kSources)) {
            if (path.starts_with("core/settings/")) {
                continue; // the defaults of the file that names them, and QUEEN_HOTLIST
            }
            find_all(tree, path, without_comments(tree.at(path)), pattern,
                     "core may not name a plugin", findings);
        }
    }
    return findings;
}

Findings readmes(const Tree& tree) {
    constexpr std::size_t kPage = 80; // lines
    std::set<std::string> folders;
    for (const char* parent : {"core", "plugins"}) {
        for (const std::string& path : files(tree, parent, kSources)) {
            if (std::count(path.begin(), path.end(), '/') > 1 && second_folder(path) != "include") {
                folders.insert(std::string(parent) + "/" + second_folder(path));
            }
        }
    }
    Findings findings;
    for (const std::string& folder : folders) {
        const auto readme = tree.find(folder + "/README.md");
        if (readme == tree.end() || readme->second.find_first_not_of(" \n") == std::string::npos) {
            findings.push_back(folder + "/README.md:1: is missing: purpose, main classes, what it "
                                        "must never do");
        } else if (line_of(readme->second, readme->second.size()) > kPage) {
            findings.push_back(readme->first + ":1: is longer than a page of " +
                               std::to_string(kPage) + " lines");
        }
    }
    return findings;
}

Findings file_sizes(const Tree& tree) {
    constexpr std::size_t kLimit = 600; // lines
    Findings findings;
    for (const std::string& path :
         files(tree, "", {".cpp", ".hpp", ".h", ".c", ".sql", ".cmake", ".sh", ".txt", ".mjs"})) {
        const auto lines =
            static_cast<std::size_t>(std::count(tree.at(path).begin(), tree.at(path).end(), '\n'));
        if (lines <= kLimit) {
            continue;
        }
        const std::string name = path.substr(path.rfind('/') + 1);
        const auto readme = tree.find(path.substr(0, path.size() - name.size()) + "README.md");
        if (readme == tree.end() || readme->second.find(name) == std::string::npos ||
            readme->second.find("600") == std::string::npos) {
            findings.push_back(path + ":" + std::to_string(lines) +
                               ": longer than 600 lines; split it, or let the README of its folder "
                               "say why not");
        }
    }
    return findings;
}

Findings clocks(const Tree& tree) {
    static const std::regex reads(R"((steady_clock|system_clock|high_resolution_clock|file_clock))"
                                  R"(\s*::\s*now\b|\bgettimeofday\s*\(|\bclock_gettime\s*\()"
                                  R"(|\bstd::time\s*\(|\bpg_sleep\b)");
    static const std::regex waits(R"(\bsleep_(for|until)\b|\b(u|nano|clock_nano)?sleep\s*\()"
                                  R"(|\bpoll\s*\(\s*(nullptr|NULL|0)\s*,\s*0\b)");
    // Suites against real processes need deadlines of real time; others have a ManualClock.
    static const std::regex may_read(R"(^(examples|tests/(http|crash|cluster|sdk|support))/.*)");
    // Each with its reason in the source.
    const std::set<std::string> may_wait{"bench/pause.cpp", "core/app/data_directory.cpp"};
    Findings findings;
    for (const std::string& path : files(tree, "", kSources)) {
        if (path == "core/base/clock.cpp") {
            continue;
        }
        const std::string code = code_only(tree.at(path));
        if (!std::regex_match(path, may_read)) {
            find_all(tree, path, code, reads, "a clock is read; take a Clock&", findings);
        }
        if (!may_wait.contains(path)) {
            find_all(tree, path, code, waits, "sleeps; wait for what is to happen", findings);
        }
    }
    for (const std::string& path : files(tree, "sql", {".sql"})) {
        find_all(tree, path, tree.at(path), std::regex(R"(\bpg_sleep\s*\()"),
                 "sleeps inside the database", findings);
    }
    return findings;
}

Findings silent_catches(const Tree& tree) {
    // A known type may be let go with a comment that says why; `...` may not.
    static const std::regex anything(R"(\bcatch\s*\(\s*\.\.\.\s*\)\s*\{\s*\})");
    static const std::regex known(R"(\bcatch\s*\([^.)]+\)\s*\{\s*\})");
    const std::string complaint = "caught and forgotten; say what is lost, or let it pass";
    Findings findings;
    for (const std::string& path : files(tree, "", kSources)) {
        const std::string& text = tree.at(path);
        find_all(tree, path, code_only(text), anything, complaint, findings);
        if (!path.starts_with("tests/project/")) { // whose literals are faults
            find_all(tree, path, text, known, complaint, findings);
        }
    }
    return findings;
}

Findings rule_citations(const Tree& tree) {
    static const std::regex id(R"(\b([A-Z]{1,5})-(\d{1,3})\b|\bK\d{1,3}\b)");
    static const std::regex source(R"(@source\s+([A-Z]{1,5}-\d{1,3}|K\d{1,3})\b)");
    if (!tree.contains("docs/rules.md")) {
        return {};
    }
    std::set<std::string> known;
    std::set<std::string> prefixes{"K"};
    for (const auto& [path, text] : tree) {
        if (path.starts_with("docs/rules")) {
            for (std::sregex_iterator it(text.begin(), text.end(), id), end; it != end; ++it) {
                known.insert(it->str());
                prefixes.insert((*it)[1]);
            }
        }
    }
    Findings findings;
    std::vector<std::string> paths = files(tree, "", kSources);
    for (const std::string& path : files(tree, "sql", {".sql"})) {
        paths.push_back(path);
    }
    for (const std::string& path : paths) {
        if (path.starts_with("tests/project/")) {
            continue; // seeds unknown rules on purpose
        }
        const std::string& text = tree.at(path);
        std::set<std::string> complained;
        const auto cite = [&](const std::string& cited, std::ptrdiff_t at) {
            if (!known.contains(cited) && complained.insert(cited).second) {
                findings.push_back(place(tree, path, static_cast<std::size_t>(at)) + cited +
                                   " does not stand in docs/rules.md");
            }
        };
        for (std::sregex_iterator it(text.begin(), text.end(), id), end; it != end; ++it) {
            // UTF-8 and the like are no rules: a prefix has to be one of the page's.
            if (prefixes.contains((*it)[1].matched ? (*it)[1].str() : "K")) {
                cite(it->str(), it->position());
            }
        }
        for (std::sregex_iterator it(text.begin(), text.end(), source), end; it != end; ++it) {
            cite((*it)[1], it->position());
        }
    }
    return findings;
}

Findings proofs(const Tree& tree) {
    static const std::regex test(R"(\bTEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+))");
    static const std::regex cited(R"(`([A-Z]\w*)\.(\w*)(\*?)`)");
    constexpr const char* kPage = "docs/semantics.md";
    if (!tree.contains(kPage)) {
        return {};
    }
    std::set<std::string> known;
    for (const std::string& path : files(tree, "tests", {".cpp"})) {
        const std::string& text = tree.at(path);
        for (std::sregex_iterator it(text.begin(), text.end(), test), end; it != end; ++it) {
            known.insert((*it)[1].str() + "." + (*it)[2].str());
        }
    }
    Findings findings;
    const std::string& page = tree.at(kPage);
    for (std::sregex_iterator it(page.begin(), page.end(), cited), end; it != end; ++it) {
        const std::string name = (*it)[1].str() + "." + (*it)[2].str();
        const auto found = known.lower_bound(name);
        const bool there = found != known.end() &&
                           ((*it)[3].length() > 0 ? found->starts_with(name) : *found == name);
        if (!there) {
            findings.push_back(place(tree, kPage, static_cast<std::size_t>(it->position())) +
                               it->str() + " is no test of this tree");
        }
    }
    return findings;
}

} // namespace queen::project
