// murmur.hpp - a mesh of the links of one process, which hear each other directly.
#pragma once
#include <queen/plugin/mesh.hpp>

#include <atomic>
#include <cstdint>

namespace acme::murmur {

/// Links with one and the same `channel` hear each other.
/// Locks: one mutex over all links is held while the others are told; their hosts take a copy.
class Murmur final : public queen::plugin::MeshLink {
public:
    Murmur(std::int64_t channel, queen::plugin::MeshHost& host) : channel_(channel), host_(host) {}
    ~Murmur() override { Murmur::stop(); }
    void start() override;
    void stop() override;
    bool listened() const noexcept override;
    void publish(std::span<const queen::plugin::Hint> hints) override;
    void stats(queen::plugin::Stats& out) override;
    void peers(queen::plugin::Peers& out) override;

private:
    const std::int64_t channel_;
    queen::plugin::MeshHost& host_;
    std::atomic<std::uint64_t> published_ = 0;
};

} // namespace acme::murmur
