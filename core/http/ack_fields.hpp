#pragma once
#include "base/result.hpp"
#include "broker/ack.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace queen::http {

// What the fields of an acknowledgment mean, in /ack and in transactions alike.

/// A lease id as pops mint it. Something else becomes an id that no lease has, so that its ack is
/// refused as one of a lost lease.
std::string read_lease_id(std::string_view text);

/// A status word, in any case; one that nobody knows counts as failed, and the item says so.
/// @errors invalid_argument: empty
/// @source AK-1
Result<void> read_ack_status(std::string_view word, broker::AckItem& item);
/// For a status that is not a string.
Error bad_ack_status();

} // namespace queen::http
