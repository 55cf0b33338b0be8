#include "murmur.hpp"

#include <queen/plugin/entry.hpp>

namespace {

namespace plugin = queen::plugin;

constexpr queen_option kOptions[] = {
    plugin::integer("channel", {.fallback = "1", .min = 1, .max = 99},
                    "Links of one channel hear each other."),
};

std::unique_ptr<plugin::MeshLink> make(plugin::MeshPluginHost& host) {
    return std::make_unique<acme::murmur::Murmur>(host.integer("channel"), host);
}

} // namespace

QUEEN_PLUGIN("com.acme.murmur", "1.0.0", kOptions, QUEEN_MESH, plugin::mesh<make>)
