#pragma once
#include "base/counter.hpp"

#include <queen/plugin/mesh.hpp>

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace queen::broker {

using MeshPtr = std::shared_ptr<plugin::MeshLink>;

inline constexpr std::array kHintKinds{plugin::HintKind::stored, plugin::HintKind::moved,
                                       plugin::HintKind::configured, plugin::HintKind::deleted,
                                       plugin::HintKind::switched};
std::string_view to_string(plugin::HintKind kind) noexcept;

/// Hints counted by kind.
class HintCounts {
public:
    void add(plugin::HintKind kind) noexcept;
    std::uint64_t value(plugin::HintKind kind) const noexcept;

private:
    std::array<Counter, kHintKinds.size()> counts_;
};

/// The loaded meshes: often none, mostly one, several while an operator moves from one to another.
/// Fixed after start.
/// @thread any
class Meshes {
public:
    struct Entry {
        std::string name; ///< of the plugin in YAML
        MeshPtr link;
    };
    explicit Meshes(std::vector<Entry> entries = {}) : entries_(std::move(entries)) {}

    /// Whether a hint would go anywhere. Takes no lock (ME-10).
    bool listened() const noexcept;
    /// To each mesh that is listened to; none waits.
    void publish(std::span<const plugin::Hint> hints);
    const std::vector<Entry>& all() const noexcept { return entries_; }
    const HintCounts& published() const noexcept { return published_; }

private:
    const std::vector<Entry> entries_;
    HintCounts published_; ///< given to at least one mesh; each hint once
};

} // namespace queen::broker
