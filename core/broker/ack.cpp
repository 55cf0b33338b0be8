#include "broker/ack.hpp"

#include "base/text.hpp"
#include "broker/ack_words.hpp"
#include "broker/letter_reader.hpp"
#include "model/hash.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_set>
#include <utility>

namespace queen::broker {
namespace {

/// Groups of one request that are settled at a time: a request with very many of them does not fill
/// the lane that everybody's acks go through.
constexpr std::size_t kInFlight = 16;

/// Whole batches of one statement: their rows are locked until it ends.
constexpr std::size_t kWholeAtOnce = 256;

/// How often a group's letters are read until those that are missing are given up.
constexpr int kLetterRounds = 3;

using HashSet = std::unordered_set<TxnHash>;

HashSet as_set(const std::vector<TxnHash>& hashes) {
    return {hashes.begin(), hashes.end()};
}

} // namespace

/// One request on its way. Its groups are settled independently, a few at a time; the answer goes
/// out when the last of them is. Locks: mutex_ is a leaf. Results need none: groups touch items of
/// their own only.
struct Acks::Job : std::enable_shared_from_this<Acks::Job> {
    Job(Acks& acks_in, AckRequest request_in,
        std::function<void(std::vector<AckItemResult>)> done_in)
        : acks(acks_in), request(std::move(request_in)), done(std::move(done_in)),
          results(request.items.size()) {}

    struct Group {
        Uuid partition_id;
        std::string lease_id;
        std::vector<std::size_t> items;
        std::vector<TxnHash> hashes; ///< of the items
    };
    /// A group on the way to its dead letters.
    struct Filing {
        std::vector<Letter> letters;
        bool complete = true; ///< false: some could not be read
        int rounds = 0;
    };

    void start() {
        std::map<std::pair<std::string, std::string>, std::size_t> index;
        for (std::size_t i = 0; i < request.items.size(); ++i) {
            const auto& item = request.items[i];
            const auto id = parse_uuid(item.partition_id);
            if (!id) {
                results[i].error = words::kNotAPartition;
                acks.activity_->ack.refused.add();
                acks.activity_->ack.by_result[static_cast<std::size_t>(metrics::AckResult::refused)]
                    .add();
                continue;
            }
            const auto [at, fresh] =
                index.try_emplace({to_string(*id), item.lease_id}, groups.size());
            if (fresh) {
                groups.push_back({*id, item.lease_id, {}, {}});
            }
            groups[at->second].items.push_back(i);
            groups[at->second].hashes.push_back(hash_transaction_id(item.transaction_id));
        }
        left = groups.size();
        if (groups.empty()) {
            done(std::move(results));
            return;
        }
        std::vector<Whole> whole;
        for (std::size_t g = 0; g < groups.size(); ++g) {
            if (const auto span = whole_batch(groups[g])) {
                whole.push_back({g, *span});
            } else {
                waiting.push_back(g);
            }
        }
        for (std::size_t i = 0; i < whole.size(); i += kWholeAtOnce) {
            const auto end = std::min(i + kWholeAtOnce, whole.size());
            send_whole({whole.begin() + static_cast<std::ptrdiff_t>(i),
                        whole.begin() + static_cast<std::ptrdiff_t>(end)});
        }
        send_waiting();
    }

    struct Whole {
        std::size_t group;
        AckRegistry::Span span;
    };

    AckRegistry::Key key_of(const Group& group) const {
        return {request.tenant, group.partition_id, request.group};
    }

    /// What the group spans when it is all that was delivered under its lease, and completed.
    std::optional<AckRegistry::Span> whole_batch(const Group& group) const {
        if (acks.registry_ == nullptr) {
            return std::nullopt;
        }
        const bool completed =
            std::all_of(group.items.begin(), group.items.end(), [this](std::size_t i) {
                return request.items[i].status == AckStatus::completed;
            });
        if (completed && !group.lease_id.empty()) {
            if (const auto span =
                    acks.registry_->take(key_of(group), group.lease_id, group.hashes)) {
                return span;
            }
        }
        acks.registry_->forget(key_of(group), group.lease_id);
        return std::nullopt;
    }

