#include "broker/ack.hpp"

#include "base/text.hpp"
#include "model/hash.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <unordered_set>
#include <utility>

namespace queen::broker {
namespace {

// The contract's words (http-api, item errors).
constexpr const char* kNotAPartition = "partitionId is not a partition id";
constexpr const char* kCommitted =
    "already committed: the cursor moved past this message before this ack";
constexpr const char* kBeyond = "position beyond leased batch";
constexpr const char* kUnresolvable =
    "unresolvable: transaction not in the ack window (hash purged or never pushed); if leased, the "
    "message redelivers";
constexpr const char* kNoDeadLetters = "dlq rejected";

/// Groups of one request that are settled at a time: a request with very many of them does not fill
/// the lane that everybody's acks go through.
constexpr std::size_t kInFlight = 16;

using HashSet = std::unordered_set<TxnHash>;

metrics::AckResult result_of(AckStatus status) noexcept {
    switch (status) {
    case AckStatus::completed:
        return metrics::AckResult::completed;
    case AckStatus::failed:
        return metrics::AckResult::failed;
    case AckStatus::retry:
        return metrics::AckResult::retry;
    case AckStatus::dlq:
        return metrics::AckResult::dlq;
    }
    return metrics::AckResult::refused;
}

HashSet as_set(const std::vector<TxnHash>& hashes) {
    return {hashes.begin(), hashes.end()};
}

} // namespace

struct Acks::Job : std::enable_shared_from_this<Acks::Job> {
    Job(Acks& acks_in, AckRequest request_in,
        std::function<void(std::vector<AckItemResult>)> done_in)
        : acks(acks_in), request(std::move(request_in)), done(std::move(done_in)),
          results(request.items.size()) {}

    struct Group {
        Uuid partition_id;
        std::string lease_id;
        std::vector<std::size_t> items;
    };

    void start() {
        std::map<std::pair<std::string, std::string>, std::size_t> index;
        for (std::size_t i = 0; i < request.items.size(); ++i) {
            const auto& item = request.items[i];
            const auto id = parse_uuid(item.partition_id);
            if (!id) {
                results[i].error = kNotAPartition;
                acks.activity_->ack.refused.add();
                acks.activity_->ack.by_result[static_cast<std::size_t>(metrics::AckResult::refused)]
                    .add();
                continue;
            }
            const auto [at, fresh] =
                index.try_emplace({to_string(*id), item.lease_id}, groups.size());
            if (fresh) {
                groups.push_back({*id, item.lease_id, {}});
            }
            groups[at->second].items.push_back(i);
        }
        left = groups.size();
        if (groups.empty()) {
            done(std::move(results));
            return;
        }
        for (std::size_t i = 0; i < std::min(groups.size(), kInFlight); ++i) {
            send_next();
        }
    }

    void send_next() {
        if (const auto g = next.fetch_add(1); g < groups.size()) {
            send(g);
        }
    }

    void send(std::size_t g) {
        std::vector<HashAck> acks_of;
        for (const auto i : groups[g].items) {
            const auto& item = request.items[i];
            acks_of.push_back({hash_transaction_id(item.transaction_id), item.status});
        }
        acks.store_.ack_by_hash(
            acks.clock_.now() + acks.wait_, request.tenant, groups[g].partition_id, request.group,
            groups[g].lease_id, std::move(acks_of),
            [self = shared_from_this(), g](const Result<HashAckOutcome>& outcome) {
                self->settled(self->groups[g], outcome);
                self->count(self->groups[g], outcome ? outcome->queue : std::string());
                self->send_next();
                if (self->left.fetch_sub(1) == 1) {
                    self->done(std::move(self->results));
                }
            });
    }

    /// Groups touch items of their own only, so their answers may come on several threads.
    void settled(const Group& group, const Result<HashAckOutcome>& outcome) {
        if (!outcome || !outcome->ok) {
            const auto& why = outcome ? outcome->error : outcome.error().message;
            for (const auto i : group.items) {
                results[i].error = why;
            }
            return;
        }
        const auto noop = as_set(outcome->noop);
        const auto stale = as_set(outcome->stale);
        const auto unresolved = as_set(outcome->unresolved);
        for (const auto i : group.items) {
            const auto& item = request.items[i];
            const auto hash = hash_transaction_id(item.transaction_id);
            auto& result = results[i];
            result.success = true;
            result.lease_released = outcome->lease_released;
            if (unresolved.contains(hash)) {
                result.success = false;
                result.error = kUnresolvable;
            } else if (stale.contains(hash)) {
                result.success = false;
                result.error = kBeyond;
            } else if (noop.contains(hash)) {
                // Completed twice is fine (clients repeat an ack whose answer they lost); a nack of
                // something the cursor passed cannot be honoured.
                result.noop = true;
                result.success = item.status == AckStatus::completed;
                result.error = result.success ? "" : kCommitted;
            } else if (outcome->dlq &&
                       (item.status == AckStatus::dlq || item.status == AckStatus::failed)) {
                result.success = false;
                result.error = kNoDeadLetters;
            } else if (!item.unknown_word.empty()) {
                result.error = "unknown status '" + item.unknown_word +
                               "' counts as failed; known: completed, failed, retry, dlq";
            }
        }
        if (outcome->lease_released && !outcome->queue.empty()) {
            acks.announcer_.released(request.tenant, outcome->queue, outcome->partition,
                                     group.partition_id, request.group, outcome->covered);
        }
    }

    /// @param queue empty when the store did not name it: then the group counts for no queue
    void count(const Group& group, const std::string& queue) const {
        metrics::QueueFigures figures;
        std::uint64_t settled = 0;
        for (const auto i : group.items) {
            const auto result = results[i].success ? result_of(request.items[i].status)
                                                   : metrics::AckResult::refused;
            settled += results[i].success ? 1 : 0;
            ++figures.acks[static_cast<std::size_t>(result)];
        }
        acks.activity_->ack.messages.add(settled);
        acks.activity_->ack.refused.add(group.items.size() - settled);
        for (std::size_t i = 0; i < metrics::kAckResults; ++i) {
            acks.activity_->ack.by_result[i].add(figures.acks[i]);
        }
        if (!queue.empty()) {
            acks.activity_->queues.add(queue, figures);
        }
    }

    Acks& acks;
    AckRequest request;
    std::function<void(std::vector<AckItemResult>)> done;
    std::vector<AckItemResult> results;
    std::vector<Group> groups;
    std::atomic<std::size_t> next{0}; ///< group to send
    std::atomic<std::size_t> left{0}; ///< groups without an answer
};

Acks::Acks(Store& store, Announcer& announcer, const Clock& clock, std::chrono::milliseconds wait,
           std::shared_ptr<metrics::Activity> activity)
    : store_(store), announcer_(announcer), clock_(clock), wait_(wait),
      activity_(metrics::Activity::or_own(std::move(activity), clock)) {}

void Acks::ack(AckRequest request, std::function<void(std::vector<AckItemResult>)> done) {
    activity_->ack.requests.add();
    std::make_shared<Job>(*this, std::move(request), std::move(done))->start();
}

void Acks::extend(std::string tenant, std::string lease_id, std::chrono::seconds seconds,
                  Done<RenewOutcome> done) {
    store_.renew_lease(clock_.now() + wait_, std::move(tenant), std::move(lease_id), seconds,
                       std::move(done));
}

} // namespace queen::broker
