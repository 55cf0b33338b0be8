#pragma once
#include "base/clock.hpp"
#include "base/result.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace queen {

/// Where a group begins on first contact.
struct Subscription {
    enum class Mode { all, fresh, from } mode = Mode::all;
    std::optional<WallTime> from; ///< with Mode::from

    std::string_view sql_mode() const noexcept; ///< 'all' or 'new': p_sub_mode
    std::string sql_from() const;               ///< '' or ISO time: p_sub_from
};

/// Reads subscriptionMode and subscriptionFrom. Modes: all; new, new-only, new_only, newonly. From:
/// empty, `now` (as mode new), or a time in any form parse_time reads, which wins over the mode.
/// What is not readable is an error, never "everything" (K19).
/// @source POP-3
/// @errors invalid_argument
Result<Subscription> parse_subscription(std::string_view mode, std::string_view from,
                                        Subscription::Mode fallback);

} // namespace queen
