// Has an option of every kind and says at creation what it got.
#include <queen/plugin/entry.hpp>

namespace {

namespace plugin = queen::plugin;
using namespace std::chrono_literals;

constexpr queen_option kOptions[] = {
    plugin::integer("shards",
                    {.unit = "shards", .fallback = "4", .min = 1, .max = 64, .env = "TEST_SHARDS"},
                    "Parts that do not share a lock."),
    plugin::duration("reseed", {.fallback = "30s", .min = 1s, .max = 1h}, "Time between walks."),
    plugin::text("label", {.fallback = "none", .inherits = "server_id"}, "Shown in the log."),
    plugin::boolean("eager", {.fallback = "false", .env = "TEST_EAGER"}, "Walk at once."),
    plugin::integer("depth", {.unit = "levels", .min = 0, .max = 9}, "Required."),
};

class Idle final : public plugin::CandidateSource {
public:
    plugin::Readiness peek(const plugin::Scope&) override {
        return {plugin::ReadyState::ask_store, 0, 0, queen::SteadyTime::max()};
    }
    plugin::Selection take(const plugin::Take&, plugin::Names&) override {
        return {plugin::Pick::scan, false, {}, nullptr};
    }
    void settle(const plugin::Scope&, std::unique_ptr<plugin::Cookie>,
                std::span<const plugin::Verdict>) override {}
};

std::unique_ptr<plugin::CandidateSource> make(plugin::Host& host) {
    host.log(plugin::LogLevel::info,
             "shards=" + std::to_string(host.size("shards")) +
                 " reseed_ns=" + std::to_string(host.duration("reseed").count()) + " label=" +
                 host.string("label") + " eager=" + std::to_string(host.boolean("eager")) +
                 " depth=" + std::to_string(host.integer("depth")));
    if (host.integer("depth") == 5) {
        throw plugin::ConfigError("depth", "5 is taken by somebody else");
    }
    if (host.integer("depth") == 6) {
        host.integer("label"); // of another type: throws
    }
    return std::make_unique<Idle>();
}

} // namespace

QUEEN_PLUGIN("test.options", "1.2.3", kOptions, QUEEN_CANDIDATES, plugin::candidates<make>)
