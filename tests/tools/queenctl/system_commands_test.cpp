#include "command_line.hpp"
#include "scripted_server.hpp"

#include <gmock/gmock.h>

namespace queen::ctl::testing {
namespace {

Outcome at(const ScriptedServer& server, std::vector<std::string> words) {
    words.insert(words.end(), {"--url", server.url()});
    return command_line(words);
}

TEST(SystemCommands, MaintenanceShowsBothSwitches) {
    ScriptedServer server(
        in_order({{200,
                   R"({"maintenanceMode":false,"popMaintenanceMode":true,"bufferedMessages":0})",
                   {},
                   false}}));
    const Outcome outcome = at(server, {"maintenance"});
    EXPECT_EQ(outcome.exit, Exit::ok) << outcome.err;
    EXPECT_EQ(outcome.out, "MAINTENANCE\n"
                           "push         off\n"
                           "pop          on\n");
    EXPECT_EQ(server.seen().at(0).target, "/api/v1/system/maintenance");
}

TEST(SystemCommands, MaintenanceSwitches) {
    ScriptedServer server(
        in_order({{200, R"({"popMaintenanceMode":true,"message":"on\n"})", {}, false},
                  {200, R"({"popMaintenanceMode":false,"message":"off"})", {}, false},
                  {501, R"({"error":"needs a disk spool","code":"not_implemented"})", {}, false}}));
    EXPECT_EQ(at(server, {"maintenance", "pop", "on"}).out, "on\\x0a\n");
    EXPECT_EQ(server.seen().at(0).target, "/api/v1/system/maintenance/pop");
    EXPECT_EQ(server.seen().at(0).body, R"({"enabled":true})");
    EXPECT_EQ(at(server, {"maintenance", "pop", "off", "--json"}).out,
              "{\"popMaintenanceMode\":false,\"message\":\"off\"}\n");
    EXPECT_EQ(server.seen().at(1).body, R"({"enabled":false})");
    const Outcome refused = at(server, {"maintenance", "push", "on"});
    EXPECT_EQ(refused.exit, Exit::failed);
    EXPECT_EQ(refused.err, "queenctl maintenance: the broker answered 501: needs a disk spool\n");
    EXPECT_EQ(server.seen().at(2).target, "/api/v1/system/maintenance");
}

TEST(SystemCommands, WhatIsNoSwitchIsNotSent) {
    ScriptedServer server(in_order({}));
    for (const std::vector<std::string>& words :
         std::vector<std::vector<std::string>>{{"maintenance", "pop"},
                                               {"maintenance", "pop", "yes"},
                                               {"maintenance", "ack", "on"},
                                               {"maintenance", "pop", "on", "now"},
                                               {"stats", "refresh", "q"}}) {
        EXPECT_EQ(at(server, words).exit, Exit::usage) << words.back();
    }
    EXPECT_TRUE(server.seen().empty());
}

TEST(SystemCommands, ARefreshSaysWhatItDid) {
    ScriptedServer server(in_order({{200,
                                     R"({"success":true,"refreshed":true,"queues":3,)"
                                     R"("partitions":12,"written":2,"tookMs":41})",
                                     {},
                                     false}}));
    const Outcome outcome = at(server, {"stats", "refresh"});
    EXPECT_EQ(outcome.exit, Exit::ok) << outcome.err;
    EXPECT_EQ(outcome.out,
              "queues: 3, partitions: 12, rows that had changed: 2, milliseconds: 41\n");
    EXPECT_EQ(server.seen().at(0).method, "POST");
    EXPECT_EQ(server.seen().at(0).target, "/api/v1/stats/refresh");
}

} // namespace
} // namespace queen::ctl::testing
