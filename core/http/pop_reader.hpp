#pragma once
#include "broker/pop.hpp"
#include "http/query.hpp"
#include "settings/settings.hpp"

#include <string_view>

namespace queen::http {

inline constexpr std::int32_t kMaxBatch = 10'000;     ///< messages a pop
inline constexpr std::int32_t kMaxPartitions = 1'000; ///< partitions a pop
inline constexpr std::int32_t kMaxLeaseSeconds = 86'400 * 7;

/// Where a pop looks, as its path says; names are checked.
struct PopTarget {
    broker::PopRequest::Shape shape;
    std::string_view tenant;
    std::string_view queue;     ///< wildcard and pinned
    std::string_view partition; ///< pinned
};

/// Reads the parameters of a pop. What is malformed or out of bounds is an error that names the
/// parameter and what is allowed, never a silent default; a longer `timeout` than the settings
/// allow is shortened, one of 0 or less does not wait.
/// @errors invalid_argument, name_too_long
/// @source POP-1, K19, K29
Result<broker::PopRequest> read_pop(const PopTarget& target, const Query& query,
                                    const settings::Settings& settings);

} // namespace queen::http
