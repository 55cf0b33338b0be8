#pragma once
#include "ports/store.hpp"

#include <chrono>
#include <cstddef>
#include <vector>

namespace queen::broker {

/// Payloads that one ack files as dead letters, together. The message that goes beyond is the last;
/// those behind it come again.
inline constexpr std::size_t kMostLetterBytes = std::size_t{64} << 20;

/// Reads messages out of their segments, one segment at a time. `offsets` ascend.
///
/// What comes back is in their order and lacks what is not there: removed by retention meanwhile,
/// unreadable, or beyond kMostLetterBytes.
/// @param wait for a session, for each segment anew
/// @thread worker; `done` runs once, on a worker
/// @errors those of the store
/// @source DQ-2
void read_letters(Store& store, const Clock& clock, std::chrono::milliseconds wait,
                  Uuid partition_id, std::vector<Offset> offsets, Done<std::vector<Letter>> done);

} // namespace queen::broker
