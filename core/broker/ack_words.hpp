#pragma once
#include "metrics/queue_table.hpp"
#include "ports/store.hpp"

#include <string>
#include <string_view>

/// Why an ack is not honoured, in the contract's words (http-api, item errors).
namespace queen::broker::words {

inline constexpr const char* kNotAPartition = "partitionId is not a partition id";
inline constexpr const char* kLostLease = "invalid or expired lease";
inline constexpr const char* kCommitted =
    "already committed: the cursor moved past this message before this ack";
inline constexpr const char* kBeyond = "position beyond leased batch";
inline constexpr const char* kUnresolvable =
    "unresolvable: transaction not in the ack window (hash purged or never pushed); if leased, the "
    "message redelivers";
inline constexpr const char* kNoDeadLetters = "dlq rejected";

/// Said beside an ack that was honoured.
inline std::string unknown_status(std::string_view word) {
    return "unknown status '" + std::string(word) +
           "' counts as failed; known: completed, failed, retry, dlq";
}

} // namespace queen::broker::words

namespace queen::broker {

/// What an honoured ack of this status counts as.
constexpr metrics::AckResult ack_result(AckStatus status) noexcept {
    switch (status) {
    case AckStatus::completed:
        return metrics::AckResult::completed;
    case AckStatus::failed:
        return metrics::AckResult::failed;
    case AckStatus::retry:
        return metrics::AckResult::retry;
    case AckStatus::dlq:
        return metrics::AckResult::dlq;
    }
    return metrics::AckResult::refused; // a number outside the enum
}

} // namespace queen::broker