    void send_whole(std::vector<Whole> whole) {
        std::vector<PositionAck> positions;
        for (const auto& [g, span] : whole) {
            positions.push_back(
                {groups[g].partition_id, request.group, span.first, span.last, groups[g].lease_id});
        }
        acks.store_.ack_positions(
            acks.clock_.now() + acks.wait_, request.tenant, std::move(positions),
            [self = shared_from_this(),
             whole = std::move(whole)](const Result<std::vector<PositionAckOutcome>>& outcomes) {
                for (std::size_t i = 0; i < whole.size(); ++i) {
                    self->went_whole(whole[i].group,
                                     outcomes ? Result<PositionAckOutcome>((*outcomes)[i])
                                              : fail(outcomes.error()));
                }
            });
    }

    void went_whole(std::size_t g, const Result<PositionAckOutcome>& outcome) {
        if (outcome && !outcome->ok) {
            acks.registry_->refused();
            {
                const std::lock_guard lock(mutex);
                waiting.push_back(g);
            }
            send_waiting();
            return;
        }
        if (!outcome) {
            settled(g, fail(outcome.error()));
            return;
        }
        HashAckOutcome as_by_hash;
        as_by_hash.ok = true;
        as_by_hash.acked = outcome->acked;
        as_by_hash.lease_released = outcome->lease_released;
        as_by_hash.covered = outcome->covered;
        as_by_hash.queue = outcome->queue;
        as_by_hash.partition = outcome->partition;
        as_by_hash.conflated = outcome->conflated;
        settled(g, std::move(as_by_hash));
    }

    /// Starts as many groups as may be under way.
    void send_waiting() {
        for (;;) {
            std::size_t g = 0;
            {
                const std::lock_guard lock(mutex);
                if (waiting.empty() || in_flight == kInFlight) {
                    return;
                }
                ++in_flight;
                g = waiting.front();
                waiting.pop_front();
            }
            send(g, {});
        }
    }

    void send(std::size_t g, Filing filing) {
        const auto& group = groups[g];
        HashAcks by_hash{.tenant = request.tenant,
                         .partition_id = group.partition_id,
                         .group = request.group,
                         .worker = group.lease_id,
                         .items = {},
                         .letters = filing.letters,
                         .no_further_letters = !filing.complete};
        for (std::size_t i = 0; i < group.items.size(); ++i) {
            const auto& item = request.items[group.items[i]];
            by_hash.items.push_back({group.hashes[i], item.status, item.error});
        }
        acks.store_.ack_by_hash(acks.clock_.now() + acks.wait_, std::move(by_hash),
                                [self = shared_from_this(), g, filing = std::move(filing)](
                                    const Result<HashAckOutcome>& outcome) mutable {
                                    if (outcome && outcome->ok && !outcome->wanted.empty()) {
                                        self->file(g, std::move(filing), outcome->wanted);
                                        return;
                                    }
                                    self->settled(g, outcome);
                                    {
                                        const std::lock_guard lock(self->mutex);
                                        --self->in_flight;
                                    }
                                    self->send_waiting();
                                });
    }

    /// Brings the letters that the store asked for. Each time it may ask for more, since it judges
    /// anew; somebody else's ack may come in between.
    void file(std::size_t g, Filing filing, const std::vector<Offset>& wanted) {
        if (++filing.rounds > kLetterRounds) {
            filing.complete = false;
            send(g, std::move(filing));
            return;
        }
        read_letters(acks.store_, acks.clock_, acks.wait_, groups[g].partition_id, wanted,
                     [self = shared_from_this(), g, filing = std::move(filing),
                      count = wanted.size()](Result<std::vector<Letter>> letters) mutable {
                         if (!letters) { // nothing was done: the client may try again
                             self->settled(g, fail(std::move(letters.error())));
                             {
                                 const std::lock_guard lock(self->mutex);
                                 --self->in_flight;
                             }
                             self->send_waiting();
                             return;
                         }
                         filing.complete = letters->size() == count;
                         filing.letters = std::move(*letters);
                         self->send(g, std::move(filing));
                     });
    }

    void settled(std::size_t g, const Result<HashAckOutcome>& outcome) {
        const auto& group = groups[g];
        if (outcome && outcome->ok) {
            take_over(group, *outcome);
        } else {
            const auto& why = outcome ? outcome->error : outcome.error().message;
            for (const auto i : group.items) {
                results[i].error = why;
            }
        }
        count(group, outcome);
        if (left.fetch_sub(1) == 1) {
            done(std::move(results));
        }
    }

