// ports/store.hpp - what the broker asks of PostgreSQL. Asynchronous: nothing in the broker ever
// holds a session. Each call waits in its lane for a session until `deadline`; `done` runs exactly
// once, on a worker thread, after the session was given back, so it may render at leisure.
#pragma once
#include "base/clock.hpp"
#include "base/result.hpp"
#include "model/hash.hpp"

#include <queen/plugin/types.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace queen {

/// Who goes first when sessions are short: ack, push, pop, admin; each lane is sure of one session.
enum class Lane { ack, push, pop, admin };

template <class T>
using Done = std::function<void(Result<T>)>;

/// What a broker compared by itself: no offset in (from, upto] of this partition has any of the
/// segment's hashes. The store judges whether that spares it a probe (DED-4).
struct Vouch {
    Uuid partition_id;
    Offset from{-1};
    Offset upto{-1};
    WallTime at{}; ///< the database's stamp of the segment that holds `upto`
    friend bool operator==(const Vouch&, const Vouch&) = default;
};

struct PushSegment {
    std::string tenant; ///< uuid text
    std::string queue;
    std::string partition;
    std::uint32_t count = 0;
    std::string hashes;         ///< 16 bytes a frame, frame order
    std::string blob;           ///< compressed frames
    std::int64_t verified = -1; ///< every offset up to here was compared under the row's lock
    std::optional<Vouch> vouch;
    bool encrypted = false; ///< the frames' payloads are
};

struct PushOutcome {
    bool duplicate = false; ///< nothing of the segment was written
    /// Nothing of the segment was written because the queue wants payloads encrypted (true) or not
    /// (false), other than they came (ENC-5).
    std::optional<bool> wants_encrypted;
    Uuid partition_id;
    Offset base{-1}; ///< first offset, when queued
    WallTime created_at{};
    struct Repeat {
        std::uint32_t frame; ///< index in the segment
        Offset first;        ///< earliest offset with that hash
    };
    std::vector<Repeat> repeats;
    std::chrono::seconds window{0}; ///< the queue's dedup window
    std::int64_t probed = 0;        ///< offsets that the store compared
    WallTime after{};               ///< stamp of the segment before; of the first one the epoch
};

/// A page of the hashes in a partition's dedup window.
struct HashPage {
    Uuid partition_id;
    Offset edge{-1};        ///< the first row holds it
    bool downwards = true;  ///< newest first, as far as the window reaches, else oldest first
    std::int64_t bytes = 0; ///< a page of fewer bytes of hashes, the first row apart, was the last
};
/// The hashes of one stored segment.
struct HashRow {
    Offset base{-1};
    Offset end{-1};
    WallTime created_at{};
    std::string hashes; ///< 16 bytes an offset
};

struct StoredSegment {
    Offset base{-1};
    Offset end{-1};
    WallTime created_at{};
    std::string blob;
};

/// How the store is asked to pop. Names are checked before.
struct PopArgs {
    std::string tenant;
    std::string queue; ///< empty for discovery
    std::string group;
    std::int32_t budget = 1;        ///< messages over all partitions
    std::int32_t lease_seconds = 0; ///< 0: the queue's lease time, else 60
    std::string worker;             ///< the lease id
    bool auto_ack = false;
    std::int32_t max_partitions = 1;
    std::string sub_mode = "all";
    std::string sub_from;
    bool skip_window = false;
    std::optional<bool> conflate{}; ///< nullopt: whatever the group has
};

struct PoppedSegment {
    Offset base{-1};
    std::uint32_t start = 0; ///< first frame to deliver
    std::uint32_t take = 0;
    WallTime created_at{};
    std::string blob;
};

struct PoppedPartition {
    std::string queue; ///< set by discovery only
    std::string partition;
    Uuid partition_id;
    std::int32_t attempt = 1;
    std::optional<std::chrono::milliseconds> lease_left; ///< of a leased batch
    bool drained = false;
    std::vector<PoppedSegment> segments;
};

/// The store's verdict on one name of a list pop. Names it did not reach have none.
struct CandidateState {
    enum class Kind { took, empty, leased } kind = Kind::empty;
    std::string partition;
    Uuid partition_id;
    std::chrono::milliseconds left{0}; ///< leased: until the foreign lease ends
};

