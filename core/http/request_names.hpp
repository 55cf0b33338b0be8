#pragma once
#include "base/result.hpp"

#include <string>
#include <string_view>

namespace queen::http {

/// Names as they come in, through path, query or body alike: checked by the one rule of
/// model/names.hpp, with the empty ones that mean something resolved.
/// @errors invalid_argument, name_too_long
/// @source NAME-2

Result<std::string> read_queue(std::string_view text);
Result<std::string> read_partition(std::string_view text); ///< "" is kDefaultPartition
/// "" is kQueueModeGroup; the reserved word given outright is queue mode too, not a group of its
/// own
Result<std::string> read_group(std::string_view text);
Result<std::string> read_label(std::string_view field, std::string_view text); ///< "" stays ""

/// The byte budget over names used together; "" for those the request has not.
Result<void> check_fit(std::string_view tenant, std::string_view queue, std::string_view group,
                       std::string_view partition);

} // namespace queen::http
