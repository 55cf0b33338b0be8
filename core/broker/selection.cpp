#include "broker/selection.hpp"

#include <unordered_set>
#include <utility>

namespace queen::broker {

/// Takes each name once and no more than asked for (CL-13); the plugin host counts what breaks it.
class HeldSelection::Collector final : public plugin::Names {
public:
    Collector(HeldSelection& held, std::uint64_t limit) : held_(held), limit_(limit) {}
    bool add(std::string_view partition, std::uint64_t token) override {
        if (held_.names_.size() >= limit_) {
            return false;
        }
        if (seen_.emplace(partition).second) {
            held_.names_.emplace_back(partition);
            held_.tokens_.push_back(token);
        }
        return held_.names_.size() < limit_;
    }

private:
    HeldSelection& held_;
    const std::uint64_t limit_;
    std::unordered_set<std::string> seen_;
};

HeldSelection::HeldSelection(SourcePtr source, const plugin::Take& take)
    : source_(std::move(source)), key_(take.scope.queue.key), tenant_(take.scope.queue.tenant),
      queue_(take.scope.queue.name), group_(take.scope.group) {
    Collector collector(*this, take.limit);
    selection_ = source_->take(take, collector);
}

HeldSelection::~HeldSelection() {
    if (settled_) {
        return;
    }
    std::vector<plugin::Verdict> verdicts;
    for (std::size_t i = 0; i < names_.size(); ++i) {
        verdicts.push_back({.token = tokens_[i], .partition = names_[i]});
    }
    settle_with(verdicts);
}

void HeldSelection::settle(const PopResult& result, bool auto_ack, SteadyTime asked) {
    std::unordered_map<std::string_view, plugin::Verdict> known;
    for (const auto& state : result.states) {
        plugin::Verdict verdict{.partition = state.partition, .partition_id = state.partition_id};
        verdict.kind = state.kind == CandidateState::Kind::leased ? plugin::VerdictKind::leased
                                                                  : plugin::VerdictKind::empty;
        verdict.until = asked + state.left;
        known[state.partition] = verdict;
    }
    for (const auto& partition : result.partitions) {
        plugin::Verdict verdict{.partition = partition.partition,
                                .partition_id = partition.partition_id};
        verdict.kind =
            auto_ack ? plugin::VerdictKind::took_acked : plugin::VerdictKind::took_leased;
        verdict.drained = partition.drained;
        for (const auto& segment : partition.segments) {
            verdict.frames += segment.take;
        }
        if (partition.lease_left) {
            verdict.until = asked + *partition.lease_left;
        }
        known[partition.partition] = verdict;
    }
    std::vector<plugin::Verdict> verdicts;
    for (std::size_t i = 0; i < names_.size(); ++i) {
        plugin::Verdict verdict{.partition = names_[i]}; // not evaluated: requeue
        if (const auto found = known.find(names_[i]); found != known.end()) {
            verdict = found->second;
            known.erase(found);
        }
        verdict.token = tokens_[i];
        verdicts.push_back(verdict);
    }
    for (const auto& [name, verdict] : known) {
        verdicts.push_back(verdict); // the store found these itself
    }
    settle_with(verdicts);
}

void HeldSelection::settle_with(std::span<const plugin::Verdict> verdicts) {
    settled_ = true;
    if (!selection_.cookie && names_.empty()) {
        return; // nothing to give back
    }
    source_->settle({{key_, tenant_, queue_}, group_}, std::move(selection_.cookie), verdicts);
}

} // namespace queen::broker
