#include "http/routes/fake_store.hpp"

#include <algorithm>

namespace queen::test {

template <class T>
void FakeStore::answer(Done<T> done, T value) {
    ++calls;
    if (!reachable) {
        return;
    }
    Result<T> result = std::move(value);
    if (broken) {
        result = fail(*broken);
    }
    workers_.post([done = std::move(done), result = std::move(result)] { done(result); });
}

Uuid FakeStore::partition_id(std::string_view queue, std::string_view partition) {
    std::string text(queue);
    text.append(1, '\x1f').append(partition);
    Uuid id;
    id.bytes = hash_transaction_id(text).bytes;
    return id;
}

void FakeStore::push(Deadline, std::vector<PushSegment> segments,
                     Done<std::vector<PushOutcome>> done) {
    std::vector<PushOutcome> outcomes;
    for (const PushSegment& segment : segments) {
        pushed.push_back(segment);
        PushOutcome outcome;
        outcome.partition_id = partition_id(segment.queue, segment.partition);
        if (!broken) {
            Lane& lane = lanes_[{segment.queue, segment.partition}];
            outcome.base = Offset{lane.next_offset};
            lane.waiting.push_back({.base = Offset{lane.next_offset},
                                    .start = 0,
                                    .take = segment.count,
                                    .created_at = WallTime(std::chrono::seconds(1'800'000'000)),
                                    .blob = segment.blob});
            lane.next_offset += segment.count;
        }
        outcomes.push_back(outcome);
    }
    if (spoil_push) {
        spoil_push(outcomes);
    }
    answer(std::move(done), std::move(outcomes));
}

void FakeStore::segment_at(Deadline, Uuid, Offset, Done<std::optional<StoredSegment>> done) {
    answer(std::move(done), std::optional<StoredSegment>());
}

void FakeStore::window_hashes(Deadline, HashPage, Done<std::vector<HashRow>> done) {
    answer(std::move(done), std::vector<HashRow>());
}

PopResult FakeStore::take(const PopArgs& args, const std::optional<std::string>& partition) {
    PopResult result;
    if (broken) {
        return result;
    }
    for (auto& [name, lane] : lanes_) {
        if (static_cast<std::int32_t>(result.partitions.size()) == args.max_partitions) {
            break;
        }
        if (lane.waiting.empty() || (!args.queue.empty() && name.first != args.queue) ||
            (partition && name.second != *partition)) {
            continue;
        }
        PoppedPartition popped;
        popped.queue = args.queue.empty() ? name.first : std::string();
        popped.partition = name.second;
        popped.partition_id = partition_id(name.first, name.second);
        popped.drained = true;
        popped.segments.assign(lane.waiting.begin(), lane.waiting.end());
        lane.waiting.clear();
        result.partitions.push_back(std::move(popped));
    }
    if (spoil_pop) {
        spoil_pop(result);
    }
    return result;
}

void FakeStore::pop_list(Deadline, PopArgs args, std::vector<std::string>, Done<PopResult> done) {
    pops.push_back({args, {}, {}, {}});
    answer(std::move(done), take(args, std::nullopt));
}

void FakeStore::pop_wildcard(Deadline, PopArgs args, Done<PopResult> done) {
    pops.push_back({args, {}, {}, {}});
    answer(std::move(done), take(args, std::nullopt));
}

void FakeStore::pop_specific(Deadline, PopArgs args, std::string partition, Done<PopResult> done) {
    pops.push_back({args, partition, {}, {}});
    answer(std::move(done), take(args, partition));
}

void FakeStore::pop_discover(Deadline, PopArgs args, std::string ns, std::string task,
                             Done<PopResult> done) {
    pops.push_back({args, {}, ns, task});
    answer(std::move(done), take(args, std::nullopt));
}

void FakeStore::has_pending(Deadline, PendingQuery query, Done<bool> done) {
    const bool pending = std::any_of(lanes_.begin(), lanes_.end(), [&](const auto& lane) {
        return lane.first.first == query.queue && !lane.second.waiting.empty();
    });
    answer(std::move(done), pending);
}

void FakeStore::release_undelivered(Deadline, Uuid id, std::string group, std::string worker,
                                    Done<bool> done) {
    released.push_back({id, std::move(group), std::move(worker)});
    answer(std::move(done), true);
}

void FakeStore::ack_by_hash(Deadline, HashAcks given, Done<HashAckOutcome> done) {
    acks.push_back(std::move(given));
    answer(std::move(done), HashAckOutcome(ack_answer));
}

void FakeStore::ack_positions(Deadline, std::string, std::vector<PositionAck> given,
                              Done<std::vector<PositionAckOutcome>> done) {
    std::vector<PositionAckOutcome> outcomes(given.size());
    for (auto& outcome : outcomes) {
        outcome.ok = outcome.lease_released = outcome.covered = true;
    }
    whole.insert(whole.end(), given.begin(), given.end());
    answer(std::move(done), std::move(outcomes));
}

void FakeStore::renew_lease(Deadline, std::string tenant, std::string worker,
                            std::chrono::seconds seconds, Done<RenewOutcome> done) {
    renewed_for.push_back(std::move(tenant));
    renewed.emplace_back(std::move(worker), seconds);
    answer(std::move(done), RenewOutcome(renewal));
}

void FakeStore::configure(Deadline, std::string, std::string queue, std::string options,
                          Done<std::string> done) {
    configured.push_back({std::move(queue), std::move(options)});
    answer(std::move(done), std::string(configure_answer));
}

void FakeStore::delete_queue(Deadline, std::string, std::string queue, Done<bool> done) {
    deleted.push_back(std::move(queue));
    answer(std::move(done), bool(existed));
}

void FakeStore::queue_detail(Deadline, std::string tenant, std::string queue, PartitionPage page,
                             Done<std::optional<std::string>> done) {
    figures.push_back({"detail", std::move(tenant), std::move(queue), {}, std::move(page)});
    answer(std::move(done), std::optional<std::string>(detail));
}

void FakeStore::queue_depth(Deadline, std::string tenant, std::string queue,
                            std::optional<std::string> group, PartitionPage page,
                            Done<std::optional<std::string>> done) {
    figures.push_back(
        {"depth", std::move(tenant), std::move(queue), std::move(group), std::move(page)});
    answer(std::move(done), std::optional<std::string>(detail));
}

void FakeStore::queue_sizes(Deadline, std::string tenant, std::string queue, PartitionPage page,
                            Done<std::optional<std::string>> done) {
    figures.push_back({"sizes", std::move(tenant), std::move(queue), {}, std::move(page)});
    answer(std::move(done), std::optional<std::string>(detail));
}

void FakeStore::list_queues(Deadline, std::string, Done<std::string> done) {
    answer(std::move(done), std::string(list));
}

void FakeStore::list_labels(Deadline, std::string, Label label, Done<std::string> done) {
    labels.push_back(label);
    answer(std::move(done), std::string(list));
}

void FakeStore::overview(Deadline, std::string, Done<std::string> done) {
    answer(std::move(done), std::string(overview_answer));
}

/// Nothing of the routes walks.
void FakeStore::reseed_page(Deadline, ReseedQuery, Done<ReseedPage> done) {
    answer(std::move(done), ReseedPage{});
}

void FakeStore::ping(Deadline, Done<void> done) {
    ++calls;
    if (reachable) {
        workers_.post([done = std::move(done), broken = broken] {
            done(broken ? Result<void>(fail(*broken)) : Result<void>());
        });
    }
}

} // namespace queen::test
