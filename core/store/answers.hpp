// store/answers.hpp - from the procedures' answers to the values of the Store port. Pure functions
// over decoded rows and JSON text.
#pragma once
#include "ports/store.hpp"
#include "store/rows.hpp"

#include <string_view>
#include <vector>

namespace queen::store {

/// log_push_multi_v1: one element per segment, in input order.
/// @errors internal: the answer is not what the contract between our SQL and our C++ says; so below
Result<std::vector<PushOutcome>> read_push(std::string_view json, std::size_t segments);

/// Meta and blobs of any pop. Blobs stand in the order in which meta walks over its segments.
Result<PopResult> read_pop(std::string_view meta, const std::vector<std::string_view>& blobs);
/// The states column of a list pop, added to `result`.
Result<void> read_states(std::string_view json, PopResult& result);

Result<HashAckOutcome> read_hash_ack(std::string_view json);
Result<std::vector<PositionAckOutcome>> read_position_acks(std::string_view json,
                                                           std::size_t count);
Result<RenewOutcome> read_renew(std::string_view json);

} // namespace queen::store
