// ports/letter_store.hpp - what the broker asks of the store about dead letters. Asynchronous as
// ports/store.hpp is: `done` runs exactly once, on a worker thread.
#pragma once
#include "ports/store.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace queen {

/// A dead letter: what a group gave up on, as it was stored.
struct DeadLetter {
    Uuid id;
    Uuid partition_id;
    std::string queue;
    std::string partition; ///< "" when there is no such partition any more
    std::string group;
    Offset offset{-1};
    Uuid message_id; ///< unknown: not recorded; so trace_id
    std::string transaction_id;
    Uuid trace_id;
    std::string producer_sub;
    std::string payload; ///< bytes of the frame
    bool encrypted = false;
    bool available = true; ///< false: the payload stayed behind, the page has enough bytes
    std::optional<std::string> error;
    std::int32_t retries = 0;
    std::optional<WallTime> created_at; ///< of the message
    WallTime failed_at{};
    /// Of a timer that was given up on. Its partition is where it would have gone, and partition_id
    /// its queue's id.
    std::optional<std::string> timer_key;
};

/// A place in a list of letters: that of the letter seen last.
struct LetterKey {
    WallTime failed_at{};
    Uuid id;
    friend bool operator==(const LetterKey&, const LetterKey&) = default;
};

/// Which letters a page shows. What is absent matches everything.
struct LetterQuery {
    std::string tenant;
    std::optional<std::string> queue, group, partition;
    std::optional<WallTime> from, to; ///< of failed_at; `to` is exclusive
    std::optional<LetterKey> after;
    std::int32_t limit = 100;
    std::int32_t offset = 0; ///< 0 with `after`
    std::int64_t bytes = 0;  ///< of payloads and errors together; the first letter is always whole
};

struct LetterPage {
    std::int64_t total = 0;          ///< that match, whatever the page
    std::vector<DeadLetter> letters; ///< newest first
};

/// One frame for a queue in place of a letter.
struct LetterMove {
    std::string tenant;
    Uuid id; ///< the letter's
    std::string queue, partition;
    TxnHash hash;
    std::string blob;
    bool encrypted = false; ///< the frame is
};

struct LetterMoved {
    enum class Result {
        moved,
        duplicate,
        gone,
        other_form ///< the destination wants the frame as `wants_encrypted` says; the letter stays
    } result = Result::gone;
    // Of moved and duplicate:
    std::string group; ///< of the letter
    Uuid partition_id; ///< where the message is
    Offset offset{-1};
    bool wants_encrypted = false; ///< of other_form
};

/// @thread any. Every error is a value; no call throws.
class LetterStore {
public:
    virtual ~LetterStore() = default;
    using Deadline = SteadyTime;

    /// Newest first (log_dlq_list_v1).
    virtual void list(Deadline, LetterQuery, Done<LetterPage>) = 0;
    /// nullopt: the tenant has none of that id (log_dlq_find_v1).
    virtual void find(Deadline, std::string tenant, Uuid id, Done<std::optional<DeadLetter>>) = 0;
    /// The newest of a message, whichever group's (log_dlq_newest_v1).
    virtual void newest(Deadline, std::string tenant, Uuid partition_id, std::string transaction_id,
                        Done<std::optional<DeadLetter>>) = 0;
    /// Removes all letters of a message; how many there were (delete_message_v1).
    virtual void remove(Deadline, std::string tenant, Uuid partition_id, std::string transaction_id,
                        Done<std::int64_t>) = 0;
    /// Removes the letters of a queue, of one group or all; how many there were (purge_dlq_v1).
    virtual void purge(Deadline, std::string tenant, std::string queue,
                       std::optional<std::string> group, Done<std::int64_t>) = 0;
    /// Both the push and the removal, or neither (log_dlq_move_v1).
    virtual void move(Deadline, LetterMove, Done<LetterMoved>) = 0;
};

} // namespace queen
