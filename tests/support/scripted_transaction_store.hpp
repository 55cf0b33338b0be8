#pragma once
#include "ports/transaction_store.hpp"

#include <functional>
#include <utility>
#include <vector>

namespace queen::test {

/// A store of transactions that keeps what it was asked and answers what the test says; without
/// that it commits everything, at offset 10 of partition 7.
class ScriptedTransactionStore final : public TransactionStore {
public:
    std::function<Result<TransactionOutcome>(const TransactionCall&)> on_transact;
    std::vector<TransactionCall> calls;

    void transact(SteadyTime, TransactionCall call, Done<TransactionOutcome> done) override {
        calls.push_back(call);
        done(on_transact ? on_transact(call) : commit(call));
    }

    /// Every ack is one of its own and releases its lease; every timer is new.
    static TransactionOutcome commit(const TransactionCall& call) {
        TransactionOutcome outcome;
        for (std::size_t i = 0; i < call.segments.size(); ++i) {
            PushOutcome& push = outcome.pushes.emplace_back();
            push.partition_id.bytes[15] = 7;
            push.base = Offset{10};
        }
        for (std::size_t i = 0; i < call.acks.size(); ++i) {
            outcome.settled.push_back({.acks = {i},
                                       .partition_id = call.acks[i].partition_id,
                                       .group = call.acks[i].group,
                                       .queue = "in",
                                       .partition = "p",
                                       .lease_released = true,
                                       .covered = true});
        }
        for (const TimerOp& op : call.timers) {
            TimerVerdict& verdict = outcome.timers.emplace_back();
            verdict.kind = op.kind == TimerOp::Kind::cancel ? TimerVerdict::Kind::cancelled
                                                            : TimerVerdict::Kind::scheduled;
            verdict.transaction_id = op.transaction_id;
            verdict.message_id = op.message_id;
            verdict.left = op.delay;
        }
        return outcome;
    }
};

} // namespace queen::test
