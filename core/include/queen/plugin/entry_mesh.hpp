// queen/plugin/entry_mesh.hpp - a MeshLink as the C table of abi.h.
#pragma once
#include <queen/plugin/entry_common.hpp>
#include <queen/plugin/mesh.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace queen::plugin {

/// One mesh's view of the broker: also its MeshHost.
class MeshPluginHost final : public HostView, public MeshHost {
public:
    /// @errors throws when the broker lacks what a mesh needs
    explicit MeshPluginHost(const queen_host* host)
        : HostView(host),
          mesh_(offered<queen_host_mesh>(QUEEN_HOST_MESH, offsetof(queen_host_mesh, missed))) {}

    void heard(std::span<const Hint> hints) override {
        const Converted<queen_hint> converted(hints);
        mesh_.heard(raw(), converted.data(), converted.size());
    }
    void missed() override {
        if (mesh_.size >= sizeof mesh_) { // an older broker looks with its next floor
            mesh_.missed(raw());
        }
    }

private:
    const queen_host_mesh& mesh_;
};

namespace detail {
using MeshInstance = Instance<MeshPluginHost, MeshLink>;

namespace mesh {

class SinkPeers final : public Peers {
public:
    SinkPeers(void* sink, queen_peer_fn add) noexcept : sink_(sink), add_(add) {}
    void add(const Peer& peer) override {
        const queen_peer raw = to_c(peer);
        add_(sink_, &raw);
    }

private:
    void* sink_;
    queen_peer_fn add_;
};

inline std::int32_t start(void* self, queen_error* error) noexcept {
    try {
        MeshInstance::of(self).start();
        return 0;
    } catch (...) {
        report_current(error);
        return 1;
    }
}

inline void stop(void* self) noexcept {
    guarded([&] { MeshInstance::of(self).stop(); });
}

inline std::int32_t listened(void* self) noexcept {
    return MeshInstance::of(self).listened() ? 1 : 0;
}

inline std::int32_t publish(void* self, const queen_hint* hints, std::size_t count) noexcept {
    return guarded([&] {
        std::vector<Hint> known; // of a newer broker, some may be of kinds that are news here
        known.reserve(count);
        for (std::size_t i = 0; i < count; ++i) {
            if (const auto hint = hint_from_c(hints[i])) {
                known.push_back(*hint);
            }
        }
        MeshInstance::of(self).publish(known);
    });
}

inline void peers(void* self, void* sink, queen_peer_fn add) noexcept {
    guarded([&] {
        SinkPeers out(sink, add);
        MeshInstance::of(self).peers(out);
    });
}

} // namespace mesh
} // namespace detail

/// The C table of a mesh that `Make(MeshPluginHost&)` builds: Make returns
/// std::unique_ptr<MeshLink>, or throws ConfigError to refuse an option.
template <auto Make>
inline constexpr queen_mesh mesh{
    sizeof(queen_mesh),
    0,
    detail::MeshInstance::create<Make>,
    detail::MeshInstance::destroy,
    detail::mesh::start,
    detail::mesh::stop,
    detail::mesh::listened,
    detail::mesh::publish,
    detail::MeshInstance::stats,
    detail::mesh::peers,
};

} // namespace queen::plugin
