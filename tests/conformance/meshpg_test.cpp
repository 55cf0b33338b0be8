// The suite over the mesh of LISTEN and NOTIFY, as a class and through the real host. Each set of
// links has a database of its own.
#include "base/clock.hpp"
#include "loaded_plugin.hpp"
#include "mesh_conformance.hpp"
#include "meshpg/meshpg.hpp"
#include "support/postgres.hpp"

namespace queen::conformance {
namespace {

using test::TestPostgres;

std::string new_database() {
    return TestPostgres::shared().conninfo(TestPostgres::shared().create_database());
}

LoadedMeshes of_class(std::size_t count) {
    LoadedMeshes all;
    const std::string conninfo = new_database();
    for (std::size_t n = 0; n < count; ++n) {
        meshpg::Options options;
        options.server_id = "broker " + std::to_string(n);
        options.conninfo = conninfo;
        const auto host = std::make_shared<plugin::RecordingMeshHost>();
        all.nodes.push_back(
            {std::make_shared<meshpg::MeshPg>(options, SystemClock::instance(), *host,
                                              [](plugin::LogLevel, std::string_view) {}),
             host});
    }
    return all;
}

LoadedMeshes of_library(std::size_t count) {
    struct Kept {
        std::vector<std::shared_ptr<plugin::RecordingMeshHost>> heard;
        std::unique_ptr<pluginhost::PluginHost> host;
    };
    const auto kept = std::make_shared<Kept>();
    std::vector<settings::PluginSettings> plugins;
    for (std::size_t n = 0; n < count; ++n) {
        const std::string number = std::to_string(n);
        kept->heard.push_back(std::make_shared<plugin::RecordingMeshHost>());
        plugins.push_back(plugin_settings(number, QUEEN_PLUGIN_DIR "/meshpg.so"));
        plugins.back().options.push_back({"server_id", {"broker " + number, true, {}, {}}});
    }
    pluginhost::HostServices services;
    services.clock = &SystemClock::instance();
    services.conninfo = new_database();
    services.heard = [to = kept->heard](std::string_view plugin,
                                        std::span<const plugin::Hint> hints) {
        to.at(std::stoul(std::string(plugin)))->heard(hints);
    };
    kept->host = std::make_unique<pluginhost::PluginHost>(patient(), services);
    const auto problems = kept->host->load(plugins);
    EXPECT_TRUE(problems.empty()) << problems.front();
    LoadedMeshes all;
    for (const auto& [number, mesh] : kept->host->meshes()) {
        all.nodes.push_back({mesh, kept->heard.at(std::stoul(number))});
    }
    all.keeps = kept;
    all.faults = [kept] { return faults_of(*kept->host); };
    return all;
}

INSTANTIATE_TEST_SUITE_P(Ours, MeshConformance,
                         testing::Values(MeshSubject{"Notify", of_class},
                                         MeshSubject{"NotifyLoaded", of_library}),
                         mesh_name_of);

} // namespace
} // namespace queen::conformance