struct PopResult {
    std::vector<PoppedPartition> partitions;
    std::vector<CandidateState> states; ///< list pops only
    bool seeded = true;                 ///< list pops: false when the group's marker is gone
    std::int64_t delay_seconds = 0;     ///< the queue's, as read by this pop
    std::int64_t window_seconds = 0;
    std::chrono::milliseconds min_pop_wait{0}; ///< the queue's; 0 for discovery
    bool conflates = false;                    ///< the group takes the newest of a partition alone
    bool conflation_conflict = false;          ///< and the pop wanted something else
};

enum class AckStatus { completed, failed, retry, dlq };

struct HashAck {
    TxnHash hash;
    AckStatus status;
    std::string reason{}; ///< the consumer's, for the dead letter that may come of it
};

/// A message as it is stored, to be kept as a dead letter.
struct Letter {
    Offset offset{-1};
    Uuid message_id;
    Uuid trace_id; ///< unknown: none
    std::string transaction_id;
    std::string producer_sub; ///< empty: none
    std::string payload;      ///< the bytes of the frame
    bool encrypted = false;
    WallTime created_at{}; ///< of its segment
};

/// Acks of one (partition, group, lease), settled together.
struct HashAcks {
    std::string tenant;
    Uuid partition_id;
    std::string group;
    std::string worker; ///< the lease id; empty: lease-less
    std::vector<HashAck> items;
    std::vector<Letter> letters;     ///< distinct offsets, ascending
    bool no_further_letters = false; ///< what is missing cannot be had: settle without it
};

struct HashAckOutcome {
    bool ok = false;
    std::string error; ///< when not ok
    std::int64_t acked = 0;
    bool lease_released = false;
    bool freed = false;   ///< a retry delay ended before its time
    bool covered = false; ///< this ack released the lease with its whole batch completed
    bool dropped = false;
    /// Not empty: nothing was done, for these offsets are to become letters and not all were there.
    std::vector<Offset> wanted;
    std::vector<std::size_t> filed;    ///< items that became dead letters
    std::vector<std::size_t> rejected; ///< items whose message should have, and stays
    std::int64_t conflated = 0;        ///< messages that a conflated batch skipped
    std::optional<Offset> head;        ///< offset the cursor was clamped at
    std::string queue;                 ///< of the partition, for the announce; empty when unknown
    std::string partition;
    std::vector<TxnHash> noop, stale, unresolved;
};

/// Completes the whole batch of a lease.
struct PositionAck {
    Uuid partition_id;
    std::string group;
    Offset first{-1}; ///< of the batch; refused when some of it was acked before
    Offset last{-1};
    std::string worker;
};
struct PositionAckOutcome {
    bool ok = false;
    std::string error; ///< when not ok
    std::int64_t acked = 0;
    bool lease_released = false;
    bool covered = false;
    std::string queue; ///< of the partition
    std::string partition;
    std::int64_t conflated = 0; ///< messages that a conflated batch skipped
};

struct RenewOutcome {
    std::int64_t renewed = 0;
    std::optional<WallTime> expires_at; ///< the earliest
};

/// A scope of pending work, for the probes.
struct PendingQuery {
    std::string tenant, queue, group;
    std::optional<std::string> partition;                      ///< pinned
    std::optional<std::pair<std::string, std::string>> labels; ///< discovery: namespace, task
};

/// Where a page of a walk ended, as it said. Whoever asks for the next one only passes it on.
struct ReseedKey {
    Uuid partition_id;
    WallTime written{}; ///< windowed walks only
    WallTime cutoff{};  ///< windowed walks only
};

/// Which of a queue's partitions an answer lists: the first `limit` by name behind `after`. Its
/// sums are over all of them.
struct PartitionPage {
    std::optional<std::string> after;
    std::int32_t limit = 10'000; ///< also the most
};

/// The two labels of a queue.
enum class Label { name_space, task };

/// One page of a walk over the partitions of a queue.
struct ReseedQuery {
    std::string tenant, queue, group;
    std::chrono::milliseconds window{0}; ///< only what was written that long ago or later; 0: all
    std::uint32_t partitions = 10'000;   ///< how many the page looks at
    std::optional<ReseedKey> after;      ///< nullopt: the first page
};

