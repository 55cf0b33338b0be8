// ports/message_store.hpp - what the broker asks of the store to show messages without taking them.
// Asynchronous as ports/store.hpp is: `done` runs exactly once, on a worker thread.
#pragma once
#include "ports/store.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace queen {

/// Where a message stands with its consumers (ST-5).
enum class MessageStatus { pending, processing, completed, dead_letter };

/// As the API and the procedures call it.
constexpr std::string_view word_of(MessageStatus status) noexcept {
    switch (status) {
    case MessageStatus::pending:
        return "pending";
    case MessageStatus::processing:
        return "processing";
    case MessageStatus::completed:
        return "completed";
    case MessageStatus::dead_letter:
        return "dead_letter";
    }
    return {};
}

/// A place in a list of messages, newest first: that of the message seen last.
struct MessageKey {
    WallTime created_at{};
    Uuid partition_id;
    Offset offset{-1};
    friend bool operator==(const MessageKey&, const MessageKey&) = default;
};

/// Which messages a list shows. What is absent matches everything.
struct MessageQuery {
    std::string tenant;
    std::optional<std::string> queue, partition, name_space, task;
    std::optional<MessageStatus>
        status;                   ///< leaves out what cannot have it, keeps some that have not
    std::optional<WallTime> from; ///< absent: an hour before `to`, or before now
    std::optional<WallTime> to;   ///< exclusive
    std::optional<MessageKey> after;
    std::int32_t want = 1; ///< messages
};

/// One group's cursor in a partition.
struct GroupPosition {
    std::string name;
    Offset committed{-1};
    std::optional<Offset> leased_to; ///< of a live lease
    std::optional<WallTime> lease_expires_at;
};

/// A partition as an answer shows it.
struct MessagePlace {
    Uuid partition_id;
    std::string partition, queue, name_space, task;
    std::int64_t priority = 0;
    std::vector<GroupPosition> groups; ///< by name; registered ones without a cursor too
};

/// A run of messages inside one segment.
struct MessageSlice {
    std::size_t place = 0; ///< index into the answer's places
    Offset base{-1};       ///< first offset of the segment
    WallTime created_at{};
    Offset low{-1}, high{-1}; ///< inclusive
    std::int64_t bytes = 0;   ///< of the segment's blob
};

struct MessageSlices {
    bool complete = true; ///< false: bounds of the work left something out
    std::vector<MessagePlace> places;
    std::vector<MessageSlice> slices; ///< in the order of the list; inside one the highest is first
    std::vector<std::pair<std::size_t, Offset>> dead; ///< (place, offset) of those with a letter
};

/// A message that is looked up by its transaction id.
struct FoundMessage {
    MessagePlace place;
    std::string options;                  ///< of the queue, JSON
    std::optional<Offset> offset;         ///< absent: nobody knows the id there
    std::optional<StoredSegment> segment; ///< absent once retention took it; `end` is not set
};

/// @thread any. Every error is a value; no call throws.
class MessageStore {
public:
    virtual ~MessageStore() = default;
    using Deadline = SteadyTime;

    /// The newest messages before a position, `want` or a few more of the last segment, or fewer
    /// when there are no more (log_messages_v1).
    virtual void slices(Deadline, MessageQuery, Done<MessageSlices>) = 0;
    /// The blobs of (partition, first offset), in that order; absent ones are gone
    /// (log_segments_v1).
    virtual void segments(Deadline, std::vector<std::pair<Uuid, Offset>>,
                          Done<std::vector<std::optional<std::string>>>) = 0;
    /// nullopt: the tenant has no such partition (log_message_v1).
    virtual void find(Deadline, std::string tenant, Uuid partition_id, TxnHash hash,
                      Done<std::optional<FoundMessage>>) = 0;
};

} // namespace queen
