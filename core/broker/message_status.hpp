#pragma once
#include "ports/message_store.hpp"

#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace queen::broker {

/// Where one message stands with the groups of its partition.
struct Standing {
    MessageStatus status = MessageStatus::pending;
    /// As queue mode alone sees it; absent when nobody took anything without a group there.
    std::optional<MessageStatus> queue_mode;
    std::size_t consumed_by = 0;              ///< named groups that are past it
    std::size_t named_groups = 0;             ///< all of them
    std::optional<WallTime> lease_expires_at; ///< the first of the leases that hold it
};

/// A dead letter is one whatever else is true; a message is completed when all named groups are
/// past it, or queue mode where no group is named; else processing while any live lease holds it.
/// @source ST-5
Standing standing_of(const MessagePlace& place, Offset offset, bool dead);

/// nullopt: no such word.
std::optional<MessageStatus> parse_message_status(std::string_view word) noexcept;

/// Who consumes in some partitions.
struct ConsumerMode {
    bool queue_mode = false;
    std::set<std::string, std::less<>> groups; ///< named ones
    void add(const MessagePlace& place);
    std::string_view type() const noexcept; ///< "bus", "queue", "hybrid", "none"
};

} // namespace queen::broker