    void take_over(const Group& group, const HashAckOutcome& outcome) {
        const auto noop = as_set(outcome.noop);
        const auto stale = as_set(outcome.stale);
        const auto unresolved = as_set(outcome.unresolved);
        for (std::size_t at = 0; at < group.items.size(); ++at) {
            const auto& item = request.items[group.items[at]];
            const auto& hash = group.hashes[at];
            auto& result = results[group.items[at]];
            result.success = true;
            result.lease_released = outcome.lease_released;
            result.conflated = outcome.conflated;
            if (unresolved.contains(hash)) {
                result.success = false;
                result.error = words::kUnresolvable;
            } else if (stale.contains(hash)) {
                result.success = false;
                result.error = words::kBeyond;
            } else if (noop.contains(hash)) {
                // Completed twice is fine (clients repeat an ack whose answer they lost); a nack of
                // something the cursor passed cannot be honoured.
                result.noop = true;
                result.success = item.status == AckStatus::completed;
                result.error = result.success ? "" : words::kCommitted;
            } else if (!item.unknown_word.empty()) {
                result.error = words::unknown_status(item.unknown_word);
            }
        }
        for (const auto at : outcome.filed) {
            results[group.items.at(at)].dlq = true;
        }
        for (const auto at : outcome.rejected) {
            auto& result = results[group.items.at(at)];
            result.success = false;
            result.error = words::kNoDeadLetters;
        }
        if ((outcome.lease_released || outcome.freed) && !outcome.queue.empty()) {
            acks.announcer_.released(request.tenant, outcome.queue, outcome.partition,
                                     group.partition_id, request.group, outcome.covered);
        }
    }

    /// A store that did not name the queue: the group counts for none.
    void count(const Group& group, const Result<HashAckOutcome>& outcome) const {
        metrics::QueueFigures figures;
        std::uint64_t settled = 0;
        for (const auto i : group.items) {
            const auto result = results[i].success ? ack_result(request.items[i].status)
                                                   : metrics::AckResult::refused;
            settled += results[i].success ? 1 : 0;
            ++figures.acks[static_cast<std::size_t>(result)];
        }
        acks.activity_->ack.messages.add(settled);
        acks.activity_->ack.refused.add(group.items.size() - settled);
        for (std::size_t i = 0; i < metrics::kAckResults; ++i) {
            acks.activity_->ack.by_result[i].add(figures.acks[i]);
        }
        if (outcome) {
            acks.activity_->ack.dead_letters.add(outcome->filed.size());
        }
        if (outcome && !outcome->queue.empty()) {
            acks.activity_->queues.add(outcome->queue, figures);
        }
    }

    Acks& acks;
    AckRequest request;
    std::function<void(std::vector<AckItemResult>)> done;
    std::vector<AckItemResult> results;
    std::vector<Group> groups;
    std::atomic<std::size_t> left{0}; ///< groups without an answer
    std::mutex mutex;
    std::deque<std::size_t> waiting; ///< groups to send by their hashes
    std::size_t in_flight = 0;       ///< of these
};

Acks::Acks(Store& store, Announcer& announcer, const Clock& clock, std::chrono::milliseconds wait,
           std::shared_ptr<metrics::Activity> activity, AckRegistry* registry)
    : store_(store), announcer_(announcer), clock_(clock), wait_(wait),
      activity_(metrics::Activity::or_own(std::move(activity), clock)), registry_(registry) {}

void Acks::delivered(std::string_view tenant, std::string_view group, std::string_view lease_id,
                     const PoppedPartition& batch, std::vector<TxnHash> hashes) {
    if (registry_ == nullptr || lease_id.empty() || batch.segments.empty()) {
        return;
    }
    std::size_t leased = 0;
    for (const auto& segment : batch.segments) {
        leased += segment.take;
    }
    if (hashes.size() != leased) {
        return;
    }
    const auto& first = batch.segments.front();
    const auto& last = batch.segments.back();
    registry_->remember({tenant, batch.partition_id, group}, lease_id,
                        {Offset{first.base.value() + first.start},
                         Offset{last.base.value() + last.start + last.take - 1}},
                        std::move(hashes), batch.lease_left);
}

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
