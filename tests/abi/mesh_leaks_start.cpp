// Lets an exception out of start().
#include <queen/plugin/entry.hpp>

namespace {

namespace plugin = queen::plugin;

class Unused final : public plugin::MeshLink {
public:
    void start() override {}
    void stop() override {}
    bool listened() const noexcept override { return true; }
    void publish(std::span<const plugin::Hint>) override {}
};

std::unique_ptr<plugin::MeshLink> make(plugin::MeshPluginHost&) {
    return std::make_unique<Unused>();
}

std::int32_t leaking_start(void*, queen_error*) {
    throw std::runtime_error("out of start");
}

constexpr queen_mesh kTable = [] {
    queen_mesh table = plugin::mesh<make>;
    table.start = leaking_start;
    return table;
}();

} // namespace

QUEEN_PLUGIN("test.mesh_leaks_start", "1.0.0", plugin::kNoOptions, QUEEN_MESH, kTable)
