#pragma once
#include "base/result.hpp"
#include "broker/push.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace queen::http {

inline constexpr std::size_t kMaxPushItems =
    100'000; ///< in one request; bounds memory per body byte

/// Reads the body of a push in one pass. Payloads are slices of `body`, byte for byte; the request
/// keeps `body` alive.
/// @errors invalid_argument, name_too_long, too_large; the message names the item by its index
/// @source PUSH-1, PUSH-5, FMT-7, FMT-10
Result<broker::PushRequest> read_push(std::string_view tenant,
                                      std::shared_ptr<const std::string> body);

} // namespace queen::http
