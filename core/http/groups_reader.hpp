#pragma once
#include "base/clock.hpp"
#include "base/result.hpp"

#include <optional>
#include <string_view>

namespace queen::http {

inline constexpr std::size_t kMaxGroupBodyBytes = std::size_t{64} << 10;

/// What a body asks cursors to do: nullopt is the end.
struct SeekTarget {
    std::optional<WallTime> to;
};

/// A refusal, and whether it is about the body as such (not JSON, not an object, too large).
struct GroupBodyError {
    Error error;
    bool unreadable = false;
};

/// {"toEnd": true} or {"timestamp": time}, one of them.
/// @param empty_is_end no body at all asks for the end
/// @source GRP-6, K19
tl::expected<SeekTarget, GroupBodyError> read_seek(std::string_view body, bool empty_is_end);

/// {"subscriptionTimestamp": time}
/// @source K19
tl::expected<WallTime, GroupBodyError> read_subscription(std::string_view body);

} // namespace queen::http
