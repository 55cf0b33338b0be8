#pragma once
#include "base/result.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

namespace queen::store {

class PgSession;

/// Cancels statements from a spare session, because libpq 15's own cancel request never uses TLS.
/// The spare is opened by the first cancel and kept: one more session per broker, at most.
///
/// Locks: `mutex_` is a leaf, held for one round trip; who does not get it in time does without.
/// @thread any
class Canceller {
public:
    explicit Canceller(std::string conninfo, std::chrono::milliseconds patience);
    ~Canceller();
    /// Cancels what the backend runs now. When this returned success, the signal was delivered, so
    /// a statement sent to that backend afterwards is not hit.
    /// @errors unavailable, transient, not_found (no such backend on the server reached)
    Result<void> cancel(int backend_pid, std::int64_t server_started);

private:
    const std::chrono::milliseconds patience_;
    std::timed_mutex mutex_;
    std::unique_ptr<PgSession> spare_; ///< Requires mutex_.
};

} // namespace queen::store
