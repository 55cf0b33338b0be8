// The suite over the mesh of LISTEN and NOTIFY, as a class and through the real host. Each set of
// links has a database of its own.
#include "loaded_meshes.hpp"
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
    return loaded_meshes(
        QUEEN_PLUGIN_DIR "/meshpg.so", count,
        [](std::size_t n, std::size_t) {
            return Values{{"server_id", "broker " + std::to_string(n)}};
        },
        new_database());
}

INSTANTIATE_TEST_SUITE_P(Ours, MeshConformance,
                         testing::Values(MeshSubject{"Notify", of_class},
                                         MeshSubject{"NotifyLoaded", of_library}),
                         mesh_name_of);

} // namespace
} // namespace queen::conformance
