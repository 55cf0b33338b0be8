// ports/transaction_store.hpp - messages stored, messages settled and timers set, all of it or
// nothing.
#pragma once
#include "ports/store.hpp"
#include "ports/timer_store.hpp"

#include <string>
#include <vector>

namespace queen {

struct TransactionAck {
    Uuid partition_id;
    std::string group;
    std::string lease_id; ///< empty: the present holder's, who must be among the leases given
    TxnHash hash;
    AckStatus status = AckStatus::completed;
    std::string reason{}; ///< the consumer's, for the dead letter that may come of it
};

/// Messages of one partition that a transaction brings as dead letters.
struct PartitionLetters {
    Uuid partition_id;
    std::vector<Letter> letters; ///< distinct offsets
};

struct TransactionCall {
    std::string tenant; ///< uuid text
    std::vector<PushSegment> segments;
    std::vector<TransactionAck> acks;
    std::vector<std::string> required_leases; ///< each has to be live
    std::vector<PartitionLetters> letters;    ///< of distinct partitions
    bool no_further_letters = false;          ///< what is missing of them cannot be had
    std::vector<TimerOp> timers;              ///< before all else; each (queue, key) once (TX-2)
    std::string producer_sub;                 ///< for the timers; empty: none
};

struct TransactionOutcome {
    enum class Kind {
        committed,
        duplicate, ///< a message is in the dedup window already
        form,      ///< a segment is not encrypted as its queue wants it
        rejected,  ///< an ack or a required lease was not honoured
        letters    ///< messages are to become dead letters, which the call has to bring
    };
    /// A message that the dedup window holds.
    struct Repeat {
        std::size_t segment; ///< place in the call
        std::size_t frame;
        Offset first; ///< where the first one is
    };
    /// A segment to be packed again.
    struct OtherForm {
        std::size_t segment; ///< place in the call
        bool encrypted;      ///< what its queue wants
    };
    /// Why an ack cannot be honoured.
    enum class Refusal {
        told,       ///< by `error`, in the contract's words
        unresolved, ///< nowhere in the ack window
        stale,      ///< beyond the leased batch
        committed,  ///< a nack of something that the cursor has passed
        no_letter,  ///< it wants a dead letter, and none can be filed
    };
    struct Rejection {
        std::size_t ack; ///< place in the call
        Refusal refusal = Refusal::told;
        std::string error;
    };
    struct Wanted {
        Uuid partition_id;
        std::vector<Offset> offsets; ///< ascending
    };
    /// The acks of one partition, group and lease.
    struct Settled {
        std::vector<std::size_t> acks; ///< places in the call
        Uuid partition_id;
        std::string group, queue, partition;
        bool lease_released = false;
        bool freed = false;             ///< a retry delay ended before its time
        bool covered = false;           ///< the lease ended with its whole batch completed
        std::vector<std::size_t> filed; ///< acks whose message became a dead letter
    };

    Kind kind = Kind::committed;
    std::vector<PushOutcome> pushes;   ///< committed: by segment
    std::vector<Settled> settled;      ///< committed
    std::vector<TimerVerdict> timers;  ///< committed: by op; absent and too_late roll nothing back
    std::vector<Repeat> repeats;       ///< duplicate
    std::vector<OtherForm> forms;      ///< form
    std::vector<Rejection> rejections; ///< rejected
    std::vector<std::string> lost_leases; ///< rejected: required and not live
    std::vector<Wanted> wanted;           ///< letters: also those that were brought
};

/// @thread any. Every error is a value; no call throws. After an error without an SQLSTATE the
/// transaction may have committed; after one with it, it has not.
class TransactionStore {
public:
    virtual ~TransactionStore() = default;
    /// log_transaction_v1. In the lane of pushes, or of acks when nothing but acks is in it.
    virtual void transact(SteadyTime deadline, TransactionCall call,
                          Done<TransactionOutcome> done) = 0;
};

} // namespace queen
