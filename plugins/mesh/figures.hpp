// mesh/figures.hpp - what the mesh counts about itself.
#pragma once
#include "shared/counter.hpp"

#include <atomic>
#include <cstdint>

namespace queen::mesh {

using shared::Counter;

struct Figures {
    Counter frames_sent, frames_received, bytes_sent, bytes_received;
    Counter hints_sent, hints_received;
    Counter dropped_full;   ///< frames: a peer's queue was full
    Counter dropped_stale;  ///< frames: their connection was lost
    Counter dropped_dirty;  ///< hints: the coalescing set was full
    Counter items_skipped;  ///< received, with names that cannot be
    Counter frames_unknown; ///< received, of types we do not know: skipped
    Counter frames_early;   ///< received before the peer had shown who it is: ignored
    Counter frames_bad;     ///< received: no length, too long, no JSON; ended the connection
    Counter failed_hello;   ///< handshakes: the first frame was none, or had no id
    Counter failed_mac;     ///< handshakes: the secret differs, or a recording was played
    Counter failed_late;    ///< handshakes that took too long
    Counter refused;        ///< connections: too many at once
    Counter silent;         ///< connections: nothing was heard for the dead threshold
    Counter stalled;        ///< connections: nothing could be written for the dead threshold
    Counter crowded;        ///< connections: buffers would have taken too much memory
    Counter throttled;      ///< times that a peer's hints had to wait
    Counter listen_failed;
    Counter dials, dials_failed, reconnects;
    Counter faults; ///< exceptions in the mesh's own thread; all connections were ended
    std::atomic<std::uint64_t> listening{0}, accepted{0};

    std::uint64_t handshake_failures() const noexcept {
        return failed_hello.value() + failed_mac.value() + failed_late.value();
    }
};

} // namespace queen::mesh
