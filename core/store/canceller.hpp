#pragma once
#include "base/clock.hpp"
#include "base/result.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace queen::store {

class PgSession;

/// Cancels statements from a spare session, because libpq 15's own cancel request never uses TLS.
/// The spare is opened by the first cancel and kept: one more session per broker, at most.
///
/// Locks: `mutex_` is a leaf, never held during a round trip. The spare belongs to whoever set
/// `busy_`; who does not get it in time does without.
/// @thread any
class Canceller {
public:
    /// `patience`: for the spare, and again for its round trip.
    Canceller(std::string conninfo, std::chrono::milliseconds patience,
              const Clock& clock = SystemClock::instance());
    ~Canceller();
    /// Cancels what the backend runs now. When this returned success, the signal was delivered, so
    /// a statement sent to that backend afterwards is not hit.
    /// @errors unavailable, transient, not_found (no such backend on the server reached)
    Result<void> cancel(int backend_pid, std::int64_t server_started);
    /// Whether a late statement of this name is worth a log line: one each 30 s (PL-5).
    bool worth_a_line(std::string_view statement);

private:
    Result<void> cancel_with_spare(int backend_pid, std::int64_t server_started);

    const std::chrono::milliseconds patience_;
    const Clock& clock_;
    std::mutex mutex_;
    std::condition_variable freed_;
    bool busy_ = false;
    std::map<std::string, SteadyTime, std::less<>> logged_;
    std::unique_ptr<PgSession> spare_;
};

} // namespace queen::store
