#include "mesh_conformance.hpp"
#include "murmur.hpp"

namespace queen::conformance {

INSTANTIATE_TEST_SUITE_P(Murmur, MeshConformance,
                         testing::Values(MeshSubject{
                             "Class",
                             [](std::size_t count) {
                                 LoadedMeshes all;
                                 for (std::size_t n = 0; n < count; ++n) {
                                     auto host = std::make_shared<plugin::RecordingMeshHost>();
                                     auto link = std::make_shared<acme::murmur::Murmur>(1, *host);
                                     all.nodes.push_back({std::move(link), std::move(host)});
                                 }
                                 return all;
                             }}),
                         mesh_name_of);

} // namespace queen::conformance
