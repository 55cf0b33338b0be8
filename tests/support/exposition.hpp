#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace queen::test {

/// A page in the text format 0.0.4, as a strict reader sees it.
struct Exposition {
    struct Sample {
        std::string name; ///< of a histogram's also with _bucket, _sum, _count
        std::map<std::string, std::string> labels;
        double value = 0;
    };
    struct Family {
        std::string type, help;
        std::vector<Sample> samples;
    };
    std::map<std::string, Family> families;
    std::vector<std::string> problems; ///< `line N: what`; empty when the page is well formed

    /// The value of `name{labels}`, as "queen_x" or "queen_x{a=\"b\"}" with all labels in the order
    /// of the page. @return "<missing>" when there is none
    std::string value(std::string_view series) const;

    std::map<std::string, double> by_series; ///< as written, labels included
};

/// Refuses what some reader could refuse: a sample before its HELP and TYPE, a family in two
/// places, a series twice, bad names, escapes or numbers, a counter that is negative or not called
/// _total, histograms whose buckets do not add up.
Exposition parse_exposition(std::string_view page);

} // namespace queen::test
