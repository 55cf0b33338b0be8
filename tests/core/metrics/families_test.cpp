// The list of families against itself and against docs/metrics.md.
#include "metrics/families.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

namespace queen::metrics {
namespace {

std::string_view word(Kind kind) {
    switch (kind) {
    case Kind::counter:
        return "counter";
    case Kind::gauge:
        return "gauge";
    case Kind::histogram:
        return "histogram";
    }
    return "";
}

TEST(Families, NamesAreUniqueAndTellTheirKind) {
    std::set<std::string_view> names;
    for (const auto* family : all_families()) {
        EXPECT_TRUE(names.insert(family->name).second) << family->name;
        EXPECT_TRUE(family->name.starts_with("queen_")) << family->name;
        EXPECT_EQ(family->kind == Kind::counter, family->name.ends_with("_total")) << family->name;
        EXPECT_FALSE(family->help.empty()) << family->name;
        EXPECT_EQ(family->help.find_first_of("\\\n"), std::string_view::npos) << family->name;
    }
}

/// "| `name` | kind | label, label | ..." of docs/metrics.md: name to "kind|labels".
std::map<std::string, std::string> documented() {
    std::ifstream file(QUEEN_SOURCE_DIR "/docs/metrics.md");
    std::stringstream text;
    text << file.rdbuf();
    const std::string page = text.str();
    std::map<std::string, std::string> out;
    const std::regex row(R"(\n\| `(queen_[a-z_]+)` \| ([a-z]+) \|([^|]*)\|)");
    for (std::sregex_iterator it(page.begin(), page.end(), row), end; it != end; ++it) {
        std::string labels;
        const std::string cell = (*it)[3];
        const std::regex name(R"(`([a-z_]+)`)");
        for (std::sregex_iterator at(cell.begin(), cell.end(), name); at != end; ++at) {
            labels += (labels.empty() ? "" : " ") + (*at)[1].str();
        }
        EXPECT_TRUE(out.emplace((*it)[1], (*it)[2].str() + "|" + labels).second) << (*it)[1];
    }
    return out;
}

// MET-5: nothing is served that is not documented, and nothing is documented that is not served.
TEST(Families, TheDocumentAndTheListAreOne) {
    std::map<std::string, std::string> listed;
    for (const auto* family : all_families()) {
        listed.emplace(family->name,
                       std::string(word(family->kind)) + "|" + std::string(family->labels));
    }
    EXPECT_EQ(documented(), listed);
}

} // namespace
} // namespace queen::metrics
