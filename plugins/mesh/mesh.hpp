// mesh/mesh.hpp - the mesh as the broker sees it: a network on a thread of its own.
#pragma once
#include "network.hpp"
#include "options.hpp"

#include <queen/plugin/mesh.hpp>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

namespace queen::mesh {

/// Hints over TCP to and from every configured peer. Hints only: whatever is lost, doubled or late,
/// brokers look for themselves soon after (ME-1).
///
/// Without peers, or switched off, there is neither a port nor a thread.
class Mesh final : public plugin::MeshLink {
public:
    /// @errors ConfigError; std::system_error when the kernel gives no descriptors
    Mesh(Options options, const Clock& clock, plugin::MeshHost& host, Log log,
         std::unique_ptr<Resolver> resolver = make_system_resolver());
    ~Mesh() override;

    void start() override;
    /// What was published before it is written to who reads it, for a tenth of a second at most.
    void stop() override;
    bool listened() const noexcept override {
        return network_ != nullptr && network_->outbox().listened();
    }
    void publish(std::span<const plugin::Hint> hints) override;
    void stats(plugin::Stats& out) override;
    void peers(plugin::Peers& out) override;

    std::uint16_t port() const noexcept; ///< after start(); 0: not listening

private:
    void warn() const;
    void run() noexcept;

    const Options options_;
    const Clock& clock_;
    const Log log_;
    std::unique_ptr<Resolver> resolver_;
    std::unique_ptr<Network> network_; ///< none when the mesh is off
    std::mutex stop_mutex_;
    std::condition_variable stop_;
    std::atomic<bool> stopping_{false};
    std::thread thread_;
};

} // namespace queen::mesh
