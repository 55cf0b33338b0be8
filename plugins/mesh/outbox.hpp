// mesh/outbox.hpp - what the broker's workers leave for the mesh's thread: a bounded queue of
// frames for each peer, and the set in which dirty hints coalesce.
#pragma once
#include "figures.hpp"
#include "options.hpp"
#include "wire.hpp"

#include <atomic>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace queen::mesh {

/// Invariant: a queue holds frames only while its peer is connected, so what waits is never older
/// than the connection (ME-8); nothing of what waits exceeds the bounds of Options.
/// Locks: mutex_ is a leaf. publish() holds it to append, never to encode, write or wait.
class Outbox {
public:
    /// @param wake called after something was left, by the thread that left it, at most once until
    /// awake(); holds no lock
    Outbox(const Options& options, Figures& figures, std::function<void()> wake);

    /// @thread any. One relaxed load: it is asked for each push (ME-10).
    bool listened() const noexcept { return connected_.load(std::memory_order_relaxed) > 0; }
    /// @thread any. Without peers nothing is locked and nothing allocated.
    void publish(std::span<const plugin::Hint> hints);

    // The mesh's thread.
    void awake() noexcept { woken_.store(false); } ///< before it looks
    /// Connected anew, or lost: in both cases what waited is discarded.
    void set_connected(std::size_t peer, bool connected);
    /// Moves frames that wait for the peer to the end of `out`: at most `most`, and after the first
    /// no more than about a megabyte, because what is taken is no longer bounded by the queue.
    /// Where some were dropped the last of them says so.
    void take(std::size_t peer, std::size_t most, std::vector<OutFrame>& out);
    bool dirty() const noexcept { return dirty_count_.load(std::memory_order_relaxed) > 0; }
    /// Queues one frame of coalesced hints for all peers. @return whether more are left
    bool flush_dirty();

    std::size_t dirty_size() const noexcept { return dirty_count_.load(); } ///< @thread any
    std::size_t queued(std::size_t peer) const;                             ///< @thread any
    std::size_t queued() const;                                             ///< @thread any
    std::uint64_t dropped(std::size_t peer) const;                          ///< @thread any

private:
    struct Queue {
        bool connected = false;
        std::deque<OutFrame> frames;
        std::size_t bytes = 0;
        std::uint64_t dropped = 0;
        bool lost = false; ///< some were dropped since the peer was told so
    };
    using Keys = std::unordered_set<std::string>;

    void append(const OutFrame& frame); ///< Requires mutex_.
    /// @return what is to be freed without the lock: Requires mutex_.
    std::deque<OutFrame> discard(Queue& queue);
    void mark_dirty(std::span<const plugin::Hint> hints);
    void signal();

    const Options& options_;
    Figures& figures_;
    const std::function<void()> wake_;
    std::atomic<std::size_t> connected_{0};
    std::atomic<bool> woken_{false};
    std::atomic<std::size_t> dirty_count_{0}; ///< marked_ and taken_ together
    mutable std::mutex mutex_;
    std::vector<Queue> queues_;
    Keys marked_; ///< guarded; swapped with taken_, so that no worker waits for a flush
    Keys taken_;  ///< the mesh's thread alone
};

} // namespace queen::mesh
