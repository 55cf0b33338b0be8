#include "broker/meshes.hpp"

#include <algorithm>

namespace queen::broker {
namespace {

std::size_t index_of(plugin::HintKind kind) noexcept {
    return static_cast<std::size_t>(kind) - static_cast<std::size_t>(kHintKinds.front());
}

} // namespace

std::string_view to_string(plugin::HintKind kind) noexcept {
    switch (kind) {
    case plugin::HintKind::stored:
        return "stored";
    case plugin::HintKind::moved:
        return "moved";
    case plugin::HintKind::configured:
        return "configured";
    case plugin::HintKind::deleted:
        return "deleted";
    case plugin::HintKind::switched:
        return "switched";
    }
    return "unknown";
}

void HintCounts::add(plugin::HintKind kind) noexcept {
    counts_.at(index_of(kind)).add();
}

std::uint64_t HintCounts::value(plugin::HintKind kind) const noexcept {
    return counts_.at(index_of(kind)).value();
}

bool Meshes::listened() const noexcept {
    return std::any_of(entries_.begin(), entries_.end(),
                       [](const Entry& entry) { return entry.link->listened(); });
}

void Meshes::publish(std::span<const plugin::Hint> hints) {
    bool given = false;
    for (const auto& entry : entries_) {
        if (entry.link->listened()) {
            entry.link->publish(hints);
            given = true;
        }
    }
    if (given) {
        for (const auto& hint : hints) {
            published_.add(hint.kind);
        }
    }
}

} // namespace queen::broker
