#pragma once
#include "ports/store.hpp"
#include "store/asker.hpp"

namespace queen::store {

/// The Store port on PostgreSQL: one prepared statement per call, run by the executor in the lane
/// that its cause belongs to. Answers are decoded after the session was given back. Reads are run
/// again, once, when their link broke under them.
///
/// Keeps no state.
class PgStore final : public Store {
public:
    explicit PgStore(Asker asker) : asker_(std::move(asker)) {}

    void push(Deadline, std::vector<PushSegment>, Done<std::vector<PushOutcome>>) override;
    void segment_at(Deadline, Uuid partition_id, Offset,
                    Done<std::optional<StoredSegment>>) override;
    void window_hashes(Deadline, HashPage, Done<std::vector<HashRow>>) override;
    void pop_list(Deadline, PopArgs, std::vector<std::string> partitions, Done<PopResult>) override;
    void pop_wildcard(Deadline, PopArgs, Done<PopResult>) override;
    void pop_specific(Deadline, PopArgs, std::string partition, Done<PopResult>) override;
    void pop_discover(Deadline, PopArgs, std::string ns, std::string task,
                      Done<PopResult>) override;
    void has_pending(Deadline, PendingQuery, Done<bool>) override;
    void release_undelivered(Deadline, Uuid partition_id, std::string group, std::string worker,
                             Done<bool>) override;
    void ack_by_hash(Deadline, HashAcks, Done<HashAckOutcome>) override;
    void ack_positions(Deadline, std::string tenant, std::vector<PositionAck>,
                       Done<std::vector<PositionAckOutcome>>) override;
    void renew_lease(Deadline, std::string tenant, std::string worker, std::chrono::seconds,
                     Done<RenewOutcome>) override;
    void configure(Deadline, std::string tenant, std::string queue, std::string options_json,
                   Done<std::string>) override;
    void delete_queue(Deadline, std::string tenant, std::string queue, Done<bool>) override;
    void queue_detail(Deadline, std::string tenant, std::string queue, PartitionPage,
                      Done<std::optional<std::string>>) override;
    void queue_depth(Deadline, std::string tenant, std::string queue,
                     std::optional<std::string> group, PartitionPage,
                     Done<std::optional<std::string>>) override;
    void queue_sizes(Deadline, std::string tenant, std::string queue, PartitionPage,
                     Done<std::optional<std::string>>) override;
    void list_queues(Deadline, std::string tenant, Done<std::string>) override;
    void list_labels(Deadline, std::string tenant, Label, Done<std::string>) override;
    void overview(Deadline, std::string tenant, Done<std::string>) override;
    void reseed_page(Deadline, ReseedQuery, Done<ReseedPage>) override;
    void ping(Deadline, Done<void>) override;

private:
    const Asker asker_;
};

} // namespace queen::store
