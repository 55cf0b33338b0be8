#include "store/push_arrays.hpp"

#include "store/asker.hpp"

namespace queen::store {

std::string_view status_text(AckStatus status) {
    switch (status) {
    case AckStatus::completed:
        return "completed";
    case AckStatus::failed:
        return "failed";
    case AckStatus::retry:
        return "retry";
    case AckStatus::dlq:
        return "dlq";
    }
    return "failed"; // a number outside the enum
}

Result<PushArrays> PushArrays::of(const std::vector<PushSegment>& segments) {
    PushArrays arrays;
    for (const PushSegment& segment : segments) {
        const auto tenant = tenant_id(segment.tenant);
        if (!tenant) {
            return fail(tenant.error());
        }
        arrays.tenants_.push_back(*tenant);
        arrays.queues_.push_back(segment.queue);
        arrays.partitions_.push_back(segment.partition);
        arrays.counts_.push_back(static_cast<std::int32_t>(segment.count));
        arrays.hashes_.push_back(segment.hashes);
        arrays.verified_.push_back(segment.verified);
        arrays.blobs_.push_back(segment.blob);
        const Vouch vouch = segment.vouch.value_or(Vouch{}); // no partition has the id of zeros
        arrays.vouch_ids_.push_back(vouch.partition_id);
        arrays.vouch_from_.push_back(vouch.from.value());
        arrays.vouch_upto_.push_back(vouch.upto.value());
        arrays.vouch_at_.push_back(vouch.at);
        arrays.encrypted_.push_back(segment.encrypted);
    }
    return arrays;
}

void PushArrays::add_segments(Parameters& parameters) const {
    parameters.text_array(queues_).text_array(partitions_).int4_array(counts_);
    parameters.bytea_array(hashes_).int8_array(verified_).bytea_array(blobs_);
}

void PushArrays::add_forms(Parameters& parameters) const {
    parameters.boolean_array(encrypted_);
}

void PushArrays::add_tenants(Parameters& parameters) const {
    parameters.uuid_array(tenants_);
}

void PushArrays::add_vouches(Parameters& parameters) const {
    parameters.uuid_array(vouch_ids_).int8_array(vouch_from_).int8_array(vouch_upto_);
    parameters.timestamptz_array(vouch_at_);
}

void LetterArrays::add(const Letter& letter) {
    offsets_.push_back(letter.offset.value());
    ids_.push_back(letter.message_id);
    txns_.push_back(letter.transaction_id);
    traces_.push_back(letter.trace_id);
    producers_.push_back(letter.producer_sub);
    payloads_.push_back(letter.payload);
    encrypted_.push_back(letter.encrypted);
    times_.push_back(letter.created_at);
}

void LetterArrays::add_to(Parameters& parameters) const {
    parameters.int8_array(offsets_).uuid_array(ids_).text_array(txns_).uuid_array(traces_);
    parameters.text_array(producers_).bytea_array(payloads_).boolean_array(encrypted_);
    parameters.timestamptz_array(times_);
}

} // namespace queen::store
