#pragma once
#include "broker/announce.hpp"
#include "metrics/activity.hpp"
#include "ports/store.hpp"

#include <functional>
#include <optional>
#include <string>
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
    bool dlq = false;
    bool noop = false;
};

/// Settles batches: items are grouped by (partition, lease), each group atomic on its own (AA-4).
class Acks {
public:
    /// @param activity what is counted into; null: its own
    Acks(Store& store, Announcer& announcer, const Clock& clock, std::chrono::milliseconds wait,
         std::shared_ptr<metrics::Activity> activity = {});
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
};

} // namespace queen::broker
