// meshpg/outbox.hpp - hints that wait for the next notification: as JSON, each once.
#pragma once
#include <queen/plugin/mesh.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace queen::meshpg {

/// Invariant: holds nothing while nobody listens, and never more than `most` hints.
/// Locks: mutex_ is a leaf, held to append or to swap.
class Outbox {
public:
    /// @param wake called by the thread that left the first hint; holds no lock
    Outbox(std::size_t most, std::function<void()> wake);

    /// @thread any. One relaxed load.
    bool listened() const noexcept { return listened_.load(std::memory_order_relaxed); }
    /// @thread any. @return how many were dropped because it is full
    std::size_t publish(std::span<const plugin::Hint> hints);
    std::size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }

    // The mesh's thread.
    /// When nobody listens any more, what waits is discarded. @return how many
    std::size_t set_listened(bool listened);
    /// Up to `most` payloads of at most `bytes`, each `head` and then items, closed as JSON. Hints
    /// that do not fit into one are left out. @return how many hints are in them
    std::size_t take(std::string_view head, std::size_t bytes, std::size_t most,
                     std::vector<std::string>& payloads);

private:
    struct Batch {
        std::deque<std::string> items;              ///< in the order they came
        std::unordered_set<std::string_view> known; ///< points into items
    };

    const std::size_t most_;
    const std::function<void()> wake_;
    std::atomic<bool> listened_{false};
    std::atomic<std::size_t> size_{0}; ///< of both batches
    std::mutex mutex_;
    Batch waiting_;
    std::deque<std::string> taken_; ///< the mesh's thread alone
};

} // namespace queen::meshpg
