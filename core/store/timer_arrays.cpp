#include "store/timer_arrays.hpp"

#include "store/asker.hpp"

namespace queen::store {
namespace {

std::string_view kind_text(TimerOp::Kind kind) {
    switch (kind) {
    case TimerOp::Kind::schedule:
        return "schedule";
    case TimerOp::Kind::reschedule:
        return "reschedule";
    case TimerOp::Kind::cancel:
        return "cancel";
    }
    return ""; // a number outside the enum: the procedure refuses it
}

} // namespace

TimerArrays::TimerArrays(const std::vector<TimerOp>& ops) {
    for (const TimerOp& op : ops) {
        kinds_.push_back(kind_text(op.kind));
        queues_.push_back(op.queue);
        keys_.push_back(op.key);
        txns_.push_back(op.transaction_id);
        partitions_.push_back(op.partition);
        delays_.push_back(op.delay.count());
        ids_.push_back(op.message_id);
        payloads_.push_back(op.payload);
        zstd_.push_back(op.payload_zstd);
        encrypted_.push_back(op.encrypted);
    }
}

void TimerArrays::add_to(Parameters& parameters) const {
    parameters.text_array(kinds_).text_array(queues_).text_array(keys_).text_array(txns_);
    parameters.text_array(partitions_).int8_array(delays_).uuid_array(ids_);
    parameters.bytea_array(payloads_).boolean_array(zstd_).boolean_array(encrypted_);
}

Result<TimerKeyArrays> TimerKeyArrays::of(const std::vector<TimerClaimKey>& rows) {
    TimerKeyArrays arrays;
    for (const TimerClaimKey& row : rows) {
        const auto tenant = tenant_id(row.tenant);
        if (!tenant) {
            return fail(tenant.error());
        }
        arrays.tenants_.push_back(*tenant);
        arrays.queues_.push_back(row.queue);
        arrays.keys_.push_back(row.key);
        arrays.tokens_.push_back(row.token);
    }
    return arrays;
}

void TimerKeyArrays::add_keys(Parameters& parameters) const {
    parameters.uuid_array(tenants_).text_array(queues_).text_array(keys_);
}

void TimerKeyArrays::add_tokens(Parameters& parameters) const {
    parameters.uuid_array(tokens_);
}

Result<TimerVerdict::Kind> timer_verdict(std::string_view word) {
    using Kind = TimerVerdict::Kind;
    if (word == "scheduled") {
        return Kind::scheduled;
    }
    if (word == "rescheduled") {
        return Kind::rescheduled;
    }
    if (word == "cancelled") {
        return Kind::cancelled;
    }
    if (word == "absent") {
        return Kind::absent;
    }
    if (word == "too_late") {
        return Kind::too_late;
    }
    return fail(Errc::internal, "log_timers_apply_v1: not a verdict: " + std::string(word));
}

} // namespace queen::store
