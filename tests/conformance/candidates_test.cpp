// The suite over our sources: hotlist and sqlscan as classes, hotlist.so, sqlscan.so and a plugin
// in plain C through the real host.
#include "../../plugins/hotlist/hotlist.hpp"
#include "../../plugins/sqlscan/sqlscan.hpp"
#include "candidates_conformance.hpp"
#include "loaded_plugin.hpp"

namespace queen::conformance {
namespace {

Subject sqlscan_class() {
    return {"SqlScanClass", [] {
                auto clock = std::make_shared<plugin::ManualClock>();
                auto source = std::make_shared<sqlscan::SqlScan>(sqlscan::Options{}, *clock);
                return Loaded{clock, std::move(source), nullptr, {}};
            }};
}

Subject hotlist_class() {
    return {"HotListClass", [] {
                auto clock = std::make_shared<plugin::ManualClock>();
                auto host = std::make_shared<plugin::RecordingHost>();
                auto source = std::make_shared<hotlist::HotList>(hotlist::Options{}, *clock, *host);
                return Loaded{clock, std::move(source), host, {}};
            }};
}

Subject loaded(std::string name, std::string path) {
    return {std::move(name), [path] {
                auto clock = std::make_shared<plugin::ManualClock>();
                pluginhost::HostServices services;
                services.clock = clock.get();
                auto host = std::make_shared<pluginhost::PluginHost>(patient(), services);
                const auto problems = host->load({plugin_settings("subject", path)});
                EXPECT_TRUE(problems.empty()) << problems.front();
                auto faults = [host] { return faults_of(*host); };
                return Loaded{clock, host->source("subject"), host, std::move(faults)};
            }};
}

INSTANTIATE_TEST_SUITE_P(Ours, CandidateConformance,
                         testing::Values(hotlist_class(), sqlscan_class(),
                                         loaded("HotListLibrary", QUEEN_PLUGIN_DIR "/hotlist.so"),
                                         loaded("SqlScanLibrary", QUEEN_PLUGIN_DIR "/sqlscan.so"),
                                         loaded("PlainC", QUEEN_TEST_FIXTURE_DIR "/plain_c.so")),
                         name_of);

} // namespace
} // namespace queen::conformance
