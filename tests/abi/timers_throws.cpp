// Throws in every call, through entry.hpp: the exceptions end inside the library.
#include <queen/plugin/entry.hpp>

namespace {

namespace plugin = queen::plugin;

class Throws final : public plugin::TimerDriver {
public:
    void stop() override { throw std::runtime_error("stop"); }
    void scheduled(queen::SteadyTime) override { throw std::runtime_error("scheduled"); }
    void answered(plugin::TimerCall, const plugin::TimerAnswer&) override { throw 42; }
    queen::SteadyTime tick(queen::SteadyTime) override { throw std::runtime_error("tick"); }
    void stats(plugin::Stats&) override { throw std::runtime_error("stats"); }
};

std::unique_ptr<plugin::TimerDriver> make(plugin::TimerPluginHost&) {
    return std::make_unique<Throws>();
}

} // namespace

QUEEN_PLUGIN("test.timers_throws", "1.0.0", plugin::kNoOptions, QUEEN_TIMERS, plugin::timers<make>)
