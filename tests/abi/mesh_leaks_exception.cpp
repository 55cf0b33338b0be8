// Lets exceptions out of its C table, which abi.h forbids, once it has said what it knows of the
// database. The host survives it while both sides use one C++ runtime.
#include <queen/plugin/entry.hpp>

namespace {

namespace plugin = queen::plugin;

class Unused final : public plugin::MeshLink {
public:
    explicit Unused(const plugin::MeshPluginHost& host) {
        host.log(plugin::LogLevel::info, "conninfo=" + host.conninfo());
    }
    void start() override {}
    void stop() override {}
    bool listened() const noexcept override { return true; }
    void publish(std::span<const plugin::Hint>) override {}
};

std::unique_ptr<plugin::MeshLink> make(plugin::MeshPluginHost& host) {
    return std::make_unique<Unused>(host);
}

void leaking_stop(void*) {
    throw std::runtime_error("out of stop");
}
std::int32_t leaking_listened(void*) {
    throw std::runtime_error("out of listened");
}
std::int32_t leaking_publish(void*, const queen_hint*, std::size_t) {
    throw 42;
}

constexpr queen_mesh kTable = [] {
    queen_mesh table = plugin::mesh<make>;
    table.stop = leaking_stop;
    table.listened = leaking_listened;
    table.publish = leaking_publish;
    return table;
}();

} // namespace

QUEEN_PLUGIN("test.mesh_leaks_exception", "1.0.0", plugin::kNoOptions, QUEEN_MESH, kTable)
