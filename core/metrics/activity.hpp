#pragma once
#include "base/counter.hpp"
#include "base/histogram.hpp"
#include "metrics/queue_table.hpp"

#include <array>
#include <memory>
#include <string_view>

namespace queen::metrics {

struct PushCounters {
    Counter requests;   ///< with one item at least
    Counter messages;   ///< stored
    Counter duplicates; ///< known already, not stored again
    Counter failed;     ///< items answered with an error
};

struct PopCounters {
    Counter requests;
    Counter taken;          ///< answered with messages
    Counter messages;       ///< delivered
    Counter empty;          ///< answered with nothing
    Counter failed;         ///< answered with an error
    Counter first_contacts; ///< looks before the group was known as seeded
    Counter probes_pending, probes_none, probes_failed; ///< by what the store answered
    Counter fill_waits;                                 ///< waits for a fuller batch that began
    Counter fill_wait_micros; ///< how long those that ended took together, in microseconds
    Counter given_back; ///< batches whose answer was not delivered and that went back to the store
    LatencyHistogram lag; ///< of each message, from stored to delivered, by the wall clocks
};

struct AckCounters {
    Counter requests;
    Counter messages;                           ///< settled
    Counter refused;                            ///< not settled
    std::array<Counter, kAckResults> by_result; ///< the same two, by how they were settled
    Counter dead_letters;
};

/// Transactions, by how they ended.
struct TransactionCounters {
    Counter committed;
    Counter duplicate; ///< rolled back: a message had been pushed before
    Counter rejected;  ///< rolled back: an ack was not honoured
    Counter failed;    ///< the store refused
};

/// Why requests about timers were refused.
enum class TimerRefused {
    shape = 0,         ///< what is wrong with the request
    payload_too_large, ///< 413
    horizon,           ///< too far ahead
    unavailable,       ///< the store
    disabled           ///< timers are switched off
};
inline constexpr std::size_t kTimerRefusals = 5;
std::string_view to_string(TimerRefused why) noexcept;

struct TimerCounters {
    std::array<Counter, kTimerRefusals> refused;
    Counter& operator[](TimerRefused why) { return refused[static_cast<std::size_t>(why)]; }
};

/// What pushes, pops, acks and transactions did, for the process since its start and for each queue
/// in the last full minute. The one struct that the pop path counts into.
struct Activity {
    explicit Activity(const Clock& clock, std::size_t queues = kMostQueues)
        : queues(clock, queues) {}

    PushCounters push;
    PopCounters pop;
    AckCounters ack;
    TransactionCounters transaction; ///< their messages count as those of pushes and acks
    TimerCounters timers;
    QueueTable queues;

    /// `given`, or one that nobody reads: those who count need not ask whether anybody does.
    static std::shared_ptr<Activity> or_own(std::shared_ptr<Activity> given, const Clock& clock) {
        return given ? std::move(given) : std::make_shared<Activity>(clock, 0);
    }
};

} // namespace queen::metrics
