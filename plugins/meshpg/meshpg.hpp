// meshpg/meshpg.hpp - the mesh over LISTEN and NOTIFY, as the broker sees it: a channel on a thread
// of its own.
#pragma once
#include "channel.hpp"
#include "options.hpp"

#include <queen/plugin/mesh.hpp>

#include <atomic>
#include <memory>
#include <thread>

namespace queen::meshpg {

/// For brokers that reach the database but not each other. Slower than TCP, and each notification
/// is a transaction of the database that serves the messages.
class MeshPg final : public plugin::MeshLink {
public:
    /// @errors ConfigError
    MeshPg(Options options, const Clock& clock, plugin::MeshHost& host, Log log,
           Session::Connect connect = Session::by_libpq);
    ~MeshPg() override;

    void start() override;
    void stop() override;
    bool listened() const noexcept override { return channel_.listened(); }
    void publish(std::span<const plugin::Hint> hints) override { channel_.publish(hints); }
    void stats(plugin::Stats& out) override { channel_.stats(out); }
    void peers(plugin::Peers& out) override { channel_.peers(out); }

private:
    void run() noexcept;

    const Options options_;
    const Log log_;
    Channel channel_;
    std::atomic<bool> stopping_{false};
    std::thread thread_;
};

} // namespace queen::meshpg
