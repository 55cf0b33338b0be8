#pragma once
#include "base/text.hpp"
#include "broker/ack.hpp"
#include "core/broker/broker_parts.hpp"
#include "model/names.hpp"

#include <optional>
#include <string>
#include <vector>

namespace queen::broker {

/// Acks over a scripted store, with a registry; one group, "g", one tenant.
class AckParts : public BrokerParts {
protected:
    std::vector<AckItemResult> ack(std::vector<AckItem> items) {
        std::optional<std::vector<AckItemResult>> results;
        acks_.ack({std::string(kDefaultTenant), "g", std::move(items)},
                  [&](std::vector<AckItemResult> all) { results = std::move(all); });
        EXPECT_TRUE(results.has_value());
        return results.value_or(std::vector<AckItemResult>{});
    }
    static AckItem item(std::string txn, std::string lease = "L",
                        AckStatus status = AckStatus::completed, int partition = 1) {
        AckItem item;
        item.transaction_id = std::move(txn);
        item.partition_id = to_string(test::uuid_of(static_cast<std::uint8_t>(partition)));
        item.lease_id = std::move(lease);
        item.status = status;
        return item;
    }
    static HashAckOutcome settled(bool released = true, bool covered = true) {
        HashAckOutcome outcome;
        outcome.ok = true;
        outcome.lease_released = released;
        outcome.covered = covered;
        outcome.queue = "q";
        outcome.partition = "p";
        return outcome;
    }

    std::shared_ptr<metrics::Activity> activity_ = std::make_shared<metrics::Activity>(clock_);
    AckRegistry registry_{clock_, {}};
    Acks acks_{store_, announcer_, clock_, std::chrono::seconds(30), activity_, &registry_};
};

} // namespace queen::broker
