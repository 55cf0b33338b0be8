#include "metrics/page.hpp"
#include "support/exposition.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace queen::metrics {
namespace {

using namespace std::chrono_literals;
using test::parse_exposition;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// MET-1
TEST(MetricsPage, AnEmptyPageNamesEveryFamily) {
    const auto page = parse_exposition(Page().text());
    EXPECT_THAT(page.problems, IsEmpty());
    EXPECT_EQ(page.families.size(), all_families().size());
    for (const auto* family : all_families()) {
        ASSERT_TRUE(page.families.contains(std::string(family->name))) << family->name;
        EXPECT_EQ(page.families.at(std::string(family->name)).help, family->help);
    }
}

TEST(MetricsPage, LabelValuesAreEscaped) {
    Page page;
    const std::string hostile = "a\"b\\c\nqueen_uptime_seconds 7\n# TYPE x";
    EXPECT_TRUE(page.add(kParkedByQueue, {hostile}, 3));
    EXPECT_TRUE(page.add(kParkedByQueue, {"\xc3\xbc} 1"}, 4));
    const auto text = page.text();
    const auto read = parse_exposition(text);
    EXPECT_THAT(read.problems, IsEmpty());
    const auto& samples = read.families.at("queen_parked_long_polls").samples;
    ASSERT_EQ(samples.size(), 2u);
    EXPECT_EQ(samples[0].labels.at("queue"), hostile);
    EXPECT_EQ(samples[1].labels.at("queue"), "\xc3\xbc} 1");
    EXPECT_THAT(text, HasSubstr("\"a\\\"b\\\\c\\nqueen"));
}

TEST(MetricsPage, ASeriesComesOnce) {
    Page page;
    EXPECT_TRUE(page.add(kParkedByQueue, {"q"}, 1));
    EXPECT_FALSE(page.add(kParkedByQueue, {"q"}, 2));
    EXPECT_TRUE(page.add(kUptime, 1));
    EXPECT_FALSE(page.add(kUptime, 2));
    const auto read = parse_exposition(page.text());
    EXPECT_THAT(read.problems, IsEmpty());
    EXPECT_EQ(read.value("queen_parked_long_polls{queue=\"q\"}"), "1");
}

TEST(MetricsPage, WhatDoesNotFitItsFamilyIsLeftOut) {
    Page page;
    EXPECT_FALSE(page.add(kParkedByQueue, 1)) << "a label is missing";
    EXPECT_FALSE(page.add(kUptime, {"x"}, 1)) << "a label too many";
    EXPECT_FALSE(page.add(kUptime, NAN));
    EXPECT_FALSE(page.add(kUptime, INFINITY));
    EXPECT_FALSE(page.add(kPopLag, 1)) << "a histogram is no number";
    EXPECT_FALSE(page.add(kUptime, {}, LatencyHistogram::Snapshot{}));
    EXPECT_FALSE(page.add({.name = "queen_unknown", .labels = "", .help = ""}, 1));
    EXPECT_THAT(parse_exposition(page.text()).problems, IsEmpty());
}

TEST(MetricsPage, BigCountsKeepTheirDigits) {
    Page page;
    page.add(kPushMessages, 9007199254740991.0);
    page.add(kUptime, 0.1);
    EXPECT_THAT(page.text(), HasSubstr("queen_process_push_messages_total 9007199254740991\n"));
    EXPECT_THAT(page.text(), HasSubstr("queen_uptime_seconds 0.1\n"));
}

TEST(MetricsPage, AHistogramIsCumulativeInSeconds) {
    LatencyHistogram histogram;
    histogram.observe(50us);
    histogram.observe(2ms, 3);
    histogram.observe(2min);
    Page page;
    EXPECT_TRUE(page.add(kWait, {"pop"}, histogram.snapshot()));
    const auto read = parse_exposition(page.text());
    EXPECT_THAT(read.problems, IsEmpty());
    const auto bucket = [&](const std::string& bound) {
        return read.value("queen_admission_wait_seconds_bucket{lane=\"pop\",le=\"" + bound + "\"}");
    };
    EXPECT_EQ(bucket("0.0001"), "1");
    EXPECT_EQ(bucket("0.001"), "1");
    EXPECT_EQ(bucket("0.0025"), "4");
    EXPECT_EQ(bucket("60"), "4");
    EXPECT_EQ(bucket("+Inf"), "5");
    EXPECT_EQ(read.value("queen_admission_wait_seconds_count{lane=\"pop\"}"), "5");
}

// MET-4: a plugin must not be able to spoil the page.
TEST(MetricsPage, FiguresOfASourceAreCheckedByName) {
    Page page;
    PluginFigures figures(page, kSourceFigures, "one");
    figures.add("rings", 3);
    figures.add("reseeds_total", 4);
    for (const char* bad :
         {"", "Rings", "a-b", "a b", "a{", "a\nb 1", "\xc3\xbc", "rings", "takes_total",
          "figures_dropped",
          "a123456789012345678901234567890123456789012345678901234567890123456789"}) {
        figures.add(bad, 1);
    }
    figures.add("nan", NAN);
    figures.add("inf", -INFINITY);
    EXPECT_EQ(figures.dropped(), 13u);
    PluginFigures other(page, kSourceFigures, "two");
    other.add("rings", 5);
    EXPECT_EQ(other.dropped(), 0u);

    const auto read = parse_exposition(page.text());
    EXPECT_THAT(read.problems, IsEmpty());
    EXPECT_EQ(read.families.size(), all_families().size() + 2);
    EXPECT_EQ(read.value("queen_candidates_rings{source=\"one\"}"), "3");
    EXPECT_EQ(read.value("queen_candidates_rings{source=\"two\"}"), "5");
    EXPECT_EQ(read.value("queen_candidates_reseeds_total{source=\"one\"}"), "4");
    EXPECT_EQ(read.families.at("queen_candidates_reseeds_total").type, "counter");
    EXPECT_EQ(read.families.at("queen_candidates_rings").type, "gauge");
}

TEST(MetricsPage, FiguresOfAMeshStandBesideThoseOfSources) {
    Page page;
    PluginFigures source(page, kSourceFigures, "one");
    PluginFigures mesh(page, kMeshFigures, "net");
    source.add("frames_sent_total", 1);
    mesh.add("frames_sent_total", 2);
    mesh.add("figures_dropped", 3);
    EXPECT_EQ(mesh.dropped(), 1u);
    const auto read = parse_exposition(page.text());
    EXPECT_THAT(read.problems, IsEmpty());
    EXPECT_EQ(read.value("queen_mesh_frames_sent_total{plugin=\"net\"}"), "2");
    EXPECT_EQ(read.value("queen_candidates_frames_sent_total{source=\"one\"}"), "1");
}

TEST(MetricsPage, ANegativeCounterOfASourceIsLeftOut) {
    Page page;
    PluginFigures figures(page, kSourceFigures, "one");
    figures.add("x_total", -1);
    figures.add("level", -1);
    EXPECT_EQ(figures.dropped(), 1u);
    EXPECT_THAT(parse_exposition(page.text()).problems, IsEmpty());
}

TEST(MetricsPage, ASourceHasAtMost64Figures) {
    Page page;
    PluginFigures figures(page, kSourceFigures, "one");
    for (int i = 0; i < 1000; ++i) {
        figures.add("figure_" + std::to_string(i), i);
    }
    EXPECT_EQ(figures.dropped(), 1000u - PluginFigures::kMostFigures);
    EXPECT_EQ(parse_exposition(page.text()).families.size(),
              all_families().size() + PluginFigures::kMostFigures);
}

} // namespace
} // namespace queen::metrics
