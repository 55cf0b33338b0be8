#pragma once
#include "base/result.hpp"
#include "broker/pop.hpp"

#include <string>

namespace queen::http {

/// The body of a pop that took something: opens each segment, cuts out the frames that were
/// claimed, splices payloads in byte for byte. "" when the batch has no messages.
/// @errors corrupt when a segment does not parse or has fewer frames than were claimed; nothing of
///         the batch may go out then
/// @source POP-7, FMT-6, FMT-8, FMT-10
Result<std::string> render_pop(const broker::PopRequest& request, const broker::PopBatch& batch);

} // namespace queen::http