struct ReseedPage {
    struct Row {
        std::string partition;
        Uuid partition_id;
    };
    bool exists = false;            ///< the queue
    std::int64_t delay_seconds = 0; ///< the queue's, as read by this page
    std::int64_t window_seconds = 0;
    std::vector<Row> rows;         ///< probably pending; leased ones too
    std::optional<ReseedKey> next; ///< when partitions are left
    Uuid queue_id;                 ///< of the queue when it exists; another one was made anew
    std::int64_t deleted = 0;      ///< its partitions that were removed since it was made
};

/// @thread any. Every error is a value; no call throws.
class Store {
public:
    virtual ~Store() = default;
    using Deadline = SteadyTime;

    /// One transaction over all segments; outcomes in input order (log_push_multi_v1).
    virtual void push(Deadline, std::vector<PushSegment>, Done<std::vector<PushOutcome>>) = 0;
    /// The segment that holds the offset; nullopt when retention took it (log_segment_at_v1).
    virtual void segment_at(Deadline, Uuid partition_id, Offset,
                            Done<std::optional<StoredSegment>>) = 0;
    /// In the lowest lane: no push waits for it (log_window_hashes_v1).
    virtual void window_hashes(Deadline, HashPage, Done<std::vector<HashRow>>) = 0;

    virtual void pop_list(Deadline, PopArgs, std::vector<std::string> partitions,
                          Done<PopResult>) = 0;
    virtual void pop_wildcard(Deadline, PopArgs, Done<PopResult>) = 0;
    virtual void pop_specific(Deadline, PopArgs, std::string partition, Done<PopResult>) = 0;
    virtual void pop_discover(Deadline, PopArgs, std::string ns, std::string task,
                              Done<PopResult>) = 0;
    virtual void has_pending(Deadline, PendingQuery, Done<bool>) = 0;
    /// Hands a leased batch back as if it had not been delivered; false when the lease is gone.
    virtual void release_undelivered(Deadline, Uuid partition_id, std::string group,
                                     std::string worker, Done<bool>) = 0;

    virtual void ack_by_hash(Deadline, HashAcks, Done<HashAckOutcome>) = 0;
    /// One transaction; outcomes in input order, each on its own (log_ack_multi_v1).
    virtual void ack_positions(Deadline, std::string tenant, std::vector<PositionAck>,
                               Done<std::vector<PositionAckOutcome>>) = 0;
    virtual void renew_lease(Deadline, std::string tenant, std::string worker, std::chrono::seconds,
                             Done<RenewOutcome>) = 0;

    /// Options as JSON text; the answer is the procedure's JSON text (configure_queue_v1).
    virtual void configure(Deadline, std::string tenant, std::string queue,
                           std::string options_json, Done<std::string>) = 0;
    virtual void delete_queue(Deadline, std::string tenant, std::string queue, Done<bool>) = 0;
    // JSON of GET resources/..., as the procedures make it; nullopt when there is no such queue.
    virtual void queue_detail(Deadline, std::string tenant, std::string queue, PartitionPage,
                              Done<std::optional<std::string>>) = 0;
    /// @param group nullopt: the queue as a whole (ST-2)
    virtual void queue_depth(Deadline, std::string tenant, std::string queue,
                             std::optional<std::string> group, PartitionPage,
                             Done<std::optional<std::string>>) = 0;
    virtual void queue_sizes(Deadline, std::string tenant, std::string queue, PartitionPage,
                             Done<std::optional<std::string>>) = 0;
    virtual void list_queues(Deadline, std::string tenant, Done<std::string>) = 0;
    virtual void list_labels(Deadline, std::string tenant, Label, Done<std::string>) = 0;
    virtual void overview(Deadline, std::string tenant, Done<std::string>) = 0;
    /// A read of bounded time, whatever the queue's size.
    virtual void reseed_page(Deadline, ReseedQuery, Done<ReseedPage>) = 0;
    /// A trivial round trip.
    virtual void ping(Deadline, Done<void>) = 0;
};

} // namespace queen
