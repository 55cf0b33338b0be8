// pluginhost/mesh_adapter.hpp - a loaded mesh table as the core's port. What the core says goes to
// the plugin as it is; what the plugin hears is checked hint by hint before the core sees it.
//
// A hint may always be lost, so every fault ends in that: a failed publish() is not repeated, a
// paused mesh is told nothing, and a hint that is none is left out. All of it is counted.
#pragma once
#include "pluginhost/instance.hpp"

#include <queen/plugin/mesh.hpp>

#include <atomic>
#include <memory>
#include <span>

namespace queen::pluginhost {

/// Invariant: stop() follows each start() that succeeded, once, and comes before destroy().
class MeshInstance final : public Instance {
public:
    static constexpr const char* kKind = QUEEN_MESH;
    static constexpr auto read = read_mesh_table;
    /// @thread main
    static tl::expected<std::shared_ptr<MeshInstance>, std::string> create(Parts parts) {
        return make<MeshInstance>(std::move(parts));
    }
    ~MeshInstance() override;

    /// @errors throws the problem, ready to print. @thread main
    void start();
    void stop() noexcept; ///< @thread main
    bool listened() noexcept;
    void publish(std::span<const plugin::Hint> hints) noexcept;
    void stats(plugin::Stats& out) { collect(table_.stats, out); }
    void peers(plugin::Peers& out);

private:
    friend class Instance;
    MeshInstance(Parts parts, const queen_mesh& table)
        : Instance(std::move(parts)), table_(table) {}
    const void* extension(std::string_view id) const noexcept override;

    void hear(const queen_hint* hints, std::size_t count);
    static void host_heard(const queen_host* host, const queen_hint* hints, size_t count) noexcept;
    static void host_missed(const queen_host* host) noexcept;
    static const queen_host_mesh kHostMesh;

    const queen_mesh table_;
    std::atomic<bool> open_ = false;     ///< hints may come: from start() to the end of stop()
    std::atomic<bool> running_ = false;  ///< hints may go: started and not being stopped
    std::atomic<bool> listened_ = false; ///< what the plugin said last
};

/// The port. Before start() and after stop() it is silent.
/// @thread start() and stop() main; the rest any
/// @source PLG-10, PLG-11
class MeshAdapter final : public plugin::MeshLink {
public:
    explicit MeshAdapter(std::shared_ptr<MeshInstance> instance) : instance_(std::move(instance)) {}

    void start() override { instance_->start(); }
    void stop() override { instance_->stop(); }
    /// While the plugin is paused: as before, so that what it misses is counted by publish().
    bool listened() const noexcept override { return instance_->listened(); }
    void publish(std::span<const plugin::Hint> hints) override { instance_->publish(hints); }
    void stats(plugin::Stats& out) override { instance_->stats(out); }
    void peers(plugin::Peers& out) override { instance_->peers(out); }

private:
    const std::shared_ptr<MeshInstance> instance_;
};

} // namespace queen::pluginhost
