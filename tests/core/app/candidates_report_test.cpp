#include "app/candidates_report.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace queen::app {
namespace {

std::string written(const CandidateFigures& figures) {
    std::string text;
    json::Writer writer(text);
    figures.write(writer);
    return text;
}

TEST(CandidateFigures, AreWrittenInTheirOrderWithWholeNumbersWhole) {
    CandidateFigures figures;
    figures.add("rings", 5);
    figures.add("claims_took_total", 9007199254740991.0);
    figures.add("ready_age_p50_milliseconds", 0.25);
    EXPECT_EQ(written(figures), R"({"rings":5,"claims_took_total":9007199254740991,)"
                                R"("ready_age_p50_milliseconds":0.25})");
}

TEST(CandidateFigures, ANameThatComesTwiceCountsOnce) {
    CandidateFigures figures;
    figures.add("a", 1);
    figures.add("b", 2);
    figures.add("a", 3);
    EXPECT_EQ(written(figures), R"({"a":3,"b":2})");
}

TEST(CandidateFigures, NothingAPluginSaysBreaksOrFillsTheAnswer) {
    CandidateFigures figures;
    figures.add("", 1);
    figures.add(std::string(CandidateFigures::kLongestName + 1, 'x'), 1);
    figures.add("nan", std::nan(""));
    figures.add("infinite", INFINITY);
    figures.add("quote\"\n\xff", 1);
    EXPECT_EQ(written(figures), "{\"nan\":null,\"infinite\":null,\"quote\\\"\\n\xef\xbf\xbd\":1}");
    for (std::size_t i = 0; i < 2 * CandidateFigures::kMost; ++i) {
        figures.add("figure" + std::to_string(i), 1);
    }
    const auto document = json::Document::parse(written(figures));
    ASSERT_TRUE(document);
    EXPECT_EQ(document->root().size(), CandidateFigures::kMost);
}

} // namespace
} // namespace queen::app
