#pragma once
#include "broker/ack.hpp"
#include "broker/ack_registry.hpp"
#include "broker/announce.hpp"
#include "broker/encryption.hpp"
#include "broker/segment_packer.hpp"
#include "broker/timers.hpp"
#include "metrics/activity.hpp"
#include "ports/transaction_store.hpp"

#include <memory>
#include <string>
#include <vector>

namespace queen::broker {

class DedupCache;

/// Messages to store and messages to settle. Names and ids were checked by the caller.
struct TransactionRequest {
    struct Ack {
        AckItem item;
        std::string group;
    };
    std::string tenant;
    std::vector<PushItem> pushes;
    std::vector<Ack> acks;
    std::vector<std::string> required_leases;
    std::shared_ptr<const std::string> hold; ///< owns the bytes behind the payloads
    std::string producer_sub{};              ///< of the token it came with; empty: none (PUSH-6)
    std::vector<TimerOp> timers{};           ///< as TimerStore::apply() takes them
};

struct TransactionResult {
    enum class Verdict {
        committed,
        duplicate,    ///< a message is in the dedup window already
        rejected_ack, ///< an ack or a required lease was not honoured
        no_key,       ///< a queue is encrypted and this broker has no key (ENC-1)
        failed        ///< the store refused; see `error`
    };
    struct Push {
        Uuid message_id;
        std::string transaction_id;
        bool duplicate = false; ///< repeats an earlier message of the same request
    };
    struct Ack {
        bool dlq = false;
        std::string error; ///< empty: null in the answer
    };
    Uuid id; ///< of the transaction
    Verdict verdict = Verdict::committed;
    Error error;                      ///< unless committed; its text says why
    std::vector<Push> pushes;         ///< committed: by item
    std::vector<Ack> acks;            ///< committed: by item
    std::vector<TimerVerdict> timers; ///< committed: by op; absent and too_late are answers
};

/// Stores, settles and sets timers, all or nothing, over any queues. What was stored wakes
/// consumers at once, before the answer goes out; a transaction that failed announces nothing.
/// Messages that are to become dead letters are read between two runs, of which the first changed
/// nothing; so are messages packed again between two runs whose queue wants them in the other form
/// (ENC-5).
/// Locks: none of its own.
/// @source TX-1, TX-2, TX-3, TX-4, TX-6, TX-9, ENC-5
class Transactions {
public:
    struct Options {
        int zstd_level = 3;
        std::chrono::milliseconds wait{30'000};        ///< for a session
        std::shared_ptr<metrics::Activity> activity{}; ///< what is counted into; null: its own
        std::shared_ptr<Encryption> encryption{};      ///< null: there is no key
        TimersScheduled scheduled{};                   ///< told of the timers that were set
    };
    /// @param messages where dead letters are read
    /// @param dedup null: the store compares everything itself (DED-4)
    /// @param registry null: no batch is remembered
    Transactions(TransactionStore& store, Store& messages, Announcer& announcer, const Clock& clock,
                 Options options, DedupCache* dedup = nullptr, AckRegistry* registry = nullptr);
    /// @thread worker; `done` runs once, on a worker.
    void run(TransactionRequest request, std::function<void(TransactionResult)> done);

private:
    struct Job;
    TransactionStore& store_;
    Store& messages_;
    Announcer& announcer_;
    const Clock& clock_;
    Options options_;
    DedupCache* dedup_;
    AckRegistry* registry_;
    Uuid7 ids_;
    const SegmentPacker packer_;
    const std::shared_ptr<metrics::Activity> activity_;
    const std::shared_ptr<Encryption> encryption_; ///< never null
};

} // namespace queen::broker
