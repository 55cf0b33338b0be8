// tests/conformance/mesh_conformance.hpp - what every mesh must keep to, whoever wrote it and
// whatever its hints travel over. Depends on the public plugin headers and GoogleTest alone, so a
// vendor adds mesh_conformance.cpp to a test program and instantiates the suite:
//
//     INSTANTIATE_TEST_SUITE_P(Carrier, MeshConformance, testing::Values(MeshSubject{"Class",
//         [](std::size_t count) {
//             LoadedMeshes all;
//             ... count times: all.nodes.push_back({link, host}), each with the others as peers
//             return all;
//         }}), mesh_name_of);
#pragma once
#include <queen/plugin/testing.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

namespace queen::conformance {

struct MeshNode {
    std::shared_ptr<plugin::MeshLink> link;
    std::shared_ptr<plugin::RecordingMeshHost> host; ///< that the link tells what it hears
};

struct LoadedMeshes {
    std::vector<MeshNode> nodes; ///< not started; each knows how to reach all others
    /// Whether each link reaches each other; asked again and again after the start. Empty: peers()
    /// of each link tells, which then has to list the others.
    std::function<bool()> connected;
    std::shared_ptr<void> keeps;         ///< whatever must outlive the links, or nullptr
    std::function<std::string()> faults; ///< what the host counted against them, "" for none
};

struct MeshSubject {
    std::string name;                              ///< letters and digits
    std::function<LoadedMeshes(std::size_t)> load; ///< that many new links
    friend std::ostream& operator<<(std::ostream& out, const MeshSubject& subject) {
        return out << subject.name;
    }
};

inline std::string mesh_name_of(const testing::TestParamInfo<MeshSubject>& info) {
    return info.param.name;
}

class MeshConformance : public testing::TestWithParam<MeshSubject> {
protected:
    /// Makes `count` links, starts them and returns when they reach each other.
    void start(std::size_t count);
    void TearDown() override;

    plugin::MeshLink& link(std::size_t n) { return *loaded_.nodes[n].link; }
    plugin::RecordingMeshHost& host(std::size_t n) { return *loaded_.nodes[n].host; }
    void publish(std::size_t from, const std::vector<plugin::OwnedHint>& hints);
    /// Each of these, and nothing else, however often, was heard at `n`.
    void expect_heard(std::size_t n, const std::vector<plugin::OwnedHint>& hints);
    void stop(std::size_t n);

    LoadedMeshes loaded_;
    std::vector<bool> running_;
};

} // namespace queen::conformance
