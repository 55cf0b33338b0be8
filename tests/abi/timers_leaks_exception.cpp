// Lets exceptions out of its C table, which abi.h forbids. The host survives it while both sides
// use one C++ runtime.
#include <queen/plugin/entry.hpp>

namespace {

namespace plugin = queen::plugin;

class Unused final : public plugin::TimerDriver {
public:
    void stop() override {}
    void scheduled(queen::SteadyTime) override {}
    void answered(plugin::TimerCall, const plugin::TimerAnswer&) override {}
    queen::SteadyTime tick(queen::SteadyTime) override { return queen::SteadyTime::max(); }
};

std::unique_ptr<plugin::TimerDriver> make(plugin::TimerPluginHost&) {
    return std::make_unique<Unused>();
}

std::int32_t leaking_answered(void*, std::uint64_t, const queen_timer_answer*) {
    throw std::runtime_error("out of answered");
}
std::int32_t leaking_scheduled(void*, std::int64_t) {
    throw 42;
}
std::int64_t leaking_tick(void*, std::int64_t) {
    throw std::runtime_error("out of tick");
}
void leaking_stop(void*) {
    throw std::runtime_error("out of stop");
}

constexpr queen_timers kTable = [] {
    queen_timers table = plugin::timers<make>;
    table.answered = leaking_answered;
    table.scheduled = leaking_scheduled;
    table.tick = leaking_tick;
    table.stop = leaking_stop;
    return table;
}();

} // namespace

QUEEN_PLUGIN("test.timers_leaks_exception", "1.0.0", plugin::kNoOptions, QUEEN_TIMERS, kTable)
