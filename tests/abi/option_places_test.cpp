// Options of a loaded plugin: what YAML and the environment say, what the instance gets.
#include "abi/host_fixture.hpp"

namespace queen::pluginhost {
namespace {

class PluginOptions : public HostTest {
protected:
    settings::PluginSettings
    with(std::initializer_list<std::pair<const char*, const char*>> options) {
        settings::PluginSettings plugin = named("opts", fixture_path("good_options"));
        int line = 10;
        for (const auto& [name, text] : options) {
            plugin.options.push_back(
                {name, {text, true, {"queen.yaml", line, 20}, {"queen.yaml", line, 9}}});
            ++line;
        }
        return plugin;
    }
};

TEST_F(PluginOptions, AnInstanceGetsDefaultsAndWhatWasWritten) {
    ASSERT_EQ(host().load({with({{"depth", "3"}, {"reseed", "1500ms"}})}), settings::Problems{});
    EXPECT_EQ(logged("shards=4 reseed_ns=1500000000 label=none eager=0 depth=3"), 1u);
}

TEST_F(PluginOptions, TheEnvironmentBeatsYamlAndACoreSettingBeatsTheDefault) {
    config_.environment = {{"TEST_SHARDS", "8"}, {"TEST_EAGER", "Yes"}};
    config_.inherited = {{"server_id", "queen-7"}};
    ASSERT_EQ(host().load({with({{"depth", "3"}, {"shards", "16"}})}), settings::Problems{});
    EXPECT_EQ(logged("shards=8 reseed_ns=30000000000 label=queen-7 eager=1 depth=3"), 1u);
}

TEST_F(PluginOptions, AllProblemsAreToldAtOnceWithTheirPlaces) {
    const auto problems =
        host().load({with({{"shards", "65"}, {"reseed", "30"}, {"shrads", "1"}})});
    EXPECT_EQ(
        problems,
        (settings::Problems{
            "queen.yaml:12:9: plugin 'opts': shrads: is not an option, the plugin knows "
            "shards, reseed, label, eager and depth",
            "queen.yaml:10:20: plugin 'opts': shards: \"65\" is too large, allowed is 1 to 64 "
            "shards",
            "queen.yaml:11:20: plugin 'opts': reseed: \"30\" has no unit; write a whole number "
            "with its unit, as 250ms, 30s, 5m or 1h, allowed is 1s to 1h",
            "queen.yaml:3:5: plugin 'opts': depth: is required and not given, allowed is 0 "
            "to 9 levels"}));
    EXPECT_EQ(logged("destroyed"), 0u);
    EXPECT_TRUE(log_.empty()) << "no instance was made";
}

TEST_F(PluginOptions, AReasonOfTheConstructorGetsThePlaceOfItsOption) {
    EXPECT_EQ(host().load({with({{"shards", "1"}, {"depth", "5"}})}),
              (settings::Problems{
                  "queen.yaml:11:20: plugin 'opts': depth: 5 is taken by somebody else"}));
}

TEST_F(PluginOptions, ReadingAnOptionAsAnotherTypeIsRefused) {
    const auto problems = host().load({with({{"depth", "6"}})});
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_NE(problems[0].find("label: is not a number in the plugin's own option table"),
              std::string::npos)
        << problems[0];
}

} // namespace
} // namespace queen::pluginhost
