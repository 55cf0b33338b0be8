#pragma once
#include "ports/store.hpp"
#include "support/hook.hpp"

#include <string>
#include <utility>
#include <vector>

namespace queen::test {

/// A store whose answers the test writes: each procedure has a hook; one without a hook fails with
/// `unsupported`, so that an unexpected call is seen.
class ScriptedStore final : public Store {
public:
    Hook<std::vector<PushSegment>, Done<std::vector<PushOutcome>>> on_push;
    Hook<Uuid, Offset, Done<std::optional<StoredSegment>>> on_segment_at;
    Hook<HashPage, Done<std::vector<HashRow>>> on_window_hashes;
    Hook<PopArgs, std::vector<std::string>, Done<PopResult>> on_pop_list;
    Hook<PopArgs, Done<PopResult>> on_pop_wildcard;
    Hook<PopArgs, std::string, Done<PopResult>> on_pop_specific;
    Hook<PopArgs, std::string, std::string, Done<PopResult>> on_pop_discover;
    Hook<PendingQuery, Done<bool>> on_has_pending;
    Hook<Uuid, std::string, std::string, Done<bool>> on_release_undelivered;
    Hook<HashAcks, Done<HashAckOutcome>> on_ack_by_hash;
    Hook<std::vector<PositionAck>, Done<std::vector<PositionAckOutcome>>> on_ack_positions;
    Hook<std::string, std::chrono::seconds, Done<RenewOutcome>> on_renew_lease;
    Hook<std::string, std::string, Done<std::string>> on_configure;
    Hook<std::string, Done<bool>> on_delete_queue;
    Hook<std::string, Done<std::optional<std::string>>> on_queue_detail;
    Hook<std::string, std::optional<std::string>, Done<std::optional<std::string>>> on_queue_depth;
    Hook<std::string, Done<std::optional<std::string>>> on_queue_sizes;
    Hook<Done<std::string>> on_list_queues;
    Hook<Label, Done<std::string>> on_list_labels;
    Hook<Done<std::string>> on_overview;
    Hook<ReseedQuery, Done<ReseedPage>> on_reseed_page;
    Hook<Done<void>> on_ping;

    void push(Deadline, std::vector<PushSegment> segments,
              Done<std::vector<PushOutcome>> done) override {
        call_hook(on_push, std::move(segments), std::move(done));
    }
    void segment_at(Deadline, Uuid id, Offset offset,
                    Done<std::optional<StoredSegment>> done) override {
        call_hook(on_segment_at, id, offset, std::move(done));
    }
    void window_hashes(Deadline, HashPage page, Done<std::vector<HashRow>> done) override {
        call_hook(on_window_hashes, page, std::move(done));
    }
    void pop_list(Deadline, PopArgs args, std::vector<std::string> names,
                  Done<PopResult> done) override {
        call_hook(on_pop_list, std::move(args), std::move(names), std::move(done));
    }
    void pop_wildcard(Deadline, PopArgs args, Done<PopResult> done) override {
        call_hook(on_pop_wildcard, std::move(args), std::move(done));
    }
    void pop_specific(Deadline, PopArgs args, std::string partition,
                      Done<PopResult> done) override {
        call_hook(on_pop_specific, std::move(args), std::move(partition), std::move(done));
    }
    void pop_discover(Deadline, PopArgs args, std::string ns, std::string task,
                      Done<PopResult> done) override {
        call_hook(on_pop_discover, std::move(args), std::move(ns), std::move(task),
                  std::move(done));
    }
    void has_pending(Deadline, PendingQuery query, Done<bool> done) override {
        call_hook(on_has_pending, std::move(query), std::move(done));
    }
    void release_undelivered(Deadline, Uuid id, std::string group, std::string worker,
                             Done<bool> done) override {
        call_hook(on_release_undelivered, id, std::move(group), std::move(worker), std::move(done));
    }
    void ack_by_hash(Deadline, HashAcks acks, Done<HashAckOutcome> done) override {
        call_hook(on_ack_by_hash, std::move(acks), std::move(done));
    }
    void ack_positions(Deadline, std::string, std::vector<PositionAck> acks,
                       Done<std::vector<PositionAckOutcome>> done) override {
        call_hook(on_ack_positions, std::move(acks), std::move(done));
    }
    void renew_lease(Deadline, std::string, std::string worker, std::chrono::seconds seconds,
                     Done<RenewOutcome> done) override {
        call_hook(on_renew_lease, std::move(worker), seconds, std::move(done));
    }
    void configure(Deadline, std::string, std::string queue, std::string options,
                   Done<std::string> done) override {
        call_hook(on_configure, std::move(queue), std::move(options), std::move(done));
    }
    void delete_queue(Deadline, std::string, std::string queue, Done<bool> done) override {
        call_hook(on_delete_queue, std::move(queue), std::move(done));
    }
    void queue_detail(Deadline, std::string, std::string queue, PartitionPage,
                      Done<std::optional<std::string>> done) override {
        call_hook(on_queue_detail, std::move(queue), std::move(done));
    }
    void queue_depth(Deadline, std::string, std::string queue, std::optional<std::string> group,
                     PartitionPage, Done<std::optional<std::string>> done) override {
        call_hook(on_queue_depth, std::move(queue), std::move(group), std::move(done));
    }
    void queue_sizes(Deadline, std::string, std::string queue, PartitionPage,
                     Done<std::optional<std::string>> done) override {
        call_hook(on_queue_sizes, std::move(queue), std::move(done));
    }
    void list_queues(Deadline, std::string, Done<std::string> done) override {
        call_hook(on_list_queues, std::move(done));
    }
    void list_labels(Deadline, std::string, Label label, Done<std::string> done) override {
        call_hook(on_list_labels, label, std::move(done));
    }
    void overview(Deadline, std::string, Done<std::string> done) override {
        call_hook(on_overview, std::move(done));
    }
    void reseed_page(Deadline, ReseedQuery query, Done<ReseedPage> done) override {
        call_hook(on_reseed_page, std::move(query), std::move(done));
    }
    void ping(Deadline, Done<void> done) override { call_hook(on_ping, std::move(done)); }
};

} // namespace queen::test
