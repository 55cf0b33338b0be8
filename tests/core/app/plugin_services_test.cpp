#include "app/plugin_services.hpp"
#include "support/manual_clock.hpp"
#include "support/manual_ticker.hpp"
#include "support/manual_workers.hpp"
#include "support/scripted_store.hpp"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace queen::app {
namespace {

using namespace std::chrono_literals;

constexpr plugin::Scope kScope{{"t\x1forders", "t", "orders"}, "workers"};

/// A real library over a scripted store: from host.reseed() to the plugin and back.
class PluginServicesTest : public testing::Test {
protected:
    PluginServicesTest() {
        store_.on_reseed_page = [this](ReseedQuery query, Done<ReseedPage> done) {
            queries_.push_back(std::move(query));
            pages_.push_back(std::move(done));
        };
        settings::PluginSettings settings;
        settings.name = "ring";
        settings.path = std::string(QUEEN_TEST_FIXTURE_DIR) + "/reseeding.so";
        EXPECT_EQ(host_.load({settings}), settings::Problems{});
        source_ = host_.source("ring");
    }
    double figure(const std::string& name) {
        struct Sink final : plugin::Stats {
            void add(std::string_view of, double value) override { all[std::string(of)] = value; }
            std::map<std::string, double> all;
        } sink;
        source_->stats(sink);
        return sink.all.at(name);
    }
    static ReseedPage page(std::size_t rows) {
        ReseedPage page{.exists = true, .delay_seconds = 9};
        page.rows.resize(rows, {"p", {}});
        return page;
    }

    test::ManualClock clock_;
    test::ManualTicker ticker_{clock_};
    test::ManualWorkers workers_;
    test::ScriptedStore store_;
    broker::Parking parking_{ticker_, clock_, {}};
    PluginServices services_{parking_, store_, workers_, ticker_, clock_, {.wait = 30s}};
    pluginhost::PluginHost host_{{}, services_.services()};
    std::shared_ptr<plugin::CandidateSource> source_;
    std::vector<ReseedQuery> queries_;
    std::vector<Done<ReseedPage>> pages_;
};

TEST_F(PluginServicesTest, AWalkThatAPluginAsksForReachesIt) {
    services_.attach(host_);
    workers_.run_all();
    ASSERT_EQ(queries_.size(), 1u) << "asked for while the plugin was being made";
    EXPECT_EQ(queries_[0].queue, "early");
    source_->peek(kScope);
    workers_.run_all();
    ASSERT_EQ(queries_.size(), 2u);
    EXPECT_EQ(queries_[1].tenant, "t");
    EXPECT_EQ(queries_[1].queue, "orders");
    EXPECT_EQ(queries_[1].group, "workers");
    pages_[1](page(3));
    EXPECT_EQ(figure("delay"), 9);
    EXPECT_EQ(figure("pages"), 1);
    EXPECT_EQ(figure("rows"), 3);
    EXPECT_EQ(figure("complete"), 1);
    EXPECT_EQ(services_.reseeds().full, 1u);
    EXPECT_EQ(services_.reseeds().walking, 1u);
    pages_[0](page(0));
    services_.detach();
}

TEST_F(PluginServicesTest, AfterAStopPluginsHearThatTheirWalksEnded) {
    services_.attach(host_);
    workers_.run_all();
    source_->peek(kScope);
    services_.stop();
    source_->peek(kScope);
    workers_.run_all();
    pages_[0](fail(Errc::shutting_down, "the broker stops"));
    EXPECT_EQ(figure("asked"), 3);
    EXPECT_EQ(figure("incomplete"), 3);
    EXPECT_EQ(queries_.size(), 1u);
    services_.detach();
}

TEST_F(PluginServicesTest, AnUnloadedPluginHearsOfTheWalkThatItLeftBehind) {
    services_.attach(host_);
    workers_.run_all();
    ASSERT_TRUE(host_.unload("ring"));
    source_->peek(kScope); // a pop that still holds it
    workers_.run_all();
    EXPECT_EQ(queries_.size(), 1u) << "nobody of that name";
    pages_[0](page(1));
    EXPECT_EQ(figure("complete"), 1);
    services_.detach();
}

/// Each reading is 2 ms after the last one, so every call takes that long.
struct TickingClock final : Clock {
    SteadyTime now() const noexcept override { return at += 2ms; }
    mutable SteadyTime at{1h};
};

// PLG-6: a walk of three full pages must not pause the plugin that asked for it.
TEST_F(PluginServicesTest, APageMayTakeTheLongerTheMoreItNames) {
    const TickingClock clock;
    auto services = services_.services();
    services.clock = &clock;
    services.thread_time = nullptr; // calls are slow by that clock alone
    pluginhost::PluginHost host({}, services);
    settings::PluginSettings settings;
    settings.name = "ring";
    settings.path = std::string(QUEEN_TEST_FIXTURE_DIR) + "/reseeding.so";
    ASSERT_EQ(host.load({settings}), settings::Problems{});
    const auto source = host.source("ring");
    const std::vector<plugin::ReseedRow> rows(1'001, {"p", {}});
    for (int i = 0; i < 4; ++i) {
        EXPECT_TRUE(source->reseed_page(kScope, 1, rows)) << "1 ms for each thousand begun";
    }
    for (int i = 0; i < 3; ++i) {
        EXPECT_TRUE(source->reseed_page(kScope, 1, {rows.data(), 1'000}));
    }
    EXPECT_FALSE(source->reseed_page(kScope, 1, rows)) << "slow three times, so left alone";
}

} // namespace
} // namespace queen::app
