#include "pluginhost/options.hpp"

#include <gtest/gtest.h>

#include <climits>

namespace queen::pluginhost {
namespace {

constexpr std::int64_t kMs = 1'000'000;

std::vector<queen_option> rows() {
    return {
        {"shards", QUEEN_OPTION_INT, 0, "shards", "8", 1, 64, "", "QUEEN_SHARDS", nullptr},
        {"reseed", QUEEN_OPTION_DURATION, 0, "ns", "30s", 10 * kMs, INT64_MAX, "", nullptr,
         nullptr},
        {"label", QUEEN_OPTION_STRING, 0, "", "", 0, 0, "", "QUEEN_LABEL", "server_id"},
        {"eager", QUEEN_OPTION_BOOL, 0, "", "false", 0, 0, "", nullptr, nullptr},
    };
}
std::vector<OptionSpec> table() {
    const auto all = rows();
    return read_option_table(all.data(), all.size()).value();
}

struct Line {
    std::string name, text;
    bool scalar = true;
};
settings::PluginSettings written(std::vector<Line> lines) {
    settings::PluginSettings plugin;
    plugin.name = "hotlist";
    plugin.place = {"queen.yaml", 5, 7};
    int line = 7;
    for (auto& [name, text, scalar] : lines) {
        plugin.options.push_back(
            {name, {text, scalar, {"queen.yaml", line, 14}, {"queen.yaml", line, 3}}});
        ++line;
    }
    return plugin;
}

settings::Problems problems(std::vector<Line> lines, const settings::Environment& environment = {},
                            const Inherited& inherited = {}) {
    const auto checked = check_options(written(std::move(lines)), table(), environment, inherited);
    return checked ? settings::Problems{} : checked.error();
}

TEST(Options, DefaultsFillWhatIsNotWritten) {
    const auto values = check_options(written({}), table(), {}, {}).value();
    EXPECT_EQ(values.at("shards").number, 8);
    EXPECT_EQ(values.at("reseed").number, 30'000 * kMs);
    EXPECT_EQ(values.at("label").text, "");
    EXPECT_EQ(values.at("eager").number, 0);
    EXPECT_EQ(values.at("shards").place.file, "the plugin's default");
}

TEST(Options, AVariableInMillisecondsIsABareNumber) {
    const std::vector<queen_option> rows{
        {"pad", QUEEN_OPTION_DURATION, 0, "ns", "300ms", 0, 10'000 * kMs, "", "QUEEN_PAD_MS",
         nullptr},
        {"rest", QUEEN_OPTION_DURATION, 0, "ns", "1s", 0, INT64_MAX, "", "QUEEN_REST", nullptr}};
    const auto table = read_option_table(rows.data(), rows.size()).value();
    const auto pad = [&](const std::string& text) {
        const auto values = check_options(written({}), table, {{"QUEEN_PAD_MS", text}}, {});
        return values ? values->at("pad").number : -1;
    };
    EXPECT_EQ(pad("250"), 250 * kMs);
    EXPECT_EQ(pad("0"), 0);
    EXPECT_EQ(pad("2s"), 2'000 * kMs) << "with a unit it means what it says";
    EXPECT_EQ(pad("10001"), -1) << "beyond the range";
    EXPECT_EQ(pad("9223372036854775807"), -1);
    EXPECT_EQ(pad("-1"), -1);
    EXPECT_FALSE(check_options(written({}), table, {{"QUEEN_REST", "250"}}, {}))
        << "this name has no unit";
    EXPECT_FALSE(check_options(written({{"pad", "250"}}), table, {}, {})) << "nor has YAML";
}

TEST(Options, WrittenValuesKeepTheirPlace) {
    const auto values =
        check_options(written({{"reseed", "250ms"}, {"eager", "true"}}), table(), {}, {}).value();
    EXPECT_EQ(values.at("reseed").number, 250 * kMs);
    EXPECT_EQ(values.at("reseed").place.line, 7);
    EXPECT_EQ(values.at("eager").number, 1);
    EXPECT_EQ(values.at("eager").place.line, 8);
}

TEST(Options, AnUnknownKeyNamesTheKnownOnes) {
    EXPECT_EQ(problems({{"shrads", "4"}}),
              (settings::Problems{"queen.yaml:7:3: plugin 'hotlist': shrads: is not an option, the "
                                  "plugin knows shards, reseed, label and eager"}));
}

TEST(Options, APluginWithoutOptionsSaysSo) {
    const auto checked = check_options(written({{"depth", "1"}}), {}, {}, {});
    ASSERT_FALSE(checked.has_value());
    EXPECT_EQ(checked.error(),
              (settings::Problems{"queen.yaml:7:3: plugin 'hotlist': depth: is not an option, the "
                                  "plugin takes no options"}));
}

TEST(Options, ARepeatedKeyNamesTheFirstPlace) {
    EXPECT_EQ(problems({{"shards", "4"}, {"shards", "5"}}),
              (settings::Problems{"queen.yaml:8:3: plugin 'hotlist': shards: is given twice, first "
                                  "at queen.yaml:7:3"}));
}

TEST(Options, AListOrMapIsNoValue) {
    EXPECT_EQ(problems({{"eager", "", false}}),
              (settings::Problems{"queen.yaml:7:14: plugin 'hotlist': eager: is a list or a map, "
                                  "allowed is true or false"}));
}

TEST(Options, OutOfRangeNamesTheRange) {
    EXPECT_EQ(
        problems({{"shards", "0"}, {"reseed", "9ms"}}),
        (settings::Problems{
            "queen.yaml:7:14: plugin 'hotlist': shards: \"0\" is too small, allowed is 1 to 64 "
            "shards",
            "queen.yaml:8:14: plugin 'hotlist': reseed: \"9ms\" is too small, allowed is 10ms "
            "or more"}));
    EXPECT_EQ(problems({{"shards", "1"}, {"reseed", "10ms"}}), settings::Problems{});
    EXPECT_EQ(problems({{"shards", "64"}}), settings::Problems{});
}

TEST(Options, TheWrongTypeNamesTheRightOne) {
    EXPECT_EQ(
        problems({{"shards", "many"}, {"eager", "yes"}}),
        (settings::Problems{
            "queen.yaml:7:14: plugin 'hotlist': shards: \"many\" is not a whole number, allowed "
            "is 1 to 64 shards",
            "queen.yaml:8:14: plugin 'hotlist': eager: \"yes\" is not a boolean, allowed is "
            "true or false"}));
}

TEST(Options, AProblemOfTheEnvironmentNamesTheVariable) {
    EXPECT_EQ(
        problems({}, {{"QUEEN_SHARDS", "65"}}),
        (settings::Problems{"environment QUEEN_SHARDS: plugin 'hotlist': shards: \"65\" is too "
                            "large, allowed is 1 to 64 shards"}));
}

TEST(Options, AWrittenValueIsCheckedThoughTheEnvironmentOverridesIt) {
    EXPECT_EQ(problems({{"shards", "99"}}, {{"QUEEN_SHARDS", "2"}}).size(), 1u);
}

TEST(Options, EnvironmentThenYamlThenInheritedThenDefault) {
    const Inherited inherited{{"server_id", "core"}};
    const settings::Environment environment{{"QUEEN_LABEL", "env"}};
    const auto label = [&](std::vector<Line> lines, const settings::Environment& env,
                           const Inherited& core) {
        return check_options(written(std::move(lines)), table(), env, core)
            .value()
            .at("label")
            .text;
    };
    EXPECT_EQ(label({{"label", "yaml"}}, environment, inherited), "env");
    EXPECT_EQ(label({{"label", "yaml"}}, {}, inherited), "yaml");
    EXPECT_EQ(label({}, {}, inherited), "core");
    EXPECT_EQ(label({}, {}, {}), "");
}

TEST(Options, ARequiredOptionMustBeGiven) {
    auto all = rows();
    all[0].fallback = nullptr;
    const auto checked =
        check_options(written({}), read_option_table(all.data(), all.size()).value(), {}, {});
    ASSERT_FALSE(checked.has_value());
    EXPECT_EQ(checked.error(),
              (settings::Problems{"queen.yaml:5:7: plugin 'hotlist': shards: is required and not "
                                  "given, allowed is 1 to 64 shards"}));
}

TEST(OptionTable, BrokenTablesAreNamed) {
    const auto broken = [](queen_option row) {
        auto all = rows();
        all.push_back(row);
        const auto read = read_option_table(all.data(), all.size());
        return read ? "" : read.error().message;
    };
    EXPECT_EQ(broken({nullptr, QUEEN_OPTION_INT, 0, "", "1", 0, 1, "", nullptr, nullptr}),
              "has a broken option table: row 5 has no name");
    EXPECT_EQ(broken({"", QUEEN_OPTION_INT, 0, "", "1", 0, 1, "", nullptr, nullptr}),
              "has a broken option table: row 5 has no name");
    EXPECT_EQ(broken({"new", 5, 0, "", "1", 0, 1, "", nullptr, nullptr}),
              "has a broken option table: row 5 (new) has type 5, this broker knows 1 to 4");
    EXPECT_EQ(broken({"new", QUEEN_OPTION_INT, 0, "", "1", 2, 1, "", nullptr, nullptr}),
              "has a broken option table: row 5 (new) has a minimum above its maximum");
    EXPECT_EQ(broken({"eager", QUEEN_OPTION_BOOL, 0, "", "true", 0, 0, "", nullptr, nullptr}),
              "has a broken option table: row 5 repeats the name eager");
    EXPECT_EQ(broken({"new", QUEEN_OPTION_DURATION, 0, "", "5", 0, 9, "", nullptr, nullptr}),
              "has a broken option table: row 5 (new) refuses its own default: \"5\" has no unit; "
              "write a whole number with its unit, as 250ms, 30s, 5m or 1h, allowed is 0s to 9ns");
    EXPECT_EQ(read_option_table(nullptr, 3).error().message,
              "has a broken option table: it says it has 3 rows, and has none");
    EXPECT_EQ(read_option_table(nullptr, 5'000'000).error().message,
              "has a broken option table: it says it has 5000000 rows");
    EXPECT_TRUE(read_option_table(nullptr, 0).value().empty());
}

TEST(OptionTable, TextsThatAreAbsentAreEmpty) {
    const queen_option row{"x", QUEEN_OPTION_BOOL, 0,       nullptr, "true", 0,
                           0,   nullptr,           nullptr, nullptr};
    const auto read = read_option_table(&row, 1).value();
    EXPECT_EQ(read[0].unit, "");
    EXPECT_EQ(read[0].doc, "");
    EXPECT_EQ(read[0].env, "");
}

} // namespace
} // namespace queen::pluginhost
