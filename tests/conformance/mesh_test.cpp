// The suite over a mesh in plain C and over the TCP mesh, the latter as a class and through the
// real host.
#include "loaded_meshes.hpp"
#include "mesh/mesh.hpp"

#include <unistd.h>

namespace queen::conformance {
namespace {

/// An address of the loopback that no other process uses: its number, and n, are in it.
std::string own_address(std::size_t n) {
    const auto pid = static_cast<std::size_t>(::getpid());
    return "127." + std::to_string(pid >> 14 & 0xff) + "." + std::to_string(pid >> 6 & 0xff) + "." +
           std::to_string((pid & 0x3f) << 2 | n);
}

/// All addresses but the n-th, as the option takes them.
std::string others_than(std::size_t n, std::size_t count) {
    std::string out;
    for (std::size_t other = 0; other < count; ++other) {
        out += other == n ? "" : own_address(other) + ",";
    }
    return out;
}

constexpr const char* kSecret = "a secret that is long enough";

/// The class, each with a thread of its own.
MeshSubject tcp_class(std::string name, std::string secret) {
    return {std::move(name), [secret](std::size_t count) {
                LoadedMeshes all;
                for (std::size_t n = 0; n < count; ++n) {
                    mesh::Options options;
                    options.server_id = "broker " + std::to_string(n);
                    options.listen.host = own_address(n);
                    options.peers = mesh::parse_peers(others_than(n, count), options.listen.port);
                    options.secret = secret;
                    const auto host = std::make_shared<plugin::RecordingMeshHost>();
                    all.nodes.push_back(
                        {std::make_shared<mesh::Mesh>(options, SystemClock::instance(), *host,
                                                      [](plugin::LogLevel, std::string_view) {}),
                         host});
                }
                return all;
            }};
}

Values tcp_options(std::size_t n, std::size_t count) {
    return {{"listen", own_address(n)},
            {"peers", others_than(n, count)},
            {"secret", kSecret},
            {"server_id", "broker " + std::to_string(n)}};
}

MeshSubject loaded(
    std::string name, std::string path,
    const OptionsOf& options_of = [](std::size_t, std::size_t) { return Values{}; }) {
    return {std::move(name), [path = std::move(path), options_of](std::size_t count) {
                return loaded_meshes(path, count, options_of);
            }};
}

INSTANTIATE_TEST_SUITE_P(
    Ours, MeshConformance,
    testing::Values(loaded("PlainC", QUEEN_TEST_FIXTURE_DIR "/plain_c_mesh.so"),
                    tcp_class("Tcp", kSecret), tcp_class("TcpOpen", ""),
                    loaded("TcpLoaded", QUEEN_PLUGIN_DIR "/mesh.so", tcp_options)),
    mesh_name_of);

} // namespace
} // namespace queen::conformance
