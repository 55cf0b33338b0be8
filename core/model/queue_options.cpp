#include "model/queue_options.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace queen {
namespace {

using enum QueueOption::Type;

constexpr std::int64_t kMinInt = std::numeric_limits<std::int32_t>::min(); // columns are 32-bit
constexpr std::int64_t kMaxInt = std::numeric_limits<std::int32_t>::max();

// clang-format off
constexpr std::array kOptions{
    QueueOption{"priority", integer, "", 0, kMinInt, kMaxInt,
        "Stored for the operator; delivery ignores it."},
    QueueOption{"leaseTime", integer, "s", 300, 1, kMaxInt,
        "How long a consumer holds what it popped before others get it."},
    QueueOption{"retryLimit", integer, "", 3, 0, kMaxInt,
        "Failed acks of one message before it is dead-lettered or skipped."},
    QueueOption{"retryDelay", integer, "ms", 1000, 0, kMaxInt,
        "Pause before a failed message is offered again; acts only when set."},
    QueueOption{"maxSize", integer, "", 0, 0, kMaxInt,
        "Most messages wanted in the queue, 0 for no limit; stored, not enforced."},
    QueueOption{"ttl", integer, "s", 3600, 0, kMaxInt,
        "Age at which a message is no longer wanted; acts only when set."},
    QueueOption{"deadLetterQueue", boolean, "", 1, 0, 1,
        "Keep messages that used up their retries as dead letters."},
    QueueOption{"dlqAfterMaxRetries", boolean, "", 1, 0, 1,
        "The same as deadLetterQueue; either one enables it."},
    QueueOption{"delayedProcessing", integer, "s", 0, 0, kMaxInt,
        "How long a message stays invisible after its push."},
    QueueOption{"windowBuffer", integer, "s", 0, 0, kMaxInt,
        "How long a partition must be quiet before it is offered."},
    QueueOption{"retentionSeconds", integer, "s", 0, 0, kMaxInt,
        "Age at which messages are removed, consumed or not; 0 keeps them."},
    QueueOption{"completedRetentionSeconds", integer, "s", 0, 0, kMaxInt,
        "Age at which messages that every group has consumed are removed; 0 keeps them."},
    QueueOption{"retentionEnabled", boolean, "", 0, 0, 1,
        "Whether the two retention ages act."},
    QueueOption{"encryptionEnabled", boolean, "", 0, 0, 1,
        "Payloads are stored encrypted."},
    QueueOption{"maxWaitTimeSeconds", integer, "s", 0, 0, kMaxInt,
        "Age at which unconsumed messages are evicted; 0 never."},
    QueueOption{"minPopWaitTime", integer, "ms", 0, 0, 60'000,
        "Least time a pop waits for a fuller batch.", true},
    QueueOption{"dedupWindowSeconds", integer, "s", 3600, 0, kMaxInt,
        "How long a transactionId is remembered as used; 0 turns the check off.", true},
    QueueOption{"retentionSinkHold", text, "", 0, 0, 64,
        "Name of a sink of retention; stored, nothing acts on it."},
    QueueOption{"retentionSinkHoldMaxSeconds", integer, "s", 604'800, 60, 31'536'000,
        "Longest time for that sink; stored, nothing acts on it."},
};
// clang-format on

} // namespace

std::span<const QueueOption> queue_options() {
    return kOptions;
}

const QueueOption* find_queue_option(std::string_view name) {
    const auto* found = std::ranges::find(kOptions, name, &QueueOption::name);
    return found != kOptions.end() ? found : nullptr;
}

} // namespace queen
