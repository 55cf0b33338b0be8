#pragma once
#include <cstdlib>
#include <string>

namespace queen::test {

/// YAML that chooses the candidate source of a broker; "" keeps the built-in default. This line is
/// all that differs between two runs of a suite.
inline std::string serving(const std::string& source) {
    return source.empty() ? "" : "candidates: {default: " + source + "}\n";
}

/// The source this run of the program is about: QUEEN_TEST_SOURCE, or the built-in default.
inline std::string source_under_test() {
    const char* name = std::getenv("QUEEN_TEST_SOURCE");
    return name == nullptr ? "" : name;
}

} // namespace queen::test
