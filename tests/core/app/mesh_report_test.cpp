#include "app/mesh_report.hpp"
#include "support/recording_mesh.hpp"

#include <gtest/gtest.h>

namespace queen::app {
namespace {

using namespace std::chrono_literals;

std::string report(const broker::Meshes& meshes, const broker::PeerHints::Stats& hints,
                   const std::vector<pluginhost::PluginStatus>& plugins) {
    std::string text;
    json::Writer writer(text);
    write_mesh(writer, meshes, hints, 3, plugins);
    return text;
}

// ME-18
TEST(MeshReport, SumsUpThePeersOfAllMeshes) {
    auto own = std::make_shared<test::RecordingMesh>();
    own->known = {{.address = "b:6633",
                   .server_id = "b",
                   .connected = true,
                   .alive = true,
                   .silent = 120ms,
                   .sent = 5,
                   .received = 6,
                   .dropped = 7,
                   .queued = 8},
                  {.address = "c\"\x1b", .server_id = "", .sent = 1, .received = 2, .dropped = 3}};
    own->figures = {{"handshake_failures_total", 4}, {"servers_dead", 9}};
    auto other = std::make_shared<test::RecordingMesh>();
    broker::Meshes meshes({{"net", own}, {"pg", other}});
    broker::PeerHints::Stats hints;
    hints.heard.add(plugin::HintKind::moved);
    hints.nobody.add(2);
    hints.missed.add();
    pluginhost::PluginStatus net;
    net.name = "net";
    net.id = "queen.mesh";
    net.version = "1.0.0";
    net.loaded = true;
    net.verdict = "loaded";
    pluginhost::PluginStatus source;
    source.name = "hotlist";
    EXPECT_EQ(
        report(meshes, hints, {source, net}),
        R"({"messages_sent":6,"messages_received":8,"messages_dropped":10,"handshake_failures":4,)"
        R"("servers_alive":1,"servers_dead":9,"peers":[{"mesh":"net","address":"b:6633",)"
        R"("server_id":"b","connected":true,"alive":true,"silent_ms":120,"sent":5,"received":6,)"
        R"("dropped":7,"queued":8},{"mesh":"net","address":"c\"\u001b","server_id":"",)"
        R"("connected":false,"alive":false,"silent_ms":null,"sent":1,"received":2,"dropped":3,)"
        R"("queued":0}],"hints":{"published":{"stored":0,"moved":0,"configured":0,"deleted":0,)"
        R"("switched":0},"heard":{"stored":0,"moved":1,"configured":0,"deleted":0,"switched":0},)"
        R"("refused":{"malformed":0,"other_tenant":0,"no_tenant":2,"overflow":0},"missed":1,)"
        R"("waiting":3},)"
        R"("meshes":[{"name":"net","id":"queen.mesh","version":"1.0.0","loaded":true,)"
        R"("paused":false,"verdict":"loaded","faults":{},"stats":{"handshake_failures_total":4,)"
        R"("servers_dead":9}}]})");
}

TEST(MeshReport, IsZerosAndNoPeersWithoutAMesh) {
    const auto document = json::Document::parse(report(broker::Meshes{}, {}, {}));
    ASSERT_TRUE(document);
    EXPECT_EQ(document->root()["messages_sent"].integer(), 0);
    EXPECT_EQ(document->root()["servers_alive"].integer(), 0);
    EXPECT_EQ(document->root()["peers"].size(), 0u);
}

} // namespace
} // namespace queen::app
