// Lets exceptions out of its C table, which abi.h forbids. The host survives it while both sides
// use one C++ runtime.
#include <queen/plugin/entry.hpp>

namespace {

namespace plugin = queen::plugin;

class Unused final : public plugin::CandidateSource {
public:
    plugin::Readiness peek(const plugin::Scope&) override { return {}; }
    plugin::Selection take(const plugin::Take&, plugin::Names&) override { return {}; }
    void settle(const plugin::Scope&, std::unique_ptr<plugin::Cookie>,
                std::span<const plugin::Verdict>) override {}
};

std::unique_ptr<plugin::CandidateSource> make(plugin::Host&) {
    return std::make_unique<Unused>();
}

std::int32_t leaking_peek(void*, const queen_scope*, queen_readiness*) {
    throw std::runtime_error("out of peek");
}
std::int32_t leaking_take(void*, const queen_take*, const queen_name_sink*, queen_selection*) {
    throw 42;
}

constexpr queen_candidates kTable = [] {
    queen_candidates table = plugin::candidates<make>;
    table.peek = leaking_peek;
    table.take = leaking_take;
    return table;
}();

} // namespace

QUEEN_PLUGIN("test.leaks_exception", "1.0.0", plugin::kNoOptions, QUEEN_CANDIDATES, kTable)
