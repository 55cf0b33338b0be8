#pragma once
#include "broker/ack_registry.hpp"
#include "broker/announce.hpp"
#include "metrics/activity.hpp"
#include "ports/store.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace queen::broker {

struct AckItem {
    std::string transaction_id;
    std::string partition_id; ///< as sent; not a uuid: item error
    std::string lease_id;     ///< empty: lease-less
    AckStatus status = AckStatus::completed;
    std::string unknown_word; ///< a status word nobody knows; counts as failed (rule AK-1)
    std::string error;        ///< the consumer's reason
};

struct AckRequest {
    std::string tenant;
    std::string group;
    std::vector<AckItem> items;
};

struct AckItemResult {
    bool success = false;
    std::string error; ///< empty: null in the answer
    bool lease_released = false;
    bool dlq = false;           ///< this message became a dead letter
    bool noop = false;          ///< completed before
    std::int64_t conflated = 0; ///< messages that this ack skipped (CF-2)
};

/// Settles batches: items are grouped by (partition, lease), each group atomic on its own (AA-4).
///
/// A group that completes exactly the batch that was delivered goes by its position, with others of
/// the request in one statement; every other group, and what the store refuses there, by its
/// hashes. The outcome is the same. Messages that are to become dead letters are read on the way.
class Acks {
public:
    /// @param activity what is counted into; null: its own
    /// @param registry null: everything goes by hashes
    Acks(Store& store, Announcer& announcer, const Clock& clock, std::chrono::milliseconds wait,
         std::shared_ptr<metrics::Activity> activity = {}, AckRegistry* registry = nullptr);
    /// A leased batch of a partition is about to be delivered. `hashes` are those of the messages
    /// in the answer, for the ack to come.
    /// @thread any
    /// @source AR-2
    void delivered(std::string_view tenant, std::string_view group, std::string_view lease_id,
                   const PoppedPartition& batch, std::vector<TxnHash> hashes);
    /// Results in item order. @thread worker; `done` runs once, on a worker.
    void ack(AckRequest request, std::function<void(std::vector<AckItemResult>)> done);
    /// @thread worker
    void extend(std::string tenant, std::string lease_id, std::chrono::seconds seconds,
                Done<RenewOutcome> done);

private:
    struct Job;
    Store& store_;
    Announcer& announcer_;
    const Clock& clock_;
    std::chrono::milliseconds wait_;
    std::shared_ptr<metrics::Activity> activity_;
    AckRegistry* const registry_;
};

} // namespace queen::broker
