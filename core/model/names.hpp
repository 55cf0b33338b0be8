#pragma once
#include "base/result.hpp"

#include <queen/plugin/types.hpp>

#include <string>
#include <string_view>

namespace queen {

inline constexpr std::string_view kQueueModeGroup = "__QUEUE_MODE__"; ///< group of the group-less
inline constexpr std::string_view kDefaultPartition = "Default";
inline constexpr std::string_view kDefaultTenant = "00000000-0000-0000-0000-000000000001";
inline constexpr char kKeySeparator = '\x1f'; ///< between tenant and queue in every key in memory
inline constexpr std::size_t kMaxNameBytes = 255;
inline constexpr std::size_t kMaxNamesBytes = 447; ///< tenant + queue + max(group, partition)
inline constexpr std::size_t kMaxTransactionIdBytes = 65535;

/// The one rule for names, the same through path, query and body: 1 to 255 bytes of UTF-8, no
/// control characters, not "." or "..". `field` is named in the error.
/// @errors invalid_argument; name_too_long
/// @source NAME-1 (docs/rules.md)
Result<void> check_name(std::string_view field, std::string_view name);

/// The budget over names used together: the index row must hold them.
/// @errors name_too_long
Result<void> check_names_fit(std::string_view tenant, std::string_view queue,
                             std::string_view group_or_partition);

/// 1 to 65,535 bytes of UTF-8 without control characters.
/// @errors invalid_argument, also when it is too long (FMT-7)
Result<void> check_transaction_id(std::string_view field, std::string_view id);

/// tenant 0x1f queue: key of gates, marks and every other map over queues.
std::string queue_key(std::string_view tenant, std::string_view queue);

} // namespace queen
