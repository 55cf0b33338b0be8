#pragma once
#include "ports/store.hpp"
#include "support/manual_workers.hpp"

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace queen::test {

/// A store in memory behind the real broker. What is pushed can be popped, once per partition and
/// in order; everything else answers what the test put into the public fields. Every call is kept,
/// and answered from a worker like a real one.
class FakeStore final : public Store {
public:
    explicit FakeStore(ManualWorkers& workers) : workers_(workers) {}

    // What the next answers are.
    std::optional<Error> broken; ///< every call fails with this
    bool reachable = true;       ///< false: calls are kept and never answered
    std::string configure_answer = R"({"configured":true})";
    std::optional<std::string> detail = R"({"name":"q"})";
    std::string list = R"({"queues":[]})";
    std::string overview_answer = R"({"queues":0})";
    bool existed = true;
    RenewOutcome renewal;
    HashAckOutcome ack_answer{.ok = true};
    std::function<void(PopResult&)> spoil_pop; ///< changes a pop's result before it is answered
    std::function<void(std::vector<PushOutcome>&)> spoil_push;

    // What was asked.
    struct Configured {
        std::string queue, options;
    };
    struct Released {
        Uuid partition_id;
        std::string group, worker;
    };
    struct Popped {
        PopArgs args;
        std::string partition, ns, task;
    };
    std::vector<PushSegment> pushed;
    std::vector<Popped> pops;
    std::vector<HashAcks> acks;
    std::vector<PositionAck> whole; ///< acks by position
    std::vector<Configured> configured;
    std::vector<Released> released;
    std::vector<std::pair<std::string, std::chrono::seconds>> renewed;
    std::vector<std::string> renewed_for; ///< tenants
    struct Figures {
        std::string what, tenant, queue;
        std::optional<std::string> group;
        PartitionPage page;
    };
    std::vector<Figures> figures; ///< questions about a queue's partitions
    std::vector<Label> labels;
    std::vector<std::string> deleted;
    std::size_t calls = 0;

    /// The id that the store gives a partition, the same each time.
    static Uuid partition_id(std::string_view queue, std::string_view partition);

    void push(Deadline, std::vector<PushSegment>, Done<std::vector<PushOutcome>>) override;
    void segment_at(Deadline, Uuid, Offset, Done<std::optional<StoredSegment>>) override;
    void window_hashes(Deadline, HashPage, Done<std::vector<HashRow>>) override;
    void pop_list(Deadline, PopArgs, std::vector<std::string>, Done<PopResult>) override;
    void pop_wildcard(Deadline, PopArgs, Done<PopResult>) override;
    void pop_specific(Deadline, PopArgs, std::string, Done<PopResult>) override;
    void pop_discover(Deadline, PopArgs, std::string, std::string, Done<PopResult>) override;
    void has_pending(Deadline, PendingQuery, Done<bool>) override;
    void release_undelivered(Deadline, Uuid, std::string, std::string, Done<bool>) override;
    void ack_by_hash(Deadline, HashAcks, Done<HashAckOutcome>) override;
    void ack_positions(Deadline, std::string, std::vector<PositionAck>,
                       Done<std::vector<PositionAckOutcome>>) override;
    void renew_lease(Deadline, std::string, std::string, std::chrono::seconds,
                     Done<RenewOutcome>) override;
    void configure(Deadline, std::string, std::string, std::string, Done<std::string>) override;
    void delete_queue(Deadline, std::string, std::string, Done<bool>) override;
    void queue_detail(Deadline, std::string, std::string, PartitionPage,
                      Done<std::optional<std::string>>) override;
    void queue_depth(Deadline, std::string, std::string, std::optional<std::string>, PartitionPage,
                     Done<std::optional<std::string>>) override;
    void queue_sizes(Deadline, std::string, std::string, PartitionPage,
                     Done<std::optional<std::string>>) override;
    void list_queues(Deadline, std::string, Done<std::string>) override;
    void list_labels(Deadline, std::string, Label, Done<std::string>) override;
    void overview(Deadline, std::string, Done<std::string>) override;
    void reseed_page(Deadline, ReseedQuery, Done<ReseedPage>) override;
    void ping(Deadline, Done<void>) override;

private:
    struct Lane {
        std::deque<PoppedSegment> waiting;
        std::int64_t next_offset = 0;
    };
    template <class T>
    void answer(Done<T> done, T value);
    PopResult take(const PopArgs& args, const std::optional<std::string>& partition);

    ManualWorkers& workers_;
    std::map<std::pair<std::string, std::string>, Lane> lanes_; ///< by queue and partition
};

} // namespace queen::test
