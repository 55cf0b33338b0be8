// Throws in every call but start(), through entry.hpp: the exceptions end inside the library.
#include <queen/plugin/entry.hpp>

namespace {

namespace plugin = queen::plugin;

class Throws final : public plugin::MeshLink {
public:
    explicit Throws(bool at_start) : at_start_(at_start) {}
    void start() override {
        if (at_start_) {
            throw std::runtime_error("the moon is in the wrong house");
        }
    }
    void stop() override { throw std::runtime_error("stop"); }
    bool listened() const noexcept override { return true; }
    void publish(std::span<const plugin::Hint>) override { throw 42; }
    void stats(plugin::Stats&) override { throw std::runtime_error("stats"); }
    void peers(plugin::Peers& out) override {
        out.add({});
        throw std::runtime_error("peers");
    }

private:
    const bool at_start_;
};

constexpr queen_option kOptions[] = {
    plugin::boolean("at_start", {.fallback = "false"}, "Whether start() throws as well.")};

std::unique_ptr<plugin::MeshLink> make(plugin::MeshPluginHost& host) {
    return std::make_unique<Throws>(host.boolean("at_start"));
}

} // namespace

QUEEN_PLUGIN("test.mesh_throws", "1.0.0", kOptions, QUEEN_MESH, plugin::mesh<make>)
