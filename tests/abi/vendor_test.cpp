// The vendor's plugins, built out of tree by the test before this one, in the real host.
#include "abi/host_fixture.hpp"

#include <queen/plugin/testing.hpp>

#include <cstdlib>

namespace queen::pluginhost {
namespace {

class Vendor : public HostTest {
protected:
    void SetUp() override {
        const char* folder = std::getenv("QUEEN_VENDOR_DIR");
        ASSERT_NE(folder, nullptr) << "names the folder with the vendor's plugin";
        folder_ = folder;
        path_ = folder_ + "/acme_recent.so";
    }
    std::string folder_, path_;
};

TEST_F(Vendor, ItsPluginLoadsAndServes) {
    settings::PluginSettings plugin = named("recent", path_);
    plugin.options.push_back({"capacity", {"2", true, {"queen.yaml", 4, 20}, {}}});
    ASSERT_EQ(host().load({plugin}), settings::Problems{});
    EXPECT_EQ(host().status()[0].id, "com.acme.recent");
    const auto source = host().source("recent");
    for (const char* partition : {"p1", "p2", "p3"}) {
        const plugin::Mark mark{partition, {}, 1};
        source->mark(kOrders, "", plugin::Origin::push, {&mark, 1});
    }
    plugin::NameList names(16);
    auto made = source->take({kScope, 0, 1, 10, 16}, names);
    EXPECT_EQ(names.partitions(), (std::vector<std::string>{"p3", "p2"}));
    source->settle(kScope, std::move(made.cookie), {});
    clock_.advance(std::chrono::seconds(31));
    EXPECT_EQ(source->peek(kScope).state, plugin::ReadyState::ask_store);
    EXPECT_EQ(faults("recent").total(), 0u);
}

TEST_F(Vendor, ItsOptionsAreCheckedAgainstItsTable) {
    settings::PluginSettings plugin = named("recent", path_);
    plugin.options.push_back({"max_age", {"30", true, {"queen.yaml", 4, 20}, {}}});
    const auto problems = host().load({plugin});
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_TRUE(
        problems[0].starts_with("queen.yaml:4:20: plugin 'recent': max_age: \"30\" has no"));
}

TEST_F(Vendor, ItsMeshCarriesHints) {
    const std::string path = folder_ + "/acme_murmur.so";
    ASSERT_EQ(host().load({named("here", path), named("there", path)}), settings::Problems{});
    const auto meshes = host().meshes();
    ASSERT_EQ(meshes.size(), 2u);
    meshes[0].mesh->start();
    EXPECT_FALSE(meshes[0].mesh->listened());
    meshes[1].mesh->start();
    EXPECT_TRUE(meshes[0].mesh->listened());
    plugin::Hint hint;
    hint.queue = "orders";
    hint.partition = "p1";
    meshes[0].mesh->publish({&hint, 1});
    EXPECT_EQ(peers_said_.hints(), std::vector{plugin::OwnedHint(hint)});
    EXPECT_EQ(heard_by_, "there");
    EXPECT_EQ(faults("here").total() + faults("there").total(), 0u);
}

TEST_F(Vendor, ItsDriverAsksWhatIsDue) {
    ASSERT_EQ(host().load({named("beat", folder_ + "/acme_beat.so")}), settings::Problems{});
    const auto store = std::make_shared<plugin::RecordingTimerHost>();
    host().serve_timers(store);
    const SteadyTime now = clock_.now();
    EXPECT_EQ(host().run_ticks(now), now + std::chrono::seconds(1));
    ASSERT_EQ(store->calls().size(), 1u);
    EXPECT_EQ(store->calls()[0].verb, plugin::RecordingTimerHost::Verb::due);
    host().timer_driver()->answered(store->calls()[0].call, {});
    host().timer_driver()->stop();
    EXPECT_EQ(faults("beat").total(), 0u);
}

} // namespace
} // namespace queen::pluginhost
