// tests/abi/host_fixture.hpp - a plugin host over a clock that stands still, with a log that tests
// can read. A fixture that logs "step" moves the clock by `step`.
#pragma once
#include "pluginhost/plugin_host.hpp"
#include "support/manual_clock.hpp"

#include <queen/plugin/testing.hpp>

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace queen::pluginhost {

inline std::string fixture_path(const std::string& name) {
    return std::string(QUEEN_TEST_FIXTURE_DIR) + "/" + name + ".so";
}

/// As settings would read it from line `line` of queen.yaml.
inline settings::PluginSettings named(const std::string& name, const std::string& path,
                                      int line = 3) {
    settings::PluginSettings plugin;
    plugin.name = name;
    plugin.path = path;
    plugin.place = {"queen.yaml", line, 5};
    return plugin;
}

class HostTest : public testing::Test {
protected:
    struct Line {
        std::string plugin;
        queen_log_level level;
        std::string text;
    };
    struct Reseed {
        std::string source, key, group;
        plugin::Ticket ticket;
        Nanoseconds window;
    };

    HostServices services() {
        HostServices services;
        services.clock = &clock_;
        services.log = [this](std::string_view plugin, queen_log_level level,
                              std::string_view text) {
            if (text == "step") {
                clock_.advance(step_);
            }
            const std::lock_guard lock(mutex_);
            log_.push_back({std::string(plugin), level, std::string(text)});
        };
        services.wake = [this](const plugin::Queue& queue, std::string_view group,
                               std::uint64_t ready) {
            wakes_.push_back(std::string(queue.key) + "|" + std::string(group) + "|" +
                             std::to_string(ready));
        };
        services.reseed = [this](std::string_view source, const plugin::Scope& scope,
                                 plugin::Ticket ticket, Nanoseconds window) {
            reseeds_.push_back({std::string(source), std::string(scope.queue.key),
                                std::string(scope.group), ticket, window});
        };
        services.tick_at = [this](SteadyTime when) { ticks_.push_back(when); };
        services.heard = [this](std::string_view plugin, std::span<const plugin::Hint> hints) {
            heard_by_ = plugin;
            peers_said_.heard(hints);
        };
        services.missed = [this](std::string_view plugin) {
            heard_by_ = plugin;
            peers_said_.missed();
        };
        services.conninfo = conninfo_;
        return services;
    }
    PluginHost& host() {
        if (host_ == nullptr) {
            host_ = std::make_unique<PluginHost>(config_, services());
        }
        return *host_;
    }
    /// The source of a fixture that must load.
    std::shared_ptr<plugin::CandidateSource> load(const std::string& fixture) {
        const auto problems = host().load({named(fixture, fixture_path(fixture))});
        EXPECT_EQ(problems, settings::Problems{});
        return host().source(fixture);
    }
    /// Loads a fixture that must load.
    void loaded(const std::string& fixture) {
        EXPECT_EQ(host().load({named(fixture, fixture_path(fixture))}), settings::Problems{});
    }
    std::shared_ptr<plugin::MeshLink> mesh(const std::string& fixture) {
        loaded(fixture);
        return host().meshes().empty() ? nullptr : host().meshes().back().mesh;
    }
    std::shared_ptr<plugin::TimerDriver> driver(const std::string& fixture) {
        loaded(fixture);
        return host().timer_driver();
    }
    FaultCounts faults(const std::string& name) {
        for (const PluginStatus& status : host().status()) {
            if (status.name == name) {
                return status.faults;
            }
        }
        ADD_FAILURE() << "no plugin " << name;
        return {};
    }
    std::size_t logged(const std::string& text) {
        const std::lock_guard lock(mutex_);
        return static_cast<std::size_t>(std::count_if(
            log_.begin(), log_.end(), [&](const Line& line) { return line.text == text; }));
    }
    template <class Plugin>
    static std::map<std::string, double> figures(Plugin& plugin) {
        struct Sink final : plugin::Stats {
            void add(std::string_view name, double value) override {
                all[std::string(name)] = value;
            }
            std::map<std::string, double> all;
        } sink;
        plugin.stats(sink);
        return sink.all;
    }

    test::ManualClock clock_;
    Nanoseconds step_ = std::chrono::milliseconds(2);
    PluginHost::Config config_;
    std::mutex mutex_;
    std::vector<Line> log_;
    std::vector<std::string> wakes_;
    std::vector<Reseed> reseeds_;
    std::vector<SteadyTime> ticks_;
    std::string heard_by_;
    plugin::RecordingMeshHost peers_said_;
    std::string conninfo_;
    std::unique_ptr<PluginHost> host_;
};

inline constexpr plugin::Queue kOrders{"tenant\x1forders", "tenant", "orders"};
inline constexpr plugin::Scope kScope{kOrders, "workers"};

} // namespace queen::pluginhost
