#include "command_line.hpp"
#include "scripted_server.hpp"

#include <gmock/gmock.h>

namespace queen::ctl::testing {
namespace {

using ::testing::HasSubstr;

Outcome at(const ScriptedServer& server, std::vector<std::string> words) {
    words.insert(words.end(), {"--url", server.url()});
    return command_line(words, {}, {{"HOME", "/home/ada"}});
}

constexpr std::string_view kStats =
    R"({"messages_sent":12,"messages_received":9,"messages_dropped":1,"handshake_failures":2,)"
    R"("servers_alive":1,"servers_dead":1,"peers":[{"mesh":"mesh","address":"b:6633",)"
    R"("server_id":"b","connected":true,"alive":true,"silent_ms":120,"sent":12,"received":9,)"
    R"("dropped":0,"queued":0},{"mesh":"mesh","address":"c\u001b:6633","server_id":"",)"
    R"("connected":false,"alive":false,"silent_ms":null,"sent":0,"received":0,"dropped":1,)"
    R"("queued":0}],"hints":{"published":{"stored":7,"moved":1},"heard":{"stored":5,"moved":0},)"
    R"("refused":{"malformed":3,"overflow":0},"waiting":0},"meshes":[{"name":"mesh",)"
    R"("id":"queen.mesh","version":"1.0.0","loaded":true,"paused":false,"verdict":"loaded",)"
    R"("faults":{},"stats":{}}]})";

TEST(MeshCommand, ShowsPeersAndWhatWasToldAndHeard) {
    ScriptedServer server(in_order({{200, std::string(kStats), {}, false}}));
    const Outcome outcome = at(server, {"mesh"});
    EXPECT_EQ(outcome.exit, Exit::ok) << outcome.err;
    EXPECT_EQ(outcome.out,
              "MESH  PLUGIN      VERSION  STATE\n"
              "mesh  queen.mesh  1.0.0    loaded\n"
              "\n"
              "PEER        SERVER  STATE      SILENT  SENT  RECEIVED  DROPPED  QUEUED\n"
              "b:6633      b       connected  120 ms    12         9        0       0\n"
              "c\\x1b:6633          dead        never     0         0        1       0\n"
              "\n"
              "HINT    PUBLISHED  HEARD\n"
              "stored          7      5\n"
              "moved           1      0\n"
              "left out, malformed: 3\n"
              "handshakes that failed: 2\n");
    EXPECT_EQ(server.seen().at(0).target, "/internal/api/inter-instance/stats");
}

TEST(MeshCommand, PrintsTheAnswerAsItIsWithJson) {
    ScriptedServer server(in_order({{200, std::string(kStats), {}, false}}));
    EXPECT_EQ(at(server, {"mesh", "--json"}).out, std::string(kStats) + "\n");
}

TEST(MeshCommand, SaysSoWhenThereIsNone) {
    ScriptedServer server(in_order(
        {{200, R"({"peers":[],"hints":{},"meshes":[]})", {}, false},
         {200, R"({"peers":[],"hints":{},"meshes":[{"name":"m","paused":true}]})", {}, false},
         {403, R"({"error":"Insufficient permissions"})", {}, false}}));
    EXPECT_EQ(at(server, {"mesh"}).out,
              "this broker has no mesh: others hear of what it does when they look\n");
    EXPECT_THAT(at(server, {"mesh"}).out, HasSubstr("no peers\n"));
    EXPECT_EQ(at(server, {"mesh"}).exit, Exit::failed);
    EXPECT_EQ(at(server, {"mesh", "x"}).exit, Exit::usage);
}

} // namespace
} // namespace queen::ctl::testing
