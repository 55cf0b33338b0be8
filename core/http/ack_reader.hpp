#pragma once
#include "base/json.hpp"
#include "base/result.hpp"
#include "broker/ack.hpp"

#include <string>
#include <string_view>

namespace queen::http {

inline constexpr std::size_t kMaxAckBodyBytes = std::size_t{16} << 20;
inline constexpr std::size_t kMaxReasonBytes = std::size_t{64} << 10; ///< kept of an `error`

/// A consumer's reason, which never makes its ack fail: what is not a string is kept as its JSON,
/// NUL becomes U+FFFD, and of a long one the first kMaxReasonBytes are kept, cut between
/// characters.
/// @source K20, K45
std::string read_reason(json::Value value);

/// POST /ack: the body is one acknowledgment with its group.
/// @errors invalid_argument, name_too_long, too_large
/// @source AK-1
Result<broker::AckRequest> read_ack(std::string_view tenant, std::string_view body);

/// POST /ack/batch: `acknowledgments` and one group for all of them.
/// @errors as read_ack; the message names the item by its index
Result<broker::AckRequest> read_ack_batch(std::string_view tenant, std::string_view body);

} // namespace queen::http
