// The checker that other tests rely on: it must refuse what is malformed.
#include "support/exposition.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace queen::test {
namespace {

constexpr const char* kGood = "# HELP a_total Help text.\n"
                              "# TYPE a_total counter\n"
                              "a_total{x=\"1\"} 2\n"
                              "a_total{x=\"\\\\\\\"\\n\"} 0.5\n"
                              "# HELP h Help.\n"
                              "# TYPE h histogram\n"
                              "h_count 2\n"
                              "h_sum 1e-05\n"
                              "h_bucket{le=\"0.1\"} 1\n"
                              "h_bucket{le=\"+Inf\"} 2\n"
                              "# HELP g Help.\n"
                              "# TYPE g gauge\n";

TEST(ExpositionChecker, ReadsAPage) {
    const auto page = parse_exposition(kGood);
    EXPECT_THAT(page.problems, testing::IsEmpty());
    EXPECT_EQ(page.value("a_total{x=\"1\"}"), "2");
    EXPECT_EQ(page.value("a_total{x=\"2\"}"), "<missing>");
    EXPECT_EQ(page.families.at("a_total").samples[1].labels.at("x"), "\\\"\n");
    EXPECT_EQ(page.families.at("h").samples.size(), 4u);
    EXPECT_EQ(page.families.at("g").type, "gauge");
}

TEST(ExpositionChecker, RefusesWhatIsMalformed) {
    const std::string head = "# HELP a_total H.\n# TYPE a_total counter\n";
    const std::string histogram = "# HELP h H.\n# TYPE h histogram\n";
    for (const std::string& page : {
             std::string(),
             head + "a_total 1",                                 // no line end
             std::string("a_total 1\n"),                         // no HELP, no TYPE
             std::string("# TYPE a_total counter\na_total 1\n"), // no HELP
             std::string("# HELP a_total H.\na_total 1\n"),      // no TYPE
             head + "b_total 1\n",                               // under another family
             head + "a_total 1\na_total 1\n",                    // twice
             head + "a_total{x=\"1\"} 1\na_total{x=\"1\"} 2\n",  // twice
             head + "a_total{x=\"1\",y=\"2\"} 1\na_total{y=\"2\",x=\"1\"} 2\n", // twice
             head + head, // a family in two places
             head + "a_total one\n",
             head + "a_total 1 2 3\n",
             head + "a_total\n",
             head + "a_total -1\n",
             head + "a_total NaN\n",
             head + "a_total{x=\"1} 1\n",
             head + "a_total{x=1} 1\n",
             head + "a_total{x=\"1\" 1\n",
             head + "a_total{1x=\"1\"} 1\n",
             head + "a_total{x=\"\\q\"} 1\n",
             head + "a_total{x=\"1\",x=\"1\"} 1\n",
             head + "\n",
             head + "# a remark\n",
             std::string("# HELP a H.\n# TYPE a counter\n"), // a counter without _total
             std::string("# HELP a_total H.\n# TYPE a_total gauge\n"),
             std::string("# HELP a-b H.\n# TYPE a-b gauge\n"),
             std::string("# HELP a H.\n# TYPE a thing\n"),
             histogram + "h 1\n",
             histogram + "h_count 1\nh_sum 1\nh_bucket{le=\"1\"} 1\n",                // no +Inf
             histogram + "h_sum 1\nh_bucket{le=\"+Inf\"} 1\n",                        // no count
             histogram + "h_count 2\nh_sum 1\nh_bucket{le=\"+Inf\"} 1\n",             // not equal
             histogram + "h_count 1\nh_sum 1\nh_bucket 1\nh_bucket{le=\"+Inf\"} 1\n", // no bound
             histogram + "h_count 1\nh_sum 1\nh_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 1\n",
         }) {
        EXPECT_THAT(parse_exposition(page).problems, testing::Not(testing::IsEmpty())) << page;
    }
}

} // namespace
} // namespace queen::test
