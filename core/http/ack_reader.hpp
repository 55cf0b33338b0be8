#pragma once
#include "base/result.hpp"
#include "broker/ack.hpp"

#include <string_view>

namespace queen::http {

inline constexpr std::size_t kMaxAckBodyBytes = std::size_t{16} << 20;

/// POST /ack: the body is one acknowledgment with its group.
/// @errors invalid_argument, name_too_long, too_large
/// @source AK-1
Result<broker::AckRequest> read_ack(std::string_view tenant, std::string_view body);

/// POST /ack/batch: `acknowledgments` and one group for all of them.
/// @errors as read_ack; the message names the item by its index
Result<broker::AckRequest> read_ack_batch(std::string_view tenant, std::string_view body);

} // namespace queen::http
