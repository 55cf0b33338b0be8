// The suite over our sweeper, as a class and as timers.so, and over a driver in plain C, both
// through the real host.
#include "loaded_plugin.hpp"
#include "sweeper.hpp"
#include "timers_conformance.hpp"

namespace queen::conformance {
namespace {

TimersSubject loaded(std::string name, std::string path) {
    return {
        std::move(name), [path](const std::shared_ptr<ScriptedTimers>& store,
                                const std::shared_ptr<plugin::ManualClock>& clock) {
            pluginhost::HostServices services;
            services.clock = clock.get();
            services.tick_at = [weak = std::weak_ptr(store)](SteadyTime when) {
                if (const auto alive = weak.lock()) {
                    alive->tick_at(when);
                }
            };
            auto host = std::make_shared<pluginhost::PluginHost>(patient(), services);
            const auto problems = host->load({plugin_settings("subject", path)});
            EXPECT_TRUE(problems.empty()) << problems.front();
            host->serve_timers(store);
            return LoadedDriver{host->timer_driver(), host, [host] { return faults_of(*host); }};
        }};
}

TimersSubject our_class() {
    return {"SweeperClass", [](const std::shared_ptr<ScriptedTimers>& store,
                               const std::shared_ptr<plugin::ManualClock>& clock) {
                return LoadedDriver{
                    std::make_shared<timers::Sweeper>(timers::Options{}, *clock, *store,
                                                      [](plugin::LogLevel, std::string_view) {}),
                    nullptr,
                    {}};
            }};
}

INSTANTIATE_TEST_SUITE_P(
    Ours, TimersConformance,
    testing::Values(our_class(), loaded("SweeperLibrary", QUEEN_PLUGIN_DIR "/timers.so"),
                    loaded("PlainC", QUEEN_TEST_FIXTURE_DIR "/plain_c_timers.so")),
    timers_name_of);

} // namespace
} // namespace queen::conformance
