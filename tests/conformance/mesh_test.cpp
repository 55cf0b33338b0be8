// The suite over a mesh in plain C, through the real host.
#include "loaded_plugin.hpp"
#include "mesh_conformance.hpp"

namespace queen::conformance {
namespace {

/// Instances of one library in one plugin host, each with a recording host of its own.
MeshSubject loaded(std::string name, std::string path) {
    return {std::move(name), [path](std::size_t count) {
                struct Kept {
                    plugin::ManualClock clock;
                    std::vector<std::shared_ptr<plugin::RecordingMeshHost>> heard;
                    std::unique_ptr<pluginhost::PluginHost> host;
                };
                const auto kept = std::make_shared<Kept>();
                std::vector<settings::PluginSettings> plugins;
                for (std::size_t n = 0; n < count; ++n) {
                    kept->heard.push_back(std::make_shared<plugin::RecordingMeshHost>());
                    plugins.push_back(plugin_settings(std::to_string(n), path));
                }
                pluginhost::HostServices services;
                services.clock = &kept->clock;
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
            }};
}

INSTANTIATE_TEST_SUITE_P(Ours, MeshConformance,
                         testing::Values(loaded("PlainC",
                                                QUEEN_TEST_FIXTURE_DIR "/plain_c_mesh.so")),
                         mesh_name_of);

} // namespace
} // namespace queen::conformance
