// A loaded mesh, good or misbehaving: a hint may be lost, the broker may not.
#include "abi/host_fixture.hpp"

namespace queen::pluginhost {
namespace {

using namespace std::chrono_literals;
using plugin::Hint;
using plugin::HintKind;

struct PeerList final : plugin::Peers {
    void add(const plugin::Peer& peer) override { all.push_back(peer); }
    std::vector<plugin::Peer> all; ///< of fixtures that name constants
};

class MeshFault : public HostTest {
protected:
    void publish(plugin::MeshLink& mesh, std::size_t count = 1) {
        Hint hint;
        hint.queue = "orders";
        mesh.publish(std::vector<Hint>(count, hint));
    }
    std::string refusal_of(const std::string& fixture) {
        const auto problems = host().load({named("acme", fixture_path(fixture))});
        const std::string start = "queen.yaml:3:5: plugin 'acme': " + fixture_path(fixture) + " ";
        EXPECT_EQ(problems.size(), 1u);
        return problems.empty() || !problems[0].starts_with(start)
                   ? ""
                   : problems[0].substr(start.size());
    }
};

TEST_F(MeshFault, AGoodMeshHasNone) {
    const auto mesh = this->mesh("mesh_good");
    ASSERT_NE(mesh, nullptr);
    EXPECT_TRUE(host().sources().empty());
    EXPECT_EQ(host().source("mesh_good"), nullptr);
    EXPECT_EQ(host().timer_driver(), nullptr);
    EXPECT_EQ(host().status()[0].kinds, std::vector<std::string>{"queen.mesh/1"});
    mesh->start();
    EXPECT_EQ(logged("started"), 1u);
    EXPECT_TRUE(mesh->listened());
    publish(*mesh, 3);
    EXPECT_EQ(figures(*mesh)["published_total"], 3.0);
    PeerList peers;
    mesh->peers(peers);
    ASSERT_EQ(peers.all.size(), 1u);
    EXPECT_EQ(peers.all[0].address, "10.0.0.2:6633");
    EXPECT_EQ(peers.all[0].server_id, "b");
    EXPECT_TRUE(peers.all[0].connected && peers.all[0].alive);
    EXPECT_EQ(peers.all[0].silent, 5ns);
    EXPECT_EQ(peers.all[0].sent, 1u);
    EXPECT_EQ(peers.all[0].received, 2u);
    EXPECT_EQ(peers.all[0].dropped, 3u);
    EXPECT_EQ(peers.all[0].queued, 4u);
    mesh->stop();
    EXPECT_EQ(logged("stopped"), 1u);
    EXPECT_EQ(faults("mesh_good").total(), 0u);
    EXPECT_EQ(host().run_ticks(clock_.now()), SteadyTime::max()) << "a mesh has no tick";
}

TEST_F(MeshFault, BeforeStartAndAfterStopAMeshIsSilent) {
    const auto mesh = this->mesh("mesh_good");
    EXPECT_FALSE(mesh->listened());
    publish(*mesh);
    mesh->stop(); // never started: nothing to stop
    EXPECT_EQ(logged("stopped"), 0u);
    mesh->start();
    mesh->stop();
    mesh->stop();
    EXPECT_EQ(logged("stopped"), 1u);
    EXPECT_FALSE(mesh->listened());
    publish(*mesh);
    EXPECT_EQ(figures(*mesh)["published_total"], 0.0);
    EXPECT_EQ(figures(*mesh)["listened_total"], 0.0);
}

TEST_F(MeshFault, AMeshThatIsDroppedWhileItRunsIsStoppedFirst) {
    auto mesh = this->mesh("mesh_good");
    mesh->start();
    ASSERT_TRUE(host().unload("mesh_good"));
    EXPECT_TRUE(host().meshes().empty());
    EXPECT_EQ(logged("stopped"), 0u) << "somebody holds it still";
    mesh.reset();
    ASSERT_EQ(logged("stopped"), 1u);
    ASSERT_EQ(logged("destroyed"), 1u);
    EXPECT_EQ(log_.back().text, "destroyed");
}

TEST_F(MeshFault, SeveralMeshesStandBesideSources) {
    ASSERT_TRUE(
        host()
            .load({named("a", fixture_path("mesh_good")), named("source", fixture_path("plain_c")),
                   named("b", fixture_path("mesh_good"))})
            .empty());
    ASSERT_EQ(host().meshes().size(), 2u);
    EXPECT_EQ(host().meshes()[0].name, "a");
    EXPECT_EQ(host().meshes()[1].name, "b");
    EXPECT_EQ(host().sources().size(), 1u);
}

TEST_F(MeshFault, AMeshThatCannotStartNamesItsOption) {
    settings::PluginSettings plugin = named("acme", fixture_path("mesh_bad_start"));
    plugin.options.push_back({"port", {"7", true, {"queen.yaml", 8, 14}, {"queen.yaml", 8, 7}}});
    ASSERT_TRUE(host().load({plugin}).empty());
    const auto mesh = host().meshes()[0].mesh;
    try {
        mesh->start();
        FAIL() << "it started";
    } catch (const std::exception& e) {
        EXPECT_STREQ(e.what(), "queen.yaml:8:14: plugin 'acme': port: no thread can be made");
    }
    publish(*mesh);
    mesh->stop();
    EXPECT_EQ(logged("stopped"), 0u);
    EXPECT_EQ(figures(*mesh)["published_total"], 0.0);
}

TEST_F(MeshFault, AStartThatThrowsHasItsWords) {
    settings::PluginSettings plugin = named("acme", fixture_path("mesh_throws"));
    plugin.options.push_back({"at_start", {"true", true, {"queen.yaml", 8, 14}, {}}});
    ASSERT_TRUE(host().load({plugin}).empty());
    try {
        host().meshes()[0].mesh->start();
        FAIL() << "it started";
    } catch (const std::exception& e) {
        EXPECT_STREQ(e.what(), "queen.yaml:3:5: plugin 'acme': the moon is in the wrong house");
    }
}

TEST_F(MeshFault, ExceptionsEndInsideTheLibrary) {
    const auto mesh = this->mesh("mesh_throws");
    mesh->start();
    publish(*mesh);
    PeerList peers;
    mesh->peers(peers);
    EXPECT_EQ(peers.all.size(), 1u) << "what came before it threw";
    EXPECT_TRUE(figures(*mesh).empty());
    mesh->stop();
    EXPECT_EQ(faults("mesh_throws")[Fault::error_return], 1u);
    EXPECT_EQ(faults("mesh_throws")[Fault::exception], 0u);
}

TEST_F(MeshFault, ExceptionsThatLeaveTheLibraryAreCaughtByTheHost) {
    const auto mesh = this->mesh("mesh_leaks_exception");
    mesh->start();
    EXPECT_FALSE(mesh->listened());
    publish(*mesh);
    mesh->stop();
    EXPECT_EQ(faults("mesh_leaks_exception")[Fault::exception], 3u);
    EXPECT_EQ(logged("fault=exception count=1 in=\"listened: out of listened\""), 1u);
}

TEST_F(MeshFault, AnExceptionThatLeavesStartStopsTheBoot) {
    const auto mesh = this->mesh("mesh_leaks_start");
    try {
        mesh->start();
        FAIL() << "it started";
    } catch (const std::exception& e) {
        EXPECT_STREQ(e.what(), "queen.yaml:3:5: plugin 'mesh_leaks_start': cannot start: out of "
                               "start");
    }
    EXPECT_FALSE(mesh->listened());
}

TEST_F(MeshFault, TheDatabaseIsOfferedWhenTheBrokerHasOneToOffer) {
    loaded("mesh_leaks_exception");
    EXPECT_EQ(logged("conninfo="), 1u);
    host_.reset();
    conninfo_ = "host=/run/queen password=secret";
    loaded("mesh_leaks_exception");
    EXPECT_EQ(logged("conninfo=host=/run/queen password=secret"), 1u);
}

TEST_F(MeshFault, AFailedPublishIsNotRepeated) {
    const auto mesh = this->mesh("mesh_bad_returns");
    mesh->start();
    publish(*mesh, 2);
    EXPECT_EQ(figures(*mesh)["published_total"], 2.0);
    EXPECT_EQ(faults("mesh_bad_returns")[Fault::error_return], 1u);
}

TEST_F(MeshFault, WhatIsNoHintIsLeftOutAndCounted) {
    const auto mesh = this->mesh("mesh_bad_hints");
    EXPECT_EQ(faults("mesh_bad_hints")[Fault::out_of_turn], 2u) << "said before its start";
    EXPECT_TRUE(peers_said_.hints().empty());
    EXPECT_EQ(peers_said_.times_missed(), 0u);
    mesh->start();
    publish(*mesh);
    const auto said = peers_said_.hints();
    ASSERT_EQ(said.size(), 2u);
    EXPECT_EQ(heard_by_, "mesh_bad_hints");
    EXPECT_EQ(said[0].kind, HintKind::stored);
    EXPECT_EQ(said[0].partition, std::string(255, 'x'));
    EXPECT_EQ(said[1].kind, HintKind::switched);
    EXPECT_EQ(said[1].subject, "maintenance");
    EXPECT_TRUE(said[1].enabled);
    EXPECT_EQ(faults("mesh_bad_hints")[Fault::bad_hint], 9u);
    EXPECT_EQ(peers_said_.times_missed(), 1u);
    EXPECT_EQ(faults("mesh_bad_hints")[Fault::out_of_turn], 2u);
}

TEST_F(MeshFault, FiguresAndPeersWithoutProperNamesAreLeftOut) {
    const auto mesh = this->mesh("mesh_bad_figures");
    mesh->start();
    EXPECT_EQ(figures(*mesh).size(), 2u);
    EXPECT_EQ(faults("mesh_bad_figures")[Fault::bad_name], 3u);
    PeerList peers;
    mesh->peers(peers);
    ASSERT_EQ(peers.all.size(), 2u);
    EXPECT_EQ(peers.all[0].address, "10.0.0.3:6633");
    EXPECT_EQ(peers.all[0].silent, 0ns) << "less than nothing is nothing";
    EXPECT_EQ(faults("mesh_bad_figures")[Fault::bad_name], 6u);
}

TEST_F(MeshFault, ThreeSlowPublishesPauseTheMeshAndItsHintsAreCounted) {
    const auto mesh = this->mesh("mesh_bad_slow");
    mesh->start();
    EXPECT_TRUE(mesh->listened());
    for (int i = 0; i < 3; ++i) {
        publish(*mesh);
    }
    EXPECT_TRUE(host().status()[0].paused);
    EXPECT_EQ(faults("mesh_bad_slow")[Fault::slow_call], 3u);
    EXPECT_TRUE(mesh->listened()) << "as before, so that what is lost is counted";
    publish(*mesh, 5);
    publish(*mesh, 2);
    EXPECT_EQ(faults("mesh_bad_slow")[Fault::dropped_hint], 7u);
    clock_.advance(10s);
    step_ = 0ns; // cured
    publish(*mesh);
    EXPECT_EQ(figures(*mesh)["published_total"], 4.0);
    EXPECT_EQ(figures(*mesh)["listened_total"], 1.0) << "not asked during the pause";
}

TEST_F(MeshFault, ThousandsOfHintsHaveThatManyTimesTheBudget) {
    const auto mesh = this->mesh("mesh_bad_slow");
    mesh->start();
    for (int i = 0; i < 5; ++i) {
        publish(*mesh, 2'000); // 2 ms of work
    }
    EXPECT_EQ(faults("mesh_bad_slow").total(), 0u);
}

TEST_F(MeshFault, AShortTableOfAnOlderMinorLoads) {
    const auto mesh = this->mesh("mesh_short_table");
    mesh->start();
    publish(*mesh);
    PeerList peers;
    mesh->peers(peers);
    EXPECT_TRUE(peers.all.empty());
    EXPECT_TRUE(figures(*mesh).empty());
    EXPECT_EQ(faults("mesh_short_table").total(), 0u);
}

TEST_F(MeshFault, TablesThatAreNotWholeAreRefused) {
    EXPECT_EQ(refusal_of("mesh_bad_table_size"),
              "has a queen.mesh/1 table of 48 bytes, which ends before publish");
    EXPECT_EQ(refusal_of("mesh_bad_null_publish"), "has a queen.mesh/1 table without publish");
    EXPECT_FALSE(inspect(fixture_path("mesh_bad_null_publish")).fits);
    EXPECT_TRUE(inspect(fixture_path("mesh_good")).fits);
}

TEST_F(MeshFault, ALibraryOfTwoKindsIsRefused) {
    EXPECT_EQ(refusal_of("bad_two_kinds"), "offers queen.candidates/1 and queen.mesh/1, this "
                                           "broker takes one kind from a library");
}

TEST_F(MeshFault, AnOlderBrokerRefusesItsMinor) {
    config_.build.abi_minor = 0;
    EXPECT_EQ(refusal_of("mesh_throws"), "needs plugin ABI 1.1 or newer, this broker has 1.0");
    EXPECT_NE(load("good_cookies"), nullptr) << "a source made by entry.hpp needs no more than 1.0";
}

} // namespace
} // namespace queen::pluginhost
