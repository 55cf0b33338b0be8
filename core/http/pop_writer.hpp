#pragma once
#include "base/result.hpp"
#include "broker/pop.hpp"
#include "model/encryption.hpp"
#include "model/hash.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace queen::http {

/// The answer to a pop that took something.
struct PopAnswer {
    std::string body;           ///< "" when there is no message in it
    std::size_t partitions = 0; ///< how many of the batch, from its front, it carries
    /// Of a leased batch, for each of these partitions: its messages, as acks address them.
    std::vector<std::vector<TxnHash>> hashes;
};

/// Opens each segment, cuts out the frames that were claimed, splices payloads in byte for byte. A
/// leased batch ends before the partition that would make the body larger than `limit` bytes; what
/// does not go out is to be handed back. One partition is never cut, and neither is what autoAck
/// has consumed.
/// @errors corrupt when a segment does not parse or has fewer frames than were claimed; nothing of
///         the batch may go out then
/// @param cipher opens encrypted payloads; null: no key, and envelopes go out as they are
/// @source POP-7, POP-11, AR-2, FMT-6, FMT-8, FMT-10, ENC-3
Result<PopAnswer> render_pop(const broker::PopRequest& request, const broker::PopBatch& batch,
                             std::size_t limit, const Cipher* cipher = nullptr);

/// The answer to a pop that took nothing and has something to say of conflation (CF-1).
std::string render_empty_pop(const broker::PopRequest& request, const broker::PopBatch& batch);

} // namespace queen::http
